//! A cassette that answers: call by call, in the order of each conversation.
//!
//! The first thing that does not fit ends it: every call after that gets the
//! same error, so that a run cannot go on beside its recording.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use crate::model::Request;
use crate::model::description::Model;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::secret::Redactor;

use super::difference::{self, Difference, Spoken, is_result};
use super::file::Tape;
use super::line::{Answer, Call, Conversation, Talk, TapedCall, TapedOutput, ToolAnswer};
use super::places::Places;
use super::request::{Ledger, Said};
use super::scrub::Scrub;

/// What helps when a tool never says the same twice.
const RUNNING_TOOLS: &str =
    "what a tool says may be new each time; --replay-tools takes it from the cassette";

/// A cassette that can be read. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cassette {
    pub(super) tape: Arc<Tape>,
}

/// Where the calls of one job are answered. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Replay {
    tape: Arc<Tape>,
    scrub: Scrub,
    /// The job as the cassette calls it.
    job: String,
    played: Arc<Mutex<Played>>,
}

#[derive(Debug, Default)]
struct Played {
    sessions: Vec<String>,
    ledgers: BTreeMap<Conversation, Ledger>,
    /// How many calls of each conversation were answered.
    calls: BTreeMap<Conversation, usize>,
    /// The tool results that were given.
    tools: BTreeSet<(u32, String)>,
    failed: Option<ModelError>,
}

/// Why a call has no answer.
enum Unanswered<'c> {
    /// The conversation has no such call.
    Missing,
    /// It answers another request.
    Differs(&'c Call, Difference),
    /// It was broken off when it was recorded.
    BrokenOff,
}

/// What a recorded call gives.
#[derive(Debug)]
pub(in crate::model) struct Playback {
    /// The status and the headers; none when the call got no head.
    pub(in crate::model) head: Option<(u16, BTreeMap<String, String>)>,
    pub(in crate::model) body: Vec<Bytes>,
    /// What the connection ended with.
    pub(in crate::model) failed: Option<ModelError>,
}

impl Unanswered<'_> {
    /// Whether a tool that says something else now may be to blame.
    fn is_of_result(&self, said: &Said) -> bool {
        match self {
            Self::Missing => said.messages.last().is_some_and(|last| is_result(last)),
            Self::Differs(_, difference) => difference.of_result,
            Self::BrokenOff => false,
        }
    }
}

impl Cassette {
    /// The file, for people.
    pub fn name(&self) -> &str {
        &self.tape.name
    }

    /// The models that were asked, in the order of their first calls.
    pub fn models(&self) -> impl Iterator<Item = &Model> {
        self.tape.models.iter()
    }

    /// The model that a job asked first.
    pub fn first_model(&self, job: &str) -> Option<&Model> {
        let job = self.recorded_name(job);
        let mut calls = self.tape.calls.iter();
        let first = calls.find(|call| call.conversation.job == job);
        let head = first.and_then(|call| call.request.head.as_ref());
        let asked = |model: &&Model| head.is_none_or(|head| head.model == model.full_id());
        self.tape.models.iter().find(asked)
    }

    /// What answers a job.
    pub fn of_job(&self, job: &str, places: Places, redactor: Redactor) -> Replay {
        Replay {
            tape: Arc::clone(&self.tape),
            scrub: Scrub {
                redactor,
                places: Arc::new(places),
            },
            job: self.recorded_name(job).to_owned(),
            played: Arc::default(),
        }
    }

    /// The job as the cassette calls it: the only one may be called otherwise
    /// now.
    fn recorded_name<'n>(&'n self, job: &'n str) -> &'n str {
        let jobs = self.tape.jobs();
        match jobs.first() {
            Some(only) if jobs.len() == 1 => only,
            _ => job,
        }
    }
}

impl Replay {
    /// The recorded model that `name` stands for: its id, or the end of it.
    pub fn model(&self, name: &str) -> Option<&Model> {
        let mut models = self.tape.models.iter();
        models.find(|model| model.full_id() == name || model.id == name)
    }

