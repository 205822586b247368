//! Final answers that a program reads: the schema that they must fit, whatever
//! the provider promised of them.
//!
//! A text is an answer when it is one JSON document, or holds exactly one, and
//! the document fits. Nothing is guessed and nothing is mended here: a text that
//! is no answer goes back to the model, with what is wrong.

mod extract;
mod number;
mod rounds;
mod schema;
mod strict;

use std::sync::Arc;

pub use schema::{ResponseSchema, SchemaError};

pub(super) use rounds::{Checked, Response};

/// What the final answers of a session must be.
#[derive(Debug, Clone)]
pub struct ResponseSpec {
    /// What they must fit.
    pub schema: Arc<ResponseSchema>,
    /// How often an answer that does not is asked for again.
    pub repairs: u32,
}

/// One thing that is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where, as a JSON pointer; empty for the whole document.
    pub path: String,
    /// What.
    pub rule: String,
}

impl Violation {
    fn at_root(rule: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            rule: rule.into(),
        }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.rule)
        } else {
            write!(f, "at `{}`: {}", self.path, self.rule)
        }
    }
}

/// An answer that does not fit, after all repairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// What is wrong; never empty, at most ten.
    pub violations: Vec<Violation>,
    /// How often it was asked for again.
    pub repairs: u32,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the final answer does not fit the response schema")?;
        match self.repairs {
            0 => {}
            1 => f.write_str(", though it was asked for again")?,
            more => write!(f, ", though it was asked for again {more} times")?,
        }
        for (index, violation) in self.violations.iter().enumerate() {
            let before = if index == 0 { ": " } else { "; " };
            write!(f, "{before}{violation}")?;
        }
        Ok(())
    }
}
