//! One reply of the model, with its retries: the only place that tries a call
//! again.

use serde_json::Value;

use crate::clock::{self, Slept};
use crate::event::{EventKind, RetryEnd, RetryStart, TextChunk};
use crate::hook::HookPoint;
use crate::message::AssistantMessage;
use crate::model::{
    Assembler, Client, GiveUp, ModelError, ModelErrorKind, Request, RetryDecision, StreamEvent,
};

use super::feed::Feed;
use super::hooks::SessionHooks;
use super::interrupt::{Cause, Interrupt};
use super::stop::Stop;
use super::{Chunks, Sampling};

/// What sampling needs of its session.
pub(super) struct Sampler<'s> {
    pub(super) client: &'s Client,
    pub(super) sampling: &'s Sampling,
    pub(super) deadline: std::time::Instant,
    pub(super) activity: &'s clock::Activity,
    pub(super) hooks: &'s SessionHooks,
    pub(super) feed: Feed,
}

/// A whole reply.
pub(super) struct Sampled {
    pub(super) message: AssistantMessage,
    /// Whether the provider told the usage. An unknown one is zero in the
    /// message, which a budget must not take for free.
    pub(super) usage_known: bool,
}

/// An attempt that gave no reply.
struct Failed {
    error: ModelError,
    /// From 1.
    attempt: u32,
    /// Whether a part of the reply was told.
    streamed: bool,
}

impl Sampler<'_> {
    /// Gets a whole reply. What a failed attempt streamed is discarded.
    pub(super) async fn reply(
        &self,
        request: &Request,
        interrupt: &Interrupt,
    ) -> Result<Sampled, Stop> {
        let payload = self.payload(request, interrupt).await;
        let retry_id = clock::new_id();
        let mut attempt = 1;
        loop {
            let mut streamed = false;
            let failed = tokio::select! {
                biased;
                () = interrupt.token().cancelled() => {
                    self.retry_ended(&retry_id, attempt, Some("interrupted")).await;
                    return Err(interrupted(interrupt));
                }
                outcome = self.attempt(request, payload.as_ref(), &mut streamed) => match outcome {
                    Ok(sampled) => {
                        self.retry_ended(&retry_id, attempt, None).await;
                        return Ok(sampled);
                    }
                    Err(error) => Failed { error, attempt, streamed },
                },
            };
            self.wait(&retry_id, failed, interrupt).await?;
            attempt += 1;
        }
    }

    /// Waits before the next attempt, or says why there is none.
    async fn wait(
        &self,
        retry_id: &str,
        failed: Failed,
        interrupt: &Interrupt,
    ) -> Result<(), Stop> {
        let Failed {
            error,
            attempt,
            streamed,
        } = failed;
        let retry = &self.sampling.retry;
        let remaining = self.deadline.saturating_duration_since(clock::monotonic());
        let (delay, source) = match retry.decide(&error, attempt, Some(remaining), clock::jitter) {
            RetryDecision::Wait { delay, source } => (delay, source),
            RetryDecision::GiveUp { because } => {
                self.retry_ended(retry_id, attempt, Some(&error.to_string()))
                    .await;
                return Err(give_up(error, because));
            }
        };
        self.feed
            .send(EventKind::RetryStart(RetryStart {
                retry_id: retry_id.to_owned(),
                attempt: attempt + 1,
                max_attempts: retry.max_attempts,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                source,
                error_code: error.kind.name().to_owned(),
                http_status: error.http_status,
                error_message: error.to_string(),
                discarded_output: streamed,
            }))
            .await;
        let slept = self
            .activity
            .paused(clock::sleep(delay, interrupt.token()))
            .await;
        match slept {
            Slept::Whole => Ok(()),
            Slept::Cancelled => {
                self.retry_ended(retry_id, attempt + 1, Some("interrupted"))
                    .await;
                Err(interrupted(interrupt))
            }
        }
    }

    /// Closes the pair of `retry:start`, when there was one.
    async fn retry_ended(&self, retry_id: &str, attempt: u32, error: Option<&str>) {
        if attempt == 1 {
            return;
        }
        self.feed
            .send(EventKind::RetryEnd(RetryEnd {
                retry_id: retry_id.to_owned(),
                success: error.is_none(),
                attempts: attempt,
                final_error: error.map(str::to_owned),
            }))
            .await;
    }

    /// The body that hooks put in place of the request's own; the attempts share it.
    async fn payload(&self, request: &Request, interrupt: &Interrupt) -> Option<Value> {
        if !self.hooks.listen(HookPoint::BeforeRequest) {
            return None;
        }
        let payload = self.client.payload(request)?;
        let model = self.client.model().full_id();
        self.hooks
            .before_request(model, payload, &self.feed, interrupt.token())
            .await
    }

    async fn attempt(
        &self,
        request: &Request,
        payload: Option<&Value>,
        streamed: &mut bool,
    ) -> Result<Sampled, ModelError> {
        let mut reply = self.client.send_as(request, payload).await?;
        let mut assembler = Assembler::new(self.client.model());
        let (mut text, mut thinking) = (String::new(), String::new());
        while let Some(event) = reply.next().await? {
            if self.sampling.chunks != Chunks::None {
                match &event {
                    StreamEvent::TextDelta { delta, .. } => {
                        *streamed = true;
                        self.chunk(&mut text, delta, EventKind::TextChunk).await;
                    }
                    StreamEvent::ThinkingDelta { delta, .. } => {
                        *streamed = true;
                        self.chunk(&mut thinking, delta, EventKind::ThinkingChunk)
                            .await;
                    }
                    StreamEvent::Start { .. }
                    | StreamEvent::TextStart { .. }
                    | StreamEvent::TextEnd { .. }
                    | StreamEvent::ThinkingStart { .. }
                    | StreamEvent::ThinkingEnd { .. }
                    | StreamEvent::ToolCallStart { .. }
                    | StreamEvent::ToolCallDelta { .. }
                    | StreamEvent::ToolCallEnd { .. }
                    | StreamEvent::Signature { .. }
                    | StreamEvent::Usage(_)
                    | StreamEvent::Stop(_) => {}
                }
            }
            assembler.push(event);
        }
        let usage_known = assembler.usage_known();
        assembler.finish().map(|message| Sampled {
            message,
            usage_known,
        })
    }

    /// Sends one piece of text, and with `Chunks::Full` all before it.
    async fn chunk(
        &self,
        whole: &mut String,
        delta: &str,
        kind: impl FnOnce(TextChunk) -> EventKind,
    ) {
        let content = (self.sampling.chunks == Chunks::Full).then(|| {
            whole.push_str(delta);
            whole.clone()
        });
        let delta = delta.to_owned();
        self.feed.send(kind(TextChunk { content, delta })).await;
    }
}

pub(super) fn interrupted(interrupt: &Interrupt) -> Stop {
    Stop::Interrupted(interrupt.cause().unwrap_or(Cause::User))
}

fn give_up(error: ModelError, because: GiveUp) -> Stop {
    if error.kind == ModelErrorKind::ContentFilter {
        return Stop::Incomplete(format!("the provider filtered the reply: {error}"));
    }
    Stop::Model {
        error: Box::new(error),
        because,
    }
}
