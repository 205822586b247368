//! Whether a reply without calls is the final answer.

use crate::context::notes;
use crate::message::{AssistantMessage, StopReason};

/// A paused reply is continued at most this often in a row.
const PAUSES_MAX: u32 = 5;

/// What a turn has already put up with.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Whether an unusable answer was already asked for again.
    asked_again: bool,
    /// Whether the model was told that nobody answers.
    told_nobody: bool,
    /// Paused replies in a row.
    pauses: u32,
}

/// What to do with a reply without calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is the answer.
    Final(String),
    /// Say this, and look at the next reply.
    Say(&'static str),
    /// It is no answer, and there will be none.
    Unusable(String),
}

impl Judge {
    /// Notes that a reply had calls.
    pub(super) fn worked(&mut self) {
        self.pauses = 0;
    }

    /// Judges a reply. A question is answered only where the turn `may_go_on`, so
    /// that the model can act on it.
    pub(super) fn judge(
        &mut self,
        reply: &AssistantMessage,
        may_go_on: impl FnOnce(&str) -> bool,
    ) -> Judgement {
        let text = reply.text();
        match reply.stop_reason {
            StopReason::Pause if self.pauses < PAUSES_MAX => {
                self.pauses += 1;
                Judgement::Say(notes::paused_reply())
            }
            StopReason::Pause => Judgement::Unusable(
                "the provider paused the reply again and again without ending it".to_owned(),
            ),
            StopReason::Refusal => Judgement::Unusable("the model refused the task".to_owned()),
            StopReason::Length => self.complain(
                "the model's final answer was cut by the output limit",
                notes::truncated_reply(),
            ),
            _ if text.trim().is_empty() => {
                self.complain("the model's final answer was empty", notes::empty_reply())
            }
            _ if !self.told_nobody && asks(&text) && may_go_on(&text) => {
                self.told_nobody = true;
                Judgement::Say(notes::nobody_is_here())
            }
            _ => Judgement::Final(text),
        }
    }

    /// Asks once for a better answer.
    fn complain(&mut self, complaint: &str, note: &'static str) -> Judgement {
        if self.asked_again {
            return Judgement::Unusable(format!("{complaint}, though it was asked for again"));
        }
        self.asked_again = true;
        Judgement::Say(note)
    }
}

/// Whether a text ends with a question.
fn asks(text: &str) -> bool {
    text.trim_end_matches(|c: char| c.is_whitespace() || "*_\"')`”’".contains(c))
        .ends_with(['?', '？'])
}
