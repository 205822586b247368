//! Names as lenient file systems see them: on such a one `ReadMe`, `README` and
//! a name with an invisible character in it are the same file, and so are `é`
//! in one and in two characters.

use std::path::{Path, PathBuf};

use icu_normalizer::ComposingNormalizerBorrowed;

/// A name without case, without invisible characters, composed.
pub(crate) fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    // By way of capitals, because `ß` and `ſ` have no lower ones.
    let folded: String = name
        .chars()
        .filter(|c| !is_ignored(*c))
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

/// Characters that lenient file systems leave out of a comparison.
fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}
