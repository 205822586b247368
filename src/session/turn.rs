//! The turn: a bounded loop of steps. A step is one model call and its tools.

use std::sync::Arc;

use crate::clock;
use crate::context::notes;
use crate::event::{
    CallSummary, ConversationUsage, EventKind, LimitKind, MessageComplete, MessageSource,
    SessionState, StateUpdate, StepEnd, StepStart, TokenTotals, TurnEnd, TurnStart, WindowUsage,
};
use crate::message::{AssistantMessage, Message, StopReason, Usage};
use crate::model::Request;
use crate::store::EntryKind;

use super::Session;
use super::budget::{Gate, NextCall};
use super::dispatch::Batch;
use super::ending;
use super::estimate;
use super::feed::Feed;
use super::interrupt::Interrupt;
use super::sample::{self, Sampler};
use super::stop::{Answer, Stop};

/// A paused reply is continued at most this often in a row.
const PAUSES_MAX: u32 = 5;

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
        nudged: false,
        pauses: 0,
    };
    let outcome = turn.play(text).await;
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
    /// Whether an unusable answer was already asked for again.
    nudged: bool,
    /// Paused replies in a row.
    pauses: u32,
}

/// How the next model call is made.
struct StepPlan {
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
    async fn play(&mut self, text: &str) -> Result<Answer, Stop> {
        let feed = self.feed.clone();
        self.session.say(text, MessageSource::Prompt, &feed).await?;
        loop {
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
        session.accounts.warn(&self.feed).await;
        let fixed = estimate::text_tokens(&session.system) + tools_tokens(session);
        let next = NextCall {
            prompt_tokens: estimate::context_tokens(session.store.tree().messages(), fixed),
            output_tokens: session.sampling.max_output_tokens,
            model: session.client.model(),
        };
        match session.accounts.gate(next) {
            Gate::Go { output_tokens } => Ok(StepPlan {
                output_tokens,
                tools: true,
                closing: None,
            }),
            Gate::Single { output_tokens } => Ok(StepPlan {
                output_tokens,
                tools: false,
                closing: None,
            }),
            Gate::Closing {
                kind,
                output_tokens,
            } => {
                session.accounts.reached(kind, &self.feed).await;
                let note = notes::closing(closing_note(kind));
                session
                    .say(&note, MessageSource::Synthetic, &self.feed)
                    .await?;
                Ok(StepPlan {
                    output_tokens,
                    tools: false,
                    closing: Some(kind),
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
        let reply = match self.sample(plan, feed).await {
            Ok(reply) => reply,
            Err(stop) => {
                step_end(feed, &failed_reply(&stop), None, Vec::new()).await;
                return Err(stop);
            }
        };
        self.steps += 1;
        self.take(&reply, feed).await?;
        let calls = reply.tool_calls().count();
        let outcome = if calls > 0 {
            self.run_calls(&reply, plan, feed).await
        } else {
            Ok(Vec::new())
        };
        let synced = self.session.store.step_ended();
        let files = outcome.as_ref().map_or_else(|_| Vec::new(), Clone::clone);
        step_end(feed, &reply, self.cost(&reply), files).await;
        outcome?;
        synced?;
        if let Some(kind) = plan.closing {
            return Err(Stop::Limit(kind));
        }
        if calls > 0 {
            self.pauses = 0;
            return Ok(Next::Step);
        }
        self.judge(&reply).await
    }

    async fn sample(&mut self, plan: &StepPlan, feed: &Feed) -> Result<AssistantMessage, Stop> {
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
    async fn take(&mut self, reply: &AssistantMessage, feed: &Feed) -> Result<(), Stop> {
        let session = &mut *self.session;
        session.accounts.book_reply(&reply.usage);
        self.usage.add(&reply.usage);
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
        let cost_usd = model.price.is_some().then_some(reply.usage.cost.total);
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
                use_tokens: reply.usage.total_tokens(),
                max_tokens: model.context_window,
                prompt_tokens: reply.usage.prompt_tokens(),
            },
            totals: totals(&self.usage),
            cost_usd: session.accounts.cost_usd(),
        }))
        .await;
        Ok(())
    }

    /// Runs the reply's calls; gives the files they wrote.
    async fn run_calls(
        &mut self,
        reply: &AssistantMessage,
        plan: &StepPlan,
        feed: &Feed,
    ) -> Result<Vec<String>, Stop> {
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
        let forbidden = if plan.tools {
            None
        } else {
            Some(notes::no_tools_left())
        };
        batch.run(reply, forbidden).await
    }

    /// Decides whether a reply without calls is the final answer.
    async fn judge(&mut self, reply: &AssistantMessage) -> Result<Next, Stop> {
        let text = reply.text();
        let complaint = match reply.stop_reason {
            StopReason::Pause if self.pauses < PAUSES_MAX => {
                self.pauses += 1;
                return Ok(Next::Step);
            }
            StopReason::Refusal => {
                return Err(Stop::Incomplete("the model refused the task".to_owned()));
            }
            StopReason::Length => "the model's final answer was cut by the output limit",
            _ if text.trim().is_empty() => "the model's final answer was empty",
            _ => return Ok(Next::Answer(text)),
        };
        if self.nudged {
            return Err(Stop::Incomplete(format!("{complaint}, twice")));
        }
        self.nudged = true;
        let note = if reply.stop_reason == StopReason::Length {
            notes::truncated_reply()
        } else {
            notes::empty_reply()
        };
        let feed = self.feed.clone();
        self.session
            .say(note, MessageSource::Synthetic, &feed)
            .await?;
        Ok(Next::Step)
    }

    fn cost(&self, reply: &AssistantMessage) -> Option<f64> {
        let price = self.session.client.model().price.as_ref();
        price.map(|_| reply.usage.cost.total)
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

fn tools_tokens(session: &Session) -> u64 {
    session
        .tools
        .iter()
        .map(|tool| {
            estimate::text_tokens(&tool.description)
                + estimate::text_tokens(&tool.parameters.to_string())
        })
        .sum()
}

fn totals(usage: &Usage) -> TokenTotals {
    TokenTotals {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        reasoning: usage.reasoning,
    }
}
