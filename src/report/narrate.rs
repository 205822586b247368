//! Events in words: the lines that people read while a run goes on, the same on
//! a terminal and in a CI log.

use std::collections::HashMap;

use serde_json::Value;

use super::neutral::neutral;
use super::phrase::{called, counted, dollars, duration, first_line, grouped, limit, spent};
use super::screen::{HumanOptions, Screen, Tone};
use crate::event::{
    CompactExec, Event, EventKind, MessageComplete, MessageSource, Outcome, PermissionResponse,
    ResultDocument, RetrySource, RetryStart, RunStart, StepStart, ToolComplete, ToolError,
    ToolErrorStatus,
};

/// Lines of an error's message, behind the first, that are shown.
const ERROR_LINES_MAX: usize = 40;

/// Turns events into lines.
pub(super) struct Narrator {
    screen: Screen,
    several_jobs: bool,
    max_turns: Option<u64>,
    cost_usd: Option<f64>,
    titles: HashMap<String, String>,
    refusals: HashMap<String, String>,
    patch: Option<String>,
    status: String,
}

impl Narrator {
    pub(super) fn new(options: HumanOptions) -> Self {
        Self {
            screen: Screen::new(options),
            several_jobs: false,
            max_turns: None,
            cost_usd: Some(0.0),
            titles: HashMap::new(),
            refusals: HashMap::new(),
            patch: None,
            status: "starting".to_owned(),
        }
    }

    /// What goes on now, for a progress line.
    pub(super) fn status(&self) -> String {
        self.screen.fitted(&self.status)
    }

    /// The lines that `event` is worth; often none.
    pub(super) fn lines(&mut self, event: &Event) -> Vec<String> {
        let mut lines = Vec::new();
        self.narrate(event, &mut lines);
        if let (true, Some(job)) = (self.several_jobs, &event.place.job) {
            let job = neutral(job);
            for line in &mut lines {
                line.insert_str(0, &format!("{job}: "));
            }
        }
        lines
    }

    fn narrate(&mut self, event: &Event, lines: &mut Vec<String>) {
        match &event.kind {
            EventKind::RunStart(start) => self.run_start(start, lines),
            EventKind::StepStart(start) => self.step_start(event, start, lines),
            EventKind::MessageComplete(message) => self.reply(message, lines),
            EventKind::PermissionResponse(response) => self.response(response),
            EventKind::ToolStart(start) => {
                let title = called(&start.tool_name, &start.title);
                self.status.clone_from(&title);
                self.titles.insert(start.tool_call_id.clone(), title);
            }
            EventKind::ToolComplete(end) => self.tool_complete(end, lines),
            EventKind::ToolError(error) => self.tool_error(error, lines),
            EventKind::RetryStart(retry) => self.retry(retry, lines),
            EventKind::RetryEnd(end) if !end.success => {
                let error = end.final_error.as_deref().unwrap_or("the call failed");
                let text = format!(
                    "gave up after {} attempts: {}",
                    end.attempts,
                    neutral(error)
                );
                lines.push(self.screen.line(Tone::Bad, self.screen.cross(), &text));
            }
            EventKind::LimitWarning(limit) => {
                let text = format!("limit near: {}", spent(limit));
                lines.push(self.screen.line(Tone::Warn, "!", &text));
            }
            EventKind::LimitReached(limit) => {
                let text = format!("limit reached: {}", spent(limit));
                lines.push(self.screen.line(Tone::Bad, "!", &text));
            }
            EventKind::LoopDetected(found) => {
                let text = format!(
                    "the same {} call {} times in a row",
                    neutral(&found.tool_name),
                    found.count
                );
                lines.push(self.screen.line(Tone::Warn, "!", &text));
            }
            EventKind::Warning(warning) => {
                let text = format!("warning: {}", neutral(&warning.message));
                lines.push(self.screen.line(Tone::Warn, "!", &text));
            }
            EventKind::SessionError(error) => {
                let text = format!("error: {}", neutral(&error.error.message));
                lines.push(self.screen.line(Tone::Bad, self.screen.cross(), &text));
            }
            EventKind::SessionInterrupted(cut_short) => {
                let text = format!("interrupted: {}", neutral(&cut_short.content));
                lines.push(self.screen.line(Tone::Warn, "!", &text));
            }
            EventKind::Diff(diff) => self.patch.clone_from(&diff.patch_path),
            EventKind::RunEnd(end) => self.run_end(&end.result, lines),
            kind => self.narrate_session(kind, lines),
        }
    }

