//! A headless coding-agent runner for CI.

pub mod access;
pub mod cli;
pub mod clock;
pub mod context;
pub mod event;
pub mod export;
pub mod message;
pub mod model;
pub mod policy;
pub mod process;
pub mod report;
pub mod run;
pub mod secret;
pub mod session;
pub mod store;
pub mod task;
pub mod tool;
pub mod workspace;
