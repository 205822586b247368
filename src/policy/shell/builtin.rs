//! Builtins of bash: which only compute, and what they change.

use std::path::{Path, PathBuf};

use super::plain::is_name;
use super::state::{Field, State, Value};
use super::syntax::Word;
use super::walk::Walker;
use super::{NUMBER, Refusal, UNKNOWN, refuse};
use crate::policy::scope::normal;

/// What a command word stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// A builtin that needs no rule.
    Free,
    /// A builtin that needs one.
    Judged,
    /// A program.
    Program,
}

/// Options of `set` that make no command mean another.
const SET: &[&str] = &[
    "errexit",
    "nounset",
    "pipefail",
    "xtrace",
    "verbose",
    "errtrace",
    "noclobber",
];

/// Options of `shopt` of the same kind.
const SHOPT: &[&str] = &["failglob", "inherit_errexit", "nullglob"];

impl Walker {
    /// Runs a builtin, as far as it changes what follows.
    pub(super) fn builtin(
        &mut self,
        fields: &[Field],
        words: &[Word],
        state: &mut State,
    ) -> Result<Standing, Refusal> {
        let name = fields.first().map_or("", |field| field.text.as_str());
        let arguments = fields.get(1..).unwrap_or_default();
        match name {
            ":" | "true" | "false" => {}
            "break" | "continue" | "return" | "exit" => self.met_jump |= name != "exit",
            "shift" => state.arguments = None,
            "wait" => self.only_known_options(name, arguments, &["-n", "-f"])?,
            "umask" => self.only_known_options(name, arguments, &["-S", "-p"])?,
            "pwd" => self.only_known_options(name, arguments, &["-L", "-P"])?,
            "test" | "[" => check_test(arguments)?,
            "cd" => self.change_directory(arguments, state)?,
            "pushd" if arguments.len() == 1 => self.change_directory(arguments, state)?,
            "popd" if arguments.is_empty() && self.moves => self.go_back(state),
            "set" => set_options(arguments, state)?,
            "shopt" => shell_options(arguments)?,
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                self.declare(fields, words, state)?;
            }
            "hash" if arguments.iter().all(|field| field.known() == Some("-r")) => {}
            "eval" => self.evaluate(fields, state)?,
            "trap" => self.trap(fields, state)?,
            "exec" if arguments.is_empty() => {}
            "." | "source" => {
                let file = arguments.first().and_then(Field::known).unwrap_or_default();
                if is_descriptor(file) {
                    let what = "reads its commands from what another command writes";
                    return refuse(format!("`{name}` {what}"));
                }
                state.forget_values();
                state.doubt_functions();
                return Ok(Standing::Judged);
            }
            "pushd" | "popd" => {
                return refuse(format!(
                    "where this `{name}` leads is not followed; use `cd`"
                ));
            }
            "enable" | "hash" | "alias" | "unalias" | "bind" | "complete" | "compopt" => {
                return refuse(format!("`{name}` may change what commands mean"));
            }
            _ => return self.assigning(name, arguments, state),
        }
        Ok(Standing::Free)
    }

    /// A builtin that assigns to variables that its arguments name.
    fn assigning(
        &mut self,
        name: &str,
        arguments: &[Field],
        state: &mut State,
    ) -> Result<Standing, Refusal> {
        match name {
            "read" => self.read_builtin(arguments, state)?,
            "mapfile" | "readarray" => self.map_file(arguments, state)?,
            "unset" => self.unset(arguments, state)?,
            "getopts" => {
                let variable = arguments.get(1).and_then(Field::known);
                self.assign_unknown(variable.unwrap_or_default(), state)?;
                self.set("OPTARG", Value::Unknown, state)?;
            }
            "let" => {
                for field in arguments {
                    self.expression(&field.text, state)?;
                }
            }
            "printf" => {
                let option = arguments
                    .first()
                    .and_then(|field| field.text.strip_prefix("-v"));
                if let Some(stuck) = option {
                    let next = arguments.get(1).and_then(Field::known).unwrap_or_default();
                    let variable = if stuck.is_empty() { next } else { stuck };
                    self.assign_unknown(variable, state)?;
                }
                return Ok(Standing::Judged);
            }
            _ => return Ok(Standing::Program),
        }
        Ok(Standing::Free)
    }

    fn only_known_options(
        &self,
        name: &str,
        arguments: &[Field],
        options: &[&str],
    ) -> Result<(), Refusal> {
        let fine = |field: &Field| {
            !field.text.starts_with(['-', UNKNOWN]) || options.contains(&field.text.as_str())
        };
        // `$!` is a number that nobody knows.
        let number = |field: &Field| field.text.chars().eq([UNKNOWN]) && name == "wait";
        match arguments
            .iter()
            .find(|field| !fine(field) && !number(field))
        {
            Some(field) => refuse(format!("`{name} {}` may assign a variable", field.text)),
            None => Ok(()),
        }
    }

    /// A builtin assigns something to a variable.
    fn assign_unknown(&mut self, name: &str, state: &mut State) -> Result<(), Refusal> {
        if !is_name(name) {
            return refuse("a builtin assigns to what is no plain variable");
        }
        self.set(name, Value::Unknown, state)
    }

    fn change_directory(&mut self, arguments: &[Field], state: &mut State) -> Result<(), Refusal> {
        let operands: Vec<&Field> = arguments
            .iter()
            .filter(|field| !matches!(field.text.as_str(), "-L" | "-P" | "-e" | "--"))
            .collect();
        let below;
        let target = match operands.as_slice() {
            // Some directory that is there.
            [only] if only.glob => {
                below = below_of(only);
                below.as_deref()
            }
            [only] => only.known(),
            _ => None,
        };
        if target == Some("-") && self.moves {
            self.go_back(state);
            return Ok(());
        }
        let physical = arguments.iter().any(|field| field.text == "-P");
        let Some(target) = target.filter(|target| {
            // `-P` follows links before it goes up.
            let plain = !physical || !target.contains("..");
            plain && !target.is_empty() && !target.starts_with(['-', '~', '+'])
        }) else {
            return refuse("where its `cd` leads is not known, or not in the workspace");
        };
        let moved: Vec<_> = state
            .directories
            .iter()
            .map(|from| normal(&from.join(Path::new(target))))
            .collect();
        self.visited.extend(state.directories.iter().cloned());
        self.move_to(moved, state);
        Ok(())
    }

    /// The shell goes back to one of the directories where it was.
    fn go_back(&mut self, state: &mut State) {
        let mut places = self.visited.clone();
        places.sort();
        places.dedup();
        self.move_to(places, state);
    }

    fn move_to(&mut self, places: Vec<PathBuf>, state: &mut State) {
        for place in &places {
            if !state.directories.contains(place) {
                state.directories.push(place.clone());
            }
        }
        self.moved = Some(places);
        self.moves = true;
    }

    fn read_builtin(&mut self, arguments: &[Field], state: &mut State) -> Result<(), Refusal> {
        let mut rest = arguments.iter();
        let mut any = false;
        while let Some(field) = rest.next() {
            let Some(text) = field.known() else {
                return refuse("what `read` assigns is not known");
            };
            let Some(options) = text.strip_prefix('-') else {
                self.assign_unknown(text, state)?;
                any = true;
                continue;
            };
            // The first letter that takes a value ends the cluster.
            let Some(at) = options.find(|c| "adinNptu".contains(c)) else {
                if options.contains(|c| !"rs".contains(c)) {
                    return refuse(format!("`read {text}` does more than read"));
                }
                continue;
            };
            let stuck = options.get(at + 1..).unwrap_or_default();
            let value = match stuck {
                "" => rest.next().and_then(Field::known).unwrap_or_default(),
                stuck => stuck,
            };
            if options.get(at..).is_some_and(|tail| tail.starts_with('a')) {
                self.assign_unknown(value, state)?;
                any = true;
            }
        }
        match any {
            true => Ok(()),
            false => self.set("REPLY", Value::Unknown, state),
        }
    }

    fn map_file(&mut self, arguments: &[Field], state: &mut State) -> Result<(), Refusal> {
        let mut rest = arguments.iter();
        let mut name = "MAPFILE".to_owned();
        while let Some(field) = rest.next() {
            match field.known() {
                Some("-t") => {}
                Some("-d" | "-n" | "-O" | "-s" | "-u") => drop(rest.next()),
                Some(text) if is_name(text) => name = text.to_owned(),
                _ => return refuse("`mapfile` may run a command for its lines"),
            }
        }
        self.assign_unknown(&name, state)
    }

    fn unset(&mut self, arguments: &[Field], state: &mut State) -> Result<(), Refusal> {
        for field in arguments {
            match field.known() {
                Some("-f" | "-v") => {}
                Some(name) if is_name(name) => self.assign_unknown(name, state)?,
                _ => return refuse("what `unset` removes is not known"),
            }
        }
        state.doubt_functions();
        Ok(())
    }

    fn evaluate(&mut self, fields: &[Field], state: &mut State) -> Result<(), Refusal> {
        let known: Option<Vec<&str>> = fields.iter().skip(1).map(Field::known).collect();
        let Some(known) = known else {
            return refuse("what `eval` runs is not known");
        };
        let text = known.join(" ");
        if text.trim().is_empty() {
            return Ok(());
        }
        self.inside(fields, None, |walker| walker.nested_text(&text, state))
    }

    fn trap(&mut self, fields: &[Field], state: &mut State) -> Result<(), Refusal> {
        let known: Option<Vec<&str>> = fields.iter().skip(1).map(Field::known).collect();
        let Some(known) = known else {
            return refuse("what a `trap` runs is not known");
        };
        let [code, _, ..] = known.as_slice() else {
            return Ok(());
        };
        if matches!(*code, "" | "-" | "-p" | "-l") {
            return Ok(());
        }
        if code.starts_with('-') {
            return refuse("a `trap` has an option");
        }
        let code = (*code).to_owned();
        let mut inner = state.clone();
        inner.forget_values();
        let before = inner.clone();
        self.inside(fields, None, |walker| walker.nested_text(&code, &mut inner))?;
        if inner != before {
            return refuse("a trap changes what the commands after it mean");
        }
        self.traps.push(code);
        Ok(())
    }
}

