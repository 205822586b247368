//! `source .venv/bin/activate && pytest`: the activation of a virtual environment
//! needs no rule beside an allowed command.
//!
//! The script lies in the workspace, where a command may have written it, and it
//! puts a directory of the workspace before all others where programs are looked
//! for. So two things are checked. The script has to be, line by line, what the
//! `venv` module of the interpreter makes that the environment links to: of a file
//! that commands cannot change, with nothing but plain values put in. And what the
//! line runs by its bare name must not come out of that directory, unless it is
//! the interpreter itself or a test runner, which loads the code of the workspace
//! wherever it lies: else a rule for `git status` would run `.venv/bin/git`.

use std::fs;
use std::path::{Path, PathBuf};

use super::Policy;
use super::assignment::loads_workspace;
use super::bash::base_name;
use super::exec::Exec;
use super::guard;
use super::scope::normal;
use super::shell::{Opening, Refusal};
use super::table::listed;

/// Test runners that an environment has as programs of its own.
const RUNNERS: &str = "py.test, pytest";

/// Builtins of bash that need a rule, and are looked for nowhere.
const BUILTINS: &str = "echo, printf";

/// A longer script is not looked at, in bytes.
const SCRIPT_BYTES_MAX: u64 = 64 * 1024;

impl Policy {
    /// Lets a line that activates a virtual environment of the workspace do so,
    /// and refuses what would then come out of it.
    pub(super) fn activated(&self, commands: &mut [Exec], openings: &[Opening]) {
        let Some(at) = commands.iter().position(sources) else {
            return;
        };
        let (before, rest) = commands.split_at_mut(at);
        let Some((exec, after)) = rest.split_first_mut() else {
            return;
        };
        // What was written before may be the script.
        let unchanged = before.iter().all(|exec| exec.reads_only) && !after.iter().any(sources);
        let Some(environment) = self.environment_of(exec).filter(|_| unchanged) else {
            return;
        };
        if self.may_write_below(openings, &environment) {
            return;
        }
        exec.companion = true;
        let mut wrote = false;
        for exec in before.iter_mut().chain(after) {
            let found = programs(exec).find(|name| !self.is_fit(exec, name, &environment, wrote));
            wrote |= !exec.reads_only && !runs_workspace(exec);
            if let Some(name) = found {
                let reason = format!(
                    "`{name}` may be a program of the virtual environment, which commands can \
                     write; name it by its path in a rule"
                );
                exec.command.free = false;
                exec.companion = false;
                exec.command.words = Err(Refusal { reason });
            }
        }
    }

    /// Whether a program may be run by its bare name once the environment comes
    /// first. `wrote` says that a command before it may have made a program there.
    fn is_fit(&self, exec: &Exec, name: &str, environment: &Path, wrote: bool) -> bool {
        let program = environment.join("bin").join(name);
        if program.symlink_metadata().is_err() {
            return !wrote;
        }
        let linked = program.canonicalize().is_ok_and(|real| {
            let mut words = exec.command.words.as_deref().unwrap_or_default().to_vec();
            let name = real
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            if let (Some(program), Some(name)) = (words.first_mut(), name) {
                *program = name;
            }
            self.is_out_of_reach(&real) && guard::check(&words, exec.spelled).is_ok()
        });
        let runner = runs_workspace(exec) && exec.program() == name;
        (runner && listed(RUNNERS, name)) || (linked && !wrote)
    }

    /// The virtual environment that a command activates, when its script is as it
    /// was made.
    fn environment_of(&self, exec: &Exec) -> Option<PathBuf> {
        let (Ok([_, script]), [directory]) = (
            exec.command.words.as_deref(),
            exec.command.directories.as_slice(),
        ) else {
            return None;
        };
        let named = normal(&directory.join(script));
        let script = self.scope.locate(&named).ok()?.real;
        if !exec.command.once || !self.scope.contains(&script) || !script.ends_with("bin/activate")
        {
            return None;
        }
        let environment = script.parent()?.parent()?.to_owned();
        let places = [environment.as_path(), named.parent()?.parent()?];
        let template = self.template(&environment)?;
        let made = is_made_of(&read(&template)?, &read(&script)?, &places);
        made.then_some(environment)
    }

