//! A run that cannot start still ends truthfully: people get the reason on
//! standard error, machines get their result document or event log.

use crate::clock;
use crate::event::{Emission, ErrorReport, EventKind, Reason, RunStart};
use crate::report::{Ending, Recorder, RecorderOptions};
use crate::secret::Redactor;
use crate::task::{Diagnostics, Kind};

use super::console::Console;
use super::exit::Exit;
use super::flags::{OutputFlags, OutputFormat};
use super::outputs;

/// Why a run cannot start.
#[derive(Debug)]
pub(super) struct Refusal {
    reason: Reason,
    error: ErrorReport,
    /// The problems of task files, which have a form of their own.
    problems: Vec<Diagnostics>,
}

impl Refusal {
    pub(super) fn new(reason: Reason, message: String) -> Self {
        Self {
            reason,
            error: ErrorReport {
                code: reason.name().to_owned(),
                message,
                ..ErrorReport::default()
            },
            problems: Vec::new(),
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

/// A wrong task outweighs a missing one.
pub(super) fn reason_of(problems: &[Diagnostics]) -> Reason {
    let wrong = problems.iter().any(|problem| problem.kind == Kind::BadTask);
    if wrong {
        Reason::BadTask
    } else {
        Reason::NoInput
    }
}

/// Says why the run does not start, to people and machines.
pub(super) fn refuse(refusal: Refusal, flags: &OutputFlags, console: &Console) -> Exit {
    let reason = refusal.reason;
    if refusal.problems.is_empty() {
        console.complain(&format!("agent: {}\n", refusal.error.message));
        for hint in &refusal.error.hints {
            console.complain(&format!("  hint: {hint}\n"));
        }
    }
    for diagnostics in &refusal.problems {
        console.complain(&diagnostics.render(console.style(flags.color).color));
    }
    if flags.output_format != OutputFormat::Text {
        record(refusal, flags, console);
    }
    Exit::Reason(reason)
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
        run_id: clock::new_id(),
        redactor: Redactor::default(),
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
    })));
    let report = recorder.close(Ending {
        reason: refusal.reason,
        error: Some(refusal.error),
    });
    for failure in &report.failures {
        console.complain(&format!("agent: {failure}\n"));
    }
}
