//! What takes the place of the older part of a conversation: the model's
//! summary, and where that is missing or saves too little, less and less of
//! what was said.
//!
//! Every form is a summary and the messages after it, so it is kept in the
//! session like any compaction, and every reader of the file understands it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::message::Message;
use crate::session::estimate::{message_tokens, text_tokens};
use crate::store::{EntryId, SessionTree};

use super::cut::Conversation;
use super::files::TouchedFiles;
use super::plan::{CompactionPlan, earlier};
use super::transcript::{Detail, cut, spoken, transcript};

/// UTF-16 units of a user message that outlives its turn.
const TASK_UNITS: u64 = 4_000;

/// User messages that outlive their turns: the first ones and the last ones.
const TASKS_FIRST: usize = 1;
const TASKS_LAST: usize = 3;

/// Tokens of the words around a summary.
const FRAME_TOKENS: u64 = 40;

/// What a conversation is shortened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    /// The model's summary, and the newest messages.
    Summary,
    /// Also the older messages, without what tools put out.
    Pruned,
    /// The older turns only by what the user asked for.
    Dropped,
    /// No message stays: the last calls and what came of them are retold.
    Retold,
}

/// A shorter conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shortened {
    pub(super) form: Form,
    /// Stands at the top.
    pub(super) summary: String,
    /// The first entry that stays; none when nothing does.
    pub(super) first_kept: Option<EntryId>,
    pub(super) files: TouchedFiles,
    /// The estimate of its messages.
    pub(super) tokens: u64,
}

impl Shortened {
    /// What the entry of the compaction keeps for viewers and for the next one.
    pub(super) fn details(&self) -> Value {
        let mut details = json!(self.files);
        if let (Some(fields), false) = (details.as_object_mut(), self.form == Form::Summary) {
            fields.insert("fallback".to_owned(), json!(self.form));
        }
        details
    }
}

/// What a shorter conversation must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Goal {
    /// The newest tokens that stay in the first form.
    pub(super) keep_recent_tokens: u64,
    /// What messages and everything around them may have, by their estimate.
    pub(super) tokens_max: u64,
    /// The estimate of what every request carries.
    pub(super) fixed_tokens: u64,
}

/// The most faithful form that reaches `goal`; without one, the shortest. None
/// when no form is shorter than the conversation is. `written` is the model's
/// summary of `plan`.
pub(super) fn shorten(
    tree: &SessionTree,
    plan: &CompactionPlan,
    written: Option<&str>,
    goal: Goal,
) -> Option<Shortened> {
    let conversation = Conversation::of(tree);
    let now: u64 = tree.messages().iter().map(|one| message_tokens(one)).sum();
    let mut shortest: Option<Shortened> = None;
    let keep = goal.keep_recent_tokens;
    // A summary that is there but too long is worth less than what it tells.
    let forms = [
        (Form::Summary, keep, written),
        (Form::Pruned, keep / 2, written),
        (Form::Pruned, keep, None),
        (Form::Pruned, keep / 2, None),
        (Form::Dropped, keep / 4, written),
        (Form::Dropped, keep / 4, None),
        (Form::Retold, 1, written),
        (Form::Retold, 1, None),
    ];
    for (form, keep_tokens, written) in forms {
        let Some(short) = form.of(&conversation, plan, written, keep_tokens) else {
            continue;
        };
        if short.tokens >= now {
            continue;
        }
        if short.tokens.saturating_add(goal.fixed_tokens) <= goal.tokens_max {
            return Some(short);
        }
        if shortest
            .as_ref()
            .is_none_or(|best| short.tokens < best.tokens)
        {
            shortest = Some(short);
        }
    }
    shortest
}

impl Form {
    /// The conversation in this form; none when it would be no other than the
    /// form before.
    fn of(
        self,
        conversation: &Conversation<'_>,
        plan: &CompactionPlan,
        written: Option<&str>,
        keep_tokens: u64,
    ) -> Option<Shortened> {
        // The summary that there is, and the first line it does not cover.
        let (told, covered) = match written {
            Some(summary) => (Some(summary), plan.first_kept),
            None => (plan.previous_summary.as_deref(), conversation.start),
        };
        let first_kept = conversation.cut(keep_tokens).first_kept.max(covered);
        let between = conversation.messages(covered..first_kept);
        let rest = conversation.messages(first_kept..conversation.lines.len());
        let mut parts: Vec<String> = told.map(str::to_owned).into_iter().collect();
        match self {
            Self::Summary => {
                written?;
            }
            Self::Pruned if between.is_empty() => return None,
            Self::Pruned => parts.push(pruned(&between)),
            Self::Dropped if between.is_empty() => return None,
            Self::Dropped => parts.push(tasks(&between)),
            Self::Retold => {
                parts.extend((!between.is_empty()).then(|| tasks(&between)));
                parts.push(retold(&rest));
            }
        }
        let mut files = match written {
            Some(_) => plan.files.clone(),
            None => earlier(conversation).files,
        };
        let keeps = self != Self::Retold;
        let gone = between.iter().chain(rest.iter().filter(|_| !keeps));
        gone.for_each(|message| files.note(message));
        let summary = format!("{}{}", parts.join("\n\n"), files.appendix());
        let kept: u64 = if keeps {
            rest.iter().map(|one| message_tokens(one)).sum()
        } else {
            0
        };
        let line = conversation.lines.get(first_kept).filter(|_| keeps);
        Some(Shortened {
            form: self,
            tokens: kept + text_tokens(&summary) + FRAME_TOKENS,
            summary,
            first_kept: line.map(|line| line.entry.id.clone()),
            files,
        })
    }
}

fn pruned(messages: &[Arc<Message>]) -> String {
    format!(
        "## The conversation up to here\nWhat tools put out is left out; run them again where it \
         is needed.\n\n{}",
        transcript(messages, Detail::PRUNED)
    )
}

/// What the user said: the first words are the task, the last ones hold now.
fn tasks(messages: &[Arc<Message>]) -> String {
    let said: Vec<String> = messages
        .iter()
        .filter_map(|message| match message.as_ref() {
            Message::User(message) => Some(cut(&spoken(&message.content), TASK_UNITS)),
            Message::Assistant(_) | Message::ToolResult(_) => None,
        })
        .collect();
    let missing = said.len().saturating_sub(TASKS_FIRST + TASKS_LAST);
    let mut parts = vec![
        "## What the user asked for\nThe work on it so far is left out, because the conversation \
         became too long. Look at the files before you go on."
            .to_owned(),
    ];
    for (at, text) in said.iter().enumerate() {
        if at < TASKS_FIRST || at >= TASKS_FIRST + missing {
            parts.push(format!("[User]: {text}"));
        }
    }
    parts.join("\n\n")
}

fn retold(messages: &[Arc<Message>]) -> String {
    format!(
        "## The last step\nIt was too long to keep; results are cut.\n\n{}",
        transcript(messages, Detail::FULL)
    )
}
