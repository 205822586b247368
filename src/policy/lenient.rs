//! Names as lenient file systems see them: on such a one `ReadMe`, `README` and
//! a name with an invisible character in it are the same file, and so are `é`
//! in one and in two characters.

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
