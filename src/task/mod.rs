//! What was asked: a task file, its parameters and the flags, resolved to a [`Job`].
//!
//! [`load`] goes one way: YAML (`yaml`) to a tree that knows its places (`tree`), flags
//! into the tree (`overrides`), parameters (`parameters`), templates in its
//! texts (`template`), the schema over all of it (`validate`), and from what is
//! then known to be right a job (`resolve`, `job`). Nothing stops at the first
//! mistake: [`Diagnostics`] has them all.

mod defaults;
mod diagnostics;
pub mod duration;
pub mod file;
mod hash;
pub mod hooks;
mod job;
mod overrides;
mod parameters;
mod plan;
mod providers;
mod read;
mod requires;
mod resolve;
mod resolved;
mod response;
mod sandbox;
mod schema;
mod script;
mod template;
mod tree;
mod untrusted;
mod validate;
mod yaml;

pub use diagnostics::{Diagnostic, Diagnostics, Kind, nearest};
pub use hash::config_hash;
pub use overrides::Overrides;
pub use plan::{
    CommandEnv, Inherit, Isolation, Job, NEWEST, Patience, RUNS, ResponseJob, Resume, Secret,
    Settings, WorkspaceSpec,
};
pub use providers::load_providers;
pub(crate) use read::{ReadError, bytes as read_bytes, text as read_text};
pub use requires::{Need, Requirement, VersionRange, Written};
pub use resolve::{implicit, load};
pub use sandbox::network_name;
pub use schema::{providers_schema, schema};
pub use script::{SCRIPTED, ScriptProblem, load_script};
