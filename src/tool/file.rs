//! Opening and replacing single files: only regular ones, never halfway.

use std::ffi::OsStr;
use std::fs::{File, FileType, Metadata, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::access::{self, Access, Entry, Folder, OpenFile};
use crate::fingerprint::Fnv1a;
use crate::tool::work::{Failed, Work};
use crate::tool::{FileLedger, Fingerprint, Freshness, Place, path};

/// Larger files are not edited.
const EDIT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a name stands for.
#[derive(Debug)]
pub(super) enum Found {
    /// A regular file, open.
    File(OpenFile),
    /// A directory.
    Directory,
}

/// Opens the real path `real` for reading, without following a link, waiting
/// for a FIFO or touching a device. `shown` is its name in messages.
pub(super) fn open(place: &Place, real: &Path, shown: &str) -> Result<Found, String> {
    let entry = access::look(real);
    match entry.map_err(|error| format!("cannot read `{shown}`: {}", reason(&error)))? {
        Entry::Directory => Ok(Found::Directory),
        Entry::Other(kind) => Err(special(kind, shown)),
        Entry::File(opened) => {
            refuse_foreign_link(place, &opened.metadata, shown)?;
            Ok(Found::File(opened))
        }
    }
}

/// The real path of something that shall exist, when what the call wants
/// `to` do with it is permitted there, too: a link may lead elsewhere than it
/// did when the call was judged.
pub(super) fn real(
    place: &Place,
    path: &Path,
    work: &Work,
    to: fn(PathBuf) -> Access,
) -> Result<PathBuf, String> {
    let real = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => path::missing(place, path, work),
        _ => format!(
            "cannot open `{}`: {}",
            path::display(place, path),
            reason(&error)
        ),
    })?;
    if work.permits(&to(real.clone())) {
        return Ok(real);
    }
    Err(elsewhere(&path::display(place, path)))
}

fn elsewhere(shown: &str) -> String {
    format!("`{shown}` leads elsewhere than a moment ago, to what this call may not touch")
}

/// An I/O error in a few words.
pub(super) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "it does not exist".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        ErrorKind::NotADirectory => "a part of the path is not a directory".to_owned(),
        ErrorKind::StorageFull => "no space is left on the device".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        ErrorKind::InvalidFilename => "the name is too long".to_owned(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "its symbolic links form a loop".to_owned()
        }
        _ => error.to_string(),
    }
}

fn special(kind: FileType, shown: &str) -> String {
    let name = if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_symlink() {
        "a symbolic link that changed meanwhile"
    } else {
        "a device"
    };
    format!("`{shown}` is {name}, not a regular file")
}

/// A hard link may be another name of a file outside that policy would refuse.
/// Build directories and package stores are full of harmless ones, and whoever
/// can link to a file of their own could as well copy it; what only a link can
/// bring in is a file of somebody else.
fn refuse_foreign_link(place: &Place, file: &Metadata, shown: &str) -> Result<(), String> {
    if file.nlink() < 2 {
        return Ok(());
    }
    let owner = place.workspace.metadata().map(|data| data.uid());
    if owner.is_ok_and(|owner| owner == file.uid()) {
        return Ok(());
    }
    Err(format!(
        "`{shown}` has {} hard links and belongs to another user, so it may be a file from \
         outside the workspace",
        file.nlink()
    ))
}

/// An existing file that is about to be replaced.
#[derive(Debug)]
pub(super) struct Existing {
    /// All its bytes.
    pub(super) content: Vec<u8>,
    metadata: Metadata,
}

/// The place where a file is replaced or made.
#[derive(Debug)]
pub(super) struct Target {
    /// The file itself, behind all links.
    pub(super) real: PathBuf,
    /// Its name in messages.
    pub(super) shown: String,
    /// The file as it is, if there is one.
    pub(super) existing: Option<Existing>,
}

impl Target {
    /// Finds the file behind `path` and reads it when it exists.
    pub(super) fn find(place: &Place, path: &Path, work: &Work) -> Result<Self, Failed> {
        let shown = path::display(place, path);
        if path
            .symlink_metadata()
            .is_err_and(|error| error.kind() == ErrorKind::NotFound)
        {
            return Ok(Self {
                real: path.to_owned(),
                shown,
                existing: None,
            });
        }
        let real = real(place, path, work, Access::Write)?;
        let OpenFile { file, metadata } = match open(place, &real, &shown)? {
            Found::File(opened) => opened,
            Found::Directory => return Err(format!("`{shown}` is a directory").into()),
        };
        if metadata.nlink() > 1 {
            return Err(format!(
                "`{shown}` has {} hard links, so writing it would change or split a file elsewhere; \
                 replace it by a copy first",
                metadata.nlink()
            )
            .into());
        }
        if metadata.len() > EDIT_BYTES_MAX {
            return Err(
                format!("`{shown}` is larger than 16 MiB; change it with a command").into(),
            );
        }
        let mut content = Vec::new();
        work.watch(file, EDIT_BYTES_MAX + 1)
            .read_to_end(&mut content)
            .map_err(|error| work.failed(&format!("cannot read `{shown}`"), &error))?;
        Ok(Self {
            real,
            shown,
            existing: Some(Existing { content, metadata }),
        })
    }

