//! The turn: a bounded loop of steps. A step is one model call and its tools.

use std::sync::Arc;

use crate::clock;
use crate::context::notes;
use crate::event::{
    CallSummary, ConversationUsage, EventKind, LimitKind, MessageComplete, MessageSource,
    SessionState, StateUpdate, StepEnd, StepStart, TurnEnd, TurnStart, Warning, WindowUsage,
};
use crate::message::{AssistantMessage, Message, StopReason, Usage};
use crate::model::Request;
use crate::store::EntryKind;

use super::Session;
use super::dispatch::{Batch, Worked};
use super::ending;
use super::estimate;
use super::feed::Feed;
use super::gate::{Gate, NextCall};
use super::interrupt::{Cause, Interrupt};
use super::judge::{Judge, Judgement};
use super::sample::{self, Sampled, Sampler};
use super::stop::{Answer, Stop};

/// Runs one turn and tells how it ended.
pub(super) async fn run(
    session: &mut Session,
    text: &str,
    interrupt: &Interrupt,
) -> Result<Answer, Stop> {
    let started = clock::monotonic();
    session.turns += 1;
    session.last_text.clear();
    let feed = session.feed.in_turn(session.turns);
    state(&feed, SessionState::Processing).await;
    let accepted = session.accept(text);
    feed.send(EventKind::TurnStart(TurnStart {
        input: text.to_owned(),
    }))
    .await;
    let mut turn = Turn {
        session,
        interrupt,
        feed: feed.clone(),
        steps: 0,
        usage: Usage::default(),
        judge: Judge::default(),
    };
    let outcome = match accepted {
        Ok(entry) => {
            Session::tell_user(&entry, text, MessageSource::Prompt, &feed).await;
            turn.play().await
        }
        Err(stop) => Err(stop),
    };
    let (steps, usage) = (turn.steps, turn.usage);
    if let Err(stop) = &outcome {
        ending::tell_stop(session, stop, &feed).await;
    }
    feed.send(EventKind::TurnEnd(TurnEnd {
        status: ending::status(&outcome),
        final_text: session.last_text.clone(),
        steps,
        usage,
        duration_ms: clock::elapsed_ms(started),
        error_message: outcome.as_ref().err().map(ToString::to_string),
    }))
    .await;
    state(&feed, SessionState::Idle).await;
    outcome
}

/// A running turn.
struct Turn<'s> {
    session: &'s mut Session,
    interrupt: &'s Interrupt,
    feed: Feed,
    steps: u32,
    usage: Usage,
    judge: Judge,
}

/// How the next model call is made.
struct StepPlan {
    /// The estimate of its prompt.
    prompt_tokens: u64,
    output_tokens: u64,
    tools: bool,
    /// The budget that makes this the closing step.
    closing: Option<LimitKind>,
}

/// What a step leads to.
enum Next {
    Step,
    Answer(String),
}

