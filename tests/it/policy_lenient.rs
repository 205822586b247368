//! Deny rules hold for every name that a file system may take for the same;
//! allow rules mean the very name.

use std::path::Path;

use agent::access::Access;
use agent::policy::{Mode, Permissions, Policy, Rule, Surroundings};

fn policy(allow: &str, deny: &str) -> (tempfile::TempDir, Policy) {
    let dir = tempfile::tempdir().unwrap();
    let rules = |text: &str| match text {
        "" => Vec::new(),
        text => vec![Rule::parse(text, "rule").unwrap()],
    };
    let permissions = Permissions {
        mode: if allow.is_empty() {
            Mode::AcceptEdits
        } else {
            Mode::ReadOnly
        },
        allow: rules(allow),
        deny: rules(deny),
        ..Permissions::default()
    };
    let surroundings = Surroundings {
        workspace: dir.path().canonicalize().unwrap(),
        ..Surroundings::default()
    };
    (dir, Policy::new(permissions, surroundings))
}

fn may_write(policy: &Policy, dir: &tempfile::TempDir, name: &str) -> bool {
    let path = dir.path().canonicalize().unwrap().join(Path::new(name));
    policy.decide("write", &[Access::Write(path)]).is_allowed()
}

#[test]
fn deny_rules_hold_for_all_variants_of_a_name() {
    let (dir, policy_) = policy("", "Edit(Secret/**)");
    for denied in [
        "Secret/a",
        "secret/a",
        "SECRET/A",
        "Se\u{200b}cret/x",
        "\u{17f}ecret/x",
    ] {
        assert!(!may_write(&policy_, &dir, denied), "{denied:?}");
    }
    assert!(may_write(&policy_, &dir, "secrets/a"));
    for (rule, name, denied) in [
        ("Edit(*.pem)", "sub/KEY.PEM", true),
        ("Edit(*.PEM)", "sub/key.pem", true),
        ("Edit(caf\u{e9}.txt)", "cafe\u{301}.txt", true),
        ("Edit(cafe\u{301}/)", "CAF\u{c9}/x", true),
        ("Edit(stra\u{df}e)", "STRASSE", true),
        ("Edit(\u{212a}ey)", "key", true),
        ("Edit([A-C]*.txt)", "b1.txt", true),
        ("Edit([A-C]*.txt)", "d1.txt", false),
        ("Edit(./top.txt)", "sub/TOP.txt", false),
        ("Edit(**/Cargo.lock)", "a/b/cargo.LOCK", true),
    ] {
        let (dir, policy) = policy("", rule);
        assert_eq!(!may_write(&policy, &dir, name), denied, "{rule} {name:?}");
    }
}

#[test]
fn allow_rules_mean_the_very_name() {
    for (rule, name, allowed) in [
        ("Edit(src/**)", "src/a", true),
        ("Edit(src/**)", "SRC/a", false),
        ("Edit(caf\u{e9}.txt)", "cafe\u{301}.txt", false),
        ("Edit(*.md)", "a.MD", false),
    ] {
        let (dir, policy) = policy(rule, "");
        assert_eq!(may_write(&policy, &dir, name), allowed, "{rule} {name:?}");
    }
}
