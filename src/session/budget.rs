//! What a session has used, and what it may still use. Budgets are reserved
//! before a call: what cannot be afforded whole is not started.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::clock;
use crate::event::{EventKind, LimitKind, LimitReached, Spent, Warning};
use crate::message::Usage;
use crate::model::Model;

use super::feed::Feed;
use super::limits::{Limits, OnExhausted, OnUnknownPrice};
use super::stop::Stop;

/// Each budget with what was used of it.
pub type Budget = BTreeMap<LimitKind, Spent>;

/// Below this a reply is not worth starting.
const USEFUL_OUTPUT_TOKENS: u64 = 1_024;

/// The output kept in reserve for the closing reply.
const CLOSING_OUTPUT_TOKENS: u64 = 1_024;

/// Below this a closing reply could not say anything.
const CLOSING_OUTPUT_TOKENS_MIN: u64 = 64;

/// The books of a session.
#[derive(Debug)]
pub(super) struct Accounts {
    limits: Limits,
    started: Instant,
    priced: bool,
    turns: u32,
    tokens: u64,
    cost: f64,
    tool_calls: u32,
    denials: u32,
    denials_in_a_row: u32,
    repeats_most: u32,
    warned: BTreeSet<(LimitKind, usize)>,
}

/// What the next model call would need.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextCall<'m> {
    /// The estimate of its prompt.
    pub(super) prompt_tokens: u64,
    /// The most it would answer with.
    pub(super) output_tokens: u64,
    /// Whose prices count.
    pub(super) model: &'m Model,
}

/// Whether the next model call may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    /// Yes, with tools and this output cap.
    Go { output_tokens: u64 },
    /// Yes, with tools withheld because it is the only one that is allowed.
    Single { output_tokens: u64 },
    /// Only to wrap up, with this output cap, because this budget is almost spent.
    Closing { kind: LimitKind, output_tokens: u64 },
    /// No: this budget is spent.
    Spent(LimitKind),
}

