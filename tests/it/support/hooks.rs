//! Hooks under test: they keep what they are told, answer as they are asked
//! to, and misbehave on demand.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and one hook panics for a test"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::hook::{
    AfterTool, AgentStart, BeforeAgentStart, BeforeCompact, BeforeFork, BeforeRequest,
    BeforeSwitch, BeforeTool, BeforeTree, CancelVerdict, CompactVerdict, Context, ContextVerdict,
    Fault, Hook, HookFuture, HookPoint, Input, InputVerdict, OnAction, OnFinal, OnObservation,
    OnTurnStart, Payload, RequestVerdict, ResultVerdict, ToolVerdict,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// What hooks were told, in order; several may share it.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<(String, Value)>>>);

impl Heard {
    /// All of it: `name:point` and the payload as text.
    pub(crate) fn all(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().clone()
    }

    /// Who was called where: `name:point`.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.all().into_iter().map(|(call, _)| call).collect()
    }

    /// The payloads of one point.
    pub(crate) fn at(&self, point: HookPoint) -> Vec<Value> {
        let end = format!(":{point}");
        self.all()
            .into_iter()
            .filter(|(call, _)| call.ends_with(&end))
            .map(|(_, payload)| payload)
            .collect()
    }
}

/// How a hook can go wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Misstep {
    /// It says that it failed.
    Fails,
    /// It panics while it waits.
    Panics,
    /// It panics before it gives its future.
    PanicsAtOnce,
    /// It never ends.
    Hangs,
}

type Answer<P, V> = Box<dyn Fn(&P) -> V + Send + Sync>;

/// A hook that keeps what it is told.
pub(crate) struct Probe {
    name: &'static str,
    heard: Heard,
    misstep: Option<(HookPoint, Misstep)>,
    only: Option<HookPoint>,
    timeout: Duration,
    pub(crate) input: Answer<Input, InputVerdict>,
    pub(crate) start: Answer<BeforeAgentStart, AgentStart>,
    pub(crate) context: Answer<Context, ContextVerdict>,
    pub(crate) before: Answer<BeforeTool, ToolVerdict>,
    pub(crate) after: Answer<AfterTool, ResultVerdict>,
    pub(crate) compact: Answer<BeforeCompact, CompactVerdict>,
    pub(crate) consent: Answer<HookPoint, CancelVerdict>,
    pub(crate) request: Answer<BeforeRequest, RequestVerdict>,
}

impl Probe {
    /// A hook that lets everything go on.
    pub(crate) fn new(name: &'static str, heard: &Heard) -> Self {
        Self {
            name,
            heard: heard.clone(),
            misstep: None,
            only: None,
            timeout: Duration::from_secs(20),
            input: Box::new(|_| InputVerdict::Continue),
            start: Box::new(|_| AgentStart::default()),
            context: Box::new(|_| ContextVerdict::Continue),
            before: Box::new(|_| ToolVerdict::Continue),
            after: Box::new(|_| ResultVerdict::Continue),
            compact: Box::new(|_| CompactVerdict::Continue),
            consent: Box::new(|_| CancelVerdict::Continue),
            request: Box::new(|_| RequestVerdict::Continue),
        }
    }

    /// The same, going wrong at one point; what hangs has little time.
    pub(crate) fn misstep(mut self, point: HookPoint, misstep: Misstep) -> Self {
        self.misstep = Some((point, misstep));
        if matches!(misstep, Misstep::Hangs) {
            self.timeout = Duration::from_millis(20);
        }
        self
    }

    /// The same, for one point only.
    pub(crate) fn only(mut self, point: HookPoint) -> Self {
        self.only = Some(point);
        self
    }

