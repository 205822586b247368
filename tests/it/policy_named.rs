//! Hosts, tools of servers, agents and skills; and what mode `workspace` rests on.

use std::path::PathBuf;

use agent::access::{Access, host_of};
use agent::policy::{
    Decision, Effect, Enforcement, Mode, Permissions, Policy, Rule, Surroundings, server_access,
};

fn rules(texts: &[&str], list: &str) -> Vec<Rule> {
    let rules = texts.iter().enumerate();
    rules
        .map(|(at, text)| Rule::parse(text, &format!("permissions.{list}[{at}]")).expect("a rule"))
        .collect()
}

fn decide(mode: Mode, allow: &[&str], deny: &[&str], access: Access) -> Decision {
    let permissions = Permissions {
        mode,
        allow: rules(allow, "allow"),
        deny: rules(deny, "deny"),
        ..Permissions::default()
    };
    Policy::new(permissions, Surroundings::default()).decide("any", &[access])
}

fn network(host: &str) -> Access {
    Access::Network(host.to_owned())
}

#[test]
fn a_host_is_the_one_that_would_be_asked() {
    for (url, expect) in [
        ("https://Example.com/a?b#c", Some("example.com")),
        ("http://example.com:8080", Some("example.com")),
        ("https://user:word@example.com./", Some("example.com")),
        ("https://example.com@evil.com/", Some("evil.com")),
        ("https://evil.com\\@example.com", Some("evil.com")),
        ("https://ev%69l.com", Some("evil.com")),
        ("https:evil.com", Some("evil.com")),
        ("http://0x7f.1/", Some("127.0.0.1")),
        ("http://[::1]/", Some("[::1]")),
        ("https://bücher.example", Some("xn--bcher-kva.example")),
        ("file:///etc/passwd", None),
        ("ftp://example.com", None),
        ("example.com", None),
        ("//example.com", None),
        ("https://", None),
        ("", None),
    ] {
        assert_eq!(host_of(url).ok().as_deref(), expect, "{url}");
    }
}

#[test]
fn an_allow_rule_means_the_host_and_a_deny_rule_what_is_below_too() {
    for (rule, host, allowed, denied) in [
        ("WebFetch", "a.b", true, true),
        ("WebFetch(domain:a.b)", "a.b", true, true),
        ("WebFetch(domain:A.B)", "a.b", true, true),
        ("WebFetch(domain:a.b)", "x.a.b", false, true),
        ("WebFetch(domain:*.a.b)", "x.a.b", true, true),
        ("WebFetch(domain:*.a.b)", "y.x.a.b", true, true),
        ("WebFetch(domain:*.a.b)", "a.b", false, true),
        ("WebFetch(domain:a.b)", "xa.b", false, false),
        ("WebFetch(domain:a.b)", "a.b.c", false, false),
        ("WebFetch(domain:*.a.b)", "xa.b", false, false),
    ] {
        let by_allow = decide(Mode::ReadOnly, &[rule], &[], network(host));
        assert_eq!(by_allow.is_allowed(), allowed, "{rule} {host}");
        let by_deny = decide(Mode::Bypass, &["WebFetch"], &[rule], network(host));
        assert_eq!(!by_deny.is_allowed(), denied, "{rule} {host}");
    }
}

#[test]
fn tools_of_servers_are_named_whole_by_server_or_with_stars() {
    for (rule, name, expect) in [
        ("mcp__a__b", "mcp__a__b", true),
        ("MCP__A__b", "mcp__a__B", true),
        ("mcp__a__b", "mcp__a__bc", false),
        ("mcp__a", "mcp__a__b", true),
        ("mcp__a", "mcp__ab__c", false),
        ("mcp__a__*", "mcp__a__b", true),
        ("mcp__a__*", "mcp__b__b", false),
        ("mcp__a__get_*", "mcp__a__get_x", true),
        ("mcp__a__get_*", "mcp__a__set_x", false),
        ("mcp__*__get_*", "mcp__x__get_y", true),
        ("mcp__a__b", "mcp__x__mcp__a__b", false),
    ] {
        let access = || server_access(name).expect("a server's tool");
        let allowed = decide(Mode::ReadOnly, &[rule], &[], access()).is_allowed();
        assert_eq!(allowed, expect, "{rule} {name}");
        let denied = !decide(Mode::Bypass, &[], &[rule], access()).is_allowed();
        assert_eq!(denied, expect, "{rule} {name}");
    }
    for name in ["mcp__", "mcp__a", "mcp__a__", "a__b", "mcp____b", "read"] {
        assert_eq!(server_access(name), None, "{name}");
    }
}

