//! Events, recorders and sinks for the tests of the report.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use agent::event::{
    CallSummary, Decider, Diff, Emission, ErrorReport, Event, EventKind, JobEnd, JobResult,
    JobStart, MessageComplete, PermissionRequest, PermissionResponse, Place, Reason, RetrySource,
    RetryStart, RunStart, StepEnd, StepStart, TextChunk, ToolComplete, ToolError, ToolErrorStatus,
    ToolStart, ToolUpdate, TurnEnd, TurnStart, TurnStatus, Warning,
};
use agent::message::{StopReason, Usage};
use agent::report::{Deltas, Ending, Recorder, RecorderOptions, Report, Sink, SinkError};
use agent::secret::Redactor;
use serde_json::{Value, json};

/// Bytes that a test can look at while a sink writes them.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Keeps the events and their lines.
#[derive(Clone, Default)]
pub(crate) struct Kept(pub(crate) Arc<Mutex<Vec<(Event, String)>>>);

impl Kept {
    pub(crate) fn events(&self) -> Vec<Event> {
        let kept = self.0.lock().unwrap();
        kept.iter().map(|(event, _)| event.clone()).collect()
    }

    pub(crate) fn log(&self) -> String {
        let kept = self.0.lock().unwrap();
        kept.iter().map(|(_, line)| format!("{line}\n")).collect()
    }

    /// Event names, with what tells ends apart.
    pub(crate) fn names(&self) -> Vec<String> {
        self.events()
            .iter()
            .map(|event| {
                let value = serde_json::to_value(event).unwrap();
                let name = value["event"].as_str().unwrap().to_owned();
                match value["data"]["status"].as_str() {
                    Some(status) => format!("{name} {status}"),
                    None => name,
                }
            })
            .collect()
    }
}

