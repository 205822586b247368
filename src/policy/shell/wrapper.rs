//! Programs that run others: what they run is looked at as if it stood there
//! itself, to any depth.

use std::rc::Rc;

use super::calls::Notes;
use super::pipe::value_of;
use super::plain::is_name;
use super::state::{Field, State};
use super::walk::Walker;
use super::{Hands, Namer, Opening, Refusal, UNKNOWN, names, refuse};
use crate::policy::table::listed;

/// How a program that runs another takes its arguments. Lists are separated
/// by `, `; an option that is in none of them is not looked through.
struct Wrapper {
    programs: &'static str,
    /// Letters of options without a value.
    flags: &'static str,
    /// Letters of options with a value.
    values: &'static str,
    long_flags: &'static str,
    long_values: &'static str,
    /// How many operands precede the command.
    operands: usize,
    /// Whether assignments may precede the command.
    assigns: bool,
}

const PLAIN: Wrapper = Wrapper {
    programs: "",
    flags: "",
    values: "",
    long_flags: "",
    long_values: "",
    operands: 0,
    assigns: false,
};

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        programs: "timeout, gtimeout",
        flags: "fpv",
        values: "ks",
        long_flags: "foreground, preserve-status, verbose",
        long_values: "kill-after, signal",
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        programs: "nice",
        flags: "0123456789",
        values: "n",
        long_values: "adjustment",
        ..PLAIN
    },
    Wrapper {
        programs: "ionice",
        flags: "t",
        values: "cn",
        long_flags: "ignore",
        long_values: "class, classdata",
        ..PLAIN
    },
    Wrapper {
        programs: "nohup, busybox, toybox",
        ..PLAIN
    },
    Wrapper {
        programs: "stdbuf",
        values: "ioe",
        long_values: "input, output, error",
        ..PLAIN
    },
    Wrapper {
        programs: "setsid",
        flags: "cfw",
        long_flags: "ctty, fork, wait",
        ..PLAIN
    },
    Wrapper {
        programs: "time, gtime",
        flags: "pvq",
        values: "f",
        long_flags: "portability, verbose, quiet",
        long_values: "format",
        ..PLAIN
    },
    Wrapper {
        programs: "env",
        flags: "i0v",
        values: "u",
        long_flags: "ignore-environment, null, debug",
        long_values: "unset",
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        programs: "sudo",
        flags: "nEHSkbP",
        values: "ug",
        long_flags: "non-interactive, preserve-env, set-home, stdin",
        long_values: "user, group",
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        programs: "doas",
        flags: "n",
        values: "u",
        ..PLAIN
    },
    Wrapper {
        programs: "taskset",
        flags: "c",
        long_flags: "cpu-list",
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        programs: "xargs, gxargs",
        flags: "0rtxl",
        values: "ILnPsdEa",
        long_flags: "null, no-run-if-empty, verbose, exit",
        long_values: "max-args, max-procs, max-chars, max-lines, delimiter, arg-file, replace",
        ..PLAIN
    },
    Wrapper {
        programs: "exec",
        flags: "cl",
        values: "a",
        ..PLAIN
    },
    Wrapper {
        programs: "command",
        flags: "p",
        ..PLAIN
    },
    Wrapper {
        programs: "builtin",
        ..PLAIN
    },
];

/// Programs whose `-c` runs a text in the language of bash, or near to it.
const SHELLS: &[&str] = &["ash", "bash", "dash", "sh"];

/// Others, whose language is not looked into.
const OTHER_SHELLS: &[&str] = &[
    "csh", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "pwsh", "rbash", "tcsh", "xonsh",
    "yash", "zsh",
];

/// Wrappers whose way of running their arguments is not looked into.
const UNCLEAR: &[&str] = &["flock", "parallel", "watch", "script", "unbuffer"];

/// Where the programs of the system are.
const SYSTEM: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"];

/// Whether a program that runs another one needs a rule of its own: one that is named
/// by a path elsewhere may be anything.
fn notes_of(program: &str) -> Notes {
    match program.rsplit_once('/') {
        None => Notes::Free,
        Some((directory, _)) if SYSTEM.contains(&directory) => Notes::Free,
        Some(_) => Notes::Judged,
    }
}

