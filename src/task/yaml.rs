//! Strict, bounded YAML 1.2, read into a [`Node`] tree.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_yaml::granit_parser::{Event, Parser};
use serde_yaml::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_yaml::{Location, Options, Spanned};

use crate::task::diagnostics::{At, Report};
use crate::task::tree::{Entry, Kind, Node};

/// How deep a document may nest. The reader recurses, and this has to fit into
/// the small stack of a thread in a build without optimisation.
const DEPTH_MAX: usize = 32;
/// Maps, lists and scalars of one document.
const NODES_MAX: usize = 50_000;
/// Nodes that aliases may stand for, in all.
const ALIASED_MAX: usize = 10_000;

/// Reads the document of a registered source; none when it is no YAML, which is reported.
pub(super) fn parse(report: &mut Report, source: usize) -> Option<Node> {
    let text = report.text(source).to_owned();
    if text.contains('!') && !check_tags(&text, report, source) {
        return None;
    }
    match serde_yaml::from_str_with_options::<Node>(&text, options()) {
        Ok(mut root) => {
            settle(&mut root, None, source, report);
            Some(root)
        }
        Err(error) => {
            let at = error.location().map_or(
                At {
                    source,
                    start: 0,
                    end: 0,
                },
                |location| locate(&text, location, source),
            );
            let (message, hint) = explain(&error);
            report.error_with(at, "invalid_yaml", message, hint);
            None
        }
    }
}

/// Strict YAML 1.2 with bounds.
fn options() -> Options {
    serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_reader_input_bytes: Some(2 << 20),
            flow_nesting_limit: DEPTH_MAX,
            max_events: 4 * NODES_MAX,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_recorded_anchor_events: 4 * NODES_MAX,
            max_recorded_anchor_bytes: 2 << 20,
            max_depth: DEPTH_MAX,
            max_documents: 2,
            max_nodes: NODES_MAX,
            max_total_scalar_bytes: 4 << 20,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: ALIASED_MAX,
            max_replay_stack_depth: 16,
            max_alias_expansions_per_anchor: 1_000,
        },
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        strict_booleans: true,
        reject_unsupported_tags: true,
        reject_tagged_field_names: true,
        with_snippet: false,
    }
}

/// Refuses every tag: what people write is plain data. The rest of the syntax is left to the reader.
fn check_tags(text: &str, report: &mut Report, source: usize) -> bool {
    let mut depth = 0usize;
    for item in Parser::new_from_str(text) {
        let Ok((event, span)) = item else { return true };
        let tag = match &event {
            Event::Scalar(_, _, _, tag) => tag.as_ref(),
            Event::SequenceStart(_, _, tag) | Event::MappingStart(_, _, tag) => {
                depth += 1;
                tag.as_ref()
            }
            Event::SequenceEnd | Event::MappingEnd => {
                depth = depth.saturating_sub(1);
                None
            }
            _ => None,
        };
        if depth > DEPTH_MAX {
            return true;
        }
        if tag.is_some() {
            // The event has the place of the value; the tag stands before it.
            let value = span.start.byte_offset().unwrap_or(0);
            let before = text.get(..value).unwrap_or_default().trim_end();
            let start = before
                .rfind(char::is_whitespace)
                .map_or(0, |space| space + 1);
            let end = before.len().max(start);
            let hint =
                "remove the tag; quote the value when it is a text that looks like something else";
            let at = At { source, start, end };
            report.error_with(at, "tag", "tags are not allowed here", hint.to_owned());
            return false;
        }
    }
    true
}

