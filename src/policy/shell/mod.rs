//! What a command line would run: every simple command that bash could reach
//! anywhere in it, and every file that its redirections open.
//!
//! The text is read by bash's grammar ([`grammar`], with words in [`read`]) and
//! then gone through as bash would run it ([`walk`]): variables with known
//! values are put in, loops over known words are unrolled, branches are joined,
//! functions are entered where they are called, `cd` is followed, and programs
//! that run others are looked through ([`wrapper`]). What remains unknown of a
//! word is a [`UNKNOWN`] in its text.
//!
//! Bash is started as `bash -c LINE`: not interactive, so there are no
//! aliases, no history expansion and no start-up files, and `extglob` is off.
//! Nothing is run here and nothing is looked up on the disk.
//!
//! Whatever cannot be read with certainty is a [`Refusal`]: such a line is
//! allowed only by a rule with exactly its text, or where everything is.
//!
//! Builtins that only compute need no rule of their own ([`builtin`]): `:`,
//! `true`, `false`, `test`, `[`, `cd` and `pushd` inside the workspace, `popd`, `set` and `shopt` of
//! harmless options, `break`, `continue`, `return`, `exit`, `shift`, `wait`,
//! `unset`, `umask`, `pwd`, `getopts`, `let`, `hash -r`, `command -v`, and what assigns
//! (`read`, `mapfile`, `local`, `declare`, `export`, `readonly`) to a harmless
//! name. Those that evaluate a name (`test -v`, `unset`, `read`, arithmetic) are
//! refused where a subscript could hide in it. `eval` and `trap` are free as far
//! as what they run is allowed. A deny rule that names a builtin still counts.
//! `echo` and `printf` print, and need a rule as programs do.
//!
//! The grammar is written here rather than taken from tree-sitter: that one
//! recovers from what it cannot read by guessing, and loses commands behind some
//! here-documents without a sign; what is wanted here is the opposite, to read
//! exactly or to refuse.

mod ansi;
mod arithmetic;
mod brace;
mod builtin;
mod calls;
mod compound;
mod expand;
mod grammar;
mod here;
mod names;
mod parameter;
mod pipe;
mod plain;
mod read;
mod redirect;
mod state;
mod syntax;
mod test;
mod tilde;
mod walk;
mod wrapper;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use read::Reader;
use state::State;
use walk::Walker;

/// Stands in a word for text that nobody knows before the command runs.
pub(crate) const UNKNOWN: char = '\u{fffd}';

/// Stands in a word for a number that nobody knows, or a text like one.
pub(crate) const NUMBER: char = '\u{fffc}';

/// The longest line that is looked at, in bytes.
const LENGTH_MAX: usize = 64 * 1024;

/// The line cannot be shown to run what it seems to run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// What stands in the way, for people and models.
    pub reason: String,
}

fn refuse<T>(reason: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        reason: reason.into(),
    })
}

/// What a line would do.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    /// In the order in which they would run.
    pub(crate) commands: Vec<Simple>,
    pub(crate) openings: Vec<Opening>,
    /// What its unknown words may turn out to be, as far as the line says it:
    /// values of variables, and what stands in for them.
    pub(crate) texts: Vec<String>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    /// Its part of the line, or its words when no part of the line is it.
    pub(crate) text: String,
    /// Its words after quote removal and expansion.
    pub(crate) words: Vec<String>,
    /// The words without the commands in them, which stand for themselves.
    pub(crate) own: Option<Vec<String>>,
    /// Which words are globs.
    pub(crate) globs: Vec<Glob>,
    /// Whether it only computes, or only runs a command that follows.
    pub(crate) free: bool,
    /// The command that runs this one.
    pub(crate) outer: Option<Rc<Outer>>,
    /// Where it may run; absolute.
    pub(crate) directories: Vec<PathBuf>,
    /// Whether a pipe or a here-document feeds it.
    pub(crate) fed: bool,
    /// Whether it runs once at most, and nothing of the line beside it.
    pub(crate) once: bool,
    /// What names the files which its unknown words are.
    pub(crate) named_by: Option<Rc<Namer>>,
}

