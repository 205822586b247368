//! What the model is asked for a summary.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use agent::session::{CompactionPlan, SummaryRequest};

use crate::support::conversation::conversation;

const ROOM: u64 = 100_000;

fn requests(words: &str, keep: u64, instructions: Option<&str>, room: u64) -> Vec<SummaryRequest> {
    let plan = CompactionPlan::new(&conversation(words), keep);
    plan.summary_requests(instructions, 1_000, room)
}

fn texts(words: &str, keep: u64) -> Vec<String> {
    let requests = requests(words, keep, None, ROOM);
    requests.into_iter().map(|request| request.text).collect()
}

#[test]
fn whole_turns_are_summarised_in_sections() {
    let [text] = texts("u5 c5:read=a,edit=b r5 r5 a5 u5 a5", 10)
        .try_into()
        .unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn a_split_turn_has_a_summary_of_its_own() {
    let [history, prefix] = texts("u5 a5 u5 c5:read=a r5 a5", 1).try_into().unwrap();
    insta::assert_snapshot!(prefix);
    assert!(
        history.starts_with("<conversation>\n[User]: 0 "),
        "{history}"
    );
    assert!(!history.contains("[Tool result]"), "{history}");
    let budgets: Vec<u64> = requests("u5 a5 u5 c5:read=a r5 a5", 1, None, ROOM)
        .iter()
        .map(|request| request.output_tokens)
        .collect();
    assert_eq!(budgets, [800, 500]);
}

#[test]
fn a_split_first_turn_is_all_there_is_to_summarise() {
    let [text] = texts("u5 c5:read=a r5 a5", 1).try_into().unwrap();
    assert!(text.contains("## Critical context"), "{text}");
    assert!(text.contains("[Tool result]: 2 "), "{text}");
}

#[test]
fn an_earlier_summary_is_brought_up_to_date() {
    let [text] = texts("u5 a5 u5 S2 a5 u5", 1).try_into().unwrap();
    insta::assert_snapshot!(text);
    // The turn's own part is told on top of the update.
    let [update, prefix] = texts("u5 a5 u5 S2 a5 u5 a5", 1).try_into().unwrap();
    assert!(update.contains("<previous-summary>\nSummary 3.\n</previous-summary>"));
    assert!(!prefix.contains("previous-summary"), "{prefix}");
}

#[test]
fn instructions_are_added_at_the_end() {
    let [request] = requests("u5 a5 u5", 1, Some("keep the dates"), ROOM)
        .try_into()
        .unwrap();
    let end = "Attend above all to this: keep the dates";
    assert!(request.text.ends_with(end), "{}", request.text);
}

#[test]
fn a_result_is_cut_at_two_thousand_units() {
    let [text] = texts("u5 c5:read=a r600 u5", 1).try_into().unwrap();
    let shown = text.split("[Tool result]: ").nth(1).unwrap();
    let shown = shown.split("</conversation>").next().unwrap();
    let (kept, note) = shown.split_once('\n').unwrap();
    assert_eq!(kept.len(), 2_000);
    assert_eq!(note, "[… 400 more characters are left out]\n");
}

#[test]
fn what_does_not_fit_gets_shorter_until_it_does() {
    let words = "u900 c9:read=a r400 c9:read=b r400 c9:read=c r400 a9 u5";
    let estimate = |text: &str| (text.encode_utf16().count() as u64).div_ceil(4);
    // What is shown: results in full, in part, not at all, and then the ends.
    let table = [
        (ROOM, 3, 1_600),
        (2_000, 3, 400),
        (1_300, 0, 0),
        (600, 0, 0),
    ];
    for (room, results, units) in table {
        let [request] = requests(words, 1, None, room).try_into().unwrap();
        let text = &request.text;
        assert_eq!(text.matches("[Tool result]").count(), results, "{room}");
        assert!(estimate(text) <= room, "{room}: {}", estimate(text));
        let shown = text.split("[Tool result]: ").nth(1).unwrap_or_default();
        let shown = shown.lines().next().unwrap_or_default().len();
        assert_eq!(shown, units, "{room}");
        assert!(text.starts_with("<conversation>\n[User]: 0 "), "{text}");
        assert!(text.contains("[Assistant]: 7 "), "{text}");
        assert_eq!(text.contains("middle of the conversation"), room == 600);
    }
}
