//! How rules are read, and what is said of those that cannot be.

use agent::policy::{Effect, Mode, OnAsk, Rule, RuleError};

fn error(text: &str) -> RuleError {
    Rule::parse(text, "permissions.allow[0]").expect_err(text)
}

#[test]
fn rules_keep_their_text_and_place() {
    let rule = Rule::parse(" Edit(.github/**) ", "permissions.deny[0]").expect("a rule");
    assert_eq!(rule.to_string(), "permissions.deny[0] Edit(.github/**)");
    assert_eq!(rule.text(), "Edit(.github/**)");
    assert_eq!(rule.origin(), "permissions.deny[0]");
}

#[test]
fn every_documented_form_is_read() {
    for text in [
        "Read",
        "read(src/**)",
        "EDIT(./x)",
        "Edit(/tmp/x)",
        "Edit(~/x/*)",
        "Read(**/*.{rs,toml})",
        "Bash",
        "bash(*)",
        "Bash(cargo test)",
        "Bash(cargo test:*)",
        "Bash(npm run * --silent)",
        "Bash(a && b)",
        "Bash(find . -name '*.rs')",
        "Grep",
        "find",
        "Ls",
        "Write",
        "Read(//tmp/x)",
        "Bash(git log *)",
        "WebFetch",
        "webfetch(domain:Docs.Example.com)",
        "WebFetch(domain:*.example.com)",
        "mcp__github",
        "MCP__github__get_issue",
        "mcp__github__*",
        "mcp__github__get_*",
        "Task",
        "Task(reviewer)",
        "Skill(release-notes)",
        "skill(team:*)",
    ] {
        assert!(
            Rule::parse(text, "--allow").is_ok(),
            "{text}: {:?}",
            Rule::parse(text, "--allow")
        );
    }
}

#[test]
fn malformed_rules_say_where_and_what() {
    for (text, position, says) in [
        ("", None, "empty"),
        ("Read(", Some(5), "end with `)`"),
        ("Read(x) y", Some(9), "end with `)`"),
        ("Read)", Some(4), "without `(`"),
        ("Bash()", Some(4), "leave it out"),
        ("Reed(x)", Some(0), "did you mean `Read`"),
        ("Glob(x)", Some(0), "did you mean `Find`"),
        ("WebSearch", Some(0), "did you mean `WebFetch`"),
        ("Agent(x)", Some(0), "did you mean `Task`"),
        ("Yolo", Some(0), "rules can name"),
        ("WebFetch(example.com)", Some(9), "write `WebFetch(domain:"),
        ("WebFetch(domain:https://x.y)", Some(9), "without scheme"),
        ("WebFetch(domain:x.y/z)", Some(9), "without scheme"),
        ("WebFetch(domain:x.y:80)", Some(9), "without scheme"),
        ("WebFetch(domain:*)", Some(9), "no host name"),
        ("WebFetch(domain:a.*.b)", Some(9), "no host name"),
        ("mcp__", Some(0), "mcp__server__tool"),
        ("mcp__a__", Some(0), "mcp__server__tool"),
        ("mcp__a b", Some(0), "mcp__server__tool"),
        ("mcp__a__b(x)", Some(10), "named whole"),
        ("Task(a b)", Some(5), "no blanks"),
        ("Write(src/**)", Some(6), "did you mean `Edit(src/**)`"),
        ("Grep(src/**)", Some(5), "did you mean `Read(src/**)`"),
        ("Read(../x)", Some(5), "`..`"),
        ("Read(~bob/x)", Some(5), "~user"),
        ("Read(src/[)", Some(5), "no glob"),
        ("Bash(ls*)", Some(5), "whole words"),
        ("Bash(rm *.o)", Some(5), "whole words"),
        ("Bash(* --force)", Some(5), "begin with the program"),
        ("Bash(:*)", Some(5), "begin with the program"),
        ("Bash(a $x:*)", Some(5), "expands"),
        ("Bash(a; b:*)", Some(5), "joins"),
    ] {
        let error = error(text);
        assert_eq!(error.position, position, "{error}");
        assert!(error.problem.contains(says), "{error}");
        assert!(
            error
                .to_string()
                .starts_with("permissions.allow[0]: rule `"),
            "{error}"
        );
    }
}

#[test]
fn examples_are_checked_and_named() {
    let rule = || Rule::parse("Bash(git log:*)", "permissions.allow[0]").expect("a rule");
    let list = |items: &[&str]| {
        items
            .iter()
            .map(|item| (*item).to_owned())
            .collect::<Vec<_>>()
    };
    let holds = rule().with_examples(
        Effect::Allow,
        &list(&["git log -3", "git log"]),
        &list(&["git log --output=x", "git logs", "git log; id"]),
    );
    assert!(holds.is_ok(), "{holds:?}");
    let wrong = rule().with_examples(Effect::Allow, &list(&["git status"]), &[]);
    assert!(
        wrong
            .expect_err("no match")
            .problem
            .contains("`git status` should match")
    );
    let wrong = rule().with_examples(Effect::Allow, &[], &list(&["git log -3"]));
    assert!(
        wrong
            .expect_err("a match")
            .problem
            .contains("`git log -3` should not match")
    );
    let deny = rule().with_examples(Effect::Deny, &list(&["/bin/git -C x log", "a | b"]), &[]);
    assert!(deny.is_ok(), "{deny:?}");
    let path = Rule::parse("Edit(src/**)", "x")
        .expect("a rule")
        .with_examples(
            Effect::Allow,
            &list(&["src/a.rs", "./src/b/c"]),
            &list(&["tests/a.rs", "src/../x"]),
        );
    assert!(path.is_ok(), "{path:?}");
}

#[test]
fn modes_have_names_and_reasons() {
    for mode in Mode::ALL {
        assert_eq!(mode.to_string().parse::<Mode>(), Ok(*mode));
        assert_eq!(serde_json::to_value(mode).expect("a name"), mode.name());
    }
    assert_eq!("accept-edits".parse(), Ok(Mode::AcceptEdits));
    let unknown = "yolo".parse::<Mode>().expect_err("no such mode");
    assert!(
        unknown
            .to_string()
            .contains("read_only, accept_edits, workspace or bypass")
    );
    assert_eq!(serde_json::to_value(OnAsk::Fail).expect("a name"), "fail");
    assert_eq!(Mode::default(), Mode::ReadOnly);
}
