//! What appears in the workspace while a command runs: repositories that the next
//! step would follow, and files that deny rules mean.

use serde_json::Value;

use crate::sandbox_run::{said, task, tiers};
use crate::support::cli::Cli;

/// Runs commands in a workspace with these files and some directories.
fn workspace(tier: &str, commands: &[&str]) -> Cli {
    task(commands, &format!("{{mode: require, tier: {tier}}}"))
        .file("src/a.rs", "a\n")
        .file("src/deep/er/b.rs", "b\n")
        .file("fixtures/bare/HEAD", "ref: refs/heads/main\n")
        .file("fixtures/bare/config", "[core]\n")
        .file("fixtures/bare/objects/x", "x")
        .file("fixtures/bare/refs/heads/main", "0\n")
}

#[test]
fn a_repository_that_a_command_makes_is_removed() {
    for (command, planted) in [
        ("git init -q src/deep/er", "src/deep/er/.git"),
        ("git init -q new/one", "new/one/.git"),
        ("mkdir x; git init -q x/y; mv x z", "z/y/.git"),
        ("echo 'gitdir: /evil' > src/.git", "src/.git"),
        ("ln -s ../evil src/.git", "src/.git"),
        ("git init -q --bare new/bare", "new/bare/HEAD"),
        ("cd src; touch HEAD; mkdir objects refs", "src/HEAD"),
        (
            "cd src/deep; touch HEAD; echo .. > commondir",
            "src/deep/commondir",
        ),
        ("mkdir -p d/e/.git/hooks; chmod 000 d/e d", "d/e/.git"),
        (
            "mkdir src/.git; touch -d 2001-01-01 src src/.git",
            "src/.git",
        ),
        (
            "mv src/deep src/d2; git init -q src/d2/er; mv src/d2 src/deep",
            "src/deep/er/.git",
        ),
    ] {
        for tier in tiers() {
            let done = workspace(tier, &[command]).run();
            let at = format!("{tier} {command}: {}", said(&done));
            assert!(done.cwd().join(planted).symlink_metadata().is_err(), "{at}");
            let expect = format!("{planted} was removed: commands may not make repositories");
            assert!(said(&done).contains(&expect), "{at}");
            // What was there before is there, and what was taken is kept.
            for file in ["src/a.rs", "src/deep/er/b.rs", "fixtures/bare/HEAD"] {
                assert!(done.cwd().join(file).exists(), "{file} {at}");
            }
            assert!(done.run_dir().join("undone").exists(), "{at}");
        }
    }
}

/// Not even beside the run's own directory.
#[test]
fn a_repository_among_the_runs_is_removed() {
    for tier in tiers() {
        let done = workspace(tier, &["git init -q .agent/runs/new/one || true"]).run();
        let planted = done.cwd().join(".agent/runs/new/one/.git");
        assert!(!planted.exists(), "{tier}: {}", said(&done));
    }
}

/// Where the run directory is changes nothing of that.
#[test]
fn a_repository_beside_the_run_directory_is_removed() {
    let elsewhere = tempfile::tempdir().unwrap();
    for tier in tiers() {
        for outside in [false, true] {
            let cli = workspace(tier, &["git init -q new/one"]);
            let run_dir = match outside {
                false => cli.cwd().join("out"),
                true => elsewhere.path().join(tier),
            };
            let done = cli.arg("--run-dir").arg(run_dir).run();
            let at = format!("{tier}: {}", said(&done));
            assert!(!done.cwd().join("new/one/.git").exists(), "{at}");
        }
    }
}

/// A name a command, so that none of them makes the whole.
#[test]
fn a_repository_that_is_made_in_steps_is_removed() {
    let commands = [
        "mkdir src/objects",
        "touch src/HEAD",
        "mkdir src/refs",
        "ls src",
    ];
    for tier in tiers() {
        let done = workspace(tier, &commands).run();
        for part in ["HEAD", "objects", "refs"] {
            assert!(
                !done.cwd().join("src").join(part).exists(),
                "{tier} {part}: {}",
                said(&done)
            );
        }
        assert!(done.cwd().join("src/a.rs").exists());
    }
}

#[test]
fn a_bare_repository_of_the_workspace_is_not_configured() {
    for tier in tiers() {
        let command = "echo evil >> fixtures/bare/config; mkdir fixtures/bare/hooks; \
                       echo evil > fixtures/bare/hooks/post-update; echo x > fixtures/other; echo end";
        let done = workspace(tier, &[command]).run();
        let read = |name: &str| std::fs::read_to_string(done.cwd().join(name)).unwrap_or_default();
        assert_eq!(
            read("fixtures/bare/config"),
            "[core]\n",
            "{tier}: {}",
            said(&done)
        );
        assert!(
            !done.cwd().join("fixtures/bare/hooks/post-update").exists(),
            "{tier}"
        );
        assert_eq!(read("fixtures/other"), "x\n", "{tier}");
    }
}

