//! A run that cannot start still ends truthfully: people get the reason on
//! standard error, machines get their result document or event log.

use crate::clock;
use crate::event::{Emission, ErrorReport, EventKind, Reason, RunStart};
use crate::report::{Ending, Recorder, RecorderOptions, neutral};
use crate::task::{Diagnostics, Kind};

use super::console::Console;
use super::exit::Exit;
use super::flags::{OutputFlags, OutputFormat};
use super::outputs;

/// Why a run cannot start.
#[derive(Debug)]
pub(super) struct Refusal {
    reason: Reason,
    error: Box<ErrorReport>,
    /// The problems of task files, which have a form of their own.
    problems: Vec<Diagnostics>,
    /// The run that was about to start.
    run_id: Option<String>,
}

impl Refusal {
    /// The run has an id already.
    pub(super) fn of_run(mut self, run_id: String) -> Self {
        self.run_id = Some(run_id);
        self
    }

    /// What the result document says of it.
    pub(super) fn error(&self) -> ErrorReport {
        (*self.error).clone()
    }

    pub(super) fn new(reason: Reason, message: String) -> Self {
        Self {
            reason,
            error: Box::new(ErrorReport {
                code: reason.name().to_owned(),
                message,
                ..ErrorReport::default()
            }),
            problems: Vec::new(),
            run_id: None,
        }
    }

    /// Task files that are missing or wrong.
    pub(super) fn of_tasks(problems: &[Diagnostics]) -> Self {
        let reason = reason_of(problems);
        let lines: Vec<String> = problems
            .iter()
            .flat_map(|diagnostics| &diagnostics.list)
            .map(|problem| {
                format!(
                    "{}:{}:{}: {}",
                    problem.file, problem.line, problem.column, problem.message
                )
            })
            .collect();
        Self {
            problems: problems.to_vec(),
            ..Self::new(reason, lines.join("\n"))
        }
    }
}

/// A wrong task outweighs a wrong flag, and that a missing file.
pub(super) fn reason_of(problems: &[Diagnostics]) -> Reason {
    let has = |kind| problems.iter().any(|problem| problem.kind == kind);
    [Kind::BadTask, Kind::Config, Kind::Usage]
        .into_iter()
        .find(|kind| has(*kind))
        .unwrap_or(Kind::NoInput)
        .reason()
}

/// Says why the run does not start, to people and machines.
pub(super) fn refuse(refusal: Refusal, flags: &OutputFlags, console: &Console) -> Exit {
    let reason = refusal.reason;
    if refusal.problems.is_empty() {
        let message = neutral(&refusal.error.message);
        console.complain(&format!("agent: {message}\n"));
    }
    tell(&refusal.problems, flags, console);
    if flags.output_format != OutputFormat::Text {
        record(refusal, flags, console);
    }
    Exit::Reason(reason)
}

/// Shows the problems of task files. Their snippets hold what somebody else may
/// have written.
pub(super) fn tell(problems: &[Diagnostics], flags: &OutputFlags, console: &Console) {
    for diagnostics in problems {
        if console.style(flags.color).color {
            // The renderer takes escape sequences out itself.
            console.complain_painted(&diagnostics.render(true));
        } else {
            console.complain(&diagnostics.render(false));
        }
    }
}

/// Shows what is wrong with a file that a command reads which is no run.
pub(super) fn refuse_file(problems: &Diagnostics, console: &Console) -> Exit {
    tell(
        std::slice::from_ref(problems),
        &OutputFlags::default(),
        console,
    );
    Exit::Reason(problems.kind.reason())
}

/// The shortest possible log: a start and an end.
fn record(refusal: Refusal, flags: &OutputFlags, console: &Console) {
    let flags = OutputFlags {
        quiet: true,
        events: None,
        output_last_message: None,
        ..flags.clone()
    };
    let Ok(sinks) = outputs::open(&flags, None, console) else {
        return;
    };
    let mut recorder = Recorder::new(RecorderOptions {
        run_id: refusal.run_id.unwrap_or_else(clock::new_id),
        redactor: console.redactor(),
        sinks,
        spill_dir: None,
        deltas: crate::report::Deltas::None,
    });
    recorder.write(Emission::of_run(EventKind::RunStart(RunStart {
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        task_files: Vec::new(),
        jobs: Vec::new(),
        cwd: String::new(),
        run_dir: None,
        model: String::new(),
        permission_mode: String::new(),
        limits: serde_json::Value::Null,
        config_hash: String::new(),
        replay: None,
    })));
    let report = recorder.close(Ending {
        reason: refusal.reason,
        error: Some(*refusal.error),
    });
    for failure in &report.failures {
        console.complain(&format!("agent: {failure}\n"));
    }
}
