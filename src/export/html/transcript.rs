//! The transcript: the main line from its first entry to the leaf, with every
//! branch folded where it leaves its line.

use std::io;

use crate::message::Message;
use crate::store::{Entry, EntryKind};

use super::layout::{Layout, replied, said};
use super::page::Page;
use super::when::When;
use super::{card, reply};

/// The most characters of a branch's title.
const BRANCH_CHARS: usize = 100;

/// Writes lines of entries.
pub(super) struct Transcript<'p, 'a> {
    page: &'p mut Page<'a>,
    layout: &'p Layout<'p>,
    /// Results that stand with their calls.
    answered: Vec<bool>,
    /// The day of what was written last.
    day: Option<String>,
    /// The provider and the model that spoke last.
    speaker: Option<(&'p str, &'p str)>,
    /// Whether a run of notes is open.
    in_notes: bool,
}

impl<'p, 'a> Transcript<'p, 'a> {
    /// Of a whole session.
    pub(super) fn new(page: &'p mut Page<'a>, layout: &'p Layout<'p>) -> Self {
        Self {
            page,
            layout,
            answered: Vec::new(),
            day: None,
            speaker: None,
            in_notes: false,
        }
    }

    /// Writes all of it.
    pub(super) fn write(mut self) -> io::Result<()> {
        let line = self.layout.main_line();
        let beside = self.layout.branches(None);
        if line.is_empty() && beside.is_empty() {
            return self
                .page
                .raw("<p class=\"empty\">This session has no entries.</p>\n");
        }
        self.branches(&beside)?;
        self.line(&line)
    }

    /// One line with the branches that leave it. Branches nest: see [`Layout`].
    fn line(&mut self, line: &[usize]) -> io::Result<()> {
        for (step, at) in line.iter().enumerate() {
            let later = line.get(step + 1..).unwrap_or_default();
            if let Some(entry) = self.layout.entry(*at) {
                self.entry(entry, *at, later)?;
            }
            let leaving = self.layout.branches(Some(*at));
            if !leaving.is_empty() {
                self.end_notes()?;
                self.branches(&leaving)?;
            }
        }
        self.end_notes()
    }

    fn branches(&mut self, starts: &[usize]) -> io::Result<()> {
        for start in starts {
            self.branch(*start)?;
        }
        Ok(())
    }

    fn branch(&mut self, start: usize) -> io::Result<()> {
        let line = self.layout.line(start);
        self.page.raw("<details class=\"branch\" id=\"b-")?;
        self.page.anchor(&self.layout.anchor(start))?;
        self.page
            .raw("\"><summary><span class=\"tag\">Branch</span> <span class=\"what\">")?;
        branch_title(self.page, self.layout, &line)?;
        self.page.raw("</span> <span class=\"aside\">")?;
        let size = self.layout.size(start) as u64;
        self.page.count(size, "entry", "entries")?;
        self.page.raw("</span></summary>\n<div class=\"line\">\n")?;
        let day = self.day.clone();
        let speaker = self.speaker.take();
        self.line(&line)?;
        self.day = day;
        self.speaker = speaker;
        self.page.raw("</div></details>\n")
    }

    fn entry(&mut self, entry: &'p Entry, at: usize, later: &[usize]) -> io::Result<()> {
        if self.answered.get(at).copied().unwrap_or(false) {
            return Ok(());
        }
        if card::is_note(entry) {
            if !self.in_notes {
                self.page.raw("<div class=\"notes\">\n")?;
                self.in_notes = true;
            }
            return card::note(self.page, self.layout, entry, at);
        }
        self.end_notes()?;
        self.day_of(entry)?;
        let message = match &entry.kind {
            EntryKind::Message(message) => Some(message.as_ref()),
            _ => None,
        };
        let Some(Message::Assistant(said)) = message else {
            self.speaker = None;
            return card::entry(self.page, self.layout, entry, at);
        };
        let answers = reply::answers(self.layout, said, later);
        for answer in answers.iter().flatten() {
            if self.answered.len() <= answer.at {
                self.answered.resize(answer.at + 1, false);
            }
            if let Some(answered) = self.answered.get_mut(answer.at) {
                *answered = true;
            }
        }
        let speaker = (said.provider.as_str(), said.model.as_str());
        let introduced = self.speaker.replace(speaker) == Some(speaker);
        let head = if introduced {
            reply::Head::Same
        } else {
            reply::Head::New
        };
        reply::write(self.page, self.layout, (entry, at), (said, head), &answers)
    }

    fn day_of(&mut self, entry: &Entry) -> io::Result<()> {
        let day = When::of(&entry.timestamp).day();
        if day.is_none() || day == self.day {
            return Ok(());
        }
        self.page.raw("<p class=\"day\"><span>")?;
        self.page.text(day.as_deref().unwrap_or_default())?;
        self.page.raw("</span></p>\n")?;
        self.day = day;
        Ok(())
    }

    fn end_notes(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_notes) {
            self.page.raw("</div>\n")?;
        }
        Ok(())
    }
}

/// Writes what a branch is about: its first prompt, or else its first reply.
pub(super) fn branch_title(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    line: &[usize],
) -> io::Result<()> {
    let entries = || line.iter().filter_map(|at| layout.entry(*at));
    match entries()
        .find_map(said)
        .or_else(|| entries().find_map(replied))
    {
        Some(text) => page.preview(text, BRANCH_CHARS),
        None => page.raw("without a prompt"),
    }
}
