//! One reply of the model, with its retries: the only place that tries a call
//! again.

use std::time::Duration;

use serde_json::Value;

use crate::clock::{self, Slept};
use crate::event::{EventKind, LimitKind, ReplyDiscarded, RetryEnd, RetryStart, TextChunk};
use crate::hook::HookPoint;
use crate::message::{AssistantMessage, StopReason, Usage};
use crate::model::{
    Assembler, Client, GiveUp, Model, ModelError, ModelErrorKind, Request, RetryDecision,
    StreamEvent,
};

use super::budget::Accounts;
use super::feed::Feed;
use super::gate::NextCall;
use super::hooks::SessionHooks;
use super::interrupt::{Cause, Interrupt};
use super::stop::Stop;
use super::{Chunks, Sampling};

/// Bytes of output that are taken for one token.
const BYTES_PER_TOKEN: u64 = 4;

/// The most bytes of text, thinking and arguments that one reply may have: many
/// times what any model answers with, and little enough to be held in memory
/// several times.
pub(super) const REPLY_TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The most calls of one reply that are refused one by one because no tool call
/// is left. A reply that asks for more is broken off.
pub(super) const SURPLUS_CALLS_MAX: u32 = 1_000;

/// What sampling needs of its session.
pub(super) struct Sampler<'s> {
    pub(super) client: &'s Client,
    pub(super) sampling: &'s Sampling,
    pub(super) deadline: std::time::Instant,
    pub(super) activity: &'s clock::Activity,
    pub(super) hooks: &'s SessionHooks,
    pub(super) feed: Feed,
    /// What failed attempts used is booked here.
    pub(super) accounts: &'s mut Accounts,
    /// The estimate of the request's prompt.
    pub(super) prompt_tokens: u64,
}

/// A whole reply.
pub(super) struct Sampled {
    pub(super) message: AssistantMessage,
    /// Whether the provider told the usage. An unknown one is zero in the
    /// message, which a budget must not take for free.
    pub(super) usage_known: bool,
}

/// What came of an attempt that gave no reply.
#[derive(Default)]
struct Partial {
    /// Whether a part of the reply was told.
    streamed: bool,
    /// What the provider told of its usage.
    usage: Option<Usage>,
    /// Bytes of text, thinking and arguments.
    received: u64,
    /// Tool calls.
    calls: u32,
    /// Whether these are more than can be taken.
    too_many_calls: bool,
}

impl Partial {
    /// Counts what `event` brings.
    fn count(&mut self, event: &StreamEvent) {
        let bytes = match event {
            StreamEvent::TextDelta { delta, .. }
            | StreamEvent::ThinkingDelta { delta, .. }
            | StreamEvent::ToolCallDelta { delta, .. } => delta.len(),
            StreamEvent::ToolCallStart { id, name, .. } => {
                self.calls = self.calls.saturating_add(1);
                id.len() + name.len()
            }
            StreamEvent::Signature { signature, .. } => signature.len(),
            StreamEvent::ThinkingEnd { signature, .. } => signature.as_ref().map_or(0, String::len),
            StreamEvent::Usage(usage) => {
                self.usage = Some(*usage);
                0
            }
            StreamEvent::Start { .. }
            | StreamEvent::TextStart { .. }
            | StreamEvent::TextEnd { .. }
            | StreamEvent::ThinkingStart { .. }
            | StreamEvent::ToolCallEnd { .. }
            | StreamEvent::Replaced
            | StreamEvent::Stop(_) => 0,
        };
        self.received = self.received.saturating_add(bytes as u64);
    }
}

/// An attempt that gave no reply.
struct Failed {
    error: ModelError,
    /// From 1.
    attempt: u32,
    partial: Partial,
    /// The most tokens that the reply could have had.
    output_tokens: u64,
}

