//! A cassette that is being recorded, in memory until the run is over.
//!
//! Recording never changes the run: whatever is too much to keep is told at the
//! end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::clock;
use crate::model::Request;
use crate::model::description::Model;
use crate::model::endpoint;
use crate::model::error::ModelError;
use crate::secret::Redactor;

use super::CASSETTE_BYTES_MAX;
use super::frames;
use super::line::{
    Answer, Asked, Call, Conversation, End, Failed, Line, Opening, Talk, TapedCall, TapedOutput,
    ToolAnswer, VERSION,
};
use super::places::Places;
use super::request::{Head, Ledger, Said};
use super::scrub::Scrub;

/// Where the calls of one job are recorded. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Recording {
    shared: Arc<Mutex<Kept>>,
    scrub: Scrub,
    job: String,
}

#[derive(Debug)]
struct Kept {
    created: String,
    lines: Vec<String>,
    bytes: usize,
    calls: u32,
    tools: u32,
    models: BTreeSet<String>,
    sessions: BTreeMap<String, Vec<String>>,
    talks: BTreeMap<Conversation, Spoken>,
}

/// A conversation up to its newest request.
#[derive(Debug, Default)]
struct Spoken {
    ledger: Ledger,
    last: Option<Said>,
}

/// Why there is no cassette.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the cassette would be larger than {} MiB", CASSETTE_BYTES_MAX >> 20)]
pub struct TooLarge;

impl Recording {
    /// Records without the secrets that `redactor` knows.
    pub fn new(redactor: Redactor) -> Self {
        let kept = Kept {
            created: clock::timestamp(),
            lines: Vec::new(),
            bytes: 0,
            calls: 0,
            tools: 0,
            models: BTreeSet::new(),
            sessions: BTreeMap::new(),
            talks: BTreeMap::new(),
        };
        Self {
            shared: Arc::new(Mutex::new(kept)),
            scrub: Scrub {
                redactor,
                places: Arc::default(),
            },
            job: String::new(),
        }
    }

    /// The same for the calls of a job, which knows `places`.
    #[must_use]
    pub fn of_job(&self, job: &str, places: Places) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            scrub: Scrub {
                redactor: self.scrub.redactor.clone(),
                places: Arc::new(places),
            },
            job: job.to_owned(),
        }
    }

    /// Takes down a model that may be asked, so that a replay has it as well.
    pub(in crate::model) fn know(&self, model: &Model) {
        self.kept().describe(model, &self.scrub);
    }

    /// Takes down the request of a call; what comes of it follows.
    pub(in crate::model) fn begin(
        &self,
        model: &Model,
        talk: Talk,
        request: &Request,
        payload: Option<&Value>,
    ) -> Taping {
        let mut kept = self.kept();
        kept.describe(model, &self.scrub);
        let conversation = Conversation {
            job: self.job.clone(),
            session: kept.session(&self.job, &request.session_id),
            talk,
        };
        let spoken = kept.talks.entry(conversation.clone()).or_default();
        let said = spoken
            .ledger
            .say(model.full_id(), request, payload, &self.scrub);
        let asked = spoken.differing(said);
        drop(kept);
        Taping {
            recording: self.clone(),
            asked: Some((conversation, asked)),
            answer: Answer::default(),
            body: Vec::new(),
            secrets: Vec::new(),
            ended: false,
        }
    }

    /// Takes down what a tool answered.
    pub fn tool(&self, call: TapedCall<'_>, output: TapedOutput) {
        let mut kept = self.kept();
        kept.tools += 1;
        let answer = ToolAnswer {
            job: self.job.clone(),
            session: kept.session(&self.job, call.session),
            place: call.place.to_owned(),
            name: call.name.to_owned(),
            arguments: self.scrub.value(call.arguments.clone()),
            output,
        };
        kept.keep_scrubbed(&Line::Tool(Box::new(answer)), &self.scrub);
    }

    /// The whole cassette, as it is now.
    ///
    /// # Errors
    /// When it would be larger than is read again.
    pub fn text(&self) -> Result<String, TooLarge> {
        let kept = self.kept();
        if kept.bytes > CASSETTE_BYTES_MAX {
            return Err(TooLarge);
        }
        let opening = Line::Cassette(Opening {
            version: VERSION,
            agent: env!("CARGO_PKG_VERSION").to_owned(),
            created: kept.created.clone(),
        });
        let end = Line::End(End {
            calls: kept.calls,
            tools: kept.tools,
        });
        let mut text = line_of(&opening);
        for line in &kept.lines {
            text.push_str(line);
        }
        text.push_str(&line_of(&end));
        Ok(text)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Lines are appended whole, so what a panic left behind can be used.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Keeps what a model is, once.
    fn describe(&mut self, model: &Model, scrub: &Scrub) {
        if self.models.insert(model.full_id()) {
            let mut model = model.clone();
            model.base_url = endpoint::without_login(&model.base_url);
            self.keep(&Line::Model(Box::new(model)), scrub);
        }
    }

    /// The number of a job's session, from 1.
    fn session(&mut self, job: &str, id: &str) -> u32 {
        let known = self.sessions.entry(job.to_owned()).or_default();
        super::number(known, id)
    }

    /// Keeps a line whose texts are clean; what is known only by what stands
    /// around it is taken out now.
    fn keep(&mut self, line: &Line, scrub: &Scrub) {
        let text = line_of(line);
        self.push(scrub.redactor.redact(&text).into_owned());
    }

    /// Keeps a line whose texts may hold anything.
    fn keep_scrubbed(&mut self, line: &Line, scrub: &Scrub) {
        match serde_json::to_value(line) {
            Ok(value) => self.push(format!("{}\n", scrub.value(value))),
            Err(_) => self.keep(line, scrub),
        }
    }

    /// What is too much is counted, but not kept.
    fn push(&mut self, line: String) {
        self.bytes = self.bytes.saturating_add(line.len());
        if self.bytes <= CASSETTE_BYTES_MAX {
            self.lines.push(line);
        } else {
            self.lines.clear();
        }
    }
}

