//! Virtual environments: a program that is a link to the system's, and the
//! activation of one.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use agent::access::Access;
use agent::policy::{Decision, Enforcement, Permissions, Policy, Rule, Surroundings};

/// What an interpreter makes activations of.
const TEMPLATE: &str = "# This file must be used with \"source bin/activate\"\n\
deactivate () {\n    unset VIRTUAL_ENV\n}\n\
VIRTUAL_ENV=__VENV_DIR__\nexport VIRTUAL_ENV\n\
PATH=\"$VIRTUAL_ENV/\"__VENV_BIN_NAME__\":$PATH\"\nexport PATH\n\
PS1=__VENV_PROMPT__\"${PS1:-}\"\n";

/// A workspace with a virtual environment, beside the interpreter that it links to.
struct Fixture {
    root: tempfile::TempDir,
    enforcement: Enforcement,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self {
            root: tempfile::tempdir().unwrap(),
            enforcement: Enforcement::Enforced,
        };
        for directory in ["work/.venv/bin", "work/sub", "python/bin"] {
            fs::create_dir_all(fixture.path(directory)).unwrap();
        }
        let templates = "python/lib/python3.11/venv/scripts/common";
        fs::create_dir_all(fixture.path(templates)).unwrap();
        fixture.write(&format!("{templates}/activate"), TEMPLATE);
        for program in ["python3.11", "env", "rm"] {
            fixture.write(&format!("python/bin/{program}"), "");
        }
        let bin = fixture.path("work/.venv/bin");
        symlink(fixture.path("python/bin/python3.11"), bin.join("python3")).unwrap();
        symlink("python3", bin.join("python")).unwrap();
        fixture.write("work/.venv/bin/pytest", "#!python\n");
        fixture.write("work/.venv/bin/activate", &fixture.script());
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The activation as the interpreter makes it.
    fn script(&self) -> String {
        let environment = self.path("work/.venv").display().to_string();
        TEMPLATE
            .replace("__VENV_DIR__", &environment)
            .replace("__VENV_BIN_NAME__", "bin")
            .replace("__VENV_PROMPT__", "'(.venv) '")
    }

    fn decide(&self, allow: &[&str], command: &str) -> Decision {
        let rule = |text: &&str| Rule::parse(text, "rules").unwrap();
        let permissions = Permissions {
            allow: allow.iter().map(rule).collect(),
            ..Permissions::default()
        };
        let surroundings = Surroundings {
            workspace: self.path("work"),
            home: Some(Path::new("/home/somebody").to_owned()),
            sandbox: self.enforcement,
            ..Surroundings::default()
        };
        let policy = Policy::new(permissions, surroundings);
        policy.decide("bash", &[Access::Exec(command.to_owned())])
    }

    fn allows(&self, allow: &[&str], commands: &[&str]) {
        for command in commands {
            let decision = self.decide(allow, command);
            assert!(decision.is_allowed(), "{command}: {}", decision.reason);
        }
    }

    fn denies(&self, allow: &[&str], commands: &[&str]) {
        for command in commands {
            let decision = self.decide(allow, command);
            assert!(!decision.is_allowed(), "{command}: {}", decision.reason);
        }
    }
}

#[test]
fn a_python_of_the_workspace_that_links_to_the_system_is_that_python() {
    let fixture = Fixture::new();
    let rules = [
        "Bash(.venv/bin/python -m pytest:*)",
        "Bash(.venv/bin/python3 sub/x.py:*)",
    ];
    fixture.allows(
        &rules,
        &[
            ".venv/bin/python -m pytest",
            ".venv/bin/python -m pytest -q sub",
            "timeout 60 .venv/bin/python -m pytest 2>&1 | tail -5",
            ".venv/bin/python3 sub/x.py --all",
        ],
    );
    fixture.denies(
        &rules,
        &[
            ".venv/bin/python -m pytest -p evil",
            ".venv/bin/python -m pytest /etc",
            ".venv/bin/python -m timeit x",
            ".venv/bin/python -c x",
            ".venv/bin/python3 -m pytest",
            "python -m pytest",
            "sub/../.venv/bin/../../../python/bin/python3.11 -m pytest",
        ],
    );
}

#[test]
fn a_link_is_held_to_what_is_known_of_the_program_that_it_leads_to() {
    let fixture = Fixture::new();
    let links = [("tool", "python/bin/env"), ("remove", "python/bin/rm")];
    for (name, program) in links {
        symlink(fixture.path(program), fixture.path("work").join(name)).unwrap();
    }
    fixture.allows(&["Bash(./remove:*)"], &["./remove sub/x"]);
    fixture.denies(
        &["Bash(./tool:*)", "Bash(./remove:*)"],
        &[
            "./tool sh -c id",
            "./tool",
            "./remove -rf /",
            "./remove -rf .",
        ],
    );
}

