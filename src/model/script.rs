//! The file that a scripted model plays, as people write it.
//!
//! Either a list of replies, or `{strict: …, context_window: …, replies: […]}`.
//! Unknown keys are errors, with the place.

use std::fmt;
use std::time::Duration;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::message::Usage;

/// The most bytes of a script.
const SCRIPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Replies to be played in order.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) name: String,
    pub(super) strict: bool,
    pub(super) context_window: Option<u64>,
    pub(super) replies: Vec<ReplySpec>,
}

/// A script that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}{}: {message}", place(*.line, *.column))]
pub struct ScriptError {
    /// The script.
    pub name: String,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The column, from 1.
    pub column: Option<u64>,
    /// What is wrong.
    pub message: String,
}

impl Script {
    /// Reads a script; `name` is how errors call it.
    ///
    /// # Errors
    /// When the text is no YAML, or no script.
    pub fn parse(yaml: &str, name: &str) -> Result<Script, ScriptError> {
        if yaml.len() > SCRIPT_BYTES_MAX {
            return Err(ScriptError {
                name: name.to_owned(),
                line: None,
                column: None,
                message: format!("a script has at most {} MiB", SCRIPT_BYTES_MAX >> 20),
            });
        }
        let options = serde_yaml::options! {
            strict_booleans: true,
            leading_zero_numbers_as_strings: true,
            underscored_numbers_as_strings: true,
            reject_unsupported_tags: true,
            with_snippet: false,
        };
        let file: ScriptFile =
            serde_yaml::from_str_with_options(yaml, options).map_err(|error| {
                let place = error.location();
                ScriptError {
                    name: name.to_owned(),
                    // Without a place it is the document as a whole.
                    line: Some(place.map_or(1, |place| place.line())),
                    column: Some(place.map_or(1, |place| place.column())),
                    message: first_line(&error.to_string()),
                }
            })?;
        Ok(Script {
            name: name.to_owned(),
            strict: file.strict,
            context_window: file.context_window,
            replies: file.replies,
        })
    }

    /// How many replies there are.
    pub fn len(&self) -> usize {
        self.replies.len()
    }

    /// Whether there is no reply.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }
}

fn place(line: Option<u64>, column: Option<u64>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!(":{line}:{column}"),
        (Some(line), None) => format!(":{line}"),
        (None, _) => String::new(),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

struct ScriptFile {
    strict: bool,
    context_window: Option<u64>,
    replies: Vec<ReplySpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    #[serde(default)]
    strict: bool,
    context_window: Option<u64>,
    replies: Vec<ReplySpec>,
}

impl<'de> Deserialize<'de> for ScriptFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ScriptFile;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of replies, or a map with `replies`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ScriptFile, A::Error> {
                Ok(ScriptFile {
                    strict: false,
                    context_window: None,
                    replies: Vec::deserialize(SeqAccessDeserializer::new(list))?,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ScriptFile, A::Error> {
                let whole = Whole::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ScriptFile {
                    strict: whole.strict,
                    context_window: whole.context_window,
                    replies: whole.replies,
                })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// One reply.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplySpec {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    #[serde(default)]
    pub(super) calls: Vec<CallSpec>,
    /// None for a provider that does not say: `usage: null`. Without the key
    /// nothing was used, since no provider was asked.
    #[serde(default = "no_usage", deserialize_with = "usage")]
    pub(super) usage: Option<Usage>,
    pub(super) stop: Option<Stop>,
    #[serde(default, deserialize_with = "duration")]
    pub(super) delay: Option<Duration>,
    pub(super) error: Option<Failure>,
    #[serde(default)]
    pub(super) cut: bool,
    pub(super) expect: Option<Expect>,
}

impl ReplySpec {
    /// Whether anything comes before an error.
    pub(super) fn says_something(&self) -> bool {
        self.text.is_some() || self.thinking.is_some() || !self.calls.is_empty()
    }
}

/// A tool call of a reply.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallSpec {
    pub(super) name: String,
    pub(super) arguments: Option<Value>,
    pub(super) id: Option<String>,
}

impl CallSpec {
    /// What the model sends: a text goes as it is, so that a script can play a
    /// model whose arguments are no JSON.
    pub(super) fn arguments_text(&self) -> String {
        match &self.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(raw)) => raw.clone(),
            Some(value) => value.to_string(),
        }
    }
}

/// Why a scripted reply stops.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the names that people write")]
pub(super) enum Stop {
    Stop,
    Length,
    ToolUse,
    Refusal,
}

/// An HTTP error instead of a reply, or behind what it says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failure {
    pub(super) status: u16,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    #[serde(default, deserialize_with = "duration")]
    pub(super) retry_after: Option<Duration>,
}

/// What the request must hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    #[serde(default)]
    pub(super) contains: Vec<String>,
    pub(super) tools: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageSpec {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    cache_read: u64,
    #[serde(default)]
    cache_write: u64,
}

/// What a reply used that names no usage.
#[expect(clippy::unnecessary_wraps, reason = "the field's default has its type")]
fn no_usage() -> Option<Usage> {
    Some(Usage::default())
}

fn usage<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usage>, D::Error> {
    let spec: Option<UsageSpec> = Deserialize::deserialize(deserializer)?;
    Ok(spec.map(|spec| Usage {
        input: spec.input,
        output: spec.output,
        cache_read: spec.cache_read,
        cache_write: spec.cache_write,
        ..Usage::default()
    }))
}

/// `200ms`, `1.5s`, `2m`, `1h`, or a number of seconds.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    struct Time;
    impl Visitor<'_> for Time {
        type Value = Duration;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a duration such as 200ms or 2s")
        }

        fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Duration, E> {
            Ok(Duration::from_secs(seconds))
        }

        fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Duration, E> {
            let seconds =
                u64::try_from(seconds).map_err(|_| E::custom("a duration is not negative"))?;
            Ok(Duration::from_secs(seconds))
        }

        fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Duration, E> {
            Duration::try_from_secs_f64(seconds).map_err(E::custom)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Duration, E> {
            parse_duration(text).ok_or_else(|| {
                E::custom(format!(
                    "`{text}` is no duration; write one such as 200ms or 2s"
                ))
            })
        }
    }
    deserializer.deserialize_any(Time).map(Some)
}

fn parse_duration(text: &str) -> Option<Duration> {
    let at = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = text.split_at(at);
    let unit_s = match unit.trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(number * unit_s).ok()
}
