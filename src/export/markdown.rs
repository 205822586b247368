//! `summary.md`: the result for people, in GitHub's Markdown.
//!
//! Whatever came from a model, a tool or a repository is data: it stands in
//! code spans, in a fence, or escaped, so that it can neither format, link,
//! mention nor load anything.

use std::fmt::Write;

use crate::event::{FileStatus, LimitKind, ResultDocument};
use crate::report::{cut, duration, grouped, neutral, neutral_line};

/// The most characters of the final text.
const FINAL_TEXT_CHARS_MAX: usize = 20_000;
/// The most rows of a table or list.
const ROWS_MAX: usize = 200;

/// The result as Markdown.
pub fn markdown(result: &ResultDocument) -> String {
    let mut page = Page {
        text: String::new(),
    };
    page.line(&format!(
        "# {}: {}\n",
        escaped(&result.task),
        result.reason.name().replace('_', " ")
    ));
    page.line(&format!("{}.\n", capitalized(result.reason.meaning())));
    page.facts(result);
    page.models(result);
    page.error(result);
    page.jobs(result);
    page.changes(result);
    page.tools(result);
    page.denials(result);
    page.budget(result);
    page.warnings(result);
    page.answer(result);
    page.text
}

struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn section(&mut self, title: &str) {
        self.line(&format!("\n## {title}\n"));
    }

    fn facts(&mut self, result: &ResultDocument) {
        let cost = result
            .cost_usd
            .map_or_else(|| "unknown".to_owned(), |cost| format!("${cost:.4}"));
        let usage = &result.usage;
        let tokens = format!(
            "{} ({} input, {} cached, {} output)",
            grouped(usage.total_tokens()),
            grouped(usage.input.saturating_add(usage.cache_write)),
            grouped(usage.cache_read),
            grouped(usage.output)
        );
        let rows = [
            ("Exit status", result.exit_code.to_string()),
            ("Model", cell(&result.model)),
            ("Started", escaped(&result.started_at)),
            ("Duration", duration(result.duration_ms)),
            ("Turns", result.turns.to_string()),
            ("Retries", result.retries.to_string()),
            ("Tokens", tokens),
            ("Cost", cost),
            ("Run", cell(&result.run_id)),
        ];
        self.line("| | |\n|---|---|");
        for (name, value) in rows {
            self.line(&format!("| {name} | {value} |"));
        }
        let artifacts = &result.artifacts;
        let places = [
            ("Replay of", &result.replay),
            ("Session", &result.session_file),
            ("Patch", &artifacts.patch),
            ("Reports", &artifacts.run_dir),
        ];
        for (name, place) in places {
            if let Some(place) = place {
                self.line(&format!("| {name} | {} |", cell(place)));
            }
        }
    }

    /// The models, when more than one replied.
    fn models(&mut self, result: &ResultDocument) {
        if result.models.len() < 2 {
            return;
        }
        self.section("Models");
        self.line("| Model | Replies | Tokens | Cost |\n|---|---|---|---|");
        for (model, used) in result.models.iter().take(ROWS_MAX) {
            let cost = used
                .cost_usd
                .map_or_else(|| "unknown".to_owned(), |cost| format!("${cost:.4}"));
            self.line(&format!(
                "| {} | {} | {} | {cost} |",
                cell(model),
                used.replies,
                grouped(used.usage.total_tokens())
            ));
        }
    }

    fn error(&mut self, result: &ResultDocument) {
        let Some(error) = &result.error else { return };
        self.section("Error");
        let status = error
            .http_status
            .map_or_else(String::new, |status| format!(" (HTTP {status})"));
        self.line(&format!(
            "{}{status}: {}",
            code(&error.code),
            escaped(&error.message)
        ));
        if !error.hints.is_empty() {
            self.line("");
        }
        for hint in &error.hints {
            self.line(&format!("- {}", escaped(hint)));
        }
    }

    fn jobs(&mut self, result: &ResultDocument) {
        if result.jobs.is_empty() {
            return;
        }
        self.section("Jobs");
        self.line("| Job | Result | Turns | Duration |\n|---|---|---|---|");
        for job in &result.jobs {
            self.line(&format!(
                "| {} | {} | {} | {} |",
                cell(&job.task),
                job.reason.name(),
                job.turns,
                duration(job.duration_ms)
            ));
        }
    }

    fn changes(&mut self, result: &ResultDocument) {
        if result.files_changed.is_empty() {
            return;
        }
        self.section("Changed files");
        self.line("| File | Status | Lines |\n|---|---|---|");
        for file in result.files_changed.iter().take(ROWS_MAX) {
            let status = match file.status {
                FileStatus::Added => "added",
                FileStatus::Modified => "modified",
                FileStatus::Deleted => "deleted",
            };
            self.line(&format!(
                "| {} | {status} | +{} −{} |",
                cell(&file.path),
                file.additions,
                file.deletions
            ));
        }
        self.more(result.files_changed.len());
    }

    fn tools(&mut self, result: &ResultDocument) {
        if result.tool_calls.is_empty() {
            return;
        }
        self.section("Tool calls");
        self.line("| Tool | Calls | Errors | Denied |\n|---|---|---|---|");
        for (tool, count) in &result.tool_calls {
            self.line(&format!(
                "| {} | {} | {} | {} |",
                cell(tool),
                count.count,
                count.errors,
                count.denied
            ));
        }
    }

    fn denials(&mut self, result: &ResultDocument) {
        if result.denials.is_empty() {
            return;
        }
        self.section("Denied calls");
        for denial in result.denials.iter().take(ROWS_MAX) {
            let input = cut(&denial.input.to_string(), 300, "…");
            let mut line = format!(
                "- {} {}: {}",
                code(&denial.tool),
                code(&input),
                escaped(&denial.reason)
            );
            if let Some(rule) = &denial.rule {
                let _ = write!(line, "; rule {}", code(rule));
            }
            if let Some(rule) = &denial.suggested_rule {
                let _ = write!(line, "; {} would allow it", code(rule));
            }
            self.line(&line);
        }
        self.more(result.denials.len());
    }

    fn budget(&mut self, result: &ResultDocument) {
        if result.budget.is_empty() {
            return;
        }
        self.section("Budget");
        self.line("| Budget | Used | Limit |\n|---|---|---|");
        for (kind, spent) in &result.budget {
            let unit = unit(*kind);
            self.line(&format!("| {unit} | {} | {} |", spent.used, spent.limit));
        }
    }

    fn warnings(&mut self, result: &ResultDocument) {
        if result.warnings.is_empty() {
            return;
        }
        self.section("Warnings");
        for warning in result.warnings.iter().take(ROWS_MAX) {
            let message = escaped(&warning.message);
            self.line(&format!("- {}: {message}", code(&warning.code)));
        }
        self.more(result.warnings.len());
    }

    fn answer(&mut self, result: &ResultDocument) {
        if result.final_text.trim().is_empty() {
            return;
        }
        self.section("Final answer");
        let shown: String = result
            .final_text
            .chars()
            .take(FINAL_TEXT_CHARS_MAX)
            .collect();
        let fence = "`".repeat(longest_run(&shown, '`').max(2) + 1);
        self.line(&format!("{fence}text"));
        for line in shown.lines() {
            self.line(&neutral_line(line));
        }
        self.line(&fence);
        if shown.len() < result.final_text.len() {
            self.line("\nThe rest is in `result.json`.");
        }
    }

    fn more(&mut self, all: usize) {
        if all > ROWS_MAX {
            self.line(&format!("\n{} more are in `result.json`.", all - ROWS_MAX));
        }
    }
}

fn unit(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Turns => "Turns",
        LimitKind::Cost => "US dollars",
        LimitKind::Tokens => "Tokens",
        LimitKind::ToolCalls => "Tool calls",
        LimitKind::Repeats => "Repeats of a call",
        LimitKind::DenialsInARow => "Denials in a row",
        LimitKind::Denials => "Denials",
        LimitKind::Time => "Seconds",
        LimitKind::Idle => "Idle seconds",
    }
}

/// A code span that no backtick of the text ends.
fn code(text: &str) -> String {
    let text = neutral(text);
    if text.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A code span in a table, where a pipe would end the cell.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Plain text: every character that Markdown or HTML could take for a mark is
/// escaped, and a mention or a bare link is broken by an invisible joint.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for character in neutral(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '@' => safe.push_str("@\u{2060}"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '!' | '|'
            | '~' => {
                safe.push('\\');
                safe.push(character);
            }
            character => safe.push(character),
        }
    }
    safe.replace("://", ":\u{2060}//")
        .replace("www.", "www\u{2060}.")
}

fn longest_run(text: &str, wanted: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for character in text.chars() {
        run = if character == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    match rest.next() {
        Some(first) => first.to_uppercase().chain(rest).collect(),
        None => String::new(),
    }
}