    /// Refuses a file that the session has not seen as it is now.
    pub(super) fn check_fresh(&self, ledger: &FileLedger) -> Result<(), String> {
        let Some(existing) = &self.existing else {
            return Ok(());
        };
        let shown = &self.shown;
        match ledger.check_fresh(&self.real, &existing.fingerprint()) {
            Freshness::Fresh => Ok(()),
            Freshness::NotRead => Err(format!(
                "`{shown}` has not been read in this session; read it first"
            )),
            Freshness::Changed => Err(format!(
                "`{shown}` has changed since it was read; read it again"
            )),
        }
    }

    /// Puts `content` in the file's place in one step, keeping mode and owner,
    /// and lets the ledger know.
    pub(super) fn replace(
        &self,
        content: &[u8],
        ledger: &FileLedger,
        work: &Work,
    ) -> Result<(), String> {
        let failed = |error: &std::io::Error| {
            format!(
                "cannot write `{}`: {}; it is as it was",
                self.shown,
                reason(error)
            )
        };
        let parent = self.real.parent().unwrap_or(Path::new("/"));
        let name = self.real.file_name().unwrap_or_default();
        // A new file's name must be real too, or it would not be found again.
        let (existing, missing) = nearest(parent).map_err(|error| failed(&error))?;
        let real = existing.join(&missing).join(name);
        if !work.permits(&Access::Write(real.clone())) {
            return Err(elsewhere(&self.shown));
        }
        let metadata = Folder::make(&existing, &missing, 0o777)
            .and_then(|folder| self.put(&folder, name, content))
            .map_err(|error| failed(&error))?;
        ledger.keep_before(
            &real,
            self.existing.as_ref().map(|old| old.content.as_slice()),
        );
        ledger.record(
            &real,
            Fingerprint::new(&metadata, Some(Fnv1a::of(content).number())),
        );
        Ok(())
    }

    fn put(&self, folder: &Folder, name: &OsStr, content: &[u8]) -> std::io::Result<Metadata> {
        let mut draft = folder.draft(0o666)?;
        draft.file.write_all(content)?;
        let Some(existing) = &self.existing else {
            let metadata = draft.file.metadata()?;
            draft.place(name)?;
            return Ok(metadata);
        };
        existing.lend_attributes(&draft.file)?;
        let now = folder.metadata(name)?;
        if !Fingerprint::new(&now, None)
            .same_file_state(&Fingerprint::new(&existing.metadata, None))
        {
            return Err(std::io::Error::other("it changed in this moment"));
        }
        let metadata = draft.file.metadata()?;
        draft.replace(name)?;
        Ok(metadata)
    }
}

/// The part of a directory's path that exists, real, and the part that does not.
fn nearest(directory: &Path) -> std::io::Result<(PathBuf, PathBuf)> {
    for existing in directory.ancestors() {
        match existing.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(_) => {
                let missing = directory.strip_prefix(existing).unwrap_or(Path::new(""));
                return Ok((existing.canonicalize()?, missing.to_owned()));
            }
        }
    }
    Err(ErrorKind::NotFound.into())
}

impl Existing {
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::new(&self.metadata, Some(Fnv1a::of(&self.content).number()))
    }

    /// Gives `draft` the mode of this file, and its owner where we may. What
    /// becomes ours instead runs as nobody else.
    fn lend_attributes(&self, draft: &File) -> std::io::Result<()> {
        let fresh = draft.metadata()?;
        let (user, group) = (self.metadata.uid(), self.metadata.gid());
        let mut mode = self.metadata.mode() & 0o7777;
        if (fresh.uid(), fresh.gid()) != (user, group) {
            let owner = Some(rustix::fs::Uid::from_raw(user));
            let group = Some(rustix::fs::Gid::from_raw(group));
            if rustix::fs::fchown(draft, owner, group).is_err() {
                mode &= 0o1777;
            }
        }
        draft.set_permissions(Permissions::from_mode(mode))
    }
}
