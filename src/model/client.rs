//! One model, ready to be called: over HTTP or from a script.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::clock::Activity;
use crate::message::{Content, Message};
use crate::model::cassette::{Recording, Replay, Talk};
use crate::model::description::Model;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::http::{self, Endpoint};
use crate::model::proxy::Proxies;
use crate::model::said::NO_EXPLANATION;
use crate::model::script::Script;
use crate::model::scripted::{Player, ScriptedReply};
use crate::model::stream::HttpReply;
use crate::model::tls::Authorities;
use crate::model::wire::Encoder;
use crate::model::{Request, StreamEvent};

/// From so many bytes of text on a prompt may be too long for the smallest of the
/// windows that are in use.
const LONG_PROMPT_BYTES: usize = 24 * 1024;

/// How long a call may take, who hears that it lives, and what of its
/// surroundings a connection has to know.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Until the connection stands.
    pub connect_timeout: Duration,
    /// Until the head of the answer is there.
    pub header_timeout: Duration,
    /// Between two pieces of the answer.
    pub idle_timeout: Duration,
    /// Touched whenever something arrives.
    pub activity: Activity,
    /// The proxies on the way; by default none.
    pub proxies: Proxies,
    /// Who is trusted beside the built-in authorities.
    pub authorities: Option<Authorities>,
}

impl ClientOptions {
    /// The usual times: 10 s, 120 s and 5 minutes.
    pub fn new(activity: Activity) -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(300),
            activity,
            proxies: Proxies::default(),
            authorities: None,
        }
    }
}

/// One model, ready to be called. Cheap to clone; clones share connections,
/// or the script.
///
/// A client remembers the newest request, so that the next one of the same
/// conversation costs only what is new in it: each conversation should have a
/// clone of its own. Clones begin with nothing remembered.
pub struct Client {
    model: Arc<Model>,
    backend: Arc<Backend>,
    encoder: Mutex<Encoder>,
    recording: Option<Recording>,
    talk: Talk,
}

enum Backend {
    Http(Box<Endpoint>),
    Scripted(Player),
    Replayed(Box<Replay>, ClientOptions),
}

impl Clone for Client {
    fn clone(&self) -> Self {
        Self {
            recording: self.recording.clone(),
            talk: self.talk,
            ..Self::new(Arc::clone(&self.model), Arc::clone(&self.backend))
        }
    }
}

impl std::fmt::Debug for Client {
    // The key must not appear.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Client")
            .field("model", &self.model.full_id())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client of the model's endpoint. Opens no connection.
    ///
    /// # Errors
    /// `Auth` when a key is needed and there is none, or it cannot be one;
    /// `Setup` when the base URL cannot be used.
    pub fn http(
        model: Model,
        api_key: Option<String>,
        options: ClientOptions,
    ) -> Result<Client, ModelError> {
        let endpoint = Endpoint::new(&model, api_key, options)?;
        Ok(Self::of(model, Backend::Http(Box::new(endpoint))))
    }

    /// A client that plays `script` and needs neither network nor key. A window
    /// that the script names is the model's.
    pub fn scripted(mut model: Model, script: Script, options: ClientOptions) -> Client {
        if let Some(window) = script.context_window {
            model.context_window = window;
            model.limits_known = true;
        }
        Self::of(model, Backend::Scripted(Player::new(script, options)))
    }

    /// A client that answers from a cassette and needs neither network nor key.
    pub fn replayed(model: Model, replay: Replay, options: ClientOptions) -> Client {
        Self::of(model, Backend::Replayed(Box::new(replay), options))
    }

    /// The same, and its calls are recorded. Those of a script, which is a
    /// recording already, are not.
    #[must_use]
    pub fn recorded(self, recording: Recording) -> Client {
        if let Backend::Http(_) = *self.backend {
            recording.know(&self.model);
        }
        Self {
            recording: Some(recording),
            ..self
        }
    }

    /// A clone for calls of another kind of the same session.
    #[must_use]
    pub fn about(&self, talk: Talk) -> Client {
        Self {
            talk,
            ..self.clone()
        }
    }

    /// Whether it answers from a cassette, so that no wait makes sense.
    pub fn is_replayed(&self) -> bool {
        matches!(*self.backend, Backend::Replayed(..))
    }

    fn of(model: Model, backend: Backend) -> Client {
        Self::new(Arc::new(model), Arc::new(backend))
    }

