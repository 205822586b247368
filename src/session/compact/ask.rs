//! The calls for a summary.
//!
//! They are booked like any others, and made only when they and an answer after
//! them can be afforded.

use std::sync::Arc;

use crate::clock;
use crate::event::CompactReason;
use crate::message::{Message, Usage, UserMessage};
use crate::model::{ModelErrorKind, Request, ThinkingLevel};
use crate::session::engine::Engine;
use crate::session::estimate::{self, text_tokens};
use crate::session::gate::NextCall;
use crate::session::options::{Chunks, Sampling};
use crate::session::sample::{Sampled, Sampler};
use crate::session::stop::Stop;

use super::run::{Outline, Wanted};
use super::summary::{self, SummaryRequest};

/// What the calls for a summary used.
pub(super) struct Spent {
    pub(super) usage: Usage,
    pub(super) cost_usd: Option<f64>,
}

/// Why there is no summary.
pub(super) enum NoSummary {
    /// The next call would fail as well.
    Stop(Stop),
    /// The conversation can be shortened without one.
    Unusable(String),
}

impl Engine {
    /// The model's summary, whole.
    pub(super) async fn write_summary(
        &mut self,
        outline: &Outline,
        wanted: &Wanted<'_>,
        spent: &mut Spent,
    ) -> Result<String, NoSummary> {
        let unusable = |why: &str| NoSummary::Unusable(why.to_owned());
        if !outline.gains_by_summary(wanted.reason, self.compaction.min_reduction) {
            return Err(unusable("what could be summarised is too little"));
        }
        let sum = |count: fn(&SummaryRequest) -> u64| outline.requests.iter().map(count).sum();
        let calls = NextCall {
            first: false,
            prompt_tokens: sum(|request| text_tokens(&request.text)),
            output_tokens: sum(|request| request.output_tokens),
            model: self.model(),
        };
        if !self.accounts.affords(calls) {
            return Err(unusable("the budget has no room for a summary"));
        }
        let mut parts = Vec::new();
        for request in &outline.requests {
            parts.push(self.ask(request, wanted, spent).await?);
        }
        Ok(summary::join(&parts))
    }

    /// One part of the summary.
    pub(super) async fn ask(
        &mut self,
        question: &SummaryRequest,
        wanted: &Wanted<'_>,
        spent: &mut Spent,
    ) -> Result<String, NoSummary> {
        let sampling = Sampling {
            max_output_tokens: question.output_tokens,
            chunks: Chunks::None,
            ..self.sampling.clone()
        };
        let message = UserMessage::text(question.text.as_str(), clock::unix_ms());
        let request = Request {
            system: summary::SYSTEM.to_owned(),
            messages: Arc::new(vec![Arc::new(Message::User(message))]),
            tools: Arc::from([]),
            // A summary needs care, but no long reflection.
            thinking: self.model().clamp_thinking(ThinkingLevel::Low),
            max_output_tokens: sampling.max_output_tokens,
            temperature: sampling.temperature,
            session_id: self.id.clone(),
        };
        let sampler = Sampler {
            client: &self.asking.client,
            sampling: &sampling,
            deadline: self.deadline,
            activity: &self.activity,
            hooks: &self.hooks,
            feed: wanted.feed.clone(),
        };
        let sampled = sampler.reply(&request, wanted.interrupt).await;
        let sampled = sampled.map_err(no_summary)?;
        self.book_summary(&sampled, text_tokens(&question.text), spent);
        summary::accept(&sampled.message).map_err(|why| NoSummary::Unusable(why.to_owned()))
    }

    fn book_summary(&mut self, sampled: &Sampled, prompt_tokens: u64, spent: &mut Spent) {
        let reply = &sampled.message;
        if sampled.usage_known {
            self.accounts.book_summary(&reply.usage);
            spent.usage.add(&reply.usage);
        } else {
            let mut usage = Usage {
                input: prompt_tokens,
                output: estimate::reply_tokens(reply),
                ..Usage::default()
            };
            usage.cost = self.model().cost(&usage).unwrap_or_default();
            self.accounts.book_summary_estimate(&usage);
        }
        let known = sampled.usage_known && self.model().price.is_some();
        spent.cost_usd = match spent.cost_usd {
            Some(cost) if known => Some(cost + reply.usage.cost.total),
            _ => None,
        };
    }
}

impl Outline {
    /// Whether even a summary of no length could save enough. One who asks for
    /// a summary gets it.
    fn gains_by_summary(&self, reason: CompactReason, min_reduction: f64) -> bool {
        let messages = self.plan.history.iter().chain(&self.plan.prefix);
        let tokens: u64 = messages.map(|one| estimate::message_tokens(one)).sum();
        let needed = self.estimate_before as f64 * min_reduction;
        !self.plan.is_empty() && (reason == CompactReason::Manual || tokens as f64 >= needed)
    }
}

/// Whether the conversation can be shortened without the summary that failed.
fn no_summary(stop: Stop) -> NoSummary {
    let hopeless = match &stop {
        Stop::Model { error, .. } => matches!(
            error.kind,
            ModelErrorKind::Auth | ModelErrorKind::Quota | ModelErrorKind::Script
        ),
        Stop::Incomplete(_) => false,
        Stop::Interrupted(_)
        | Stop::Limit(_)
        | Stop::Denied(_)
        | Stop::NoModel(_)
        | Stop::Store(_)
        | Stop::UnknownPrice(_) => true,
    };
    if hopeless {
        NoSummary::Stop(stop)
    } else {
        NoSummary::Unusable(stop.to_string())
    }
}
