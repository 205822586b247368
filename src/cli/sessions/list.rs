//! `agent sessions list`.

use std::fmt::Write;

use clap::Args;
use serde_json::json;

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::report::{counted, cut, neutral};
use crate::store::{self, SessionSummary};

use super::place::PlaceFlags;

/// An id is cut to no less.
const ID_CHARS_MIN: usize = 8;
/// The columns of a session's name or first message.
const TITLE_COLUMNS: usize = 60;

/// Lists the sessions there are, the newest first.
#[derive(Debug, Args)]
pub(super) struct ListCommand {
    #[command(flatten)]
    place: PlaceFlags,
}

impl ListCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let roots = self.place.dirs.roots(console);
        let listing = store::list(&roots);
        for skipped in &listing.skipped {
            let (path, reason) = (skipped.path.display(), &skipped.reason);
            let note = neutral(&format!("{path} is passed over: {reason}"));
            console.complain(&format!("agent: {note}\n"));
        }
        if listing.sessions.is_empty() {
            let places: Vec<String> = roots
                .iter()
                .map(|root| root.display().to_string())
                .collect();
            let note = neutral(&format!("there is no session in {}", places.join(" or ")));
            console.complain(&format!("agent: {note}\n"));
        }
        let document = json!({
            "sessions": listing.sessions.iter().map(document).collect::<Vec<_>>(),
            "skipped": listing.skipped.iter().map(|skipped| json!({
                "path": skipped.path, "reason": skipped.reason,
            })).collect::<Vec<_>>(),
        });
        self.place
            .print(&table(&listing.sessions), &document, console)
    }
}

fn document(session: &SessionSummary) -> serde_json::Value {
    json!({
        "id": session.id,
        "path": session.path,
        "cwd": session.cwd,
        "created": session.created,
        "modified": session.modified,
        "name": session.name,
        "firstMessage": session.first_message,
        "messages": session.messages,
        "parentSession": session.parent_session,
    })
}

fn table(sessions: &[SessionSummary]) -> String {
    let id_chars = clear_prefix(sessions);
    let rows: Vec<[String; 4]> = sessions
        .iter()
        .map(|session| {
            let title = session.name.as_ref().or(session.first_message.as_ref());
            let title = title.map_or_else(|| "(nothing said)".to_owned(), |text| neutral(text));
            [
                neutral(&session.id.chars().take(id_chars).collect::<String>()),
                minute(&session.modified),
                counted(session.messages as u64, "message"),
                cut(&title, TITLE_COLUMNS, "…"),
            ]
        })
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for ([id, modified, messages, title], session) in rows.iter().zip(sessions) {
        let [first, second, third] = widths;
        let _ = writeln!(
            text,
            "{id:first$}  {modified:second$}  {messages:>third$}  {title}\n{:first$}  in {}",
            "",
            neutral(&session.cwd)
        );
    }
    text
}

/// How many characters of the ids tell them apart.
fn clear_prefix(sessions: &[SessionSummary]) -> usize {
    let mut ids: Vec<&str> = sessions.iter().map(|session| session.id.as_str()).collect();
    ids.sort_unstable();
    let shared = ids.windows(2).map(|pair| match pair {
        [one, other] if one != other => {
            let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
            same.count() + 1
        }
        _ => 0,
    });
    shared.max().unwrap_or(0).max(ID_CHARS_MIN)
}

/// `2026-11-21 20:01` of a time that is written in full.
fn minute(timestamp: &str) -> String {
    match timestamp.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => "unknown".to_owned(),
    }
}
