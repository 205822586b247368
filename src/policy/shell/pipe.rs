//! What the parts of a pipe hand on: names of files, for `xargs`.

use std::rc::Rc;

use super::Refusal;
use super::state::{Field, State};
use super::syntax::{Command, Kind};
use super::walk::Walker;

impl Walker {
    /// The parts of a pipe, each in a shell of its own.
    pub(super) fn parts(&mut self, commands: &[Command], state: &State) -> Result<(), Refusal> {
        let mut names = state.names.clone();
        for (at, command) in commands.iter().enumerate() {
            let mut part = state.clone();
            part.fed |= at > 0;
            part.names.clone_from(&names);
            self.last = None;
            self.command(command, &mut part)?;
            let last = self.last.as_deref().unwrap_or_default();
            let simple = matches!(command.kind, Kind::Simple { .. });
            names = names_printed(last, names).filter(|_| simple);
        }
        Ok(())
    }
}

/// The command whose names of files a part of a pipe prints: itself, or the one
/// before it, when it only chooses or sorts lines.
fn names_printed(fields: &[Field], before: Option<Rc<Vec<String>>>) -> Option<Rc<Vec<String>>> {
    let words: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
    let [program, arguments @ ..] = words.as_slice() else {
        return None;
    };
    let operands = arguments.iter().filter(|word| !word.starts_with('-'));
    let passes = match *program {
        "sort" | "uniq" | "head" | "tail" | "tac" | "shuf" => operands
            .clone()
            .all(|word| word.bytes().all(|byte| byte.is_ascii_digit())),
        "grep" | "egrep" | "fgrep" => {
            let other =
                |word: &&str| word.starts_with('-') && word.contains(['r', 'R', 'f', 'd', 'e']);
            operands.clone().count() == 1 && !arguments.iter().any(other)
        }
        "tr" => matches!(arguments, ["\\n", "\\0"]),
        _ => false,
    };
    if passes && before.is_some() {
        return before;
    }
    Some(Rc::new(words.into_iter().map(str::to_owned).collect()))
}
