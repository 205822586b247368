//! What has started and not ended, and the ends that are written for it when a
//! run is cut short: starts and ends pair on every path.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use super::streams::same_agent;
use crate::clock;
use crate::event::{
    CompactExec, CompactStart, Decider, Emission, ErrorReport, Event, EventKind, JobEnd, JobResult,
    ModelsUsed, Outcome, PermissionResponse, Place, Reason, RetryEnd, StepEnd, ToolError,
    ToolErrorStatus, TurnEnd, TurnStatus,
};
use crate::message::{StopReason, Usage};

/// Everything that is open, in the order in which it started.
#[derive(Default)]
pub(super) struct OpenPairs {
    open: BTreeMap<u64, Open>,
    /// Where the open calls are: a reply may have very many.
    calls: HashMap<CallKey, u64>,
    started: u64,
}

/// The job, session and agent of a call, and its id.
type CallKey = (Option<String>, Option<String>, Option<String>, String);

/// Which ends are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope<'a> {
    /// What is open inside the job, which itself is about to end.
    InsideJob(Option<&'a str>),
    /// Everything.
    All,
}

struct Open {
    place: Place,
    since: Instant,
    what: What,
}

/// Ordered as the ends are written: the innermost first.
enum What {
    Request {
        id: String,
        tool: String,
        call: String,
    },
    Call(OpenCall),
    Retry {
        id: String,
        attempts: u32,
        error: String,
    },
    Compaction(CompactStart),
    Step {
        usage: Usage,
        cost_usd: Option<f64>,
    },
    Turn {
        steps: u32,
        usage: Usage,
        text: String,
    },
    Job,
}

struct OpenCall {
    id: String,
    tool: String,
    title: String,
    started: bool,
}

impl OpenPairs {
    /// Notes what `event` opens or ends.
    pub(super) fn observe(&mut self, event: &Event) {
        let place = &event.place;
        match &event.kind {
            EventKind::JobStart(_) => self.push(place, What::Job),
            EventKind::JobEnd(_) => {
                self.end(|open| matches!(open.what, What::Job) && open.place.job == place.job);
            }
            EventKind::TurnStart(_) => {
                let (steps, usage, text) = (0, Usage::default(), String::new());
                self.push(place, What::Turn { steps, usage, text });
            }
            EventKind::TurnEnd(_) => {
                self.end_of(place, |what| matches!(what, What::Turn { .. }));
            }
            EventKind::StepStart(_) => {
                let (usage, cost_usd) = (Usage::default(), None);
                self.push(place, What::Step { usage, cost_usd });
            }
            EventKind::StepEnd(_) => {
                self.end_of(place, |what| matches!(what, What::Step { .. }));
            }
            EventKind::RetryStart(start) => {
                self.end_of(place, |what| what.is_retry(&start.retry_id));
                let what = What::Retry {
                    id: start.retry_id.clone(),
                    attempts: start.attempt.saturating_sub(1),
                    error: start.error_message.clone(),
                };
                self.push(place, what);
            }
            EventKind::RetryEnd(end) => {
                self.end_of(place, |what| what.is_retry(&end.retry_id));
            }
            EventKind::CompactStart(start) => self.push(place, What::Compaction(start.clone())),
            EventKind::CompactExec(end) => self.end_of(place, |what| {
                matches!(what, What::Compaction(start) if start.compaction_id == end.compaction_id)
            }),
            kind => self.observe_calls(place, kind),
        }
    }

