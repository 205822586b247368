//! What the parts of a pipe hand on: names of files, for `xargs`.

use std::rc::Rc;

use super::state::{Field, State};
use super::syntax::{Command, Kind};
use super::walk::Walker;
use super::{Hands, Namer, Refusal};

/// How deep the commands of the line's own list are: in a script, in a command.
const TOP: usize = 2;

impl Walker {
    /// Whether what is gone through is a command of the line's own list: in no
    /// pipe, loop, function or substitution, and not in the background.
    pub(super) fn is_at_top(&self) -> bool {
        self.depth == TOP && self.outer.is_none()
    }

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

impl Namer {
    /// The same as `xargs` with these options takes it.
    pub(super) fn split_by(self: Rc<Self>, options: &[Field]) -> Rc<Self> {
        match value_of(options, "--delimiter", 'd').as_deref() {
            None | Some("\n" | "\\n" | "\\0") => self,
            Some(_) => self.cut(),
        }
    }

    /// The same where lines are cut or changed on their way.
    fn cut(self: Rc<Self>) -> Rc<Self> {
        let mut cut = Rc::unwrap_or_clone(self);
        cut.hands = Hands::Text;
        Rc::new(cut)
    }
}

/// The command whose names of files a part of a pipe prints: itself, or the one
/// before it, when it only chooses, sorts or cuts lines.
fn names_printed(fields: &[Field], before: Option<Rc<Namer>>) -> Option<Rc<Namer>> {
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
    match before.filter(|_| passes) {
        Some(before) if keeps_lines(program, arguments) => Some(before),
        Some(before) => Some(before.cut()),
        None => Some(Rc::new(Namer {
            words: words.into_iter().map(str::to_owned).collect(),
            hands: Hands::Lines,
        })),
    }
}

/// Whether a filter prints whole lines of its input and nothing else, as far as
/// its options are known.
fn keeps_lines(program: &str, arguments: &[&str]) -> bool {
    let letters = match program {
        "sort" => "urnfVz",
        "uniq" => "udiz",
        "head" | "tail" | "shuf" => "nqz0123456789",
        "grep" | "egrep" | "fgrep" => "viEFPwxz",
        // Its pair of operands was looked at.
        "tr" => return true,
        _ => "",
    };
    let counts = matches!(program, "head" | "tail" | "shuf");
    let patterns = program.ends_with("grep");
    let mut before = "";
    arguments.iter().all(|word| {
        let known = match word.strip_prefix('-') {
            Some(cluster) => cluster.chars().all(|letter| letters.contains(letter)),
            // Any other operand is a file of which it prints the lines.
            None => patterns || (counts && before == "-n"),
        };
        before = word;
        known
    })
}

/// The value of an option of `xargs`: `--arg-file` has the file that it reads
/// instead of its input.
pub(super) fn value_of(options: &[Field], long: &str, letter: char) -> Option<String> {
    options.iter().enumerate().find_map(|(at, field)| {
        let text = field.text.as_str();
        let stuck = match text.strip_prefix(long) {
            Some(value) => value.strip_prefix('=').unwrap_or(value),
            None => text.strip_prefix('-').and_then(|letters| {
                let at = letters.find(|c| "ILnPsdEa".contains(c))?;
                letters.get(at..)?.strip_prefix(letter)
            })?,
        };
        match stuck {
            "" => options.get(at + 1).map(|next| next.text.clone()),
            stuck => Some(stuck.to_owned()),
        }
    })
}
