//! What the model is told: the system prompt, and the notes that the engine
//! adds to a conversation.

pub mod notes;
mod system_prompt;

pub use system_prompt::{SystemPrompt, ToolLine};
