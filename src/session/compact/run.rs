//! A compaction in the engine: what it has to reach, the entry, the events.
//!
//! Without a summary the conversation is shortened all the same; only one who
//! asked for a summary by hand is told instead.

use crate::clock;
use crate::event::{
    CompactExec, CompactReason, CompactStart, ConversationUsage, EventKind, WindowUsage,
};
use crate::hook::CompactVerdict;
use crate::session::engine::Engine;
use crate::session::estimate;
use crate::session::feed::Feed;
use crate::session::interrupt::Interrupt;
use crate::session::stop::Stop;
use crate::store::{EntryId, EntryKind, StoreError};

use super::ask::{NoSummary, Spent, TOO_LONG};
use super::fallback::{Form, Goal, Shortened, shorten};
use super::plan::CompactionPlan;
use super::summary::SummaryRequest;

/// What a compaction is asked for.
pub(in crate::session) struct Wanted<'w> {
    pub(in crate::session) reason: CompactReason,
    /// What the summary should attend to.
    pub(in crate::session) instructions: Option<&'w str>,
    pub(in crate::session) interrupt: &'w Interrupt,
    pub(in crate::session) feed: &'w Feed,
}

/// What became of a compaction.
pub(in crate::session) enum Outcome {
    Done(Compacted),
    /// There is nothing to leave out; nothing was told.
    Nothing,
    /// The conversation is as before, for this reason.
    Failed(String),
}

/// A conversation that became shorter.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted {
    /// The entry of the compaction.
    pub entry_id: EntryId,
    /// What stands at the top of the conversation now.
    pub summary: String,
    /// The tokens of the context before.
    pub tokens_before: u64,
    /// The estimate of the context after.
    pub tokens_after: u64,
}

/// The work before it begins.
pub(super) struct Outline {
    pub(super) plan: CompactionPlan,
    goal: Goal,
    pub(super) tokens_before: u64,
    /// The estimate of the same context, which others are compared with.
    pub(super) estimate_before: u64,
    pub(super) requests: Vec<SummaryRequest>,
}

impl Engine {
    /// Whether the conversation may be compacted unasked.
    pub(in crate::session) fn may_compact(&self) -> bool {
        self.compaction.enabled && self.compactions < self.compaction.max_compactions
    }

    /// Whether the next request would come too near the window.
    pub(in crate::session) fn is_near_window(&mut self) -> bool {
        let window = self.window();
        self.context_tokens() > self.compaction.tokens_max(window)
    }

    /// The tokens of the next request's prompt.
    pub(in crate::session) fn context_tokens(&mut self) -> u64 {
        let (record, context) = (&self.record, &mut self.context);
        record.read(|store| context.tokens(store.tree()))
    }

    /// Compacts because somebody asks, outside a turn.
    pub(in crate::session) async fn compact_by_hand(
        &mut self,
        instructions: Option<&str>,
        interrupt: &Interrupt,
    ) -> Result<Outcome, Stop> {
        let watchdog = self.watchdog(interrupt);
        let feed = self.feed.clone();
        let wanted = Wanted {
            reason: CompactReason::Manual,
            instructions,
            interrupt,
            feed: &feed,
        };
        let outcome = tokio::select! {
            biased;
            outcome = self.compact(&wanted) => outcome,
            never = watchdog => match never {},
        };
        let recalled = self.recall_model();
        self.publish();
        outcome.and_then(|outcome| Ok(recalled.map(|()| outcome)?))
    }

