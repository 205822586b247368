//! `agent help`: commands, and pages of the manual.

use crate::support::cli::Cli;

fn help(words: &[&str]) -> Cli {
    Cli::new().arg("help").args(words)
}

#[test]
fn it_lists_commands_and_topics() {
    let listed = help(&[]).run().stdout;
    for expected in ["agent help TOPIC", "security", "sessions", "--max-turns"] {
        assert!(listed.contains(expected), "{expected}: {listed}");
    }
    assert!(!listed.contains("sandbox-forward"), "{listed}");
}

#[test]
fn it_shows_the_help_of_a_command_as_the_command_does() {
    for words in [vec!["check"], vec!["sessions", "list"]] {
        let shown = help(&words).run().stdout;
        let own = Cli::new().args(&words).arg("--help").run().stdout;
        assert_eq!(shown, own, "{words:?}");
    }
}

#[test]
fn an_unknown_word_is_a_wrong_flag() {
    for (word, hint) in [
        ("securty", "did you mean `agent help security`?"),
        ("zzzzzzzz", "`agent help` lists commands and topics"),
    ] {
        let refused = help(&[word]).expect_code(2).run();
        let expected = format!("error: unknown command or topic `{word}`\nhelp: {hint}\n");
        assert_eq!(refused.stderr, expected);
        assert_eq!(refused.stdout, "");
    }
}

/// What the page says of tests is so: each file that it names has tests.
#[test]
fn the_security_page_names_tests_that_are_there() {
    let page = help(&["security"]).run().stdout;
    let root = env!("CARGO_MANIFEST_DIR");
    let mut named = 0;
    for word in page.split('`').filter(|word| word.starts_with("tests/")) {
        let file = std::path::Path::new(root).join(word);
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(!text.is_empty(), "{word}");
        assert!(
            !word.ends_with(".rs") || text.contains("#[test]") || text.contains("#[tokio::test]"),
            "{word}"
        );
        named += 1;
    }
    assert!(named > 20, "only {named} tests are named");
}
