//! What a session has used, and what it may still use. Budgets are reserved
//! before a call: what cannot be afforded whole is not started.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::clock;
use crate::event::{EventKind, LimitKind, LimitReached, Spent, TokenTotals, Warning};
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

/// Prices are per million tokens.
const MILLION: u64 = 1_000_000;

/// What the request for the closing reply takes.
const CLOSING_NOTE_TOKENS: u64 = 80;

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
    /// The sums of what providers told.
    usage: Usage,
    /// Whether every reply told its usage.
    usage_known: bool,
    tool_calls: u32,
    /// Whether a call was refused because none was left.
    calls_refused: bool,
    denials: u32,
    denials_in_a_row: u32,
    repeats_most: u32,
    warned: BTreeSet<(LimitKind, usize)>,
}

/// What must fit into the budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// The next call.
    Call,
    /// The closing call.
    Closing,
    /// The next call, and a closing one after it.
    CallAndClosing,
}

/// What the next model call would need.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextCall<'m> {
    /// Whether it is the first one of its turn.
    pub(super) first: bool,
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
            usage: Usage::default(),
            usage_known: true,
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
        (self.priced && self.usage_known).then_some(self.cost)
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
        if self.calls_refused {
            return self.closing(next, LimitKind::ToolCalls);
        }
        let last = wrap_up && turns_left == 1;
        let useful = USEFUL_OUTPUT_TOKENS.min(next.output_tokens);
        let room = if wrap_up && !last {
            Room::CallAndClosing
        } else {
            Room::Call
        };
        let (kind, most) = self.affordable(next, room);
        if most >= useful {
            let output_tokens = next.output_tokens.min(most);
            return match (last, next.first) {
                (false, _) => Gate::Go { output_tokens },
                (true, true) => Gate::Single { output_tokens },
                (true, false) => Gate::Closing {
                    kind: LimitKind::Turns,
                    output_tokens,
                },
            };
        }
        // Nothing to wrap up yet: if one whole call fits, it is the only one.
        if wrap_up && next.first {
            let (kind, most) = self.affordable(next, Room::Call);
            if most >= useful {
                let output_tokens = next.output_tokens.min(most);
                return Gate::Single { output_tokens };
            }
            return Gate::Spent(kind);
        }
        self.closing(next, kind)
    }

    /// The closing call because of `kind`, if it is wanted and affordable.
    fn closing(&self, next: NextCall<'_>, kind: LimitKind) -> Gate {
        let (_, most) = self.affordable(next, Room::Closing);
        let output_tokens = most.min(next.output_tokens).min(CLOSING_OUTPUT_TOKENS);
        let enough = output_tokens >= CLOSING_OUTPUT_TOKENS_MIN.min(next.output_tokens);
        if self.limits.on_exhausted == OnExhausted::WrapUp && !next.first && enough {
            Gate::Closing {
                kind,
                output_tokens,
            }
        } else {
            Gate::Spent(kind)
        }
    }

    /// The most output tokens that money and tokens allow for `next`, and which
    /// of the two binds.
    fn affordable(&self, next: NextCall<'_>, room: Room) -> (LimitKind, u64) {
        let (prompts, reserve) = match room {
            Room::Call => (next.prompt_tokens, 0),
            Room::Closing => (next.prompt_tokens.saturating_add(CLOSING_NOTE_TOKENS), 0),
            Room::CallAndClosing => (
                next.prompt_tokens
                    .saturating_mul(2)
                    .saturating_add(CLOSING_NOTE_TOKENS),
                CLOSING_OUTPUT_TOKENS,
            ),
        };
        let by_tokens = self
            .limits
            .max_tokens
            .saturating_sub(self.tokens)
            .saturating_sub(prompts.saturating_add(reserve));
        let Some((per_input, per_output)) = prices(next) else {
            return (LimitKind::Tokens, by_tokens);
        };
        let left = self.limits.max_cost_usd
            - self.cost
            - per_input * prompts as f64
            - per_output * reserve as f64;
        let by_cost = if left < 0.0 {
            0
        } else if per_output > 0.0 {
            (left / per_output) as u64
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
        self.usage.add(usage);
        self.book(usage);
    }

    /// Books the estimate of a reply that did not tell its usage; tells whether
    /// it is the first one.
    pub(super) fn book_estimate(&mut self, usage: &Usage) -> bool {
        self.book(usage);
        std::mem::replace(&mut self.usage_known, false)
    }

    fn book(&mut self, usage: &Usage) {
        self.turns += 1;
        self.tokens = self.tokens.saturating_add(usage.total_tokens());
        self.cost += usage.cost.total;
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

/// US dollars for one token of the prompt and one of the reply; none when the
/// price is unknown. The prompt may be written to a cache, which can cost more
/// than to send it.
fn prices(next: NextCall<'_>) -> Option<(f64, f64)> {
    let prompt = next.prompt_tokens.max(1);
    let cost = |usage: &Usage| next.model.cost(usage).map(|cost| cost.total);
    let sent = cost(&Usage {
        input: prompt,
        ..Usage::default()
    })?;
    let cached = cost(&Usage {
        cache_write: prompt,
        ..Usage::default()
    })?;
    let replied = next.model.cost(&Usage {
        input: prompt,
        output: MILLION,
        ..Usage::default()
    })?;
    Some((
        sent.max(cached) / prompt as f64,
        replied.output / MILLION as f64,
    ))
}
