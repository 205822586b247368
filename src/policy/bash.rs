//! What `Bash(...)` rules match: strictly when they allow, laxly when they deny.

use super::command::CommandLine;
use super::guard::{self, Reach};
use super::lax::{Tail, matches_laxly};
use super::shell::{is_compound, literal_words};
use super::uncertain::{self, may_be};

/// What a `Bash` rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BashPattern {
    /// `Bash`: every command.
    Any,
    /// `Bash(a b)`: exactly these words.
    Exact(Vec<String>),
    /// `Bash(a && b)`: exactly this string.
    Verbatim(String),
    /// `Bash(a b:*)`, `Bash(a * b)`: words, and any words in between.
    Words(Vec<Part>),
}

/// A part of a pattern of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Word(String),
    /// Any number of words, none included.
    Any,
}

/// How far an allow rule carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// The rule is about something else.
    No,
    /// The very command is allowed.
    Exactly,
    /// Everything is allowed.
    Everything,
    /// The words match, and the arguments are data for the program.
    Arguments(Reach),
    /// The words match, but the rule does not carry that far.
    Refused(String),
}

impl BashPattern {
    /// Reads a specifier.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "*" {
            return Ok(Self::Any);
        }
        let text_with_star = text.strip_suffix(":*").map(|prefix| format!("{prefix} *"));
        let pattern = text_with_star.as_deref().unwrap_or(text);
        let stars = unquoted_stars(pattern);
        if stars.is_empty() {
            return Ok(match literal_words(text) {
                Ok(words) => Self::Exact(words),
                Err(_) => Self::Verbatim(text.to_owned()),
            });
        }
        let mut parts = Vec::new();
        let mut from = 0;
        for at in stars {
            let alone = |next: Option<char>| next.is_none_or(char::is_whitespace);
            let before = pattern.get(..at).and_then(|text| text.chars().next_back());
            let after = pattern.get(at + 1..).and_then(|text| text.chars().next());
            if !alone(before) || !alone(after) {
                // In a text of several commands it is a glob of the shell.
                if text_with_star.is_none() && is_compound(text) {
                    return Ok(Self::Verbatim(text.to_owned()));
                }
                return Err(
                    "`*` stands for whole words: write it alone between blanks, or end the rule \
                     with `:*`; in quotes it is literal"
                        .to_owned(),
                );
            }
            push_words(&mut parts, pattern.get(from..at).unwrap_or_default())?;
            parts.push(Part::Any);
            from = at + 1;
        }
        push_words(&mut parts, pattern.get(from..).unwrap_or_default())?;
        match parts.first() {
            Some(Part::Word(_)) => Ok(Self::Words(parts)),
            Some(Part::Any) | None => Err("it has to begin with the program's name".to_owned()),
        }
    }

    /// How far the rule allows the command, or one that runs it.
    pub(crate) fn allows(&self, command: &CommandLine) -> Coverage {
        if *self == Self::Any {
            return Coverage::Everything;
        }
        let Ok(words) = &command.words else {
            return match self.is_exactly(&command.text) {
                true => Coverage::Exactly,
                false => Coverage::No,
            };
        };
        if matches!(self, Self::Verbatim(own) if *own == command.text) {
            return Coverage::Exactly;
        }
        let as_written = command.written().unwrap_or(words);
        if let Self::Exact(exact) = self
            && ((exact == as_written && command.globs.is_empty())
                || command
                    .outers()
                    .iter()
                    .any(|(outer, _)| *outer == exact.as_slice()))
        {
            return Coverage::Exactly;
        }
        let (own, spelled) = match (command.written(), self.spelled_of(command, words)) {
            // A rule that speaks about the options before a subcommand, or about all
            // subcommands, is held to what stands there.
            (Some(written), _) if self.fits(written) => (written, self.literal_words()),
            (_, Some(spelled)) => (command.own_words(words), spelled),
            (_, None) => return Coverage::No,
        };
        if command.is_fed() && own.len() == 1 && !guard::is_known(own) {
            return Coverage::Refused("the program may run what is piped to it".to_owned());
        }
        match guard::check(own, spelled).and_then(|reach| uncertain::check(own).map(|()| reach)) {
            Ok(reach) => Coverage::Arguments(reach),
            Err(reason) => Coverage::Refused(reason),
        }
    }

    /// Whether the rule is about commands of these words.
    fn fits(&self, words: &[String]) -> bool {
        matches!(self, Self::Words(parts) if matches(parts, words))
    }

    /// How many words the rule begins with.
    fn literal_words(&self) -> usize {
        match self {
            Self::Words(parts) => literal_parts(parts),
            Self::Any | Self::Exact(_) | Self::Verbatim(_) => 0,
        }
    }

    /// How many of the command's first words the rule has in so many words,
    /// when it matches the command, or one that runs it and names this one.
    fn spelled_of(&self, command: &CommandLine, words: &[String]) -> Option<usize> {
        let Self::Words(parts) = self else {
            return None;
        };
        if matches(parts, words) {
            return Some(literal_parts(parts));
        }
        let outers = command.outers();
        let mut named = outers.iter().filter_map(|(outer, before)| {
            let spelled = literal_parts(parts).checked_sub((*before)?)?;
            (spelled > 0 && matches(parts, outer)).then_some(spelled)
        });
        named.next()
    }

    /// Whether the rule is about every command.
    pub(crate) fn is_any(&self) -> bool {
        *self == Self::Any
    }

    /// Whether the rule has exactly this text.
    pub(crate) fn is_exactly(&self, text: &str) -> bool {
        match self {
            Self::Verbatim(own) => own == text.trim(),
            Self::Exact(own) => literal_words(text).is_ok_and(|words| words == *own),
            Self::Any | Self::Words(_) => false,
        }
    }

    /// How many of the command's first words the rule has in so many words,
    /// when it is one that allows the command with its arguments.
    pub(crate) fn spells(&self, command: &CommandLine) -> usize {
        let (Ok(words), Coverage::Arguments(_)) = (&command.words, self.allows(command)) else {
            return 0;
        };
        match command.written().filter(|written| self.fits(written)) {
            // What the rule spells and `words` leave out does not count.
            Some(written) => {
                let left_out = written.len() - words.len();
                self.literal_words().saturating_sub(left_out)
            }
            None => self.spelled_of(command, words).unwrap_or(0),
        }
    }

    /// Why the rule forbids the command, if it does. `vetted` says that an
    /// exact rule allows this very string, which is then only searched for
    /// the rule's program.
    pub(crate) fn forbids(&self, command: &CommandLine, vetted: bool) -> Option<String> {
        match self {
            Self::Any => return Some("every command is".to_owned()),
            Self::Verbatim(text) if text == command.text.trim() => {
                return Some("this command is".to_owned());
            }
            Self::Verbatim(_) | Self::Exact(_) | Self::Words(_) => {}
        }
        let program = self.program();
        match &command.words {
            // What it runs is looked at by itself.
            Ok(words) if command.free => {
                let about = self.is_about(command.lax_words(words));
                about.then(|| "this command is".to_owned())
            }
            Ok(words) => {
                let named = || program.is_some_and(|program| has_token(&command.text, program));
                let nested =
                    (!vetted || named()) && self.forbids_nested(command.own_words(words), 0);
                (nested || self.is_about(command.lax_words(words)))
                    .then(|| "this command is, or may run what is".to_owned())
            }
            Err(not_plain) => {
                if vetted && !program.is_some_and(|program| has_token(&command.text, program)) {
                    return None;
                }
                Some(format!(
                    "the command cannot be shown not to run what is not allowed ({not_plain}), so it is"
                ))
            }
        }
    }

    fn forbids_words(&self, words: &[String], depth: usize) -> bool {
        self.is_about(words) || self.forbids_nested(words, depth)
    }

    fn is_about(&self, words: &[String]) -> bool {
        match self {
            Self::Any => true,
            Self::Verbatim(_) => false,
            Self::Exact(exact) => matches_laxly(exact.iter().map(Some), words, Tail::Options),
            Self::Words(parts) => {
                let parts = parts.iter().map(|part| match part {
                    Part::Word(word) => Some(word),
                    Part::Any => None,
                });
                matches_laxly(parts, words, Tail::Anything)
            }
        }
    }

    /// A program that runs others, or that nothing is known of, is judged by
    /// every command its arguments could hold.
    fn forbids_nested(&self, words: &[String], depth: usize) -> bool {
        let known = guard::is_known(words)
            && guard::check(words, 1).is_ok()
            && uncertain::check(words).is_ok();
        if words.len() < 2 || known || finds_only(words) {
            return false;
        }
        if depth > 4 || words.len() > 256 {
            return true;
        }
        let from = |at: usize| words.get(at..).unwrap_or_default();
        if (1..words.len()).any(|at| self.is_about(from(at))) {
            return true;
        }
        let runs_text = (0..words.len()).any(|at| guard::check(from(at), 1).is_err());
        let unknown = !guard::is_known(words);
        let nested = |word: &String| match literal_words(word) {
            // `--run='git push'` is no command, and has one.
            Ok(nested)
                if nested
                    .first()
                    .is_some_and(|first| first.starts_with('-') || first.contains('=')) =>
            {
                self.program().is_none_or(|program| {
                    has_token(word, program) || (runs_text && is_glued(&nested, program))
                })
            }
            // One word is no more than a program's name, which was looked at.
            Ok(nested) if nested.len() == 1 && !runs_text => false,
            Ok(nested) => {
                self.forbids_words(&nested, depth + 1) || (runs_text && self.is_in(word, words))
            }
            Err(_) if runs_text && !harmless_argument(word) => true,
            // A program may run it: only a text that says the name.
            Err(_) => self
                .program()
                .is_none_or(|program| has_token(word, program)),
        };
        (runs_text || unknown) && words.iter().skip(1).any(nested)
    }

    /// Whether a command of the rule stands in a text for the program of
    /// `words`, as in `!rm x` or `EXEC:rm x`.
    fn is_in(&self, text: &str, words: &[String]) -> bool {
        let tokens: Vec<String> = tokens(text).map(str::to_owned).collect();
        if (0..tokens.len()).any(|at| self.is_about(tokens.get(at..).unwrap_or_default())) {
            return true;
        }
        // sed runs what sticks to its `e`.
        let sed = words
            .first()
            .is_some_and(|word| base_name(word).ends_with("sed"));
        let mut marks = text.match_indices('e').filter(|_| sed);
        marks.any(|(at, _)| {
            literal_words(text.get(at + 1..).unwrap_or_default())
                .is_ok_and(|words| self.is_about(&words))
        })
    }

    /// The program that the rule is about.
    fn program(&self) -> Option<&str> {
        match self {
            Self::Any | Self::Verbatim(_) => None,
            Self::Exact(words) => words.first().map(String::as_str),
            Self::Words(parts) => match parts.first() {
                Some(Part::Word(word)) => Some(word),
                Some(Part::Any) | None => None,
            },
        }
    }
}