    fn new(model: Arc<Model>, backend: Arc<Backend>) -> Client {
        Self {
            encoder: Mutex::new(Encoder::new(Arc::clone(&model))),
            model,
            backend,
            recording: None,
            talk: Talk::default(),
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Opens one call. Dropping the future or the reply cancels it.
    ///
    /// # Errors
    /// Whatever went wrong up to the head of the answer.
    pub async fn send(&self, request: &Request) -> Result<Reply, ModelError> {
        self.send_as(request, None).await
    }

    /// The body that [`Client::send`] sends; none when the model is a script.
    pub fn payload(&self, request: &Request) -> Option<Value> {
        match &*self.backend {
            Backend::Http(_) | Backend::Replayed(..) => {
                serde_json::from_slice(&self.encoder().encode(request)).ok()
            }
            Backend::Scripted(_) => None,
        }
    }

    /// Like [`Client::send`], with `payload` in place of the request's own body.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_as(
        &self,
        request: &Request,
        payload: Option<&Value>,
    ) -> Result<Reply, ModelError> {
        if request.messages.is_empty() {
            return Err(ModelError::new(
                ModelErrorKind::InvalidRequest,
                "a request needs at least one message",
            ));
        }
        let source = match &*self.backend {
            Backend::Http(endpoint) => {
                let body = match payload {
                    Some(payload) => payload.to_string().into(),
                    None => self.encoder().encode(request),
                };
                let taping = self
                    .recording
                    .as_ref()
                    .map(|recording| recording.begin(&self.model, self.talk, request, payload));
                let sent = endpoint.send(&self.model, body, taping).await;
                Source::Http(Box::new(sent.map_err(|error| explained(error, request))?))
            }
            Backend::Replayed(replay, options) => {
                let played = replay.answer(&self.model, self.talk, request, payload)?;
                let played = http::play(&self.model, played, options);
                Source::Http(Box::new(played.map_err(|error| explained(error, request))?))
            }
            Backend::Scripted(player) => Source::Scripted(player.send(request).await?),
        };
        Ok(Reply { source })
    }

    fn encoder(&self) -> std::sync::MutexGuard<'_, Encoder> {
        // An encoder that a panic left behind has merely forgotten.
        self.encoder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the use of the model.
    ///
    /// # Errors
    /// `Script` when a strict script has replies left over.
    pub fn finish(&self) -> Result<(), ModelError> {
        match &*self.backend {
            Backend::Http(_) | Backend::Replayed(..) => Ok(()),
            Backend::Scripted(player) => player.finish(),
        }
    }
}

/// The error of a request that was refused without a word: some providers do so
/// when the prompt is too long.
fn explained(mut error: ModelError, request: &Request) -> ModelError {
    let unexplained = error.kind == ModelErrorKind::InvalidRequest
        && error.http_status == Some(400)
        && error.message == NO_EXPLANATION;
    if unexplained && text_bytes(request) >= LONG_PROMPT_BYTES {
        error.kind = ModelErrorKind::ContextOverflow;
    }
    error
}

/// The bytes of text in the messages of a request.
fn text_bytes(request: &Request) -> usize {
    let content = request
        .messages
        .iter()
        .map(|message| match message.as_ref() {
            Message::User(message) => &message.content,
            Message::Assistant(message) => &message.content,
            Message::ToolResult(message) => &message.content,
        });
    let bytes = content.flatten().map(|block| match block {
        Content::Text(text) => text.text.len(),
        Content::Thinking(thinking) => thinking.thinking.len(),
        Content::ToolCall(call) => call.arguments.to_string().len(),
        Content::Image(_) => 0,
    });
    bytes.sum()
}

/// A reply that is being received.
pub struct Reply {
    source: Source,
}

enum Source {
    Http(Box<HttpReply>),
    Scripted(ScriptedReply),
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reply").finish_non_exhaustive()
    }
}

impl Reply {
    /// The next event; `None` only after [`StreamEvent::Stop`]. Cancel safe.
    ///
    /// # Errors
    /// Whatever went wrong before the reply was whole; again the same when
    /// asked again.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, ModelError> {
        match &mut self.source {
            Source::Http(reply) => reply.next().await,
            Source::Scripted(reply) => reply.next(),
        }
    }

    /// The provider's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        match &self.source {
            Source::Http(reply) => reply.request_id(),
            Source::Scripted(_) => None,
        }
    }
}
