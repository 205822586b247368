//! What a session has used of each of its budgets, and what is told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::clock;
use crate::event::{EventKind, LimitKind, LimitReached, Spent, TokenTotals, Warning};
use crate::message::Usage;
use crate::model::Model;

use super::feed::Feed;
use super::limits::{Limits, OnUnknownPrice};
use super::stop::Stop;

/// Each budget with what was used of it.
pub type Budget = BTreeMap<LimitKind, Spent>;

/// The books of a session.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) limits: Limits,
    started: Instant,
    /// Whether a price is known, so that money is counted.
    priced: bool,
    /// Whether no model was without a price.
    all_priced: bool,
    pub(super) turns: u32,
    pub(super) tokens: u64,
    pub(super) cost: f64,
    /// The sums of what providers told.
    usage: Usage,
    /// Whether every reply reported its usage.
    usage_known: bool,
    /// Whether every reply that did not was free.
    cost_known: bool,
    tool_calls: u32,
    /// Whether a call was refused because none was left.
    pub(super) calls_refused: bool,
    denials: u32,
    denials_in_a_row: u32,
    repeats_most: u32,
    warned: BTreeSet<(LimitKind, usize)>,
}

/// Refuses a model or warns of it when its price is unknown.
///
/// # Errors
/// [`Stop::UnknownPrice`] when the limits do not let it run so.
pub fn check_price(limits: &Limits, model: &Model) -> Result<Option<Warning>, Stop> {
    if model.price.is_some() {
        return Ok(None);
    }
    let fail = match limits.on_unknown_price {
        OnUnknownPrice::Fail => true,
        OnUnknownPrice::Auto => limits.cost_cap_asked,
        OnUnknownPrice::TokensOnly => false,
    };
    if fail {
        return Err(Stop::UnknownPrice(model.full_id()));
    }
    Ok(Some(Warning {
        code: "unknown_price".to_owned(),
        message: format!(
            "the price of {} is unknown: its cost is not counted, limits.max_tokens holds",
            model.full_id()
        ),
    }))
}

impl Accounts {
    /// Books for a session whose time is up at `deadline`.
    pub(super) fn new(limits: Limits, deadline: Instant, model: &Model) -> Self {
        // The time runs since the job started, which was before the session.
        let started = deadline.checked_sub(limits.timeout);
        Self {
            limits,
            started: started.unwrap_or_else(clock::monotonic),
            priced: model.price.is_some(),
            all_priced: model.price.is_some(),
            turns: 0,
            tokens: 0,
            cost: 0.0,
            usage: Usage::default(),
            usage_known: true,
            cost_known: true,
            tool_calls: 0,
            calls_refused: false,
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

    /// What the session has cost in US dollars; none when a price or a usage
    /// is unknown.
    pub(super) fn cost_usd(&self) -> Option<f64> {
        (self.all_priced && self.cost_known).then_some(self.cost)
    }

    /// The sums of the tokens that providers told.
    pub(super) fn totals(&self) -> TokenTotals {
        TokenTotals {
            input: self.usage.input,
            output: self.usage.output,
            cache_read: self.usage.cache_read,
            cache_write: self.usage.cache_write,
            reasoning: self.usage.reasoning,
        }
    }

    /// Another model answers from here on.
    pub(super) fn take_up(&mut self, model: &Model) {
        let priced = model.price.is_some();
        self.priced |= priced;
        self.all_priced &= priced;
    }

    /// Books a reply.
    pub(super) fn book_reply(&mut self, usage: &Usage) {
        self.usage.add(usage);
        self.book(usage);
    }

    /// Books the estimate of a reply that did not tell its usage; tells whether
    /// it is the first one.
    pub(super) fn book_estimate(&mut self, usage: &Usage, model: &Model) -> bool {
        self.book(usage);
        self.miss_usage(model)
    }

    /// Books what costs but is no step of the task: a summary, an attempt that
    /// gave no reply.
    pub(super) fn book_aside(&mut self, usage: &Usage) {
        self.usage.add(usage);
        self.spend(usage);
    }

    /// Books the estimate of such a thing whose usage was not told; tells
    /// whether it is the first one.
    pub(super) fn book_aside_estimate(&mut self, usage: &Usage, model: &Model) -> bool {
        self.spend(usage);
        self.miss_usage(model)
    }

    /// Remembers that a reply of `model` did not report its usage; returns
    /// whether it is the first one.
    fn miss_usage(&mut self, model: &Model) -> bool {
        self.cost_known &= model.is_free();
        std::mem::replace(&mut self.usage_known, false)
    }

    fn book(&mut self, usage: &Usage) {
        self.turns += 1;
        self.spend(usage);
    }

    fn spend(&mut self, usage: &Usage) {
        self.tokens = self.tokens.saturating_add(usage.total_tokens());
        self.cost += usage.cost.total;
    }

    /// Tool calls that may still run.
    pub(super) fn calls_left(&self) -> u32 {
        self.limits.max_tool_calls.saturating_sub(self.tool_calls)
    }

    /// Books a tool call; `false` when none is left.
    pub(super) fn book_call(&mut self) -> bool {
        if self.tool_calls >= self.limits.max_tool_calls {
            self.calls_refused = true;
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
        let spent = match kind {
            LimitKind::Idle => {
                let seconds = self.limits.idle_timeout.as_secs_f64();
                Spent {
                    limit: seconds,
                    used: seconds,
                }
            }
            _ => self.budget().get(&kind).copied().unwrap_or_default(),
        };
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
