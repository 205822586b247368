//! Arguments of package managers: what is installed, and which scripts run.

/// Names of scripts that projects usually have, and that are no programs.
const USUAL: &[&str] = &[
    "build",
    "bundle",
    "check",
    "check-types",
    "ci",
    "clean",
    "compile",
    "coverage",
    "dev",
    "docs",
    "e2e",
    "fix",
    "fmt",
    "format",
    "generate",
    "integration",
    "lint",
    "postinstall",
    "prebuild",
    "prepare",
    "preview",
    "release",
    "serve",
    "spec",
    "start",
    "storybook",
    "style",
    "type-check",
    "typecheck",
    "types",
    "unit",
    "validate",
    "verify",
    "watch",
];

/// `yarn run x` runs a script, or a program of that name: scripts by the names
/// that they usually have, and those with a colon, which no program has.
pub(crate) fn usual_script(words: &[String], named: usize) -> Result<(), String> {
    if named > 2 {
        return Ok(());
    }
    match words.get(2).map(String::as_str) {
        None => Ok(()),
        Some(name) if USUAL.contains(&name) || name == "test" => Ok(()),
        Some(name)
            if name.contains(':')
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_-:".contains(c)) =>
        {
            Ok(())
        }
        Some(name) => Err(format!(
            "`{name}` may be a program; the rule has to name it"
        )),
    }
}

/// `npm run env CMD` runs its arguments.
fn env_script(words: &[String], _named: usize) -> Result<(), String> {
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

/// npm: its scripts, and packages by name.
pub(crate) fn npm(words: &[String], named: usize) -> Result<(), String> {
    env_script(words, named)?;
    let runs = words.get(1).is_some_and(|word| {
        [
            "run",
            "run-script",
            "test",
            "t",
            "tst",
            "start",
            "stop",
            "restart",
        ]
        .contains(&word.as_str())
    });
    match runs {
        true => Ok(()),
        false => install(words, named),
    }
}

/// Subcommands whose operands are packages.
const INSTALLS: &[&str] = &[
    "add",
    "download",
    "fetch",
    "i",
    "install",
    "install-test",
    "it",
    "require",
    "up",
    "update",
    "upgrade",
    "wheel",
];

/// Packages are named; an address or a path would bring code from elsewhere.
pub(crate) fn install(words: &[String], named: usize) -> Result<(), String> {
    let own = words.iter().take_while(|word| *word != "--");
    let installs = words
        .iter()
        .take(3)
        .any(|word| INSTALLS.contains(&word.as_str()));
    if !installs {
        return Ok(());
    }
    let mut previous = "";
    for (at, word) in own.enumerate().skip(2) {
        let of_file = matches!(previous, "-r" | "-c" | "--requirement" | "--constraint");
        let editable = matches!(previous, "-e" | "--editable");
        previous = word;
        if at < named {
            continue;
        }
        if of_file {
            if word.contains("://") {
                return Err(format!("`{word}` lists packages elsewhere"));
            }
            continue;
        }
        if word.starts_with('-') {
            let glued = word.split_once('=').map_or("", |(_, value)| value);
            if is_elsewhere(glued) {
                return Err(format!("`{word}` installs from elsewhere"));
            }
            continue;
        }
        let workspace = matches!(word.as_str(), "." | "./") || word.starts_with(".[");
        if is_elsewhere(word) && !workspace {
            let kind = if editable { "in place from" } else { "from" };
            return Err(format!(
                "`{word}` installs {kind} elsewhere than the registry"
            ));
        }
    }
    Ok(())
}

/// Whether a package is an address, a path, or the short form of one.
fn is_elsewhere(package: &str) -> bool {
    let scoped = package
        .strip_prefix('@')
        .and_then(|rest| rest.split_once('/'));
    let name = scoped.map_or(package, |(_, name)| name);
    name.contains('/')
        || package.contains(':')
        || package.contains("git+")
        || package.contains(" @ ")
        || package.starts_with(['/', '~'])
        || package.ends_with(".tgz")
        || package.ends_with(".whl")
        || package.ends_with(".tar.gz")
        || package.ends_with(".zip")
}

/// dotnet: properties, loggers and files of arguments, in every spelling.
pub(crate) fn msbuild(words: &[String], named: usize) -> Result<(), String> {
    let first = words.get(1).map_or("", String::as_str);
    if first.ends_with(".dll") || first.ends_with(".exe") {
        return Err(format!("`{first}` is a program"));
    }
    let active = |word: &&String| {
        word.starts_with('@')
            || word.starts_with("-p:")
            || word.starts_with("--property:")
            || word.starts_with("-logger:")
            || word.starts_with("--logger:")
            || (word.starts_with('/') && word.contains(':'))
    };
    match words.iter().skip(named.max(1)).find(active) {
        Some(word) => Err(format!("`{word}` can name programs or load code")),
        None => Ok(()),
    }
}
