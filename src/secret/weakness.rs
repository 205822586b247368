//! Values that cannot be hidden without hiding innocent text.

/// A shorter value would be found in innocent text.
pub(super) const CHARS_MIN: usize = 8;

/// Words of this length that every log is full of, in lower case.
const WORDS: &[&str] = &[
    "administrator",
    "anonymous",
    "application",
    "automatic",
    "automation",
    "completed",
    "container",
    "database",
    "debugging",
    "deployment",
    "developer",
    "development",
    "directory",
    "disabled",
    "distribution",
    "documentation",
    "environment",
    "external",
    "function",
    "information",
    "integration",
    "internal",
    "localhost",
    "maintenance",
    "namespace",
    "optional",
    "password",
    "permission",
    "postgres",
    "postgresql",
    "preproduction",
    "production",
    "readonly",
    "read-only",
    "repository",
    "required",
    "resource",
    "response",
    "rollback",
    "security",
    "sequence",
    "services",
    "settings",
    "software",
    "standard",
    "succeeded",
    "terminal",
    "undefined",
    "unlimited",
    "untitled",
    "username",
    "versions",
    "workspace",
];

/// Why `value` is not hidden although it is secret; none when it is.
pub fn weakness(value: &str) -> Option<&'static str> {
    let value = value.trim();
    if value.chars().count() < CHARS_MIN {
        return Some("has fewer than 8 characters");
    }
    let lower = value.to_lowercase();
    WORDS
        .contains(&lower.as_str())
        .then_some("is a common word")
}
