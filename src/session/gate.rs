//! Whether the next model call may start. Budgets are reserved before a call:
//! what cannot be afforded whole is not started.

use crate::event::LimitKind;
use crate::message::Usage;
use crate::model::Model;

use super::budget::Accounts;
use super::limits::OnExhausted;

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

    /// Whether these calls fit into money and tokens, and a closing one after
    /// them.
    pub(super) fn affords(&self, calls: NextCall<'_>) -> bool {
        let (_, most) = self.affordable(calls, Room::CallAndClosing);
        most >= calls.output_tokens
    }

    /// The budget that this call does not fit into, if there is one.
    pub(super) fn lacks_room_for(&self, call: NextCall<'_>) -> Option<LimitKind> {
        let (kind, most) = self.affordable(call, Room::Call);
        (most < call.output_tokens).then_some(kind)
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
