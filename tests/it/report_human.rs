//! What people read while a run goes on.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::io;
use std::sync::{Arc, Mutex};

use agent::event::{
    Emission, EventKind, Heartbeat, JobResult, LimitKind, LimitReached, Reason, RetryEnd,
    ToolErrorStatus,
};
use agent::report::{HumanOptions, PlainSink, Recorder, Style, TerminalSink};
use indicatif::{ProgressDrawTarget, TermLike};
use serde_json::json;

use crate::report_events::*;

fn plain(options_: HumanOptions, emissions: Vec<Emission>, reason: Reason) -> String {
    let shared = Shared::default();
    let sink = PlainSink::new(Box::new(shared.clone()), options_);
    let mut recorder = Recorder::new(options(vec![Box::new(sink)]));
    emissions
        .into_iter()
        .for_each(|emission| recorder.write(emission));
    close(recorder, reason);
    shared.text()
}

fn story() -> Vec<Emission> {
    let calls = [
        ("a", "read", json!({})),
        ("b", "bash", json!({})),
        ("c", "edit", json!({})),
    ];
    let mut emissions = vec![run_start(&["fix"])];
    emissions.extend(
        [
            job_start(),
            turn_start(),
            step_start(),
            retry_start(2),
            EventKind::RetryEnd(RetryEnd {
                retry_id: "retry-1".to_owned(),
                success: true,
                attempts: 2,
                final_error: None,
            }),
            reply(
                "Let me \u{1b}[31mlook\u{1b}[0m.\n::error::fake",
                &calls,
                Some(0.25),
            ),
            request("a", "read", None),
            response("a", "read", "allow", None),
            tool_start("a", "read", json!({})),
            tool_complete("a", "read", "x"),
            tool_start("b", "bash", json!({})),
            tool_error("b", "bash", ToolErrorStatus::Error),
            request("c", "edit", None),
            response(
                "c",
                "edit",
                "refuse",
                Some("permissions.deny[0] Edit(.github/**)"),
            ),
            tool_error("c", "edit", ToolErrorStatus::Denied),
            step_end(),
            warning("the price is a guess"),
            EventKind::LimitWarning(LimitReached {
                kind: LimitKind::Cost,
                value: 1.6,
                max: 2.0,
            }),
            EventKind::Heartbeat(Heartbeat {
                elapsed_ms: 61_000,
                waiting_for: "bash cargo test".to_owned(),
            }),
            step_start(),
            reply("All done.", &[], Some(0.25)),
            step_end(),
            turn_end("All done."),
            diff(&["src/lib.rs"]),
            job_end(Reason::Success, JobResult::default()),
        ]
        .map(in_job),
    );
    emissions
}

/// The closing line's duration is the only thing that time changes.
fn without_time(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &mut lines {
        if let (Some(start), Some(end)) = (line.find(" in "), line.find(" ms: ")) {
            line.replace_range(start..end + 3, " in T");
        }
    }
    lines.join("\n")
}

