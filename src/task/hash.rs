//! The name of a configuration.

use serde_json::Value;

use crate::fingerprint::Fnv1a;

/// A name for a resolved task: the fingerprint of its JSON text, whose keys keep
/// their order. Two tasks with one name are the same configuration; it does not
/// protect against forgery.
pub fn config_hash(resolved: &Value) -> String {
    Fnv1a::of(resolved.to_string().as_bytes()).to_string()
}
