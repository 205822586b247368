//! What the model is told: the system prompt, the files that people keep for
//! agents, and the notes that the engine adds to a conversation.
//!
//! [`Resources::load`] finds project files, skills and templates, once, before
//! a session begins; after that nothing here reads a file, so what a run
//! changes on disk changes neither the system prompt nor what a `/name` means.
//! [`Resources::expand`] and [`mentions`] are pure: what an `@file` stands for
//! is read by the engine, through the same door as the `read` tool.

mod command;
mod data_block;
mod front_matter;
mod mention;
pub mod notes;
mod project_file;
mod prompt_text;
mod resources;
mod skill;
mod system_prompt;
mod template;
mod text_file;

pub use command::Expansion;
pub use data_block::data_block;
pub use mention::{Mention, mentions};
pub use project_file::ProjectFile;
pub use prompt_text::PromptText;
pub use resources::{RepoConfig, Resources, Sources};
pub use skill::Skill;
pub use system_prompt::{SystemPrompt, ToolLine};
pub use template::Template;
