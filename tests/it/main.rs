//! The integration tests: one crate, one file an area.

mod model_catalog;
mod model_errors;
mod model_http;
mod model_requests;
mod model_retry;
mod model_scripted;
mod model_sse;
mod model_streams;
mod process;
mod secret;
mod support;
