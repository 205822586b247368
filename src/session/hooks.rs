//! Where a session calls its hooks: what they are told is put together here,
//! only when somebody listens, and what goes wrong with them is told as
//! `hook:error`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::clock::{self, Activity};
use crate::event::{EventKind, HookError, TurnEnd};
use crate::hook::{
    Action, AfterTool, AgentStart, BeforeAgentStart, BeforeCompact, BeforeFork, BeforeRequest,
    BeforeSwitch, BeforeTool, BeforeTree, CancelVerdict, CompactVerdict, Context, History,
    HookFailure, HookPoint, Hooks, Input, InputVerdict, OnAction, OnFinal, OnObservation,
    OnTurnStart, Ran, RequestVerdict, ResultVerdict, StepTrace, ToolVerdict, TracedAction,
};
use crate::message::{Content, Message, Messages, ToolCall};
use crate::store::{EntryId, EntryKind};

use super::compact::{CompactionPlan, Wanted};
use super::feed::Feed;
use super::interrupt::Interrupt;
use super::record::Record;

/// What those who are told of the end of an interrupted turn get before they
/// are asked to stop.
const FINAL_GRACE: Duration = Duration::from_secs(1);

/// The hooks of a session. Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub(super) struct SessionHooks {
    hooks: Hooks,
    session_id: Arc<str>,
    record: Arc<Record>,
    activity: Activity,
    /// As of the last time that somebody was told it.
    history: Arc<Mutex<History>>,
}

/// A call that ended, as the hooks are shown it.
pub(super) struct Ended<'c> {
    pub(super) call: &'c ToolCall,
    /// The arguments that it ran with.
    pub(super) input: Value,
    pub(super) content: &'c [Content],
    pub(super) is_error: bool,
}

impl SessionHooks {
    pub(super) fn new(hooks: Hooks, id: &str, record: Arc<Record>, activity: Activity) -> Self {
        Self {
            hooks,
            session_id: id.into(),
            record,
            activity,
            history: Arc::default(),
        }
    }

    /// Whether anybody does anything at this point.
    pub(super) fn listen(&self, point: HookPoint) -> bool {
        self.hooks.listens(point)
    }

    /// The input was accepted.
    pub(super) async fn on_turn_start(&self, input: &str, feed: &Feed, cancel: &CancellationToken) {
        if !self.listen(HookPoint::OnTurnStart) {
            return;
        }
        let turn = OnTurnStart {
            session_id: self.id(),
            turn: feed.turn(),
            input: input.to_owned(),
            history: self.history(),
        };
        self.tell(self.hooks.on_turn_start(turn, cancel), feed)
            .await;
    }

    /// A call is about to be judged and run.
    pub(super) async fn on_action(
        &self,
        call: &ToolCall,
        input: &Value,
        feed: &Feed,
        cancel: &CancellationToken,
    ) {
        if !self.listen(HookPoint::OnAction) {
            return;
        }
        let call = OnAction {
            session_id: self.id(),
            turn: feed.turn(),
            step: feed.step(),
            action: Action {
                tool: call.name.clone(),
                input: input.clone(),
            },
            history: self.history(),
        };
        self.tell(self.hooks.on_action(call, cancel), feed).await;
    }

    /// A result is in the history.
    pub(super) async fn on_observation(
        &self,
        call: &ToolCall,
        observation: String,
        feed: &Feed,
        cancel: &CancellationToken,
    ) {
        let result = OnObservation {
            session_id: self.id(),
            turn: feed.turn(),
            step: feed.step(),
            tool: call.name.clone(),
            observation,
            history: self.history(),
        };
        self.tell(self.hooks.on_observation(result, cancel), feed)
            .await;
    }

    /// The turn that began with entry `first` ended. After an interruption
    /// there is little time left.
    pub(super) async fn on_final(
        &self,
        end: &TurnEnd,
        first: Option<&EntryId>,
        feed: &Feed,
        interrupt: &Interrupt,
    ) {
        if !self.listen(HookPoint::OnFinal) {
            return;
        }
        let steps = self.steps(first);
        let turn = OnFinal {
            session_id: self.id(),
            turn: feed.turn(),
            step: (end.steps > 0).then_some(end.steps),
            final_text: end.final_text.clone(),
            status: end.status,
            error_message: end.error_message.clone(),
            token_usage: steps.last().map(|step| step.token_usage),
            turn_usage: end.usage,
            steps,
        };
        let cancel = CancellationToken::new();
        let hurry = async {
            interrupt.token().cancelled().await;
            clock::sleep(FINAL_GRACE, &CancellationToken::new()).await;
            cancel.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = self.tell(self.hooks.on_final(turn, &cancel), feed) => {}
            () = hurry => {}
        }
    }

