//! `agent models`: which models can be named, what they cost, and for which of
//! them there is a key.

mod document;
mod search;
mod table;

use clap::Args;
use serde_json::Value;

use crate::event::Reason;
use crate::model::Catalog;
use crate::report::{self, neutral, neutral_json, neutral_text};

use super::console::Console;
use super::exit::Exit;
use super::flags::ProvidersFlag;

pub(super) use document::schema;

use document::ModelsDocument;

/// The most names that are suggested when nothing matches.
const SUGGESTIONS_MAX: usize = 5;

/// Lists the models that can be named: window and reply in tokens, US dollars
/// per million tokens, levels of thinking, images, and whether there is a key.
#[derive(Debug, Args)]
pub(super) struct ModelsCommand {
    /// Only models whose id or name has all these words. When none has, the
    /// exit status is 66.
    #[arg(value_name = "QUERY")]
    query: Vec<String>,

    /// Only those of this provider.
    #[arg(long, value_name = "ID")]
    provider: Option<String>,

    /// Only those that can be asked: their key is there, or they need none.
    #[arg(long)]
    available: bool,

    /// One JSON document with everything that is known of them.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    providers: ProvidersFlag,
}

impl ModelsCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let catalog = match self.providers.catalog_here(console) {
            Ok(catalog) => catalog,
            Err(exit) => return exit,
        };
        let mut document = ModelsDocument::new(&catalog, console.environment());
        let words = search::words(&self.query);
        document.models.retain(|model| {
            let of_provider = |id: &String| model.provider == *id;
            self.provider.as_ref().is_none_or(of_provider)
                && (!self.available || model.key.is_settled())
                && search::matches(&words, &model.id, &model.name)
        });
        let text = if self.json {
            self.as_json(&document, console)
        } else {
            let table = table::text(&document.models, console.stdout_width());
            console
                .redactor()
                .redact(&neutral_text(&table))
                .into_owned()
        };
        console.print(&text);
        if document.models.is_empty() {
            return self.nothing(&catalog, &words, console);
        }
        Exit::Done
    }

    fn as_json(&self, document: &ModelsDocument, console: &Console) -> String {
        let document = serde_json::to_value(document).unwrap_or(Value::Null);
        let document = report::redact_document(document, &console.redactor());
        let text = format!("{document:#}\n");
        if console.stdout_is_watched() {
            neutral_json(&text).into_owned()
        } else {
            text
        }
    }

    /// Says that nothing was found, and what may have been meant.
    fn nothing(&self, catalog: &Catalog, words: &[String], console: &Console) -> Exit {
        let mut message = "no model matches".to_owned();
        if let Some(provider) = &self.provider {
            let providers = catalog.providers();
            if !providers.iter().any(|known| known.id == *provider) {
                let ids: Vec<String> = providers.into_iter().map(|known| known.id).collect();
                message = format!(
                    "there is no provider `{provider}`; there are {}",
                    ids.join(", ")
                );
            }
        }
        let near = search::nearest(words, catalog, SUGGESTIONS_MAX);
        if !near.is_empty() {
            message.push_str(&format!("; did you mean {}?", near.join(", ")));
        }
        console.complain(&format!("agent: {}\n", neutral(&message)));
        Exit::Reason(Reason::NoInput)
    }
}
