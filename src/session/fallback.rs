//! What takes over when a model cannot be asked for now: the next of the
//! fallbacks, for the rest of the turn.
//!
//! It does so where waiting could have helped, and did not: the model is
//! overloaded, rate limited, silent, cannot be reached, or what it sends cannot
//! be understood. What somebody has to look at - a key, a balance, a request
//! that is refused, a certificate - is an error of the run, however many models
//! there are. A fallback that fails in any such way is passed over: the run then
//! ends with the error of the model that it was to stand in for.
//!
//! Each model fails once a turn, so a turn is bounded. The next turn begins with
//! the chosen model: an outage passes, and the cache of the prompt is kept as
//! long as a turn goes on.

use crate::event::{CompactReason, EventKind, ModelFallback};
use crate::model::{Model, ModelError, ModelErrorKind};

use super::asked;
use super::budget;
use super::engine::Engine;
use super::feed::Feed;
use super::gate::{Gate, NextCall};
use super::sample::Sampled;
use super::stop::Stop;
use super::turn::{StepPlan, Turn};

impl Engine {
    /// Lets the next fallback that `will_do` take over from the model that failed
    /// with `stop`. Tells whether another model is asked now.
    pub(super) async fn fall_back(
        &mut self,
        stop: &Stop,
        will_do: impl Fn(&Self, &Model) -> Result<(), String>,
        feed: &Feed,
    ) -> Result<bool, Stop> {
        let Stop::Model { error, .. } = stop else {
            return Ok(false);
        };
        let stood_in = self.asked.stands_in();
        if !passes_on(error, stood_in) {
            return Ok(false);
        }
        let from = self.model().full_id();
        if self.asked.asking().client.model().full_id() != from {
            // Somebody chose another one meanwhile.
            self.take_up_model()?;
            return Ok(true);
        }
        for client in self.asked.after_failure() {
            let to = client.model().full_id();
            if let Err(why) = will_do(self, client.model()) {
                let message = format!("the fallback {to} is passed over: {why}");
                feed.warn("fallback_passed_over", message).await;
                continue;
            }
            feed.send(EventKind::ModelFallback(ModelFallback {
                from,
                to,
                reason: error.to_string(),
                error_code: error.kind.name().to_owned(),
                http_status: error.http_status,
            }))
            .await;
            let unpriced = budget::check_price(self.accounts.limits(), client.model())?;
            let in_clear = asked::key_in_clear(client.model());
            feed.warn_of(unpriced.into_iter().chain(in_clear)).await;
            self.asked.fall_back(client);
            self.take_up_model()?;
            return Ok(true);
        }
        if stood_in {
            let message = format!("the fallback {from} failed, and there is no other: {error}");
            feed.warn("fallback_failed", message).await;
        }
        Ok(false)
    }
}

impl Turn<'_> {
    /// Gets the step's reply, from a fallback when the model cannot give it.
    pub(super) async fn reply(
        &mut self,
        plan: &mut StepPlan,
        feed: &Feed,
    ) -> Result<Sampled, Stop> {
        let mut first = None;
        let mut outcome = self.sample(plan, feed).await;
        while let Err(stop) = outcome {
            if !self.falls_back(&stop, plan, feed).await? {
                return Err(match stop {
                    // That others could not help is no reason of its own.
                    Stop::Model { .. } => first.unwrap_or(stop),
                    _ => stop,
                });
            }
            first.get_or_insert(stop);
            outcome = self.sample_elsewhere(plan, feed).await;
        }
        outcome
    }

    /// Lets a fallback take over that has room for the step, in its window and in
    /// the budgets at its price.
    async fn falls_back(
        &mut self,
        stop: &Stop,
        plan: &StepPlan,
        feed: &Feed,
    ) -> Result<bool, Stop> {
        let (tokens, steps) = (self.engine.context_tokens(), self.steps);
        let will_do = |engine: &Engine, model: &Model| {
            let window = engine.windows.of(model);
            let tokens = match engine.may_compact() {
                true => tokens.min(engine.compaction.tokens_max(window)),
                false if tokens >= window => {
                    return Err(format!(
                        "its window of {window} tokens is too small for a conversation of {tokens}"
                    ));
                }
                false => tokens,
            };
            match engine.gate(model, steps == 0, tokens) {
                Gate::Go { .. } | Gate::Single { .. } => Ok(()),
                Gate::Closing { .. } if plan.closing.is_some() => Ok(()),
                Gate::Closing { .. } | Gate::Spent(_) => {
                    Err("the budgets have no room for a step at its price".to_owned())
                }
            }
        };
        self.engine.fall_back(stop, will_do, feed).await
    }

    /// The same step with the model that took over: first of all the conversation
    /// has to fit into its window.
    async fn sample_elsewhere(
        &mut self,
        plan: &mut StepPlan,
        feed: &Feed,
    ) -> Result<Sampled, Stop> {
        if self.engine.may_compact() && self.engine.is_near_window() {
            self.compact(CompactReason::Threshold, feed).await?;
        }
        self.fit(plan, feed).await?;
        self.sample(plan, feed).await
    }

    /// Makes the call what the budgets allow at the price of the model that is
    /// asked now.
    pub(super) async fn fit(&mut self, plan: &mut StepPlan, feed: &Feed) -> Result<(), Stop> {
        let engine = &mut *self.engine;
        plan.prompt_tokens = engine.context_tokens();
        match engine.gate(engine.model(), self.steps == 0, plan.prompt_tokens) {
            Gate::Go { output_tokens } | Gate::Closing { output_tokens, .. } => {
                plan.output_tokens = output_tokens;
            }
            Gate::Single { output_tokens } => {
                plan.output_tokens = output_tokens;
                plan.tools = false;
            }
            Gate::Spent(kind) => {
                engine.accounts.reached(kind, feed).await;
                return Err(Stop::Limit(kind));
            }
        }
        Ok(())
    }
}

impl Engine {
    /// What the budgets say to a call of `model`.
    pub(super) fn gate(&self, model: &Model, first: bool, prompt_tokens: u64) -> Gate {
        self.accounts.gate(NextCall {
            first,
            prompt_tokens,
            output_tokens: self
                .sampling
                .max_output_tokens
                .min(model.max_output_tokens)
                .min(self.windows.output_max(model, prompt_tokens)),
            model,
        })
    }
}

/// Whether another model may do what this one could not.
fn passes_on(error: &ModelError, stands_in: bool) -> bool {
    match error.kind {
        ModelErrorKind::Overloaded
        | ModelErrorKind::Unavailable
        | ModelErrorKind::RateLimited
        | ModelErrorKind::Timeout
        | ModelErrorKind::BadResponse
        | ModelErrorKind::Truncated => stands_in || error.is_retryable(),
        ModelErrorKind::Auth
        | ModelErrorKind::Quota
        | ModelErrorKind::Setup
        | ModelErrorKind::InvalidRequest
        | ModelErrorKind::ContextOverflow => stands_in,
        ModelErrorKind::ContentFilter
        | ModelErrorKind::Cancelled
        | ModelErrorKind::Script
        | ModelErrorKind::Replay => false,
    }
}
