//! What no recording may hold: secrets, and the paths of one machine.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::secret::Redactor;

use super::places::Places;

/// Takes secrets and paths out of everything that is recorded or compared.
#[derive(Debug, Clone, Default)]
pub(super) struct Scrub {
    pub(super) redactor: Redactor,
    pub(super) places: Arc<Places>,
}

impl Scrub {
    /// `text` without them.
    pub(super) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redactor.redact(text) {
            Cow::Borrowed(text) => self.places.neutral(text),
            Cow::Owned(text) => Cow::Owned(self.places.neutral(&text).into_owned()),
        }
    }

    /// Takes them out of every text in `value`, out of names and numbers too,
    /// and then out of its JSON: some secrets are known by what stands around
    /// them.
    pub(super) fn value(&self, value: Value) -> Value {
        self.secrets(self.leaves(value))
    }

    /// Takes only the secrets out.
    pub(super) fn secrets(&self, value: Value) -> Value {
        match self.redactor.redact(&value.to_string()) {
            Cow::Borrowed(_) => value,
            // Without a number that became none, it may be no JSON any more.
            Cow::Owned(clean) => {
                serde_json::from_str(&clean).unwrap_or_else(|_| self.redactor.redact_json(value))
            }
        }
    }

    fn leaves(&self, value: Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value,
            Value::Number(number) => {
                let text = number.to_string();
                match self.redactor.redact(&text) {
                    Cow::Borrowed(_) => Value::Number(number),
                    Cow::Owned(clean) => Value::String(clean),
                }
            }
            Value::String(text) => match self.text(&text) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(clean) => Value::String(clean),
            },
            Value::Array(items) => items.into_iter().map(|item| self.leaves(item)).collect(),
            Value::Object(fields) => {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (self.text(&name).into_owned(), self.leaves(value)));
                Value::Object(fields.collect::<Map<String, Value>>())
            }
        }
    }
}
