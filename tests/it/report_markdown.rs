//! `summary.md` says what happened and lets no text out of its place.

use agent::event::{JobResult, Reason, ResultDocument, ToolErrorStatus};
use agent::export::markdown;
use serde_json::json;

use crate::report_events::*;

fn result() -> ResultDocument {
    let (report, _) = recorded(vec![
        job_start(),
        reply("", &[("a", "edit", json!({"path": "a|b`c"}))], Some(0.25)),
        request("a", "edit", Some("Edit(a)")),
        response("a", "edit", "refuse", Some("permissions.deny[0] Edit(**)")),
        tool_error("a", "edit", ToolErrorStatus::Denied),
        warning("<img src=x> ![a](http://evil) @team | *bold*"),
        turn_end("The answer\n```\n<script>\n::error::x"),
        diff(&["src/li|b.rs"]),
        job_end(
            Reason::Denied,
            JobResult {
                error: Some(error("it was\n# denied")),
                session_file: Some("session.jsonl".to_owned()),
                ..JobResult::default()
            },
        ),
    ]);
    ResultDocument {
        started_at: "2026-11-21T20:01:02.345Z".to_owned(),
        duration_ms: 61_001,
        reason: Reason::Denied,
        exit_code: 3,
        ..report.result
    }
}

#[test]
fn a_summary_has_the_facts_and_escapes_the_rest() {
    let text = markdown(&result()).replace('\u{2060}', "<joint>");
    insta::assert_snapshot!(text, @r#"
    # fix: denied

    A permission denial stopped the run.

    | | |
    |---|---|
    | Exit status | 3 |
    | Model | `scripted/demo` |
    | Started | 2026-11-21T20:01:02.345Z |
    | Duration | 1 min 1 s |
    | Turns | 1 |
    | Retries | 0 |
    | Tokens | 123 (100 input, 3 cached, 20 output) |
    | Cost | $0.2500 |
    | Run | `run-1` |
    | Session | `session.jsonl` |
    | Patch | `change.patch` |
    | Reports | `/runs/1` |

    ## Error

    `overloaded` (HTTP 529): it was \# denied

    - try again later

    ## Changed files

    | File | Status | Lines |
    |---|---|---|
    | `src/li\|b.rs` | modified | +3 −1 |

    ## Tool calls

    | Tool | Calls | Errors | Denied |
    |---|---|---|---|
    | `edit` | 1 | 1 | 1 |

    ## Denied calls

    - `edit` ``{"path":"a|b`c"}``: that file is protected; rule `permissions.deny[0] Edit(**)`; `Edit(a)` would allow it

    ## Warnings

    - `odd`: &lt;img src=x&gt; \!\[a\]\(http:<joint>//evil\) @<joint>team \| \*bold\*

    ## Final answer

    ````text
    The answer
    ```
    <script>
    : :error::x
    ````
    "#);
}

#[test]
fn what_did_not_happen_has_no_section() {
    let (report, _) = recorded(vec![]);
    let text = markdown(&report.result);
    assert!(!text.contains("## "), "{text}");
    assert!(
        text.starts_with("# fix: success\n\nThe task was done.\n"),
        "{text}"
    );
}

#[test]
fn long_lists_and_texts_are_cut_with_a_pointer() {
    let mut long = result();
    long.final_text = "x".repeat(30_000);
    long.files_changed = (0..250).map(|n| changed(&format!("f{n}"))).collect();
    let text = markdown(&long);
    assert!(text.contains("50 more are in `result.json`."));
    assert!(text.contains("The rest is in `result.json`."));
    assert!(text.len() < 40_000);
}