    /// Makes the conversation shorter. It is as before when this fails.
    pub(in crate::session) async fn compact(
        &mut self,
        wanted: &Wanted<'_>,
    ) -> Result<Outcome, Stop> {
        let mut outline = self.outline(wanted);
        if !self.can_shorten(&outline, wanted.reason) {
            return Ok(Outcome::Nothing);
        }
        self.compactions += u32::from(wanted.reason != CompactReason::Manual);
        let compaction_id = clock::new_id();
        let start = CompactStart {
            compaction_id: compaction_id.clone(),
            reason: wanted.reason,
            token_before: outline.tokens_before,
        };
        wanted.feed.send(EventKind::CompactStart(start)).await;
        let mut spent = Spent::default();
        let outcome = self.work(&mut outline, wanted, &mut spent).await;
        let total = spent.total();
        let done = match &outcome {
            Ok(Outcome::Done(done)) => Some(done),
            Ok(_) | Err(_) => None,
        };
        let (before, after) = (
            outline.tokens_before,
            done.map_or(outline.tokens_before, |done| done.tokens_after),
        );
        let exec = CompactExec {
            compaction_id,
            reason: wanted.reason,
            err_msg: why(&outcome),
            token_before: before,
            token_compact: after,
            compact_rate: if before == 0 {
                0.0
            } else {
                after as f64 / before as f64
            },
            usage: total.usage,
            cost_usd: total.cost_usd,
            models: spent.models,
            aborted: done.is_none(),
            will_retry: done.is_some() && wanted.reason == CompactReason::Overflow,
        };
        let compacted = done.is_some();
        wanted.feed.send(EventKind::CompactExec(exec)).await;
        if compacted {
            self.tell_usage(after, wanted.feed).await;
        }
        outcome
    }

    /// What is to be done, and what it must reach.
    pub(super) fn outline(&mut self, wanted: &Wanted<'_>) -> Outline {
        let model = self.model();
        let (window, answer) = (self.window(), model.max_output_tokens);
        let counted = self.context_tokens();
        let fixed_tokens = self.context.fixed();
        let settings = &self.compaction;
        let keep_recent_tokens = match wanted.reason {
            CompactReason::Manual => settings.keep_recent_tokens,
            CompactReason::Threshold | CompactReason::Overflow => {
                settings.keep_in(window, fixed_tokens)
            }
        };
        let (plan, estimated) = self.record.read(|store| {
            let plan = CompactionPlan::new(store.tree(), keep_recent_tokens);
            (plan, estimate::EstimatedTokens::of(store.tree().messages()))
        });
        let estimate_before = estimated.total.saturating_add(fixed_tokens);
        // A provider that refuses the conversation knows better than we do.
        let tokens_before = match wanted.reason {
            CompactReason::Overflow => counted.max(window),
            CompactReason::Threshold | CompactReason::Manual => counted,
        };
        let smaller = estimate_before as f64 * (1.0 - settings.min_reduction);
        let scale = estimate_before as f64 / tokens_before.max(1) as f64;
        let tokens_max = match wanted.reason {
            CompactReason::Manual => smaller,
            CompactReason::Threshold => smaller.min(settings.tokens_max(window) as f64 * scale),
            CompactReason::Overflow => smaller.min((window - window / 8) as f64 * scale),
        };
        let reserve = settings.reserve_in(window);
        let room = settings.question_room(window);
        let mut requests = plan.summary_requests(wanted.instructions, reserve, room);
        for request in &mut requests {
            request.output_tokens = request.output_tokens.min(answer);
        }
        Outline {
            plan,
            goal: Goal {
                keep_recent_tokens,
                tokens_max: tokens_max as u64,
                fixed_tokens,
            },
            tokens_before,
            estimate_before,
            requests,
        }
    }

    fn can_shorten(&self, outline: &Outline, reason: CompactReason) -> bool {
        !outline.plan.is_empty()
            || (reason != CompactReason::Manual && self.shortened(outline, None).is_some())
    }

    fn shortened(&self, outline: &Outline, written: Option<&str>) -> Option<Shortened> {
        self.record
            .read(|store| shorten(store.tree(), &outline.plan, written, outline.goal))
    }