#[test]
fn a_link_to_what_commands_can_write_is_not_followed_outside() {
    let mut fixture = Fixture::new();
    fixture.enforcement = Enforcement::NotEnforced;
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(fixture.path("python/bin/python3.11"), everybody).unwrap();
    fixture.denies(
        &["Bash(.venv/bin/python -m pytest:*)"],
        &[".venv/bin/python -m pytest"],
    );
}

#[test]
fn an_environment_is_activated_beside_an_allowed_command() {
    let fixture = Fixture::new();
    let rules = [
        "Bash(pytest:*)",
        "Bash(python -m pytest:*)",
        "Bash(git status:*)",
        "Bash(cp:*)",
    ];
    fixture.allows(
        &rules,
        &[
            "source .venv/bin/activate && pytest",
            ". .venv/bin/activate && pytest -q 2>&1 | tail -5",
            "source ./.venv/bin/activate; python -m pytest; echo \"exit: $?\"",
            "source .venv/bin/activate\npytest",
            "source .venv/bin/activate && git status && pytest",
            "pwd && source .venv/bin/activate && pytest",
        ],
    );
    let absolute = format!(
        "source {}/.venv/bin/activate && pytest",
        fixture.path("work").display()
    );
    fixture.allows(&rules, &[&absolute]);
    fixture.denies(
        &rules,
        &[
            "source .venv/bin/activate",
            "source .venv/bin/activate x && pytest",
            "source sub/activate && pytest",
            "source .venv/bin/activate && id",
            "source .venv/bin/activate | pytest",
            "source .venv/bin/activate & pytest",
            "while pytest; do source .venv/bin/activate; done",
            "f() { source .venv/bin/activate; }; f; pytest",
            "pytest && source .venv/bin/activate && pytest",
            "pytest > .venv/bin/activate; source .venv/bin/activate; pytest",
            "source .venv/bin/activate; pytest; source .venv/bin/activate",
            "source .venv/bin/activate; cp x .venv/bin/activate; source .venv/bin/activate; pytest",
        ],
    );
}

#[test]
fn a_script_that_was_changed_is_not_an_activation() {
    let fixture = Fixture::new();
    let script = fixture.script();
    let changed = [
        format!("{script}id\n"),
        script.replace("export PATH", "export PATH; id"),
        script.replace("unset VIRTUAL_ENV", "id"),
        script.replace("bin\":$PATH\"", "../sub\":$PATH\""),
        script.replace("/.venv\n", "/sub\n"),
        script.replace("/.venv\n", "/.venv id\n"),
        script.replace("'(.venv) '", "'$(id)'"),
        script.replace("'(.venv) '", "x id "),
        script.replace("'(.venv) '", "''id' '"),
        String::new(),
    ];
    for text in changed {
        assert_ne!(text, script);
        fixture.write("work/.venv/bin/activate", &text);
        fixture.denies(
            &["Bash(pytest:*)"],
            &["source .venv/bin/activate && pytest"],
        );
    }
    fixture.write("work/.venv/bin/activate", &script);
    fixture.allows(
        &["Bash(pytest:*)"],
        &["source .venv/bin/activate && pytest"],
    );
    // What the interpreter makes has to be out of the reach of commands.
    fs::rename(fixture.path("python"), fixture.path("work/python")).unwrap();
    let link = fixture.path("work/.venv/bin/python3");
    fs::remove_file(&link).unwrap();
    symlink(fixture.path("work/python/bin/python3.11"), link).unwrap();
    fixture.denies(
        &["Bash(pytest:*)"],
        &["source .venv/bin/activate && pytest"],
    );
}

#[test]
fn programs_of_an_activated_environment_need_a_rule_by_their_path() {
    let fixture = Fixture::new();
    for program in ["git", "tail", "ruff"] {
        fixture.write(&format!("work/.venv/bin/{program}"), "");
    }
    let rules = [
        "Bash(pytest:*)",
        "Bash(git status:*)",
        "Bash(ruff:*)",
        "Bash(cp:*)",
        "Bash(hg status:*)",
        "Bash(.venv/bin/ruff:*)",
    ];
    fixture.denies(
        &rules,
        &[
            "source .venv/bin/activate && git status && pytest",
            "source .venv/bin/activate && ruff . && pytest",
            "source .venv/bin/activate && pytest | tail -5",
            "source .venv/bin/activate && cp sub/x .venv/bin/hg && hg status",
            "source .venv/bin/activate && timeout 5 git status && pytest",
        ],
    );
    fixture.allows(
        &rules,
        &[
            "source .venv/bin/activate && .venv/bin/ruff . && pytest",
            "source .venv/bin/activate && hg status && pytest",
        ],
    );
}
