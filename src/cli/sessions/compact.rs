//! `agent sessions compact`: what a compaction of a kept conversation would do.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::session::{Compaction, CompactionPlan, EstimatedTokens};
use crate::store::{SessionTree, Store};

use super::Format;
use crate::cli::console::Console;
use crate::cli::exit::Exit;

/// Summarises the older part of a conversation.
#[derive(Debug, Args)]
pub(super) struct CompactCommand {
    /// The session file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only tells what would be summarised and what would stay; calls no model
    /// and leaves the file as it is.
    #[arg(long, required = true)]
    dry_run: bool,

    /// About how many of the newest tokens stay as they are.
    #[arg(long, value_name = "N", default_value_t = Compaction::default().keep_recent_tokens)]
    keep_recent_tokens: u64,

    /// What standard output gets.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    output_format: Format,
}

impl CompactCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let tree = match Store::read(&self.file) {
            Ok(tree) => tree,
            Err(error) => return super::place::refuse(&error, console),
        };
        let preview = Preview::of(&tree, self.keep_recent_tokens);
        console.print(&match self.output_format {
            Format::Text => preview.text(&self.file),
            Format::Json => format!("{}\n", serde_json::json!(preview)),
        });
        Exit::Done
    }
}

/// What a compaction would do. Indices count the entries after the header on
/// the path to the leaf, from 0.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Preview {
    entries: usize,
    context_messages: usize,
    estimated_tokens: EstimatedTokens,
    tokens_before: u64,
    first_kept_index: usize,
    turn_start_index: Option<usize>,
    split_turn: bool,
    summarise: usize,
    prefix: usize,
    files_read: usize,
    files_modified: usize,
}

impl Preview {
    fn of(tree: &SessionTree, keep_recent_tokens: u64) -> Self {
        let plan = CompactionPlan::new(tree, keep_recent_tokens);
        Self {
            entries: plan.entries,
            context_messages: tree.messages().len(),
            estimated_tokens: EstimatedTokens::of(tree.messages()),
            tokens_before: plan.tokens_before,
            first_kept_index: plan.first_kept,
            turn_start_index: plan.turn_start,
            split_turn: plan.turn_start.is_some(),
            summarise: plan.history.len(),
            prefix: plan.prefix.len(),
            files_read: plan.files.read.len(),
            files_modified: plan.files.modified.len(),
        }
    }

    fn text(&self, file: &Path) -> String {
        let estimate = &self.estimated_tokens;
        let cut = match (self.summarise + self.prefix, self.turn_start_index) {
            (0, _) => "nothing to compact".to_owned(),
            (_, None) => format!("entry {} is the first that stays", self.first_kept_index),
            (_, Some(start)) => format!(
                "entry {} is the first that stays, in a turn that begins at entry {start}",
                self.first_kept_index
            ),
        };
        format!(
            "{}\n  \
             session     {} entries, {} messages in the context\n  \
             estimate    {} tokens: {} user, {} assistant, {} tool results\n  \
             context     {} tokens\n  \
             cut         {cut}\n  \
             summarised  {} messages of whole turns, {} of a split turn\n  \
             files       {} read, {} modified\n",
            file.display(),
            self.entries,
            self.context_messages,
            estimate.total,
            estimate.user,
            estimate.assistant,
            estimate.tool_result,
            self.tokens_before,
            self.summarise,
            self.prefix,
            self.files_read,
            self.files_modified,
        )
    }
}
