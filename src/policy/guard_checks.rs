//! Checks of arguments that the guard table cannot express as lists.

/// Remotes that a rule need not name: git keeps them in a file that calls
/// cannot write.
const REMOTES: &[&str] = &["origin", "upstream"];

/// `git push` and its like: a remote can be a directory whose hooks run, or an
/// address that names a program.
pub(crate) fn git_remote(words: &[String], named: usize) -> Result<(), String> {
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
    match words.iter().skip(named).find(|word| word.contains("::")) {
        Some(word) => Err(format!("`{word}` can name a program as transport")),
        None => Ok(()),
    }
}

/// `git config` writes what later commands run.
pub(crate) fn git_config(words: &[String], _named: usize) -> Result<(), String> {
    let arguments: Vec<&str> = words.iter().skip(2).map(String::as_str).collect();
    match arguments.as_slice() {
        ["--list" | "-l" | "list"] => Ok(()),
        ["--get" | "--get-all" | "get", key] if !key.starts_with('-') => Ok(()),
        _ => Err("it sets what other git commands run".to_owned()),
    }
}

/// `make CC=…` replaces the programs that run.
pub(crate) fn no_assignment(words: &[String], named: usize) -> Result<(), String> {
    match words
        .iter()
        .skip(named.max(1))
        .find(|word| word.contains('='))
    {
        Some(word) => Err(format!("`{word}` may replace a program that runs")),
        None => Ok(()),
    }
}

/// Only scripts that print, delete or quit by address, or substitute.
pub(crate) fn sed(words: &[String], _named: usize) -> Result<(), String> {
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-n" | "-E" | "-r" | "-nE" | "-nr" | "-En" | "-rn" | "--quiet" | "--silent"
            | "--regexp-extended" => {}
            "-e" => scripts.extend(rest.next()),
            option if option.starts_with('-') => {
                return Err(format!("`{option}` may write files or load a script"));
            }
            _ => operands.push(word),
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    match scripts.into_iter().find(|script| !is_plain_sed(script)) {
        Some(script) => Err(format!(
            "the script `{script}` may run programs or write files"
        )),
        None => Ok(()),
    }
}

fn is_plain_sed(script: &str) -> bool {
    let numbers = |c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | '~' | '+');
    let command = script.trim_start_matches(numbers);
    if matches!(command, "p" | "d" | "q" | "=" | "!p" | "!d") {
        return true;
    }
    // `/text/p`, and `s/a/b/flags` with a delimiter that occurs nowhere else.
    let addressed = command
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix("/p").or_else(|| rest.strip_suffix("/d")));
    let quiet = |text: &str| !text.contains(['\\', '\n', ';', '{', '}']);
    if let Some(text) = addressed {
        return quiet(text) && !text.contains('/');
    }
    let Some(substitution) = command.strip_prefix('s') else {
        return false;
    };
    let Some(delimiter) = substitution.chars().next() else {
        return false;
    };
    let parts: Vec<&str> = substitution.split(delimiter).collect();
    let [_, _, _, flags] = parts.as_slice() else {
        return false;
    };
    matches!(delimiter, '/' | '|' | ',' | '#' | '@' | ':')
        && !substitution.contains(['\\', '\n'])
        && flags
            .chars()
            .all(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | '0'..='9'))
}

/// Only programs in the argument itself, without output, pipes or calls out.
pub(crate) fn awk(words: &[String], _named: usize) -> Result<(), String> {
    let mut rest = words.iter().skip(1);
    let program = loop {
        match rest.next().map(String::as_str) {
            Some("-F" | "-v") => {
                rest.next();
            }
            Some(option) if option.starts_with("-F") => {}
            Some(option) if option.starts_with('-') => {
                return Err(format!("`{option}` may load a program or write files"));
            }
            Some(program) => break program,
            None => return Ok(()),
        }
    };
    let active = ["system", "getline", "|", ">", "<", "@", "\\", "ENVIRON"];
    match active.iter().find(|active| program.contains(**active)) {
        Some(active) => Err(format!("`{active}` in an awk program may run or write")),
        None => Ok(()),
    }
}
