//! The section `compaction` of a task file.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use agent::session::Compaction;
use serde_json::json;

use crate::task_case::Case;

fn case(section: &str) -> Case {
    Case::new(format!("version: 1\nprompt: Do it.\n{section}"))
}

#[test]
fn every_key_reaches_the_job_and_none_is_needed() {
    let default = case("").job();
    assert_eq!(default.compaction, Compaction::default());
    assert_eq!(
        default.resolved["compaction"],
        json!({
            "enabled": true,
            "reserveTokens": 16_384,
            "keepRecentTokens": 20_000,
            "maxCompactions": 8,
            "minReduction": 0.2,
        })
    );
    let section = "compaction: {enabled: false, reserve_tokens: 900, keep_recent_tokens: 800, \
                   max_compactions: 0, min_reduction: 0.5}\n";
    let job = case(section).job();
    assert_eq!(
        job.compaction,
        Compaction {
            enabled: false,
            reserve_tokens: 900,
            keep_recent_tokens: 800,
            max_compactions: 0,
            min_reduction: 0.5,
        }
    );
    let partial = case("compaction: {keep_recent_tokens: 800}\n").job();
    assert_eq!(
        partial.compaction,
        Compaction {
            keep_recent_tokens: 800,
            ..Compaction::default()
        }
    );
}

#[test]
fn what_cannot_be_is_refused() {
    for wrong in [
        "reserve_tokens: 0",
        "keep_recent_tokens: 0",
        "keep_recent_tokens: 10000001",
        "max_compactions: -1",
        "max_compactions: 1001",
        "min_reduction: 0.91",
        "min_reduction: -0.1",
        "enabled: 1",
        "small_model: x",
    ] {
        let problems = case(&format!("compaction: {{{wrong}}}\n")).problems();
        assert_eq!(problems.list.len(), 1, "{wrong}: {problems:?}");
        assert_eq!(problems.list[0].line, 3, "{wrong}");
    }
}