/// The reader's error in our words, where we can say more.
fn explain(error: &serde_yaml::Error) -> (String, Option<String>) {
    use serde_yaml::Error as E;
    match error.without_snippet() {
        E::Budget { .. } => (
            "the document is too deep, too long, or has too many aliases".to_owned(),
            Some(format!(
                "at most {DEPTH_MAX} levels, {NODES_MAX} values and 1000 aliases"
            )),
        ),
        E::AliasReplayLimitExceeded { .. }
        | E::AliasExpansionLimitExceeded { .. }
        | E::AliasReplayStackDepthExceeded { .. } => (
            "the document's aliases stand for too much".to_owned(),
            Some(format!(
                "aliases may stand for at most {ALIASED_MAX} values in all"
            )),
        ),
        E::MultipleDocuments { .. } => (
            "this is to be one YAML document, and there are several".to_owned(),
            Some("remove what follows the `---`".to_owned()),
        ),
        E::NonFiniteFloat { .. } => ("numbers must be finite".to_owned(), None),
        E::Eof { .. } => ("the file is empty".to_owned(), None),
        _ => (first_line(error), None),
    }
}

/// The reader's own words, without the place, which is shown anyway.
fn first_line(error: &serde_yaml::Error) -> String {
    let text = error.without_snippet().to_string();
    let line = text.lines().next().unwrap_or("this is not YAML");
    line.split(" at line ").next().unwrap_or(line).to_owned()
}

/// The bytes of a location of the reader.
fn locate(text: &str, location: Location, source: usize) -> At {
    let span = location.span();
    if let (Some(start), Some(len)) = (span.byte_offset(), span.byte_len()) {
        let start = usize::try_from(start).unwrap_or(0);
        return At {
            source,
            start,
            end: start + usize::try_from(len).unwrap_or(0),
        };
    }
    let line = usize::try_from(location.line())
        .unwrap_or(1)
        .saturating_sub(1);
    let column = usize::try_from(location.column())
        .unwrap_or(1)
        .saturating_sub(1);
    let first: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let tail = text.get(first..).unwrap_or_default();
    let start = first + tail.chars().take(column).map(char::len_utf8).sum::<usize>();
    At {
        source,
        start,
        end: start,
    }
}

/// Gives every node its source and a place that can be shown, and reports duplicate keys.
fn settle(node: &mut Node, key_at: Option<At>, source: usize, report: &mut Report) {
    node.at.source = source;
    let text = report.text(source);
    // A scalar's span may reach over the line end (block scalars, comments).
    let written = text.get(node.at.start..node.at.end).unwrap_or_default();
    node.at.end = node.at.start + written.trim_end().len();
    let compound = matches!(node.kind, Kind::Map(_) | Kind::List(_));
    if (compound || node.at.end == node.at.start)
        && let Some(at) = key_at
    {
        node.at = at;
    }
    match &mut node.kind {
        Kind::List(items) => {
            for item in items {
                settle(item, None, source, report);
            }
        }
        Kind::Map(entries) => {
            let mut seen = HashSet::new();
            for entry in entries.iter_mut() {
                entry.key_at.source = source;
                if !seen.insert(entry.key.clone()) {
                    let message = format!("the key `{}` is there twice", entry.key);
                    report.error(entry.key_at, "duplicate_key", message);
                }
                settle(&mut entry.value, Some(entry.key_at), source, report);
            }
        }
        _ => {}
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Kind>::deserialize(deserializer)?;
        Ok(Self {
            kind: spanned.value,
            at: bytes(spanned.referenced, spanned.defined),
            literal: false,
        })
    }
}

/// The bytes of a value; the place of the alias for what an alias stands for.
fn bytes(referenced: Location, defined: Location) -> At {
    let span = if referenced.line() > 0 {
        referenced.span()
    } else {
        defined.span()
    };
    let start = usize::try_from(span.byte_offset().unwrap_or(0)).unwrap_or(0);
    let len = usize::try_from(span.byte_len().unwrap_or(0)).unwrap_or(0);
    At {
        source: 0,
        start,
        end: start + len,
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Number(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Kind, E> {
        Number::from_f64(value)
            .map(Kind::Number)
            .ok_or_else(|| E::custom("numbers must be finite"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Text(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Kind, E> {
        Ok(Kind::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Kind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            let value = access.next_value()?;
            let key_at = bytes(key.referenced, key.defined);
            entries.push(Entry {
                key: key.value,
                key_at,
                value,
            });
        }
        Ok(Kind::Map(entries))
    }
}
