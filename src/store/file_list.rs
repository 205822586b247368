//! Finding sessions on the disk.
//!
//! A listing reads each file once, quickly, and takes nothing for granted: what
//! is no session is passed over, what cannot be read is named.

use std::fs;
use std::path::{Path, PathBuf};

use crate::store::StoreError;
use crate::store::file_lines::{Access, Lines, bad_line, open_regular};
use crate::store::line::{Glance, HeaderLine, Wanted, reason};

/// How many folders below a root are looked into, one in the other.
const DEPTH_MAX: usize = 4;
/// How many files are looked at.
const FILES_MAX: usize = 20_000;
/// How much of the first message is kept.
const PREVIEW_CHARS_MAX: usize = 200;

/// What a listing tells of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub id: String,
    /// Its working directory; empty when it names none.
    pub cwd: String,
    /// When it began, RFC 3339.
    pub created: String,
    /// When its last entry was written, RFC 3339.
    pub modified: String,
    /// Its name.
    pub name: Option<String>,
    /// The beginning of the first message of the user, on one line.
    pub first_message: Option<String>,
    /// How many messages it holds, those of all branches.
    pub messages: usize,
    /// The file of the session that it was forked from.
    pub parent_session: Option<String>,
}

/// The sessions of some folders, the one that was written to last first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The sessions.
    pub sessions: Vec<SessionSummary>,
    /// What could not be looked at.
    pub skipped: Vec<Skipped>,
}

/// Something that a listing could not look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file or the folder.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// A session that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub id: String,
    /// Whether it was asked for by the name of its file or its folder.
    pub by_path: bool,
}

/// The newest session of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newest {
    /// Its file.
    pub path: PathBuf,
    /// Newer ones that were not believed.
    pub passed_over: Vec<Skipped>,
}

/// The session that was asked for cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No id begins like this.
    #[error("no session has the id {text}{}", searched(roots))]
    Missing {
        /// What was asked for.
        text: String,
        /// The folders that were searched.
        roots: Vec<PathBuf>,
    },
    /// Several ids begin like this, or several files have it.
    #[error("several sessions match {text}:{}", listed(matches))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// All of them.
        matches: Vec<Found>,
    },
    /// There is none for the working directory.
    #[error("there is no session of {}{}{}", cwd.display(), searched(roots), doubted(passed_over))]
    NoneYet {
        /// The working directory.
        cwd: PathBuf,
        /// The folders that were searched.
        roots: Vec<PathBuf>,
        /// Those that were not believed.
        passed_over: Vec<Skipped>,
    },
    /// Anyone who can write a file can write a session of that id.
    #[error(
        "cannot continue session {id}: {reason}; to continue it anyway, name its file: \
         --resume {}",
        path.display()
    )]
    Doubtful {
        /// Its id.
        id: String,
        /// Its file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file is no session, or cannot be read.
    #[error(transparent)]
    Unreadable(#[from] StoreError),
}

fn searched(roots: &[PathBuf]) -> String {
    let names: Vec<String> = roots
        .iter()
        .map(|root| root.display().to_string())
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" in {}", names.join(" or "))
    }
}

fn doubted(passed_over: &[Skipped]) -> String {
    let one = |skipped: &Skipped| {
        let path = skipped.path.display();
        format!(
            "\n  {path} was skipped: {}; to continue it, use --resume {path}",
            skipped.reason
        )
    };
    passed_over.iter().map(one).collect()
}

fn listed(matches: &[Found]) -> String {
    let lines = matches
        .iter()
        .map(|found| format!("\n  {} {}", found.id, found.path.display()));
    lines.collect()
}

/// The sessions in `roots` and the folders below them. Missing roots hold none;
/// links are not followed.
pub fn list(roots: &[PathBuf]) -> Listing {
    let mut listing = Listing::default();
    for path in files(roots, &mut listing.skipped) {
        match summary(&path) {
            Ok(summary) => listing.sessions.push(summary),
            // Event logs have the same ending.
            Err(StoreError::NotASession { .. }) => {}
            Err(error) => listing.skipped.push(Skipped {
                path,
                reason: error.to_string(),
            }),
        }
    }
    listing
        .sessions
        .sort_by(|one, other| (&other.modified, &other.id).cmp(&(&one.modified, &one.id)));
    listing
}

