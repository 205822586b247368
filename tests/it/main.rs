//! The integration tests: one crate, one file an area.

mod process;
mod secret;
