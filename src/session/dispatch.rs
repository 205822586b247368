//! The calls of one reply: taken up in order, judged, run, settled.
//!
//! Calls that only read run side by side; a call that writes or executes runs
//! alone. Whatever happens, every call gets a result in call order, so the
//! history stays valid.

use std::time::Instant;

use futures_util::StreamExt;

use crate::access::Access;
use crate::clock::{self, Activity};
use crate::context::notes;
use crate::event::{
    Decider, EventKind, LimitKind, LoopAction, LoopDetected, PermissionRequest, PermissionResponse,
    ToolErrorStatus, ToolStart,
};
use crate::hook::HookPoint;
use crate::message::{AssistantMessage, Message, StopReason, ToolCall, ToolResult};
use crate::policy::{Decision, Verdict};
use crate::store::StoreError;

use super::budget::Accounts;
use super::call::{self, Finished, Runner};
use super::feed::Feed;
use super::hooks::SessionHooks;
use super::interrupt::{Cause, Interrupt};
use super::prepare::{Examined, Guarded, Prepared, Refused};
use super::record::Record;
use super::repeat::RepeatGuard;
use super::sample;
use super::stop::Stop;
use super::toolbox::ActiveTools;
use super::workbench::Workbench;
use super::working_copy::WorkingCopy;

/// Calls that run side by side at most.
const PARALLEL_MAX: usize = 8;

/// Calls that are announced together at most; between groups the clock is looked
/// at.
const GROUP_MAX: usize = 256;

/// What the calls of one reply need of their session.
pub(super) struct Batch<'s> {
    pub(super) workbench: &'s Workbench,
    pub(super) working_copy: &'s mut WorkingCopy,
    pub(super) accounts: &'s mut Accounts,
    pub(super) repeats: &'s mut RepeatGuard,
    pub(super) record: &'s Record,
    /// Those that the reply's request named.
    pub(super) tools: &'s ActiveTools,
    pub(super) activity: &'s Activity,
    pub(super) feed: Feed,
    pub(super) interrupt: &'s Interrupt,
    /// When the time of the job is over.
    pub(super) deadline: Instant,
    pub(super) hooks: &'s SessionHooks,
    /// Unique in the session; prefixes the names of spilled outputs.
    pub(super) name: String,
}

/// Why no call of a reply runs.
#[derive(Clone, Copy)]
struct Forbidden {
    status: ToolErrorStatus,
    note: &'static str,
}

