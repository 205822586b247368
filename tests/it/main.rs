//! The integration tests: one crate, one file an area.

mod context_prompt;
mod model_catalog;
mod model_errors;
mod model_http;
mod model_requests;
mod model_retry;
mod model_scripted;
mod model_sse;
mod model_streams;
mod policy_bash;
mod policy_command;
mod policy_path;
mod policy_reach;
mod policy_rule;
mod process;
mod secret;
mod support;
mod tool_bash;
mod tool_edit;
mod tool_read;
mod tool_scene;
mod tool_search;
mod tool_set;
mod tool_truncate;
mod tool_write;
