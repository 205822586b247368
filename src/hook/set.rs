//! The hooks of a session: called in order, kept apart from each other and
//! from the session.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::message::Message;

use super::isolation::isolated;
use super::payload::{
    AfterTool, BeforeAgentStart, BeforeCompact, BeforeFork, BeforeRequest, BeforeSwitch,
    BeforeTool, BeforeTree, Context, Input, OnAction, OnFinal, OnObservation, OnTurnStart, Payload,
};
use super::verdict::{
    AgentStart, CancelVerdict, CompactVerdict, ContextVerdict, InputVerdict, RequestVerdict,
    ResultVerdict, ToolVerdict, sendable,
};
use super::{Fault, Hook, HookFuture, HookPoint};

/// Hooks, then middlewares, in the order in which they are called. Cheap to
/// clone; clones share them.
#[derive(Clone, Default)]
pub struct Hooks {
    hooks: Vec<Arc<dyn Hook>>,
    middlewares: Vec<Arc<dyn Hook>>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|hook| hook.name()))
            .finish()
    }
}

/// A hook that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFailure {
    /// Where it was called.
    pub hook: HookPoint,
    /// The hook's name.
    pub name: String,
    /// What went wrong.
    pub error: Fault,
}

/// What came of asking all hooks.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "failures must be told"]
pub struct Ran<T> {
    /// The result of all verdicts together.
    pub verdict: T,
    /// The hooks that gave none.
    pub failures: Vec<HookFailure>,
}

