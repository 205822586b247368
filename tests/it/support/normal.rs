//! A log without what differs from run to run, so that the rest can be compared whole.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

/// One line an event: where it stands, its name, its payload. Times, ids and
/// the directory are replaced; equal ids stay equal.
pub fn log(events: &[Value], cwd: &Path) -> String {
    let mut normal = Normal {
        cwd: cwd.display().to_string(),
        ids: HashMap::new(),
    };
    let mut text = String::new();
    for event in events {
        let mut data = event["data"].clone();
        normal.value("data", &mut data);
        let place = ["job", "sessionId", "agentId", "turn", "step"].map(|field| {
            let mut value = event[field].clone();
            normal.value(field, &mut value);
            match value {
                Value::Null => "-".to_owned(),
                Value::String(text) => text,
                other => other.to_string(),
            }
        });
        text.push_str(&format!(
            "{} {} {} {data}\n",
            event["seq"],
            place.join("/"),
            event["event"].as_str().unwrap()
        ));
    }
    text
}

struct Normal {
    cwd: String,
    ids: HashMap<String, String>,
}

impl Normal {
    fn value(&mut self, name: &str, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.value(name, value);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.value(name, item);
                }
            }
            Value::Number(number) if name.ends_with("Ms") => *number = 0.into(),
            Value::String(text) => self.text(name, text),
            _ => {}
        }
        // The only budget that no script decides.
        if name == "time" && value["used"].is_number() {
            value["used"] = 0.into();
        }
    }

    fn text(&mut self, name: &str, text: &mut String) {
        match name {
            "startedAt" | "configHash" | "agentVersion" => *text = format!("<{name}>"),
            "runId" | "sessionId" | "messageId" | "entryId" | "requestId" | "retryId"
                if !text.is_empty() =>
            {
                let next = self.ids.len() + 1;
                let known = self
                    .ids
                    .entry(text.clone())
                    .or_insert(format!("<id {next}>"));
                text.clone_from(known);
            }
            _ => *text = text.replace(&self.cwd, "<cwd>"),
        }
    }
}