impl Accounts {
    pub(super) fn new(limits: Limits, model: &Model) -> Self {
        Self {
            limits,
            started: clock::monotonic(),
            priced: model.price.is_some(),
            turns: 0,
            tokens: 0,
            cost: 0.0,
            tool_calls: 0,
            denials: 0,
            denials_in_a_row: 0,
            repeats_most: 0,
            warned: BTreeSet::new(),
        }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn denials(&self) -> u32 {
        self.denials
    }

    /// What the session has cost in US dollars; none when a price is unknown.
    pub(super) fn cost_usd(&self) -> Option<f64> {
        self.priced.then_some(self.cost)
    }

    /// Refuses or warns when the model's price is unknown.
    pub(super) async fn check_price(&self, model: &Model, feed: &Feed) -> Result<(), Stop> {
        if self.priced {
            return Ok(());
        }
        let fail = match self.limits.on_unknown_price {
            OnUnknownPrice::Fail => true,
            OnUnknownPrice::Auto => self.limits.cost_cap_asked,
            OnUnknownPrice::TokensOnly => false,
        };
        if fail {
            return Err(Stop::UnknownPrice(model.full_id()));
        }
        feed.send(EventKind::Warning(Warning {
            code: "unknown_price".to_owned(),
            message: format!(
                "the price of {} is unknown: its cost is not counted, limits.max_tokens holds",
                model.full_id()
            ),
        }))
        .await;
        Ok(())
    }

    /// Decides about the next model call.
    pub(super) fn gate(&self, next: NextCall<'_>) -> Gate {
        let wrap_up = self.limits.on_exhausted == OnExhausted::WrapUp;
        let turns_left = self.limits.max_turns.saturating_sub(self.turns);
        if turns_left == 0 {
            return Gate::Spent(LimitKind::Turns);
        }
        let (kind, most) = self.affordable(next, 0);
        let closing = |kind: LimitKind| {
            let output_tokens = most.min(next.output_tokens).min(CLOSING_OUTPUT_TOKENS);
            if wrap_up && self.turns > 0 && output_tokens >= CLOSING_OUTPUT_TOKENS_MIN {
                Gate::Closing {
                    kind,
                    output_tokens,
                }
            } else {
                Gate::Spent(kind)
            }
        };
        if self.tool_calls >= self.limits.max_tool_calls {
            return closing(LimitKind::ToolCalls);
        }
        let reserve = if wrap_up { CLOSING_OUTPUT_TOKENS } else { 0 };
        let (kind_with_reserve, most_with_reserve) = self.affordable(next, reserve);
        if most_with_reserve < USEFUL_OUTPUT_TOKENS.min(next.output_tokens) {
            return closing(if most == 0 { kind } else { kind_with_reserve });
        }
        let output_tokens = next.output_tokens.min(most_with_reserve);
        if turns_left == 1 && wrap_up {
            return if self.turns == 0 {
                Gate::Single { output_tokens }
            } else {
                Gate::Closing {
                    kind: LimitKind::Turns,
                    output_tokens,
                }
            };
        }
        Gate::Go { output_tokens }
    }

    /// The most output tokens that money and tokens allow for `next`, and which
    /// of the two binds, when a closing reply of `reserve` tokens with the same
    /// prompt must remain affordable.
    fn affordable(&self, next: NextCall<'_>, reserve: u64) -> (LimitKind, u64) {
        let prompts = if reserve > 0 { 2 } else { 1 };
        let needed = next
            .prompt_tokens
            .saturating_mul(prompts)
            .saturating_add(reserve);
        let by_tokens = self
            .limits
            .max_tokens
            .saturating_sub(self.tokens)
            .saturating_sub(needed);
        let usage = |output| Usage {
            input: next.prompt_tokens,
            output,
            ..Usage::default()
        };
        let (Some(prompt), Some(million)) = (
            next.model.cost(&usage(0)),
            next.model.cost(&usage(1_000_000)),
        ) else {
            return (LimitKind::Tokens, by_tokens);
        };
        let per_token = million.output / 1e6;
        let prompts = if reserve > 0 { 2.0 } else { 1.0 };
        let left = self.limits.max_cost_usd
            - self.cost
            - prompt.total * prompts
            - per_token * reserve as f64;
        let by_cost = if left < 0.0 {
            0
        } else if per_token > 0.0 {
            (left / per_token) as u64
        } else {
            u64::MAX
        };
        if by_cost < by_tokens {
            (LimitKind::Cost, by_cost)
        } else {
            (LimitKind::Tokens, by_tokens)
        }
    }

    /// Books a reply.
    pub(super) fn book_reply(&mut self, usage: &Usage) {
        self.turns += 1;
        self.tokens = self.tokens.saturating_add(usage.total_tokens());
        self.cost += usage.cost.total;
    }

    /// Books a tool call; `false` when none is left.
    pub(super) fn book_call(&mut self) -> bool {
        if self.tool_calls >= self.limits.max_tool_calls {
            return false;
        }
        self.tool_calls += 1;
        true
    }

    /// Books that a call was allowed.
    pub(super) fn book_allowed(&mut self) {
        self.denials_in_a_row = 0;
    }

    /// Books a denial; tells when a breaker trips.
    pub(super) fn book_denial(&mut self) -> Option<LimitKind> {
        self.denials += 1;
        self.denials_in_a_row += 1;
        if self.denials_in_a_row >= self.limits.max_denials.consecutive {
            Some(LimitKind::DenialsInARow)
        } else if self.denials >= self.limits.max_denials.total {
            Some(LimitKind::Denials)
        } else {
            None
        }
    }

    /// Books how often the same call was repeated.
    pub(super) fn book_repeats(&mut self, count: u32) {
        self.repeats_most = self.repeats_most.max(count);
    }

    /// Tells of budgets that crossed a warning level since the last time.
    pub(super) async fn warn(&mut self, feed: &Feed) {
        for (kind, spent) in self.budget() {
            for (level, share) in self.limits.warn_at.iter().enumerate() {
                let crossed = spent.limit > 0.0 && spent.used >= spent.limit * share;
                if crossed && spent.used < spent.limit && self.warned.insert((kind, level)) {
                    feed.send(EventKind::LimitWarning(LimitReached {
                        kind,
                        value: spent.used,
                        max: spent.limit,
                    }))
                    .await;
                }
            }
        }
    }

    /// Tells that `kind` is spent.
    pub(super) async fn reached(&self, kind: LimitKind, feed: &Feed) {
        let spent = self.budget().get(&kind).copied().unwrap_or_default();
        feed.send(EventKind::LimitReached(LimitReached {
            kind,
            value: spent.used,
            max: spent.limit,
        }))
        .await;
    }

    /// Each budget with what was used of it.
    pub(super) fn budget(&self) -> Budget {
        let limits = &self.limits;
        let spent = |limit: f64, used: f64| Spent { limit, used };
        let elapsed = clock::monotonic().duration_since(self.started);
        let mut budget = BTreeMap::from([
            (
                LimitKind::Turns,
                spent(limits.max_turns.into(), self.turns.into()),
            ),
            (
                LimitKind::Tokens,
                spent(limits.max_tokens as f64, self.tokens as f64),
            ),
            (
                LimitKind::ToolCalls,
                spent(limits.max_tool_calls.into(), self.tool_calls.into()),
            ),
            (
                LimitKind::Repeats,
                spent(limits.max_repeats.into(), self.repeats_most.into()),
            ),
            (
                LimitKind::DenialsInARow,
                spent(
                    limits.max_denials.consecutive.into(),
                    self.denials_in_a_row.into(),
                ),
            ),
            (
                LimitKind::Denials,
                spent(limits.max_denials.total.into(), self.denials.into()),
            ),
            (
                LimitKind::Time,
                spent(limits.timeout.as_secs_f64(), elapsed.as_secs_f64()),
            ),
        ]);
        if self.priced {
            budget.insert(LimitKind::Cost, spent(limits.max_cost_usd, self.cost));
        }
        budget
    }
}