impl Walker {
    /// Goes into what a program runs; false when it is none that does.
    pub(super) fn look_through(
        &mut self,
        fields: &[Field],
        state: &mut State,
    ) -> Result<bool, Refusal> {
        let program = fields.first().map_or("", |field| field.text.as_str());
        let base = program.rsplit('/').next().unwrap_or(program);
        if SHELLS.contains(&base) {
            return self.shell(base, fields, state);
        }
        if matches!(base, "at" | "batch") && state.fed
            || OTHER_SHELLS.contains(&base) && state.fed && fields.len() == 1
        {
            return refuse(format!("`{base}` reads its program from standard input"));
        }
        if matches!(base, "find" | "gfind") {
            return self.find(fields, state);
        }
        if base == "command"
            && fields
                .get(1)
                .is_some_and(|field| matches!(field.text.as_str(), "-v" | "-V"))
        {
            self.note(fields, None, notes_of(program), state);
            return Ok(true);
        }
        if UNCLEAR.contains(&base) && fields.len() > 1 {
            return Ok(false);
        }
        let Some(wrapper) = WRAPPERS
            .iter()
            .find(|wrapper| listed(wrapper.programs, base))
        else {
            return Ok(false);
        };
        let Some(at) = wrapper.command_at(base, fields)? else {
            return Ok(false);
        };
        let inner = fields.get(at..).unwrap_or_default();
        let inner = match base {
            "xargs" | "gxargs" => with_input(fields, at, inner),
            _ => inner.to_vec(),
        };
        if inner.is_empty() {
            return Ok(false);
        }
        self.note(fields, None, notes_of(program), state);
        let mut named_by = self.named_by.clone();
        if base.ends_with("xargs") {
            let options = fields.get(..at).unwrap_or_default();
            named_by = state.names.clone().map(|names| names.split_by(options));
            if let Some(file) = value_of(options, "--arg-file", 'a') {
                named_by = None;
                let opening = Opening {
                    path: file,
                    writes: false,
                    directories: state.directories.clone(),
                };
                self.analysis.openings.push(opening);
            }
        }
        let outside = std::mem::replace(&mut self.named_by, named_by);
        self.inside(fields, Some(at), |walker| match base {
            "command" | "builtin" => walker.run(&inner, &[], state),
            _ => walker.program(&inner, &mut state.clone()),
        })?;
        self.named_by = outside;
        Ok(true)
    }

    fn shell(&mut self, base: &str, fields: &[Field], state: &mut State) -> Result<bool, Refusal> {
        let mut at = 1;
        let mut runs_text = false;
        while let Some(text) = fields.get(at).map(|field| field.text.as_str()) {
            if matches!(text, "--norc" | "--noprofile" | "--login" | "--noediting") {
                at += 1;
                continue;
            }
            let Some(letters) = text
                .strip_prefix(['-', '+'])
                .filter(|letters| !letters.is_empty())
            else {
                break;
            };
            at += 1;
            if letters == "-" {
                break;
            }
            if letters.contains(|c| !"ceuxvlno".contains(c)) {
                if text == "--version" || text == "--help" {
                    return Ok(false);
                }
                return refuse(format!("`{base} {text}` is not looked into"));
            }
            runs_text |= letters.contains('c');
            if letters.contains('o') {
                at += 1;
            }
        }
        let operand = fields.get(at);
        if !runs_text {
            return match operand.map(|field| field.text.as_str()) {
                None => refuse(format!("`{base}` reads its program from standard input")),
                Some(text) if text == "-" || super::builtin::is_descriptor(text) => refuse(
                    format!("`{base}` reads its program from what another command writes"),
                ),
                Some(_) => Ok(false),
            };
        }
        let Some(text) = operand.and_then(Field::known).map(str::to_owned) else {
            return refuse(format!("the program of `{base} -c` is not known"));
        };
        if base != "bash" && has_bashisms(&text) {
            return refuse(format!(
                "`{base}` may read its program otherwise than bash does"
            ));
        }
        // The first operand after the program is its name.
        let arguments = fields.get(at + 2..).unwrap_or_default().to_vec();
        let mut inner = state.child(arguments);
        let program = fields.first().map_or("", |field| field.text.as_str());
        self.note(fields, None, notes_of(program), state);
        let outside = self.named_by.take();
        self.inside(fields, None, |walker| walker.nested_text(&text, &mut inner))?;
        self.named_by = outside;
        Ok(true)
    }

    /// `find`: it needs a rule, and each command that it runs as well.
    fn find(&mut self, fields: &[Field], state: &mut State) -> Result<bool, Refusal> {
        let mut own = Vec::new();
        let mut named = Vec::new();
        let mut commands = Vec::new();
        let mut at = 0;
        while let Some(field) = fields.get(at) {
            at += 1;
            let below = matches!(field.text.as_str(), "-exec" | "-ok");
            if !below && !matches!(field.text.as_str(), "-execdir" | "-okdir") {
                own.push(field.text.clone());
                named.push(field.text.clone());
                continue;
            }
            named.push("-exec".to_owned());
            let rest = fields.get(at..).unwrap_or_default();
            let ends = |(index, field): (usize, &Field)| {
                let several = field.text == "+"
                    && index > 0
                    && rest.get(index - 1).is_some_and(|last| last.text == "{}");
                field.text == ";" || several
            };
            let Some(end) = rest.iter().enumerate().position(ends) else {
                return refuse("the end of a command of `find` is not known");
            };
            let root = if below {
                root_of(fields)
            } else {
                ".".to_owned()
            };
            let found = format!("{}/{UNKNOWN}", root.trim_end_matches('/'));
            let command = rest
                .get(..end)
                .unwrap_or_default()
                .iter()
                .map(|field| Field {
                    text: field.text.replace("{}", &found),
                    literal: field.literal && !field.text.contains("{}"),
                    ..field.clone()
                });
            commands.push(command.collect::<Vec<_>>());
            at += end + 1;
        }
        if commands.is_empty() {
            return Ok(false);
        }
        self.note(fields, Some(own), Notes::Judged, state);
        let namer = Namer {
            words: named,
            hands: Hands::Files,
        };
        let outside = self.named_by.replace(Rc::new(namer));
        for command in commands {
            let mut inner = state.clone();
            self.inside(fields, None, |walker| walker.program(&command, &mut inner))?;
        }
        self.named_by = outside;
        Ok(true)
    }
}

