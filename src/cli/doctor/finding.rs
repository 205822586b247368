//! What the doctor found, for people and machines. Pure.

use std::fmt::Write as _;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use crate::event::published;
use crate::report::{Style, neutral};
use crate::secret::Redactor;

/// The version of the document.
const VERSION: u32 = 1;

/// What `agent doctor --output-format json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Doctor")]
pub(in crate::cli) struct DoctorDocument {
    /// The version of the document: 1.
    schema_version: u32,
    /// The version of the program.
    agent_version: &'static str,
    /// The name of the task; null when none was named.
    task: Option<String>,
    /// Whether it can run: no check is an error.
    ok: bool,
    /// What was looked at, in the order in which it is told.
    checks: Vec<Finding>,
}

/// What was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finding {
    /// What was looked at.
    name: &'static str,
    /// Which one, where a task has several: a command, a variable, a file or the
    /// program of a hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    /// How it is.
    status: Status,
    /// What is there.
    found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// As it should be.
    Ok,
    /// The task runs, and not as well as it could.
    Warning,
    /// The task cannot run.
    Error,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// The colour on a terminal.
    fn code(self) -> &'static str {
        match self {
            Self::Ok => "32",
            Self::Warning => "33",
            Self::Error => "31",
        }
    }
}

impl Finding {
    /// It is as it should be.
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            subject: None,
            status: Status::Ok,
            found: found.into(),
            advice: None,
        }
    }

    /// The task runs all the same.
    pub(super) fn warning(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            status: Status::Warning,
            advice: Some(advice.into()),
            ..Self::ok(name, found)
        }
    }

    /// The task cannot run.
    pub(super) fn error(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            status: Status::Error,
            ..Self::warning(name, found, advice)
        }
    }

    /// The same about one of several.
    #[must_use]
    pub(super) fn about(self, subject: impl Into<String>) -> Self {
        Self {
            subject: Some(subject.into()),
            ..self
        }
    }

    /// Whether the task cannot run.
    pub(super) fn is_error(&self) -> bool {
        self.status == Status::Error
    }
}

impl DoctorDocument {
    /// The document of `checks`.
    pub(super) fn new(task: Option<String>, checks: Vec<Finding>) -> Self {
        Self {
            schema_version: VERSION,
            agent_version: env!("CARGO_PKG_VERSION"),
            task,
            ok: !checks.iter().any(Finding::is_error),
            checks,
        }
    }

    /// A table, and in the last line what comes of it. What was found may hold
    /// anything, so it is concealed and made harmless before it is painted.
    pub(super) fn text(&self, style: Style, redactor: &Redactor) -> String {
        let harmless = |text: &str| redactor.redact(&neutral(text)).into_owned();
        let paint = |code: &str, text: &str| match style.color {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        };
        let lengths = self.checks.iter().map(|check| check.name.len());
        let width = lengths.max().unwrap_or_default();
        let mut text = String::new();
        for check in &self.checks {
            let status = paint(check.status.code(), &format!("{:7}", check.status.name()));
            let name = check.name.replace('_', " ");
            let subject = check.subject.as_ref();
            let subject = subject.map_or_else(String::new, |subject| format!("{subject}: "));
            let found = harmless(&format!("{subject}{}", check.found));
            let _ = writeln!(text, "{status}  {name:width$}  {found}");
            if let Some(advice) = &check.advice {
                let arrow = if style.unicode { "→" } else { "->" };
                let _ = writeln!(text, "{:1$}{arrow} {2}", "", width + 11, harmless(advice));
            }
        }
        let count = |status: Status| {
            let found = self.checks.iter().filter(|check| check.status == status);
            found.count() as u64
        };
        let (errors, warnings) = (count(Status::Error), count(Status::Warning));
        let verdict = if self.ok { "can" } else { "cannot" };
        let verdict = match &self.task {
            Some(task) => format!("{} {verdict} run here", harmless(task)),
            None => format!("this machine {verdict} run tasks"),
        };
        let errors = crate::report::counted(errors, "error");
        let warnings = crate::report::counted(warnings, "warning");
        let _ = writeln!(text, "\n{verdict}: {errors}, {warnings}");
        text
    }
}

/// The schema of the document (JSON Schema 2020-12).
pub(in crate::cli) fn schema() -> Value {
    let schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<DoctorDocument>()
        .to_value();
    published(schema)
}
