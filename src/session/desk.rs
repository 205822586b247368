//! Where messages meet the engine. At most one turn runs; whoever brings the
//! first message to an engine at rest takes it along, and the driver that runs
//! it goes on until nothing waits any more.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use tokio::sync::Notify;

use crate::event::{EventKind, MessageSource, PendingCounts, QueueUpdate};

use super::engine::{Engine, Prompt};
use super::feed::Feed;
use super::interrupt::{Cause, Interrupt};
use super::queue::{
    ClearPending, Input, Item, PendingMessage, PendingQuery, PendingStatus, Queue, QueueMode,
    QueueModes, QueueSource, Settlement,
};
use super::refusal::SessionError;
use super::stop::{Answer, Stop};

/// Messages that may wait for the next prompt.
const NEXT_TURN_MAX: usize = 100;

/// The desk of a session.
#[derive(Default)]
pub(super) struct Desk {
    state: Mutex<State>,
    rest: Notify,
}

#[derive(Default)]
struct State {
    /// The engine while it rests.
    engine: Option<Box<Engine>>,
    /// Who has the engine now.
    running: Option<Running>,
    queue: Queue,
    next_turn: Vec<Input>,
    /// Follow-ups that joined the turn which is about to begin.
    joined: Vec<Input>,
    modes: QueueModes,
}

/// A turn that runs, or work on the session between turns.
struct Running {
    id: String,
    interrupt: Interrupt,
    /// Steering messages that joined the turn and share its answer.
    riders: Vec<Item>,
    /// Whether the one who prompted is gone; the others keep waiting.
    abandoned: bool,
}

/// What became of a message that was brought.
pub(super) enum Admission {
    /// It runs now: drive the engine with it.
    Run(Next),
    /// It waits.
    Queued(QueueUpdate),
}

