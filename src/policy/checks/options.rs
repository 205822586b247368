//! How the options of a program that nothing is known of are read.

/// Beginnings of the parts of option names by which programs load or run
/// something, whatever the program.
const TELLING: &[&str] = &[
    "bootstrap",
    "command",
    "config",
    "exec",
    "filter",
    "hook",
    "include",
    "interpreter",
    "linker",
    "loader",
    "module",
    "plugin",
    "preload",
    "prelude",
    "rcfile",
    "require",
    "script",
    "settings",
    "setup",
    "wrapper",
];

/// The same, where only the whole part says so: `--download` loads nothing.
const TELLING_WHOLE: &[&str] = &[
    "cmd", "env", "eval", "import", "init", "ld", "load", "shell",
];

/// Short options that usually take a file of code or configuration.
const TELLING_LETTERS: &str = "cCfrSI";

/// The form of an option of an unknown program that may load or run something
/// by its value, which is in the option or is the next word.
pub(crate) fn telling_option(word: &str, next: Option<&String>) -> Option<String> {
    let name = word.strip_prefix('-')?;
    let (name, value) = match name.trim_start_matches('-').split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (name.trim_start_matches('-'), None),
    };
    let next = next
        .map(String::as_str)
        .filter(|next| !next.starts_with('-'));
    if !word.starts_with("--") {
        let letter = name
            .chars()
            .next()
            .filter(|c| TELLING_LETTERS.contains(*c))?;
        let stuck = name.get(1..).filter(|stuck| !stuck.is_empty());
        let value = value.or(stuck).or(next)?;
        if is_file_like(value) {
            return Some(format!("`-{letter}` with `{value}`"));
        }
    }
    let value = value.or(next)?;
    if name.len() < 3 || name.starts_with("no-") {
        return None;
    }
    let tells = parts_of_name(name).iter().any(|part| {
        TELLING.iter().any(|telling| part.starts_with(telling))
            || TELLING_WHOLE.contains(&part.as_str())
    });
    tells.then(|| format!("`{word}` with `{value}`"))
}

/// `globalSetup`, `init-script` and `run_under` in their parts, in lower case.
fn parts_of_name(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in name.chars() {
        if matches!(c, '-' | '_' | '.' | ':') || c.is_ascii_uppercase() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            part.push(c.to_ascii_lowercase());
        }
    }
    parts
}

/// Whether a value looks like a file, and not like a directory or a number.
fn is_file_like(value: &str) -> bool {
    let name = value.rsplit('/').next().unwrap_or(value);
    let extended = name.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.is_empty() && end.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    extended || (value.starts_with(['.', '/']) && !name.trim_matches('.').is_empty())
}
