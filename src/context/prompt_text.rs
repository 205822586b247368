//! A prompt with the parts of it that are data.

use std::ops::Range;

/// A prompt as it was given. What lies in its `data` comes from elsewhere (an
/// untrusted parameter in its fence): it is never looked into, so that nothing
/// in it can name a file, a skill or a template, and it is only ever passed on
/// whole.
#[derive(Debug, Clone, Copy)]
pub struct PromptText<'t> {
    /// All of it.
    pub text: &'t str,
    /// Byte ranges of `text`, in order, not overlapping.
    pub data: &'t [Range<usize>],
}

impl<'t> PromptText<'t> {
    /// A prompt of which every byte is believed.
    pub fn trusted(text: &'t str) -> Self {
        Self { text, data: &[] }
    }

    /// The character that begins at a byte.
    pub(super) fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// Whether the byte at `at` is data.
    pub(super) fn is_data(&self, at: usize) -> bool {
        self.data.iter().any(|range| range.contains(&at))
    }
}
