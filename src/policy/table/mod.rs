//! The argument table: what a prefix rule covers of each program, and why not
//! more. Whoever reviews what a rule may let through reads these files, a
//! family of programs each.
//!
//! A rule for a program covers its arguments as data. A row names the arguments
//! by which the program runs another one, loads code or configuration, or
//! writes where nobody would look for it. Lists are separated by `, `. The
//! first row with the program's name counts; `program subcommand` before
//! `program`. What no row names is held to [`OTHER`].

mod build;
mod languages;
mod network;
mod packages;
mod search;
mod system;
mod text;
mod vcs;

use super::guard::Reach;

/// Whether a list of a table has an item.
pub(crate) fn listed(list: &str, item: &str) -> bool {
    !item.is_empty() && list.split(", ").any(|listed| listed == item)
}

/// What a prefix rule for a program covers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Covers {
    /// Nothing: only exact rules allow the program.
    Nothing,
    /// Arguments of a script that the rule names (or of a module, after `-m`).
    NamedScript,
    /// A program that the rule names next, judged by its own row.
    Wrapped,
    /// Arguments of a subcommand that the rule names; these need no naming.
    Subcommands(&'static str),
    /// Arguments.
    Arguments,
}

/// A check that no list can express: the words, and how many the rule names.
type Check = fn(&[String], usize) -> Result<(), String>;

/// What is known of some programs.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Names without path and version, or `program subcommand`.
    pub(crate) programs: &'static str,
    /// Why it is here; follows a refused form.
    pub(crate) why: &'static str,
    pub(crate) covers: Covers,
    /// Refused long options.
    pub(crate) long: &'static str,
    /// Options of its own with which a refused one begins.
    pub(crate) plain_long: &'static str,
    /// Letters of refused short options.
    pub(crate) short: &'static str,
    /// Letters of short options that take a value.
    pub(crate) with_value: &'static str,
    /// Refused words.
    pub(crate) words: &'static str,
    /// What it touches.
    pub(crate) reach: Reach,
    /// Options by which a program that only reads writes what it is given:
    /// letters and long names.
    pub(crate) writes: &'static str,
    pub(crate) check: Option<Check>,
    /// Whether options by which programs usually load or run something are
    /// refused by their names, as nothing is known of this one.
    pub(crate) by_name: bool,
    /// Whether words after `--` are operands, or for what the workspace runs.
    pub(crate) operands_after_dashes: bool,
}

/// A program of which nothing is refused.
pub(crate) const BASE: Guard = Guard {
    programs: "",
    why: "",
    covers: Covers::Arguments,
    long: "",
    plain_long: "",
    short: "",
    with_value: "",
    words: "",
    reach: Reach::Workspace,
    writes: "",
    check: None,
    by_name: false,
    operands_after_dashes: false,
};

/// A program that only reads.
const READER: Guard = Guard {
    reach: Reach::Read,
    ..BASE
};

/// A program that only exact rules allow.
const CLOSED: Guard = Guard {
    covers: Covers::Nothing,
    ..BASE
};

/// Every program that is not in the table.
pub(crate) const OTHER: Guard = Guard {
    why: "such options usually run programs or load code or configuration",
    long: "command, config, editor, eval, exec, exec-batch, init-file, load, loader, pager, \
           plugin, plugin-dir, plugins, preload, rcfile, require, shell",
    by_name: true,
    ..BASE
};

/// The rows of all families.
pub(crate) fn rows() -> impl Iterator<Item = &'static Guard> {
    [
        vcs::GIT,
        vcs::OTHERS,
        system::ROWS,
        text::ROWS,
        search::ROWS,
        languages::ROWS,
        build::ROWS,
        packages::ROWS,
        network::ROWS,
    ]
    .into_iter()
    .flatten()
}
