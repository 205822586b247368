//! What a session asks of its final answers, and how often it asks again.

use serde_json::Value;

use crate::context::notes;
use crate::event::Warning;
use crate::model::{Model, ResponseFormat, ToolDefinition};
use crate::session::stop::Stop;

use super::{Misfit, ResponseSpec, Violation};

/// The answers of one session. Without a spec everything is an answer.
#[derive(Debug, Default)]
pub(in crate::session) struct Response {
    spec: Option<ResponseSpec>,
    /// What the provider is asked for.
    format: Option<ResponseFormat>,
    /// The models whose endpoint refused to be asked.
    refused: Vec<String>,
    /// Repairs of the running turn.
    rounds: u32,
    /// Repairs of all turns.
    repairs: u32,
    /// Whether the next reply is to be nothing but the answer.
    repairing: bool,
}

/// What a final answer is worth.
pub(in crate::session) enum Checked {
    /// It is one, and this is its document.
    Fits(Option<Value>),
    /// The model is to be told this.
    Repair(String),
    /// It is none, and there will be none.
    Misfit(Stop),
}

impl Response {
    pub(in crate::session) fn new(
        spec: Option<ResponseSpec>,
        model: &Model,
        tools: &[ToolDefinition],
    ) -> Self {
        let mut response = Self {
            spec,
            ..Self::default()
        };
        response.take_up(model, tools);
        response
    }

    /// Takes up what is asked of this model. Tells whether the words changed.
    pub(in crate::session) fn take_up(&mut self, model: &Model, tools: &[ToolDefinition]) -> bool {
        let Some(spec) = &self.spec else {
            return false;
        };
        let shown = self.shows_schema();
        self.format = if self.refused.contains(&model.full_id()) {
            None
        } else {
            ResponseFormat::of(model, spec.schema.document(), tools)
        };
        shown != self.shows_schema()
    }

    /// What the provider is asked for.
    pub(in crate::session) fn format(&self) -> Option<ResponseFormat> {
        self.format.clone()
    }

    /// A system prompt with what it says of the final answer.
    pub(in crate::session) fn complete(&self, mut system: String) -> String {
        let Some(spec) = &self.spec else {
            return system;
        };
        let schema = (!self.shows_schema()).then(|| spec.schema.document().to_string());
        let words = notes::final_answer(schema.as_deref());
        // A hook may have kept what it was shown.
        if !system.contains(&words) {
            system.push_str(&words);
        }
        system
    }

    /// Gives up asking the endpoint of this model, if that is what it refused.
    pub(in crate::session) fn give_up(&mut self, stop: &Stop, model: &Model) -> Option<Warning> {
        let Stop::Model { error, .. } = stop else {
            return None;
        };
        if self.format.is_none() || !ResponseFormat::is_refused_by(error) {
            return None;
        }
        self.refused.push(model.full_id());
        Some(Warning {
            code: "structured_output_refused".to_owned(),
            message: format!(
                "{} refuses to be asked for structured output, so the schema is told in words: {}",
                model.full_id(),
                error.message
            ),
        })
    }

    /// A turn begins.
    pub(in crate::session) fn begin(&mut self) {
        self.rounds = 0;
        self.repairing = false;
    }

    /// There is something else to do than to repair an answer.
    pub(in crate::session) fn back_to_work(&mut self) {
        self.repairing = false;
    }

    /// Whether the next reply is to be nothing but the answer, so that no call
    /// of it runs.
    pub(in crate::session) fn is_repairing(&self) -> bool {
        self.repairing
    }

    /// Whether a text is an answer that fits.
    pub(in crate::session) fn fits(&self, text: &str) -> bool {
        self.spec
            .as_ref()
            .is_some_and(|spec| spec.schema.read(text).is_ok())
    }

    /// Judges a final answer.
    pub(in crate::session) fn check(&mut self, text: &str) -> Checked {
        let Some(spec) = &self.spec else {
            return Checked::Fits(None);
        };
        let violations = match spec.schema.read(text) {
            Ok(value) => return Checked::Fits(Some(value)),
            Err(violations) => violations,
        };
        if self.rounds >= spec.repairs {
            return Checked::Misfit(Stop::InvalidResponse(Box::new(Misfit {
                violations,
                repairs: self.rounds,
            })));
        }
        self.rounds += 1;
        self.repairs += 1;
        self.repairing = true;
        let problems: Vec<String> = violations.iter().map(Violation::to_string).collect();
        Checked::Repair(notes::repair(&problems))
    }

    /// How often an answer was asked for again; none when nothing is asked of
    /// answers.
    pub(in crate::session) fn repairs(&self) -> Option<u32> {
        self.spec.as_ref().map(|_| self.repairs)
    }

    fn shows_schema(&self) -> bool {
        self.format
            .as_ref()
            .is_some_and(ResponseFormat::shows_schema)
    }
}
