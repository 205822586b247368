//! The summary of a branch that is left: what was tried there stays known where
//! the conversation goes on.

use std::sync::Arc;

use serde_json::json;

use crate::event::{self, CompactReason, EventKind};
use crate::message::Message;
use crate::session::engine::Engine;
use crate::session::estimate::text_tokens;
use crate::session::interrupt::Interrupt;
use crate::session::refusal::SessionError;
use crate::store::{EntryId, EntryKind, SessionTree};

use super::ask::{NO_BUDGET, NoSummary, Spent, TOO_LONG};
use super::files::TouchedFiles;
use super::run::Wanted;
use super::summary;

/// What is left when the leaf moves: the part of the old path that the new one
/// does not share, as the model saw it.
pub(in crate::session) fn left_behind(
    tree: &SessionTree,
    new_leaf: Option<&EntryId>,
) -> Vec<Arc<Message>> {
    let kept = new_leaf.and_then(|id| tree.path_to(id)).unwrap_or_default();
    let path = tree.path();
    let shared = path
        .iter()
        .zip(&kept)
        .take_while(|(one, other)| one.id == other.id)
        .count();
    let left = path.into_iter().skip(shared);
    left.filter_map(|entry| tree.sent(entry)).collect()
}

impl Engine {
    /// Asks the model for a summary of a branch; the entry that keeps it.
    pub(in crate::session) async fn summarise_branch(
        &mut self,
        left: &[Arc<Message>],
        from_id: EntryId,
        instructions: Option<&str>,
        interrupt: &Interrupt,
    ) -> Result<EntryKind, SessionError> {
        let window = self.window();
        let reserve = self.compaction.reserve_in(window);
        let room = self.compaction.question_room(window);
        let mut question = summary::branch_request(left, instructions, reserve, room);
        question.output_tokens = question.output_tokens.min(self.model().max_output_tokens);
        let prompt_tokens = text_tokens(&question.text);
        if !self.affords(
            self.writer(&question),
            prompt_tokens,
            question.output_tokens,
        ) {
            return Err(SessionError::NotSummarised(NO_BUDGET.to_owned()));
        }
        let mut spent = Spent::default();
        let feed = self.feed.clone();
        let wanted = Wanted {
            reason: CompactReason::Manual,
            instructions,
            interrupt,
            feed: &feed,
        };
        let watchdog = self.watchdog(interrupt);
        let asked = tokio::select! {
            biased;
            asked = self.ask(&question, &wanted, &mut spent) => asked,
            never = watchdog => match never {},
        };
        // What was paid is told whatever becomes of the file.
        let recalled = self.recall_model();
        self.publish();
        let asked = asked.map_err(|no| match no {
            NoSummary::Stop(stop) => stop.into(),
            NoSummary::Unusable(why) => SessionError::NotSummarised(why),
            NoSummary::TooLong => SessionError::NotSummarised(TOO_LONG.to_owned()),
        });
        let total = spent.total();
        feed.send(EventKind::BranchSummary(event::BranchSummary {
            err_msg: asked.as_ref().err().map(SessionError::to_string),
            usage: total.usage,
            cost_usd: total.cost_usd,
            models: spent.models,
        }))
        .await;
        recalled?;
        let text = asked?;
        let mut files = TouchedFiles::default();
        for message in left {
            files.note(message);
        }
        Ok(EntryKind::BranchSummary {
            from_id,
            summary: format!("{text}{}", files.appendix()),
            details: Some(json!(files)),
        })
    }
}