/// A call that was taken up.
enum Taken<'c> {
    Allowed(&'c ToolCall, Examined),
    Refused(&'c ToolCall, Refused),
}

/// What came of a reply's calls.
pub(super) struct Worked {
    /// The files that they wrote, relative to the workspace.
    pub(super) files: Vec<String>,
    /// Why the turn must stop, if it must.
    pub(super) outcome: Result<(), Stop>,
}

impl<'s> Batch<'s> {
    /// Runs the reply's calls. Without `tools` none runs, and each is told so.
    pub(super) async fn run(mut self, reply: &AssistantMessage, tools: bool) -> Worked {
        let forbidden = forbidden(reply.stop_reason, tools);
        let calls: Vec<&ToolCall> = reply.tool_calls().collect();
        let mut rest = calls.as_slice();
        let mut files = Vec::new();
        let mut stop = None;
        let mut group = 0;
        let mut stored = Ok(());
        while stored.is_ok() && !rest.is_empty() {
            // The watchdog looks only while the calls wait for something.
            if self.deadline <= clock::monotonic() {
                self.interrupt.trigger(Cause::Timeout);
            }
            if stop.is_none() && self.interrupt.token().is_cancelled() {
                stop = Some(sample::interrupted(self.interrupt));
            }
            group += 1;
            let size = match stop {
                None => self.group_size(rest),
                Some(_) => rest.len(),
            }
            .min(GROUP_MAX);
            let first = calls.len() - rest.len();
            let (now, later) = rest.split_at(size);
            rest = later;
            let guarded = match (&stop, forbidden) {
                (None, None) => Guarded::Yes,
                (Some(_), _) | (_, Some(_)) => Guarded::No,
            };
            let mut prepared = Vec::with_capacity(now.len());
            for call in now {
                prepared.push(self.prepare(call, guarded).await);
            }
            if stop.is_none() && self.interrupt.token().is_cancelled() {
                stop = Some(sample::interrupted(self.interrupt));
            }
            let mut taken = Vec::with_capacity(now.len());
            for prepared in prepared {
                let (call, tripped) = self
                    .take_up(prepared, group, forbidden, stop.is_some())
                    .await;
                taken.push(call);
                stop = stop.or(tripped);
            }
            let at_once = at_once(&taken);
            let feed = self.feed.clone();
            let runner = self.runner(&feed);
            let running = taken.into_iter().zip(first..);
            let running: Vec<_> = running
                .map(|(taken, index)| conclude(&runner, index, taken))
                .collect();
            let mut ended = futures_util::stream::iter(running).buffered(at_once);
            while let Some((call, mut finished)) = ended.next().await {
                files.append(&mut finished.files);
                match self.settle(call, finished, stop.is_some()).await {
                    Ok(tripped) => stop = stop.or(tripped),
                    // What runs beside it still gets its end told.
                    Err(error) => stored = stored.and(Err(error)),
                }
            }
        }
        if let Err(error) = stored {
            return Worked::new(files, Some(error.into()));
        }
        if self.interrupt.token().is_cancelled() {
            stop = Some(sample::interrupted(self.interrupt));
        }
        Worked::new(files, stop)
    }

    /// How many of the next calls belong together: one that changes something,
    /// or as many as only read.
    fn group_size(&self, calls: &[&ToolCall]) -> usize {
        let exclusive = |call: &&ToolCall| match self.examine(call) {
            Ok(examined) => !examined.is_read_only(),
            Err(_) => false,
        };
        let most = calls.get(..GROUP_MAX).unwrap_or(calls);
        most.iter().position(exclusive).unwrap_or(most.len()).max(1)
    }

    /// Takes up one call: announces it, books it, judges it.
    async fn take_up<'c>(
        &mut self,
        prepared: Prepared<'c>,
        group: u32,
        forbidden: Option<Forbidden>,
        over: bool,
    ) -> (Taken<'c>, Option<Stop>) {
        let Prepared {
            call,
            examined,
            blocked,
        } = prepared;
        let title = match &examined {
            Ok(examined) => examined.tool.title(&examined.args),
            Err(refused) => refused.title.clone(),
        };
        self.announce(call, examined.as_ref().ok(), &title, group)
            .await;
        let refused = |status, message: &str| {
            let refused = Refused {
                title,
                status,
                message: message.to_owned(),
            };
            Taken::Refused(call, refused)
        };
        if over {
            let note = notes::skipped_call();
            return (refused(ToolErrorStatus::Skipped, note), None);
        }
        if let Some(Forbidden { status, note }) = forbidden {
            return (refused(status, note), None);
        }
        if !self.accounts.book_call() {
            let note = notes::no_calls_left();
            return (refused(ToolErrorStatus::Skipped, note), None);
        }
        let examined = match examined {
            Ok(examined) => examined,
            Err(refused) => return (Taken::Refused(call, refused), None),
        };
        let decision = match blocked {
            Some(reason) => blocked_by_hook(&reason),
            None => self
                .workbench
                .policy()
                .decide(&call.name, &examined.accesses),
        };
        self.tell_decision(call, &examined, &decision).await;
        if decision.verdict != Verdict::Allow {
            let tripped = self.book_denial(&decision).await;
            return (refused(ToolErrorStatus::Denied, &decision.reason), tripped);
        }
        self.accounts.book_allowed();
        if !examined.is_read_only() {
            let cancel = self.interrupt.token();
            self.working_copy.before_change(&self.feed, cancel).await;
        }
        (Taken::Allowed(call, examined), None)
    }

    async fn announce(
        &self,
        call: &ToolCall,
        examined: Option<&Examined>,
        title: &str,
        group: u32,
    ) {
        self.feed
            .send(EventKind::ToolStart(ToolStart {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                args: examined.map_or_else(|| call.arguments.clone(), |call| call.args.clone()),
                title: title.to_owned(),
                accesses: examined.map_or_else(Vec::new, |call| call.accesses.clone()),
                parallel_group: group,
            }))
            .await;
    }

    async fn tell_decision(&self, call: &ToolCall, examined: &Examined, decision: &Decision) {
        let request_id = clock::new_id();
        let allowed = decision.verdict == Verdict::Allow;
        self.feed
            .send(EventKind::PermissionRequest(PermissionRequest {
                agent_id: "main".to_owned(),
                tool_name: call.name.clone(),
                title: examined.tool.title(&examined.args),
                content: describe(&examined.accesses),
                options: [("allow", "Allow"), ("refuse", "Refuse")]
                    .map(|(key, label)| (key.to_owned(), label.to_owned()))
                    .into(),
                request_id: request_id.clone(),
                tool_call_id: call.id.clone(),
                accesses: examined.accesses.clone(),
                suggested_rule: decision.suggested_rule.clone(),
            }))
            .await;
        self.feed
            .send(EventKind::PermissionResponse(PermissionResponse {
                tool_name: call.name.clone(),
                selected: if allowed { "allow" } else { "refuse" }.to_owned(),
                request_id,
                tool_call_id: call.id.clone(),
                by: decision.by,
                rule: decision.rule.clone(),
                reason: decision.reason.clone(),
            }))
            .await;
    }

    /// Books a denial; a tripped breaker or an `ask` that must fail ends the turn.
    async fn book_denial(&mut self, decision: &Decision) -> Option<Stop> {
        let breaker = self.accounts.book_denial();
        if decision.verdict == Verdict::Fail {
            return Some(Stop::Denied(format!(
                "a call needs a person's approval and permissions.on_ask is `fail`: {}",
                decision.reason
            )));
        }
        let kind = breaker?;
        self.accounts.reached(kind, &self.feed).await;
        Some(Stop::Denied(format!(
            "too many calls were denied; the last one: {}",
            decision.reason
        )))
    }

    /// What the calls of a group run with.
    fn runner<'f>(&self, feed: &'f Feed) -> Runner<'f>
    where
        's: 'f,
    {
        Runner {
            workbench: self.workbench,
            activity: self.activity,
            feed,
            cancel: self.interrupt.token(),
            hooks: self.hooks,
            name: self.name.clone(),
        }
    }

    /// Writes a call's result into the history and then tells its end. Watches
    /// for repeats, unless the turn is over anyway.
    async fn settle(
        &mut self,
        call: &ToolCall,
        mut finished: Finished,
        over: bool,
    ) -> Result<Option<Stop>, StoreError> {
        let repeated = if finished.ran && !over {
            self.note_repeat(call, &mut finished)
        } else {
            None
        };
        let observation = self
            .hooks
            .listen(HookPoint::OnObservation)
            .then(|| call::text_of(&finished.content));
        let result = ToolResult {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: finished.content,
            details: finished.details,
            is_error: finished.is_error,
            timestamp: clock::unix_ms(),
        };
        let stored = self.record.append_message(Message::ToolResult(result));
        // The call did end, whether or not its result could be kept.
        self.feed.send(finished.end).await;
        if let (Some(text), Ok(_)) = (observation, &stored) {
            let cancel = self.interrupt.token();
            self.hooks
                .on_observation(call, text, &self.feed, cancel)
                .await;
        }
        let Some((action, count)) = repeated else {
            return stored.map(|_| None);
        };
        self.feed
            .send(EventKind::LoopDetected(LoopDetected {
                tool_name: call.name.clone(),
                count,
                action,
            }))
            .await;
        stored?;
        match action {
            LoopAction::Remind => Ok(None),
            LoopAction::Stop => {
                self.accounts.reached(LimitKind::Repeats, &self.feed).await;
                Ok(Some(Stop::Limit(LimitKind::Repeats)))
            }
        }
    }

    /// Counts a call that ran; one that repeats itself is told so.
    fn note_repeat(
        &mut self,
        call: &ToolCall,
        finished: &mut Finished,
    ) -> Option<(LoopAction, u32)> {
        let repeated = self
            .repeats
            .note(&call.name, &call.arguments, &finished.text);
        self.accounts.book_repeats(self.repeats.count());
        if let Some((LoopAction::Remind, count)) = repeated {
            let most = self.accounts.limits().max_repeats;
            finished.add_note(&notes::repeated(count, most));
        }
        repeated
    }
}