/// A command that names files to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namer {
    /// Its words; of the commands that a `find` runs, `-exec` alone.
    pub(crate) words: Vec<String>,
    pub(crate) hands: Hands,
}

/// What of a command is handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hands {
    /// The files that it finds, whatever it prints.
    Files,
    /// Lines that it prints, as they are.
    Lines,
    /// Parts of what it prints, or more than that.
    Text,
}

impl Simple {
    /// `:`, run in the workspace.
    pub(crate) fn nothing(workspace: &Path) -> Self {
        Self {
            text: ":".to_owned(),
            words: vec![":".to_owned()],
            own: None,
            globs: Vec::new(),
            free: true,
            outer: None,
            directories: vec![workspace.to_owned()],
            fed: false,
            once: true,
            named_by: None,
        }
    }
}

/// A word that bash replaces by names of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    /// Which word.
    pub(crate) at: usize,
    /// Whether the names are split at blanks.
    pub(crate) splits: bool,
    /// How the names are changed, when they are.
    pub(crate) edit: Option<Edit>,
}

/// What a word makes of a name that a glob stands for: `"out/${f%.a}.b"`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Edit {
    before: String,
    /// An end that is cut off, where the name has it.
    cut: String,
    behind: String,
}

impl Edit {
    /// The same, with texts before and behind.
    fn between(self, before: &str, behind: &str) -> Self {
        Self {
            before: format!("{before}{}", self.before),
            behind: format!("{}{behind}", self.behind),
            cut: self.cut,
        }
    }

    /// The same, with an end cut off; none where that is not only the name's.
    fn without(self, end: &str) -> Option<Self> {
        let whole = self.cut.is_empty() && self.behind.is_empty();
        whole.then(|| Self {
            cut: end.to_owned(),
            ..self
        })
    }

    /// The name as it becomes.
    pub(crate) fn applied(&self, name: &str) -> String {
        let stem = name.strip_suffix(self.cut.as_str()).unwrap_or(name);
        format!("{}{stem}{}", self.before, self.behind)
    }

    /// A glob that all names match which those of `pattern` become.
    pub(crate) fn applied_to_glob(&self, pattern: &str) -> String {
        let (before, behind) = (&self.before, &self.behind);
        if let Some(stem) = pattern.strip_suffix(self.cut.as_str()) {
            return format!("{before}{stem}{behind}");
        }
        // A name may have the end or not.
        let directory = pattern.rfind('/').map_or(0, |at| at + 1);
        let directory = pattern.get(..directory).unwrap_or_default();
        format!("{before}{directory}*{behind}")
    }
}

/// A command that runs another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outer {
    pub(crate) words: Vec<String>,
    /// Where the words of the inner command begin, when they are its last.
    pub(crate) inner_at: Option<usize>,
    pub(crate) outer: Option<Rc<Outer>>,
}

/// A file that a redirection opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opening {
    /// As bash will use it.
    pub(crate) path: String,
    pub(crate) writes: bool,
    /// Where a relative path may start; absolute.
    pub(crate) directories: Vec<PathBuf>,
}

/// A line that cannot be read to its end.
#[derive(Debug)]
pub(crate) struct Unread {
    /// What stands in the way.
    pub(crate) refusal: Refusal,
    /// What was understood before that.
    pub(crate) before: Analysis,
}

impl From<Refusal> for Unread {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            before: Analysis::default(),
        }
    }
}

impl From<Unread> for Refusal {
    fn from(unread: Unread) -> Self {
        unread.refusal
    }
}

