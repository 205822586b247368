//! The turn: a bounded loop of steps. A step is one model call and its tools.

use crate::clock;
use crate::context::notes;
use crate::event::{
    CompactReason, EventKind, LimitKind, MessageSource, SessionState, StepStart, TurnEnd, TurnStart,
};
use crate::message::{AssistantMessage, StopReason, Usage};
use crate::store::{EntryId, Store};

use super::compact::{Outcome, Wanted};
use super::dispatch::{Batch, Worked};
use super::ending;
use super::engine::{Engine, Prompt, tell_user};
use super::estimate;
use super::expand::Expanded;
use super::feed::Feed;
use super::gate::Gate;
use super::interrupt::Cause;
use super::judge::{Judge, Judgement};
use super::mend;
use super::queue::Input;
use super::response::Checked;
use super::sample;
use super::stop::{Answer, Stop};

/// Runs one turn and tells how it ended.
pub(super) async fn run(engine: &mut Engine, prompt: &Prompt<'_>) -> Result<Answer, Stop> {
    let started = clock::monotonic();
    engine.turns += 1;
    engine.last_text.clear();
    engine.response.begin();
    let feed = engine.feed.in_turn(engine.turns);
    ending::state(&feed, SessionState::Processing).await;
    let expanded = engine.expand(prompt.input, prompt.interrupt).await;
    let accepted = accept(engine, &expanded, prompt.source);
    feed.send(EventKind::TurnStart(TurnStart {
        input: prompt.input.text.clone(),
    }))
    .await;
    let mut turn = Turn {
        engine,
        prompt,
        feed: feed.clone(),
        steps: 0,
        usage: Usage::default(),
        judge: Judge::default(),
    };
    let (first, outcome) = match accepted {
        Ok(entry) => {
            expanded.tell(&feed).await;
            tell_user(&entry, &expanded.text, prompt.source, &feed).await;
            (Some(entry), turn.play(&expanded.text).await)
        }
        Err(stop) => (None, Err(stop)),
    };
    let (steps, usage) = (turn.steps, turn.usage);
    engine.override_system(None);
    if let Err(stop) = &outcome {
        ending::tell_stop(&engine.accounts, stop, &feed).await;
    }
    let end = TurnEnd {
        status: ending::status(&outcome),
        final_text: engine.last_text.clone(),
        steps,
        usage,
        duration_ms: clock::elapsed_ms(started),
        error_message: outcome.as_ref().err().map(ToString::to_string),
    };
    feed.send(EventKind::TurnEnd(end.clone())).await;
    let hooks = &engine.hooks;
    hooks
        .on_final(&end, first.as_ref(), &feed, prompt.interrupt)
        .await;
    ending::state(&feed, SessionState::Idle).await;
    outcome
}

/// Puts the input behind a valid history.
fn accept(engine: &Engine, expanded: &Expanded, source: MessageSource) -> Result<EntryId, Stop> {
    mend::answer_open_calls(&engine.record)?;
    engine.record.keep_deferred()?;
    let entry = engine.append_user(expanded.content(), source)?;
    // The first flush runs while the model is asked.
    engine.record.write(Store::step_ended)?;
    Ok(entry)
}

/// A running turn.
pub(super) struct Turn<'s> {
    pub(super) engine: &'s mut Engine,
    pub(super) prompt: &'s Prompt<'s>,
    feed: Feed,
    pub(super) steps: u32,
    /// What its replies used.
    pub(super) usage: Usage,
    judge: Judge,
}

/// How the next model call is made.
#[derive(Clone)]
pub(super) struct StepPlan {
    /// The estimate of its prompt.
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) tools: bool,
    /// The budget that makes this the closing step.
    pub(super) closing: Option<LimitKind>,
}

/// What a step leads to.
enum Next {
    Step,
    Answer(String),
}

