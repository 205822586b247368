//! The answer of a provider while it arrives.

use reqwest::Response;

use crate::clock::Activity;
use crate::model::StreamEvent;
use crate::model::client::ClientOptions;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::http::{broken, request_id, timed_out};
use crate::model::sse::SseDecoder;
use crate::model::wire::{Decoder, Events};

/// The most bytes of one answer, after decompression.
const REPLY_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The most bytes of an answer that is one document.
const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A reply that is being received.
pub(super) struct HttpReply {
    response: Response,
    decoder: Box<dyn Decoder>,
    body: Body,
    events: Events,
    /// What ended the stream early; reported after the events before it.
    failed: Option<ModelError>,
    over: bool,
    received: usize,
    idle_timeout: std::time::Duration,
    activity: Activity,
    request_id: Option<String>,
    key: Option<String>,
}

/// What the answer turned out to be. Its first character decides, because
/// servers send errors and whole replies under any content type.
enum Body {
    Unknown,
    Stream(SseDecoder),
    Document(Vec<u8>),
}

impl HttpReply {
    pub(super) fn new(
        response: Response,
        decoder: Box<dyn Decoder>,
        options: &ClientOptions,
        key: Option<String>,
    ) -> Self {
        Self {
            request_id: request_id(response.headers()),
            response,
            decoder,
            body: Body::Unknown,
            events: Events::new(),
            failed: None,
            over: false,
            received: 0,
            idle_timeout: options.idle_timeout,
            activity: options.activity.clone(),
            key,
        }
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
            if let Some(event) = self.events.pop_front() {
                self.over = matches!(event, StreamEvent::Stop(_));
                return Ok(Some(event));
            }
            if let Some(error) = &self.failed {
                return Err(error.clone());
            }
            let chunk = tokio::time::timeout(self.idle_timeout, self.response.chunk()).await;
            let outcome = match chunk {
                Err(_) => Err(timed_out("nothing came", self.idle_timeout)),
                Ok(Ok(Some(bytes))) => self.take(&bytes),
                Ok(Ok(None)) => self.end(),
                // A connection that breaks after the last word harms nobody.
                Ok(Err(_)) if self.decoder.is_whole() => self.end(),
                Ok(Err(error)) => Err(broken(error)),
            };
            if let Err(error) = outcome {
                self.failed = Some(self.described(error));
            }
        }
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), ModelError> {
        self.activity.touch();
        self.received = self.received.saturating_add(bytes.len());
        if self.received > REPLY_BYTES_MAX {
            return Err(too_large(REPLY_BYTES_MAX));
        }
        if let Body::Unknown = self.body {
            // A mark of byte order may come in pieces: it is dropped wherever
            // they end.
            let start = bytes
                .iter()
                .position(|byte| !byte.is_ascii_whitespace() && !b"\xef\xbb\xbf".contains(byte));
            let Some((first, rest)) = start
                .and_then(|at| bytes.get(at..))
                .and_then(|rest| Some((rest.first()?, rest)))
            else {
                return Ok(());
            };
            bytes = rest;
            self.body = match first {
                b'{' | b'[' => Body::Document(Vec::new()),
                b'<' => return Err(web_page()),
                _ => Body::Stream(SseDecoder::new()),
            };
        }
        match &mut self.body {
            Body::Unknown => Ok(()),
            Body::Stream(decoder) => {
                let mut frames = Vec::new();
                let pushed = decoder.push(bytes, &mut frames);
                for frame in frames {
                    self.decoder.frame(&frame, &mut self.events)?;
                }
                pushed
            }
            Body::Document(document) => {
                if document.len() + bytes.len() > DOCUMENT_BYTES_MAX {
                    return Err(too_large(DOCUMENT_BYTES_MAX));
                }
                document.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn end(&mut self) -> Result<(), ModelError> {
        match &mut self.body {
            Body::Unknown => {}
            Body::Stream(decoder) => {
                let mut frames = Vec::new();
                decoder.finish(&mut frames)?;
                for frame in frames {
                    self.decoder
                        .frame(&frame, &mut self.events)
                        .map_err(|error| cut_if_unreadable(error, "event"))?;
                }
            }
            Body::Document(document) => {
                let document = std::mem::take(document);
                self.decoder
                    .document(String::from_utf8_lossy(&document).trim(), &mut self.events)?;
            }
        }
        self.decoder.end(&mut self.events)
    }

    fn described(&self, mut error: ModelError) -> ModelError {
        if let Some(key) = &self.key {
            error.scrub(key);
        }
        error.request_id = error.request_id.or_else(|| self.request_id.clone());
        error
    }
}

/// The last event before the end of the connection is rarely whole.
fn cut_if_unreadable(error: ModelError, what: &str) -> ModelError {
    if error.kind == ModelErrorKind::BadResponse {
        return ModelError::new(
            ModelErrorKind::Truncated,
            format!("the stream ended inside an {what}"),
        );
    }
    error
}

fn too_large(bytes_max: usize) -> ModelError {
    ModelError::new(
        ModelErrorKind::BadResponse,
        format!("the answer is larger than {} MiB", bytes_max >> 20),
    )
    .permanent()
}

fn web_page() -> ModelError {
    ModelError::new(
        ModelErrorKind::BadResponse,
        "the answer is a web page, not a reply of a model",
    )
    .permanent()
    .with_hint("check base_url")
}