#[test]
fn ordinary_files_are_left_alone() {
    let command = "mkdir -p new/objects new/refs; echo x > new/.gitignore; echo x > HEAD; \
                   mkdir .github; echo x > .github/a; rm -r fixtures/bare; echo end";
    for tier in tiers() {
        let done = workspace(tier, &[command]).run();
        for path in [
            "new/objects",
            "new/refs",
            "new/.gitignore",
            "HEAD",
            ".github/a",
        ] {
            assert!(
                done.cwd().join(path).exists(),
                "{tier} {path}: {}",
                said(&done)
            );
        }
        assert!(
            !said(&done).contains("was removed"),
            "{tier}: {}",
            said(&done)
        );
    }
}

/// With these deny rules.
fn denied(tier: &str, commands: &[&str], rules: &[&str]) -> Cli {
    let cli = workspace(tier, commands)
        .file("keys/one.pem", "canary-one\n")
        .file("keys/deep/two.pem", "canary-two\n")
        .file("conf/secret.txt", "canary-three\n")
        .file("dist/out.js", "ours\n");
    rules
        .iter()
        .fold(cli, |cli, rule| cli.args(["--deny", rule]))
}

const READS: &[&str] = &["Read(*.pem)", "Read(./conf/secret.txt)"];

#[test]
fn programs_do_not_read_what_deny_rules_mean() {
    let command = "cat keys/*.pem keys/deep/two.pem conf/secret.txt; mv keys k; cat k/one.pem; \
                   cat src/a.rs; echo end";
    for tier in tiers() {
        let done = denied(tier, &[command], READS).run();
        let warned = warned(&done.result());
        if tier == "namespaces" {
            assert!(!said(&done).contains("canary"), "{}", said(&done));
            assert_eq!(warned, "");
        } else {
            let rules = "--deny Read(*.pem), --deny Read(./conf/secret.txt): the tier `landlock`";
            assert!(warned.contains(rules), "{warned}");
        }
        assert!(said(&done).contains("a\\nend"), "{tier}: {}", said(&done));
    }
}

fn warned(result: &Value) -> String {
    let warnings = result["warnings"].as_array().unwrap().iter();
    let ours = warnings.filter(|one| one["code"] == "deny_rules");
    ours.map(|one| format!("{}\n", one["message"].as_str().unwrap()))
        .collect()
}

#[test]
fn programs_do_not_write_what_deny_rules_mean() {
    let rules = [
        "Edit(*.lock)",
        "Edit(dist/**)",
        "Edit(src/*/*.rs)",
        "Edit(./gen/*.c)",
    ];
    let command = "echo evil > dist/out.js; echo evil > dist/new.js; echo evil > src/x.lock
        mkdir -p gen src/new; echo evil > gen/a.c; echo fine > gen/a.h; echo evil > src/new/c.rs
        echo evil > src/a.lock; echo evil > keep.lock; echo fine > src/a.rs; mv dist d2
        mkdir dist; echo evil > dist/out.js; echo end";
    for tier in tiers() {
        let done = denied(tier, &[command], &rules)
            .file("keep.lock", "ours\n")
            .run();
        let at = format!("{tier}: {}", said(&done));
        let read = |name: &str| std::fs::read_to_string(done.cwd().join(name)).unwrap_or_default();
        for (file, content) in [
            ("dist/out.js", "ours\n"),
            ("dist/new.js", ""),
            ("keep.lock", "ours\n"),
            ("src/x.lock", ""),
            ("gen/a.c", ""),
            ("src/new/c.rs", ""),
            ("gen/a.h", "fine\n"),
            ("src/a.rs", "fine\n"),
        ] {
            assert_eq!(read(file), content, "{file} {at}");
        }
        let expect = "gen/a.c was removed: a rule of the task denies that it is written";
        assert!(said(&done).contains(expect), "{at}");
        assert_eq!(warned(&done.result()), "", "{at}");
    }
}

#[test]
fn what_the_sandbox_cannot_hold_of_deny_rules_is_a_warning_of_check() {
    for (section, rules, expect) in [
        (
            "{tier: landlock}",
            READS,
            Some("hides no file of the workspace"),
        ),
        ("{tier: landlock}", &["Edit(*.pem)"], None),
        (
            "{mode: off}",
            READS,
            Some("there is no sandbox for commands"),
        ),
        (
            "{tier: landlock}",
            &["Edit(/opt/*/x)"],
            Some("globs are looked up in the workspace"),
        ),
    ] {
        let cli = task(&[], section).file("keys/one.pem", "x");
        let mut check = Cli::at(cli.cwd()).args([
            "check",
            "task.yaml",
            "--allow-bypass",
            "--output-format",
            "json",
        ]);
        for rule in rules {
            check = check.args(["--deny", rule]);
        }
        let done = check.run();
        let document: Value = serde_json::from_str(&done.stdout).unwrap();
        let warned = warned(&document["tasks"][0]);
        match expect {
            Some(expect) => assert!(warned.contains(expect), "{section} {rules:?}: {warned}"),
            None => assert_eq!(warned, "", "{section} {rules:?}"),
        }
    }
}

#[test]
fn more_files_than_can_be_held_are_a_warning() {
    let tier = tiers()[0];
    let mut cli = denied(tier, &["true"], &["Edit(*.many)"]);
    for number in 0..501 {
        cli = cli.file(&format!("many/{number}.many"), "x");
    }
    let warned = warned(&cli.run().result());
    assert!(warned.contains("deny rules mean 501 files"), "{warned}");
}
