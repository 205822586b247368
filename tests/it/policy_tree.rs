//! Commands that read or write whole directories, beside rules and protections
//! of what is in them.

use std::fs;
use std::path::PathBuf;

use agent::access::Access;
use agent::policy::{Decision, Enforcement, Mode, Permissions, Policy, Rule, Surroundings};

/// A workspace with something to protect.
struct Tree {
    root: tempfile::TempDir,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        Self { root }
    }

    fn decide(&self, allow: &[&str], deny: &[&str], access: Access) -> Decision {
        let rules = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| Rule::parse(text, "rule").expect("a rule"))
                .collect()
        };
        let permissions = Permissions {
            mode: Mode::AcceptEdits,
            allow: rules(allow),
            deny: rules(deny),
            ..Permissions::default()
        };
        let surroundings = Surroundings {
            workspace: self.root.path().to_owned(),
            home: Some(PathBuf::from("/home/somebody")),
            protected: Vec::new(),
            sandbox: Enforcement::Enforced,
            ..Surroundings::default()
        };
        Policy::new(permissions, surroundings).decide("bash", &[access])
    }

    fn check(&self, allow: &[&str], deny: &[&str], allowed: &[&str], denied: &[&str]) {
        let expected = allowed.iter().map(|command| (command, true));
        for (command, allowed) in expected.chain(denied.iter().map(|command| (command, false))) {
            let decision = self.decide(allow, deny, Access::Exec((*command).to_owned()));
            assert_eq!(
                decision.is_allowed(),
                allowed,
                "{command}: {}",
                decision.reason
            );
        }
    }

    fn writes(&self, name: &str) -> Decision {
        self.decide(&[], &[], Access::Write(self.root.path().join(name)))
    }
}

const READERS: &[&str] = &[
    "Bash(grep:*)",
    "Bash(rg:*)",
    "Bash(diff:*)",
    "Bash(git grep:*)",
    "Bash(cp:*)",
    "Bash(cat:*)",
    "Bash(ls:*)",
    "Bash(find:*)",
];

#[test]
fn readers_of_directories_do_not_meet_what_is_protected() {
    let tree = Tree::new(&[
        (".env", "A=b"),
        (".git/config", "[core]\n\tbare = false\n"),
        ("src/a.rs", "x"),
        ("sub/b.rs", "x"),
    ]);
    tree.check(
        READERS,
        &[],
        &[
            "rg x",
            "rg x .",
            "rg -n --type rust x",
            "rg --files --hidden",
            "rg x -g '*.rs'",
            "rg x -g '!sub'",
            "grep -r x src",
            "grep -rn -e x src sub",
            "grep -rn x --include=*.rs .",
            "grep -r x --exclude=.env .",
            "grep x src/a.rs",
            "diff -r src sub",
            "cp -r src sub",
            "ls -R .",
            "find . -name x",
            "cat src/*.rs",
        ],
        &[
            "rg -. x",
            "rg --hidden x",
            "rg -uu x",
            "rg -g .env x",
            "rg -g '.e*' sub",
            "rg -lg '**/.env' x",
            "rg --glob=.env x",
            "grep -r x",
            "grep -r x .",
            "grep -Rn x ./src/..",
            "grep --recurs x .",
            "grep -d recurse x .",
            "git grep --no-index x",
            "diff -r . sub",
            "cp -r . sub",
            "cat .e*",
            "cat .en?",
        ],
    );
}

#[test]
fn a_repository_configuration_counts_when_it_has_a_credential() {
    let config = "[http]\n\textraheader = AUTHORIZATION: basic x\n";
    let tree = Tree::new(&[(".git/config", config), ("a", "x")]);
    tree.check(
        READERS,
        &[],
        &["rg x", "git grep x", "grep -r --exclude-dir=.git x ."],
        &["grep -r x .", "rg -uu x"],
    );
}

#[test]
fn readers_of_directories_do_not_meet_what_is_denied() {
    let tree = Tree::new(&[("secret/a", "x"), ("src/a.rs", "x"), ("src/k.pem", "x")]);
    tree.check(
        READERS,
        &["Read(secret/**)"],
        &["rg x src", "grep -r x src", "cat src/a.rs", "rg --files"],
        &[
            "rg x",
            "rg x .",
            "grep -r x .",
            "diff -r . src",
            "git grep x",
            "cp -r . ../x",
            "cat sec*/a",
        ],
    );
    // A glob without a slash means names anywhere when it denies.
    tree.check(
        READERS,
        &["Read(*.pem)"],
        &["cat src/a.rs", "rg x secret"],
        &["cat src/k.pem", "rg x src", "grep -r x ."],
    );
    tree.check(
        READERS,
        &["Read(./*.pem)"],
        &["cat src/k.pem"],
        &["cat k.pem"],
    );
    tree.check(READERS, &["Read"], &["ls"], &["cat src/a.rs", "rg x"]);
}

#[test]
fn a_glob_is_what_the_directory_has() {
    let tree = Tree::new(&[("a.rs", "x"), ("-x.md", "x"), ("src/-y", "x")]);
    tree.check(
        READERS,
        &[],
        &[
            "cat *.rs",
            "cat *.none",
            "cat src/*",
            "cat */a",
            "cat */*",
            "find . -name *.rs",
        ],
        &["cat *.md", "cat *", "cat /etc/*", "rm *.rs"],
    );
}