/// The session that `text` means: a session file, a folder that holds just one,
/// or the beginning of an id.
///
/// # Errors
/// When there is none, or more than one.
pub fn find(roots: &[PathBuf], text: &str) -> Result<Found, FindError> {
    let path = Path::new(text);
    let ending = path.extension().is_some_and(|end| end == "jsonl");
    let is_path = text.contains('/') || ending || (!text.is_empty() && path.exists());
    if is_path && !path.is_dir() {
        let id = header(path)?.header.id;
        let path = path.to_owned();
        return Ok(Found {
            path,
            id,
            by_path: true,
        });
    }
    let folder = [path.to_owned()];
    let (roots, prefix) = if is_path {
        (&folder[..], "")
    } else {
        (roots, text)
    };
    let mut matches = Vec::new();
    for path in files(roots, &mut Vec::new()) {
        if let Ok(first) = header(&path)
            && first.header.id.starts_with(prefix)
        {
            matches.push(Found {
                path,
                id: first.header.id,
                by_path: is_path,
            });
        }
    }
    if matches.iter().any(|found| found.id == text) {
        matches.retain(|found| found.id == text);
    }
    match matches.pop() {
        Some(only) if matches.is_empty() && !text.is_empty() => Ok(only),
        Some(last) => {
            matches.push(last);
            Err(FindError::Ambiguous {
                text: text.to_owned(),
                matches,
            })
        }
        None => Err(FindError::Missing {
            text: text.to_owned(),
            roots: roots.to_vec(),
        }),
    }
}

/// The session of the working directory `cwd` that was written to last, of those
/// that `believed` accepts; it says why not.
///
/// # Errors
/// When there is none.
pub fn newest(
    roots: &[PathBuf],
    cwd: &Path,
    believed: impl Fn(&Path) -> Result<(), String>,
) -> Result<Newest, FindError> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let wanted = real(cwd);
    let mut found: Vec<SessionSummary> = Vec::new();
    for path in files(roots, &mut Vec::new()) {
        let here = header(&path).is_ok_and(|first| real(Path::new(&first.header.cwd)) == wanted);
        found.extend(here.then(|| summary(&path).ok()).flatten());
    }
    found.sort_by(|one, other| (&other.modified, &other.id).cmp(&(&one.modified, &one.id)));
    let mut passed_over = Vec::new();
    for SessionSummary { path, .. } in found {
        match believed(&path) {
            Ok(()) => return Ok(Newest { path, passed_over }),
            Err(reason) => passed_over.push(Skipped { path, reason }),
        }
    }
    Err(FindError::NoneYet {
        cwd: cwd.to_owned(),
        roots: roots.to_vec(),
        passed_over,
    })
}

/// The files that may be sessions, in order of their names.
fn files(roots: &[PathBuf], skipped: &mut Vec<Skipped>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<(PathBuf, usize)> =
        roots.iter().map(|root| (root.clone(), DEPTH_MAX)).collect();
    while let Some((folder, depth)) = open.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                skipped.push(Skipped {
                    path: folder,
                    reason: error.to_string(),
                });
                continue;
            }
        };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let path = entry.path();
            if kind.is_dir() && depth > 0 {
                open.push((path, depth - 1));
            } else if kind.is_file() && path.extension().is_some_and(|end| end == "jsonl") {
                found.push(path);
            }
        }
        if found.len() > FILES_MAX {
            skipped.push(Skipped {
                path: folder,
                reason: format!("there are more than {FILES_MAX} files; the rest is not listed"),
            });
            break;
        }
    }
    found.sort();
    found.dedup();
    found
}

fn header(path: &Path) -> Result<HeaderLine, StoreError> {
    let file = open_regular(path, Access::Read)?;
    let mut lines = Lines::of(&file, path, u64::MAX)?;
    Ok(lines.header()?.0)
}

fn summary(path: &Path) -> Result<SessionSummary, StoreError> {
    let file = open_regular(path, Access::Read)?;
    let mut lines = Lines::of(&file, path, u64::MAX)?;
    let (first, _) = lines.header()?;
    let mut summary = SessionSummary {
        path: path.to_owned(),
        id: first.header.id,
        cwd: first.header.cwd,
        modified: first.header.timestamp.clone(),
        created: first.header.timestamp,
        name: None,
        first_message: None,
        messages: 0,
        parent_session: first.header.parent_session,
    };
    while let Some(line) = lines.next()? {
        let wanted = if summary.first_message.is_none() {
            Wanted::UserText
        } else {
            Wanted::Kind
        };
        let glance = line
            .text()
            .and_then(|text| Glance::at(&text, wanted).map_err(|error| reason(&error)));
        match glance {
            Ok(glance) => summary.add(glance),
            Err(_) if !line.ended => {}
            Err(reason) => return Err(bad_line(path, line.number, reason)),
        }
    }
    Ok(summary)
}

impl SessionSummary {
    fn add(&mut self, glance: Glance) {
        self.messages += usize::from(glance.is_message);
        if let Some(timestamp) = glance.timestamp
            && timestamp > self.modified
            && timestamp.parse::<jiff::Timestamp>().is_ok()
        {
            self.modified = timestamp;
        }
        if let Some(text) = glance.user_text {
            self.first_message = Some(preview(&text)).filter(|text| !text.is_empty());
        }
        if let Some(name) = glance.name {
            self.name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
        }
    }
}

/// The beginning of a text, on one line.
fn preview(text: &str) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        if chars > 0 {
            line.push(' ');
        }
        line.extend(word.chars().take(PREVIEW_CHARS_MAX));
        chars += word.chars().count() + 1;
        if chars >= PREVIEW_CHARS_MAX {
            break;
        }
    }
    line.chars().take(PREVIEW_CHARS_MAX).collect()
}
