//! Which command lines are one plain command, and what their words are.

use std::process::Command;

use agent::policy::{literal_words, simple_commands};
use proptest::prelude::*;

fn check(command: &str, expect: &[&str]) {
    let expect = expect.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(literal_words(command), Ok(expect), "{command:?}");
}

#[test]
fn plain_commands_are_split_as_bash_does() {
    check("ls", &["ls"]);
    check("  ls \t -la  ", &["ls", "-la"]);
    check(
        "git log --format='%h %s' -3",
        &["git", "log", "--format=%h %s", "-3"],
    );
    check(
        r#"grep -n "a;b|c" src/x.rs"#,
        &["grep", "-n", "a;b|c", "src/x.rs"],
    );
    check("echo '' \"\" x''y", &["echo", "", "", "xy"]);
    check(
        "git show HEAD~1 HEAD^ a@b",
        &["git", "show", "HEAD~1", "HEAD^", "a@b"],
    );
    check("'/usr/bin/g'\"i\"t push", &["/usr/bin/git", "push"]);
    check(
        "echo 'größe $HOME `x` \\ !'",
        &["echo", "größe $HOME `x` \\ !"],
    );
    check(
        "git commit -m 'one\n\ntwo'",
        &["git", "commit", "-m", "one\n\ntwo"],
    );
    check("echo a=b", &["echo", "a=b"]);
    check(
        "git commit -m \"don't panic!\"",
        &["git", "commit", "-m", "don't panic!"],
    );
    check(
        "git show HEAD@{1} a@{upstream}",
        &["git", "show", "HEAD@{1}", "a@{upstream}"],
    );
    check(r#"rg "\bfn\(" x"#, &["rg", r"\bfn\(", "x"]);
    check(r#"echo "\$5 \"a\" \\ \!""#, &["echo", r#"$5 "a" \ \!"#]);
    check(r"cat my\ file \(x\) \*", &["cat", "my file", "(x)", "*"]);
}

#[test]
fn lines_are_split_at_plain_operators() {
    let cases: &[(&str, &[&[&str]])] = &[
        (
            "a && b c||d;e | f",
            &[&["a"], &["b", "c"], &["d"], &["e"], &["f"]],
        ),
        ("a 'x && y' | b", &[&["a", "x && y"], &["b"]]),
        ("a x\\;y; b", &[&["a", "x;y"], &["b"]]),
        (
            "cargo test 2>&1 | tail -5",
            &[&["cargo", "test"], &["tail", "-5"]],
        ),
        ("a >/dev/null 2> /dev/null", &[&["a"]]),
        ("a </dev/null &>/dev/null", &[&["a"]]),
        ("CI=1 TZ=Europe/Berlin a b=c", &[&["a", "b=c"]]),
        ("ls *.rs", &[&["ls", "*.rs"]]),
        ("a\n", &[&["a"]]),
    ];
    for (line, expect) in cases {
        let expect: Vec<Vec<String>> = expect
            .iter()
            .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
            .collect();
        assert_eq!(simple_commands(line), Ok(expect), "{line:?}");
    }
    for line in [
        "a &",
        "a & b",
        "a |& b",
        "a ;; b",
        "a && && b",
        "&& a",
        "a ||",
        "a;",
        "a | | b",
        "a > x",
        "a 2>&3",
        "a >&x",
        "a > /dev/nullx",
        "a >/dev/null/x",
        "a < x",
        "a <<< x",
        "(a; b)",
        "a && (b)",
        "a && { b; }",
        "a && ! b",
        "a | while b",
        "a && $x",
        "PATH=x a",
        "CI=$x a",
        "CI=1",
        "TZ=/etc/x a",
        "LC_ALL=../x a",
        "a && HOME=1 b",
        "a\nb",
        "2>&1",
        "a 2>&1x",
        "a x2>y",
        "a; if b",
        "ls 'a'*",
        "*x a",
    ] {
        assert!(simple_commands(line).is_err(), "{line:?}");
    }
}

const ACTIVE: &[&str] = &[
    "",
    "   ",
    "a; b",
    "a && b",
    "a | b",
    "a &",
    "a > f",
    "a < f",
    "a <<< x",
    "(a)",
    "a $(b)",
    "a `b`",
    "a $x",
    "a \"$x\"",
    "a \"`b`\"",
    "a \"\\\n\"",
    "a \"b\\",
    "a \\",
    "a !x",
    "! a",
    "a\nb",
    "a\rb",
    "a *",
    "a ?",
    "a [x]",
    "a {b,c}",
    "a {}",
    "~/x",
    "a ~",
    "a ~/x",
    "a x=~/y",
    "a x:~/y",
    "a \\b",
    "a # c",
    "#a",
    "A=b",
    "A=b c",
    "a+=b c",
    "'A=b' c",
    "if",
    "for x",
    "time a",
    "coproc a",
    "function f",
    "[[ a",
    "'if' x",
    "\"[[\" x",
    "then x",
    "{ a",
    "-a",
    "'' x",
    "'a b' c",
    "a 'b",
    "a \"b",
    "^a^b",
    "a ^b",
    "a\0b",
    "a 'b\0'",
    "a '\u{1b}[0m'",
    "a\u{7}",
    "größe",
    "a\u{a0}b",
    "a $'b'",
    "a $\"b\"",
    "%1",
    "+x",
    "a <(b)",
    "a() { b; }",
    "[ -f x ]",
    "a 2>&1",
    "@(a|b) c",
];

#[test]
fn whatever_the_shell_would_act_on_is_refused() {
    for command in ACTIVE {
        let result = literal_words(command);
        assert!(result.is_err(), "{command:?} gave {result:?}");
    }
}

#[test]
fn the_reason_says_what_stands_in_the_way() {
    let reason = |command: &str| literal_words(command).expect_err(command).reason;
    assert!(reason("a | b").contains("joins"));
    assert!(reason("a $x").contains("expands"));
    assert!(reason("A=b c").contains("variable"));
    assert!(reason("if x").contains("`if`"));
    assert!(reason("ls *.rs").contains("glob"));
    assert!(reason(&"a".repeat(70_000)).contains("longer"));
}

/// What bash makes of a line, with `printf` in front and nothing else to find.
fn words_by_bash(command: &str) -> Vec<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test compares with bash itself"
    )]
    let output = Command::new("bash")
        .arg("-c")
        .arg(format!("PATH=/nonexistent; printf '%s\\0' {command}"))
        .output()
        .expect("bash runs");
    let text = String::from_utf8(output.stdout).expect("words are text");
    text.split_terminator('\0').map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_gives_words_or_a_reason(command in any::<String>()) {
        let _ = literal_words(&command);
    }

    #[test]
    fn what_is_accepted_has_nothing_active_outside_quotes(
        command in "[a-z \\t'\";&|<>()$`*?\\[\\]{}~#!=\\\\\\n-]{0,24}",
    ) {
        if literal_words(&command).is_ok() {
            let mut quote = None;
            let mut escaped = false;
            // Line ends and blanks at the end are none of a command's words.
            for c in command.trim_end_matches([' ', '\t', '\n']).chars() {
                match (quote, c) {
                    _ if std::mem::take(&mut escaped) => {}
                    (None | Some('"'), '\\') => escaped = true,
                    (None, '\'' | '"') => quote = Some(c),
                    (Some(open), _) if open == c => quote = None,
                    (None, _) => prop_assert!(!";&|<>()$`*?[]{}#!\n".contains(c), "{command:?}"),
                    (Some('"'), _) => prop_assert!(!"$`".contains(c), "{command:?}"),
                    (Some(_), _) => {}
                }
            }
            prop_assert!(quote.is_none());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bash_sees_the_same_words(
        command in "[a-c]{1,2}([ \\t]|'[a-c;$*~ ]{0,3}'|\"[a-c;*~#! ]{0,3}\"|\"[a-c\\\\$\\\"]{0,3}\"|\\\\[ ;$(*\"{,}]|@\\{[0-9a-c]{0,2}\\}|[a-c=:~^/.,%@+-]){0,16}",
    ) {
        if let Ok(words) = literal_words(&command) {
            prop_assert_eq!(words_by_bash(&command), words, "{:?}", command);
        }
    }

    #[test]
    fn bash_runs_the_same_commands(
        line in "[p-s]([p-s]| |'[p&|; ]{0,2}'|\"[p&|; ]{0,2}\"| && | \\|\\| |; |&&|\\|\\||;| 2>&1| >/dev/null| </dev/null|CI=1 | CI=2 p|\\\\[;&|]){0,14}",
    ) {
        if let Ok(commands) = simple_commands(&line) {
            // Every command succeeds, so what follows `||` does not run.
            prop_assert_eq!(commands_by_bash(&line), reached(&line, commands), "{:?}", line);
        }
    }
}

/// The commands that run when all succeed: none between `||` and `;`, and
/// those after `&&` again.
fn reached(line: &str, commands: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let mut quote = None;
    let mut escaped = false;
    let mut skipping = vec![false];
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            _ if std::mem::take(&mut escaped) => {}
            (None, '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '|') => {
                rest.next();
                skipping.push(true);
            }
            (None, '&') if rest.peek() == Some(&'&') => {
                rest.next();
                skipping.push(false);
            }
            (None, ';') => skipping.push(false),
            (None, _) => {}
        }
    }
    assert_eq!(skipping.len(), commands.len(), "{line:?}");
    let run = commands.into_iter().zip(skipping);
    run.filter(|(_, skipped)| !skipped)
        .map(|(words, _)| words)
        .collect()
}

/// What bash runs for a line, when no program is there and every name is
/// answered by telling its words.
fn commands_by_bash(line: &str) -> Vec<Vec<String>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test compares with bash itself"
    )]
    let output = Command::new("bash")
        .arg("-c")
        .arg(format!(
            "exec 9>&1; PATH=/nonexistent\n\
             command_not_found_handle() {{ printf '%s\\0' \"$@\" >&9; printf '\\n' >&9; }}\n{line}"
        ))
        .output()
        .expect("bash runs");
    let text = String::from_utf8(output.stdout).expect("words are text");
    text.lines()
        .map(|line| line.split_terminator('\0').map(str::to_owned).collect())
        .collect()
}
