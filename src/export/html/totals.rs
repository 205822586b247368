//! What a session comes to: all branches, what was compacted included.

use std::collections::HashMap;

use crate::message::{AssistantMessage, Message, Usage};
use crate::store::{EntryKind, SessionTree};

use super::layout::{Layout, said};
use super::when;

/// Counts and sums of a session.
#[derive(Default)]
pub(super) struct Totals<'a> {
    /// The session's name, its first prompt, or its id.
    pub(super) title: &'a str,
    pub(super) named: bool,
    pub(super) prompts: u64,
    pub(super) replies: u64,
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) compactions: u64,
    pub(super) branches: u64,
    pub(super) entries: u64,
    pub(super) aside: u64,
    /// From the first to the last entry.
    pub(super) duration_ms: Option<u64>,
    /// In the order in which they first answered.
    pub(super) models: Vec<ModelTotals<'a>>,
    pub(super) all: Spent,
}

/// What one model cost.
pub(super) struct ModelTotals<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    pub(super) spent: Spent,
}

/// Tokens and cost of some replies.
#[derive(Default)]
pub(super) struct Spent {
    pub(super) replies: u64,
    pub(super) usage: Usage,
    /// Replies that used tokens at an unknown price.
    pub(super) unpriced: u64,
}

impl Spent {
    fn add(&mut self, reply: &AssistantMessage) {
        self.replies += 1;
        self.usage.add(&reply.usage);
        self.unpriced += u64::from(is_unpriced(&reply.usage));
    }
}

/// Whether tokens were used at a price that nobody knew.
pub(super) fn is_unpriced(usage: &Usage) -> bool {
    usage.cost.total == 0.0 && usage.total_tokens() > 0
}

impl<'a> Totals<'a> {
    /// Of all entries.
    pub(super) fn of(tree: &'a SessionTree, layout: &Layout<'a>) -> Self {
        let entries = tree.entries();
        let header = tree.header();
        let stamps = entries.iter().map(|entry| entry.timestamp.as_str());
        let mut totals = Self {
            entries: entries.len() as u64,
            aside: (entries.len() - layout.main_count()) as u64,
            branches: layout.branch_count() as u64,
            duration_ms: when::span(stamps.chain([header.timestamp.as_str()])),
            ..Self::default()
        };
        let mut places = HashMap::new();
        let mut first = None;
        for entry in entries {
            match &entry.kind {
                EntryKind::Message(message) => {
                    first = first.or_else(|| said(entry));
                    totals.add(message, &mut places);
                }
                EntryKind::Compaction { .. } => totals.compactions += 1,
                _ => {}
            }
        }
        totals.named = tree.name().is_some();
        totals.title = tree.name().or(first).unwrap_or(&header.id);
        totals
    }

    fn add(&mut self, message: &'a Message, places: &mut HashMap<(&'a str, &'a str), usize>) {
        match message {
            Message::User(_) => self.prompts += 1,
            Message::ToolResult(result) => self.failures += u64::from(result.is_error),
            Message::Assistant(reply) => {
                self.replies += 1;
                self.calls += reply.tool_calls().count() as u64;
                self.all.add(reply);
                let key = (reply.provider.as_str(), reply.model.as_str());
                let at = *places.entry(key).or_insert_with(|| {
                    self.models.push(ModelTotals {
                        provider: key.0,
                        model: key.1,
                        spent: Spent::default(),
                    });
                    self.models.len() - 1
                });
                if let Some(model) = self.models.get_mut(at) {
                    model.spent.add(reply);
                }
            }
        }
    }
}