    /// The script that the interpreter of an environment makes activations of.
    fn template(&self, environment: &Path) -> Option<PathBuf> {
        let interpreter = environment.join("bin/python").canonicalize().ok()?;
        let version = interpreter.file_name()?.to_str()?;
        let known = version.starts_with("python3.") && self.is_out_of_reach(&interpreter);
        let library = interpreter.parent()?.parent()?.join("lib").join(version);
        let template = library.join("venv/scripts/common/activate");
        let template = template.canonicalize().ok().filter(|_| known)?;
        self.is_out_of_reach(&template).then_some(template)
    }

    /// Whether a redirection may write in a directory.
    fn may_write_below(&self, openings: &[Opening], directory: &Path) -> bool {
        let mut written = openings.iter().filter(|opening| opening.writes);
        written.any(|opening| match self.opened(opening) {
            Ok(paths) => paths.iter().any(|(path, place)| {
                let real = place.as_ref().map(|place| place.real.as_path());
                path.starts_with(directory) || real.is_ok_and(|real| real.starts_with(directory))
            }),
            Err(_) => true,
        })
    }
}

/// Whether a command loads the code of the workspace, wherever its program lies.
fn runs_workspace(exec: &Exec) -> bool {
    let words = exec.command.words.as_deref().unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    loads_workspace(&words)
}

/// Whether a command runs a script in this shell.
fn sources(exec: &Exec) -> bool {
    matches!(exec.program(), "." | "source")
}

/// The programs that a command starts by their bare names: itself, and those that
/// run it.
fn programs(exec: &Exec) -> impl Iterator<Item = String> + use<> {
    let own = exec.command.words.as_deref().unwrap_or_default();
    let outers = exec.command.outers();
    let outers = outers.iter().map(|(words, _)| *words);
    let all = outers.chain((!exec.command.free).then_some(own));
    let names: Vec<String> = all
        .filter_map(|words| words.first())
        .filter(|word| base_name(word) == word.as_str() && !listed(BUILTINS, word))
        .cloned()
        .collect();
    names.into_iter()
}

/// The text of a file that is not too long.
fn read(file: &Path) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let fits = metadata.is_file() && metadata.len() <= SCRIPT_BYTES_MAX;
    fs::read_to_string(file).ok().filter(|_| fits)
}

/// Whether a script is a template in which plain values stand for the
/// placeholders.
fn is_made_of(template: &str, script: &str, environment: &[&Path]) -> bool {
    let (template, script): (Vec<&str>, Vec<&str>) =
        (template.lines().collect(), script.lines().collect());
    template.len() == script.len()
        && template
            .iter()
            .zip(script)
            .all(|(line, made)| is_line_made_of(line, made, environment))
}

fn is_line_made_of(line: &str, made: &str, environment: &[&Path]) -> bool {
    const PLACEHOLDERS: [&str; 3] = ["__VENV_DIR__", "__VENV_PROMPT__", "__VENV_BIN_NAME__"];
    let found = PLACEHOLDERS
        .iter()
        .find_map(|name| Some((*name, line.split_once(name)?)));
    let Some((name, (before, behind))) = found else {
        return line == made;
    };
    let rest = made.strip_prefix(before);
    let Some(value) = rest.and_then(|rest| rest.strip_suffix(behind)) else {
        return false;
    };
    let unquoted = value
        .strip_prefix('\'')
        .and_then(|value| value.strip_suffix('\''));
    let quoted = unquoted.is_some() || before.matches('"').count() % 2 == 1;
    let value = unquoted.unwrap_or(value);
    let marks = if quoted { "_-./+@ ()" } else { "_-./+@" };
    let plain = value
        .chars()
        .all(|c| c.is_alphanumeric() || marks.contains(c));
    plain
        && match name {
            "__VENV_DIR__" => environment.iter().any(|place| place.as_os_str() == value),
            "__VENV_BIN_NAME__" => value == "bin",
            _ => !value.is_empty(),
        }
}