    fn observe_calls(&mut self, place: &Place, kind: &EventKind) {
        match kind {
            EventKind::MessageComplete(message) => {
                self.add_reply(place, message.usage, message.cost_usd, &message.content);
                for call in &message.tool_calls {
                    self.call(place, &call.id, &call.name);
                }
            }
            EventKind::PermissionRequest(request) => {
                let call = self.call(place, &request.tool_call_id, &request.tool_name);
                call.title.clone_from(&request.title);
                let what = What::Request {
                    id: request.request_id.clone(),
                    tool: request.tool_name.clone(),
                    call: request.tool_call_id.clone(),
                };
                self.push(place, what);
            }
            EventKind::PermissionResponse(response) => {
                self.end_of(
                    place,
                    |what| matches!(what, What::Request { id, .. } if *id == response.request_id),
                );
            }
            EventKind::ToolStart(start) => {
                let call = self.call(place, &start.tool_call_id, &start.tool_name);
                call.title.clone_from(&start.title);
                call.started = true;
            }
            EventKind::ToolComplete(end) => self.end_call(place, &end.tool_call_id),
            EventKind::ToolError(end) => self.end_call(place, &end.tool_call_id),
            _ => {}
        }
    }

    /// The ends that `scope` lacks, innermost first; nothing of it is open
    /// afterwards. `reason` is why the job or run ends.
    pub(super) fn missing_ends(
        &mut self,
        scope: Scope<'_>,
        reason: Reason,
        error: Option<&ErrorReport>,
    ) -> Vec<Emission> {
        let ends = |open: &Open| match scope {
            Scope::All => true,
            Scope::InsideJob(job) => {
                open.place.job.as_deref() == job && !matches!(open.what, What::Job)
            }
        };
        let mut ending: Vec<Open> = Vec::new();
        for (at, open) in std::mem::take(&mut self.open) {
            if ends(&open) {
                ending.push(open);
            } else {
                self.open.insert(at, open);
            }
        }
        self.calls.retain(|_, at| self.open.contains_key(at));
        ending.sort_by_key(|open| open.what.rank());
        ending
            .into_iter()
            .map(|open| open.ended(reason, error))
            .collect()
    }

    fn push(&mut self, place: &Place, what: What) {
        let open = Open {
            place: place.clone(),
            since: clock::monotonic(),
            what,
        };
        self.started += 1;
        self.open.insert(self.started, open);
    }

    fn end_call(&mut self, place: &Place, id: &str) {
        if let Some(at) = self.calls.remove(&call_key(place, id)) {
            self.open.remove(&at);
        }
    }

    fn end_of(&mut self, place: &Place, is: impl Fn(&What) -> bool) {
        self.end(|open| is(&open.what) && same_agent(&open.place, place));
    }

    fn end(&mut self, is: impl Fn(&Open) -> bool) {
        let newest = self.open.iter().rev().find(|(_, open)| is(open));
        if let Some(at) = newest.map(|(at, _)| *at) {
            self.open.remove(&at);
        }
    }

    fn add_reply(&mut self, place: &Place, added: Usage, cost: Option<f64>, content: &str) {
        for open in self.open.values_mut() {
            if !same_agent(&open.place, place) {
                continue;
            }
            match &mut open.what {
                What::Step { usage, cost_usd } => (*usage, *cost_usd) = (added, cost),
                What::Turn { steps, usage, text } => {
                    *steps += 1;
                    usage.add(&added);
                    if !content.is_empty() {
                        content.clone_into(text);
                    }
                }
                What::Request { .. }
                | What::Call(_)
                | What::Retry { .. }
                | What::Compaction(_)
                | What::Job => {}
            }
        }
    }

    /// The open call of that id, opened if it is not.
    fn call(&mut self, place: &Place, id: &str, tool: &str) -> &mut OpenCall {
        let key = call_key(place, id);
        let known = self.calls.get(&key).copied();
        let at = known.unwrap_or_else(|| {
            let call = OpenCall {
                id: id.to_owned(),
                tool: tool.to_owned(),
                title: String::new(),
                started: false,
            };
            self.push(place, What::Call(call));
            self.calls.insert(key, self.started);
            self.started
        });
        match self.open.get_mut(&at) {
            Some(Open {
                what: What::Call(call),
                since,
                ..
            }) => {
                *since = clock::monotonic();
                call
            }
            _ => unreachable!("the index is that of a call"),
        }
    }
}

