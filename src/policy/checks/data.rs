//! Arguments that are files, formats and lists, of programs of many families.

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

/// Whether a word is an option, `-` itself not being one.
fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// The operands of a command whose options with a separate value are few.
fn operands<'a>(words: &'a [String], with_value: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = words.iter().skip(1).map(String::as_str);
    let mut ended = false;
    while let Some(word) = rest.next() {
        if ended || !is_option(word) {
            found.push(word);
        } else if word == "--" {
            ended = true;
        } else if let [b'-', letter] = word.as_bytes()
            && with_value.as_bytes().contains(letter)
        {
            rest.next();
        }
    }
    found
}

/// uniq writes its second operand.
pub(crate) fn uniq(words: &[String], _named: usize) -> Result<(), String> {
    one_operand(&operands(words, "fsw"))
}

/// xxd writes its second operand.
pub(crate) fn xxd(words: &[String], _named: usize) -> Result<(), String> {
    one_operand(&operands(words, "clgos"))
}

fn one_operand(operands: &[&str]) -> Result<(), String> {
    match operands.get(1) {
        Some(word) => Err(format!("it writes `{word}`")),
        None => Ok(()),
    }
}

/// Programs that change what an operand says.
pub(crate) fn no_operand(words: &[String], _named: usize) -> Result<(), String> {
    match operands(words, "").first() {
        Some(word) => Err(format!("`{word}` is a new value")),
        None => Ok(()),
    }
}

/// Programs that read commands when they are given none.
pub(crate) fn some_operand(words: &[String], _named: usize) -> Result<(), String> {
    match operands(words, "").is_empty() {
        true => Err("it would read commands".to_owned()),
        false => Ok(()),
    }
}

/// `date 01010000` sets the clock.
pub(crate) fn date_format(words: &[String], _named: usize) -> Result<(), String> {
    match operands(words, "dfrI")
        .into_iter()
        .find(|word| !word.starts_with('+'))
    {
        Some(word) => Err(format!("`{word}` sets the clock")),
        None => Ok(()),
    }
}

/// `printenv NAME`, of names that do not speak of secrets.
pub(crate) fn plain_variables(words: &[String], _named: usize) -> Result<(), String> {
    const TELLING: &[&str] = &["AUTH", "CREDENTIAL", "KEY", "PASS", "SECRET", "TOKEN"];
    let names = operands(words, "");
    if names.is_empty() {
        return Err("it shows the whole environment".to_owned());
    }
    let telling = |name: &&&str| {
        TELLING
            .iter()
            .any(|part| name.to_uppercase().contains(part))
    };
    match names.iter().find(telling) {
        Some(name) => Err(format!("`{name}` may be a secret")),
        None => Ok(()),
    }
}

/// Pagers run commands after `+`.
pub(crate) fn no_plus(words: &[String], named: usize) -> Result<(), String> {
    match words
        .iter()
        .skip(named.max(1))
        .find(|word| word.starts_with('+'))
    {
        Some(word) => Err(format!("`{word}` is a command of the pager")),
        None => Ok(()),
    }
}

/// `rm -rf .` reaches the repository's own files too.
pub(crate) fn not_everything(words: &[String], named: usize) -> Result<(), String> {
    let everything = |word: &&String| {
        let parts = word.split('/').filter(|part| !matches!(*part, "" | "."));
        let mut depth = 0_i32;
        for part in parts {
            depth += if part == ".." { -1 } else { 1 };
        }
        !is_option(word) && depth <= 0 && (word.starts_with('.') || word.contains("/.."))
    };
    match words.iter().skip(named.max(1)).find(everything) {
        Some(word) if word.split('/').any(|part| part == "..") => {
            Err(format!("`{word}` leads above where it starts"))
        }
        Some(word) => Err(format!(
            "`{word}` is the whole workspace, with the repository itself"
        )),
        None => Ok(()),
    }
}

/// tar: letters without a hyphen, values in clusters, and other machines.
pub(crate) fn tar(words: &[String], _named: usize) -> Result<(), String> {
    let first = words.get(1).map_or("", String::as_str);
    if !first.starts_with('-') && first.contains(['I', 'F', 'P']) {
        return Err(format!("`{first}` runs a program or leads elsewhere"));
    }
    let elsewhere =
        |word: &&String| word.contains(':') && !word.starts_with("--") && !word.contains("://");
    match words.iter().skip(2).find(elsewhere) {
        Some(word) => Err(format!(
            "`{word}` is a file on another machine, reached by a program"
        )),
        None => Ok(()),
    }
}

/// `ps e` shows environments; after a hyphen `e` means every process.
pub(crate) fn ps(words: &[String], _named: usize) -> Result<(), String> {
    let shows = |word: &&String| {
        let bsd = !word.starts_with('-')
            && word.chars().all(|c| c.is_ascii_alphabetic())
            && word.contains('e');
        let format = word.contains("environ")
            || word
                .to_lowercase()
                .split(['=', ','])
                .any(|item| item == "env");
        bsd || format || (word.starts_with('-') && !word.starts_with("--") && word.contains('E'))
    };
    let mut previous = "";
    for word in words.iter().skip(1) {
        let value = matches!(
            previous,
            "-o" | "-u" | "-C" | "-p" | "-U" | "-g" | "-t" | "o" | "-O"
        );
        previous = word;
        if shows(&word) && (!value || word.contains("env")) {
            return Err(format!("`{word}` shows the environment of processes"));
        }
    }
    Ok(())
}

/// `crontab -l` and nothing else.
pub(crate) fn only_list(words: &[String], _named: usize) -> Result<(), String> {
    match words.get(1..) {
        Some([only]) if only == "-l" => Ok(()),
        _ => Err("only `-l` does not change it".to_owned()),
    }
}