    /// What becomes of a prompt.
    pub(super) async fn input(
        &self,
        text: &str,
        feed: &Feed,
        cancel: &CancellationToken,
    ) -> InputVerdict {
        if !self.listen(HookPoint::Input) {
            return InputVerdict::Continue;
        }
        let input = Input {
            session_id: self.id(),
            text: text.to_owned(),
        };
        self.ask(self.hooks.input(input, cancel), feed).await
    }

    /// What is added to a run.
    pub(super) async fn before_agent_start(
        &self,
        prompt: &str,
        system_prompt: &str,
        feed: &Feed,
        cancel: &CancellationToken,
    ) -> AgentStart {
        if !self.listen(HookPoint::BeforeAgentStart) {
            return AgentStart::default();
        }
        let start = BeforeAgentStart {
            session_id: self.id(),
            prompt: prompt.to_owned(),
            system_prompt: system_prompt.to_owned(),
            messages: Vec::new(),
        };
        self.ask(self.hooks.before_agent_start(start, cancel), feed)
            .await
    }

    /// The messages of the next request.
    pub(super) async fn context(
        &self,
        messages: Messages,
        feed: &Feed,
        cancel: &CancellationToken,
    ) -> Messages {
        if !self.listen(HookPoint::Context) {
            return messages;
        }
        let context = Context {
            session_id: self.id(),
            turn: feed.turn(),
            step: feed.step(),
            messages: messages.to_vec(),
        };
        let messages = self.ask(self.hooks.context(context, cancel), feed).await;
        messages.into()
    }

    /// What becomes of a call that fits its tool.
    pub(super) async fn before_tool(
        &self,
        call: &ToolCall,
        input: &Value,
        feed: &Feed,
        cancel: &CancellationToken,
    ) -> ToolVerdict {
        if !self.listen(HookPoint::BeforeTool) {
            return ToolVerdict::Continue;
        }
        let call = BeforeTool {
            session_id: self.id(),
            turn: feed.turn(),
            step: feed.step(),
            tool_call_id: call.id.clone(),
            tool: call.name.clone(),
            input: input.clone(),
        };
        self.ask(self.hooks.before_tool(call, cancel), feed).await
    }

    /// What the model is told of a call that ran.
    pub(super) async fn after_tool(
        &self,
        ended: Ended<'_>,
        feed: &Feed,
        cancel: &CancellationToken,
    ) -> ResultVerdict {
        let result = AfterTool {
            session_id: self.id(),
            turn: feed.turn(),
            step: feed.step(),
            tool_call_id: ended.call.id.clone(),
            tool: ended.call.name.clone(),
            input: ended.input,
            content: ended.content.to_vec(),
            is_error: ended.is_error,
        };
        self.ask(self.hooks.after_tool(result, cancel), feed).await
    }

    /// What becomes of a compaction.
    pub(super) async fn before_compact(
        &self,
        plan: &CompactionPlan,
        tokens_before: u64,
        wanted: &Wanted<'_>,
    ) -> CompactVerdict {
        if !self.listen(HookPoint::BeforeCompact) {
            return CompactVerdict::Continue;
        }
        let compaction = BeforeCompact {
            session_id: self.id(),
            reason: wanted.reason,
            tokens_before,
            instructions: wanted.instructions.map(str::to_owned),
            summary: None,
            history: plan.history.iter().chain(&plan.prefix).cloned().collect(),
        };
        let asking = self
            .hooks
            .before_compact(compaction, wanted.interrupt.token());
        match self.ask(asking, wanted.feed).await {
            // There is nothing that it could be a summary of.
            CompactVerdict::Summary(_) if plan.is_empty() => CompactVerdict::Continue,
            verdict => verdict,
        }
    }

    /// Whether a fork that ends with `entry` happens.
    pub(super) async fn before_fork(&self, entry: Option<&EntryId>, feed: &Feed) -> CancelVerdict {
        let fork = BeforeFork {
            session_id: self.id(),
            entry_id: entry.map(ToString::to_string),
        };
        let cancel = CancellationToken::new();
        self.ask(self.hooks.before_fork(fork, &cancel), feed).await
    }

