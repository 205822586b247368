//! How a request differs from the recorded one, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use similar::TextDiff;

use super::line::Call;
use super::request::{Head, Offer, Said};

/// Lines of a difference that are shown.
const LINES_MAX: usize = 24;
/// Characters of a shown line.
const LINE_CHARS_MAX: usize = 160;
/// Characters around the place where long lines differ.
const AROUND_CHARS: usize = 60;
/// After this time a difference becomes coarser.
const PATIENCE: Duration = Duration::from_millis(300);

/// A recorded request, put together from those before it.
pub(super) struct Spoken {
    head: Option<Head>,
    messages: Vec<Arc<Value>>,
}

impl Spoken {
    /// The request number `at` of a conversation with these calls.
    pub(super) fn at<'c>(calls: impl Iterator<Item = &'c Call>, at: usize) -> Self {
        let (mut head, mut messages) = (None, Vec::new());
        for call in calls.take(at + 1) {
            let request = &call.request;
            head = request.head.as_ref().or(head);
            messages.truncate(request.kept);
            messages.extend(request.messages.iter().cloned().map(Arc::new));
        }
        Self {
            head: head.cloned(),
            messages,
        }
    }
}

/// How two requests differ.
pub(super) struct Difference {
    /// In words.
    pub(super) text: String,
    /// Whether it is in the result of a tool.
    pub(super) of_result: bool,
}

/// What differs, the most telling first; none when nothing does.
pub(super) fn between(recorded: &Spoken, now: &Said) -> Option<Difference> {
    let mut found = Vec::new();
    if let Some(head) = &recorded.head {
        settings(head, &now.head, &mut found);
    }
    let same_settings = found.is_empty();
    let in_result = messages(&recorded.messages, &now.messages, &mut found);
    let more = found.len().saturating_sub(1);
    let of_result = same_settings && in_result;
    let mut text = found.into_iter().next()?;
    match more {
        0 => {}
        1 => text.push_str("\n(and one more difference)"),
        more => {
            let _ = write!(text, "\n(and {more} more differences)");
        }
    }
    Some(Difference { text, of_result })
}

/// Whether a message is what a tool answered.
pub(super) fn is_result(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str) == Some("tool")
}

/// The newest message of a request, in a few words.
pub(super) fn newest(said: &Said) -> String {
    let Some(last) = said.messages.last() else {
        return String::new();
    };
    let text = render(last);
    let first = text.lines().find(|line| !line.trim().is_empty());
    let shown = cut(first.unwrap_or_default());
    format!(", after {}: {shown}", title(last))
}

fn settings(recorded: &Head, now: &Head, found: &mut Vec<String>) {
    let temperature = |head: &Head| match head.temperature {
        None => "unset".to_owned(),
        Some(temperature) => temperature.to_string(),
    };
    let mut changed = |name: &str, before: String, after: String| {
        if before != after {
            found.push(format!("{name} was {before} and is {after}"));
        }
    };
    changed("the model", recorded.model.clone(), now.model.clone());
    changed(
        "the thinking level",
        recorded.thinking.name().to_owned(),
        now.thinking.name().to_owned(),
    );
    changed(
        "the output limit",
        recorded.max_output_tokens.to_string(),
        now.max_output_tokens.to_string(),
    );
    changed("the temperature", temperature(recorded), temperature(now));
    if recorded.system != now.system {
        found.push(of_text("the system prompt", &recorded.system, &now.system));
    }
    offers(&recorded.tools, &now.tools, found);
    let text = |value: &Option<Value>| value.as_ref().map(pretty).unwrap_or_default();
    let (before, after) = (text(&recorded.response_format), text(&now.response_format));
    if before != after {
        found.push(of_text("the format of the answer", &before, &after));
    }
    if recorded.payload != now.payload {
        let (before, after) = (text(&recorded.payload), text(&now.payload));
        found.push(of_text("the body of a hook", &before, &after));
    }
}

