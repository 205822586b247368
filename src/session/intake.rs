//! What comes in: the hooks may change, answer or refuse an input before it is a
//! message, and add to the run that it starts.

use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::event::{EventKind, Interrupted, InterruptedBy, MessageSource};
use crate::hook::InputVerdict;
use crate::store::EntryKind;

use super::Session;
use super::call::text_of;
use super::engine::{Engine, tell_user};
use super::feed::Feed;
use super::refusal::SessionError;
use super::stop::Stop;

/// What became of an input.
pub(super) enum Intake {
    /// It goes on as this.
    Goes(String),
    /// A hook answered it.
    Answered(String),
}

impl Session {
    /// Shows an input to the hooks. `cancel` and the deadline end their time,
    /// and the turn that follows tells of either.
    ///
    /// # Errors
    /// [`Stop::Denied`] when a hook refuses it.
    pub(super) async fn take_in(
        &self,
        text: String,
        cancel: &CancellationToken,
    ) -> Result<Intake, SessionError> {
        let cancel = cancel.child_token();
        let verdict = {
            let asking = self.hooks.input(&text, &self.feed, &cancel);
            tokio::pin!(asking);
            tokio::select! {
                biased;
                verdict = &mut asking => verdict,
                () = clock::until(Some(self.blueprint.deadline())) => {
                    cancel.cancel();
                    asking.await
                }
            }
        };
        match verdict {
            InputVerdict::Continue => Ok(Intake::Goes(text)),
            InputVerdict::Transform(text) => Ok(Intake::Goes(text)),
            InputVerdict::Handled(answer) => {
                let message = "a hook answered the input, so that no turn ran";
                self.feed.warn("input_handled", message.to_owned()).await;
                Ok(Intake::Answered(answer))
            }
            InputVerdict::Block(reason) => {
                let stop = Stop::Denied(format!("a hook refused the input: {reason}"));
                let told = EventKind::SessionInterrupted(Interrupted {
                    agent_id: "main".to_owned(),
                    content: stop.to_string(),
                    by: InterruptedBy::Policy,
                });
                self.feed.send(told).await;
                Err(stop.into())
            }
        }
    }
}

impl Engine {
    /// Takes up what hooks add to a run: messages behind its prompt, another
    /// system prompt.
    pub(super) async fn begin_run(
        &mut self,
        prompt: &str,
        feed: &Feed,
        cancel: &CancellationToken,
    ) -> Result<(), Stop> {
        self.take_up_tools();
        let start = self
            .hooks
            .before_agent_start(prompt, &self.system, feed, cancel)
            .await;
        for message in start.messages {
            let text = text_of(&message.content);
            let entry = self.record.append(EntryKind::CustomMessage {
                custom_type: message.custom_type,
                content: message.content,
                display: message.display,
                details: None,
            })?;
            tell_user(&entry, &text, MessageSource::Synthetic, feed).await;
        }
        self.override_system(start.system_prompt);
        Ok(())
    }
}