/// Whether a command is a `find` that runs no other: what one runs is looked at
/// by itself and is not among its words.
fn finds_only(words: &[String]) -> bool {
    const RUN: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
    let runs = |word: &String| RUN.iter().any(|run| may_be(word, run));
    let program = words.first().map_or("", |word| base_name(word));
    matches!(program, "find" | "gfind") && !words.iter().any(runs)
}

/// Arguments that are no plain command and cannot become one.
fn harmless_argument(word: &str) -> bool {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_./,:@%+={}".contains(c);
    word.chars().all(harmless)
}

/// How many words a pattern begins with.
fn literal_parts(parts: &[Part]) -> usize {
    parts.iter().take_while(|part| **part != Part::Any).count()
}

/// Byte positions of stars outside quotes.
fn unquoted_stars(text: &str) -> Vec<usize> {
    let mut quote = None;
    let mut found = Vec::new();
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '*') => found.push(at),
            _ => {}
        }
    }
    found
}

fn push_words(parts: &mut Vec<Part>, text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Ok(());
    }
    // A later segment does not start with a program: a stand-in does. Nor is
    // `time` one to bash, though people write rules for it.
    let timed = text.split_whitespace().next() == Some("time");
    let (line, skip) = if parts.is_empty() && !timed {
        (text.to_owned(), 0)
    } else {
        (format!("x {text}"), 1)
    };
    let words = literal_words(&line).map_err(|not_plain| {
        format!(
            "`{}` are not literal words: {}",
            text.trim(),
            not_plain.reason
        )
    })?;
    parts.extend(words.into_iter().skip(skip).map(Part::Word));
    Ok(())
}