    /// What happens around the conversation.
    fn narrate_session(&mut self, kind: &EventKind, lines: &mut Vec<String>) {
        match kind {
            EventKind::SessionResumed(resumed) => {
                let id = neutral(&resumed.session_id);
                let mut text = format!("session {id}, {} entries", resumed.entries);
                if resumed.repaired_bytes > 0 {
                    let torn = counted(resumed.repaired_bytes, "byte");
                    text.push_str(&format!("; {torn} of a torn last line were cut off"));
                }
                lines.push(self.screen.line(Tone::Plain, "resumed", &text));
            }
            EventKind::CompactStart(_) => {
                "compacting the conversation".clone_into(&mut self.status);
            }
            EventKind::CompactExec(compaction) => self.compaction(compaction, lines),
            EventKind::ReplyDiscarded(discarded) => self.spend(discarded.cost_usd),
            EventKind::BranchSummary(summary) => self.spend(summary.cost_usd),
            EventKind::MessageUser(said) if said.source == MessageSource::Repair => {
                let text = "the answer does not fit the response schema; it is asked for again";
                lines.push(self.screen.line(Tone::Warn, "!", text));
            }
            EventKind::ModelFallback(fallback) => {
                let (from, to) = (neutral(&fallback.from), neutral(&fallback.to));
                let text = format!("{to} takes over from {from}: {}", neutral(&fallback.reason));
                self.status = format!("waiting for {to}");
                lines.push(self.screen.line(Tone::Warn, "fallback", &text));
            }
            EventKind::HookError(error) => {
                let (name, point) = (neutral(&error.name), neutral(&error.hook));
                let text = format!("hook {name} ({point}): {}", neutral(&error.error));
                lines.push(self.screen.line(Tone::Warn, "!", &text));
            }
            _ => {}
        }
    }

    /// The line of a heartbeat, for readers without a moving progress line.
    pub(super) fn heartbeat(&self, elapsed_ms: u64, waiting_for: &str) -> String {
        let text = format!(
            "still running after {}, waiting for {}",
            duration(elapsed_ms),
            neutral(waiting_for)
        );
        self.screen.line(Tone::Dim, self.screen.dots(), &text)
    }

    fn run_start(&mut self, start: &RunStart, lines: &mut Vec<String>) {
        self.several_jobs = start.jobs.len() > 1;
        self.max_turns = limit(&start.limits, "max_turns", "maxTurns").and_then(Value::as_u64);
        let jobs: Vec<String> = start.jobs.iter().map(|job| neutral(job)).collect();
        lines.push(self.screen.line(
            Tone::Bold,
            "agent",
            &format!("{}: {}", neutral(&start.agent_version), jobs.join(", ")),
        ));
        let mut facts = vec![
            format!("model {}", neutral(&start.model)),
            format!("permissions {}", neutral(&start.permission_mode)),
        ];
        if let Some(cassette) = &start.replay {
            facts.push(format!("replay of {}", neutral(cassette)));
        }
        if let Some(turns) = self.max_turns {
            facts.push(format!("at most {turns} turns"));
        }
        let cost = limit(&start.limits, "max_cost_usd", "maxCostUsd");
        if let Some(cost) = cost.and_then(Value::as_f64) {
            facts.push(dollars(cost));
        }
        match limit(&start.limits, "timeout", "timeout_s") {
            Some(Value::String(text)) => facts.push(neutral(text)),
            Some(Value::Number(seconds)) => facts.push(format!("{seconds} s")),
            _ => {}
        }
        lines.push(self.screen.line(Tone::Dim, " ", &facts.join(", ")));
    }

