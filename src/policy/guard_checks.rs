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
    if words.get(1).is_some_and(|word| word == "pull") {
        git_strategy(words, named)?;
    }
    match words.iter().skip(named).find(|word| word.contains("::")) {
        Some(word) => Err(format!("`{word}` can name a program as transport")),
        None => Ok(()),
    }
}

/// `git merge -s x` runs the program `git-merge-x`.
pub(crate) fn git_strategy(words: &[String], named: usize) -> Result<(), String> {
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

/// yq: expressions that only look at what they are given.
pub(crate) fn yq(words: &[String], named: usize) -> Result<(), String> {
    const ACTIVE: &[&str] = &["load", "env", "system", "eval(", "input_filename"];
    let active = words
        .iter()
        .skip(named.max(1))
        .find(|word| ACTIVE.iter().any(|active| word.contains(active)));
    match active {
        Some(word) => Err(format!("`{word}` may read files or variables")),
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

/// Variables of make that only change what is shown.
const LOUDNESS: &[&str] = &["V=0", "V=1", "VERBOSE=0", "VERBOSE=1"];

/// `make CC=…` replaces the programs that run.
pub(crate) fn no_assignment(words: &[String], named: usize) -> Result<(), String> {
    match words
        .iter()
        .skip(named.max(1))
        .find(|word| word.contains('=') && !LOUDNESS.contains(&word.as_str()))
    {
        Some(word) => Err(format!("`{word}` may replace a program that runs")),
        None => Ok(()),
    }
}

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

/// `npm run env CMD` runs its arguments.
pub(crate) fn npm_script(words: &[String], _named: usize) -> Result<(), String> {
    let runs = words
        .iter()
        .skip(1)
        .any(|word| matches!(word.as_str(), "run" | "run-script" | "rum" | "urn"));
    let own = words.iter().take_while(|word| *word != "--");
    if runs && own.skip(2).any(|word| word == "env") {
        return Err("`env` runs its arguments".to_owned());
    }
    Ok(())
}

/// Options of compilers that start programs or load code.
const COMPILER_RUNS: &[&str] = &[
    "@",
    "--config",
    "--gcc-toolchain",
    "--ld-path",
    "--plugin",
    "--specs",
    "-B",
    "-Wa,",
    "-Wl,",
    "-Xassembler",
    "-Xclang",
    "-Xlinker",
    "-cc1",
    "-ccc-",
    "-dynamic-linker",
    "-fpass-plugin",
    "-fplugin",
    "-fuse-ld",
    "-iplugindir",
    "-load",
    "-plugin",
    "-specs",
    "-wrapper",
];

/// Compilers: no other programs, plugins or files of arguments.
pub(crate) fn compiler(words: &[String], named: usize) -> Result<(), String> {
    let mut rest = words.iter().skip(named.max(1));
    match rest.find(|word| COMPILER_RUNS.iter().any(|runs| word.starts_with(runs))) {
        Some(word) => Err(format!("`{word}` can start a program or load code")),
        None => Ok(()),
    }
}

/// What a file of arguments says is not known.
pub(crate) fn no_argument_file(words: &[String], named: usize) -> Result<(), String> {
    match words
        .iter()
        .skip(named.max(1))
        .find(|word| word.starts_with('@'))
    {
        Some(word) => Err(format!("`{word}` is a file of arguments")),
        None => Ok(()),
    }
}

/// cmake: configure and build, with variables that choose among parts of the
/// project; other variables name programs.
pub(crate) fn cmake(words: &[String], named: usize) -> Result<(), String> {
    const PLAIN: &[&str] = &[
        "BUILD_",
        "CMAKE_BUILD_TYPE",
        "CMAKE_EXPORT_COMPILE_COMMANDS",
        "ENABLE_",
        "USE_",
        "WITH_",
    ];
    let mut rest = words.iter().skip(named.max(1));
    while let Some(word) = rest.next() {
        if matches!(word.get(..2), Some("-E" | "-P" | "-C")) {
            return Err(format!("`{word}` runs a command or a script"));
        }
        let Some(stuck) = word.strip_prefix("-D") else {
            continue;
        };
        let variable = match (stuck, rest.clone().next()) {
            ("", Some(next)) => next.as_str(),
            (stuck, _) => stuck,
        };
        let plain = PLAIN.iter().any(|plain| variable.starts_with(plain));
        if !plain || variable.contains('/') {
            return Err(format!("`{variable}` may name a program"));
        }
    }
    Ok(())
}

/// Properties on the command line: only those that choose tests.
pub(crate) fn jvm_properties(words: &[String], named: usize) -> Result<(), String> {
    const PLAIN: &[&str] = &["-DskipTests", "-DskipITs", "-Dtest=", "-Dit.test="];
    let mut rest = words.iter().skip(named.max(1));
    let property = rest
        .find(|word| word.starts_with("-D") && !PLAIN.iter().any(|plain| word.starts_with(plain)));
    match property {
        Some(word) => Err(format!("`{word}` may name a program")),
        None => Ok(()),
    }
}

/// `-p x` loads a plugin of pytest; `-p no:x` only leaves one out.
pub(crate) fn pytest_plugin(words: &[String], named: usize) -> Result<(), String> {
    for (at, word) in words.iter().enumerate().skip(named.max(1)) {
        if word.starts_with('@') {
            return Err(format!("`{word}` is a file of arguments"));
        }
        let cluster = word.strip_prefix('-').filter(|_| !word.starts_with("--"));
        let Some(cluster) = cluster else {
            continue;
        };
        // The first letter that takes a value ends the cluster.
        let Some(found) = cluster.find(|c| "kmprnW".contains(c)) else {
            continue;
        };
        let tail = cluster.get(found..).unwrap_or_default();
        let Some(stuck) = tail.strip_prefix('p') else {
            continue;
        };
        let next = words.get(at + 1).map_or("", String::as_str);
        let plugin = if stuck.is_empty() { next } else { stuck };
        if !plugin.starts_with("no:") {
            return Err(format!("`-p {plugin}` loads a plugin"));
        }
    }
    Ok(())
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
    let Some(command) = past_addresses(script) else {
        return false;
    };
    if matches!(command, "p" | "d" | "q" | "=" | "!p" | "!d") {
        return true;
    }
    // `s/a/b/flags` with a delimiter that occurs nowhere else.
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

/// What follows the addresses of a command, as in `/begin/,$p`.
fn past_addresses(script: &str) -> Option<&str> {
    let mut rest = past_address(script)?;
    if let Some(second) = rest.strip_prefix(',') {
        rest = past_address(second)?;
    }
    Some(rest)
}

fn past_address(script: &str) -> Option<&str> {
    let Some(expression) = script.strip_prefix('/') else {
        let numbers = |c: char| c.is_ascii_digit() || matches!(c, '$' | '~' | '+');
        return Some(script.trim_start_matches(numbers));
    };
    let (text, rest) = expression.split_once('/')?;
    // In brackets a slash may not be the end.
    let opened = text.rfind('[') > text.rfind(']') || text.contains("[]") || text.contains("[^]");
    let quiet = !opened && !text.contains(['\\', '\n']);
    quiet.then_some(rest)
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
    // Without a word that prints, `>` compares.
    let prints = program.contains("print");
    let acts = |active: &&&str| program.contains(**active) && (prints || **active != ">");
    match active.iter().find(acts) {
        Some(active) => Err(format!("`{active}` in an awk program may run or write")),
        None => Ok(()),
    }
}
