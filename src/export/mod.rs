//! The report, rendered for other readers. Every export is a pure function of
//! the result document.

mod markdown;

pub use markdown::markdown;