#[test]
fn agents_and_skills_are_named() {
    for (rule, access, allowed, denied) in [
        ("Task(a)", Access::Agent("a".into()), true, true),
        ("Task(a)", Access::Agent("A".into()), false, true),
        ("Task(a)", Access::Agent("ab".into()), false, false),
        ("Task", Access::Agent("ab".into()), true, true),
        ("Skill(a-*)", Access::Skill("a-b".into()), true, true),
        ("Skill(a-*)", Access::Agent("a-b".into()), false, false),
        ("Skill", Access::Skill("x".into()), true, true),
        ("Task", Access::Skill("x".into()), false, false),
    ] {
        let by_allow = decide(Mode::ReadOnly, &[rule], &[], access.clone());
        assert_eq!(by_allow.is_allowed(), allowed, "{rule} {access:?}");
        let by_deny = decide(Mode::Bypass, &[], &[rule], access.clone());
        assert_eq!(!by_deny.is_allowed(), denied, "{rule} {access:?}");
    }
}

#[test]
fn what_is_denied_comes_with_the_rule_that_would_allow_it() {
    for (access, rule) in [
        (network("a.b"), "WebFetch(domain:a.b)"),
        (server_access("mcp__a__b").expect("a tool"), "mcp__a__b"),
        (Access::Agent("a".into()), "Task(a)"),
        (Access::Skill("a".into()), "Skill(a)"),
    ] {
        for mode in [Mode::ReadOnly, Mode::AcceptEdits, Mode::Workspace] {
            let denied = decide(mode, &[], &[], access.clone());
            assert!(!denied.is_allowed(), "{access:?}");
            assert_eq!(denied.suggested_rule.as_deref(), Some(rule));
        }
        assert!(decide(Mode::ReadOnly, &[rule], &[], access.clone()).is_allowed());
        let never = decide(Mode::Bypass, &[rule], &[rule], access);
        assert!(
            never.reason.contains("permissions.deny[0]"),
            "{}",
            never.reason
        );
    }
}

#[test]
fn rules_of_names_have_examples_too() {
    for (rule, matching, not_matching) in [
        ("WebFetch(domain:a.b)", "https://a.b/c", "x.a.b"),
        ("WebFetch(domain:a.b)", "a.b", "https://a.b@evil"),
        ("mcp__a__*", "mcp__a__b", "mcp__b__a"),
        ("Task(a)", "a", "b"),
        ("Skill(a*)", "ab", "b"),
    ] {
        let rule = || Rule::parse(rule, "permissions.allow[0]").expect("a rule");
        let list = |text: &str| vec![text.to_owned()];
        let holds = rule().with_examples(Effect::Allow, &list(matching), &list(not_matching));
        assert!(holds.is_ok(), "{holds:?}");
        let wrong = rule().with_examples(Effect::Allow, &list(not_matching), &[]);
        assert!(wrong.is_err(), "{rule:?}", rule = rule());
    }
}

#[test]
fn mode_workspace_runs_commands_only_where_a_sandbox_holds_them() {
    let workspace = tempfile::tempdir().expect("a directory");
    let root: PathBuf = workspace.path().canonicalize().expect("a path");
    let decide = |sandbox, deny: &[&str], access: Access| {
        let permissions = Permissions {
            mode: Mode::Workspace,
            deny: rules(deny, "deny"),
            ..Permissions::default()
        };
        let surroundings = Surroundings {
            workspace: root.clone(),
            sandbox,
            ..Surroundings::default()
        };
        Policy::new(permissions, surroundings).decide("any", &[access])
    };
    let exec = |command: &str| Access::Exec(command.to_owned());
    for command in ["make test", "python3 x.py", "ls && ./run.sh"] {
        let held = decide(Enforcement::Enforced, &[], exec(command));
        assert!(held.is_allowed(), "{command}: {}", held.reason);
        let open = decide(Enforcement::NotEnforced, &[], exec(command));
        assert!(!open.is_allowed(), "{command}");
        assert!(open.reason.contains("sandbox"), "{}", open.reason);
        let denied = decide(Enforcement::Enforced, &["Bash"], exec(command));
        assert!(!denied.is_allowed(), "{command}");
    }
    for sandbox in [Enforcement::NotEnforced, Enforcement::Enforced] {
        assert!(decide(sandbox, &[], Access::Write(root.join("a"))).is_allowed());
        assert!(!decide(sandbox, &[], Access::Write("/etc/a".into())).is_allowed());
        assert!(!decide(sandbox, &[], Access::Write(root.join(".git/config"))).is_allowed());
        assert!(!decide(sandbox, &[], network("a.b")).is_allowed());
    }
}
