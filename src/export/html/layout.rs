//! How the entries of a session lie on the page: lines, and the branches that
//! leave them.
//!
//! The main line leads to the leaf. A branch goes on with its longest
//! continuation; so a branch of a branch is at most half as long, and the
//! nesting stays logarithmic in the number of entries whatever their tree.

use std::collections::HashMap;

use crate::message::{Content, Message};
use crate::store::{Entry, EntryId, EntryKind, SessionTree};

use super::page::Anchor;

/// The entries by their places in the session.
pub(super) struct Layout<'a> {
    entries: &'a [Entry],
    places: HashMap<&'a EntryId, usize>,
    /// By parent.
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    /// How many entries each one leads to, itself included.
    sizes: Vec<usize>,
    /// Whether the entry is on the path to the leaf.
    main: Vec<bool>,
    tree: &'a SessionTree,
}

impl<'a> Layout<'a> {
    /// Of all branches.
    pub(super) fn of(tree: &'a SessionTree) -> Self {
        let entries = tree.entries();
        let mut layout = Self {
            entries,
            places: HashMap::with_capacity(entries.len()),
            children: vec![Vec::new(); entries.len()],
            roots: Vec::new(),
            sizes: vec![1; entries.len()],
            main: vec![false; entries.len()],
            tree,
        };
        // A parent always stands before its child.
        let mut parents = Vec::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            let parent = entry.parent_id.as_ref().and_then(|id| layout.find(id));
            parents.push(parent);
            match parent.and_then(|parent| layout.children.get_mut(parent)) {
                Some(children) => children.push(at),
                None => layout.roots.push(at),
            }
            layout.places.insert(&entry.id, at);
        }
        for (at, parent) in parents.iter().enumerate().rev() {
            let size = layout.sizes.get(at).copied().unwrap_or(1);
            if let Some(sum) = parent.and_then(|parent| layout.sizes.get_mut(parent)) {
                *sum += size;
            }
        }
        let mut next = tree.leaf().and_then(|leaf| layout.find(&leaf.id));
        while let Some(at) = next {
            if let Some(main) = layout.main.get_mut(at) {
                *main = true;
            }
            next = parents.get(at).copied().flatten();
        }
        layout
    }

    /// The place of an entry.
    pub(super) fn find(&self, id: &EntryId) -> Option<usize> {
        self.places.get(id).copied()
    }

    /// The entry at a place.
    pub(super) fn entry(&self, at: usize) -> Option<&'a Entry> {
        self.entries.get(at)
    }

    /// The name of an entry's place on the page.
    pub(super) fn anchor(&self, at: usize) -> Anchor {
        let id = self.entry(at).map_or("", |entry| entry.id.as_str());
        Anchor::of_entry(id, at)
    }

    /// The bookmark at an entry.
    pub(super) fn label_of(&self, at: usize) -> Option<&'a str> {
        self.tree.label(&self.entry(at)?.id)
    }

    /// The path to the leaf.
    pub(super) fn main_line(&self) -> Vec<usize> {
        let start = self.roots.iter().find(|root| self.is_main(**root));
        start.map_or_else(Vec::new, |start| self.line(*start))
    }

    /// The entries from `start` on, without the branches that leave them.
    pub(super) fn line(&self, start: usize) -> Vec<usize> {
        let mut line = vec![start];
        let mut at = start;
        while let Some(next) = self.next(at) {
            line.push(next);
            at = next;
        }
        line
    }

    /// The branches that leave after `at`, or that begin beside the first
    /// entry of the main line, oldest first.
    pub(super) fn branches(&self, at: Option<usize>) -> Vec<usize> {
        let (children, next) = match at {
            Some(at) => (self.children_of(at), self.next(at)),
            None => (self.roots.as_slice(), None),
        };
        children
            .iter()
            .copied()
            .filter(|child| Some(*child) != next && (at.is_some() || !self.is_main(*child)))
            .collect()
    }

    /// How many branches there are beside the main line.
    pub(super) fn branch_count(&self) -> usize {
        let below: usize = (0..self.entries.len())
            .map(|at| self.branches(Some(at)).len())
            .sum();
        self.branches(None).len() + below
    }

    /// How many entries are on the path to the leaf.
    pub(super) fn main_count(&self) -> usize {
        self.main.iter().filter(|main| **main).count()
    }

    /// How many entries a branch holds, with those that leave it.
    pub(super) fn size(&self, at: usize) -> usize {
        self.sizes.get(at).copied().unwrap_or(0)
    }

    fn is_main(&self, at: usize) -> bool {
        self.main.get(at).copied().unwrap_or(false)
    }

    fn children_of(&self, at: usize) -> &[usize] {
        self.children.get(at).map_or(&[], Vec::as_slice)
    }

    fn next(&self, at: usize) -> Option<usize> {
        let children = self.children_of(at).iter().copied();
        if self.is_main(at) {
            return children.into_iter().find(|child| self.is_main(*child));
        }
        // Of several that are equally long the newest.
        children.max_by_key(|child| self.size(*child))
    }
}

/// The text of a user's message; none for other entries.
pub(super) fn said(entry: &Entry) -> Option<&str> {
    let EntryKind::Message(message) = &entry.kind else {
        return None;
    };
    match message.as_ref() {
        Message::User(user) => Some(first_text(&user.content).unwrap_or("(no text)")),
        Message::Assistant(_) | Message::ToolResult(_) => None,
    }
}

/// The text of a reply; none for other entries and for replies without any.
pub(super) fn replied(entry: &Entry) -> Option<&str> {
    let EntryKind::Message(message) = &entry.kind else {
        return None;
    };
    match message.as_ref() {
        Message::Assistant(reply) => first_text(&reply.content),
        Message::User(_) | Message::ToolResult(_) => None,
    }
}

fn first_text(blocks: &[Content]) -> Option<&str> {
    blocks.iter().find_map(|block| match block {
        Content::Text(block) if !block.text.trim().is_empty() => Some(block.text.as_str()),
        Content::Text(_) | Content::Thinking(_) | Content::Image(_) | Content::ToolCall(_) => None,
    })
}
