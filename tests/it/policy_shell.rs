//! Decisions about command lines, in a table: `tests/fixtures/policy/shell.txt`.

use std::fs;
use std::path::{Path, PathBuf};

use agent::access::Access;
use agent::policy::{
    Decision, Enforcement, Mode, Permissions, Policy, Rule, Surroundings, Verdict, simple_commands,
};
use proptest::prelude::*;

/// What the rows expect to find in the workspace.
fn workspace() -> tempfile::TempDir {
    let workspace = tempfile::tempdir().expect("a directory");
    for directory in ["src", "sub", "secret", "locked"] {
        fs::create_dir(workspace.path().join(directory)).expect(directory);
    }
    for file in [
        "a",
        "f",
        "x",
        "list",
        "src/a.rs",
        "src/b.rs",
        "sub/p.json",
        "secret/k",
        "x.tmp",
        "y.tmp",
    ] {
        fs::write(workspace.path().join(file), "x\n").expect(file);
    }
    workspace
}

fn rules(texts: &[String]) -> Vec<Rule> {
    let rule = |text: &String| Rule::parse(text, "rules").unwrap_or_else(|error| panic!("{error}"));
    texts.iter().map(rule).collect()
}

fn decide(
    workspace: &Path,
    mode: Mode,
    allow: &[String],
    deny: &[String],
    command: &str,
) -> Decision {
    let permissions = Permissions {
        mode,
        allow: rules(allow),
        deny: rules(deny),
        ..Permissions::default()
    };
    let surroundings = Surroundings {
        workspace: workspace.to_owned(),
        home: Some(PathBuf::from("/home/somebody")),
        protected: Vec::new(),
        sandbox: Enforcement::Enforced,
        ..Surroundings::default()
    };
    Policy::new(permissions, surroundings).decide("bash", &[Access::Exec(command.to_owned())])
}

/// The rules of a line like `allow: ls:* ; Read(x)`.
fn named(line: &str) -> Vec<String> {
    let texts = line
        .split(" ; ")
        .map(str::trim)
        .filter(|text| !text.is_empty());
    texts
        .map(|text| match text {
            "Bash" | "Read" | "Edit" => text.to_owned(),
            _ if text.starts_with("Read(") || text.starts_with("Edit(") => text.to_owned(),
            _ => format!("Bash({text})"),
        })
        .collect()
}

#[test]
fn every_row_of_the_table_is_decided_as_it_says() {
    let table = fs::read_to_string("tests/fixtures/policy/shell.txt").expect("the table");
    let workspace = workspace();
    let (mut allow, mut deny) = (Vec::new(), Vec::new());
    let mut wrong = Vec::new();
    let mut rows = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(texts) = line.strip_prefix("allow:") {
            (allow, deny) = (named(texts), Vec::new());
            continue;
        }
        if let Some(texts) = line.strip_prefix("deny:") {
            deny = named(texts);
            continue;
        }
        let Some((sign, command)) = line.split_once(' ') else {
            assert!(line.is_empty(), "{line:?} is no row");
            continue;
        };
        let command = command.replace('␤', "\n").replace('␍', "\r");
        let expected = if sign == "+" {
            Verdict::Allow
        } else {
            Verdict::Deny
        };
        let decision = decide(workspace.path(), Mode::ReadOnly, &allow, &deny, &command);
        rows += 1;
        if decision.verdict != expected {
            wrong.push(format!(
                "{sign} {command:?} with {allow:?} and not {deny:?}: {}",
                decision.reason
            ));
        }
    }
    assert!(rows > 400, "{rows} rows");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_write_by_redirection_is_what_the_mode_says() {
    let workspace = workspace();
    let allow = vec!["Bash(echo:*)".to_owned()];
    let cases = [
        ("echo x > new", Mode::ReadOnly, Verdict::Deny),
        ("echo x > new", Mode::AcceptEdits, Verdict::Allow),
        (
            "cd sub && echo x > ../new",
            Mode::AcceptEdits,
            Verdict::Allow,
        ),
        (
            "cd sub && echo x > ../../new",
            Mode::AcceptEdits,
            Verdict::Deny,
        ),
        ("cd sub; echo x > ../new", Mode::AcceptEdits, Verdict::Deny),
        ("echo x > .git/config", Mode::AcceptEdits, Verdict::Deny),
        ("echo x > \"$v\"", Mode::AcceptEdits, Verdict::Deny),
        (
            "for v in a b; do echo x > \"$v\"; done",
            Mode::AcceptEdits,
            Verdict::Allow,
        ),
        (
            "for v in a ../b; do echo x > \"$v\"; done",
            Mode::AcceptEdits,
            Verdict::Deny,
        ),
    ];
    for (command, mode, expected) in cases {
        let decision = decide(workspace.path(), mode, &allow, &[], command);
        assert_eq!(decision.verdict, expected, "{command}: {}", decision.reason);
    }
}