impl Turn<'_> {
    async fn play(&mut self) -> Result<Answer, Stop> {
        loop {
            // The watchdog looks only while the turn waits for something.
            if self.session.deadline <= clock::monotonic() {
                self.interrupt.trigger(Cause::Timeout);
            }
            if self.interrupt.token().is_cancelled() {
                return Err(sample::interrupted(self.interrupt));
            }
            let plan = self.plan().await?;
            let feed = self.feed.in_step(self.steps + 1);
            feed.send(EventKind::StepStart(StepStart {
                model: self.session.client.model().full_id(),
                closing: plan.closing.is_some(),
            }))
            .await;
            match self.step(&plan, &feed).await? {
                Next::Step => {}
                Next::Answer(text) => {
                    return Ok(Answer {
                        text,
                        steps: self.steps,
                        usage: self.usage,
                    });
                }
            }
        }
    }

    /// Asks the books what the next call may be.
    async fn plan(&mut self) -> Result<StepPlan, Stop> {
        let session = &mut *self.session;
        let prompt_tokens = session.context.tokens(session.store.tree().messages());
        let next = NextCall {
            first: self.steps == 0,
            prompt_tokens,
            output_tokens: session.sampling.max_output_tokens,
            model: session.client.model(),
        };
        let plan = |output_tokens, tools| StepPlan {
            prompt_tokens,
            output_tokens,
            tools,
            closing: None,
        };
        match session.accounts.gate(next) {
            Gate::Go { output_tokens } => Ok(plan(output_tokens, true)),
            Gate::Single { output_tokens } => Ok(plan(output_tokens, false)),
            Gate::Closing {
                kind,
                output_tokens,
            } => {
                session.accounts.reached(kind, &self.feed).await;
                let note = notes::closing(closing_note(kind));
                self.say(&note).await?;
                Ok(StepPlan {
                    prompt_tokens: prompt_tokens.saturating_add(estimate::text_tokens(&note)),
                    closing: Some(kind),
                    ..plan(output_tokens, false)
                })
            }
            Gate::Spent(kind) => {
                session.accounts.reached(kind, &self.feed).await;
                Err(Stop::Limit(kind))
            }
        }
    }

    /// One model call and its tools.
    async fn step(&mut self, plan: &StepPlan, feed: &Feed) -> Result<Next, Stop> {
        let sampled = match self.sample(plan, feed).await {
            Ok(sampled) => sampled,
            Err(stop) => {
                step_end(feed, &failed_reply(&stop), None, Vec::new()).await;
                return Err(stop);
            }
        };
        self.steps += 1;
        let reply = &sampled.message;
        let worked = match self.take(&sampled, plan, feed).await {
            Ok(()) => self.run_calls(reply, plan, feed).await,
            Err(stop) => Worked {
                files: Vec::new(),
                outcome: Err(stop),
            },
        };
        let synced = self.session.store.step_ended();
        self.session.accounts.warn(feed).await;
        step_end(feed, reply, self.cost(&sampled), worked.files).await;
        worked.outcome?;
        synced?;
        if let Some(kind) = plan.closing {
            return Err(Stop::Limit(kind));
        }
        if reply.tool_calls().next().is_some() && reply.stop_reason != StopReason::Refusal {
            self.judge.worked();
            return Ok(Next::Step);
        }
        match self.judge.judge(reply, plan.tools) {
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
        let entry = self.session.append_user(note)?;
        Session::tell_user(&entry, note, MessageSource::Synthetic, &self.feed).await;
        Ok(())
    }

    async fn sample(&mut self, plan: &StepPlan, feed: &Feed) -> Result<Sampled, Stop> {
        let session = &*self.session;
        let request = Request {
            system: session.system.clone(),
            messages: session.store.tree().messages().to_vec(),
            tools: if plan.tools {
                Arc::clone(&session.tools)
            } else {
                Arc::from([])
            },
            thinking: session.sampling.thinking,
            max_output_tokens: plan.output_tokens,
            temperature: session.sampling.temperature,
            session_id: session.id.clone(),
        };
        Sampler {
            client: &session.client,
            sampling: &session.sampling,
            deadline: session.deadline,
            activity: &session.activity,
            feed: feed.clone(),
        }
        .reply(&request, self.interrupt)
        .await
    }

    /// Books and keeps a reply, then tells of it.
    async fn take(&mut self, sampled: &Sampled, plan: &StepPlan, feed: &Feed) -> Result<(), Stop> {
        let reply = &sampled.message;
        let booked = self.book(sampled, plan, feed).await;
        let cost_usd = self.cost(sampled);
        let session = &mut *self.session;
        let entry = session
            .store
            .append(EntryKind::Message(Arc::new(Message::Assistant(
                reply.clone(),
            ))))?;
        let text = reply.text();
        if !text.trim().is_empty() {
            session.last_text.clone_from(&text);
        }
        let model = session.client.model();
        feed.send(EventKind::MessageComplete(Box::new(MessageComplete {
            agent_id: "main".to_owned(),
            reasoning: reply.thinking(),
            content: text,
            has_tool_calls: reply.tool_calls().next().is_some(),
            tool_calls: reply
                .tool_calls()
                .map(|call| CallSummary {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    args: call.arguments.clone(),
                })
                .collect(),
            message_id: entry.to_string(),
            stop_reason: reply.stop_reason,
            usage: reply.usage,
            cost_usd,
            model: model.full_id(),
        })))
        .await;
        feed.send(EventKind::ConversationUsage(ConversationUsage {
            usage: WindowUsage {
                use_tokens: booked.total_tokens(),
                max_tokens: model.context_window,
                prompt_tokens: booked.prompt_tokens(),
            },
            totals: session.accounts.totals(),
            cost_usd: session.accounts.cost_usd(),
        }))
        .await;
        Ok(())
    }

    /// Books what a reply used, or an estimate when the provider does not say.
    async fn book(&mut self, sampled: &Sampled, plan: &StepPlan, feed: &Feed) -> Usage {
        let reply = &sampled.message;
        let session = &mut *self.session;
        if sampled.usage_known {
            session.accounts.book_reply(&reply.usage);
            self.usage.add(&reply.usage);
            return reply.usage;
        }
        let mut usage = Usage {
            input: plan.prompt_tokens,
            output: estimate::reply_tokens(reply),
            ..Usage::default()
        };
        let model = session.client.model();
        usage.cost = model.cost(&usage).unwrap_or_default();
        if session.accounts.book_estimate(&usage) {
            feed.send(EventKind::Warning(Warning {
                code: "usage_missing".to_owned(),
                message: format!(
                    "{} does not say how many tokens a reply used: the budgets count an estimate, \
                     the cost is unknown",
                    model.full_id()
                ),
            }))
            .await;
        }
        usage
    }

    /// Runs the reply's calls.
    async fn run_calls(
        &mut self,
        reply: &AssistantMessage,
        plan: &StepPlan,
        feed: &Feed,
    ) -> Worked {
        let session = &mut *self.session;
        let batch = Batch {
            workbench: &session.workbench,
            working_copy: &mut session.working_copy,
            accounts: &mut session.accounts,
            repeats: &mut session.repeats,
            store: &mut session.store,
            activity: &session.activity,
            feed: feed.clone(),
            interrupt: self.interrupt,
            name: format!("{}-{}", session.turns, self.steps),
        };
        batch.run(reply, plan.tools).await
    }

    /// The reply's cost; none when the price or the usage is unknown.
    fn cost(&self, sampled: &Sampled) -> Option<f64> {
        let priced = self.session.client.model().price.is_some();
        (priced && sampled.usage_known).then_some(sampled.message.usage.cost.total)
    }
}

