//! `agent replay`: folds an event log again, shows it as it ran, and verifies
//! that it tells the same result.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::event::{Reason, ResultDocument};
use crate::report::{self, HumanOptions, LogError, PlainSink, Sink, neutral_json};

use super::console::Console;
use super::exit::Exit;
use super::flags::{ColorChoice, OutputFormat};
use super::outputs;

/// No result document is longer.
const RESULT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Folds an event log again and verifies its result. Exits with the code that
/// the run had. (A run that a cassette answers is `agent run --replay`.)
#[derive(Debug, Args)]
pub(super) struct ReplayCommand {
    /// An event log, or a run directory.
    #[arg(value_name = "RUN|events.jsonl")]
    log: PathBuf,

    /// What standard output gets: the answer, the result document, or the log.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    output_format: OutputFormat,

    /// No account of the run on standard error.
    #[arg(long)]
    quiet: bool,

    /// Colour on standard error.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    color: ColorChoice,
}

impl ReplayCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let path = if self.log.is_dir() {
            self.log.join("events.jsonl")
        } else {
            self.log.clone()
        };
        let file = match open(&path) {
            Ok(file) => file,
            Err(error) => {
                console.complain(&format!("agent: cannot read {}: {error}\n", path.display()));
                return Exit::Reason(Reason::NoInput);
            }
        };
        let run_dir = path.parent().map(Path::to_path_buf);
        let mut human = (!self.quiet).then(|| {
            PlainSink::new(
                Box::new(io::stderr()),
                HumanOptions {
                    style: console.style(self.color),
                    width: console.width(),
                    run_dir: run_dir.clone(),
                    redactor: console.redactor(),
                },
            )
        });
        let watched = console.stdout_is_watched();
        let line_of = |json: &str| match watched {
            true => neutral_json(json).into_owned(),
            false => json.to_owned(),
        };
        let folded = report::fold_log(BufReader::new(file), run_dir.as_deref(), |event| {
            if let Some(sink) = &mut human {
                // Nobody may be reading; the verdict below does not depend on it.
                let _ = sink.write(event, "");
            }
            if self.output_format == OutputFormat::Jsonl
                && let Ok(line) = serde_json::to_string(event)
            {
                console.print(&format!("{}\n", line_of(&line)));
            }
        });
        match folded {
            Ok(folded) => {
                let result = &folded.result;
                if self.log.is_dir()
                    && let Err(message) = agrees(&self.log.join("result.json"), result)
                {
                    console.complain(&format!("agent: {message}\n"));
                    return Exit::Reason(Reason::BadTask);
                }
                match self.output_format {
                    OutputFormat::Text => {
                        let text = outputs::answer(result);
                        console.print_text(&text);
                    }
                    OutputFormat::Json => {
                        let text = serde_json::to_string(result).unwrap_or_default();
                        console.print(&format!("{}\n", line_of(&text)));
                    }
                    OutputFormat::Jsonl => {}
                }
                Exit::Reason(result.reason)
            }
            Err(error) => {
                console.complain(&format!("agent: {}: {error}\n", path.display()));
                Exit::Reason(reason_of(&error))
            }
        }
    }
}

/// Whether the result of a run directory is what its log tells.
fn agrees(path: &Path, told: &ResultDocument) -> Result<(), String> {
    let place = path.display();
    let mut text = String::new();
    open(path)
        .and_then(|file| file.take(RESULT_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| format!("cannot read {place}: {error}"))?;
    match serde_json::from_str::<ResultDocument>(&text) {
        Ok(kept) if kept == *told => Ok(()),
        Ok(_) => Err(format!("{place} does not say what the event log tells")),
        Err(error) => Err(format!("{place} is no result document: {error}")),
    }
}

/// A log is a regular file: reading anything else could wait for ever.
fn open(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    File::open(path)
}

fn reason_of(error: &LogError) -> Reason {
    match error {
        LogError::Read { .. } => Reason::Io,
        _ => Reason::BadTask,
    }
}
