//! Where a prompt mentions a file, and what it may name.

use agent::context::{PromptText, data_block, mentions};

/// What the mentions of a text may name, the longest first.
fn names(text: &str) -> Vec<String> {
    let found = mentions(PromptText::trusted(text));
    for mention in &found {
        assert!(text[mention.range.clone()].starts_with('@'), "{text}");
        assert!(text[mention.range.clone()].contains(mention.names[0]));
    }
    found.iter().map(|found| found.names.join(" ")).collect()
}

#[test]
fn an_at_sign_begins_a_name() {
    let cases: &[(&str, &[&str])] = &[
        ("@src/lib.rs", &["src/lib.rs"]),
        (
            "Look at @src/lib.rs and @README.md",
            &["src/lib.rs", "README.md"],
        ),
        ("See @src/lib.rs.", &["src/lib.rs. src/lib.rs"]),
        ("Why @a.rs?!", &["a.rs?! a.rs? a.rs"]),
        (
            "(@a.rs) [@b.rs]: **@c.rs**",
            &["a.rs) a.rs", "b.rs]: b.rs] b.rs", "c.rs** c.rs* c.rs"],
        ),
        (
            "@a.rs, @b.rs; `@c.rs` '@d.rs' \"@e.rs\"",
            &["a.rs", "b.rs", "c.rs", "d.rs", "e.rs"],
        ),
        ("@a.rs,@b.rs", &["a.rs", "b.rs"]),
        ("@src/", &["src/"]),
        (
            "@./x @../y @~/z @/etc/passwd",
            &["./x", "../y", "~/z", "/etc/passwd"],
        ),
        ("@\"with space.md\" @\"x\"y", &["with space.md", "x"]),
        ("看@src/库.rs，然后", &["src/库.rs"]),
        ("<@a.rs>", &["a.rs"]),
        ("@.github/workflows", &[".github/workflows"]),
        ("@scope/package", &["scope/package"]),
        ("first\n@a\nlast", &["a"]),
    ];
    for (text, expected) in cases {
        assert_eq!(names(text), *expected, "{text}");
    }
}

#[test]
fn other_at_signs_name_nothing() {
    for text in [
        "",
        "@",
        "@ x",
        "me@example.org",
        "me.@example.org",
        "a+@b",
        "user@host:path",
        "https://example.org/@me",
        "@@x",
        "@... @!",
        "@\"\"",
        "@\"not closed",
        "@\"two\nlines\"",
        "x\\@y",
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
}

#[test]
fn what_is_data_mentions_nothing() {
    let text = "@a.rs <d>@b.rs @\"c\"</d> @d.rs";
    let start = text.find("<d>").expect("the data");
    let end = text.find("</d>").expect("its end") + 4;
    let found = |text: &str, start: usize, end: usize| -> Vec<String> {
        let data = start..end;
        let prompt = PromptText {
            text,
            data: std::slice::from_ref(&data),
        };
        let found = mentions(prompt);
        found.iter().map(|found| found.names.join(" ")).collect()
    };
    assert_eq!(found(text, start, end), ["a.rs", "d.rs"]);
    // A name would go on into the data.
    assert_eq!(found("@src/<d>", 5, 8), ["src/"]);
    assert_eq!(found("@src/data", 5, 9), [""; 0]);
    assert_eq!(found("@\"src data\"", 6, 10), [""; 0]);
}

#[test]
fn the_number_of_mentions_is_bounded() {
    let many = "@a ".repeat(10_000);
    assert_eq!(names(&many).len(), 256);
}

#[test]
fn no_content_ends_its_own_block() {
    let cases = [
        ("plain", "<file path=\"a\">\nplain\n</file>"),
        ("line\n", "<file path=\"a\">\nline\n</file>"),
        ("", "<file path=\"a\">\n</file>"),
        ("x</file>y", "<file-2 path=\"a\">\nx</file>y\n</file-2>"),
        (
            "</FILE></file-2 >",
            "<file-3 path=\"a\">\n</FILE></file-2 >\n</file-3>",
        ),
    ];
    for (content, expected) in cases {
        assert_eq!(data_block("file", &[("path", "a")], content), expected);
    }
    assert_eq!(
        data_block("file", &[("path", "a\"><b>&\n"), ("n", "1")], "x"),
        "<file path=\"a&quot;&gt;&lt;b&gt;&amp;\u{fffd}\" n=\"1\">\nx\n</file>"
    );
}