#[test]
fn walks_do_not_leave_through_links_nor_meet_processes() {
    let tree = Tree::new(&[("a.rs", "x"), ("src/b.rs", "x")]);
    let outside = Tree::new(&[("keys/id_rsa", "x")]);
    let link = tree.root.path().join("link");
    std::os::unix::fs::symlink(outside.root.path(), link).expect("a link");
    tree.check(
        READERS,
        &[],
        &["rg x", "rg x src", "grep -r x .", "rg x *.rs"],
        &[
            "rg x link",
            "rg *",
            "rg x *",
            "rg -L x",
            "grep -R x .",
            "grep -r x link",
            "grep -r x /proc",
            "grep -r x /",
            "rg x /proc/sys",
            "cp -r link x",
        ],
    );
}

#[test]
fn where_cd_leads_is_what_bash_makes_of_it() {
    let tree = Tree::new(&[("src/a.rs", "x"), ("deep/in/b.rs", "x")]);
    let outside = Tree::new(&[("beside/Makefile", "x"), ("place/x", "x")]);
    let link = |target: std::path::PathBuf, name: &str| {
        std::os::unix::fs::symlink(target, tree.root.path().join(name)).expect("a link");
    };
    link(outside.root.path().join("place"), "out");
    link("deep/in".into(), "short");
    tree.check(
        &["Bash(make:*)", "Bash(make)", "Bash(ls)"],
        &[],
        &[
            "cd src; make; cd ..",
            "cd src && make && cd .. && make",
            "cd ..",
            "cd -P src && make",
            "cd src/../deep && make",
            // Bash takes a link away as it stands where that is a directory.
            "cd out/../src && make",
            "cd out/../missing && make",
            "for d in src deep; do cd \"$d\" && make && cd ..; done",
        ],
        &[
            "cd .. && make",
            "cd ..; ls",
            "cd src; cd ..; make",
            "cd out && make",
            // Here it is not, and the kernel follows it first.
            "cd out/../beside && make",
            "cd short/../in && make",
            "cd src && cd ../short/../in && make",
            "cd -P out/.. && make",
            "cd -P src/.. && make",
            "pushd out/../beside && make",
        ],
    );
}

#[test]
fn writers_of_the_whole_tree_are_held_to_denials_of_editing() {
    let tree = Tree::new(&[("src/a.rs", "x"), (".github/ci.yml", "x")]);
    let allow = [
        "Bash(git:*)",
        "Bash(git stash pop)",
        "Bash(rm:*)",
        "Bash(black:*)",
        "Bash(eslint:*)",
        "Bash(touch:*)",
        "Bash(ls:*)",
        "Bash(mkdir:*)",
    ];
    let allowed = [
        "git add .",
        "git add -A && git commit -m x",
        "git checkout -b x",
        "git checkout -- src/a.rs",
        "git restore src/a.rs",
        "git reset",
        "git stash list",
        "git status",
        "git apply --check x.patch",
        "git log",
        "git stash pop",
        "black src",
        "eslint .",
        "rm src/a.rs",
        "mkdir -p x/y",
    ];
    let denied = [
        "git apply x.patch",
        "git checkout main",
        "git checkout .",
        "git checkout -- '*'",
        "git checkout HEAD~1",
        "git reset --hard HEAD~1",
        "git reset --har",
        "git restore .",
        "git restore ':/'",
        "git stash",
        "git merge x",
        "git rebase main",
        "git cherry-pick x",
        "git rm -r '.git*'",
        "git stash list && git checkout main",
        "rm -rf .",
        "black .",
        "eslint . --fix",
    ];
    tree.check(&allow, &["Edit(.github/**)"], &allowed, &denied);
    tree.check(&allow, &[], &["git checkout main", "black ."], &[]);
    tree.check(
        &allow,
        &["Edit"],
        &["ls", "git status"],
        &["touch a", "rm src/a.rs", "git apply x", "git checkout main"],
    );
    // A rule for one tool says nothing about commands.
    tree.check(&allow, &["Write"], &["touch a"], &[]);
}

#[test]
fn a_directory_cannot_be_made_to_look_like_a_repository() {
    let tree = Tree::new(&[
        ("objects/x", ""),
        ("refs/x", ""),
        ("whole/HEAD", ""),
        ("whole/objects/x", ""),
        ("whole/refs/x", ""),
        ("begun/HEAD", ""),
        ("begun/refs/x", ""),
        ("src/x", ""),
    ]);
    for name in [
        "config",
        "src/HEAD",
        "src/config",
        "begun/config",
        "whole/readme",
        "objects/y",
    ] {
        let decision = tree.writes(name);
        assert!(decision.is_allowed(), "{name}: {}", decision.reason);
    }
    for name in [
        "HEAD",
        "whole/config",
        "whole/HEAD",
        "whole/hooks/post-checkout",
        "whole/refs/heads/main",
        "begun/objects/aa/bb",
        "begun/commondir",
    ] {
        let decision = tree.writes(name);
        assert!(!decision.is_allowed(), "{name}");
        assert!(
            decision.reason.contains("bare repository"),
            "{name}: {}",
            decision.reason
        );
    }
    tree.check(
        &["Bash(touch:*)", "Bash(cp:*)"],
        &[],
        &["touch src/HEAD"],
        &["touch HEAD", "cp src/x whole/config"],
    );
}