    fn step_start(&mut self, event: &Event, start: &StepStart, lines: &mut Vec<String>) {
        let step = event.place.step.unwrap_or(0);
        let count = match self.max_turns {
            Some(most) => format!("step {step}/{most}"),
            None => format!("step {step}"),
        };
        let closing = if start.closing { " (closing)" } else { "" };
        let mut text = format!("{}{closing}", neutral(&start.model));
        if let Some(cost) = self.cost_usd.filter(|cost| *cost > 0.0) {
            text.push_str(&format!(", {} so far", dollars(cost)));
        }
        self.status = format!("{count}: waiting for {text}");
        lines.push(self.screen.line(Tone::Accent, &count, &text));
    }

    fn spend(&mut self, cost_usd: Option<f64>) {
        self.cost_usd = self.cost_usd.zip(cost_usd).map(|(sum, cost)| sum + cost);
    }

    fn reply(&mut self, message: &MessageComplete, lines: &mut Vec<String>) {
        self.spend(message.cost_usd);
        // The final answer belongs to standard output.
        if message.has_tool_calls && !message.content.trim().is_empty() {
            lines.push(
                self.screen
                    .line(Tone::Plain, " ", &neutral(&message.content)),
            );
        }
    }

    fn response(&mut self, response: &PermissionResponse) {
        if response.selected == "refuse" {
            let mut why = neutral(&response.reason);
            if let Some(rule) = &response.rule {
                why.push_str(&format!(" ({})", neutral(rule)));
            }
            self.refusals.insert(response.tool_call_id.clone(), why);
        }
    }

    fn tool_complete(&mut self, end: &ToolComplete, lines: &mut Vec<String>) {
        let mut text = self.title(&end.tool_call_id, &end.tool_name, &end.title);
        text.push_str(&format!(" ({})", duration(end.duration_ms)));
        let summary = neutral(&end.summary);
        if !summary.is_empty() {
            text.push_str(&format!(": {summary}"));
        }
        let mark = self.screen.check();
        lines.push(self.screen.line(Tone::Good, &format!("  {mark}"), &text));
    }

    fn tool_error(&mut self, error: &ToolError, lines: &mut Vec<String>) {
        let refusal = self.refusals.remove(&error.tool_call_id);
        let mut text = self.title(&error.tool_call_id, &error.tool_name, &error.title);
        let denied = error.status == ToolErrorStatus::Denied;
        if !denied {
            text.push_str(&format!(" ({})", duration(error.duration_ms)));
        }
        let what = match error.status {
            ToolErrorStatus::Error => match error.exit_code {
                Some(code) => format!("exit status {code}"),
                None => first_line(&error.content),
            },
            ToolErrorStatus::Denied => refusal.unwrap_or_else(|| first_line(&error.content)),
            ToolErrorStatus::InvalidInput => {
                format!("bad arguments: {}", first_line(&error.content))
            }
            ToolErrorStatus::NotFound => "no such tool".to_owned(),
            ToolErrorStatus::Timeout => "out of time".to_owned(),
            ToolErrorStatus::Aborted => "aborted".to_owned(),
            ToolErrorStatus::Skipped => "skipped".to_owned(),
        };
        text.push_str(&format!(": {what}"));
        let (tone, mark) = if denied {
            (Tone::Warn, "  denied".to_owned())
        } else {
            (Tone::Bad, format!("  {}", self.screen.cross()))
        };
        lines.push(self.screen.line(tone, &mark, &text));
    }

