//! What bash itself runs of a line, to be compared with what the line is said
//! to run. The fuzz target of the shell analysis includes this file.

/// Between the words of a command, and behind it.
const WORD_END: char = '\u{1f}';
const COMMAND_END: char = '\u{1e}';
/// Stands for a line end: bash writes line by line, and what commands that run
/// at once note would be mixed.
const LINE_END: char = '\u{1d}';

/// The body of bash's `command_not_found_handle` that notes each command in
/// `place`, a redirection; `p`, `q` and `x` succeed, others fail.
pub fn noting(place: &str) -> String {
    format!(
        "{{ local IFS=$'\\x1f'; builtin printf '%s\\x1e' \"${{*//$'\\n'/$'\\x1d'}}\" {place}; \
         [[ $1 == [pqx] ]]; }}"
    )
}

/// The words of every command that was noted, without the programs `[`, `test`,
/// `true` and `false`: like the builtins of these names they only compute, and
/// need no rule.
pub fn noted(text: &str) -> Vec<Vec<String>> {
    let commands = text.split_terminator(COMMAND_END);
    let word = |word: &str| match word.strip_prefix("/dev/fd/") {
        // Bash takes any descriptor for a process substitution that is free.
        Some(_) => "/dev/fd/63".to_owned(),
        None => word.replace(LINE_END, "\n"),
    };
    let words = |command: &str| command.split(WORD_END).map(word).collect();
    let mut commands: Vec<Vec<String>> = commands.map(words).collect();
    for ran in &mut commands {
        // Behind a `|` it is a program, which is looked through.
        if ran.len() > 1 && ran.first().is_some_and(|program| program == "time") {
            ran.remove(0);
        }
    }
    commands.retain(|ran| {
        let program = ran.first().map(String::as_str);
        !matches!(program, Some("[" | "test" | "true" | "false"))
    });
    commands
}

/// Whether a word cannot be told from what stands between words.
pub fn is_ambiguous(word: &str) -> bool {
    word.contains([WORD_END, COMMAND_END, LINE_END])
}

/// Whether words are those that were said, of which parts may be unknown.
pub fn fits(ran: &[String], said: &[String]) -> bool {
    match (ran.split_first(), said.split_first()) {
        (None, None) => true,
        (_, Some((first, rest))) if first.chars().all(is_open) => {
            // It may be several words, or none.
            fits(ran, rest) || ran.split_first().is_some_and(|(_, ran)| fits(ran, said))
        }
        (Some((ran, ran_rest)), Some((said, said_rest))) => {
            let same = match said.split_once(is_open) {
                None => ran == said,
                Some((begin, end)) => {
                    let end = end.rsplit(is_open).next().unwrap_or_default();
                    ran.starts_with(begin) && ran.ends_with(end)
                }
            };
            same && fits(ran_rest, said_rest)
        }
        _ => false,
    }
}

fn is_open(c: char) -> bool {
    matches!(c, '\u{fffd}' | '\u{fffc}')
}