fn line_of(line: &Line) -> String {
    let mut text = serde_json::to_string(line).expect("texts, numbers and lists become JSON");
    text.push('\n');
    text
}

impl Spoken {
    /// How `said` differs from the request before it, which it becomes.
    fn differing(&mut self, said: Said) -> Asked {
        let before = self.last.as_ref();
        let kept = before.map_or(0, |last| {
            let both = last.messages.iter().zip(&said.messages);
            both.take_while(|(one, other)| Arc::ptr_eq(one, other) || one == other)
                .count()
        });
        let head: Option<Head> = match before {
            Some(last) if last.head == said.head => None,
            _ => Some(said.head.clone()),
        };
        let new = said.messages.iter().skip(kept);
        let asked = Asked {
            fingerprint: said.fingerprint.clone(),
            head,
            kept,
            messages: new.map(|message| message.as_ref().clone()).collect(),
        };
        self.last = Some(said);
        asked
    }
}

/// A call that is being recorded. It is kept when this is dropped; one that did
/// not end by then was broken off.
pub(in crate::model) struct Taping {
    recording: Recording,
    asked: Option<(Conversation, Asked)>,
    answer: Answer,
    body: Vec<u8>,
    secrets: Vec<String>,
    ended: bool,
}

impl Taping {
    /// Whatever comes, these are not kept: a key may be from too far away to be
    /// known as a secret.
    pub(in crate::model) fn hide(&mut self, secrets: &[String]) {
        let said = secrets.iter().filter(|secret| !secret.is_empty());
        self.secrets.extend(said.cloned());
    }

    /// Takes the secrets of this call alone out of what was answered. One that is
    /// too short to be told from other text stays, as it does everywhere.
    fn hide_own(&self, answer: &mut Answer) {
        let scrub = Scrub {
            redactor: Redactor::new(self.secrets.iter().cloned()),
            places: Arc::default(),
        };
        answer.frames = frames::of_body(answer.frames.concat().as_bytes(), &scrub);
        for value in answer.headers.values_mut() {
            *value = scrub.text(value).into_owned();
        }
    }

    /// The head of the answer, with the headers that matter.
    pub(in crate::model) fn head(&mut self, status: u16, headers: &BTreeMap<String, String>) {
        self.answer.status = Some(status);
        self.answer.headers.clone_from(headers);
    }

    /// More of the body.
    pub(in crate::model) fn body(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    /// The connection ended with an error.
    pub(in crate::model) fn failed(&mut self, error: &ModelError) {
        self.answer.failed = Some(Failed::of(error));
        self.ended = true;
    }

    /// Nothing more is wanted.
    pub(in crate::model) fn ended(&mut self) {
        self.ended = true;
    }
}

impl Drop for Taping {
    fn drop(&mut self) {
        let Some((conversation, request)) = self.asked.take() else {
            return;
        };
        let scrub = &self.recording.scrub;
        let mut answer = std::mem::take(&mut self.answer);
        answer.frames = frames::of_body(&self.body, scrub);
        answer.cancelled = !self.ended;
        for value in answer.headers.values_mut() {
            *value = scrub.text(value).into_owned();
        }
        if let Some(failed) = &mut answer.failed {
            failed.message = scrub.text(&failed.message).into_owned();
        }
        self.hide_own(&mut answer);
        let call = Line::Call(Box::new(Call {
            conversation,
            request,
            answer,
        }));
        let mut kept = self.recording.kept();
        kept.calls += 1;
        kept.keep(&call, scrub);
    }
}
