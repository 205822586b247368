//! The parts of JSON Schema that providers promise to keep to.

use serde_json::{Map, Value};

/// A part of JSON Schema.
pub(super) struct Subset {
    keywords: &'static [&'static str],
    formats: &'static [&'static str],
    /// The highest `minItems`.
    min_items_max: u64,
    properties: Properties,
    recursion: Recursion,
}

/// Which properties of an object may be left out.
#[derive(PartialEq)]
enum Properties {
    AllRequired,
    /// At most so many in all.
    OptionalMax(usize),
}

/// Whether a schema may refer to itself.
#[derive(PartialEq)]
enum Recursion {
    Allowed,
    Refused,
}

/// What OpenAI calls strict.
pub(super) const STRICT: Subset = Subset {
    keywords: &[
        "$defs",
        "$ref",
        "$schema",
        "additionalProperties",
        "anyOf",
        "const",
        "definitions",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maximum",
        "maxItems",
        "minimum",
        "minItems",
        "multipleOf",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    ],
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    min_items_max: u64::MAX,
    properties: Properties::AllRequired,
    recursion: Recursion::Allowed,
};

/// What Anthropic takes at all.
pub(super) const CLOSED: Subset = Subset {
    keywords: &[
        "$defs",
        "$ref",
        "$schema",
        "additionalProperties",
        "anyOf",
        "const",
        "definitions",
        "description",
        "enum",
        "format",
        "items",
        "minItems",
        "properties",
        "required",
        "title",
        "type",
    ],
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    min_items_max: 1,
    properties: Properties::OptionalMax(24),
    recursion: Recursion::Refused,
};

/// Levels of a schema, what it refers to included.
const DEPTH_MAX: usize = 10;
/// Properties and values of enumerations in all.
const NAMES_MAX: usize = 1_000;

impl Subset {
    /// Whether all of `schema`, whose root is an object, lies in the subset.
    pub(super) fn fits(&self, schema: &Value) -> bool {
        let mut walk = Walk {
            subset: self,
            root: schema,
            names: 0,
            optional: 0,
        };
        schema.get("anyOf").is_none() && walk.schema(schema, 0)
    }
}

struct Walk<'s> {
    subset: &'s Subset,
    root: &'s Value,
    names: usize,
    optional: usize,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> bool {
        let Some(fields) = schema.as_object() else {
            return false;
        };
        let typed = ["type", "$ref", "anyOf", "enum", "const"]
            .iter()
            .any(|keyword| fields.contains_key(*keyword));
        typed
            && depth <= DEPTH_MAX
            && fields.iter().all(|(keyword, value)| {
                self.subset.keywords.contains(&keyword.as_str())
                    && self.keyword(keyword, value, depth)
            })
            && self.object(fields)
    }

    fn keyword(&mut self, keyword: &str, value: &Value, depth: usize) -> bool {
        match keyword {
            "properties" | "$defs" | "definitions" => value.as_object().is_some_and(|inner| {
                self.names += inner.len();
                self.names <= NAMES_MAX && inner.values().all(|one| self.schema(one, depth + 1))
            }),
            "items" => self.schema(value, depth + 1),
            "anyOf" => value
                .as_array()
                .is_some_and(|all| all.iter().all(|one| self.schema(one, depth + 1))),
            "enum" => value.as_array().is_some_and(|all| {
                self.names += all.len();
                self.names <= NAMES_MAX && all.iter().all(is_scalar)
            }),
            "const" => is_scalar(value),
            "format" => value
                .as_str()
                .is_some_and(|name| self.subset.formats.contains(&name)),
            "minItems" => value
                .as_u64()
                .is_some_and(|least| least <= self.subset.min_items_max),
            "$ref" => self.reference(value, depth),
            _ => true,
        }
    }

    /// A reference stands alone, and for something inside the schema.
    fn reference(&mut self, value: &Value, depth: usize) -> bool {
        let target = value
            .as_str()
            .and_then(|place| place.strip_prefix('#'))
            .and_then(|pointer| self.root.pointer(pointer));
        match target {
            None => false,
            Some(_) if self.subset.recursion == Recursion::Allowed => true,
            // What refers to itself ends at the depth that is allowed.
            Some(target) => {
                self.names += 1;
                self.names <= NAMES_MAX && self.schema(target, depth + 1)
            }
        }
    }

    /// An object takes no other properties than it names.
    fn object(&mut self, fields: &Map<String, Value>) -> bool {
        let is_object = match fields.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            _ => fields.contains_key("properties"),
        };
        if !is_object {
            return true;
        }
        let Some(properties) = fields.get("properties").and_then(Value::as_object) else {
            return false;
        };
        let required = fields.get("required").and_then(Value::as_array);
        let optional = properties
            .keys()
            .filter(|name| !required.is_some_and(|names| names.iter().any(|other| other == *name)))
            .count();
        self.optional += optional;
        let enough = match self.subset.properties {
            Properties::AllRequired => optional == 0,
            Properties::OptionalMax(most) => self.optional <= most,
        };
        enough && fields.get("additionalProperties") == Some(&Value::Bool(false))
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}
