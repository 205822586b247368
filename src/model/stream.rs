//! The answer of a provider while it arrives.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;

use crate::clock::Activity;
use crate::model::StreamEvent;
use crate::model::body::ReplyBody;
use crate::model::cassette::Taping;
use crate::model::client::ClientOptions;
use crate::model::error::ModelError;
use crate::model::transport::{broken, timed_out};
use crate::model::wire::Events;

/// The most that is waited for the end of an answer after its last word.
const DRAIN_MAX: Duration = Duration::from_millis(20);

/// A reply that is being received.
pub(super) struct HttpReply {
    incoming: Incoming,
    body: ReplyBody,
    events: Events,
    /// What ended the stream early; reported after the events before it.
    failed: Option<ModelError>,
    over: bool,
    idle_timeout: Duration,
    activity: Activity,
    request_id: Option<String>,
    /// What no error may repeat.
    secrets: Vec<String>,
}

/// Where the bytes come from.
pub(super) enum Incoming {
    /// The connection, and whoever takes down what it brings.
    Network(Response, Option<Box<Taping>>),
    /// A cassette.
    Recorded(VecDeque<Result<Bytes, ModelError>>),
}

impl Incoming {
    /// The next bytes; none at the end. Cancel safe.
    async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        match self {
            Self::Network(response, taping) => {
                let chunk = response.chunk().await.map_err(broken)?;
                if let (Some(taping), Some(bytes)) = (taping, &chunk) {
                    taping.body(bytes);
                }
                Ok(chunk)
            }
            Self::Recorded(chunks) => chunks.pop_front().transpose(),
        }
    }

    /// Reads what follows the last word, which is mostly nothing: only a
    /// connection that was read to its end serves the next call. It says
    /// nothing, so that it is not taken down.
    async fn drain(&mut self) {
        let Self::Network(response, _) = self else {
            return;
        };
        let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
        // Whatever takes longer is not worth the wait.
        let _ = tokio::time::timeout(DRAIN_MAX, rest).await;
    }

    /// Nothing more is wanted, because of this error of the connection or
    /// without one.
    fn leave(&mut self, error: Option<&ModelError>) {
        if let Self::Network(_, Some(taping)) = self {
            match error {
                Some(error) => taping.failed(error),
                None => taping.ended(),
            }
        }
    }

    /// Whether an error can come after the last word: only those that counted
    /// are recorded.
    fn may_break_late(&self) -> bool {
        matches!(self, Self::Network(..))
    }
}

impl HttpReply {
    pub(super) fn new(
        incoming: Incoming,
        body: ReplyBody,
        options: &ClientOptions,
        secrets: Vec<String>,
    ) -> Self {
        Self {
            request_id: None,
            incoming,
            body,
            events: Events::new(),
            failed: None,
            over: false,
            idle_timeout: options.idle_timeout,
            activity: options.activity.clone(),
            secrets,
        }
    }

    /// The same with the provider's id of the request.
    pub(super) fn identified(self, request_id: Option<String>) -> Self {
        Self { request_id, ..self }
    }

    pub(super) fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Cancel safe: nothing that was received is lost.
    pub(super) async fn next(&mut self) -> Result<Option<StreamEvent>, ModelError> {
        loop {
            if self.over {
                return Ok(None);
            }
            if let Some(StreamEvent::Stop(_)) = self.events.front() {
                self.incoming.drain().await;
            }
            if let Some(event) = self.events.pop_front() {
                self.over = matches!(event, StreamEvent::Stop(_));
                if self.over {
                    self.incoming.leave(None);
                }
                return Ok(Some(event));
            }
            if let Some(error) = &self.failed {
                return Err(error.clone());
            }
            let chunk = tokio::time::timeout(self.idle_timeout, self.incoming.chunk()).await;
            let outcome = match chunk {
                Err(_) => Err(self.lost(timed_out(
                    "nothing came",
                    self.idle_timeout,
                    "settings.stream_idle_timeout",
                ))),
                Ok(Ok(Some(bytes))) => {
                    self.activity.touch();
                    self.body.push(&bytes, &mut self.events)
                }
                Ok(Ok(None)) => self.body.end(&mut self.events),
                // A connection that breaks after the last word harms nobody.
                Ok(Err(_)) if self.body.is_whole() && self.incoming.may_break_late() => {
                    self.body.end(&mut self.events)
                }
                Ok(Err(error)) => Err(self.lost(error)),
            };
            if let Err(error) = outcome {
                self.incoming.leave(None);
                self.failed = Some(self.described(error));
            }
        }
    }

    /// The connection failed, which no byte of it tells.
    fn lost(&mut self, error: ModelError) -> ModelError {
        let error = self.described(error);
        self.incoming.leave(Some(&error));
        error
    }

    fn described(&self, mut error: ModelError) -> ModelError {
        for secret in &self.secrets {
            error.scrub(secret);
        }
        let request_id = self.request_id.as_deref();
        error.request_id = error.request_id.or_else(|| request_id.map(Into::into));
        error
    }
}
