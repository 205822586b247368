//! How much a command may take, set by a small program that becomes the command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::options::ResourceLimits;

/// Sets limits and becomes what follows; part of util-linux.
const PRLIMIT: &str = "/usr/bin/prlimit";

/// What goes before a command; nothing when nothing is limited.
///
/// # Errors
/// When the program that sets limits is not there.
pub(super) fn wrapper(limits: &ResourceLimits) -> Result<Vec<OsString>, String> {
    let set = [("data", limits.memory), ("fsize", limits.file_size)];
    let mut words: Vec<OsString> = set
        .into_iter()
        .filter_map(|(name, value)| Some(format!("--{name}={0}:{0}", value?).into()))
        .collect();
    if words.is_empty() {
        return Ok(words);
    }
    if !Path::new(PRLIMIT).is_file() {
        return Err(format!(
            "sandbox.limits need {PRLIMIT}, which is part of util-linux"
        ));
    }
    words.insert(0, PRLIMIT.into());
    words.push("--".into());
    Ok(words)
}

/// A command with its limits before it.
pub(super) fn limited(
    wrapper: &[OsString],
    program: PathBuf,
    args: Vec<OsString>,
) -> (PathBuf, Vec<OsString>) {
    let Some((first, rest)) = wrapper.split_first() else {
        return (program, args);
    };
    let mut all = rest.to_vec();
    all.push(program.into());
    all.extend(args);
    (PathBuf::from(first), all)
}