fn offers(recorded: &[Offer], now: &[Offer], found: &mut Vec<String>) {
    let by_name = |offers: &'_ [Offer]| -> BTreeMap<String, Offer> {
        let named = offers
            .iter()
            .map(|offer| (offer.name.clone(), offer.clone()));
        named.collect()
    };
    let (before, after) = (by_name(recorded), by_name(now));
    let missing = |from: &BTreeMap<String, Offer>, other: &BTreeMap<String, Offer>| {
        let names = from.keys().filter(|name| !other.contains_key(*name));
        names.cloned().collect::<Vec<String>>().join(", ")
    };
    for (what, names) in [
        ("no longer offered", missing(&before, &after)),
        ("newly offered", missing(&after, &before)),
    ] {
        if !names.is_empty() {
            found.push(format!("tools {what}: {names}"));
        }
    }
    for (name, offer) in &before {
        if let Some(other) = after.get(name).filter(|other| *other != offer) {
            let text =
                |offer: &Offer| format!("{}\n{}", offer.description, pretty(&offer.parameters));
            let what = format!("the tool {name}");
            found.push(of_text(&what, &text(offer), &text(other)));
        }
    }
}

/// Tells whether the first difference is in the result of a tool.
fn messages(recorded: &[Arc<Value>], now: &[Arc<Value>], found: &mut Vec<String>) -> bool {
    let mut first = None;
    for (number, (before, after)) in (1..).zip(recorded.iter().zip(now)) {
        if before != after {
            first.get_or_insert(after);
            let what = format!("message {number}, {}", title(after));
            found.push(of_text(&what, &render(before), &render(after)));
        }
    }
    let (had, has) = (recorded.len(), now.len());
    let (what, extra) = if had > has {
        ("lacks", recorded.get(has))
    } else {
        ("has, in addition,", now.get(had))
    };
    if let Some(extra) = extra {
        first.get_or_insert(extra);
        let text = render(extra);
        let shown: Vec<String> = text.lines().take(LINES_MAX).map(cut).collect();
        let number = had.min(has) + 1;
        found.push(format!(
            "the request has {has} messages and had {had}; it {what} message {number}, {}:\n{}",
            title(extra),
            shown.join("\n")
        ));
    }
    first.is_some_and(|first| is_result(first))
}

/// What a message is.
fn title(message: &Value) -> String {
    let field = |name: &str| {
        message
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    match field("role") {
        "tool" => format!("the result of {} ({})", field("name"), field("call")),
        "assistant" => "a reply of the model".to_owned(),
        _ => "what the user said".to_owned(),
    }
}

/// A message as lines.
fn render(message: &Value) -> String {
    let mut text = String::new();
    if message.get("error").is_some() {
        text.push_str("[failed]\n");
    }
    let content = message.get("content").and_then(Value::as_array);
    for block in content.into_iter().flatten() {
        let field = |name: &str| block.get(name).and_then(Value::as_str);
        let line = match (field("text"), field("thinking"), field("call")) {
            (Some(said), ..) => said.to_owned(),
            (_, Some(thought), _) => format!("[thinking]\n{thought}"),
            (.., Some(_)) | (None, None, None) => pretty(block),
        };
        text.push_str(&line);
        if block.get("signed").is_some() {
            text.push_str("\n[signed]");
        }
        text.push('\n');
    }
    text
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// The difference of two texts, as lines of which few are shown.
fn of_text(what: &str, recorded: &str, now: &str) -> String {
    let long = |text: &str| {
        text.lines()
            .any(|line| line.chars().count() > LINE_CHARS_MAX)
    };
    if long(recorded) || long(now) {
        return excerpt(what, recorded, now);
    }
    let diff = TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(recorded, now);
    let mut unified = diff.unified_diff();
    let unified = unified.context_radius(2).header("recorded", "now");
    let text = unified.to_string();
    let lines: Vec<&str> = text.lines().collect();
    let mut shown: Vec<String> = lines.iter().take(LINES_MAX).map(|line| cut(line)).collect();
    if lines.len() > LINES_MAX {
        shown.push(format!("… {} more lines", lines.len() - LINES_MAX));
    }
    format!("{what}\n{}", shown.join("\n"))
}

/// Where two texts with long lines begin to differ.
fn excerpt(what: &str, recorded: &str, now: &str) -> String {
    let same = recorded
        .chars()
        .zip(now.chars())
        .take_while(|(one, other)| one == other)
        .count();
    let from = same.saturating_sub(AROUND_CHARS);
    let part = |text: &str| {
        let part: String = text.chars().skip(from).take(2 * AROUND_CHARS).collect();
        part.replace('\n', "⏎")
    };
    format!(
        "{what}, from character {} on\n--- recorded\n+++ now\n-…{}…\n+…{}…",
        same + 1,
        part(recorded),
        part(now)
    )
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}
