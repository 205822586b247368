//! `agent sessions compact`: a summary in the place of the older part of a kept
//! conversation, or what it would do.

use std::path::Path;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::session::{Compacted, Compaction, CompactionPlan, EstimatedTokens};
use crate::store::SessionTree;

use super::place::{Opened, PlaceFlags, SessionArgument};
use super::summarise::{self, Order};
use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::flags::ProvidersFlag;

/// Puts a summary in the place of the older part of a conversation, for the
/// model that goes on with it. Nothing is deleted from the file.
#[derive(Debug, Args)]
pub(super) struct CompactCommand {
    #[command(flatten)]
    session: SessionArgument,

    /// Only tells what would be summarised and what would stay; calls no model
    /// and leaves the file as it is.
    #[arg(long)]
    dry_run: bool,

    /// About how many of the newest tokens stay as they are.
    #[arg(long, value_name = "N", default_value_t = Compaction::default().keep_recent_tokens)]
    keep_recent_tokens: u64,

    /// What the summary should attend to.
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,

    /// The model that writes the summary, as agent run takes it; by default the
    /// session's own.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Replaces the provider's base URL.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    #[command(flatten)]
    providers: ProvidersFlag,

    #[command(flatten)]
    place: PlaceFlags,
}

impl CompactCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let opened = match self.place.dirs.open(&self.session, console) {
            Ok(opened) => opened,
            Err(exit) => return exit,
        };
        if self.dry_run {
            let preview = Preview::of(&opened.tree, self.keep_recent_tokens);
            let text = preview.text(&opened.path);
            return self.place.print(&text, &json!(preview), console);
        }
        let order = Order {
            model: self.model.as_deref(),
            base_url: self.base_url.as_deref(),
            providers: &self.providers,
            keep_recent_tokens: self.keep_recent_tokens,
            instructions: self.instructions.as_deref(),
        };
        match summarise::compact(&opened, &order, console) {
            Ok(compacted) => self.tell(&opened, &compacted, console),
            Err(exit) => exit,
        }
    }

    fn tell(&self, opened: &Opened, compacted: &Compacted, console: &Console) -> Exit {
        let Compacted {
            entry_id,
            summary,
            tokens_before,
            tokens_after,
        } = compacted;
        let document = json!({
            "path": opened.path,
            "entryId": entry_id,
            "tokensBefore": tokens_before,
            "tokensAfter": tokens_after,
            "summary": summary,
        });
        let text = format!(
            "{}: {tokens_before} to about {tokens_after} tokens\n\n{summary}\n",
            opened.path.display()
        );
        self.place.print(&text, &document, console)
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