#[test]
fn an_exact_rule_covers_precisely_its_string() {
    let workspace = workspace();
    let text = "x=ls; eval \"$x\" > out | sh";
    let allow = vec![format!("Bash({text})")];
    for (command, expected) in [
        (text.to_owned(), Verdict::Allow),
        (format!(" {text}\n"), Verdict::Allow),
        (format!("{text}; ls"), Verdict::Deny),
        (text.replace("out", "outer"), Verdict::Deny),
    ] {
        let decision = decide(workspace.path(), Mode::ReadOnly, &allow, &[], &command);
        assert_eq!(decision.verdict, expected, "{command}: {}", decision.reason);
    }
    let outer = vec!["Bash(bash -c 'rm x')".to_owned(), "Bash(ls:*)".to_owned()];
    let decision = decide(
        workspace.path(),
        Mode::ReadOnly,
        &outer,
        &[],
        "ls && bash -c 'rm x'",
    );
    assert_eq!(decision.verdict, Verdict::Allow, "{}", decision.reason);
    let decision = decide(workspace.path(), Mode::ReadOnly, &outer, &[], "ls && rm x");
    assert_eq!(decision.verdict, Verdict::Deny, "{}", decision.reason);
}

#[test]
fn names_that_globs_stand_for_are_judged_as_they_are() {
    let workspace = workspace();
    let check = |command: &str, rule: &str, expected: Verdict| {
        let decision = decide(
            workspace.path(),
            Mode::AcceptEdits,
            &[rule.to_owned()],
            &[],
            command,
        );
        assert_eq!(decision.verdict, expected, "{command}: {}", decision.reason);
    };
    check("sort *", "Bash(sort:*)", Verdict::Allow);
    check(
        "for f in *; do sort \"$f\"; done",
        "Bash(sort:*)",
        Verdict::Allow,
    );
    fs::write(workspace.path().join("--output=a"), "").expect("a file");
    check("sort *", "Bash(sort:*)", Verdict::Deny);
    check(
        "for f in *; do sort \"$f\"; done",
        "Bash(sort:*)",
        Verdict::Deny,
    );
    check("sort ./*", "Bash(sort:*)", Verdict::Allow);
    fs::write(workspace.path().join("q --output=a"), "").expect("a file");
    check(
        "for f in q*; do sort \"$f\"; done",
        "Bash(sort:*)",
        Verdict::Allow,
    );
    check(
        "for f in q*; do sort $f; done",
        "Bash(sort:*)",
        Verdict::Deny,
    );
    std::os::unix::fs::symlink("/etc/hostname", workspace.path().join("zlink")).expect("a link");
    check("rm z*", "Bash(rm:*)", Verdict::Deny);
}

#[test]
fn long_and_deep_lines_are_read_or_refused() {
    let repeated = [
        "(",
        "$(",
        "`",
        "{ ",
        "if ",
        "<<a ",
        "\"",
        "${x:-",
        "a && ",
        "((",
        "[[ ",
        "a|",
        "! ",
        "x=(",
        "case x in ",
        "<(",
        "a;",
        "a=1 ",
        "a\n",
        "$((1+",
        "f() { ",
        "{a,b}",
        "for i in 1 2 3; do ",
        "eval 'a' ",
        "x=$x$x; ",
        "cat <<E\n$(a)\nE\n",
    ];
    for piece in repeated {
        for count in [50, 400, 60_000 / piece.len()] {
            let line = piece.repeat(count);
            if let Ok(commands) = simple_commands(&line) {
                assert!(
                    line.len() <= 64 * 1024 && commands.len() < 30_000,
                    "{piece}"
                );
            }
        }
    }
    let closed = format!("{}ls{}", "$(".repeat(1000), ")".repeat(1000));
    assert!(simple_commands(&closed).is_err());
    let growing = format!("x=a; {} ls", "x=$x$x;".repeat(60));
    assert!(
        simple_commands(&growing).is_err(),
        "a value grows without bound"
    );
    let loops = format!(
        "{} ls; {}",
        "for i in 1 2 3 4 5 6 7 8 9; do ".repeat(12),
        "done; ".repeat(12)
    );
    assert!(simple_commands(&loops).is_err(), "loops in loops");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_is_read_or_refused(line in any::<String>()) {
        let _ = simple_commands(&line);
    }

    #[test]
    fn marks_are_read_or_refused(
        line in "([a-c \\t\\n'\";&|<>()$`*?\\[\\]{}~#!=\\\\ü0-2-]|if |then |fi|do |done|case |in |esac|<<E|\\nE\\n|\\$\\(|\\$\\{|\\(\\(|\\)\\)|for |f\\(\\) ){0,40}",
    ) {
        let _ = simple_commands(&line);
    }

    /// Whatever stands around it, a command that is there is found, or the
    /// line is refused.
    #[test]
    fn a_command_cannot_be_hidden(
        before in "([a-c ;&|(){}\\n]|\\$\\(|if |then |do |: ){0,8}",
        after in "([a-c ;&|()'\"$`{}\\n]|; fi|; done|\\nE\\n|#){0,8}",
    ) {
        let line = format!("{before}\nhidden it\n{after}");
        let bare = format!("{before}\n\n{after}");
        if let (Ok(with), Ok(without)) = (simple_commands(&line), simple_commands(&bare)) {
            let found = with.iter().any(|words| words.iter().any(|word| word.contains("hidden")));
            prop_assert!(found || before.contains("(("), "{line:?} has {without:?}");
        }
    }
}
