//! How a decision is told: the text for a person, the JSON for a program.

use serde_json::{Value, json};

use crate::policy::{Decision, Explanation, Verdict};
use crate::report::neutral_text;

/// The decision by the task's own words: an ask rule stays visible, though
/// nobody is there to be asked.
pub(super) fn word(decision: &Decision) -> &'static str {
    let asked = decision.rule.as_ref().is_some_and(|rule| {
        rule.starts_with("permissions.ask")
            || rule.starts_with("policy.ask")
            || rule.starts_with("--ask")
    });
    match decision.verdict {
        Verdict::Allow => "allow",
        Verdict::Deny | Verdict::Fail if asked => "ask",
        Verdict::Deny | Verdict::Fail => "deny",
    }
}

/// One line of a stream.
pub(super) fn line(id: &Value, decision: &Decision) -> Value {
    json!({
        "id": id,
        "decision": word(decision),
        "by": decision.by,
        "rule": decision.rule,
        "reason": decision.reason,
        "suggestedRule": decision.suggested_rule,
    })
}

/// The answer to a question that cannot be judged.
pub(super) fn refusal(id: &Value, reason: &str) -> Value {
    json!({ "id": id, "decision": "deny", "rule": null, "reason": reason })
}

/// The whole explanation as JSON.
pub(super) fn document(explanation: &Explanation) -> Value {
    let parts: Vec<Value> = explanation
        .parts
        .iter()
        .map(|part| {
            json!({
                "doing": part.doing,
                "decision": word(&part.decision),
                "by": part.decision.by,
                "rule": part.decision.rule,
                "reason": part.decision.reason,
                "suggestedRule": part.decision.suggested_rule,
            })
        })
        .collect();
    let decision = &explanation.decision;
    json!({
        "decision": word(decision),
        "by": decision.by,
        "rule": decision.rule,
        "reason": decision.reason,
        "suggestedRule": decision.suggested_rule,
        "understood": parts,
    })
}

/// The whole explanation as text.
pub(super) fn text(explanation: &Explanation) -> String {
    let decision = &explanation.decision;
    let mut text = format!("{}\n  {}\n", word(decision), decision.reason);
    if let Some(rule) = &decision.rule {
        text.push_str(&format!("  decided by {rule}\n"));
    }
    if let Some(rule) = &decision.suggested_rule {
        text.push_str(&format!("  would be allowed by {rule}\n"));
    }
    if !explanation.parts.is_empty() {
        text.push_str("understood:\n");
    }
    for part in &explanation.parts {
        let by = part
            .decision
            .rule
            .as_deref()
            .unwrap_or(match part.decision.verdict {
                Verdict::Allow => "no rule needed",
                Verdict::Deny | Verdict::Fail => "no rule allows it",
            });
        text.push_str(&format!(
            "  {:<5} {}  ({by})\n",
            word(&part.decision),
            part.doing
        ));
    }
    neutral_text(&text)
}
