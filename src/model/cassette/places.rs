//! Directories by name, so that a recording means the same in another place.

use std::borrow::Cow;
use std::path::Path;

/// Characters of a path that would be written differently inside a text of JSON.
const AWKWARD: [char; 2] = ['"', '\\'];

/// Directories that differ from machine to machine, each with a name. The name
/// stands in recordings as `⟦name⟧`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The longest path first.
    known: Vec<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    mark: String,
    path: String,
}

impl Places {
    /// Names these directories; of two names for one the first counts. The root
    /// of the file system, relative paths and paths that JSON would write
    /// differently get none.
    pub fn new<'p>(places: impl IntoIterator<Item = (&'static str, &'p Path)>) -> Self {
        let mut known: Vec<Place> = Vec::new();
        for (name, path) in places {
            let Some(path) = path.to_str().map(|path| path.trim_end_matches('/')) else {
                continue;
            };
            let awkward = |symbol: char| AWKWARD.contains(&symbol) || symbol.is_control();
            if path.starts_with('/') && !path.contains(awkward) {
                known.push(Place {
                    mark: format!("⟦{name}⟧"),
                    path: path.to_owned(),
                });
            }
        }
        // Stable: of equal paths the first one stays first.
        known.sort_by_key(|place| std::cmp::Reverse(place.path.len()));
        Self { known }
    }

    /// `text` with names in place of the directories.
    pub(super) fn neutral<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut changed = String::new();
        let mut copied = 0;
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|rest| rest.find('/')) {
            let at = from + at;
            from = at + 1;
            let Some(place) = self.at(text, at) else {
                continue;
            };
            changed.push_str(text.get(copied..at).unwrap_or_default());
            changed.push_str(&place.mark);
            copied = at + place.path.len();
            from = copied;
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        changed.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(changed)
    }

    /// `text` with the directories of this machine in place of the names.
    pub(super) fn local<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !text.contains('⟦') {
            return Cow::Borrowed(text);
        }
        let mut local = text.to_owned();
        for place in &self.known {
            local = local.replace(&place.mark, &place.path);
        }
        Cow::Owned(local)
    }

    /// The directory whose path stands at `at`, whole: `/a/b` neither begins in
    /// the middle of `/x/a/b` nor ends in the middle of `/a/bc`.
    fn at(&self, text: &str, at: usize) -> Option<&Place> {
        let before = text.get(..at)?.chars().next_back();
        if before.is_some_and(is_name) {
            return None;
        }
        let rest = text.get(at..)?;
        self.known.iter().find(|place| {
            rest.strip_prefix(place.path.as_str())
                .is_some_and(|after| !goes_on(after))
        })
    }
}

/// Whether what follows a name belongs to it. A full stop at the end of a
/// sentence does not.
fn goes_on(after: &str) -> bool {
    let mut symbols = after.chars();
    match symbols.next() {
        Some('.') => symbols.next().is_some_and(is_name),
        Some(symbol) => is_name(symbol),
        None => false,
    }
}

fn is_name(symbol: char) -> bool {
    symbol.is_alphanumeric() || matches!(symbol, '_' | '-' | '.')
}