/// A message whose turn it is now, with the engine.
pub(super) struct Next {
    pub(super) engine: Box<Engine>,
    pub(super) item: Item,
    /// What tells of it and of those that share its turn.
    pub(super) told: Vec<QueueUpdate>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl Desk {
    pub(super) fn new(engine: Box<Engine>, modes: QueueModes) -> Self {
        let desk = Self::default();
        {
            let mut state = desk.lock();
            state.engine = Some(engine);
            state.modes = modes;
        }
        desk
    }

    /// Takes a message in: it runs at once when the engine rests, else it waits
    /// as `source`, or is refused when it does not say how.
    pub(super) fn admit(
        &self,
        mut item: Item,
        source: Option<QueueSource>,
    ) -> Result<Admission, SessionError> {
        let mut state = self.lock();
        if let Some(engine) = state.engine.take() {
            item.queued_as = source.filter(|_| item.waiter.is_none());
            state.running = Some(Running::of(&item));
            let told = Vec::new();
            return Ok(Admission::Run(Next { engine, item, told }));
        }
        let running = state.running.as_ref().ok_or(SessionError::Closed)?;
        // What was cancelled ends soon, so that a new prompt need not ask twice.
        let ending = running.interrupt.token().is_cancelled();
        let source = match source {
            Some(source) => source,
            None if ending => QueueSource::PromptFollowUp,
            None => return Err(SessionError::PromptAlreadyRunning),
        };
        item.queued_as = Some(source);
        let added = Some(item.id.clone());
        state.queue.push(item)?;
        Ok(Admission::Queued(QueueUpdate {
            added,
            ..state.update()
        }))
    }

    /// Keeps a message for the next prompt.
    pub(super) fn keep_for_next_turn(&self, input: Input) -> Result<(), SessionError> {
        let mut state = self.lock();
        if state.next_turn.len() >= NEXT_TURN_MAX {
            return Err(SessionError::QueueFull(NEXT_TURN_MAX));
        }
        state.next_turn.push(input);
        Ok(())
    }

    /// The messages that wait for this prompt, and where they come from.
    pub(super) fn take_next_turn(&self) -> Vec<(Input, MessageSource)> {
        let mut state = self.lock();
        let joined = std::mem::take(&mut state.joined);
        let kept = std::mem::take(&mut state.next_turn);
        let from =
            |inputs: Vec<Input>, source| inputs.into_iter().map(move |input| (input, source));
        from(joined, MessageSource::FollowUp)
            .chain(from(kept, MessageSource::NextTurn))
            .collect()
    }

    /// Steering messages for the running turn, and what tells of it.
    pub(super) fn take_steering(&self) -> Vec<(Input, QueueUpdate)> {
        let mut state = self.lock();
        let mode = state.modes.steering;
        let taken = state.queue.take(QueueSource::Steer, mode);
        let counts = state.update();
        let Some(running) = &mut state.running else {
            return Vec::new();
        };
        let told = taken.iter().map(|item| {
            let update = QueueUpdate {
                taken: Some(item.id.clone()),
                ..counts.clone()
            };
            (item.input.clone(), update)
        });
        let told = told.collect();
        running.riders.extend(taken);
        told
    }

    /// Interrupts the running turn and throws away what waits.
    pub(super) fn cancel(&self, cause: Cause) -> Option<QueueUpdate> {
        let (dropped, update) = {
            let mut state = self.lock();
            if let Some(running) = &state.running {
                running.interrupt.trigger(cause);
            }
            let dropped = state.throw_away();
            (dropped, state.update())
        };
        settle_cancelled(dropped).then_some(QueueUpdate {
            cleared: true,
            ..update
        })
    }

    /// Throws away what waits and what is remembered.
    pub(super) fn clear(&self, what: ClearPending) -> QueueUpdate {
        let (dropped, update) = {
            let mut state = self.lock();
            if let (ClearPending::WaitingAndActive, Some(running)) = (what, &state.running) {
                running.interrupt.trigger(Cause::User);
            }
            let dropped = state.throw_away();
            state.queue.forget();
            state.next_turn.clear();
            (dropped, state.update())
        };
        settle_cancelled(dropped);
        QueueUpdate {
            cleared: true,
            ..update
        }
    }

    /// Forgets the settled messages.
    pub(super) fn forget(&self) {
        self.lock().queue.forget();
    }

    /// The one who waits for this message is gone.
    pub(super) fn abandon(&self, id: &str) {
        let mut state = self.lock();
        match &mut state.running {
            Some(running) if running.id == id => {
                running.abandoned = true;
                running.interrupt.trigger(Cause::User);
            }
            _ => {
                if let Some(item) = state.queue.remove(id) {
                    state.queue.remember(&item, PendingStatus::Failed);
                }
            }
        }
    }

    pub(super) fn counts(&self) -> PendingCounts {
        self.lock().queue.counts()
    }

    pub(super) fn snapshot(&self, query: PendingQuery) -> Vec<PendingMessage> {
        self.lock().queue.snapshot(query)
    }

    pub(super) fn is_running(&self) -> bool {
        self.lock().running.is_some()
    }

    /// Takes the engine for work between turns, which `interrupt` ends.
    pub(super) fn lease(&self, interrupt: &Interrupt) -> Result<Box<Engine>, SessionError> {
        let mut state = self.lock();
        let engine = match state.engine.take() {
            Some(engine) => engine,
            None if state.running.is_some() => return Err(SessionError::Busy),
            None => return Err(SessionError::Closed),
        };
        state.running = Some(Running {
            id: String::new(),
            interrupt: interrupt.clone(),
            riders: Vec::new(),
            abandoned: false,
        });
        Ok(engine)
    }

    /// Takes a leased engine back, and gives it on when a message came meanwhile.
    pub(super) fn resume(&self, engine: Box<Engine>) -> Option<Next> {
        let next = {
            let mut state = self.lock();
            state.running = None;
            state.take_up(engine)
        };
        if next.is_none() {
            self.rest.notify_waiters();
        }
        next
    }

    /// Waits until no turn runs. The engine is gone after a crash.
    pub(super) async fn at_rest(&self) {
        loop {
            let rest = self.rest.notified();
            tokio::pin!(rest);
            // Registered before the look, so that no end is missed.
            rest.as_mut().enable();
            if !self.is_running() {
                return;
            }
            rest.await;
        }
    }

    /// Does a moment's work with the engine, if it rests.
    pub(super) fn with_engine<T>(&self, work: impl FnOnce(&mut Engine) -> T) -> Option<T> {
        self.lock().engine.as_deref_mut().map(work)
    }

    /// The engine, for good; none after a crash. Only at rest.
    pub(super) fn take_engine(&self) -> Option<Box<Engine>> {
        self.lock().engine.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn update(&self) -> QueueUpdate {
        QueueUpdate {
            pending: self.queue.counts(),
            ..QueueUpdate::default()
        }
    }

    /// The follow-ups that share the turn of `next`.
    fn join(&mut self, next: Option<&Item>) -> Vec<Item> {
        let follows_up = next.is_some_and(|next| next.queued_as == Some(QueueSource::FollowUp));
        if !follows_up || self.modes.follow_up == QueueMode::OneAtATime {
            return Vec::new();
        }
        let joined = self.queue.take(QueueSource::FollowUp, QueueMode::All);
        self.joined = joined.iter().map(|item| item.input.clone()).collect();
        joined
    }

    /// The message that waits longest begins its turn; without one the engine
    /// rests.
    fn take_up(&mut self, engine: Box<Engine>) -> Option<Next> {
        let Some(item) = self.queue.pop() else {
            self.engine = Some(engine);
            return None;
        };
        let with_it = self.join(Some(&item));
        let told = std::iter::once(&item).chain(&with_it);
        let told = told
            .map(|item| QueueUpdate {
                taken: Some(item.id.clone()),
                ..self.update()
            })
            .collect();
        self.running = Some(Running {
            riders: with_it,
            ..Running::of(&item)
        });
        Some(Next { engine, item, told })
    }

    fn throw_away(&mut self) -> Vec<Item> {
        let dropped = self.queue.drain();
        for item in &dropped {
            self.queue.remember(item, PendingStatus::Failed);
        }
        dropped
    }
}

impl Running {
    fn of(item: &Item) -> Self {
        Self {
            id: item.id.clone(),
            interrupt: item.interrupt.clone(),
            riders: Vec::new(),
            abandoned: false,
        }
    }
}

/// Tells whether anybody was waiting.
fn settle_cancelled(dropped: Vec<Item>) -> bool {
    let any = !dropped.is_empty();
    for item in dropped {
        item.settle(Err(SessionError::cancelled()));
    }
    any
}

/// Runs turns until nothing waits; the engine is back at its desk then.
pub(super) async fn drive(desk: Arc<Desk>, feed: Feed, first: Next) {
    let mut next = first;
    loop {
        for update in next.told {
            feed.send(EventKind::QueueUpdate(update)).await;
        }
        let (mut engine, item) = (next.engine, next.item);
        let prompt = Prompt {
            input: &item.input,
            source: item.source(),
            interrupt: &item.interrupt,
            desk: &desk,
        };
        match AssertUnwindSafe(engine.run(&prompt)).catch_unwind().await {
            Ok(outcome) => match finish(&desk, &feed, engine, item, outcome).await {
                Some(following) => next = following,
                None => return,
            },
            Err(panic) => {
                crashed(&desk, item, panic);
                return;
            }
        }
    }
}

/// Settles a turn and takes the next message up; without one the engine rests.
async fn finish(
    desk: &Desk,
    feed: &Feed,
    engine: Box<Engine>,
    item: Item,
    outcome: Result<Answer, Stop>,
) -> Option<Next> {
    let outcome = outcome.map_err(SessionError::from);
    let status = match outcome {
        Ok(_) => PendingStatus::Resolved,
        Err(_) => PendingStatus::Failed,
    };
    let (riders, dropped, next, updates) = {
        let mut state = desk.lock();
        let running = state.running.take();
        let abandoned = running.as_ref().is_some_and(|running| running.abandoned);
        let riders = running.map(|running| running.riders).unwrap_or_default();
        let ended = || std::iter::once(&item).chain(&riders);
        for item in ended() {
            state.queue.remember(item, status);
        }
        let cancelled = outcome.as_ref().is_err_and(SessionError::is_cancelled) && !abandoned;
        let dropped = if cancelled {
            state.throw_away()
        } else {
            Vec::new()
        };
        let next = state.take_up(engine);
        let updates = told(&state, ended(), !dropped.is_empty());
        (riders, dropped, next, updates)
    };
    for update in updates {
        feed.send(EventKind::QueueUpdate(update)).await;
    }
    settle_cancelled(dropped);
    for rider in riders {
        rider.settle(outcome.clone());
    }
    item.settle(outcome);
    if next.is_none() {
        desk.rest.notify_waiters();
    }
    next
}

/// What the end of a turn changed in the queue.
fn told<'i>(
    state: &State,
    ended: impl Iterator<Item = &'i Item>,
    cleared: bool,
) -> Vec<QueueUpdate> {
    let settled = ended.filter(|item| item.queued_as.is_some());
    let mut updates: Vec<QueueUpdate> = settled
        .map(|item| QueueUpdate {
            settled: Some(item.id.clone()),
            ..state.update()
        })
        .collect();
    if cleared {
        updates.push(QueueUpdate {
            cleared: true,
            ..state.update()
        });
    }
    updates
}

/// The engine is gone; nobody gets an answer any more.
fn crashed(desk: &Desk, item: Item, panic: Box<dyn std::any::Any + Send>) {
    let dropped = {
        let mut state = desk.lock();
        let riders = state.running.take().map(|running| running.riders);
        let mut dropped = riders.unwrap_or_default();
        dropped.append(&mut state.throw_away());
        state.queue.remember(&item, PendingStatus::Failed);
        dropped
    };
    for item in dropped {
        item.settle(Err(SessionError::Closed));
    }
    if let Some(waiter) = item.waiter {
        // Gone, and the panic hook has told it already.
        let _ = waiter.send(Settlement::Panicked(panic));
    }
    desk.rest.notify_waiters();
}
