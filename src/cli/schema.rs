//! `agent schema`: the JSON Schemas of what goes in and what comes out.

use clap::{Args, ValueEnum};

use crate::{report, task};

use super::console::Console;
use super::doctor;
use super::exit::Exit;
use super::models;

/// Prints a JSON Schema.
#[derive(Debug, Args)]
pub(super) struct SchemaCommand {
    /// Of what.
    document: Document,
}

/// A document with a schema.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Document {
    /// The task file.
    Task,
    /// The file of one's own providers.
    Providers,
    /// A line of the event log.
    Events,
    /// The result document.
    Result,
    /// The list of models.
    Models,
    /// What `agent doctor` found.
    Doctor,
}

impl SchemaCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let schema = match self.document {
            Document::Task => task::schema(),
            Document::Providers => task::providers_schema(),
            Document::Events => report::event_schema(),
            Document::Result => report::result_schema(),
            Document::Models => models::schema(),
            Document::Doctor => doctor::schema(),
        };
        console.print(&format!("{schema:#}\n"));
        Exit::Done
    }
}
