//! Where users step in: hooks and middlewares, in process or as commands.
//!
//! A [`Hook`] is called at fixed points of a session. Four of its methods only
//! observe; the others decide, each with verdicts of its own. [`Hooks`] holds
//! them in order and calls them one after the other, each within its own time:
//! the error, the panic or the silence of one is told and ends nothing. Only
//! [`Hook::before_tool`] fails closed: a hook that should judge a call and
//! cannot blocks it. Policy decides after the hooks, about what they left.
//!
//! [`CommandHook`] is a hook that runs a program of the user's.

mod command;
mod isolation;
mod matcher;
mod payload;
mod reply;
mod set;
mod verdict;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use command::{CommandHook, HookCommand, TIMEOUT_DEFAULT, TIMEOUT_MAX};
pub use matcher::{MatchError, Matcher};
pub use payload::{
    Action, AfterTool, BeforeAgentStart, BeforeCompact, BeforeFork, BeforeRequest, BeforeSwitch,
    BeforeTool, BeforeTree, Context, History, HistoryMessage, Injected, Input, OnAction, OnFinal,
    OnObservation, OnTurnStart, Payload, StepTrace, TracedAction,
};
pub use set::{HookFailure, Hooks, Ran};
pub use verdict::{
    AgentStart, CancelVerdict, CompactVerdict, ContextVerdict, InputVerdict, RequestVerdict,
    ResultVerdict, ToolVerdict,
};

/// A point of a session at which hooks are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the payload of each point documents it")]
pub enum HookPoint {
    OnTurnStart,
    OnAction,
    OnObservation,
    OnFinal,
    Input,
    BeforeAgentStart,
    Context,
    BeforeTool,
    AfterTool,
    BeforeCompact,
    BeforeFork,
    BeforeTree,
    BeforeSwitch,
    BeforeRequest,
}

impl HookPoint {
    /// The name in task files and events.
    pub fn name(self) -> &'static str {
        match self {
            Self::OnTurnStart => "on_turn_start",
            Self::OnAction => "on_action",
            Self::OnObservation => "on_observation",
            Self::OnFinal => "on_final",
            Self::Input => "input",
            Self::BeforeAgentStart => "before_agent_start",
            Self::Context => "context",
            Self::BeforeTool => "before_tool",
            Self::AfterTool => "after_tool",
            Self::BeforeCompact => "before_compact",
            Self::BeforeFork => "before_fork",
            Self::BeforeTree => "before_tree",
            Self::BeforeSwitch => "before_switch",
            Self::BeforeRequest => "before_request",
        }
    }
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a hook gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It says that it failed.
    #[error("{0}")]
    Failed(String),
    /// It took longer than its time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// It panicked.
    #[error("it panicked: {0}")]
    Panicked(String),
    /// What it was called for was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl Fault {
    /// A failure in the hook's own words.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::Failed(message.to_string())
    }
}

/// The future of a hook that is called.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// A hook or a middleware. Every method but the name has a default that does
/// nothing.
///
/// `cancel` is cancelled when the session is interrupted; a hook that does not
/// end soon after is dropped where it waits.
pub trait Hook: Send + Sync {
    /// Its name in the log.
    fn name(&self) -> &str;

    /// Whether it does anything at this point. What nobody listens to is not
    /// even put together.
    fn listens(&self, _point: HookPoint) -> bool {
        true
    }

    /// How long it may take for each answer.
    fn timeout(&self) -> Duration {
        TIMEOUT_DEFAULT
    }

    /// The input was accepted.
    fn on_turn_start<'a>(
        &'a self,
        _turn: &'a OnTurnStart,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ()> {
        answer(())
    }

    /// A call is about to be judged and run.
    fn on_action<'a>(
        &'a self,
        _call: &'a OnAction,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ()> {
        answer(())
    }

    /// A result is in the history.
    fn on_observation<'a>(
        &'a self,
        _result: &'a OnObservation,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ()> {
        answer(())
    }

    /// The turn has its final text.
    fn on_final<'a>(
        &'a self,
        _turn: &'a OnFinal,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ()> {
        answer(())
    }

    /// A prompt came in.
    fn input<'a>(
        &'a self,
        _input: &'a Input,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, InputVerdict> {
        answer(InputVerdict::Continue)
    }

    /// A prompt is about to run.
    fn before_agent_start<'a>(
        &'a self,
        _start: &'a BeforeAgentStart,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, AgentStart> {
        answer(AgentStart::default())
    }

    /// The messages of the next request.
    fn context<'a>(
        &'a self,
        _context: &'a Context,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ContextVerdict> {
        answer(ContextVerdict::Continue)
    }

    /// A call, before policy decides about it.
    fn before_tool<'a>(
        &'a self,
        _call: &'a BeforeTool,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ToolVerdict> {
        answer(ToolVerdict::Continue)
    }

    /// A result, before it enters the history.
    fn after_tool<'a>(
        &'a self,
        _result: &'a AfterTool,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ResultVerdict> {
        answer(ResultVerdict::Continue)
    }

    /// A compaction, before it happens.
    fn before_compact<'a>(
        &'a self,
        _compaction: &'a BeforeCompact,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, CompactVerdict> {
        answer(CompactVerdict::Continue)
    }

    /// A fork, before it happens.
    fn before_fork<'a>(
        &'a self,
        _fork: &'a BeforeFork,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, CancelVerdict> {
        answer(CancelVerdict::Continue)
    }

    /// A move in the tree, before it happens.
    fn before_tree<'a>(
        &'a self,
        _move: &'a BeforeTree,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, CancelVerdict> {
        answer(CancelVerdict::Continue)
    }

    /// A switch to another session, before it happens.
    fn before_switch<'a>(
        &'a self,
        _switch: &'a BeforeSwitch,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, CancelVerdict> {
        answer(CancelVerdict::Continue)
    }

    /// The body of a request, before it is sent.
    fn before_request<'a>(
        &'a self,
        _request: &'a BeforeRequest,
        _cancel: &'a CancellationToken,
    ) -> HookFuture<'a, RequestVerdict> {
        answer(RequestVerdict::Continue)
    }
}

/// An answer that needs no waiting.
fn answer<'a, T: Send + 'a>(answer: T) -> HookFuture<'a, T> {
    Box::pin(std::future::ready(Ok(answer)))
}