/// How one method of a hook is called.
type Ask<P, V> =
    for<'a> fn(&'a (dyn Hook + 'static), &'a P, &'a CancellationToken) -> HookFuture<'a, V>;

impl Hooks {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more hook, called after the hooks and before the
    /// middlewares that are there.
    #[must_use]
    pub fn with_hook(mut self, hook: Arc<dyn Hook>) -> Self {
        self.hooks.push(hook);
        self
    }

    /// The same with one more middleware, called last.
    #[must_use]
    pub fn with_middleware(mut self, middleware: Arc<dyn Hook>) -> Self {
        self.middlewares.push(middleware);
        self
    }

    /// Whether anybody does anything at this point.
    pub fn listens(&self, point: HookPoint) -> bool {
        self.iter().any(|hook| hook.listens(point))
    }

    /// The input was accepted.
    pub async fn on_turn_start(
        &self,
        turn: OnTurnStart,
        cancel: &CancellationToken,
    ) -> Vec<HookFailure> {
        self.tell(turn, cancel, |hook, turn, cancel| {
            hook.on_turn_start(turn, cancel)
        })
        .await
    }

    /// A call is about to be judged and run.
    pub async fn on_action(&self, call: OnAction, cancel: &CancellationToken) -> Vec<HookFailure> {
        self.tell(call, cancel, |hook, call, cancel| {
            hook.on_action(call, cancel)
        })
        .await
    }

    /// A result is in the history.
    pub async fn on_observation(
        &self,
        result: OnObservation,
        cancel: &CancellationToken,
    ) -> Vec<HookFailure> {
        self.tell(result, cancel, |hook, result, cancel| {
            hook.on_observation(result, cancel)
        })
        .await
    }

    /// The turn has its final text.
    pub async fn on_final(&self, turn: OnFinal, cancel: &CancellationToken) -> Vec<HookFailure> {
        self.tell(turn, cancel, |hook, turn, cancel| {
            hook.on_final(turn, cancel)
        })
        .await
    }

    /// What becomes of a prompt. The first hook that handles or blocks it is
    /// the last that is asked.
    pub async fn input(&self, mut input: Input, cancel: &CancellationToken) -> Ran<InputVerdict> {
        let mut verdict = InputVerdict::Continue;
        let failures = self
            .ask(
                &mut input,
                cancel,
                |hook, input, cancel| hook.input(input, cancel),
                |input, said| {
                    match &said {
                        InputVerdict::Continue => return Ok(Continue(())),
                        InputVerdict::Transform(text) => input.text.clone_from(text),
                        InputVerdict::Handled(_) | InputVerdict::Block(_) => {
                            verdict = said;
                            return Ok(Break(()));
                        }
                    }
                    verdict = said;
                    Ok(Continue(()))
                },
            )
            .await;
        Ran { verdict, failures }
    }

    /// What is added to a run: the messages of all, the last system prompt.
    pub async fn before_agent_start(
        &self,
        mut start: BeforeAgentStart,
        cancel: &CancellationToken,
    ) -> Ran<AgentStart> {
        let mut system_prompt = None;
        let failures = self
            .ask(
                &mut start,
                cancel,
                |hook, start, cancel| hook.before_agent_start(start, cancel),
                |start, said| {
                    start.messages.extend(said.messages);
                    if let Some(text) = said.system_prompt {
                        start.system_prompt.clone_from(&text);
                        system_prompt = Some(text);
                    }
                    Ok(Continue(()))
                },
            )
            .await;
        let verdict = AgentStart {
            messages: start.messages,
            system_prompt,
        };
        Ran { verdict, failures }
    }

    /// The messages that are sent. A hook whose messages no model would take
    /// fails, and what was before it stands.
    pub async fn context(
        &self,
        mut context: Context,
        cancel: &CancellationToken,
    ) -> Ran<Vec<Arc<Message>>> {
        let failures = self
            .ask(
                &mut context,
                cancel,
                |hook, context, cancel| hook.context(context, cancel),
                |context, said| {
                    if let ContextVerdict::Replace(messages) = said {
                        sendable(&messages)?;
                        context.messages = messages;
                    }
                    Ok(Continue(()))
                },
            )
            .await;
        Ran {
            verdict: context.messages,
            failures,
        }
    }

    /// What becomes of a call. The first hook that blocks it, or fails, is the
    /// last that is asked.
    pub async fn before_tool(
        &self,
        mut call: BeforeTool,
        cancel: &CancellationToken,
    ) -> Ran<ToolVerdict> {
        let mut verdict = ToolVerdict::Continue;
        let mut failures = Vec::new();
        for hook in self.listening(HookPoint::BeforeTool) {
            match isolated(hook, cancel, || hook.before_tool(&call, cancel)).await {
                Ok(ToolVerdict::Continue) => {}
                Ok(ToolVerdict::Replace(input)) => {
                    call.input.clone_from(&input);
                    verdict = ToolVerdict::Replace(input);
                }
                Ok(block @ ToolVerdict::Block(_)) => {
                    verdict = block;
                    break;
                }
                Err(error) => {
                    verdict = ToolVerdict::Block(format!(
                        "the hook `{}` must agree and did not answer: {error}",
                        hook.name()
                    ));
                    note(&mut failures, HookPoint::BeforeTool, hook, error);
                    break;
                }
            }
        }
        Ran { verdict, failures }
    }

    /// What the model is told of a call.
    pub async fn after_tool(
        &self,
        mut result: AfterTool,
        cancel: &CancellationToken,
    ) -> Ran<ResultVerdict> {
        let mut replaced = false;
        let failures = self
            .ask(
                &mut result,
                cancel,
                |hook, result, cancel| hook.after_tool(result, cancel),
                |result, said| {
                    if let ResultVerdict::Replace(content) = said {
                        result.content = content;
                        replaced = true;
                    }
                    Ok(Continue(()))
                },
            )
            .await;
        let verdict = if replaced {
            ResultVerdict::Replace(result.content)
        } else {
            ResultVerdict::Continue
        };
        Ran { verdict, failures }
    }

    /// What becomes of a compaction. The first hook that cancels it is the
    /// last that is asked.
    pub async fn before_compact(
        &self,
        mut compaction: BeforeCompact,
        cancel: &CancellationToken,
    ) -> Ran<CompactVerdict> {
        let mut verdict = CompactVerdict::Continue;
        let failures = self
            .ask(
                &mut compaction,
                cancel,
                |hook, compaction, cancel| hook.before_compact(compaction, cancel),
                |compaction, said| {
                    match &said {
                        CompactVerdict::Continue => return Ok(Continue(())),
                        CompactVerdict::Summary(text) if text.trim().is_empty() => {
                            return Err(Fault::failed("the summary is empty"));
                        }
                        CompactVerdict::Summary(text) => compaction.summary = Some(text.clone()),
                        CompactVerdict::Cancel(_) => {
                            verdict = said;
                            return Ok(Break(()));
                        }
                    }
                    verdict = said;
                    Ok(Continue(()))
                },
            )
            .await;
        Ran { verdict, failures }
    }

    /// Whether a fork happens. The first hook that cancels it is the last that
    /// is asked.
    pub async fn before_fork(
        &self,
        fork: BeforeFork,
        cancel: &CancellationToken,
    ) -> Ran<CancelVerdict> {
        self.consent(fork, cancel, |hook, fork, cancel| {
            hook.before_fork(fork, cancel)
        })
        .await
    }

    /// Whether the leaf moves, as [`Hooks::before_fork`].
    pub async fn before_tree(
        &self,
        to: BeforeTree,
        cancel: &CancellationToken,
    ) -> Ran<CancelVerdict> {
        self.consent(to, cancel, |hook, to, cancel| hook.before_tree(to, cancel))
            .await
    }

    /// Whether the session is switched, as [`Hooks::before_fork`].
    pub async fn before_switch(
        &self,
        switch: BeforeSwitch,
        cancel: &CancellationToken,
    ) -> Ran<CancelVerdict> {
        self.consent(switch, cancel, |hook, switch, cancel| {
            hook.before_switch(switch, cancel)
        })
        .await
    }

    /// The body that is sent.
    pub async fn before_request(
        &self,
        mut request: BeforeRequest,
        cancel: &CancellationToken,
    ) -> Ran<RequestVerdict> {
        let mut replaced = false;
        let failures = self
            .ask(
                &mut request,
                cancel,
                |hook, request, cancel| hook.before_request(request, cancel),
                |request, said| {
                    if let RequestVerdict::Replace(payload) = said {
                        request.payload = payload;
                        replaced = true;
                    }
                    Ok(Continue(()))
                },
            )
            .await;
        let verdict = if replaced {
            RequestVerdict::Replace(request.payload)
        } else {
            RequestVerdict::Continue
        };
        Ran { verdict, failures }
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<dyn Hook>> {
        self.hooks.iter().chain(&self.middlewares)
    }

    fn listening(&self, point: HookPoint) -> impl Iterator<Item = &(dyn Hook + 'static)> {
        self.iter()
            .map(|hook| &**hook)
            .filter(move |hook| hook.listens(point))
    }

    /// Tells everybody.
    async fn tell<P: Payload>(
        &self,
        mut payload: P,
        cancel: &CancellationToken,
        ask: Ask<P, ()>,
    ) -> Vec<HookFailure> {
        self.ask(&mut payload, cancel, ask, |_, ()| Ok(Continue(())))
            .await
    }

    /// Asks until somebody says no.
    async fn consent<P: Payload>(
        &self,
        mut payload: P,
        cancel: &CancellationToken,
        ask: Ask<P, CancelVerdict>,
    ) -> Ran<CancelVerdict> {
        let mut verdict = CancelVerdict::Continue;
        let failures = self
            .ask(&mut payload, cancel, ask, |_, said| {
                verdict = said;
                Ok(match verdict {
                    CancelVerdict::Continue => Continue(()),
                    CancelVerdict::Cancel(_) => Break(()),
                })
            })
            .await;
        Ran { verdict, failures }
    }

    /// Asks one after the other. `apply` works a verdict into the payload, so
    /// that the next hook sees it, or finds it unusable.
    async fn ask<P: Payload, V>(
        &self,
        payload: &mut P,
        cancel: &CancellationToken,
        ask: Ask<P, V>,
        mut apply: impl FnMut(&mut P, V) -> Result<ControlFlow<()>, Fault>,
    ) -> Vec<HookFailure> {
        let mut failures = Vec::new();
        for hook in self.listening(P::POINT) {
            let said = isolated(hook, cancel, || ask(hook, payload, cancel)).await;
            match said.and_then(|verdict| apply(payload, verdict)) {
                Ok(Continue(())) => {}
                Ok(Break(())) => break,
                Err(error) => note(&mut failures, P::POINT, hook, error),
            }
        }
        failures
    }
}

/// A cancelled hook did nothing wrong.
fn note(failures: &mut Vec<HookFailure>, point: HookPoint, hook: &dyn Hook, error: Fault) {
    if error != Fault::Cancelled {
        failures.push(HookFailure {
            hook: point,
            name: hook.name().to_owned(),
            error,
        });
    }
}
