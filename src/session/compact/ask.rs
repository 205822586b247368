//! The calls for a summary.
//!
//! They are booked like any others, and made only when they and an answer after
//! them can be afforded.

use std::sync::Arc;

use crate::clock;
use crate::event::{CompactReason, ModelUsed, ModelsUsed};
use crate::message::{Message, Usage, UserMessage};
use crate::model::{Client, Model, ModelErrorKind, Request, Talk, ThinkingLevel};
use crate::session::engine::Engine;
use crate::session::estimate::{self, text_tokens};
use crate::session::feed::Feed;
use crate::session::gate::NextCall;
use crate::session::options::{Chunks, Sampling};
use crate::session::sample::{Sampled, Sampler};
use crate::session::stop::Stop;

use super::run::{Outline, Wanted};
use super::summary::{self, SummaryRequest};

/// Why no summary is asked for.
pub(super) const NO_BUDGET: &str = "the budget has no room for a summary";

/// Why there is none in the end.
pub(super) const TOO_LONG: &str = "the question for a summary is too long for the model's window";

/// How often a question for a summary is made shorter.
const SHORTER_MAX: u32 = 3;

/// What the calls for a summary used.
#[derive(Default)]
pub(super) struct Spent {
    /// By model.
    pub(super) models: ModelsUsed,
}

impl Spent {
    /// All of it.
    pub(super) fn total(&self) -> ModelUsed {
        let mut total = ModelUsed::default();
        self.models.values().for_each(|used| total.add(used));
        total
    }
}

/// Why there is no summary.
pub(super) enum NoSummary {
    /// The next call would fail as well.
    Stop(Stop),
    /// The conversation can be shortened without one.
    Unusable(String),
    /// The question was too long for the window, which is known better now.
    TooLong,
}

impl Engine {
    /// The model's summary; when its window turns out to be smaller, one of a
    /// plan for the smaller window.
    pub(super) async fn summary_that_fits(
        &mut self,
        outline: &mut Outline,
        wanted: &Wanted<'_>,
        spent: &mut Spent,
    ) -> Result<String, NoSummary> {
        for _ in 0..SHORTER_MAX {
            match self.write_summary(outline, wanted, spent).await {
                Err(NoSummary::TooLong) => {
                    let tokens_before = outline.tokens_before;
                    *outline = self.outline(wanted);
                    outline.tokens_before = tokens_before;
                }
                outcome => return outcome,
            }
        }
        self.write_summary(outline, wanted, spent).await
    }

    /// The model's summary, whole.
    async fn write_summary(
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
        let (prompt_tokens, output_tokens) = (
            sum(|request| text_tokens(&request.text)),
            sum(|request| request.output_tokens),
        );
        let model = outline.requests.first().map(|first| self.writer(first));
        let model = model.unwrap_or(self.model());
        if !self.affords(model, prompt_tokens, output_tokens) {
            return Err(unusable(NO_BUDGET));
        }
        let mut parts = Vec::new();
        for request in &outline.requests {
            parts.push(self.ask(request, wanted, spent).await?);
        }
        Ok(summary::join(&parts))
    }

    /// One part of the summary: by the small model, if there is one and it can,
    /// else by the one that is asked or by what takes over from it.
    pub(super) async fn ask(
        &mut self,
        question: &SummaryRequest,
        wanted: &Wanted<'_>,
        spent: &mut Spent,
    ) -> Result<String, NoSummary> {
        if let Some(small) = self.small_for(question).cloned() {
            let why = match self.ask_of(&small, question, wanted).await {
                Ok(sampled) => match self.take_summary(&sampled, small.model(), question, spent) {
                    Err(NoSummary::Unusable(why)) => why,
                    kept => return kept,
                },
                Err(stop @ (Stop::Model { .. } | Stop::Incomplete(_))) => stop.to_string(),
                Err(stop) => return Err(no_summary(stop)),
            };
            self.go_without_small(&small, &why, wanted.feed).await;
            room_for(question)(self, self.model()).map_err(NoSummary::Unusable)?;
        }
        loop {
            // A clone: what the client remembers of the conversation stays.
            let client = self.asking.client.clone();
            match self.ask_of(&client, question, wanted).await {
                Ok(sampled) => return self.take_summary(&sampled, client.model(), question, spent),
                // A shorter question may do.
                Err(stop) if self.learn_from(&stop, &client, question) => {
                    return Err(NoSummary::TooLong);
                }
                Err(stop) => {
                    let others = self.fall_back(&stop, room_for(question), wanted.feed);
                    if !others.await.map_err(NoSummary::Stop)? {
                        return Err(no_summary(stop));
                    }
                }
            }
        }
    }

    /// Learns the window of a model that refused a question; returns whether it
    /// is smaller than assumed.
    fn learn_from(&mut self, stop: &Stop, client: &Client, question: &SummaryRequest) -> bool {
        let tokens = text_tokens(&question.text);
        self.windows.learn(client.model(), stop, tokens)
    }