fn call_key(place: &Place, id: &str) -> CallKey {
    let Place {
        job,
        session_id,
        agent_id,
        ..
    } = place;
    (
        job.clone(),
        session_id.clone(),
        agent_id.clone(),
        id.to_owned(),
    )
}

impl What {
    fn rank(&self) -> u8 {
        match self {
            Self::Request { .. } => 0,
            Self::Call(_) => 1,
            Self::Retry { .. } => 2,
            Self::Compaction(_) => 3,
            Self::Step { .. } => 4,
            Self::Turn { .. } => 5,
            Self::Job => 6,
        }
    }

    fn is_retry(&self, wanted: &str) -> bool {
        matches!(self, Self::Retry { id, .. } if id == wanted)
    }
}

impl Open {
    fn ended(self, reason: Reason, error: Option<&ErrorReport>) -> Emission {
        let duration_ms = clock::elapsed_ms(self.since);
        let kind = match self.what {
            What::Request { id, tool, call } => EventKind::PermissionResponse(PermissionResponse {
                tool_name: tool,
                selected: "refuse".to_owned(),
                request_id: id,
                tool_call_id: call,
                by: Decider::Policy,
                rule: None,
                reason: "the run ended before a decision".to_owned(),
            }),
            What::Call(call) => {
                EventKind::ToolError(call.ended(self.place.agent_id.as_deref(), duration_ms))
            }
            What::Retry {
                id,
                attempts,
                error,
            } => EventKind::RetryEnd(RetryEnd {
                retry_id: id,
                success: false,
                attempts,
                final_error: Some(error),
            }),
            What::Compaction(start) => EventKind::CompactExec(aborted(start)),
            What::Step { usage, cost_usd } => EventKind::StepEnd(StepEnd {
                stop_reason: StopReason::Aborted,
                usage,
                cost_usd,
                files: Vec::new(),
            }),
            What::Turn { steps, usage, text } => EventKind::TurnEnd(TurnEnd {
                status: turn_status(reason),
                final_text: text,
                steps,
                usage,
                duration_ms,
                error_message: Some(reason.meaning().to_owned()),
            }),
            What::Job => EventKind::JobEnd(Box::new(JobEnd {
                outcome: reason.outcome(),
                reason,
                duration_ms,
                conclusion: JobResult {
                    error: error.cloned(),
                    ..JobResult::default()
                },
            })),
        };
        Emission {
            place: self.place,
            kind,
        }
    }
}

impl OpenCall {
    fn ended(self, agent: Option<&str>, since_ms: u64) -> ToolError {
        let (status, content, duration_ms) = if self.started {
            let content = "the run ended while the call ran";
            (ToolErrorStatus::Aborted, content, since_ms)
        } else {
            let content = "the run ended before the call started";
            (ToolErrorStatus::Skipped, content, 0)
        };
        ToolError {
            agent_id: agent.unwrap_or("main").to_owned(),
            title: if self.title.is_empty() {
                self.tool.clone()
            } else {
                self.title
            },
            tool_name: self.tool,
            content: content.to_owned(),
            tool_call_id: self.id,
            duration_ms,
            status,
            exit_code: None,
        }
    }
}

fn aborted(start: CompactStart) -> CompactExec {
    CompactExec {
        compaction_id: start.compaction_id,
        reason: start.reason,
        err_msg: Some("the run ended before the compaction".to_owned()),
        token_before: start.token_before,
        token_compact: start.token_before,
        compact_rate: if start.token_before == 0 { 0.0 } else { 1.0 },
        usage: Usage::default(),
        cost_usd: Some(0.0),
        models: ModelsUsed::new(),
        aborted: true,
        will_retry: false,
    }
}

fn turn_status(reason: Reason) -> TurnStatus {
    match (reason, reason.outcome()) {
        (Reason::Budget, _) => TurnStatus::Limit,
        (Reason::InvalidResponse, _) => TurnStatus::Invalid,
        (_, Outcome::Cancellation | Outcome::Timeout) => TurnStatus::Cancelled,
        _ => TurnStatus::Error,
    }
}