    /// From the question to the entry.
    async fn work(
        &mut self,
        outline: &mut Outline,
        wanted: &Wanted<'_>,
        spent: &mut Spent,
    ) -> Result<Outcome, Stop> {
        let by_hook = match self
            .hooks
            .before_compact(&outline.plan, outline.tokens_before, wanted)
            .await
        {
            CompactVerdict::Continue => None,
            CompactVerdict::Summary(text) => Some(text),
            CompactVerdict::Cancel(why) => {
                return Ok(Outcome::Failed(format!("a hook cancelled it: {why}")));
            }
        };
        let from_hook = by_hook.is_some().then_some(true);
        let asked = match by_hook {
            Some(text) => Ok(text),
            None => self.summary_that_fits(outline, wanted, spent).await,
        };
        let (written, problem) = match asked {
            Ok(text) => (Some(text), None),
            Err(NoSummary::Stop(stop)) => return Err(stop),
            Err(NoSummary::TooLong) if wanted.reason == CompactReason::Manual => {
                return Ok(Outcome::Failed(TOO_LONG.to_owned()));
            }
            Err(NoSummary::Unusable(why)) if wanted.reason == CompactReason::Manual => {
                return Ok(Outcome::Failed(why));
            }
            Err(NoSummary::Unusable(why)) => (None, Some(why)),
            Err(NoSummary::TooLong) => (None, Some(TOO_LONG.to_owned())),
        };
        let Some(short) = self.shortened(outline, written.as_deref()) else {
            return Ok(Outcome::Failed(problem.unwrap_or_else(|| {
                "the summary is not shorter than the conversation".to_owned()
            })));
        };
        if short.form != Form::Summary {
            tell_fallback(short.form, problem.as_deref(), wanted.feed).await;
        }
        let entry_id = self.keep(&short, outline.tokens_before, from_hook)?;
        Ok(Outcome::Done(Compacted {
            entry_id,
            tokens_before: outline.tokens_before,
            tokens_after: outline.tokens_after(&short),
            summary: short.summary,
        }))
    }

    /// Writes the entry that the next request begins with.
    fn keep(
        &self,
        short: &Shortened,
        tokens_before: u64,
        from_hook: Option<bool>,
    ) -> Result<EntryId, StoreError> {
        let first_kept_entry_id = match &short.first_kept {
            Some(id) => id.clone(),
            // An entry that no model sees: of what stays there is nothing.
            None => self.record.append(EntryKind::Custom {
                custom_type: "compaction".to_owned(),
                data: None,
            })?,
        };
        self.record.append(EntryKind::Compaction {
            summary: short.summary.clone(),
            first_kept_entry_id,
            tokens_before,
            details: Some(short.details()),
            from_hook,
        })
    }

    async fn tell_usage(&self, tokens: u64, feed: &Feed) {
        feed.send(EventKind::ConversationUsage(ConversationUsage {
            usage: WindowUsage {
                use_tokens: tokens,
                max_tokens: self.window(),
                prompt_tokens: tokens,
            },
            totals: self.accounts.totals(),
            cost_usd: self.accounts.cost_usd(),
        }))
        .await;
    }
}

impl Outline {
    /// The tokens after, on the scale of those before.
    fn tokens_after(&self, short: &Shortened) -> u64 {
        let after = short.tokens.saturating_add(self.goal.fixed_tokens);
        let share = after as f64 / self.estimate_before.max(1) as f64;
        (self.tokens_before as f64 * share).round() as u64
    }
}

/// What `compact:exec` says went wrong.
fn why(outcome: &Result<Outcome, Stop>) -> Option<String> {
    match outcome {
        Ok(Outcome::Done(_)) => None,
        Ok(Outcome::Nothing) => Some("there is nothing to leave out".to_owned()),
        Ok(Outcome::Failed(why)) => Some(why.clone()),
        Err(stop) => Some(stop.to_string()),
    }
}

async fn tell_fallback(form: Form, problem: Option<&str>, feed: &Feed) {
    let why = problem.unwrap_or("the summary saves too little");
    let what = match form {
        Form::Summary => return,
        Form::Pruned => "older output of tools is left out of the conversation",
        Form::Dropped => "older turns are left out of the conversation",
        Form::Retold => "everything before the last step is left out of the conversation",
    };
    feed.warn("compaction_fallback", format!("{what}: {why}"))
        .await;
}