    /// The model that writes a summary.
    pub(super) fn writer(&self, question: &SummaryRequest) -> &Model {
        let small = self.small_for(question);
        small.unwrap_or(&self.asking.client).model()
    }

    /// Whether a model can take a question whole.
    fn fits(&self, question: &SummaryRequest, model: &Model) -> bool {
        let answer = question.output_tokens.min(model.max_output_tokens);
        text_tokens(&question.text).saturating_add(answer) <= self.windows.of(model)
    }

    fn small_for(&self, question: &SummaryRequest) -> Option<&Client> {
        let small = self.small.as_ref();
        small.filter(|small| self.fits(question, small.model()))
    }

    /// Whether there is money and room for such calls of `model`.
    pub(super) fn affords(&self, model: &Model, prompt_tokens: u64, output_tokens: u64) -> bool {
        self.accounts.affords(NextCall {
            first: false,
            prompt_tokens,
            output_tokens,
            model,
        })
    }

    async fn ask_of(
        &mut self,
        writer: &Client,
        question: &SummaryRequest,
        wanted: &Wanted<'_>,
    ) -> Result<Sampled, Stop> {
        let model = writer.model();
        let sampling = Sampling {
            max_output_tokens: question.output_tokens.min(model.max_output_tokens),
            chunks: Chunks::None,
            ..self.sampling.clone()
        };
        let message = UserMessage::text(question.text.as_str(), clock::unix_ms());
        let request = Request {
            system: summary::SYSTEM.to_owned(),
            messages: Arc::new(vec![Arc::new(Message::User(message))]),
            tools: Arc::from([]),
            // A summary needs care, but no long reflection.
            thinking: model.clamp_thinking(ThinkingLevel::Low),
            max_output_tokens: sampling.max_output_tokens,
            temperature: sampling.temperature,
            response_format: None,
            session_id: self.id.clone(),
        };
        let client = writer.about(Talk::Summary);
        let mut sampler = Sampler {
            client: &client,
            sampling: &sampling,
            deadline: self.deadline,
            activity: &self.activity,
            hooks: &self.hooks,
            feed: wanted.feed.clone(),
            accounts: &mut self.accounts,
            prompt_tokens: text_tokens(&question.text),
        };
        sampler.reply(&request, wanted.interrupt).await
    }

    /// The small model failed: it is not tried again.
    async fn go_without_small(&mut self, small: &Client, why: &str, feed: &Feed) {
        self.small = None;
        let (small, main) = (small.model().full_id(), self.model().full_id());
        let message = format!("{main} writes summaries instead of {small}: {why}");
        feed.warn("small_model", message).await;
    }

    /// Books a summary and looks at it.
    fn take_summary(
        &mut self,
        sampled: &Sampled,
        model: &Model,
        question: &SummaryRequest,
        spent: &mut Spent,
    ) -> Result<String, NoSummary> {
        self.accounts.take_up(model);
        let reply = &sampled.message;
        let used = if sampled.usage_known {
            self.accounts.book_aside(&reply.usage);
            let cost_usd = model.price.as_ref().map(|_| reply.usage.cost.total);
            ModelUsed::reply(&reply.usage, cost_usd)
        } else {
            let mut usage = Usage {
                input: text_tokens(&question.text),
                output: estimate::reply_tokens(reply),
                ..Usage::default()
            };
            usage.cost = model.cost(&usage).unwrap_or_default();
            self.accounts.book_aside_estimate(&usage, model);
            ModelUsed::reply(&Usage::default(), model.is_free().then_some(0.0))
        };
        let known = spent.models.entry(model.full_id()).or_default();
        known.add(&used);
        summary::accept(reply).map_err(|why| NoSummary::Unusable(why.to_owned()))
    }
}

/// Whether a model can be asked a question, and why not.
fn room_for(question: &SummaryRequest) -> impl Fn(&Engine, &Model) -> Result<(), String> {
    |engine, model| {
        let prompt_tokens = text_tokens(&question.text);
        if !engine.fits(question, model) {
            return Err("its window is too small for what it should summarise".to_owned());
        }
        match engine.affords(model, prompt_tokens, question.output_tokens) {
            true => Ok(()),
            false => Err(NO_BUDGET.to_owned()),
        }
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
            ModelErrorKind::Auth
                | ModelErrorKind::Quota
                | ModelErrorKind::Script
                | ModelErrorKind::Replay
                | ModelErrorKind::Setup
        ),
        Stop::Incomplete(_) => false,
        Stop::Interrupted(_)
        | Stop::Limit(_)
        | Stop::Denied(_)
        | Stop::NoModel(_)
        | Stop::Store(_)
        | Stop::InvalidResponse(_)
        | Stop::UnknownPrice(_) => true,
    };
    if hopeless {
        NoSummary::Stop(stop)
    } else {
        NoSummary::Unusable(stop.to_string())
    }
}
