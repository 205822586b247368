//! Arguments of compilers, build tools and test runners.

use crate::policy::shell::UNKNOWN;

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

/// Options of make with a value behind `=` that choose nothing that runs.
const MAKE_PLAIN: &[&str] = &["--directory", "--jobs", "--load-average", "--output-sync"];

/// `make CC=…` replaces the programs that run; a number or a version names none.
pub(crate) fn no_assignment(words: &[String], named: usize) -> Result<(), String> {
    let plain = |word: &str| {
        word.split_once('=').is_none_or(|(name, value)| {
            let variable = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
            let digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
            let number = value.split('.').all(digits);
            MAKE_PLAIN.contains(&name) || (variable && number && !name.contains("MAKE"))
        })
    };
    match words.iter().skip(named.max(1)).find(|word| !plain(word)) {
        Some(word) => Err(format!("`{word}` may replace a program that runs")),
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

/// pytest: no plugin by name, no other configuration, no category of warnings
/// that it would import.
pub(crate) fn pytest(words: &[String], named: usize) -> Result<(), String> {
    for (at, word) in words.iter().enumerate().skip(named.max(1)) {
        if word.starts_with('@') {
            return Err(format!("`{word}` is a file of arguments"));
        }
        // Abbreviated it would be `--cov`, which is harmless.
        if word.starts_with("--cov-config") {
            return Err(format!("`{word}` is other configuration"));
        }
        let next = words.get(at + 1).map_or("", String::as_str);
        if let Some(value) = word.strip_prefix("--pyt") {
            plain_warning(value.split_once('=').map_or(next, |(_, value)| value))?;
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
        let value = |stuck: &'_ str| match stuck {
            "" => next.to_owned(),
            stuck => stuck.to_owned(),
        };
        if let Some(stuck) = tail.strip_prefix('W') {
            plain_warning(&value(stuck))?;
        }
        // `-p x` loads a plugin; `-p no:x` only leaves one out.
        let Some(plugin) = tail.strip_prefix('p').map(value) else {
            continue;
        };
        if !plugin.starts_with("no:") {
            return Err(format!("`-p {plugin}` loads a plugin"));
        }
    }
    Ok(())
}

/// `action:message:category:module:line`: python imports the module of a
/// category that is not its own.
fn plain_warning(filter: &str) -> Result<(), String> {
    let category = filter.split(':').nth(2).unwrap_or_default().trim();
    let own = category.ends_with("Warning") && !category.contains('.');
    let plain = category.is_empty() || own || category.starts_with("pytest.");
    match plain && !filter.contains(UNKNOWN) {
        true => Ok(()),
        false => Err(format!("`{filter}` imports what `{category}` names")),
    }
}

/// maven: phases of the life cycle, and goals that only look.
pub(crate) fn maven(words: &[String], named: usize) -> Result<(), String> {
    const GOALS: &[&str] = &[
        "checkstyle:check",
        "clean",
        "compile",
        "dependency:tree",
        "help:effective-pom",
        "install",
        "integration-test",
        "package",
        "process-resources",
        "site",
        "spotless:check",
        "surefire:test",
        "test",
        "test-compile",
        "validate",
        "verify",
    ];
    const OPTIONS: &[&str] = &[
        "-B", "-C", "-N", "-T", "-U", "-V", "-X", "-am", "-amd", "-c", "-e", "-fae", "-ff", "-fn",
        "-h", "-nsu", "-ntp", "-o", "-pl", "-q", "-rf", "-v",
    ];
    jvm_properties(words, named)?;
    let mut previous = "";
    for word in words.iter().skip(named.max(1)).map(String::as_str) {
        let short = word.starts_with('-') && !word.starts_with("--");
        let profile = word.starts_with("-P") || word.starts_with("-D") || word.starts_with("-T");
        if short && !profile && !OPTIONS.contains(&word) {
            return Err(format!("`{word}` may name a file that says what runs"));
        }
        let of_option = matches!(
            previous,
            "-pl" | "-P" | "-T" | "--projects" | "--threads" | "-rf"
        );
        previous = word;
        if !(word.starts_with('-') || of_option || GOALS.contains(&word)) {
            return Err(format!(
                "the goal `{word}` may run programs; the rule has to name it"
            ));
        }
    }
    Ok(())
}

/// Build tools whose words can be commands with arguments of their own.
pub(crate) fn one_word_commands(words: &[String], named: usize) -> Result<(), String> {
    jvm_properties(words, named)?;
    if let [only] = words
        && only == "sbt"
    {
        return Err("it would read commands".to_owned());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-/.:".contains(c);
    let strange = words.iter().skip(named.max(1)).find(|word| {
        !word.chars().all(plain) || matches!(word.as_str(), "set" | "eval" | "run-main")
    });
    match strange {
        Some(word) => Err(format!(
            "`{word}` may be a command with arguments of its own"
        )),
        None => Ok(()),
    }
}

/// A target that is a file names a linker.
pub(crate) fn cargo_target(words: &[String], named: usize) -> Result<(), String> {
    let file = |word: &&String| {
        let value = word
            .split_once('=')
            .map_or(word.as_str(), |(_, value)| value);
        value.to_lowercase().ends_with(".json")
    };
    let own = words.iter().take_while(|word| *word != "--");
    match own.skip(named.max(1)).find(file) {
        Some(word) => Err(format!("`{word}` may name a linker")),
        None => Ok(()),
    }
}

/// What `-ldflags` may say: what is left out, and the values of variables.
pub(crate) fn go_linker(words: &[String], named: usize) -> Result<(), String> {
    for (at, word) in words.iter().enumerate().skip(named.max(1)) {
        let Some(option) = word.strip_prefix('-') else {
            continue;
        };
        let option = option.strip_prefix('-').unwrap_or(option);
        let value = match option.strip_prefix("ldflags") {
            Some("") => words.get(at + 1).map_or("", String::as_str),
            Some(glued) => glued.strip_prefix('=').unwrap_or(glued),
            None => continue,
        };
        // With a blank in it, it adds a flag.
        if value.contains(UNKNOWN) {
            return Err(format!(
                "a part of `{option}` is not known before it runs and may start another linker"
            ));
        }
        let mut flags = value.split_whitespace();
        while let Some(flag) = flags.next() {
            let plain = match flag {
                "-s" | "-w" => true,
                "-X" => flags
                    .next()
                    .is_some_and(|set| set.contains('=') && !set.starts_with('-')),
                _ => flag.starts_with("-X=") || flag.starts_with("-buildid="),
            };
            if !plain || flag.contains(['\'', '"']) {
                return Err(format!("`{flag}` may start another linker"));
            }
        }
    }
    Ok(())
}

/// `go run`: packages and files of the workspace, after options that choose
/// nothing that runs.
pub(crate) fn go_run(words: &[String], named: usize) -> Result<(), String> {
    const PLAIN: &[&str] = &[
        "-race",
        "-v",
        "-x",
        "-a",
        "-mod=mod",
        "-mod=vendor",
        "-mod=readonly",
    ];
    if named > 2 {
        return Ok(());
    }
    let mut rest = words.iter().skip(2).map(String::as_str);
    let package = rest.find(|word| !PLAIN.contains(word));
    match package {
        Some(package)
            if (package == "." || package.starts_with("./") || package.ends_with(".go"))
                && !package.contains(['@', ':']) =>
        {
            Ok(())
        }
        Some(package) => Err(format!("`{package}` is no package of the workspace")),
        None => Ok(()),
    }
}

/// TeX: files, and no code on the command line.
pub(crate) fn no_tex_code(words: &[String], named: usize) -> Result<(), String> {
    let mut rest = words.iter().skip(named.max(1));
    match rest.find(|word| word.contains(['\\', '|', '&', '$'])) {
        Some(word) => Err(format!("`{word}` is code, which can run programs")),
        None => Ok(()),
    }
}
