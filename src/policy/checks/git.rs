//! Arguments of git: what can be an address, a strategy or a setting.

use crate::policy::shell::UNKNOWN;

/// Remotes that a rule need not name: git keeps them in a file that calls
/// cannot write.
const REMOTES: &[&str] = &["origin", "upstream"];

/// `git push` and its like: a remote can be a directory whose hooks run, or an
/// address that names a program.
pub(crate) fn remote(words: &[String], named: usize) -> Result<(), String> {
    let arguments = words.iter().enumerate().skip(2);
    let mut operands = arguments.filter(|(_, word)| !word.starts_with('-'));
    if let Some((at, remote)) = operands.next()
        && at >= named
        && !REMOTES.contains(&remote.as_str())
    {
        return Err(format!(
            "`{remote}` may be a directory whose hooks run; the rule has to name it"
        ));
    }
    if words.get(1).is_some_and(|word| word == "pull") {
        strategy(words, named)?;
    }
    match words.iter().skip(named).find(|word| word.contains("::")) {
        Some(word) => Err(format!("`{word}` can name a program as transport")),
        None => Ok(()),
    }
}

/// Options of git that choose what is printed of each commit or reference.
const FORMATS: &[&str] = &["--fo", "--pr", "--group", "--so"];

/// Placeholders and atoms by which git runs gpg for what it prints or sorts by:
/// `%G?`, `%(signature)`.
pub(crate) fn no_signature(words: &[String], named: usize) -> Result<(), String> {
    let placeholder = |format: &str| {
        format.split('%').skip(1).any(|rest| {
            let rest = rest.strip_prefix(['+', '-', ' ']).unwrap_or(rest);
            rest.starts_with('G')
                || rest.starts_with("(signature")
                || rest.starts_with("(*signature")
        })
    };
    let chooses = |word: &str| FORMATS.iter().any(|begin| word.starts_with(begin));
    let mut previous = "";
    for word in words.iter().skip(named.max(1)).map(String::as_str) {
        let own = chooses(word);
        let sorts = |word: &str| word.starts_with("--so");
        let before = std::mem::replace(&mut previous, word);
        if !own && !chooses(before) {
            continue;
        }
        let signature = (sorts(word) || sorts(before)) && word.contains("signature");
        if placeholder(word) || signature {
            return Err(format!("`{word}` runs gpg"));
        }
        if own && word.contains(UNKNOWN) {
            return Err(format!("a part of `{word}` is not known before it runs"));
        }
    }
    Ok(())
}

/// `git merge -s x` runs the program `git-merge-x`.
pub(crate) fn strategy(words: &[String], named: usize) -> Result<(), String> {
    const OWN: &[&str] = &["octopus", "ort", "ours", "recursive", "resolve", "subtree"];
    for (at, word) in words.iter().enumerate().skip(named.max(2)) {
        let long = word.strip_prefix("--").and_then(|long| {
            let (name, value) = long.split_once('=').unwrap_or((long, ""));
            (name.len() > 1 && "strategy".starts_with(name)).then_some(value)
        });
        let Some(stuck) = long.or_else(|| word.strip_prefix("-s")) else {
            continue;
        };
        let next = words.get(at + 1).map_or("", String::as_str);
        let strategy = if stuck.is_empty() { next } else { stuck };
        if !OWN.contains(&strategy) {
            return Err(format!("the strategy `{strategy}` may be a program"));
        }
    }
    Ok(())
}

/// `git config` writes what later commands run.
pub(crate) fn config(words: &[String], _named: usize) -> Result<(), String> {
    let arguments: Vec<&str> = words.iter().skip(2).map(String::as_str).collect();
    match arguments.as_slice() {
        ["--list" | "-l" | "list"] => Ok(()),
        ["--get" | "--get-all" | "get", key] if !key.starts_with('-') => Ok(()),
        _ => Err("it sets what other git commands run".to_owned()),
    }
}

/// `git remote`: what only looks, and changes of the usual remotes' branches.
pub(crate) fn remotes(words: &[String], named: usize) -> Result<(), String> {
    let operand = words.iter().skip(2).find(|word| !word.starts_with('-'));
    match operand.map(String::as_str) {
        None | Some("show" | "get-url" | "prune" | "update") => Ok(()),
        Some(_) if named > 2 => Ok(()),
        Some(operand) => Err(format!(
            "`{operand}` changes where git fetches and pushes; the rule has to name it"
        )),
    }
}

/// `git clone`: from another machine, by a protocol that runs nothing here.
pub(crate) fn clone(words: &[String], named: usize) -> Result<(), String> {
    const SAFE: &[&str] = &["https://", "http://", "git://", "ssh://"];
    let mut previous = "";
    for (at, word) in words.iter().enumerate().skip(2) {
        let of_option = matches!(
            previous,
            "-b" | "--branch" | "--depth" | "-o" | "--origin" | "-j" | "--jobs"
        );
        previous = word;
        if word.starts_with('-') || of_option || at < named {
            continue;
        }
        let other_machine = SAFE.iter().any(|safe| word.starts_with(safe))
            || word
                .strip_prefix("git@")
                .is_some_and(|rest| rest.contains(':'));
        let hidden = word.contains("::") || word.contains("://-") || word.contains("@-");
        return match other_machine && !hidden {
            true => Ok(()),
            false => Err(format!(
                "`{word}` may name a program, or a repository whose files run"
            )),
        };
    }
    Ok(())
}
