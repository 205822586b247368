//! The laws of the event log, checked by someone who did not write it.

use std::collections::HashSet;

use serde_json::Value;

/// The events of a log that obeys every law.
///
/// Panics with all breaches when it does not.
pub fn lawful(text: &str) -> Vec<Value> {
    match check(text) {
        Ok(events) => events,
        Err(breaches) => panic!(
            "the log breaks its laws:\n{}\n\n{text}",
            breaches.join("\n")
        ),
    }
}

/// The events of a log, or what is wrong with it.
pub fn check(text: &str) -> Result<Vec<Value>, Vec<String>> {
    let mut checker = Checker::default();
    if !text.is_empty() && !text.ends_with('\n') {
        checker.say("the last line has no end");
    }
    for line in text.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(event) if event.is_object() => checker.take(event),
            Ok(other) => checker.say(format!("not an object: {other}")),
            Err(error) => checker.say(format!("not JSON ({error}): {line}")),
        }
    }
    checker.finish()
}

#[derive(Default)]
struct Checker {
    events: Vec<Value>,
    breaches: Vec<String>,
    /// What began and has not ended: kind, place and id.
    open: HashSet<String>,
    ended: bool,
}

impl Checker {
    fn say(&mut self, breach: impl Into<String>) {
        self.breaches
            .push(format!("line {}: {}", self.events.len() + 1, breach.into()));
    }

    fn take(&mut self, event: Value) {
        self.envelope(&event);
        let name = event["event"].as_str().unwrap_or_default().to_owned();
        if self.ended {
            self.say(format!("{name} after run:end"));
        }
        if self.events.is_empty() != (name == "run:start") {
            self.say(format!("{name} stands at the wrong place"));
        }
        self.pair(&name, &event);
        self.ended |= name == "run:end";
        self.events.push(event);
    }

    fn envelope(&mut self, event: &Value) {
        let seq = self.events.len() as u64 + 1;
        if event["seq"] != seq {
            self.say(format!("seq is {}, expected {seq}", event["seq"]));
        }
        if event["v"] != 1 {
            self.say(format!("v is {}", event["v"]));
        }
        if event["data"].is_null() {
            self.say("no data");
        }
        let stamp = event["ts"].as_str().unwrap_or_default();
        if stamp.len() != "2026-11-21T20:01:02.345Z".len()
            || stamp.parse::<jiff::Timestamp>().is_err()
        {
            self.say(format!("ts is {stamp:?}"));
        }
        let first = self.events.first().map_or(event, |first| first);
        if event["runId"] != first["runId"] || event["runId"].as_str().is_none_or(str::is_empty) {
            let run = event["runId"].clone();
            self.say(format!("runId is {run}"));
        }
    }

    fn pair(&mut self, name: &str, event: &Value) {
        let data = &event["data"];
        let place = format!("{}/{}", event["job"], event["agentId"]);
        let key = |kind: &str, id: &Value| format!("{kind} {place} {id}");
        match name {
            "run:start" => self.begin("run".into()),
            "run:end" => {
                self.end("run".into());
                self.result(data);
                let mut open: Vec<String> = self.open.drain().collect();
                open.sort();
                for one in open {
                    self.say(format!("{one} has no end"));
                }
            }
            "job:start" => self.begin(format!("job {}", event["job"])),
            "job:end" => self.end(format!("job {}", event["job"])),
            "turn:start" => self.begin(key("turn", &event["turn"])),
            "turn:end" => self.end(key("turn", &event["turn"])),
            "step:start" => self.begin(key("step", &event["step"])),
            "step:end" => self.end(key("step", &event["step"])),
            "tool:permission:request" => self.begin(key("permission", &data["requestId"])),
            "tool:permission:response" => self.end(key("permission", &data["requestId"])),
            "tool:execution:start" => self.begin(key("call", &data["toolCallId"])),
            "tool:execution:update" => self.inside(&key("call", &data["toolCallId"])),
            "tool:execution:complete" => self.end(key("call", &data["toolCallId"])),
            "tool:execution:error" => {
                // A call that was refused never started.
                let refused = matches!(
                    data["status"].as_str(),
                    Some("denied" | "invalid_input" | "not_found" | "skipped" | "aborted")
                );
                let call = key("call", &data["toolCallId"]);
                if !self.open.remove(&call) && !refused {
                    self.say(format!("{call} ends without a start"));
                }
            }
            "retry:start" => self.retry(key("retry", &data["retryId"])),
            "retry:end" => self.end(key("retry", &data["retryId"])),
            "compact:start" => self.begin(key("compaction", &data["compactionId"])),
            "compact:exec" => self.end(key("compaction", &data["compactionId"])),
            _ => {}
        }
    }

    fn begin(&mut self, key: String) {
        if key.contains("null") && !key.starts_with("run") {
            self.say(format!("{key} has no place or id"));
        }
        if !self.open.insert(key.clone()) {
            self.say(format!("{key} begins twice"));
        }
    }

    /// Each further attempt of a call is announced under the same id.
    fn retry(&mut self, key: String) {
        self.open.insert(key);
    }

    fn end(&mut self, key: String) {
        if !self.open.remove(&key) {
            self.say(format!("{key} ends without a start"));
        }
    }

    fn inside(&mut self, key: &str) {
        if !self.open.contains(key) {
            self.say(format!("{key} goes on without a start"));
        }
    }

    fn result(&mut self, data: &Value) {
        for field in ["outcome", "reason", "exitCode"] {
            if data[field].is_null() || data[field] != data["result"][field] {
                self.say(format!("run:end and its result disagree on {field}"));
            }
        }
    }

    fn finish(mut self) -> Result<Vec<Value>, Vec<String>> {
        if !self.ended {
            self.say("no run:end");
        }
        if self.breaches.is_empty() {
            Ok(self.events)
        } else {
            Err(self.breaches)
        }
    }
}
