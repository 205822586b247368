//! Where a run's events and its result go: every output is opened before the
//! first model call, so that a run whose results cannot be kept never starts.

use std::io::{self, Write};
use std::path::Path;

use crate::event::{ErrorReport, Event, EventKind, Reason, ResultDocument};
use crate::export;
use crate::report::{
    self, HumanOptions, JsonlSink, Opening, PlainSink, Report, Sink, SinkError, TerminalSink,
    neutral_json, neutral_text,
};
use crate::run::RunDirectory;
use crate::secret::Redactor;

use super::console::Console;
use super::flags::{OutputFlags, OutputFormat};

/// Opens the sinks of a run, those that are likely to fail first.
///
/// # Errors
/// When one of them cannot be opened.
pub(super) fn open(
    flags: &OutputFlags,
    directory: Option<&RunDirectory>,
    console: &Console,
) -> Result<Vec<Box<dyn Sink>>, SinkError> {
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    if let Some(directory) = directory {
        // First, so that every other output knows when it cannot be written.
        sinks.push(Box::new(ResultFile(directory.clone())));
    }
    if !flags.quiet {
        sinks.push(human(flags, directory, console));
    }
    match flags.output_format {
        OutputFormat::Text if console.stdout_is_watched() => {
            let redactor = console.redactor();
            let shown = move |result: &_| shown_answer(result, &redactor);
            sinks.push(AtEnd::on_stdout(Box::new(io::stdout()), shown));
        }
        OutputFormat::Text => sinks.push(AtEnd::on_stdout(Box::new(io::stdout()), answer)),
        OutputFormat::Json => sinks.push(AtEnd::on_stdout(documents(console), |result| {
            serde_json::to_string(result).map_or_else(|_| String::new(), |text| text + "\n")
        })),
        OutputFormat::Jsonl => {
            let out = documents(console);
            sinks.push(Box::new(JsonlSink::stream("standard output", out)));
        }
    }
    if let Some(path) = &flags.output_last_message {
        sinks.push(AtEnd::in_file(path, last_message)?);
    }
    if let Some(path) = &flags.events {
        sinks.push(Box::new(JsonlSink::create(path)?));
    }
    if let Some(directory) = directory {
        let redactor = console.redactor();
        // Once more: what was made harmless may only then show a secret.
        let page = move |result: &_| redactor.redact(&export::markdown(result)).into_owned();
        sinks.push(AtEnd::in_file(&directory.summary(), page)?);
        sinks.push(Box::new(JsonlSink::create(&directory.events())?));
    }
    Ok(sinks)
}

/// The answer as a text of whole lines; nothing when there is none.
///
/// What is read by programs is a line of JSON, or nothing where no answer fits.
pub(super) fn answer(result: &ResultDocument) -> String {
    if result.repairs.is_some() && !result.jobs.is_empty() {
        return result.jobs.iter().map(answer).collect();
    }
    if result.repairs.is_some() {
        let document = result.structured_output.as_ref();
        return document.map_or_else(String::new, |document| format!("{document}\n"));
    }
    match result.final_text.trim_end() {
        "" => String::new(),
        text => format!("{text}\n"),
    }
}

/// The answer for those who watch: each job's as what it is, text or a document.
fn shown_answer(result: &ResultDocument, redactor: &Redactor) -> String {
    if result.repairs.is_some() && !result.jobs.is_empty() {
        let jobs = result.jobs.iter();
        return jobs.map(|job| shown_answer(job, redactor)).collect();
    }
    let answer = answer(result);
    match result.repairs {
        Some(_) => neutral_json(&answer).into_owned(),
        None => redactor.redact(&neutral_text(&answer)).into_owned(),
    }
}

/// What `--output-last-message` keeps.
fn last_message(result: &ResultDocument) -> String {
    match result.repairs {
        Some(_) => answer(result),
        None => result.final_text.clone(),
    }
}

/// Standard output for lines of JSON.
fn documents(console: &Console) -> Box<dyn Write + Send> {
    if console.stdout_is_watched() {
        Box::new(Neutral(io::stdout()))
    } else {
        Box::new(io::stdout())
    }
}

