//! The process's surroundings: environment, terminal, standard streams.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::fs::FileType;

use crate::event::Reason;
use crate::model::Catalog;
use crate::report::{Style, neutral_json, neutral_text};
use crate::run::{self, Environment};
use crate::secret::{Redactor, weakness};
use crate::task::Job;

use super::exit::Exit;
use super::flags::ColorChoice;

/// Any of these says that a CI system reads along; not each sets the first.
const IN_CI: &[&str] = &[
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "TF_BUILD",
    "TEAMCITY_VERSION",
    "JENKINS_URL",
    "BUILDKITE",
];

/// What the process was given to work with, read once.
#[derive(Debug)]
pub(super) struct Console {
    environment: Environment,
    stderr_is_terminal: bool,
    failed: Cell<bool>,
    redactor: RefCell<Redactor>,
    /// What a runner of GitHub was told to hide.
    masked: RefCell<BTreeSet<String>>,
}

impl Console {
    /// Reads the process's environment. Variables that are not UTF-8 are left
    /// out: no setting of ours could be spelled in them.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one reader of the environment"
    )]
    pub(super) fn of_process() -> Self {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let console = Self {
            environment: Environment::new(variables).with_program(std::env::current_exe().ok()),
            stderr_is_terminal: io::stderr().is_terminal(),
            failed: Cell::new(false),
            redactor: RefCell::default(),
            masked: RefCell::default(),
        };
        console.conceal(&[], &Catalog::default());
        console
    }

    /// From now on also conceals the secrets that `jobs` declare, and those of
    /// the user's own providers.
    pub(super) fn conceal(&self, jobs: &[Job], catalog: &Catalog) {
        let secrets = run::known_secrets(jobs, &self.environment, catalog);
        self.mask(&secrets);
        self.redactor.replace(Redactor::new(secrets));
    }

    /// Tells a runner of GitHub, which reads both streams of a step, to hide
    /// what it cannot know: values from files, and parts of variables. Those
    /// that are variables as they are it has masked itself. This is for a
    /// machine, so `--quiet` does not silence it; a file would only be given
    /// the secrets.
    fn mask(&self, secrets: &[String]) {
        if self.environment.value("GITHUB_ACTIONS") != Some("true") || is_file(io::stderr()) {
            return;
        }
        let variables = self.environment.variables();
        let mut masked = self.masked.borrow_mut();
        let mut commands = String::new();
        for secret in secrets {
            if variables
                .values()
                .any(|value| value.trim() == secret.trim())
            {
                continue;
            }
            for line in secret.lines().map(str::trim) {
                if weakness(line).is_none() && masked.insert(line.to_owned()) {
                    let line = line.replace('%', "%25").replace('\r', "%0D");
                    commands.push_str(&format!("::add-mask::{line}\n"));
                }
            }
        }
        let _ = io::stderr().lock().write_all(commands.as_bytes());
    }

    /// Conceals what may not be shown.
    pub(super) fn redactor(&self) -> Redactor {
        self.redactor.borrow().clone()
    }

    /// The environment.
    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The directory in which the command works.
    pub(super) fn directory(&self, wanted: Option<&PathBuf>) -> io::Result<PathBuf> {
        let current = std::env::current_dir()?;
        match wanted {
            Some(path) => current.join(path).canonicalize(),
            None => Ok(current),
        }
    }

    /// Whether a person watches standard error on a terminal that can redraw.
    pub(super) fn is_interactive(&self) -> bool {
        self.stderr_is_terminal && self.environment.value("TERM") != Some("dumb") && !self.in_ci()
    }

    /// The columns of the terminal behind standard error.
    pub(super) fn width(&self) -> Option<u16> {
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
        (self.stderr_is_terminal && size.ws_col > 0).then_some(size.ws_col)
    }

    /// The columns of the terminal that standard output is, if it is one.
    pub(super) fn stdout_width(&self) -> Option<u16> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (io::stdout().is_terminal() && size.ws_col > 0).then_some(size.ws_col)
    }

    /// Whether people or a CI system read standard output as it comes. Both
    /// act on some of what they read; a file or a program does not.
    pub(super) fn stdout_is_watched(&self) -> bool {
        io::stdout().is_terminal() || (self.in_ci() && !is_file(io::stdout()))
    }

    /// How text for people looks on standard error.
    pub(super) fn style(&self, choice: ColorChoice) -> Style {
        let forced = self
            .environment
            .value("CLICOLOR_FORCE")
            .is_some_and(|value| value != "0");
        let color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if self.environment.value("NO_COLOR").is_some() => false,
            ColorChoice::Auto => forced || self.is_interactive(),
        };
        Style {
            color,
            unicode: self.speaks_unicode(),
        }
    }

    fn in_ci(&self) -> bool {
        IN_CI.iter().any(|name| {
            let value = self.environment.value(name);
            value.is_some_and(|value| !matches!(value, "0" | "false"))
        })
    }

    fn speaks_unicode(&self) -> bool {
        ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| self.environment.value(name))
            .is_some_and(|locale| {
                let locale = locale.to_ascii_lowercase();
                locale.contains("utf-8") || locale.contains("utf8")
            })
    }

    /// Prints to standard output. A reader that went away is no failure.
    pub(super) fn print(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        let written = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.failed.set(true);
            self.complain(&format!(
                "agent: cannot write to standard output: {error}\n"
            ));
        }
    }

    /// Prints text for people to standard output, without secrets; what of it
    /// could act on a terminal or a CI log is taken out when one is there.
    pub(super) fn print_text(&self, text: &str) {
        let shown = match self.stdout_is_watched() {
            true => Cow::Owned(neutral_text(text)),
            false => Cow::Borrowed(text),
        };
        self.print(&self.redactor().redact(&shown));
    }

    /// The same for JSON, whose meaning is kept.
    pub(super) fn print_json(&self, text: &str) {
        match self.stdout_is_watched() {
            true => self.print(&neutral_json(text)),
            false => self.print(text),
        }
    }

    /// Prints to standard error, without what could act on a terminal or a CI
    /// log; when it is closed, nobody can be told.
    pub(super) fn complain(&self, text: &str) {
        self.complain_painted(&neutral_text(text));
    }

    /// The same for text that has its own colours and is harmless otherwise.
    pub(super) fn complain_painted(&self, text: &str) {
        let text = self.redactor.borrow().redact(text).into_owned();
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Whether standard output could not be written.
    pub(super) fn failed(&self) -> bool {
        self.failed.get()
    }

    /// Prints help, the version or a usage error where it belongs.
    pub(super) fn usage(&self, error: &clap::Error) -> Exit {
        let text = error.render().to_string();
        if error.use_stderr() {
            self.complain(&text);
            Exit::Reason(Reason::Usage)
        } else {
            self.print(&text);
            Exit::Done
        }
    }
}

fn is_file(stream: impl AsFd) -> bool {
    rustix::fs::fstat(stream).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file())
}
