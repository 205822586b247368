//! Progress on a terminal: one moving line, and what is done above it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::narrate::Narrator;
use super::screen::HumanOptions;
use super::{Sink, SinkError, Streaming};
use crate::event::{Event, EventKind};

/// Keeps a progress line with the current call, the elapsed time and the cost.
pub struct TerminalSink {
    narrator: Narrator,
    bar: ProgressBar,
    streamed: usize,
}

impl TerminalSink {
    /// Draws on standard error, which is a terminal.
    pub fn new(options: HumanOptions) -> Self {
        Self::on(ProgressDrawTarget::stderr(), options)
    }

    /// Draws on `target`.
    pub fn on(target: ProgressDrawTarget, options: HumanOptions) -> Self {
        let marks = if options.style.unicode {
            "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "
        } else {
            "-\\|/ "
        };
        let template = if options.style.color {
            "\u{1b}[36m{spinner}\u{1b}[0m {elapsed} {wide_msg}"
        } else {
            "{spinner} {elapsed} {wide_msg}"
        };
        let style = ProgressStyle::with_template(template)
            .expect("the template is a constant that parses")
            .tick_chars(marks);
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(120));
        Self {
            narrator: Narrator::new(options),
            bar,
            streamed: 0,
        }
    }

    fn show_status(&self) {
        self.bar.set_message(self.narrator.status());
    }
}

impl Sink for TerminalSink {
    fn write(&mut self, event: &Event, _line: &str) -> Result<(), SinkError> {
        let lines = self.narrator.lines(event);
        let ended = matches!(event.kind, EventKind::RunEnd(_));
        if !lines.is_empty() {
            self.bar.println(lines.join("\n"));
        }
        match &event.kind {
            EventKind::TextChunk(chunk) => self.streaming(Streaming::Text, chunk.delta.len()),
            EventKind::ThinkingChunk(chunk) => {
                self.streaming(Streaming::Thinking, chunk.delta.len());
            }
            _ => {
                self.streamed = 0;
                self.show_status();
            }
        }
        if ended {
            self.bar.finish_and_clear();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.bar.finish_and_clear();
        Ok(())
    }

    fn streaming(&mut self, what: Streaming, bytes: usize) {
        self.streamed += bytes;
        let verb = match what {
            Streaming::Thinking => "thinking",
            Streaming::Text => "writing",
        };
        self.bar
            .set_message(format!("{verb}, {} bytes so far", self.streamed));
    }
}
