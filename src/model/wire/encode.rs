//! Turns the requests of one conversation into bodies, each message once.
//!
//! What a message becomes depends on its group, a reply and all up to the next
//! one, and on the ids of calls before it. The encoder therefore keeps the newest body with the places where
//! its groups end, finds how far the next request is the same, and goes on from
//! there in the same buffer. That costs one comparison of pointers a message,
//! and memory once the size of a body.

use std::sync::Arc;

use bytes::Bytes;

use crate::message::Message;
use crate::model::Request;
use crate::model::description::Model;
use crate::model::wire::call_id::CallIds;
use crate::model::wire::normalise::normalise;
use crate::model::wire::transcript::{Closed, Place};
use crate::model::wire::{Dialect, dialect};

/// What a head is expected to need: instructions and tools.
const HEAD_BYTES: usize = 32 * 1024;

/// Encodes the requests of one conversation with one model.
///
/// Any request may follow any other, the body is always the same as that of a
/// new encoder; it is cheap when the messages are those of the request before
/// and a few more.
pub struct Encoder {
    model: Arc<Model>,
    dialect: &'static dyn Dialect,
    newest: Newest,
}

/// The newest body and what it holds.
#[derive(Default)]
struct Newest {
    body: Closed,
    /// Held, so that no other message can ever have one of their addresses.
    messages: Vec<Arc<Message>>,
    groups: Vec<Group>,
    ids: CallIds,
}

/// The end of a group.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    messages: usize,
    place: Place,
    /// The ids of calls up to here.
    ids: usize,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Encoder")
            .field("model", &self.model.full_id())
            .field("messages", &self.newest.messages.len())
            .finish_non_exhaustive()
    }
}

impl Encoder {
    /// An encoder that has encoded nothing yet.
    pub fn new(model: impl Into<Arc<Model>>) -> Self {
        let model = model.into();
        Self {
            dialect: dialect(model.api),
            model,
            newest: Newest::default(),
        }
    }

    /// The request's body. The same request again is the same body, shared.
    pub fn encode(&mut self, request: &Request) -> Bytes {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        self.dialect.head(&self.model, request, &mut head);
        let kept = if self.newest.body.fits(&head) {
            self.newest.common(&request.messages)
        } else {
            Group::default()
        };
        let is_whole =
            kept.messages == self.newest.messages.len() && kept.messages == request.messages.len();
        if is_whole && self.newest.body.has_head(&head) {
            return self.newest.body.bytes();
        }
        // Taken out, so that a panic would leave nothing half done behind.
        let Newest {
            body,
            mut messages,
            mut groups,
            mut ids,
        } = std::mem::take(&mut self.newest);
        let mut transcript = body.reopen(head, kept.place);
        groups.truncate(groups.partition_point(|group| group.messages <= kept.messages));
        messages.truncate(kept.messages);
        ids.truncate(kept.ids);
        let new = request.messages.get(kept.messages..).unwrap_or_default();
        for group in new.chunk_by(|_, next| !is_reply(next)) {
            for turn in normalise(&self.model, group, &mut ids) {
                self.dialect.turn(&self.model, turn, &mut transcript);
            }
            messages.extend_from_slice(group);
            groups.push(Group {
                messages: messages.len(),
                place: transcript.place(),
                ids: ids.count(),
            });
        }
        self.newest = Newest {
            body: transcript.close(),
            messages,
            groups,
            ids,
        };
        self.newest.body.bytes()
    }
}

impl Newest {
    /// The last end of a group up to which `messages` are the same, and at which
    /// a group of theirs ends too.
    fn common(&self, messages: &[Arc<Message>]) -> Group {
        let pairs = self.messages.iter().zip(messages);
        let common = pairs
            .take_while(|(ours, theirs)| is_same(ours, theirs))
            .count();
        let whole = self
            .groups
            .partition_point(|group| group.messages <= common);
        self.groups
            .iter()
            .take(whole)
            .rev()
            .find(|group| messages.get(group.messages).is_none_or(is_reply))
            .copied()
            .unwrap_or_default()
    }
}

fn is_reply(message: &Arc<Message>) -> bool {
    matches!(message.as_ref(), Message::Assistant(_))
}

/// Summaries and the like may be made anew for each request, as messages of the
/// user: they are the same when they say the same.
fn is_same(ours: &Arc<Message>, theirs: &Arc<Message>) -> bool {
    Arc::ptr_eq(ours, theirs)
        || match (ours.as_ref(), theirs.as_ref()) {
            (Message::User(ours), Message::User(theirs)) => ours.content == theirs.content,
            _ => false,
        }
}
