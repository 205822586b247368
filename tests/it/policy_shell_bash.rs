//! What a line is said to run, compared with what bash runs: with an empty
//! `PATH`, and every name that bash does not find answered by telling it.

use std::process::Command;

use agent::policy::simple_commands;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::support::bash::{fits, noted, noting};

/// Every command that bash runs for a line.
fn run_by_bash(line: &str) -> Vec<Vec<String>> {
    let script = format!(
        "exec 9>&1 >/dev/null 2>&1; PATH=/nonexistent\n\
         command_not_found_handle() {}\n{line}",
        noting(">&9")
    );
    #[expect(
        clippy::disallowed_methods,
        reason = "the test compares with bash itself"
    )]
    let output = Command::new("timeout")
        .args(["10", "bash", "-c", &script])
        .env("HOME", "~")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("bash runs");
    assert_ne!(output.status.code(), Some(124), "{line:?} does not end");
    noted(&String::from_utf8_lossy(&output.stdout))
}

/// Whether bash runs nothing but what is said; false when nothing is said.
fn check(line: &str) -> bool {
    let Ok(said) = simple_commands(line) else {
        return false;
    };
    for ran in run_by_bash(line) {
        let found = said.iter().any(|said| fits(&ran, said));
        assert!(found, "{line:?} runs {ran:?}, and was said to run {said:?}");
    }
    true
}

/// Simple commands, to be put together.
const LEAVES: &[&str] = &[
    "p a",
    "p a >&-x",
    "p a 2>&- x",
    "q 'x y'",
    "r \"$v\"",
    "s $v",
    "p $w",
    "v=1",
    "v='a b'",
    "w=$v",
    "v=$(q; echo a)",
    "w=(a 'b c')",
    "p \"${w[@]}\"",
    "p ${w[1]}",
    "p $(q)",
    "p \"$(q b)\"",
    "p `q \\`r\\``",
    "p {a,b}{1..2}",
    "p $((1+2))",
    "p ${v:-$(q)}",
    "p \"${v:+$(r)}\"",
    "[ -n \"$v\" ]",
    "[[ $v == 1 ]]",
    "true",
    "false",
    ": $(p)",
    "eval 'p x; q'",
    "command p",
    "f",
    "f a",
    "g",
    "p <(q)",
    "p > /dev/null",
    "2>&1 p",
    "v=2 p",
    "set -- a b",
    "p \"$@\"",
    "p $1",
    "shift",
    "local z=1",
    "export v=7",
    "read v <<< 'a b'",
    "printf -v v x",
    "unset v",
    "((v=3))",
    "p $'a\\nb'",
    "p a\\ b",
    "p \"a\\\"b\"",
    "p x#y",
    "p ~",
    "p '*' \"?\"",
    "p a{b",
    "p {a}",
    "p =x",
    "p \"$v\"'c'$w",
    "v+=z",
    "p -- $#",
    "p $?",
    "return",
    "break",
    "continue",
    "trap 'p t' EXIT",
    "p \\\n b",
    "q \"a\nb\"",
    "p <<E\na $(q h) `r`\nE\n",
    "p <<'E'\n$(q)\nE\n",
    "p <<-E | q\n\tx\n\tE\n",
    "p # q",
    "p;#q\n",
    "cd /",
    "\\p a",
    "'q' b",
    "p $v$(r)",
    "let v=4",
    "declare v=5",
    "unset -f f",
    "exit",
];

fn leaf() -> impl Strategy<Value = String> {
    prop::sample::select(LEAVES).prop_map(str::to_owned)
}

fn line() -> impl Strategy<Value = String> {
    leaf().prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let three = (inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            4 => two.clone().prop_map(|(a, b)| format!("{a}; {b}")),
            3 => two.clone().prop_map(|(a, b)| format!("{a}\n{b}")),
            2 => two.clone().prop_map(|(a, b)| format!("{a} && {b}")),
            2 => two.clone().prop_map(|(a, b)| format!("{a} || {b}")),
            1 => two.clone().prop_map(|(a, b)| format!("{a} | {b}")),
            1 => two.clone().prop_map(|(a, b)| format!("{a} |& {b}")),
            1 => inner.clone().prop_map(|a| format!("( {a} )")),
            1 => inner.clone().prop_map(|a| format!("{{ {a}; }}")),
            1 => inner.clone().prop_map(|a| format!("! {a}")),
            1 => inner.clone().prop_map(|a| format!("time {a}")),
            1 => inner.clone().prop_map(|a| format!("{a} & wait")),
            2 => three.prop_map(|(a, b, c)| format!("if {a}; then {b}; else {c}; fi")),
            2 => two.clone().prop_map(|(a, b)| format!("if {a}\nthen {b}\nfi")),
            2 => inner.clone().prop_map(|a| format!("for v in 1 'a b' $w; do {a}; done")),
            1 => inner.clone().prop_map(|a| format!("for v\ndo {a}\ndone")),
            1 => inner.clone().prop_map(|a| format!("for ((i=0;i<2;i++)); do ( {a} ); done")),
            1 => inner.clone().prop_map(|a| format!("i=0; while [ $i -lt 2 ]; do i=$((i+1)); ( {a} ); done")),
            2 => two.clone().prop_map(|(a, b)| format!("case $v in 1) {a};; (a*|z) {b};& *) p;; esac")),
            2 => two.clone().prop_map(|(a, b)| format!("f() {{ {a}; }}; {b}")),
            1 => two.prop_map(|(a, b)| format!("function g {{ {a}; }}\n{b}")),
            1 => inner.clone().prop_map(|a| format!("p \"$({a})\"")),
            1 => inner.clone().prop_map(|a| format!("v=$({a})")),
            1 => inner.prop_map(|a| format!("q <<E\n$({a})\nE\n")),
        ]
    })
}