    /// Whether the leaf moves from `old_leaf` to what `target` stands for.
    pub(super) async fn before_tree(
        &self,
        old_leaf: Option<&EntryId>,
        target: &EntryId,
        feed: &Feed,
        cancel: &CancellationToken,
    ) -> CancelVerdict {
        let to = BeforeTree {
            session_id: self.id(),
            old_leaf_id: old_leaf.map(ToString::to_string),
            target_id: target.to_string(),
        };
        self.ask(self.hooks.before_tree(to, cancel), feed).await
    }

    /// Whether the session goes on from another one that ended with `target`.
    pub(super) async fn before_switch(
        &self,
        target: Option<&EntryId>,
        feed: &Feed,
        cancel: &CancellationToken,
    ) -> CancelVerdict {
        let switch = BeforeSwitch {
            session_id: self.id(),
            target_id: target.map(ToString::to_string),
        };
        self.ask(self.hooks.before_switch(switch, cancel), feed)
            .await
    }

    /// The body that is sent in place of this one.
    pub(super) async fn before_request(
        &self,
        model: String,
        payload: Value,
        feed: &Feed,
        cancel: &CancellationToken,
    ) -> Option<Value> {
        let request = BeforeRequest {
            session_id: self.id(),
            model,
            payload,
        };
        let verdict = self
            .ask(self.hooks.before_request(request, cancel), feed)
            .await;
        match verdict {
            RequestVerdict::Continue => None,
            RequestVerdict::Replace(payload) => Some(payload),
        }
    }

    fn id(&self) -> String {
        self.session_id.to_string()
    }

    /// The conversation as it is now.
    fn history(&self) -> History {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        self.record
            .read(|store| history.follow(store.tree().messages()));
        history.clone()
    }

    /// What was done since entry `first`.
    fn steps(&self, first: Option<&EntryId>) -> Vec<StepTrace> {
        let Some(first) = first else {
            return Vec::new();
        };
        self.record.read(|store| {
            let path = store.tree().path();
            let since = path.iter().position(|entry| entry.id == *first);
            let entries = path.get(since.unwrap_or(path.len())..).unwrap_or_default();
            trace(entries.iter().filter_map(|entry| match &entry.kind {
                EntryKind::Message(message) => Some(message.as_ref()),
                _ => None,
            }))
        })
    }

    /// Waits for those who only listen.
    async fn tell(&self, telling: impl Future<Output = Vec<HookFailure>>, feed: &Feed) {
        let failures = self.activity.paused(telling).await;
        report(failures, feed).await;
    }

    /// Waits for a verdict. Hooks have time limits of their own: their silence
    /// is none of the model or a tool.
    async fn ask<T>(&self, asking: impl Future<Output = Ran<T>>, feed: &Feed) -> T {
        let Ran { verdict, failures } = self.activity.paused(asking).await;
        report(failures, feed).await;
        verdict
    }
}

async fn report(failures: Vec<HookFailure>, feed: &Feed) {
    for HookFailure { hook, name, error } in failures {
        feed.send(EventKind::HookError(HookError {
            hook: hook.name().to_owned(),
            name,
            error: error.to_string(),
        }))
        .await;
    }
}

/// The replies among these messages with their calls and results.
fn trace<'m>(messages: impl Iterator<Item = &'m Message>) -> Vec<StepTrace> {
    let mut steps: Vec<StepTrace> = Vec::new();
    // The calls of the newest reply.
    let mut calls: HashMap<&str, usize> = HashMap::new();
    for message in messages {
        match message {
            Message::Assistant(reply) => {
                let ids = reply.tool_calls().map(|call| call.id.as_str());
                calls = ids.zip(0..).collect();
                steps.push(StepTrace {
                    step: u32::try_from(steps.len() + 1).unwrap_or(u32::MAX),
                    text: reply.text(),
                    actions: reply.tool_calls().map(action).collect(),
                    token_usage: reply.usage,
                });
            }
            Message::ToolResult(result) => {
                let at = calls.get(result.tool_call_id.as_str()).copied();
                let step = steps.last_mut();
                let action = step.zip(at).and_then(|(step, at)| step.actions.get_mut(at));
                if let Some(action) = action {
                    action.observation = Some(result.text());
                }
            }
            Message::User(_) => {}
        }
    }
    steps
}

fn action(call: &ToolCall) -> TracedAction {
    TracedAction {
        tool: call.name.clone(),
        input: call.arguments.clone(),
        observation: None,
    }
}