fn shell_options(arguments: &[Field]) -> Result<(), Refusal> {
    let fine = |text: &str| SHOPT.contains(&text) || text == "-s" || text == "-u";
    if !arguments
        .iter()
        .all(|field| field.known().is_some_and(fine))
    {
        return refuse("`shopt` changes how bash reads the rest");
    }
    Ok(())
}

/// `set -euo pipefail`, `set -- a b`.
fn set_options(arguments: &[Field], state: &mut State) -> Result<(), Refusal> {
    let mut rest = arguments.iter().enumerate();
    while let Some((at, field)) = rest.next() {
        let Some(text) = field.known() else {
            return refuse("what `set` changes is not known");
        };
        if text == "--" {
            state.arguments = arguments.get(at + 1..).map(<[Field]>::to_vec);
            return Ok(());
        }
        let Some(letters) = text.strip_prefix(['-', '+']) else {
            return refuse("`set` without `--` may change options");
        };
        let Some(names_next) = letters.strip_suffix('o').or(Some(letters)) else {
            continue;
        };
        if names_next.is_empty() && letters.is_empty()
            || names_next.contains(|c| !"euxvCE".contains(c))
        {
            return refuse(format!("`set {text}` changes how bash reads the rest"));
        }
        if letters.ends_with('o') {
            let name = rest.next().and_then(|(_, field)| field.known());
            if !name.is_some_and(|name| SET.contains(&name)) {
                return refuse("`set -o` changes how bash reads the rest");
            }
        }
    }
    Ok(())
}

