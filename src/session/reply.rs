//! The reply of a step: asked for, booked, kept, told.

use std::sync::Arc;

use crate::event::{
    CallSummary, CompactReason, ConversationUsage, EventKind, MessageComplete, WindowUsage,
};
use crate::message::{Message, Usage};
use crate::model::Request;

use super::compact::Outcome;
use super::estimate;
use super::feed::Feed;
use super::sample::{Sampled, Sampler, unknown_cost};
use super::stop::Stop;
use super::turn::{StepPlan, Turn};
use super::windows::counts_reply;

impl Turn<'_> {
    /// Gets the step's reply. When the conversation is too long for the
    /// provider it is compacted, and the call is made once more.
    pub(super) async fn sample(
        &mut self,
        plan: &mut StepPlan,
        feed: &Feed,
    ) -> Result<Sampled, Stop> {
        match self.ask(plan, feed).await {
            Err(stop) if stop.is_overflow() => self.after_overflow(stop, plan, feed).await,
            Err(stop) => match self.engine.give_up_format(&stop) {
                None => Err(stop),
                Some(warning) => {
                    feed.warn_of([warning]).await;
                    self.ask(plan, feed).await
                }
            },
            Ok(sampled) => Ok(sampled),
        }
    }

    /// Takes a window for as large as the refusal says, makes the request fit
    /// into it, and sends it once more.
    async fn after_overflow(
        &mut self,
        stop: Stop,
        plan: &mut StepPlan,
        feed: &Feed,
    ) -> Result<Sampled, Stop> {
        let engine = &mut *self.engine;
        let model = engine.asking.client.model();
        let smaller = engine.windows.learn(model, &stop, plan.prompt_tokens);
        // The prompt may be short enough, and only the reply that it left room for
        // too long.
        let fits = smaller && counts_reply(&stop) && !engine.is_near_window();
        if !fits {
            if !engine.may_compact() {
                return Err(stop);
            }
            match self.compact(CompactReason::Overflow, feed).await? {
                Outcome::Done(_) => {}
                Outcome::Nothing | Outcome::Failed(_) => return Err(stop),
            }
        }
        self.fit(plan, feed).await?;
        self.ask(plan, feed).await
    }

    async fn ask(&mut self, plan: &StepPlan, feed: &Feed) -> Result<Sampled, Stop> {
        let engine = &mut *self.engine;
        let messages = engine.record.read(|store| store.tree().shared_messages());
        let cancel = self.prompt.interrupt.token();
        let messages = engine.hooks.context(messages, feed, cancel).await;
        let request = Request {
            system: engine.system().to_owned(),
            messages,
            tools: if plan.tools {
                Arc::clone(engine.tools.definitions())
            } else {
                Arc::from([])
            },
            thinking: engine.asking.thinking,
            max_output_tokens: plan.output_tokens,
            temperature: engine.sampling.temperature,
            response_format: engine.response.format(),
            session_id: engine.id.clone(),
        };
        Sampler {
            client: &engine.asking.client,
            sampling: &engine.sampling,
            deadline: engine.deadline,
            activity: &engine.activity,
            hooks: &engine.hooks,
            feed: feed.clone(),
            accounts: &mut engine.accounts,
            prompt_tokens: plan.prompt_tokens,
        }
        .reply(&request, self.prompt.interrupt)
        .await
    }

    /// Books and keeps a reply, then tells of it.
    pub(super) async fn take(
        &mut self,
        sampled: &Sampled,
        plan: &StepPlan,
        feed: &Feed,
    ) -> Result<(), Stop> {
        let reply = &sampled.message;
        let booked = self.book(sampled, plan, feed).await;
        let cost_usd = self.cost(sampled);
        let engine = &mut *self.engine;
        let entry = engine
            .record
            .append_message(Message::Assistant(reply.clone()))?;
        let text = reply.text();
        if !text.trim().is_empty() {
            engine.last_text.clone_from(&text);
        }
        let model = engine.model();
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
                max_tokens: engine.window(),
                prompt_tokens: booked.prompt_tokens(),
            },
            totals: engine.accounts.totals(),
            cost_usd: engine.accounts.cost_usd(),
        }))
        .await;
        Ok(())
    }

    /// Books what a reply used, or an estimate when the provider does not say.
    async fn book(&mut self, sampled: &Sampled, plan: &StepPlan, feed: &Feed) -> Usage {
        let reply = &sampled.message;
        let engine = &mut *self.engine;
        if sampled.usage_known {
            engine.accounts.book_reply(&reply.usage);
            self.usage.add(&reply.usage);
            return reply.usage;
        }
        let mut usage = Usage {
            input: plan.prompt_tokens,
            output: estimate::reply_tokens(reply),
            ..Usage::default()
        };
        usage.cost = engine.model().cost(&usage).unwrap_or_default();
        let model = engine.asking.client.model();
        if engine.accounts.book_estimate(&usage, model) {
            let message = format!(
                "{} does not say how many tokens a reply used: the budgets count an estimate{}",
                model.full_id(),
                unknown_cost(model)
            );
            feed.warn("usage_missing", message).await;
        }
        usage
    }

    /// The reply's cost; none when the price or the usage is unknown.
    pub(super) fn cost(&self, sampled: &Sampled) -> Option<f64> {
        let model = self.engine.model();
        let known = (model.price.is_some() && sampled.usage_known) || model.is_free();
        known.then_some(sampled.message.usage.cost.total)
    }
}
