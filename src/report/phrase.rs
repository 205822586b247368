//! Small phrases: amounts, durations, calls and limits in words.

use serde_json::Value;

use super::neutral::neutral;
use crate::event::{LimitKind, LimitReached};

/// What a call does, in one line: its title, which may begin with its tool.
pub(super) fn called(tool: &str, title: &str) -> String {
    let (tool, title) = (neutral(tool), neutral(title));
    if title.is_empty() || title.starts_with(&tool) {
        return if title.is_empty() { tool } else { title };
    }
    format!("{tool} {title}")
}

pub(super) fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    neutral(line.unwrap_or("failed"))
}

pub(super) fn limit<'a>(limits: &'a Value, name: &str, other: &str) -> Option<&'a Value> {
    limits.get(name).or_else(|| limits.get(other))
}

pub(super) fn spent(limit: &LimitReached) -> String {
    let (value, max) = (limit.value, limit.max);
    match limit.kind {
        LimitKind::Turns => format!("{value} of {max} turns"),
        LimitKind::Cost => format!("{} of {}", dollars(value), dollars(max)),
        LimitKind::Tokens => format!("{value} of {max} tokens"),
        LimitKind::ToolCalls => format!("{value} of {max} tool calls"),
        LimitKind::Repeats => format!("{value} of {max} repeats of a call"),
        LimitKind::DenialsInARow => format!("{value} of {max} denials in a row"),
        LimitKind::Denials => format!("{value} of {max} denials"),
        LimitKind::Time => format!("{} of {}", seconds(value), seconds(max)),
        LimitKind::Idle => format!("{} without a sign of life", seconds(max)),
    }
}

fn seconds(amount: f64) -> String {
    duration((amount * 1_000.0) as u64)
}

/// Dollars with cents, or with what shows of a smaller amount.
pub(crate) fn dollars(amount: f64) -> String {
    if amount == 0.0 || amount >= 0.995 {
        format!("${amount:.2}")
    } else {
        format!("${amount:.4}")
    }
}

/// Milliseconds for people: `15 ms`, `1.2 s`, `3 min 4 s`.
pub(crate) fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        1000..60_000 => format!("{seconds}.{} s", milliseconds % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A number with its thousands apart: `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number and its noun: `1 turn`, `2 turns`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}
