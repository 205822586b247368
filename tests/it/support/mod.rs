//! What the tests share: the program, a model server, workspaces, the laws of the log.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a tool box: each area takes what it needs, and what fails here fails the test"
)]

pub mod anthropic;
pub mod assignments;
pub mod bash;
pub mod chat;
pub mod cli;
pub mod confined;
pub(crate) mod conversation;
pub mod dialect;
pub mod four;
pub mod gemini;
pub(crate) mod hooks;
pub mod log;
pub mod mock;
pub(crate) mod models;
pub mod normal;
pub mod pieces;
pub mod poison;
pub mod relay;
pub mod reply;
pub mod responses;
pub(crate) mod room;
pub mod running;
pub mod separators;
pub mod server;
pub(crate) mod session;
pub(crate) mod streams;
pub(crate) mod test_tool;
pub(crate) mod told;
pub mod transcript;
pub mod workspace;
