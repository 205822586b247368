//! Files that git stores in another form than they have in the working copy: by
//! line endings, encodings, and filters such as that of Git LFS.
//!
//! Line endings are converted here as everywhere. Filters are programs of the
//! user's configuration, which do not run, so that a patch of such a file is one
//! of what the working copy holds. Either way the file is named.

use std::collections::BTreeSet;
use std::ffi::OsString;

use tokio_util::sync::CancellationToken;

use crate::event::{ChangedFile, FileStatus, Warning};
use crate::process::Ending;
use crate::workspace::git::{Failure, Git, LIST_BYTES_MAX, MESSAGE_BYTES_MAX, os};
use crate::workspace::{names, warning};

/// Settings of a repository by which git converts line endings, with their
/// values.
const SETTINGS: &[(&str, &[&str])] = &[
    ("autocrlf", &["true", "false", "input"]),
    ("eol", &["lf", "crlf", "native"]),
];
/// Attributes by which git stores a file in another form, besides line endings.
const ATTRIBUTES: [&str; 3] = ["filter", "working-tree-encoding", "ident"];
/// So many paths fit into the arguments of one command.
const PATHS_MAX: usize = 500;

/// The lines of a section `[core]` that convert line endings as those of
/// `repository` do.
pub(super) async fn settings(
    repository: &Git,
    cancel: &CancellationToken,
) -> Result<String, Failure> {
    let args = ["config", "-z", "--get-regexp", r"^core\.(autocrlf|eol)$"];
    let found = repository
        .run(args.map(os).to_vec(), None, MESSAGE_BYTES_MAX, cancel)
        .await?;
    let mut lines = String::new();
    for record in String::from_utf8_lossy(&found.output).split('\0') {
        let (name, value) = record.split_once('\n').unwrap_or((record, "true"));
        let value = value.to_ascii_lowercase();
        for (setting, values) in SETTINGS {
            if name.strip_prefix("core.") == Some(setting) && values.contains(&value.as_str()) {
                lines.push_str(&format!("\t{setting} = {value}\n"));
            }
        }
    }
    Ok(lines)
}

/// What must be known of the changed files whose form in the patch is not that
/// of the working copy.
pub(super) async fn warnings(
    git: &Git,
    files: &[ChangedFile],
    cancel: &CancellationToken,
) -> Result<Vec<Warning>, Failure> {
    let there = files
        .iter()
        .filter(|file| file.status != FileStatus::Deleted);
    let there: Vec<&str> = there.map(|file| file.path.as_str()).collect();
    let (mut filtered, mut converted) = (BTreeSet::new(), BTreeSet::new());
    for paths in there.chunks(PATHS_MAX) {
        filtered.extend(with_attributes(git, paths, cancel).await?);
        converted.extend(with_other_lines(git, paths, cancel).await?);
    }
    let mut warnings = Vec::new();
    let list = |files: &BTreeSet<String>| names(files.iter().map(String::as_str));
    if !filtered.is_empty() {
        let message = format!(
            "git stores these files in another form, which the patch does not have (a filter \
             such as that of Git LFS, or an encoding), so that it may not apply to them: {}",
            list(&filtered)
        );
        warnings.push(warning("patch_unfiltered", message));
    }
    if !converted.is_empty() {
        let message = format!(
            "the patch has the line endings that git stores; `git apply` in a checkout gives \
             these files their own: {}",
            list(&converted)
        );
        warnings.push(warning("patch_line_endings", message));
    }
    Ok(warnings)
}

/// Those of `paths` that attributes give another form.
async fn with_attributes(
    git: &Git,
    paths: &[&str],
    cancel: &CancellationToken,
) -> Result<Vec<String>, Failure> {
    let mut args: Vec<OsString> = ["check-attr", "-z"].map(os).into();
    args.extend(ATTRIBUTES.map(os));
    args.push(os("--"));
    args.extend(paths.iter().map(|path| os(path)));
    let told = git.output(args, LIST_BYTES_MAX, cancel).await?;
    let told = String::from_utf8_lossy(&told.output).into_owned();
    let mut fields = told.split('\0');
    let mut found = Vec::new();
    while let (Some(path), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next()) {
        if !matches!(value, "unspecified" | "unset" | "") {
            found.push(path.to_owned());
        }
    }
    Ok(found)
}

/// Those of `paths` whose line endings in git's index are not their own.
async fn with_other_lines(
    git: &Git,
    paths: &[&str],
    cancel: &CancellationToken,
) -> Result<Vec<String>, Failure> {
    let mut args: Vec<OsString> = ["ls-files", "--eol", "-z", "--"].map(os).into();
    args.extend(paths.iter().map(|path| os(&format!(":(literal){path}"))));
    let told = git.run(args, None, LIST_BYTES_MAX, cancel).await?;
    if told.ending != Ending::Exited(0) {
        return Ok(Vec::new());
    }
    let told = String::from_utf8_lossy(&told.output).into_owned();
    let of_record = |record: &str| {
        let (forms, path) = record.split_once('\t')?;
        let mut forms = forms.split_whitespace();
        let stored = forms.next()?.strip_prefix("i/")?;
        let own = forms.next()?.strip_prefix("w/")?;
        (stored != own).then(|| path.to_owned())
    };
    Ok(told.split('\0').filter_map(of_record).collect())
}