/// Stands for text that is not known.
const OPEN: [char; 2] = [UNKNOWN, NUMBER];

/// What `-v` begins with when a part of it is not known.
const MAY_NAME: [char; 3] = [UNKNOWN, NUMBER, '-'];

/// `test` evaluates the name of a variable, subscripts in it included.
fn check_test(arguments: &[Field]) -> Result<(), Refusal> {
    for (at, field) in arguments.iter().enumerate() {
        if field.splits {
            return refuse("a word of `test` may become several; quote it");
        }
        let unsure = field.glob || (field.text.contains(OPEN) && field.text.starts_with(MAY_NAME));
        let next = arguments.get(at + 1);
        let names = matches!(field.text.as_str(), "-v" | "-R");
        let Some(next) = next.filter(|_| names || unsure) else {
            continue;
        };
        let harmless = if names {
            next.known().is_some_and(is_name)
                || matches!(next.text.as_str(), "]" | "=" | "==" | "!=")
        } else {
            next.known().is_some_and(|text| !text.contains('['))
        };
        if !harmless {
            return refuse("a `test` may evaluate a variable that it is not known to name");
        }
    }
    Ok(())
}

/// A path below where the shell is that a glob stands for; none when it may
/// lead up.
fn below_of(glob: &Field) -> Option<String> {
    let marks = ['*', '?', '['];
    let text = match &glob.edit {
        Some(edit) => edit.applied_to_glob(&glob.text),
        None => glob.text.clone(),
    };
    // Bash may find `..` for `.*`.
    let mut parts = text.split('/');
    let up = parts.any(|part| part.contains("..") || part.starts_with('.') && part.contains(marks));
    (!glob.splits && !up).then(|| text.replace(marks, &UNKNOWN.to_string()))
}