#[test]
fn plain_lines_tell_the_story() {
    let text = plain(HumanOptions::default(), story(), Reason::Success);
    insta::assert_snapshot!(without_time(&text), @r"
    agent 0.1.0: fix
      model scripted/demo, permissions accept_edits, at most 60 turns, $2.00, 45m
    step 1/60 scripted/demo
    retry overloaded: attempt 2/5 in 2.0 s, as the provider asks
      Let me look. ::error::fake
      ok read it (15 ms): 12 lines
      FAILED bash it (1.2 s): it did not work
      denied edit it: that file is protected (permissions.deny[0] Edit(.github/**))
    ! warning: the price is a guess
    ! limit near: $1.60 of $2.00
    ... still running after 1 min 1 s, waiting for bash cargo test
    step 1/60 scripted/demo, $0.2500 so far
      1 file changed, +3 -1
    ok success in T: 2 turns, 3 tool calls, 246 tokens, $0.5000, exit status 0
    reports in /runs/1: result.json, summary.md, events.jsonl, change.patch
    ");
    assert!(text.is_ascii() && !text.contains('\r') && text.ends_with('\n'));
}

#[test]
fn unicode_and_colour_only_where_asked() {
    let style = Style {
        color: true,
        unicode: true,
    };
    let text = plain(
        HumanOptions {
            style,
            ..HumanOptions::default()
        },
        story(),
        Reason::Success,
    );
    assert!(
        text.contains("\u{1b}[32m  ✓\u{1b}[0m read it (15 ms): 12 lines"),
        "{text}"
    );
    assert!(text.contains("\u{1b}[31m  ✗\u{1b}[0m bash it"), "{text}");
    assert!(
        !text.contains("\u{1b}[31mlook"),
        "the model's own colour is gone"
    );
}

#[test]
fn lines_fit_the_screen() {
    let narrow = HumanOptions {
        width: Some(30),
        ..HumanOptions::default()
    };
    let text = plain(
        narrow,
        vec![run_start(&["fix"]), in_job(warning(&"x".repeat(200)))],
        Reason::Success,
    );
    let line = text.lines().find(|line| line.contains("warning")).unwrap();
    assert_eq!(line, "! warning: xxxxxxxxxxxxxxxx...");
}

#[test]
fn errors_and_hints_and_the_meaning_of_a_failure() {
    let end = JobResult {
        error: Some(error("the provider \u{7}is down")),
        ..JobResult::default()
    };
    let text = plain(
        HumanOptions::default(),
        vec![
            run_start(&["fix"]),
            in_job(job_start()),
            in_job(job_end(Reason::Unavailable, end)),
        ],
        Reason::Unavailable,
    );
    for expect in [
        "error the provider is down\n",
        "hint try again later\n",
        "FAILED unavailable (the provider could not be reached, or kept failing) in ",
        "exit status 69\n",
        "reports in /runs/1: result.json, summary.md, events.jsonl\n",
    ] {
        assert!(text.contains(expect), "{expect} is not in {text}");
    }
}

#[test]
fn several_jobs_are_told_apart() {
    let text = plain(
        HumanOptions::default(),
        vec![
            run_start(&["fix", "other"]),
            emission("other", tool_complete("a", "read", "x")),
        ],
        Reason::Success,
    );
    assert!(
        text.contains("other:   ok read it (15 ms): 12 lines\n"),
        "{text}"
    );
}

#[test]
fn the_patch_is_shown_up_to_a_limit_and_neutralised() {
    let folder = tempfile::tempdir().unwrap();
    let mut patch =
        String::from("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\u{1b}]0;x\u{7}\n ::error::x\n");
    for number in 0..250 {
        patch.push_str(&format!("+line {number}\n"));
    }
    std::fs::write(folder.path().join("change.patch"), patch).unwrap();
    let shown = |style| {
        let options = HumanOptions {
            style,
            run_dir: Some(folder.path().to_owned()),
            ..HumanOptions::default()
        };
        plain(
            options,
            vec![run_start(&["fix"]), in_job(diff(&["x"]))],
            Reason::Success,
        )
    };
    let text = shown(Style::default());
    assert!(
        text.contains("\n-old\n+new\n : :error::x\n+line 0\n"),
        "{text}"
    );
    assert!(
        text.contains("+line 193\n... 56 lines more in change.patch\n"),
        "{text}"
    );
    assert!(text.contains("1 file changed, +3 -1"), "{text}");
    let colored = shown(Style {
        color: true,
        unicode: true,
    });
    assert!(
        colored.contains("\u{1b}[31m-old\u{1b}[0m\n\u{1b}[32m+new\u{1b}[0m\n"),
        "{colored}"
    );
}

#[test]
fn a_closed_standard_error_fails_nothing() {
    struct Closed;
    impl io::Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::BrokenPipe))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let sink = PlainSink::new(Box::new(Closed), HumanOptions::default());
    let mut recorder = Recorder::new(options(vec![Box::new(sink)]));
    recorder.write(run_start(&["fix"]));
    assert_eq!(close(recorder, Reason::Success).result.exit_code, 0);
}

/// A terminal that keeps what is written.
#[derive(Debug, Clone, Default)]
struct Screen(Arc<Mutex<String>>);

impl Screen {
    fn add(&self, text: &str) -> io::Result<()> {
        self.0.lock().unwrap().push_str(text);
        Ok(())
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        60
    }
    fn move_cursor_up(&self, _n: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_down(&self, _n: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_right(&self, _n: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_left(&self, _n: usize) -> io::Result<()> {
        Ok(())
    }
    fn write_line(&self, text: &str) -> io::Result<()> {
        self.add(text)?;
        self.add("\n")
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        self.add(text)
    }
    fn clear_line(&self) -> io::Result<()> {
        self.add("<clear>")
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_terminal_shows_the_current_call_and_keeps_what_is_done() {
    let screen = Screen::default();
    let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
    let sink = TerminalSink::on(target, HumanOptions::default());
    let mut recorder = Recorder::new(options(vec![Box::new(sink)]));
    recorder.write(run_start(&["fix"]));
    recorder.write(in_job(step_start()));
    recorder.write(in_job(text_chunk("thirteen byte")));
    recorder.write(in_job(tool_start("a", "bash", json!({}))));
    recorder.write(in_job(tool_complete("a", "bash", "x")));
    recorder.write(in_job(tool_complete("b", "read", "x")));
    close(recorder, Reason::Success);
    let text = screen.0.lock().unwrap().clone();
    for expect in [
        "step 1/60: waiting for scripted/demo",
        "writing, 13 bytes so far",
        " bash it",
        "  ok bash it (15 ms): 12 lines",
        "  ok read it (15 ms): 12 lines",
        "exit status 0",
    ] {
        assert!(text.contains(expect), "{expect} is not in {text}");
    }
    assert!(
        text.ends_with("<clear>"),
        "the line is gone at the end: {text}"
    );
}

/// A reply, a summary of the conversation, one of a branch, a reply in vain.
#[test]
fn the_cost_so_far_counts_whatever_was_asked() {
    let spent = |event: &str, data: serde_json::Value| -> EventKind {
        serde_json::from_value(json!({"event": event, "data": data})).unwrap()
    };
    let usage = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    let compaction = spent(
        "compact:exec",
        json!({"compactionId": "c", "reason": "manual", "tokenBefore": 9, "tokenCompact": 3,
            "compactRate": 0.3, "usage": usage, "costUsd": 0.5, "models": {}, "aborted": false,
            "willRetry": false}),
    );
    let branch = spent(
        "branch:summary",
        json!({"usage": usage, "costUsd": 1.0, "models": {}}),
    );
    let discarded = spent(
        "reply:discarded",
        json!({"model": "scripted/demo", "errorCode": "truncated", "usage": usage, "costUsd": 2.0}),
    );
    let mut emissions = vec![run_start(&["fix"])];
    let paid = [
        reply("Fine.", &[], Some(0.25)),
        compaction,
        branch,
        discarded,
    ];
    for kind in paid {
        emissions.extend([kind, step_start()].map(in_job));
    }
    let text = plain(HumanOptions::default(), emissions, Reason::Success);
    let sums: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.strip_suffix(" so far")?.rsplit_once(", ")?.1))
        .collect();
    assert_eq!(sums, ["$0.2500", "$0.7500", "$1.75", "$3.75"], "{text}");
}

#[test]
fn limits_are_told_in_their_units() {
    for (kind, value, max, said) in [
        (LimitKind::Turns, 60.0, 60.0, "60 of 60 turns"),
        (LimitKind::Cost, 1.6, 2.0, "$1.60 of $2.00"),
        (LimitKind::Time, 61.002_148, 61.0, "1 min 1 s of 1 min 1 s"),
        (
            LimitKind::Idle,
            300.0,
            300.0,
            "5 min 0 s without a sign of life",
        ),
    ] {
        let reached = EventKind::LimitReached(LimitReached { kind, value, max });
        let emissions = vec![run_start(&["fix"]), in_job(reached)];
        let text = plain(HumanOptions::default(), emissions, Reason::Timeout);
        let line = format!("! limit reached: {said}\n");
        assert!(text.contains(&line), "{text}");
    }
}
