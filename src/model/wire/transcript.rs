//! A request's body while it is written: a head, the conversation behind it,
//! and what closes both.
//!
//! A closed body can be opened again at any place it has gone through. Its bytes
//! up to there stay where they are, so that a conversation that grows costs what
//! is new in it.

use bytes::Bytes;
use serde::Serialize;

use crate::model::wire::write_json;

/// What the newest block of the user's side bears, so that the provider caches
/// all up to it. The only bytes that a later body does not repeat.
const CACHE_MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// Who speaks, where messages are made of blocks. What one role says without a
/// break is one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Anthropic's user, whose newest block bears the mark.
    User,
    /// Anthropic's assistant.
    Assistant,
    /// Google's user.
    GoogleUser,
    /// Results of calls, which Google wants in a content of their own.
    GoogleResults,
    /// Google's model.
    GoogleModel,
}

impl Role {
    /// The message up to its first block.
    fn opening(self) -> &'static [u8] {
        match self {
            Self::User => br#"{"role":"user","content":["#,
            Self::Assistant => br#"{"role":"assistant","content":["#,
            Self::GoogleUser | Self::GoogleResults => br#"{"role":"user","parts":["#,
            Self::GoogleModel => br#"{"role":"model","parts":["#,
        }
    }
}

/// A body that is open at its end.
pub(super) struct Transcript {
    bytes: Vec<u8>,
    head_bytes: usize,
    role: Option<Role>,
    user_end: Option<usize>,
}

/// A place between two turns. Offsets count from the end of the head, which may
/// be another one later.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    end: usize,
    /// Whose message is open.
    role: Option<Role>,
    /// Where the newest block of the user's side ends.
    user_end: Option<usize>,
}

impl Transcript {
    /// A conversation of nothing yet. `head` ends inside the list of items.
    pub(super) fn new(head: Vec<u8>) -> Self {
        Self {
            head_bytes: head.len(),
            bytes: head,
            role: None,
            user_end: None,
        }
    }

    /// Adds an item to the list.
    pub(super) fn item(&mut self, item: &impl Serialize) {
        self.separate();
        write_json(&mut self.bytes, item);
    }

    /// Adds an item of the user's side to the list, whose last field is a list
    /// of parts. The last of these may bear the mark.
    pub(super) fn parts_item(&mut self, item: &impl Serialize) {
        self.item(item);
        let inside = self.bytes.strip_suffix(b"]}").unwrap_or(&self.bytes);
        self.user_end = Some(inside.len() - self.head_bytes);
    }

    /// Adds a block to the message that is open, or to a new one when that is
    /// not of `role`.
    pub(super) fn block(&mut self, role: Role, block: &impl Serialize) {
        if self.role != Some(role) {
            if self.role.is_some() {
                self.bytes.extend_from_slice(b"]}");
            }
            self.separate();
            self.bytes.extend_from_slice(role.opening());
            self.role = Some(role);
        }
        self.separate();
        write_json(&mut self.bytes, block);
        if role == Role::User {
            self.user_end = Some(self.bytes.len() - self.head_bytes);
        }
    }

    /// Where the transcript stands.
    pub(super) fn place(&self) -> Place {
        Place {
            end: self.bytes.len() - self.head_bytes,
            role: self.role,
            user_end: self.user_end,
        }
    }

    /// Ends the body, and marks the newest block of the user's side.
    pub(super) fn close(mut self) -> Closed {
        // Before the brace that ends the block.
        let marked = self.user_end.map(|end| self.head_bytes + end - 1);
        if let Some(at) = marked {
            self.bytes.splice(at..at, CACHE_MARK.iter().copied());
        }
        if self.role.is_some() {
            self.bytes.extend_from_slice(b"]}");
        }
        self.bytes.extend_from_slice(b"]}");
        Closed {
            bytes: Bytes::from(self.bytes),
            head_bytes: self.head_bytes,
            marked,
        }
    }

    /// A comma, unless the list has only just begun.
    fn separate(&mut self) {
        if !self.bytes.ends_with(b"[") {
            self.bytes.push(b',');
        }
    }
}

/// A body that is whole.
#[derive(Default)]
pub(super) struct Closed {
    bytes: Bytes,
    head_bytes: usize,
    /// Where the mark is.
    marked: Option<usize>,
}

impl Closed {
    /// The body, shared.
    pub(super) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Whether the body has this head.
    pub(super) fn has_head(&self, head: &[u8]) -> bool {
        self.bytes.get(..self.head_bytes) == Some(head)
    }

    /// Whether the conversation could stand behind this head as it is. One head
    /// leaves the list empty, another puts the instructions first.
    pub(super) fn fits(&self, head: &[u8]) -> bool {
        let is_empty = |head: &[u8]| head.ends_with(b"[");
        let own = self.bytes.get(..self.head_bytes).unwrap_or_default();
        is_empty(own) == is_empty(head)
    }

    /// Goes back to `place`, under a head that may be another. Takes over the
    /// bytes, or copies them while somebody else still holds the body.
    pub(super) fn reopen(self, head: Vec<u8>, place: Place) -> Transcript {
        if place.end == 0 {
            return Transcript::new(head);
        }
        let same_head = self.has_head(&head);
        let mut bytes = Vec::from(self.bytes);
        if let Some(at) = self.marked {
            bytes.drain(at..at + CACHE_MARK.len());
        }
        bytes.truncate(self.head_bytes + place.end);
        let head_bytes = head.len();
        if !same_head {
            bytes.splice(..self.head_bytes, head);
        }
        Transcript {
            bytes,
            head_bytes,
            role: place.role,
            user_end: place.user_end,
        }
    }
}