fn closing_note(kind: LimitKind) -> notes::Closing {
    match kind {
        LimitKind::Turns => notes::Closing::Turns,
        LimitKind::ToolCalls => notes::Closing::ToolCalls,
        LimitKind::Time | LimitKind::Idle => notes::Closing::Time,
        LimitKind::Cost
        | LimitKind::Tokens
        | LimitKind::Repeats
        | LimitKind::DenialsInARow
        | LimitKind::Denials => notes::Closing::Budget,
    }
}

async fn state(feed: &Feed, state: SessionState) {
    feed.send(EventKind::StateUpdate(StateUpdate { state }))
        .await;
}

async fn step_end(
    feed: &Feed,
    reply: &AssistantMessage,
    cost_usd: Option<f64>,
    files: Vec<String>,
) {
    feed.send(EventKind::StepEnd(StepEnd {
        stop_reason: reply.stop_reason,
        usage: reply.usage,
        cost_usd,
        files,
    }))
    .await;
}

/// What stands for a reply that never came, so that the step's pair closes.
fn failed_reply(stop: &Stop) -> AssistantMessage {
    let aborted = matches!(stop, Stop::Interrupted(_));
    AssistantMessage {
        content: Vec::new(),
        api: String::new(),
        provider: String::new(),
        model: String::new(),
        usage: Usage::default(),
        stop_reason: if aborted {
            StopReason::Aborted
        } else {
            StopReason::Error
        },
        error_message: Some(stop.to_string()),
        timestamp: clock::unix_ms(),
    }
}
