//! What the tests share: the program, a model server, workspaces, the laws of the log.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "a tool box: each area takes what it needs"
)]

pub mod anthropic;
pub mod chat;
pub mod cli;
pub mod log;
pub(crate) mod models;
pub mod reply;
pub mod server;
pub(crate) mod streams;
pub mod transcript;
pub mod workspace;