    /// The recorded models.
    pub fn models(&self) -> impl Iterator<Item = &Model> {
        self.tape.models.iter()
    }

    /// The file, for people.
    pub fn name(&self) -> &str {
        &self.tape.name
    }

    /// The answer to the next call of the request's conversation.
    ///
    /// # Errors
    /// `Replay` when there is none, or when it answers another request.
    pub(in crate::model) fn answer(
        &self,
        model: &Model,
        talk: Talk,
        request: &Request,
        payload: Option<&Value>,
    ) -> Result<Playback, ModelError> {
        let mut played = self.played();
        if let Some(failed) = &played.failed {
            return Err(failed.clone());
        }
        let conversation = Conversation {
            job: self.job.clone(),
            session: super::number(&mut played.sessions, &request.session_id),
            talk,
        };
        let ledger = played.ledgers.entry(conversation.clone()).or_default();
        let said = ledger.say(model.full_id(), request, payload, &self.scrub);
        let at = played.calls.get(&conversation).copied().unwrap_or(0);
        match self.find(&conversation, at, &said) {
            Ok(answer) => {
                let playback = self.playback(answer);
                played.calls.insert(conversation, at + 1);
                Ok(playback)
            }
            Err(unanswered) => {
                let mut error = self.unanswered(&unanswered, &conversation, at, &said);
                if played.tools.is_empty() && unanswered.is_of_result(&said) {
                    error.hints.insert(0, RUNNING_TOOLS.to_owned());
                }
                played.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// What a tool answered to this call.
    ///
    /// # Errors
    /// `Replay` when the call did not run when it was recorded, or was another.
    pub fn tool(&self, call: TapedCall<'_>) -> Result<TapedOutput, ModelError> {
        let mut played = self.played();
        if let Some(failed) = &played.failed {
            return Err(failed.clone());
        }
        let session = super::number(&mut played.sessions, call.session);
        match self.recorded(session, call) {
            Ok(answer) => {
                played.tools.insert((session, answer.place.clone()));
                Ok(self.local_output(answer))
            }
            Err(error) => {
                played.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// What the cassette holds and nobody asked for, or what did not fit before.
    /// `tools` are those whose results came from the cassette.
    pub fn leftover(&self, tools: ToolsFrom) -> Option<ModelError> {
        let played = self.played();
        if let Some(failed) = &played.failed {
            return Some(failed.clone());
        }
        for (conversation, recorded) in &self.tape.index {
            let answered = played.calls.get(conversation).copied().unwrap_or(0);
            if conversation.job == self.job && answered < recorded.len() {
                return Some(self.mismatch(format!(
                    "the run is over, and {} of the {} calls of {} were not made",
                    recorded.len() - answered,
                    recorded.len(),
                    conversation.talk.words(),
                )));
            }
        }
        let tools = self
            .tape
            .tools
            .iter()
            .filter(|_| tools == ToolsFrom::Cassette);
        let mut unused = tools.filter(|answer| {
            let taken = (answer.session, answer.place.clone());
            answer.job == self.job && !played.tools.contains(&taken)
        });
        unused.next().map(|answer| {
            self.mismatch(format!(
                "{} {} ran when it was recorded, and does not now",
                answer.name, answer.arguments
            ))
        })
    }

    /// The recorded answer, if it is one to `said`.
    fn find(
        &self,
        conversation: &Conversation,
        at: usize,
        said: &Said,
    ) -> Result<&Answer, Unanswered<'_>> {
        let recorded = self.tape.index.get(conversation);
        let calls = || {
            let lines = recorded.into_iter().flatten();
            lines.filter_map(|line| self.tape.calls.get(*line))
        };
        let Some(call) = calls().nth(at) else {
            return Err(Unanswered::Missing);
        };
        if call.request.fingerprint != said.fingerprint {
            let before = Spoken::at(calls(), at);
            if let Some(difference) = difference::between(&before, said) {
                return Err(Unanswered::Differs(call, difference));
            }
        }
        if call.answer.cancelled {
            return Err(Unanswered::BrokenOff);
        }
        Ok(&call.answer)
    }

    fn unanswered(
        &self,
        why: &Unanswered<'_>,
        conversation: &Conversation,
        at: usize,
        said: &Said,
    ) -> ModelError {
        match why {
            Unanswered::Missing => self.missing(conversation, at, said),
            Unanswered::Differs(call, difference) => self.differs(call, at, &difference.text),
            Unanswered::BrokenOff => self.mismatch(format!(
                "call {} was broken off when it was recorded, so there is no answer to it",
                at + 1
            )),
        }
    }

    fn missing(&self, conversation: &Conversation, at: usize, said: &Said) -> ModelError {
        let recorded = self.tape.jobs();
        if !recorded.contains(self.job.as_str()) {
            let recorded: Vec<&str> = recorded.into_iter().collect();
            return self.mismatch(format!(
                "it has no calls of the job `{}`, only of {}",
                self.job,
                recorded.join(", ")
            ));
        }
        let asked = difference::newest(said);
        self.mismatch(format!(
            "{} has {at} calls, and now there is one more{asked}",
            conversation.talk.words()
        ))
    }

    fn differs(&self, call: &Call, at: usize, difference: &str) -> ModelError {
        let talk = call.conversation.talk.words();
        let mut error = self.mismatch(format!("call {} of {talk} differs:\n{difference}", at + 1));
        if self.tape.agent != env!("CARGO_PKG_VERSION") {
            error.hints.push(format!(
                "it was recorded by version {}, and this is {}: words of the program itself may \
                 have changed",
                self.tape.agent,
                env!("CARGO_PKG_VERSION")
            ));
        }
        error
    }

    fn mismatch(&self, what: String) -> ModelError {
        let message = format!("{}: {what}", self.tape.name);
        ModelError::new(ModelErrorKind::Replay, message).with_hint(format!(
            "if the change is meant, record it again: --record {}",
            self.tape.name
        ))
    }

    fn playback(&self, answer: &Answer) -> Playback {
        let local = |text: &str| Bytes::from(self.scrub.places.local(text).into_owned());
        Playback {
            head: answer.status.map(|status| (status, answer.headers.clone())),
            body: answer.frames.iter().map(|frame| local(frame)).collect(),
            failed: answer.failed.as_ref().map(|failed| failed.error()),
        }
    }

    fn recorded(&self, session: u32, call: TapedCall<'_>) -> Result<&ToolAnswer, ModelError> {
        let mut tools = self.tape.tools.iter();
        let answer = tools.find(|answer| {
            answer.job == self.job && answer.session == session && answer.place == call.place
        });
        let arguments = self.scrub.value(call.arguments.clone());
        let Some(answer) = answer else {
            return Err(self.mismatch(format!(
                "{} {arguments} has no recorded result: it did not run when it was recorded",
                call.name
            )));
        };
        if answer.name != call.name || answer.arguments != arguments {
            return Err(self.mismatch(format!(
                "the call {} {} was recorded, and now it is {} {arguments}",
                answer.name, answer.arguments, call.name
            )));
        }
        Ok(answer)
    }

    fn local_output(&self, answer: &ToolAnswer) -> TapedOutput {
        let recorded = &answer.output;
        let local = serde_json::to_string(recorded)
            .ok()
            .and_then(|text| serde_json::from_str(&self.scrub.places.local(&text)).ok());
        local.unwrap_or_else(|| recorded.clone())
    }

    fn played(&self) -> MutexGuard<'_, Played> {
        // Counters of what was played: a panic leaves them as they are.
        self.played.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the results of tools come from in a replayed run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolsFrom {
    /// The tools run.
    #[default]
    Running,
    /// From the cassette: nothing runs.
    Cassette,
}
