//! The summary of a branch that is left: what was tried there stays known where
//! the conversation goes on.

use std::sync::Arc;

use serde_json::json;

use crate::event::CompactReason;
use crate::message::{Message, Usage};
use crate::session::engine::Engine;
use crate::session::estimate::text_tokens;
use crate::session::gate::NextCall;
use crate::session::interrupt::Interrupt;
use crate::session::refusal::SessionError;
use crate::store::{EntryId, EntryKind, SessionTree};

use super::ask::{NoSummary, Spent};
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
        let window = self.model().context_window;
        let reserve = self.compaction.reserve_in(window);
        let room = window.saturating_sub(reserve);
        let question = summary::branch_request(left, instructions, reserve, room);
        let call = NextCall {
            first: false,
            prompt_tokens: text_tokens(&question.text),
            output_tokens: question.output_tokens,
            model: self.model(),
        };
        if !self.accounts.affords(call) {
            let why = "the budget has no room for a summary";
            return Err(SessionError::NotSummarised(why.to_owned()));
        }
        let mut spent = Spent {
            usage: Usage::default(),
            cost_usd: Some(0.0),
        };
        let feed = self.feed.clone();
        let wanted = Wanted {
            reason: CompactReason::Manual,
            instructions,
            interrupt,
            feed: &feed,
        };
        let asked = self.ask(&question, &wanted, &mut spent).await;
        self.publish();
        let text = asked.map_err(|no| match no {
            NoSummary::Stop(stop) => stop.into(),
            NoSummary::Unusable(why) => SessionError::NotSummarised(why),
        })?;
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
