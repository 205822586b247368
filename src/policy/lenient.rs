//! Names as lenient file systems see them: on such a one `ReadMe`, `README` and
//! a name with an invisible character in it are the same file, and so are `é`
//! in one and in two characters.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::message::is_unseen;

/// A name without case, without invisible characters, composed.
pub(crate) fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    // By way of capitals, because `ß` and `ſ` have no lower ones.
    let folded: String = name
        .chars()
        .filter(|c| !is_unseen(*c) && !matches!(c, '\u{fe00}'..='\u{fe0f}'))
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    ComposingNormalizerBorrowed::new_nfc()
        .normalize(&folded)
        .into_owned()
}

/// A path of folded names.
pub(crate) fn folded_path(path: &Path) -> PathBuf {
    folded(&path.to_string_lossy()).into()
}

/// A name as a file system may understand it that folds names, drops dots and
/// blanks at the end, and takes what follows a colon for a stream of the file.
pub(crate) fn spelled(name: &OsStr) -> String {
    let name = folded(&name.to_string_lossy());
    let file = name.split(':').next().unwrap_or_default();
    let file = if file.is_empty() { &name } else { file };
    file.trim_end_matches(['.', ' ']).to_owned()
}

/// Whether a name that is [`spelled`] means `wanted`, which is in ASCII: as it is,
/// or shortened to eight and three characters as in `git~1`.
pub(crate) fn same_name(name: &str, wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted)
        || (name.contains('~') && is_shortened(name, &wanted.to_ascii_lowercase()))
}

fn is_shortened(name: &str, wanted: &str) -> bool {
    const BASE: usize = 6;
    const EXTENSION: usize = 3;
    let Some((base, rest)) = name.split_once('~') else {
        return false;
    };
    let (number, extension) = rest.split_once('.').unwrap_or((rest, ""));
    let wanted = wanted.trim_start_matches('.');
    let (stem, long) = wanted.rsplit_once('.').unwrap_or((wanted, ""));
    let stem = stem.chars().filter(|c| !matches!(c, '.' | ' '));
    !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && stem.take(BASE).eq(base.chars())
        && long.chars().take(EXTENSION).eq(extension.chars())
}
