//! Text of tools and models does nothing to a terminal or a CI runner.

use agent::report::{cut, neutral, neutral_line};
use proptest::prelude::*;

#[test]
fn one_line_without_controls() {
    for (input, expect) in [
        ("plain text", "plain text"),
        ("  two\n\tlines \r\n", "two lines"),
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{1b}[38;2;1;2;3mtrue\u{1b}[m", "true"),
        ("\u{1b}]0;title\u{7}shown", "shown"),
        ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
        ("\u{1b}]never ends\nnext", "next"),
        ("\u{1b}Pdevice\u{1b}\\after", "after"),
        ("\u{1b}(Bcharset", "charset"),
        ("\u{1b}cfull reset", "full reset"),
        ("\u{9b}31mC1", "C1"),
        ("\u{9d}0;title\u{9c}C1", "C1"),
        ("back\u{8}\u{8}space\u{7}\0", "backspace"),
        ("cut off \u{1b}[", "cut off"),
        ("cut off \u{1b}", "cut off"),
        ("admin\u{202e}txt.exe\u{2066}", "admintxt.exe"),
        ("zero\u{200b}width\u{feff}\u{ad}", "zerowidth"),
        ("tag\u{e0041}s", "tags"),
        ("a\u{2028}b\u{85}c", "a b c"),
        ("größe ✓ 漢字", "größe ✓ 漢字"),
        ("", ""),
    ] {
        assert_eq!(neutral(input), expect, "{input:?}");
    }
}

#[test]
fn workflow_commands_are_defused() {
    for (input, expect) in [
        ("::set-env name=A::b", ": :set-env name=A::b"),
        ("  ::add-mask::x", ": :add-mask::x"),
        ("crate::path::Item", "crate::path::Item"),
        ("std ::path", "std ::path"),
        ("##[error]x", "# #[error]x"),
        ("text ##[group]x", "text # #[group]x"),
        ("##vso[task.setvariable]x", "# #vso[task.setvariable]x"),
        ("##VSO[task]x ##vso[b]", "# #VSO[task]x # #vso[b]"),
        ("##teamcity[x]", "# #teamcity[x]"),
        ("###[x", "## #[x"),
        ("## heading", "## heading"),
        ("#\u{200b}#[error]hidden joint", "# #[error]hidden joint"),
        (":\u{1b}[0m:error::joined", ": :error::joined"),
        (
            "section_start:1:x\r\u{1b}[0Ktitle",
            "section_start:1:x title",
        ),
    ] {
        assert_eq!(neutral(input), expect, "{input:?}");
    }
}

#[test]
fn a_line_keeps_its_layout() {
    for (input, expect) in [
        ("+\tindented  twice", "+    indented  twice"),
        (" ::error::context", " : :error::context"),
        ("-\u{1b}[2Kgone  ", "-gone"),
    ] {
        assert_eq!(neutral_line(input), expect, "{input:?}");
    }
}

#[test]
fn a_cut_counts_columns() {
    for (text, columns, expect) in [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("漢字漢字", 8, "漢字漢字"),
        ("漢字漢字", 7, "漢字漢…"),
        ("漢字漢字", 6, "漢字…"),
        ("abc", 1, "…"),
    ] {
        assert_eq!(cut(text, columns, "…"), expect, "{text} {columns}");
    }
    assert_eq!(cut("abcdefgh", 6, "..."), "abc...");
}

proptest! {
    #[test]
    fn nothing_dangerous_is_left(text in ".{0,40}", joint in "[#:\\[vso\u{1b}\u{200b}\u{9b}; m]{0,12}") {
        for clean in [neutral(&format!("{joint}{text}")), neutral_line(&format!("{joint}{text}"))] {
            prop_assert!(!clean.chars().any(char::is_control), "{clean:?}");
            prop_assert!(!clean.trim_start().starts_with("::"), "{clean:?}");
            prop_assert!(!clean.contains("##[") && !clean.contains("##vso["), "{clean:?}");
            prop_assert_eq!(&neutral_line(&clean), &clean, "it is stable");
        }
    }
}
