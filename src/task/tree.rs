//! A YAML document as a tree of nodes that know where they were written.

use serde_json::{Map, Number, Value};

use crate::task::diagnostics::At;

/// A value with its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The value.
    pub(super) kind: Kind,
    /// Where it is written; the key's place for what has no text of its own.
    pub(super) at: At,
    /// Not a template, whatever braces it has: it came from a flag.
    pub(super) literal: bool,
}

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A finite number.
    Number(Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map in its written order.
    Map(Vec<Entry>),
    /// Something already reported; it fits everywhere.
    Broken,
}

/// One entry of a map.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The key.
    pub(super) key: String,
    /// Where the key is written.
    pub(super) key_at: At,
    /// The value.
    pub(super) value: Node,
}

impl Node {
    /// A text that is no template.
    pub(super) fn literal(kind: Kind, at: At) -> Self {
        Self {
            kind,
            at,
            literal: true,
        }
    }

    /// A JSON value that stands at one place, without templates.
    pub(super) fn of_json(value: Value, at: At) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Bool(value),
            Value::Number(value) => Kind::Number(value),
            Value::String(value) => Kind::Text(value),
            Value::Array(items) => {
                let items = items.into_iter().map(|item| Self::of_json(item, at));
                Kind::List(items.collect())
            }
            Value::Object(fields) => {
                let entries = fields.into_iter().map(|(key, value)| Entry {
                    key,
                    key_at: at,
                    value: Self::of_json(value, at),
                });
                Kind::Map(entries.collect())
            }
        };
        Self::literal(kind, at)
    }

    /// The value under a key, for maps.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.kind {
            Kind::Map(entries) => {
                let entry = entries.iter_mut().find(|entry| entry.key == key);
                entry.map(|entry| &mut entry.value)
            }
            _ => None,
        }
    }

    /// The value under a key, for maps.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.value),
            _ => None,
        }
    }

    /// Takes the value under a key out, for maps.
    pub(super) fn take(&mut self, key: &str) -> Option<Node> {
        let Kind::Map(entries) = &mut self.kind else {
            return None;
        };
        let index = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(index).value)
    }

    /// The node at a path of keys.
    pub(super) fn at_path(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The items, for lists.
    pub(super) fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::List(items) => items,
            _ => &[],
        }
    }

    /// The text, for texts.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Puts `value` at a path of keys, making maps on the way.
    pub(super) fn set(&mut self, path: &[&str], value: Node) {
        let Some((key, rest)) = path.split_first() else {
            *self = value;
            return;
        };
        if !matches!(self.kind, Kind::Map(_)) {
            self.kind = Kind::Map(Vec::new());
            self.at = value.at;
        }
        let Kind::Map(entries) = &mut self.kind else {
            return;
        };
        let index = entries
            .iter()
            .position(|e| e.key == *key)
            .unwrap_or(entries.len());
        if index == entries.len() {
            let empty = Node::literal(Kind::Null, value.at);
            entries.push(Entry {
                key: (*key).to_owned(),
                key_at: value.at,
                value: empty,
            });
        }
        if let Some(entry) = entries.get_mut(index) {
            if rest.is_empty() {
                entry.key_at = value.at;
            }
            entry.value.set(rest, value);
        }
    }

    /// The value without places, for serde.
    pub(super) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null | Kind::Broken => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(value) => Value::Number(value.clone()),
            Kind::Text(value) => Value::String(value.clone()),
            Kind::List(items) => items.iter().map(Node::to_json).collect(),
            Kind::Map(entries) => {
                let pairs = entries.iter().map(|e| (e.key.clone(), e.value.to_json()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }
}