/// Whether the words fit the pattern exactly.
fn matches(parts: &[Part], words: &[String]) -> bool {
    // Greedy with one point of return, as for globs: linear for prefixes.
    let (mut part, mut word) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while word < words.len() || part < parts.len() {
        match (parts.get(part), words.get(word)) {
            (Some(Part::Any), _) => {
                retry = Some((part, word));
                part += 1;
            }
            (Some(Part::Word(want)), Some(have)) if want == have => {
                part += 1;
                word += 1;
            }
            _ => match retry {
                Some((star, from)) if from < words.len() => {
                    retry = Some((star, from + 1));
                    part = star + 1;
                    word = from + 1;
                }
                _ => return false,
            },
        }
    }
    true
}

/// The last component of a program's path.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a program's name stands anywhere in a text as a word of its own.
fn has_token(text: &str, program: &str) -> bool {
    // `git-push` is `git push`.
    let named = |rest: &str| rest.is_empty() || rest.starts_with('-');
    tokens(text).any(|token| token.strip_prefix(base_name(program)).is_some_and(named))
}

/// What could be names and words in a text of any language.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| !(c.is_ascii_alphanumeric() || "_.+-".contains(c));
    text.split(part).filter(|token| !token.is_empty())
}

/// Whether a program's name sticks to the letter of an option: `-Hrm x`.
fn is_glued(words: &[String], program: &str) -> bool {
    let first = words.first().and_then(|word| word.strip_prefix('-'));
    first.is_some_and(|cluster| {
        let end = base_name(cluster);
        !cluster.starts_with('-') && cluster.len() > 1 && end.ends_with(base_name(program))
    })
}
