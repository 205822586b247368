//! Secrets out of a document of which every part is foreign text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Redactor, STARS, field};

impl Redactor {
    /// `document` without any known secret: in its texts, in the names of its
    /// fields, and in numbers, which then become texts.
    #[must_use]
    pub fn redact_json(&self, mut document: Value) -> Value {
        self.clean(&mut document);
        document
    }

    fn clean(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            // A secret of digits may be a number.
            Value::Number(number) => {
                if let Cow::Owned(clean) = self.redact(&number.to_string()) {
                    *value = Value::String(clean);
                }
            }
            Value::String(text) => {
                if let Cow::Owned(clean) = self.redact(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Value::Object(fields) => {
                for (name, field) in fields.iter_mut() {
                    match field {
                        Value::String(text) if field::hides(name, text) => {
                            STARS.clone_into(text);
                        }
                        _ => self.clean(field),
                    }
                }
                self.clean_names(fields);
            }
        }
    }

    fn clean_names(&self, fields: &mut Map<String, Value>) {
        let tainted = |name: &String| matches!(self.redact(name), Cow::Owned(_));
        if fields.keys().any(tainted) {
            let renamed = std::mem::take(fields)
                .into_iter()
                .map(|(name, value)| (self.redact(&name).into_owned(), value));
            *fields = renamed.collect();
        }
    }
}
