//! `agent exit-codes`: the table of reasons.

use clap::Args;
use serde_json::json;

use crate::event::{Reason, Rerun};

use super::console::Console;
use super::exit::Exit;

/// Lists the exit codes.
#[derive(Debug, Args)]
pub(super) struct ExitCodesCommand {
    /// As a JSON array.
    #[arg(long)]
    json: bool,
}

impl ExitCodesCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        if self.json {
            let rows: Vec<_> = Reason::ALL
                .iter()
                .map(|reason| {
                    json!({
                        "code": reason.exit_code(),
                        "reason": reason.name(),
                        "outcome": reason.outcome(),
                        "meaning": reason.meaning(),
                        "rerun": reason.rerun(),
                    })
                })
                .collect();
            console.print(&format!("{:#}\n", serde_json::Value::Array(rows)));
            return Exit::Done;
        }
        let mut text = format!(
            "{:>4}  {:<15} {:<11} meaning\n",
            "code", "reason", "run again"
        );
        for reason in Reason::ALL {
            text.push_str(&format!(
                "{:>4}  {:<15} {:<11} {}\n",
                reason.exit_code(),
                reason.name(),
                rerun(reason.rerun()),
                reason.meaning()
            ));
        }
        console.print(&text);
        Exit::Done
    }
}

fn rerun(rerun: Rerun) -> &'static str {
    match rerun {
        Rerun::NotNeeded => "-",
        Rerun::No => "no",
        Rerun::Yes => "yes",
        Rerun::Later => "later",
        Rerun::Maybe => "maybe",
    }
}