/// Writes lines of JSON so that nobody who watches them acts on them.
struct Neutral<W>(W);

impl<W: Write> Write for Neutral<W> {
    /// Takes whole lines.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(lines);
        self.0.write_all(neutral_json(&text).as_bytes())?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes the result that holds until the run has a better one, so that even
/// a killed run leaves a truthful file.
///
/// # Errors
/// When it cannot be written.
pub(super) fn open_result(directory: &RunDirectory, opening: Opening) -> Result<(), SinkError> {
    report::write_result(&directory.result(), &report::incomplete(opening))
}

/// Replaces `result.json` for a run that ends without a log to fold.
///
/// # Errors
/// When it cannot be written.
pub(super) fn end_result(
    directory: &RunDirectory,
    opening: Opening,
    reason: Reason,
    error: ErrorReport,
) -> Result<(), SinkError> {
    let result = ResultDocument {
        outcome: reason.outcome(),
        reason,
        exit_code: reason.exit_code(),
        error: Some(error),
        ..report::incomplete(opening)
    };
    report::write_result(&directory.result(), &result)
}

/// Replaces `result.json` once more when an output failed after it was written.
///
/// # Errors
/// When it cannot be written.
pub(super) fn close_result(directory: &RunDirectory, report: &Report) -> Result<(), SinkError> {
    if report.failures.is_empty() {
        return Ok(());
    }
    report::write_result(&directory.result(), &report.result)
}

/// Replaces `result.json` when the run ends.
struct ResultFile(RunDirectory);

impl Sink for ResultFile {
    fn write(&mut self, event: &Event, _line: &str) -> Result<(), SinkError> {
        let EventKind::RunEnd(end) = &event.kind else {
            return Ok(());
        };
        // Somebody removed the directory, and a late file brought it back: a
        // result in it would promise a log that nobody can read.
        let log = self.0.events();
        if !log.exists() {
            let gone = io::Error::new(io::ErrorKind::NotFound, "the run's log was removed");
            return Err(SinkError::new("keep", log.display().to_string(), gone));
        }
        report::write_result(&self.0.result(), &end.result)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

fn human(
    flags: &OutputFlags,
    directory: Option<&RunDirectory>,
    console: &Console,
) -> Box<dyn Sink> {
    let options = HumanOptions {
        style: console.style(flags.color),
        width: console.width(),
        run_dir: directory.map(|directory| directory.path().to_path_buf()),
        redactor: console.redactor(),
    };
    if console.is_interactive() {
        Box::new(TerminalSink::new(options))
    } else {
        Box::new(PlainSink::new(Box::new(io::stderr()), options))
    }
}

/// A sink that writes once, when the result is known.
struct AtEnd {
    name: String,
    out: Box<dyn Write + Send>,
    render: Box<dyn Fn(&ResultDocument) -> String + Send>,
}

impl AtEnd {
    fn on_stdout(
        out: Box<dyn Write + Send>,
        render: impl Fn(&ResultDocument) -> String + Send + 'static,
    ) -> Box<dyn Sink> {
        Box::new(Self {
            name: "standard output".to_owned(),
            out,
            render: Box::new(render),
        })
    }

    fn in_file(
        path: &Path,
        render: impl Fn(&ResultDocument) -> String + Send + 'static,
    ) -> Result<Box<dyn Sink>, SinkError> {
        let name = path.display().to_string();
        let file = report::create_private(path)
            .map_err(|source| SinkError::new("open", name.clone(), source))?;
        Ok(Box::new(Self {
            name,
            out: Box::new(file),
            render: Box::new(render),
        }))
    }
}

impl Sink for AtEnd {
    fn write(&mut self, event: &Event, _line: &str) -> Result<(), SinkError> {
        let EventKind::RunEnd(end) = &event.kind else {
            return Ok(());
        };
        let text = (self.render)(&end.result);
        let written = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
        match written {
            // A reader that went away wants no answer; the files have it.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|source| SinkError::new("write", self.name.clone(), source)),
        }
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