/// `PROPTEST_CASES` asks for more of them.
const CASES: u32 = 1500;

#[test]
fn bash_runs_nothing_but_what_is_said() {
    let usual = ProptestConfig::default();
    let config = ProptestConfig {
        cases: CASES.max(usual.cases),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..usual
    };
    let counted = std::cell::Cell::new(0_u32);
    TestRunner::new(config)
        .run(&line(), |line| {
            counted.set(counted.get() + u32::from(check(&line)));
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    let said = counted.get();
    assert!(said > 500, "only {said} lines were read");
}

/// Lines that are easily misread, and are read.
const READ: &[&str] = &[
    "p a#b #c\nq",
    "p <<A; q\n$(r)\nA\np x",
    "p <<'A B'\n$(r)\nA B\nq",
    "p <<-A\n\tA\nq",
    "cat() { p; }; cat x",
    "p() { q; }; p; unset -f p; p",
    "if true; then p() { q; }; fi; p",
    "f() { local v=1; p $v; }; v=2; f; p $v",
    "v=a; for v in b c; do p $v; done; q $v",
    "for f in a b; do [ $f = a ] && continue; p $f; done",
    "v=a; while true; do v=b; break; v=c; done; p $v",
    "p \"${v:-`q`}\"",
    "p $(q $(r $(s)))",
    "p \"$(q \"$(r)\")\"",
    "p `q \\`r \\\\\\`s\\\\\\`\\``",
    "case x in (x) p;; esac",
    "case $(q) in *) p; esac",
    "[[ a == a && -n $(p) ]] || q",
    "[[ ab =~ ^(a|b)+$ ]] && p",
    "((1)) && p",
    "p $((2*(3+4)))",
    "v='p q'; r $v",
    "set -- 'a b' c; p \"$@\"; q $2; shift; r $1",
    "p {a,b{1,2}}x {3..1}",
    "p a\\\nb",
    "p q\\\nr",
    "eval \"p 'a b'; q\"",
    "eval 'eval p'",
    "trap p EXIT; q",
    "p & q & wait",
    "{ p; } | { q; }",
    "! p | q",
    "true && p || q",
    "false && p || q",
    "p;q;",
    "p\n\n\nq\n",
    "{fd}>/dev/null p",
    "p 2>/dev/null >&2 <&-",
    "v=(a b); p \"${v[@]}\" ${#v[@]} ${v[0]}",
    "command -v p; p",
    "until p; do q; done",
    "p \"\" '' \"$nothing\"",
    "p $nothing a",
    "v=(a) p q; r",
    "v=a; p $v/{b,c} \"$v\"{b,c}; [ -n x ] && p [ a[b",
    "v=(a)>/dev/null p; (v=(a b))",
    "v=(a)&p;v=(b)|q",
];

/// Lines that bash reads in more than one way, or not at all.
const REFUSED: &[&str] = &[
    "$v p",
    "p $(",
    "p <<A\nx",
    "p; )",
    "if p",
    "p ((",
    "eval \"$x\"",
    "p ${!v}",
    "p ${v@P}",
    "IFS=x; p",
    "PATH=.; p",
    "shopt -s extglob\np",
    "alias p=q\np",
    "p <<A $(\nq)\nA\n",
    "for ((;;) do p; done",
    "p |",
    "p &&",
    "p;; q",
    "f(",
    "f() p",
    "p \"$\\\n(q)\"",
    "p $\\\n{v:-$(q)}",
    "v=1; p $v\\\nw",
    "p \"$v\\\nw\"",
    "p $(\\\n(v=1))",
    "(\\\n(v=1))",
    "p <\\\n(q)",
    "p &\\\n& q",
    "p <<E\n$\\\n(q)\nE\n",
    "p ${v\\\n:-$(q)}",
    "p\\\nq",
    "i\\\nf p; then q; fi",
    "[[ a =~ ^<(p) ]]",
    "[[ a == <(p) ]]",
    "v=a; p $v{b,c}",
    "v=a; p {$v,b}c",
    "p $v{1..1}",
    "v[ 0 ]=1 p",
    "v[ # ]=1; p",
    "v[\"]\" ]=1 p",
    "declare v[ # ]=1; p",
    "w=([1 # ]=x); p\n)",
    "v=(a)p q",
    "v=(a)'p' q",
    "v=(a)$(p)",
    "v=(a)<(p) q",
    "v=(a)#p",
    "v=(a)\\\np q",
    "v=(a)(b)",
    "declare v=(a)p",
    "p @(a)",
    "enable -n p",
    "set -o posix; p",
    "p\u{a0}q",
    "p\rq",
];

#[test]
fn lines_that_are_easily_misread() {
    for line in READ {
        let refusal = simple_commands(line).err();
        assert!(check(line), "{line:?} is refused: {refusal:?}");
    }
    for line in REFUSED {
        let said = simple_commands(line);
        assert!(said.is_err(), "{line:?}: {said:?}");
    }
}
