//! A simple command of a line, as rules look at it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::globs;
use super::guard;
use super::shell::{self, NUMBER, Namer, Outer, Refusal, Simple, UNKNOWN};

/// A command, looked at once.
#[derive(Debug)]
pub(crate) struct CommandLine {
    /// As it can be written in a line.
    pub(crate) text: String,
    /// Its words, names of files in the place of globs.
    pub(crate) words: Result<Vec<String>, Refusal>,
    /// The words as they stand in the line, where `words` are without options
    /// that change nothing.
    written: Option<Vec<String>>,
    /// The words as a deny rule sees them: numbers that are not known are any.
    lax: Option<Vec<String>>,
    /// The words without the commands in them, when there are some.
    own: Option<Vec<String>>,
    /// Whether it needs no rule.
    pub(crate) free: bool,
    /// The commands that run it.
    outer: Option<Rc<Outer>>,
    /// Where it may run; absolute.
    pub(crate) directories: Vec<PathBuf>,
    /// The words that were globs.
    pub(crate) globs: Vec<String>,
    /// The command that prints the names which its unknown words are.
    pub(crate) named_by: Option<Rc<Namer>>,
    /// Whether a name that a glob stands for could look like an option.
    pub(crate) loose_glob: bool,
    /// Whether a pipe or a here-document feeds it.
    fed: bool,
    /// Whether it runs once at most, and nothing beside it.
    pub(crate) once: bool,
}

impl CommandLine {
    /// A line that should be one command, as rules and their examples say it.
    pub(crate) fn new(text: &str) -> Self {
        let one = shell::analyse(text, &shell::Start::at(Path::new("/"))).map_err(Refusal::from);
        let one = one.and_then(|mut analysis| {
            let command = analysis.commands.pop();
            match command.filter(|_| analysis.commands.is_empty() && analysis.openings.is_empty()) {
                Some(only) if only.globs.is_empty() => Ok(only),
                _ => Err(Refusal {
                    reason: "it is not one plain command".to_owned(),
                }),
            }
        });
        match one {
            Ok(only) => Self {
                text: text.trim().to_owned(),
                ..Self::of(only)
            },
            Err(refusal) => Self::unclear(text, refusal, Vec::new()),
        }
    }

    /// One command of a line.
    pub(crate) fn of(simple: Simple) -> Self {
        let patterns = simple.globs.iter().filter_map(|glob| {
            let pattern = simple.words.get(glob.at)?;
            Some(match &glob.edit {
                Some(edit) => edit.applied_to_glob(pattern),
                None => pattern.clone(),
            })
        });
        let globs: Vec<String> = patterns.collect();
        let loose_glob = globs
            .iter()
            .any(|pattern| pattern.starts_with(['*', '?', '[', '-']));
        let words = with_names(&simple);
        let replaced = |words: &[String], by: &str| {
            words.iter().map(|word| word.replace(NUMBER, by)).collect()
        };
        let numbers = words
            .as_ref()
            .is_ok_and(|words| words.iter().any(|word| word.contains(NUMBER)));
        let any = UNKNOWN.to_string();
        let lax = words.as_ref().ok().map(|words| replaced(words, &any));
        let mut words = words.map(|words| replaced(&words, "0"));
        let idle = |words: &Vec<String>| guard::without_idle_options(words, &simple.directories);
        let plain = words.as_ref().ok().and_then(idle);
        let written = plain.and_then(|plain| std::mem::replace(&mut words, Ok(plain)).ok());
        Self {
            text: simple.text,
            lax: lax.filter(|_| numbers || written.is_some()),
            words,
            written,
            own: simple.own.map(|own| replaced(&own, "0")),
            free: simple.free,
            outer: simple.outer,
            directories: simple.directories,
            globs,
            named_by: simple.named_by,
            loose_glob,
            fed: simple.fed,
            once: simple.once,
        }
    }

    /// A line of which cannot be said what it runs.
    pub(crate) fn unclear(text: &str, refusal: Refusal, directories: Vec<PathBuf>) -> Self {
        Self {
            text: text.to_owned(),
            words: Err(refusal),
            written: None,
            lax: None,
            own: None,
            free: false,
            outer: None,
            directories,
            globs: Vec::new(),
            named_by: None,
            loose_glob: false,
            fed: false,
            once: false,
        }
    }

    /// The words as a deny rule sees them.
    pub(crate) fn lax_words<'a>(&'a self, words: &'a [String]) -> &'a [String] {
        self.lax.as_deref().unwrap_or(words)
    }

    /// The words as they stand in the line, where that has more of them.
    pub(crate) fn written(&self) -> Option<&[String]> {
        self.written.as_deref()
    }

    /// Whether a pipe or a here-document feeds it.
    pub(crate) fn is_fed(&self) -> bool {
        self.fed
    }

    /// The words that a rule has to cover.
    pub(crate) fn own_words<'a>(&'a self, words: &'a [String]) -> &'a [String] {
        self.own.as_deref().unwrap_or(words)
    }

    /// The words of the commands that run it, each with how many of them
    /// precede this command's own when those are their last.
    pub(crate) fn outers(&self) -> Vec<(&[String], Option<usize>)> {
        let mut found = Vec::new();
        let mut before = Some(0);
        let mut outer = self.outer.as_ref();
        while let Some(next) = outer {
            before = before.and_then(|before| Some(before + next.inner_at?));
            found.push((next.words.as_slice(), before));
            outer = next.outer.as_ref();
        }
        found
    }
}

/// The words of a command with the names that its globs stand for.
fn with_names(simple: &Simple) -> Result<Vec<String>, Refusal> {
    if simple.globs.is_empty() {
        return Ok(simple.words.clone());
    }
    let mut words = Vec::new();
    for (at, word) in simple.words.iter().enumerate() {
        let Some(glob) = simple.globs.iter().find(|glob| glob.at == at) else {
            words.push(word.clone());
            continue;
        };
        let mut names = globs::expand(word, &simple.directories)?;
        if let Some(edit) = &glob.edit {
            names.iter_mut().for_each(|name| *name = edit.applied(name));
        }
        let split = |name: &String| glob.splits && name.contains([' ', '\t', '\n', '*', '?', '[']);
        if names.iter().any(|name| name != word && split(name)) {
            return Err(Refusal {
                reason: format!(
                    "a name that `{word}` stands for would be split; quote the variable"
                ),
            });
        }
        if !word.starts_with('-') && names.iter().any(|name| name.starts_with('-')) {
            return Err(Refusal {
                reason: format!(
                    "a name that `{word}` stands for looks like an option; write `./{word}`"
                ),
            });
        }
        words.extend(names);
    }
    Ok(words)
}