impl Turn<'_> {
    /// Plays the turn of this prompt, which is in the history already.
    async fn play(&mut self, prompt: &str) -> Result<Answer, Stop> {
        let cancel = self.prompt.interrupt.token();
        self.engine
            .hooks
            .on_turn_start(&self.prompt.input.text, &self.feed, cancel)
            .await;
        for (input, source) in self.prompt.desk.take_next_turn() {
            self.hear(&input, source).await?;
        }
        self.engine.begin_run(prompt, &self.feed, cancel).await?;
        loop {
            // The watchdog looks only while the turn waits for something.
            let interrupt = self.prompt.interrupt;
            if self.engine.deadline <= clock::monotonic() {
                interrupt.trigger(Cause::Timeout);
            }
            if interrupt.token().is_cancelled() {
                return Err(sample::interrupted(interrupt));
            }
            self.hear_steering().await?;
            self.engine.take_up_tools();
            self.engine.take_up_model()?;
            if self.engine.may_compact() && self.engine.is_near_window() {
                self.compact(CompactReason::Threshold, &self.feed.clone())
                    .await?;
            }
            let plan = self.plan().await?;
            let feed = self.feed.in_step(self.steps + 1);
            feed.send(EventKind::StepStart(StepStart {
                model: self.engine.model().full_id(),
                closing: plan.closing.is_some(),
            }))
            .await;
            match self.step(plan, &feed).await? {
                Next::Step => {}
                // What was said meanwhile wants an answer of its own.
                Next::Answer(_) if self.hear_steering().await? => {}
                Next::Answer(text) => {
                    if let Some(answer) = self.respond(text).await? {
                        return Ok(answer);
                    }
                }
            }
        }
    }

    /// Ends the turn with an answer that fits; for one that does not, the model is
    /// told what is wrong.
    async fn respond(&mut self, text: String) -> Result<Option<Answer>, Stop> {
        match self.engine.response.check(&text) {
            Checked::Fits(structured) => Ok(Some(Answer {
                text,
                steps: self.steps,
                usage: self.usage,
                structured,
            })),
            Checked::Repair(note) => {
                self.hear(&Input::text(note), MessageSource::Repair).await?;
                self.engine.publish();
                Ok(None)
            }
            Checked::Misfit(stop) => Err(stop),
        }
    }

    /// Puts what somebody says to the running turn into the history.
    async fn hear(&mut self, input: &Input, source: MessageSource) -> Result<(), Stop> {
        let expanded = self.engine.expand(input, self.prompt.interrupt).await;
        let entry = self.engine.append_user(expanded.content(), source)?;
        expanded.tell(&self.feed).await;
        tell_user(&entry, &expanded.text, source, &self.feed).await;
        Ok(())
    }

    /// Hears the steering messages that wait; tells whether there were any.
    async fn hear_steering(&mut self) -> Result<bool, Stop> {
        let taken = self.prompt.desk.take_steering();
        let any = !taken.is_empty();
        for (input, update) in taken {
            self.feed.send(EventKind::QueueUpdate(update)).await;
            self.hear(&input, MessageSource::Steer).await?;
            self.engine.response.back_to_work();
        }
        Ok(any)
    }

    /// Asks the books what the next call may be.
    async fn plan(&mut self) -> Result<StepPlan, Stop> {
        let engine = &mut *self.engine;
        let prompt_tokens = engine.context_tokens();
        let gate = engine.gate(engine.model(), self.steps == 0, prompt_tokens);
        let plan = |output_tokens, tools| StepPlan {
            prompt_tokens,
            output_tokens,
            tools,
            closing: None,
        };
        match gate {
            Gate::Go { output_tokens } => Ok(plan(output_tokens, true)),
            Gate::Single { output_tokens } => Ok(plan(output_tokens, false)),
            Gate::Closing {
                kind,
                output_tokens,
            } if engine.response.is_repairing() => Ok(StepPlan {
                closing: Some(kind),
                ..plan(output_tokens, true)
            }),
            Gate::Closing {
                kind,
                output_tokens,
            } => {
                engine.accounts.reached(kind, &self.feed).await;
                let note = notes::closing(ending::closing_note(kind));
                self.say(&note).await?;
                Ok(StepPlan {
                    prompt_tokens: prompt_tokens.saturating_add(estimate::text_tokens(&note)),
                    closing: Some(kind),
                    ..plan(output_tokens, false)
                })
            }
            Gate::Spent(kind) => {
                engine.accounts.reached(kind, &self.feed).await;
                Err(Stop::Limit(kind))
            }
        }
    }

    /// One model call and its tools.
    async fn step(&mut self, mut plan: StepPlan, feed: &Feed) -> Result<Next, Stop> {
        let sampled = match self.reply(&mut plan, feed).await {
            Ok(sampled) => sampled,
            Err(stop) => {
                ending::failed_step(feed, &stop).await;
                return Err(stop);
            }
        };
        self.steps += 1;
        let (plan, reply) = (&plan, &sampled.message);
        let worked = match self.take(&sampled, plan, feed).await {
            Ok(()) => self.run_calls(reply, plan, feed).await,
            Err(stop) => Worked {
                files: Vec::new(),
                outcome: Err(stop),
            },
        };
        let synced = self.engine.record.write(Store::step_ended);
        self.engine.accounts.warn(feed).await;
        self.engine.publish();
        ending::step(feed, reply, self.cost(&sampled), worked.files).await;
        worked.outcome?;
        synced?;
        let response = &self.engine.response;
        let repairing = response.is_repairing();
        if let Some(kind) = plan.closing {
            if !repairing {
                return Err(Stop::Limit(kind));
            }
            return match self.judge.judge(reply, |_| false) {
                Judgement::Final(text) if response.fits(&text) => Ok(Next::Answer(text)),
                _ => {
                    self.engine.accounts.reached(kind, feed).await;
                    Err(Stop::Limit(kind))
                }
            };
        }
        if reply.tool_calls().next().is_some() && reply.stop_reason != StopReason::Refusal {
            self.judge.worked();
            return Ok(match repairing {
                true => Next::Answer(reply.text()),
                false => Next::Step,
            });
        }
        let may_go_on = |text: &str| plan.tools && !repairing && !response.fits(text);
        match self.judge.judge(reply, may_go_on) {
            Judgement::Final(text) => Ok(Next::Answer(text)),
            Judgement::Unusable(why) => Err(Stop::Incomplete(why)),
            Judgement::Say(note) => {
                self.say(note).await?;
                Ok(Next::Step)
            }
        }
    }

    /// Says something on the engine's own account.
    async fn say(&mut self, note: &str) -> Result<(), Stop> {
        self.hear(&Input::text(note), MessageSource::Synthetic)
            .await
    }

    pub(super) async fn compact(
        &mut self,
        reason: CompactReason,
        feed: &Feed,
    ) -> Result<Outcome, Stop> {
        let wanted = Wanted {
            reason,
            instructions: None,
            interrupt: self.prompt.interrupt,
            feed,
        };
        self.engine.compact(&wanted).await
    }

    /// Runs the reply's calls.
    async fn run_calls(
        &mut self,
        reply: &AssistantMessage,
        plan: &StepPlan,
        feed: &Feed,
    ) -> Worked {
        let engine = &mut *self.engine;
        let batch = Batch {
            workbench: &engine.workbench,
            tools: &engine.tools,
            working_copy: &mut engine.working_copy,
            accounts: &mut engine.accounts,
            repeats: &mut engine.repeats,
            record: &engine.record,
            activity: &engine.activity,
            hooks: &engine.hooks,
            feed: feed.clone(),
            interrupt: self.prompt.interrupt,
            deadline: engine.deadline,
            name: format!("{}-{}", engine.turns, self.steps),
        };
        // A repair is the answer alone; the request names the tools because
        // another list of them would cost the provider's cache.
        let may_run = plan.tools && !engine.response.is_repairing();
        batch.run(reply, may_run).await
    }
}
