//! One event as a line of JSON: serialised once, and redacted.

use crate::access::Access;
use crate::event::{Event, EventKind, Warning};
use crate::secret::Redactor;

use super::redact;

/// An event without secrets, and the same as JSON without a line feed.
pub(super) struct Line {
    /// The event.
    pub(super) event: Event,
    /// Its JSON.
    pub(super) text: String,
}

/// Serialises and redacts `event`.
///
/// An event that cannot be written as JSON, or that cannot be redacted without
/// losing its shape, is replaced by a `warning` that says so: it fails closed.
pub(super) fn render(mut event: Event, redactor: &Redactor) -> Line {
    let text = match serde_json::to_string(&event) {
        Ok(text) => text,
        Err(_) => {
            make_paths_text(&mut event.kind);
            match serde_json::to_string(&event) {
                Ok(text) => text,
                Err(_) => return withheld(event),
            }
        }
    };
    if !redact::is_needed(&text, redactor) {
        return Line { event, text };
    }
    let redacted = redact::redact(&text, redactor)
        .and_then(|event| serde_json::to_string(&event).map(|text| Line { event, text }));
    redacted.unwrap_or_else(|_| withheld(event))
}

/// Paths are bytes, JSON is text: what is no UTF-8 becomes U+FFFD.
fn make_paths_text(kind: &mut EventKind) {
    let accesses = match kind {
        EventKind::PermissionRequest(request) => &mut request.accesses,
        EventKind::ToolStart(start) => &mut start.accesses,
        _ => return,
    };
    for access in accesses {
        if let Access::Read(path) | Access::Write(path) = access {
            *path = path.to_string_lossy().into_owned().into();
        }
    }
}

fn withheld(event: Event) -> Line {
    let event = Event {
        kind: EventKind::Warning(Warning {
            code: "event_withheld".to_owned(),
            message: "an event could not be written without a secret and was left out".to_owned(),
        }),
        ..event
    };
    let text = serde_json::to_string(&event).expect("an envelope of strings and numbers is JSON");
    Line { event, text }
}
