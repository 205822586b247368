//! Reads the small text files that people keep for agents: regular files only,
//! without waiting, up to a limit, and of a repository nothing outside it.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::access::{self, Entry, Folder, OpenFile};
use crate::message::is_unseen;

/// More names of one directory are not looked at.
const ENTRIES_MAX: usize = 1_000;

/// Whose files they are.
#[derive(Clone, Copy)]
pub(super) enum Owner<'a> {
    /// The user, whose links lead where the user wants.
    User,
    /// A repository, which may be anybody's.
    Repository(Repository<'a>),
}

/// What of a repository may be read.
#[derive(Clone, Copy)]
pub(super) struct Repository<'a> {
    /// Its root, real.
    pub(super) root: &'a Path,
    /// Whether a real path below the root may be read.
    pub(super) permit: &'a dyn Fn(&Path) -> bool,
}

/// What was read.
#[derive(Debug)]
pub(super) struct TextFile {
    /// The begin of it, or all; invalid UTF-8 replaced, without a byte order mark
    /// and without characters that nobody sees.
    pub(super) text: String,
    /// How many characters were taken out because no reader sees them: what a
    /// person reviewed and what the model is told shall be the same.
    pub(super) unseen: usize,
    /// Whether more follows.
    pub(super) cut: bool,
    /// The size of the whole file.
    pub(super) bytes: u64,
}

impl TextFile {
    /// Reads at most `bytes_max` bytes of a Markdown file; none when there is
    /// no such file.
    ///
    /// # Errors
    /// Why what is there is not read, in words that follow the path.
    pub(super) fn read(
        path: &Path,
        owner: Owner<'_>,
        bytes_max: usize,
    ) -> Result<Option<Self>, String> {
        let Some(real) = resolve(path)? else {
            return Ok(None);
        };
        owner.check(&real)?;
        if let Owner::Repository(repository) = owner {
            // A link could otherwise show what lies hidden in a repository:
            // its configuration with a token, an environment file.
            if real.extension().is_none_or(|extension| extension != "md") {
                return Err("leads to a file that is no Markdown".to_owned());
            }
            if !(repository.permit)(&real) {
                return Err("may not be read under the permissions of the task".to_owned());
            }
        }
        let entry = access::look(&real).map_err(|error| unreadable(&error))?;
        let Entry::File(OpenFile { file, metadata }) = entry else {
            return Err("is no regular file".to_owned());
        };
        let mut bytes = Vec::new();
        file.take(bytes_max as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&error))?;
        let cut = bytes.len() > bytes_max;
        bytes.truncate(bytes_max);
        if cut {
            drop_part_of_character(&mut bytes);
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let seen: String = text.chars().filter(|c| is_seen(*c)).collect();
        Ok(Some(Self {
            unseen: text.chars().count() - seen.chars().count(),
            text: seen.replace("\r\n", "\n"),
            cut,
            bytes: metadata.len(),
        }))
    }
}

impl Owner<'_> {
    fn check(self, real: &Path) -> Result<(), String> {
        let Owner::Repository(repository) = self else {
            return Ok(());
        };
        let inside = real.strip_prefix(repository.root);
        let inside = inside.map_err(|_| "leads outside the repository".to_owned())?;
        if inside.iter().any(|part| part == ".git") {
            return Err("leads into the repository's own files".to_owned());
        }
        Ok(())
    }
}

/// The names in a directory, sorted; empty when there is no such directory.
/// The flag says whether these are all of them.
///
/// # Errors
/// Why what is there is not read, in words that follow the path.
pub(super) fn names(directory: &Path, owner: Owner<'_>) -> Result<(Vec<String>, bool), String> {
    let Some(real) = resolve(directory)? else {
        return Ok((Vec::new(), true));
    };
    owner.check(&real)?;
    let folder = Folder::open(&real).map_err(|error| unreadable(&error))?;
    let entries = folder.names().map_err(|error| unreadable(&error))?;
    let mut names: Vec<String> = Vec::new();
    for entry in entries.flatten() {
        if names.len() == ENTRIES_MAX {
            names.sort();
            return Ok((names, false));
        }
        // No name that is not UTF-8 is a name for a skill or a template.
        names.extend(entry.name.into_string());
    }
    names.sort();
    Ok((names, true))
}

/// The real path; none when nothing is there.
fn resolve(path: &Path) -> Result<Option<PathBuf>, String> {
    match path.canonicalize() {
        Ok(real) => Ok(Some(real)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            match path.symlink_metadata() {
                Ok(_) => Err("is a link to something that does not exist".to_owned()),
                Err(_) => Ok(None),
            }
        }
        Err(error) => Err(unreadable(&error)),
    }
}

/// Some scripts and some pictures need the two joiners.
fn is_seen(c: char) -> bool {
    !is_unseen(c) || matches!(c, '\u{200c}' | '\u{200d}')
}

fn unreadable(error: &std::io::Error) -> String {
    format!("cannot be read: {error}")
}

/// Takes the begin of a character whose rest was not read off the end.
fn drop_part_of_character(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
}