impl Worked {
    fn new(mut files: Vec<String>, stop: Option<Stop>) -> Self {
        files.sort_unstable();
        files.dedup();
        Self {
            files,
            outcome: stop.map_or(Ok(()), Err),
        }
    }
}

/// Why no call of a reply runs, when none may.
fn forbidden(stop_reason: StopReason, tools: bool) -> Option<Forbidden> {
    let (status, note) = match stop_reason {
        StopReason::Length => (ToolErrorStatus::InvalidInput, notes::truncated_call()),
        StopReason::Refusal => (ToolErrorStatus::Skipped, notes::refused_reply()),
        _ if !tools => (ToolErrorStatus::Skipped, notes::no_tools_left()),
        _ => return None,
    };
    Some(Forbidden { status, note })
}

/// Brings one call to its end: runs it, or says why it is not run.
async fn conclude<'c>(
    runner: &Runner<'_>,
    index: usize,
    taken: Taken<'c>,
) -> (&'c ToolCall, Finished) {
    match taken {
        Taken::Allowed(call, examined) if runner.cancel.is_cancelled() => {
            let title = examined.tool.title(&examined.args);
            let note = notes::skipped_call().to_owned();
            let finished = Finished::refused(call, title, ToolErrorStatus::Skipped, note);
            (call, finished)
        }
        Taken::Allowed(call, examined) => {
            let finished = runner.run(call, index, examined.tool, examined.args).await;
            (call, finished)
        }
        Taken::Refused(call, refused) => {
            let Refused {
                title,
                status,
                message,
            } = refused;
            (call, Finished::refused(call, title, status, message))
        }
    }
}

/// How many of these calls run at a time: a hook may have made of one that
/// only reads one that does more, and that runs alone.
fn at_once(taken: &[Taken<'_>]) -> usize {
    let reads = |taken: &Taken<'_>| match taken {
        Taken::Allowed(_, examined) => examined.is_read_only(),
        Taken::Refused(..) => true,
    };
    if taken.iter().all(reads) {
        PARALLEL_MAX
    } else {
        1
    }
}

fn blocked_by_hook(reason: &str) -> Decision {
    Decision {
        verdict: Verdict::Deny,
        by: Decider::Hook,
        rule: None,
        reason: notes::blocked_by_hook(reason),
        suggested_rule: None,
    }
}

fn describe(accesses: &[Access]) -> String {
    let one = |access: &Access| match access {
        Access::Read(path) => format!("read {}", path.display()),
        Access::Write(path) => format!("write {}", path.display()),
        Access::Exec(command) => format!("run {command}"),
        Access::Network(host) => format!("reach {host}"),
        Access::Server { server, tool } => format!("call {tool} of {server}"),
        Access::Agent(name) => format!("start the agent {name}"),
        Access::Skill(name) => format!("load the skill {name}"),
    };
    accesses.iter().map(one).collect::<Vec<_>>().join("\n")
}