impl Sink for Kept {
    fn write(&mut self, event: &Event, line: &str) -> Result<(), SinkError> {
        assert!(!line.contains('\n'), "a line feed inside {line}");
        self.0
            .lock()
            .unwrap()
            .push((event.clone(), line.to_owned()));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

pub(crate) fn options(sinks: Vec<Box<dyn Sink>>) -> RecorderOptions {
    RecorderOptions {
        run_id: "run-1".to_owned(),
        redactor: Redactor::default(),
        sinks,
        spill_dir: None,
        deltas: Deltas::None,
    }
}

/// A recorder without secrets, and what it records.
pub(crate) fn recorder() -> (Recorder, Kept) {
    let kept = Kept::default();
    (Recorder::new(options(vec![Box::new(kept.clone())])), kept)
}

pub(crate) fn close(recorder: Recorder, reason: Reason) -> Report {
    recorder.close(Ending {
        reason,
        error: None,
    })
}

/// Records `kinds` as one job and closes with success.
pub(crate) fn recorded(kinds: Vec<EventKind>) -> (Report, Kept) {
    let (mut recorder, kept) = recorder();
    recorder.write(run_start(&["fix"]));
    for kind in kinds {
        recorder.write(in_job(kind));
    }
    (close(recorder, Reason::Success), kept)
}

pub(crate) fn place(job: &str) -> Place {
    Place {
        job: Some(job.to_owned()),
        session_id: Some(format!("session-{job}")),
        agent_id: Some("main".to_owned()),
        turn: Some(1),
        step: Some(1),
    }
}

pub(crate) fn in_job(kind: EventKind) -> Emission {
    emission("fix", kind)
}

pub(crate) fn emission(job: &str, kind: EventKind) -> Emission {
    let place = place(job);
    Emission { place, kind }
}

pub(crate) fn run_start(jobs: &[&str]) -> Emission {
    Emission::of_run(EventKind::RunStart(RunStart {
        agent_version: "0.1.0".to_owned(),
        task_files: Vec::new(),
        jobs: jobs.iter().map(|job| (*job).to_owned()).collect(),
        cwd: "/srv/project".to_owned(),
        run_dir: Some("/runs/1".to_owned()),
        model: "scripted/demo".to_owned(),
        permission_mode: "accept_edits".to_owned(),
        limits: json!({"max_turns": 60, "max_cost_usd": 2.0, "timeout": "45m"}),
        config_hash: "abc".to_owned(),
        replay: None,
    }))
}

pub(crate) fn job_start() -> EventKind {
    EventKind::JobStart(JobStart {
        name: "fix".to_owned(),
        attempt: 1,
        params: std::collections::BTreeMap::new(),
    })
}

pub(crate) fn job_end(reason: Reason, conclusion: JobResult) -> EventKind {
    EventKind::JobEnd(Box::new(JobEnd {
        outcome: reason.outcome(),
        reason,
        duration_ms: 7,
        conclusion,
    }))
}

pub(crate) fn turn_start() -> EventKind {
    EventKind::TurnStart(TurnStart {
        input: "fix it".to_owned(),
    })
}

pub(crate) fn turn_end(text: &str) -> EventKind {
    EventKind::TurnEnd(TurnEnd {
        status: TurnStatus::Ok,
        final_text: text.to_owned(),
        steps: 1,
        usage: usage(),
        duration_ms: 5,
        error_message: None,
    })
}

pub(crate) fn step_start() -> EventKind {
    EventKind::StepStart(StepStart {
        model: "scripted/demo".to_owned(),
        closing: false,
    })
}

pub(crate) fn step_end() -> EventKind {
    EventKind::StepEnd(StepEnd {
        stop_reason: StopReason::Stop,
        usage: usage(),
        cost_usd: Some(0.1),
        files: Vec::new(),
    })
}

pub(crate) fn usage() -> Usage {
    Usage {
        input: 100,
        output: 20,
        cache_read: 3,
        ..Usage::default()
    }
}

pub(crate) fn reply(text: &str, calls: &[(&str, &str, Value)], cost_usd: Option<f64>) -> EventKind {
    EventKind::MessageComplete(Box::new(MessageComplete {
        agent_id: "main".to_owned(),
        reasoning: String::new(),
        content: text.to_owned(),
        has_tool_calls: !calls.is_empty(),
        tool_calls: calls
            .iter()
            .map(|(id, name, args)| CallSummary {
                id: (*id).to_owned(),
                name: (*name).to_owned(),
                args: args.clone(),
            })
            .collect(),
        message_id: "e1".to_owned(),
        stop_reason: StopReason::Stop,
        usage: usage(),
        cost_usd,
        model: "scripted/demo".to_owned(),
    }))
}

pub(crate) fn request(id: &str, tool: &str, suggested: Option<&str>) -> EventKind {
    EventKind::PermissionRequest(PermissionRequest {
        agent_id: "main".to_owned(),
        tool_name: tool.to_owned(),
        title: format!("{tool} it"),
        content: "writes a file".to_owned(),
        options: std::collections::BTreeMap::new(),
        request_id: format!("request-{id}"),
        tool_call_id: id.to_owned(),
        accesses: Vec::new(),
        suggested_rule: suggested.map(str::to_owned),
    })
}

pub(crate) fn response(id: &str, tool: &str, selected: &str, rule: Option<&str>) -> EventKind {
    EventKind::PermissionResponse(PermissionResponse {
        tool_name: tool.to_owned(),
        selected: selected.to_owned(),
        request_id: format!("request-{id}"),
        tool_call_id: id.to_owned(),
        by: Decider::Rule,
        rule: rule.map(str::to_owned),
        reason: "that file is protected".to_owned(),
    })
}

pub(crate) fn tool_start(id: &str, tool: &str, args: Value) -> EventKind {
    EventKind::ToolStart(ToolStart {
        tool_call_id: id.to_owned(),
        tool_name: tool.to_owned(),
        args,
        title: format!("{tool} it"),
        accesses: Vec::new(),
        parallel_group: 1,
    })
}

pub(crate) fn tool_update(id: &str, delta: &str) -> EventKind {
    EventKind::ToolUpdate(ToolUpdate {
        tool_call_id: id.to_owned(),
        delta: delta.to_owned(),
    })
}

pub(crate) fn tool_complete(id: &str, tool: &str, content: &str) -> EventKind {
    EventKind::ToolComplete(ToolComplete {
        agent_id: "main".to_owned(),
        tool_name: tool.to_owned(),
        title: format!("{tool} it"),
        summary: "12 lines".to_owned(),
        content: content.to_owned(),
        tool_call_id: id.to_owned(),
        duration_ms: 15,
        exit_code: None,
        truncated: false,
        files: Vec::new(),
    })
}

pub(crate) fn tool_error(id: &str, tool: &str, status: ToolErrorStatus) -> EventKind {
    EventKind::ToolError(ToolError {
        agent_id: "main".to_owned(),
        tool_name: tool.to_owned(),
        title: format!("{tool} it"),
        content: "it did not work\nat all".to_owned(),
        tool_call_id: id.to_owned(),
        duration_ms: 1234,
        status,
        exit_code: None,
    })
}

pub(crate) fn retry_start(attempt: u32) -> EventKind {
    EventKind::RetryStart(RetryStart {
        retry_id: "retry-1".to_owned(),
        attempt,
        max_attempts: 5,
        delay_ms: 2000,
        source: RetrySource::RetryAfter,
        error_code: "overloaded".to_owned(),
        http_status: Some(529),
        error_message: "overloaded".to_owned(),
        request_id: None,
        discarded_output: false,
    })
}

pub(crate) fn text_chunk(delta: &str) -> EventKind {
    EventKind::TextChunk(TextChunk {
        content: None,
        delta: delta.to_owned(),
    })
}

pub(crate) fn warning(message: &str) -> EventKind {
    EventKind::Warning(Warning {
        code: "odd".to_owned(),
        message: message.to_owned(),
    })
}

pub(crate) fn diff(paths: &[&str]) -> EventKind {
    EventKind::Diff(Diff {
        files: paths.iter().map(|path| changed(path)).collect(),
        patch_path: Some("change.patch".to_owned()),
        source: "git".to_owned(),
    })
}

pub(crate) fn changed(path: &str) -> agent::event::ChangedFile {
    agent::event::ChangedFile {
        path: path.to_owned(),
        status: agent::event::FileStatus::Modified,
        additions: 3,
        deletions: 1,
    }
}

pub(crate) fn error(message: &str) -> ErrorReport {
    ErrorReport {
        code: "overloaded".to_owned(),
        message: message.to_owned(),
        http_status: Some(529),
        request_id: None,
        hints: vec!["try again later".to_owned()],
    }
}