    fn retry(&mut self, retry: &RetryStart, lines: &mut Vec<String>) {
        let asked = match retry.source {
            RetrySource::RetryAfter => ", as the provider asks",
            RetrySource::Backoff => "",
        };
        let text = format!(
            "{}: attempt {}/{} in {}{asked}",
            neutral(&retry.error_message),
            retry.attempt,
            retry.max_attempts,
            duration(retry.delay_ms)
        );
        self.status = format!("waiting to try again, attempt {}", retry.attempt);
        lines.push(self.screen.line(Tone::Warn, "retry", &text));
    }

    fn compaction(&mut self, compaction: &CompactExec, lines: &mut Vec<String>) {
        self.spend(compaction.cost_usd);
        let (tone, text) = match &compaction.err_msg {
            None => {
                let (before, after) = (compaction.token_before, compaction.token_compact);
                let text = format!("{} to {} tokens", grouped(before), grouped(after));
                (Tone::Plain, text)
            }
            Some(error) => (Tone::Warn, neutral(error)),
        };
        lines.push(self.screen.line(tone, "compacted", &text));
    }

    fn run_end(&mut self, result: &ResultDocument, lines: &mut Vec<String>) {
        lines.extend(self.screen.patch(self.patch.as_deref()));
        let (mut added, mut removed) = (0, 0);
        for file in &result.files_changed {
            added += file.additions;
            removed += file.deletions;
        }
        if !result.files_changed.is_empty() {
            let files = counted(result.files_changed.len() as u64, "file");
            let text = format!("{files} changed, +{added} -{removed}");
            lines.push(self.screen.line(Tone::Plain, " ", &text));
        }
        if let Some(error) = &result.error {
            let mut message = error.message.lines();
            let first = neutral(message.next().unwrap_or_default());
            lines.push(self.screen.uncut(Tone::Bad, "error", &first));
            // A difference keeps its lines.
            for line in message.take(ERROR_LINES_MAX) {
                lines.push(self.screen.line(Tone::Plain, "     ", &neutral(line)));
            }
            for hint in &error.hints {
                lines.push(self.screen.uncut(Tone::Plain, "hint", &neutral(hint)));
            }
        }
        lines.push(self.closing(result));
        if let Some(folder) = &result.artifacts.run_dir {
            let named = ["result.json", "summary.md", "events.jsonl"].into_iter();
            let more = [&result.session_file, &result.artifacts.patch];
            let files: Vec<String> = named
                .chain(more.into_iter().flatten().map(String::as_str))
                .map(neutral)
                .collect();
            let text = format!("in {}: {}", neutral(folder), files.join(", "));
            lines.push(self.screen.uncut(Tone::Dim, "reports", &text));
        }
    }

    fn closing(&self, result: &ResultDocument) -> String {
        let (tone, mark) = match result.outcome {
            Outcome::Success | Outcome::Skip => (Tone::Good, self.screen.check()),
            Outcome::Failure | Outcome::Error | Outcome::Timeout | Outcome::Cancellation => {
                (Tone::Bad, self.screen.cross())
            }
        };
        let calls: u32 = result.tool_calls.values().map(|count| count.count).sum();
        let cost = result
            .cost_usd
            .map_or_else(|| "cost unknown".to_owned(), dollars);
        let mut text = result.reason.name().to_owned();
        if result.outcome != Outcome::Success {
            text.push_str(&format!(" ({})", result.reason.meaning()));
        }
        text.push_str(&format!(
            " in {}: {}, {}, {} tokens, {cost}, exit status {}",
            duration(result.duration_ms),
            counted(result.turns.into(), "turn"),
            counted(calls.into(), "tool call"),
            grouped(result.usage.total_tokens()),
            result.exit_code
        ));
        self.screen.uncut(tone, mark, &text)
    }

    fn title(&mut self, id: &str, tool: &str, title: &str) -> String {
        self.titles
            .remove(id)
            .unwrap_or_else(|| called(tool, title))
    }
}