impl Sampler<'_> {
    /// Gets a whole reply. What a failed attempt streamed is discarded.
    pub(super) async fn reply(
        &mut self,
        request: &Request,
        interrupt: &Interrupt,
    ) -> Result<Sampled, Stop> {
        let payload = self.payload(request, interrupt).await;
        let retry_id = clock::new_id();
        let mut attempt = 1;
        loop {
            let mut partial = Partial::default();
            let outcome = tokio::select! {
                biased;
                () = interrupt.token().cancelled() => None,
                outcome = self.attempt(request, payload.as_ref(), &mut partial) => Some(outcome),
            };
            let error = match outcome {
                Some(Ok(sampled)) => {
                    self.retry_ended(&retry_id, attempt, None).await;
                    return Ok(sampled);
                }
                Some(Err(error)) => error,
                None => {
                    let cancelled = ModelError::new(ModelErrorKind::Cancelled, "interrupted");
                    self.discard(&partial, &cancelled).await;
                    self.retry_ended(&retry_id, attempt, Some("interrupted"))
                        .await;
                    return Err(interrupted(interrupt));
                }
            };
            self.discard(&partial, &error).await;
            if partial.too_many_calls {
                let ended = Some(error.message.as_str());
                self.retry_ended(&retry_id, attempt, ended).await;
                return Err(self.too_many_calls(error.message.clone()).await);
            }
            let failed = Failed {
                error,
                attempt,
                partial,
                output_tokens: request.max_output_tokens,
            };
            self.wait(&retry_id, failed, interrupt).await?;
            attempt += 1;
        }
    }

    /// Ends the turn because of a reply that asks for too many calls.
    async fn too_many_calls(&mut self, message: String) -> Stop {
        self.feed.warn("too_many_calls", message).await;
        let kind = LimitKind::ToolCalls;
        self.accounts.reached(kind, &self.feed).await;
        Stop::Limit(kind)
    }

    /// Books what an attempt without a reply used, which is paid for all the
    /// same. Without a word of the provider it is an estimate, once there was
    /// any output.
    async fn discard(&mut self, partial: &Partial, error: &ModelError) {
        let model = self.client.model();
        let output = partial.received.div_ceil(BYTES_PER_TOKEN);
        let mut usage = match partial.usage {
            // The count of the output comes last, and may be missing.
            Some(told) => Usage {
                output: told.output.max(output),
                ..told
            },
            None if output > 0 => Usage {
                input: self.prompt_tokens,
                output,
                ..Usage::default()
            },
            None => return,
        };
        // A writer of summaries may have another price, or none.
        self.accounts.take_up(model);
        usage.cost = model.cost(&usage).unwrap_or_default();
        let told = partial.usage.is_some();
        if told {
            self.accounts.book_aside(&usage);
        } else if self.accounts.book_aside_estimate(&usage, model) {
            let message = format!(
                "a reply of {} broke off before its tokens were reported: the budgets count \
                 an estimate{}",
                model.full_id(),
                unknown_cost(model)
            );
            self.feed.warn("usage_missing", message).await;
        }
        let known = (told && model.price.is_some()) || model.is_free();
        let cost_usd = known.then_some(usage.cost.total);
        self.feed
            .send(EventKind::ReplyDiscarded(ReplyDiscarded {
                model: model.full_id(),
                error_code: error.kind.name().to_owned(),
                request_id: error.request_id.as_deref().map(str::to_owned),
                usage: if told { usage } else { Usage::default() },
                cost_usd,
            }))
            .await;
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
            partial,
            output_tokens,
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
        let again = NextCall {
            first: false,
            prompt_tokens: self.prompt_tokens,
            output_tokens,
            model: self.client.model(),
        };
        if let Some(kind) = self.accounts.lacks_room_for(again) {
            self.accounts.reached(kind, &self.feed).await;
            self.retry_ended(retry_id, attempt, Some(&error.to_string()))
                .await;
            return Err(Stop::Limit(kind));
        }
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
                request_id: error.request_id.map(Into::into),
                discarded_output: partial.streamed,
            }))
            .await;
        // A recorded provider is not waited for.
        let pause = match self.client.is_replayed() {
            true => Duration::ZERO,
            false => delay,
        };
        let slept = self
            .activity
            .paused(clock::sleep(pause, interrupt.token()))
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
        partial: &mut Partial,
    ) -> Result<Sampled, ModelError> {
        let mut reply = self.client.send_as(request, payload).await?;
        let mut assembler = Assembler::new(self.client.model());
        let (mut text, mut thinking) = (String::new(), String::new());
        while let Some(event) = reply.next().await? {
            partial.count(&event);
            self.check_size(partial)?;
            match &event {
                StreamEvent::TextDelta { delta, .. } => {
                    self.chunk(&mut text, delta, EventKind::TextChunk, partial)
                        .await;
                }
                StreamEvent::ThinkingDelta { delta, .. } => {
                    self.chunk(&mut thinking, delta, EventKind::ThinkingChunk, partial)
                        .await;
                }
                _ => {}
            }
            assembler.push(event);
        }
        if assembler.replaced() {
            let message = format!(
                "a reply of {} held bytes that are no text; U+FFFD stands for them",
                self.client.model().full_id()
            );
            self.feed.warn("text_replaced", message).await;
        }
        let usage_known = assembler.usage_known();
        let mut message = assembler.finish().map_err(|mut error| {
            error.request_id = reply.request_id().map(Into::into);
            error
        })?;
        // Some servers say of a reply that they cut that it is whole.
        if message.stop_reason == StopReason::Stop
            && message.usage.output == request.max_output_tokens
        {
            message.stop_reason = StopReason::Length;
        }
        Ok(Sampled {
            message,
            usage_known,
        })
    }

    /// Refuses a reply that grows too large, or asks for far more calls than are
    /// left.
    fn check_size(&self, partial: &mut Partial) -> Result<(), ModelError> {
        let error =
            |message| Err(ModelError::new(ModelErrorKind::BadResponse, message).permanent());
        if partial.received > REPLY_TEXT_BYTES_MAX {
            return error(format!(
                "the reply is larger than {} MiB",
                REPLY_TEXT_BYTES_MAX >> 20
            ));
        }
        let left = self.accounts.calls_left();
        if partial.calls > left.saturating_add(SURPLUS_CALLS_MAX) {
            partial.too_many_calls = true;
            return error(format!(
                "a reply asks for more than {} tool calls, and limits.max_tool_calls leaves \
                 {left}: it was broken off, and none of them ran",
                partial.calls - 1
            ));
        }
        Ok(())
    }

    /// Sends one piece of text, and with `Chunks::Full` all before it.
    async fn chunk(
        &self,
        whole: &mut String,
        delta: &str,
        kind: impl FnOnce(TextChunk) -> EventKind,
        partial: &mut Partial,
    ) {
        if self.sampling.chunks == Chunks::None {
            return;
        }
        partial.streamed = true;
        let content = (self.sampling.chunks == Chunks::Full).then(|| {
            whole.push_str(delta);
            whole.clone()
        });
        let delta = delta.to_owned();
        self.feed.send(kind(TextChunk { content, delta })).await;
    }
}

/// What a warning of a missing usage says of the cost.
pub(super) fn unknown_cost(model: &Model) -> &'static str {
    match model.is_free() {
        true => "",
        false => ", the cost is unknown",
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