/// Where a line begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    /// Where it runs.
    pub(crate) workspace: &'a Path,
    /// The real path of the workspace when that is the top of a repository.
    pub(crate) top: Option<&'a Path>,
    /// What `$TMPDIR` is, when that is known.
    pub(crate) tmpdir: Option<&'a Path>,
}

impl<'a> Start<'a> {
    /// A line of which only the directory is known.
    pub(crate) fn at(workspace: &'a Path) -> Self {
        Self {
            workspace,
            top: None,
            tmpdir: None,
        }
    }
}

/// Reads a line.
///
/// # Errors
/// When what it runs cannot be said.
pub(crate) fn analyse(line: &str, start: &Start<'_>) -> Result<Analysis, Unread> {
    let script = parse(line, 0)?;
    if script.statements.is_empty() {
        return Ok(refuse("it is empty")?);
    }
    let go = |jumps: bool| {
        let mut walker = Walker::new(jumps, start);
        let mut state = State::new(start.workspace);
        let outcome = walker.script(&script, &mut state);
        let outcome = outcome.and_then(|()| walker.afterwards(&state));
        match outcome {
            Ok(()) => Ok(walker),
            Err(refusal) => Err(Unread {
                refusal,
                before: walker.analysis,
            }),
        }
    };
    let walker: Walker = go(false)?;
    if walker.met_jump {
        return go(true).map(|walker| walker.analysis);
    }
    Ok(walker.analysis)
}

/// The statements of a text.
fn parse(text: &str, depth: usize) -> Result<syntax::Script, Refusal> {
    if text.len() > LENGTH_MAX {
        return refuse(format!("it is longer than {LENGTH_MAX} bytes"));
    }
    let odd = |c: char| c.is_control() && !matches!(c, '\t' | '\n');
    if text.contains(odd) {
        return refuse("it contains a control character");
    }
    Reader::new(text, depth).whole()
}

/// Whether a text is a line of bash that is not one simple command.
pub(crate) fn is_compound(text: &str) -> bool {
    let Ok(script) = parse(text, 0) else {
        return false;
    };
    let [statement] = script.statements.as_slice() else {
        return true;
    };
    let [command] = statement.first.commands.as_slice() else {
        return true;
    };
    !statement.rest.is_empty() || !matches!(command.kind, syntax::Kind::Simple { .. })
}

/// The words that `bash -c` makes of `command`, after quote removal, when it
/// is exactly one simple command of literal words, without redirections.
///
/// # Errors
/// When it is anything else, or when that is in doubt.
pub fn literal_words(command: &str) -> Result<Vec<String>, Refusal> {
    let script = parse(command, 0)?;
    let [statement] = script.statements.as_slice() else {
        return refuse("it joins several commands, or is empty");
    };
    let [command] = statement.first.commands.as_slice() else {
        return refuse("it joins several commands");
    };
    if statement.background
        || !statement.rest.is_empty()
        || statement.first.negated
        || statement.first.timed
    {
        return refuse("it joins several commands, negates one or puts one in the background");
    }
    let syntax::Kind::Simple { assignments, words } = &command.kind else {
        return refuse("it is a compound command");
    };
    if !assignments.is_empty() || !command.redirections.is_empty() {
        return refuse("it redirects, or sets a variable before the command");
    }
    let literal = |word: &syntax::Word| match word.is_literal() {
        true => Ok(word.literal_text()),
        false => refuse("it expands variables, globs or braces; quote what is meant literally"),
    };
    words.iter().map(literal).collect()
}

/// The words of every simple command that a line can run, with `UNKNOWN` for
/// what is not known of them; builtins that only compute are left out.
///
/// # Errors
/// When what it runs cannot be said.
pub fn simple_commands(line: &str) -> Result<Vec<Vec<String>>, Refusal> {
    let analysis = analyse(line, &Start::at(Path::new("/")))?;
    let commands = analysis
        .commands
        .into_iter()
        .filter(|command| !command.free);
    Ok(commands.map(|command| command.words).collect())
}