/// Whether a path is an open descriptor.
pub(super) fn is_descriptor(path: &str) -> bool {
    path.starts_with("/dev/fd/") || path == "/dev/stdin" || path.starts_with("/proc/")
}

/// What a command prints, as far as that is known. `alone` says that it is the
/// whole substitution and not the end of a pipe.
pub(super) fn printed(fields: &[Field], alone: bool) -> Value {
    let known: Option<Vec<&str>> = fields.iter().map(Field::known).collect();
    let first = fields.first().map_or("", |field| field.text.as_str());
    let plain = |text: &&str| !text.contains(['\\', '%']);
    match (first, known.as_deref()) {
        ("echo", Some([_, words @ ..])) if alone => {
            let fine =
                !words.first().is_some_and(|word| word.starts_with('-')) && words.iter().all(plain);
            match fine {
                true => Value::Known(words.join(" ").trim_end_matches('\n').to_owned()),
                false => Value::Unknown,
            }
        }
        ("printf", Some([_, "%s", word])) if alone => {
            Value::Known(word.trim_end_matches('\n').to_owned())
        }
        ("printf", Some([_, word])) if alone && plain(word) && !word.starts_with('-') => {
            Value::Known(word.trim_end_matches('\n').to_owned())
        }
        ("nproc", _) | ("date", Some([_, "+%s"])) | ("id", Some([_, "-u" | "-g"])) => Value::Number,
        // The name of a commit.
        ("git", Some([_, "merge-base", words @ ..])) if words.iter().all(names_commit) => {
            Value::Commit
        }
        ("git", Some([_, "rev-parse", words @ ..])) if answers_commit(words) => Value::Commit,
        ("wc", Some([_, flag])) if matches!(*flag, "-l" | "-c" | "-w" | "-m") => Value::Number,
        _ => Value::Unknown,
    }
}

/// Whether a command prints the top of the repository.
pub(super) fn asks_for_top(fields: &[Field]) -> bool {
    let words: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
    words == ["git", "rev-parse", "--show-toplevel"]
}

/// Whether `git rev-parse` answers with a commit: what it does not find it may
/// print as it is, unless it is asked to verify.
fn answers_commit(words: &[&str]) -> bool {
    let verifies = words.contains(&"--verify");
    let mark = |c: char| c.is_ascii_digit() || "~^".contains(c);
    words.iter().all(|word| match word.strip_prefix("HEAD") {
        Some(rest) if rest.chars().all(mark) => true,
        _ => matches!(*word, "--short" | "--verify") || (verifies && names_commit(word)),
    })
}

/// Whether a word for git is answered by the name of a commit.
fn names_commit(word: &&str) -> bool {
    *word == "--short" || word.starts_with(|c: char| c.is_ascii_alphanumeric())
}