/// Where a `find` begins, when that is one place that is known.
fn root_of(fields: &[Field]) -> String {
    let operand = |field: &&Field| !field.text.starts_with(['-', '(', '!', ')', ',']);
    let rest = fields
        .iter()
        .skip(1)
        .skip_while(|field| matches!(field.text.as_str(), "-H" | "-L" | "-P"));
    let roots: Vec<&Field> = rest.take_while(operand).collect();
    match roots.as_slice() {
        [] => ".".to_owned(),
        [only] if only.known().is_some() => only.text.clone(),
        _ => UNKNOWN.to_string(),
    }
}

/// What `xargs` runs: with its input behind, or in the place of a mark.
fn with_input(fields: &[Field], at: usize, inner: &[Field]) -> Vec<Field> {
    if inner.is_empty() {
        return vec![Field::sure("echo"), Field::anything()];
    }
    let options = fields.get(1..at).unwrap_or_default();
    let mark = options.iter().enumerate().find_map(|(index, field)| {
        let stuck = field
            .text
            .strip_prefix("--replace=")
            .or_else(|| field.text.strip_prefix("-I"))?;
        match stuck {
            "" => options.get(index + 1).map(|next| next.text.clone()),
            stuck => Some(stuck.to_owned()),
        }
    });
    match mark {
        Some(mark) => inner
            .iter()
            .map(|field| Field {
                text: field.text.replace(&mark, &UNKNOWN.to_string()),
                literal: field.literal && !field.text.contains(&mark),
                ..field.clone()
            })
            .collect(),
        None => [inner, &[Field::anything()]].concat(),
    }
}

impl Wrapper {
    /// Where the command begins; none when there is none.
    fn command_at(&self, base: &str, fields: &[Field]) -> Result<Option<usize>, Refusal> {
        let unsure = |field: &Field| field.text.starts_with(UNKNOWN) || field.glob || field.splits;
        let mut at = 1;
        while let Some(field) = fields.get(at) {
            if unsure(field) {
                return refuse(format!("a word after `{base}` may be an option"));
            }
            let text = field.text.as_str();
            if text == "-" && base == "env" {
                at += 1;
                continue;
            }
            let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                break;
            };
            at += 1;
            if letters == "-" {
                break;
            }
            match self.takes_next(text, letters) {
                Some(next) => at += usize::from(next),
                None => {
                    return match text {
                        "--help" | "--version" => Ok(None),
                        _ => refuse(format!("`{base} {text}` is not looked through")),
                    };
                }
            }
        }
        while self.assigns
            && let Some(field) = fields.get(at)
            && let Some((name, value)) = field.text.split_once('=')
        {
            let known = Some(value).filter(|value| !value.contains(UNKNOWN));
            if !is_name(name) || field.splits {
                return refuse(format!("`{base}` sets a variable with an unusual name"));
            }
            if let Some(reason) = names::refused(name, known) {
                return refuse(reason);
            }
            at += 1;
        }
        for _ in 0..self.operands {
            if fields.get(at).is_some_and(unsure) {
                return refuse(format!("a word after `{base}` may be an option"));
            }
            at += 1;
        }
        Ok((at < fields.len() || base.ends_with("xargs")).then_some(at))
    }

    /// Whether an option takes the next word; none when it is not known.
    fn takes_next(&self, text: &str, letters: &str) -> Option<bool> {
        if let Some(long) = text.strip_prefix("--") {
            let (name, has_value) = match long.split_once('=') {
                Some((name, _)) => (name, true),
                None => (long, false),
            };
            if listed(self.long_values, name) {
                // GNU takes the value of `--replace` only after `=`.
                return Some(!has_value && name != "replace");
            }
            return (listed(self.long_flags, name) && (!has_value || name == "preserve-env"))
                .then_some(false);
        }
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            if self.values.contains(letter) {
                return Some(rest.as_str().is_empty());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

/// What the shells of a system read differently, or not at all.
fn has_bashisms(text: &str) -> bool {
    let arithmetic = text.replace("$((", "");
    let marks = [
        "$'", "$\"", "[[", "((", "<(", ">(", "&>", "<<<", "function", "coproc", "select",
    ];
    marks.iter().any(|mark| arithmetic.contains(mark))
}
