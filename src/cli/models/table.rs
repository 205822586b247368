//! The models as a table, for people.

use std::fmt::Write;

use crate::model::{Price, ThinkingLevel};

use super::document::ModelEntry;

/// What stands above the columns.
const HEAD: [&str; 7] = [
    "MODEL",
    "WINDOW",
    "REPLY",
    "$ IN/OUT/CACHED",
    "THINKING",
    "IMAGES",
    "KEY",
];
/// The columns between two cells.
const GAP: usize = 2;
/// A terminal that leaves fewer columns for ids gets each on a line of its own.
const ID_COLUMNS_MIN: usize = 28;
/// What then stands before the other columns.
const INDENT: usize = 2;

/// The table, at most `width` columns wide where that can be: an id that is too
/// long for its column has a line of its own, because whoever reads it wants to
/// copy it.
pub(super) fn text(models: &[ModelEntry], width: Option<u16>) -> String {
    if models.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 7]> = std::iter::once(HEAD.map(str::to_owned))
        .chain(models.iter().map(row))
        .collect();
    let mut widths = [0; 7];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let [id_width, others @ ..] = widths;
    let taken: usize = others.iter().map(|width| width + GAP).sum();
    let room = width.map_or(id_width, |width| usize::from(width).saturating_sub(taken));
    let id_width = match room {
        room if room >= id_width => id_width,
        room if room >= ID_COLUMNS_MIN => room,
        _ => INDENT,
    };
    let mut text = String::new();
    for row in &rows {
        let [id, window, reply, price, thinking, images, key] = row;
        let [w1, w2, w3, w4, w5, _] = others;
        let mut first = id.as_str();
        if id.chars().count() > id_width {
            let _ = writeln!(text, "{id}");
            first = "";
        }
        let line = format!(
            "{first:id_width$}  {window:>w1$}  {reply:>w2$}  {price:w3$}  {thinking:w4$}  \
             {images:w5$}  {key}"
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn row(model: &ModelEntry) -> [String; 7] {
    let assumed = if model.limits_known { "" } else { "?" };
    [
        model.id.clone(),
        format!("{}{assumed}", tokens(model.context_window)),
        format!("{}{assumed}", tokens(model.max_output_tokens)),
        model.price.as_ref().map_or_else(|| "?".to_owned(), price),
        thinking(&model.thinking),
        if model.images { "yes" } else { "-" }.to_owned(),
        match (model.key.present, model.key.needed) {
            (true, _) => "yes",
            (false, true) => "no",
            (false, false) => "-",
        }
        .to_owned(),
    ]
}

/// A number of tokens in three digits or so.
fn tokens(count: u64) -> String {
    match count {
        ..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}K", (count + 500) / 1_000),
        _ => {
            let hundredths = (count + 5_000) / 10_000;
            let (whole, rest) = (hundredths / 100, hundredths % 100);
            let text = format!("{whole}.{rest:02}");
            format!("{}M", text.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

/// Input, output and cached input; `+` where a long prompt costs more.
fn price(price: &Price) -> String {
    let all = [price.input, price.output, price.cache_read];
    let tiers = if price.tiers.is_empty() { "" } else { "+" };
    if all == [0.0; 3] && price.tiers.is_empty() {
        return "free".to_owned();
    }
    let [input, output, cached] = all.map(|dollars| {
        let text = format!("{dollars:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    });
    format!("{input}/{output}/{cached}{tiers}")
}

/// The levels, neighbours as a range: `off,low-high`.
fn thinking(levels: &[ThinkingLevel]) -> String {
    if levels.iter().all(|level| *level == ThinkingLevel::Off) {
        return "-".to_owned();
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (at, level) in ThinkingLevel::ALL.iter().enumerate() {
        if !levels.contains(level) {
            continue;
        }
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == at => *end = at,
            _ => ranges.push((at, at)),
        }
    }
    let name = |at: usize| ThinkingLevel::ALL.get(at).map_or("", |level| level.name());
    let ranges: Vec<String> = ranges
        .into_iter()
        .map(|(start, end)| match end - start {
            0 => name(start).to_owned(),
            1 => format!("{},{}", name(start), name(end)),
            _ => format!("{}-{}", name(start), name(end)),
        })
        .collect();
    ranges.join(",")
}