    /// The same with this time limit.
    pub(crate) fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn answer<'a, P: Payload, V: Send + 'a>(
        &'a self,
        payload: &P,
        verdict: V,
    ) -> HookFuture<'a, V> {
        let call = format!("{}:{}", self.name, P::POINT);
        let told = serde_json::to_value(payload).unwrap();
        self.heard.0.lock().unwrap().push((call, told));
        let misstep = self
            .misstep
            .and_then(|(point, misstep)| (point == P::POINT).then_some(misstep));
        if matches!(misstep, Some(Misstep::PanicsAtOnce)) {
            panic!("at once");
        }
        Box::pin(async move {
            match misstep {
                None | Some(Misstep::PanicsAtOnce) => Ok(verdict),
                Some(Misstep::Fails) => Err(Fault::failed("broken")),
                Some(Misstep::Panics) => panic!("half way"),
                Some(Misstep::Hangs) => std::future::pending().await,
            }
        })
    }
}

type Cancel = CancellationToken;

impl Hook for Probe {
    fn name(&self) -> &str {
        self.name
    }

    fn listens(&self, point: HookPoint) -> bool {
        self.only.is_none_or(|only| only == point)
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn on_turn_start<'a>(&'a self, turn: &'a OnTurnStart, _: &'a Cancel) -> HookFuture<'a, ()> {
        self.answer(turn, ())
    }

    fn on_action<'a>(&'a self, call: &'a OnAction, _: &'a Cancel) -> HookFuture<'a, ()> {
        self.answer(call, ())
    }

    fn on_observation<'a>(
        &'a self,
        result: &'a OnObservation,
        _: &'a Cancel,
    ) -> HookFuture<'a, ()> {
        self.answer(result, ())
    }

    fn on_final<'a>(&'a self, turn: &'a OnFinal, _: &'a Cancel) -> HookFuture<'a, ()> {
        self.answer(turn, ())
    }

    fn input<'a>(&'a self, input: &'a Input, _: &'a Cancel) -> HookFuture<'a, InputVerdict> {
        self.answer(input, (self.input)(input))
    }

    fn before_agent_start<'a>(
        &'a self,
        start: &'a BeforeAgentStart,
        _: &'a Cancel,
    ) -> HookFuture<'a, AgentStart> {
        self.answer(start, (self.start)(start))
    }

    fn context<'a>(
        &'a self,
        context: &'a Context,
        _: &'a Cancel,
    ) -> HookFuture<'a, ContextVerdict> {
        self.answer(context, (self.context)(context))
    }

    fn before_tool<'a>(
        &'a self,
        call: &'a BeforeTool,
        _: &'a Cancel,
    ) -> HookFuture<'a, ToolVerdict> {
        self.answer(call, (self.before)(call))
    }

    fn after_tool<'a>(
        &'a self,
        result: &'a AfterTool,
        _: &'a Cancel,
    ) -> HookFuture<'a, ResultVerdict> {
        self.answer(result, (self.after)(result))
    }

    fn before_compact<'a>(
        &'a self,
        compaction: &'a BeforeCompact,
        _: &'a Cancel,
    ) -> HookFuture<'a, CompactVerdict> {
        self.answer(compaction, (self.compact)(compaction))
    }

    fn before_fork<'a>(
        &'a self,
        fork: &'a BeforeFork,
        _: &'a Cancel,
    ) -> HookFuture<'a, CancelVerdict> {
        self.answer(fork, (self.consent)(&HookPoint::BeforeFork))
    }

    fn before_tree<'a>(
        &'a self,
        to: &'a BeforeTree,
        _: &'a Cancel,
    ) -> HookFuture<'a, CancelVerdict> {
        self.answer(to, (self.consent)(&HookPoint::BeforeTree))
    }

    fn before_switch<'a>(
        &'a self,
        switch: &'a BeforeSwitch,
        _: &'a Cancel,
    ) -> HookFuture<'a, CancelVerdict> {
        self.answer(switch, (self.consent)(&HookPoint::BeforeSwitch))
    }

    fn before_request<'a>(
        &'a self,
        request: &'a BeforeRequest,
        _: &'a Cancel,
    ) -> HookFuture<'a, RequestVerdict> {
        self.answer(request, (self.request)(request))
    }
}
