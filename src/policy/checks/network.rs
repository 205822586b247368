//! Arguments of programs that fetch: addresses, and where the answer goes.

use super::script;
use crate::policy::bash::base_name;
use crate::policy::shell::UNKNOWN;

/// Whether an address is one of another machine, by a protocol that reads and
/// runs nothing here.
fn is_remote(word: &str) -> bool {
    const SAFE: &[&str] = &["http", "https", "ftp", "ftps", "ws", "wss"];
    word.split_once("://")
        .is_none_or(|(scheme, _)| SAFE.contains(&scheme.to_ascii_lowercase().as_str()))
}

fn is_file_address(word: &str) -> bool {
    word.get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// The last part of an address, by which the answer may be stored.
fn stored_name(word: &str) -> &str {
    let path = word.split(['?', '#']).next().unwrap_or(word);
    path.rsplit('/').next().unwrap_or(path)
}

fn address(word: &str) -> Result<(), String> {
    let value = word.split_once('=').map_or(word, |(_, value)| value);
    if !is_remote(word) && !is_remote(value) || is_file_address(word) || is_file_address(value) {
        return Err(format!("`{word}` is no address of another machine"));
    }
    Ok(())
}

/// curl: other machines only, no file by another door.
pub(crate) fn curl(words: &[String], named: usize) -> Result<(), String> {
    let stores = words.iter().skip(1).any(|word| {
        let cluster = word.starts_with('-') && !word.starts_with("--");
        word.starts_with("--remote-n") || (cluster && word.contains(['O', 'J']))
    });
    for word in words.iter().skip(named.max(1)) {
        address(word)?;
        if word.contains("=<") || word.contains("%output{") {
            return Err(format!("`{word}` reads or writes a file"));
        }
        if stores && word.contains("://") && stored_name(word).starts_with('.') {
            return Err(format!("`{word}` would be stored as a hidden file"));
        }
    }
    Ok(())
}

/// wget: the same; it always stores unless it is told a name.
pub(crate) fn wget(words: &[String], named: usize) -> Result<(), String> {
    for word in words.iter().skip(named.max(1)) {
        address(word)?;
        if word.contains("://") && stored_name(word).starts_with('.') {
            return Err(format!("`{word}` would be stored as a hidden file"));
        }
    }
    Ok(())
}

/// Whether a word is an address, or is an option or a list with one as its value:
/// `--values=https://x`, `-fhttps://x`. In `--set=a=https://x` it is a text.
fn has_address(word: &str) -> bool {
    let Some((before, _)) = word.split_once("://") else {
        return false;
    };
    let scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    let before = before.trim_end_matches(scheme);
    let option = word.starts_with('-') && before.matches('=').count() == 1;
    before.is_empty() || before.ends_with(',') || (option && before.ends_with('='))
}

/// Programs that read a file or an address: files only.
pub(crate) fn no_address(words: &[String], named: usize) -> Result<(), String> {
    match words
        .iter()
        .skip(named.max(1))
        .find(|word| has_address(word))
    {
        Some(word) => Err(format!("`{word}` is read from another machine")),
        None => Ok(()),
    }
}

/// `docker build`: a directory, and no repository or archive elsewhere.
pub(crate) fn build_context(words: &[String], named: usize) -> Result<(), String> {
    const REPOSITORIES: &[&str] = &["git@", "github.com/"];
    no_address(words, named)?;
    let elsewhere = |word: &&String| REPOSITORIES.iter().any(|begin| word.starts_with(begin));
    match words.iter().skip(named.max(1)).find(elsewhere) {
        Some(word) => Err(format!("`{word}` is read from another machine")),
        None => Ok(()),
    }
}

/// Options of gh and its like that take any text.
const TEXTS: &[&str] = &[
    "--body",
    "--description",
    "--message",
    "--notes",
    "--subject",
    "--title",
    "-b",
    "-m",
    "-n",
    "-t",
];

/// gh and its like: the usual hosts, and expressions of jq that do not read the
/// environment.
pub(crate) fn forge(words: &[String], named: usize) -> Result<(), String> {
    let gh = words
        .first()
        .is_some_and(|program| base_name(program) == "gh");
    let mut previous = "";
    for word in words.iter().skip(named.max(1)).map(String::as_str) {
        let before = std::mem::replace(&mut previous, word);
        if let Some(expression) = jq_value(before, word) {
            script::plain_jq(expression)?;
            if expression.contains(UNKNOWN) {
                return Err(format!("a part of `{word}` is not known before it runs"));
            }
        }
        let option = word.split('=').next().unwrap_or(word);
        let text = TEXTS.contains(&before) || (word != option && TEXTS.contains(&option));
        // Of gh a repository is `owner/name`, or has its host before that.
        let hosted = |repository: &str| gh && repository.matches('/').count() > 1;
        let elsewhere = match has_address(word) {
            true => !is_forge(word),
            false => repository_value(before, word).is_some_and(hosted),
        };
        if elsewhere && !text {
            return Err(format!("`{word}` is on another host"));
        }
    }
    Ok(())
}

/// The expression of jq that a word is or has.
fn jq_value<'a>(previous: &str, word: &'a str) -> Option<&'a str> {
    let cluster = |word: &'a str| {
        let letters = word.strip_prefix('-')?;
        let (before, stuck) = letters.split_once('q')?;
        let alone = before.chars().all(|c| c.is_ascii_alphabetic());
        alone.then(|| stuck.strip_prefix('=').unwrap_or(stuck))
    };
    if previous == "--jq" || (previous.starts_with('-') && previous.ends_with('q')) {
        return Some(word);
    }
    word.strip_prefix("--jq=").or_else(|| cluster(word))
}

/// The repository that a word chooses: `-R owner/name`.
fn repository_value<'a>(previous: &str, word: &'a str) -> Option<&'a str> {
    if matches!(previous, "-R" | "--repo") {
        return Some(word);
    }
    word.strip_prefix("--repo=")
        .or_else(|| word.strip_prefix("-R"))
}

/// Whether an address is one of the hosts that these programs are for.
fn is_forge(word: &str) -> bool {
    const HOSTS: &[&str] = &[
        "api.github.com",
        "gist.github.com",
        "github.com",
        "gitlab.com",
    ];
    let rest = word.split_once("https://").map_or("", |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    HOSTS.contains(&host) && rest.matches("://").count() == 0
}
