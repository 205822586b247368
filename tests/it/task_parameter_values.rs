//! Values of parameters that would do more than to stand for themselves: in rules,
//! and as names of files.

use crate::task_case::Case;
use crate::task_parameters::one;

/// A task with a parameter in a rule.
fn ruled(rule: &str) -> Case {
    Case::new(format!(
        "version: 1\nparameters: [{{key: p, required: false}}]\nprompt: x\n\
         permissions: {{allow: ['{rule}']}}\n"
    ))
}

#[test]
fn no_value_changes_what_a_rule_means() {
    for value in [
        "*",
        "**",
        "a*",
        "a?",
        "[a]",
        "{a,b}",
        "a,b",
        "a)",
        "(a",
        "a) Bash(b",
        "a:*",
        "a:",
        "\"",
        "'",
        "a;b",
        "a&b",
        "a|b",
        "$a",
        "`a`",
        "a\nb",
        "a b",
        "a\tb",
        "\\a",
        "<a",
        ">a",
        "#",
        "",
        "..",
        "../a",
        "a/../../b",
        ".",
        "/etc",
        "~/.ssh",
        "-rf",
        "=x",
        "a\u{200b}b",
        "a\u{1b}b",
    ] {
        for rule in [
            "Edit({{ p }}/**)",
            "Bash(make {{ p }}:*)",
            "Read(docs/{{ p | upper }})",
        ] {
            let case = ruled(rule).param("p", value);
            let lines = case.lines();
            let expected = format!(
                "task.yaml:4:{}: bad_parameter: the value of `p` cannot be used in a rule, because it ",
                "permissions: {allow: ['".len() + rule.find(" p ").unwrap() + 2
            );
            assert!(lines[0].starts_with(&expected), "{value:?}: {lines:?}");
            assert_eq!(case.problems().kind, agent::task::Kind::BadTask);
        }
        // Where no rule is, it is a text.
        let job = one("default: x").param("p", value).job();
        assert_eq!(job.prompt, format!("<{value}>"));
    }
    // A value that is not given is an empty one.
    assert!(ruled("Edit({{ p }}/**)").lines()[0].contains("because it is empty"));
    let listed = "version: 1\nparameters: [{key: p}]\nprompt: x\n\
                  permissions: {deny: [{rule: 'Read({{ p }})'}]}\n";
    assert!(Case::new(listed).param("p", "*").lines()[0].contains("because it has `*`"));
}

#[test]
fn plain_values_are_used_in_rules() {
    for value in [
        "serde",
        "my-crate_2",
        "docs/guide",
        "v1.2.3",
        "app:1.2",
        "a@b",
        "größe",
        "a+b",
    ] {
        let job = ruled("Edit(out/{{ p }}/**)").param("p", value).job();
        let rule = job.permissions.allow[0].text().to_owned();
        assert_eq!(rule, format!("Edit(out/{value}/**)"));
    }
}

#[test]
fn a_file_is_read_below_the_workspace_or_the_task_only() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    std::fs::write(&secret, "canary").unwrap();
    let case = || {
        let case = one("type: file")
            .file("ws/in.txt", "in")
            .file("issue.txt", "task");
        std::os::unix::fs::symlink(&secret, case.path().join("ws/link.txt")).unwrap();
        std::os::unix::fs::symlink(outside.path(), case.path().join("ws/dir")).unwrap();
        std::os::unix::fs::symlink("in.txt", case.path().join("ws/inner.txt")).unwrap();
        case
    };
    let absolute = case();
    let inside = absolute.path().join("ws/in.txt");
    let inside = inside.to_str().unwrap();
    for (given, content) in [
        ("ws/in.txt", "in"),
        ("ws/inner.txt", "in"),
        ("issue.txt", "task"),
    ] {
        assert_eq!(
            case().param("p", given).job().prompt,
            format!("<{content}>")
        );
    }
    assert_eq!(absolute.param("p", inside).job().prompt, "<in>");
    let secret = secret.to_str().unwrap();
    for given in [
        "/etc/shadow",
        "/etc/passwd",
        secret,
        "ws/link.txt",
        "ws/dir/secret.txt",
        "/proc/self/environ",
    ] {
        let case = case().param("p", given);
        let lines = case.lines();
        assert!(lines[0].starts_with("--param:1:1: bad_file: "), "{lines:?}");
        let why = "lies outside of the workspace and of the task's directory";
        assert!(
            lines[0].contains(why) && lines[0].contains(given),
            "{lines:?}"
        );
        assert_eq!(case.problems().kind, agent::task::Kind::BadTask);
    }
    // The default of the task and the workspace that it names follow the same rule.
    let lines = one("type: file, default: /etc/passwd").lines();
    assert!(lines[0].starts_with("task.yaml:2:"), "{lines:?}");
    let elsewhere = || one("type: file").set("workspace.path", outside.path().to_str().unwrap());
    assert_eq!(elsewhere().param("p", secret).job().prompt, "<canary>");
}

#[test]
fn a_pipe_or_a_device_is_no_file_of_a_parameter() {
    let case = one("type: file");
    let pipe = case.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    for given in ["pipe", "."] {
        let problems = one_at(&case, given);
        assert_eq!(problems.kind, agent::task::Kind::NoInput, "{given}");
    }
}

fn one_at(case: &Case, given: &str) -> agent::task::Diagnostics {
    let mut overrides = case.overrides.clone();
    overrides.params.push(("p".into(), given.into()));
    agent::task::load(std::path::Path::new("task.yaml"), &overrides).unwrap_err()
}
