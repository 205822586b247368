//! The file of providers: what is wrong with it, and that no report of it shows a
//! key.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::collections::BTreeMap;
use std::path::Path;

use agent::task::{Kind, load_providers};

use crate::own_file::load;

/// The codes of all problems with their lines, and words of the whole report.
fn check(providers: &str, expect: &[(&str, usize)], words: &str) {
    let problems = load(&format!("version: 1\nproviders:\n{providers}"))
        .expect_err(&format!("{providers} is right"));
    assert_eq!(problems.kind, Kind::Config, "{providers}");
    let found: Vec<(&str, usize)> = problems
        .list
        .iter()
        .map(|problem| (problem.code, problem.line))
        .collect();
    let report = problems.render(false);
    assert_eq!(found, expect, "{report}");
    assert!(report.contains(words), "{words} is not in\n{report}");
}

/// Providers with one mistake each: its code, its line, and words of the report.
const WRONG: &[(&str, &str, usize, &str)] = &[
    (
        "  a: {base_url: 'http://x', modles: {}}\n",
        "unknown_key",
        3,
        "did you mean `models`?",
    ),
    (
        "  a: {base_url: 'http://x', api: openai-chta}\n",
        "unknown_value",
        3,
        "did you mean `openai-chat`?",
    ),
    (
        "  a: {base_url: 'http://x'}\n  a: {base_url: 'http://x'}\n",
        "duplicate_key",
        4,
        "the key `a` is there twice",
    ),
    (
        "  a: {}\n",
        "missing_key",
        3,
        "`providers.a.base_url` is missing",
    ),
    (
        "  a: {models: {m: {base_url: 'http://x'}, n: }}\n",
        "missing_key",
        3,
        "base_url",
    ),
    (
        "  mistral: {api: anthropic-messages}\n",
        "missing_key",
        3,
        "base_url",
    ),
    (
        "  a: {base_url: 'x.example/v1'}\n",
        "bad_url",
        3,
        "`providers.a.base_url`: ",
    ),
    (
        "  a: {base_url: 'http://x?a=b'}\n",
        "bad_url",
        3,
        "`query` takes query parameters",
    ),
    (
        "  A b: {base_url: 'http://x'}\n",
        "bad_id",
        3,
        "cannot be the id of a provider",
    ),
    (
        "  openai-chat: {base_url: 'http://x'}\n",
        "bad_id",
        3,
        "`my-openai-chat`",
    ),
    (
        "  scripted: {base_url: 'http://x'}\n",
        "bad_id",
        3,
        "a meaning of its own",
    ),
    (
        "  a: {base_url: 'http://x', api_key_header: X}\n",
        "unused_key",
        3,
        "has no key to carry",
    ),
    (
        "  a: {base_url: 'http://x', api_key_env: K, api_key_header: X, api_key_query: y}\n",
        "conflict",
        3,
        "not both",
    ),
    (
        "  a: {base_url: 'http://x', headers: {Content-Length: '1'}}\n",
        "bad_header",
        3,
        "every call sets it itself",
    ),
    (
        "  a: {base_url: 'http://x', headers: {'a b': c}}\n",
        "bad_header",
        3,
        "cannot be the name of a header",
    ),
    (
        "  a: {base_url: 'http://x', headers_env: {X: BAD}}\n",
        "bad_header",
        3,
        "no header has",
    ),
    (
        "  a: {base_url: 'http://x', headers: {X-A: b}, headers_env: {x-a: TEAM}}\n",
        "conflict",
        3,
        "x-a has two values",
    ),
    (
        "  a: {base_url: 'http://x', headers: {X: 7}}\n",
        "wrong_type",
        3,
        "put it in quotes",
    ),
    (
        "  a:\n    base_url: http://x\n    models:\n      m: {context_window: 10, max_output_tokens: 11}\n",
        "out_of_range",
        6,
        "does not fit the window of 10",
    ),
    (
        "  a: {base_url: 'http://x', models: {m: {price: {input: -1, output: 1}}}}\n",
        "out_of_range",
        3,
        "at least 0",
    ),
    (
        "  a: {base_url: 'http://x', models: {m: {price: {input: 1}}}}\n",
        "missing_key",
        3,
        "`providers.a.models.m.price.output` is missing",
    ),
    (
        "  a: {base_url: 'http://x', models: {m: {thinking_levels: {hihg: x}}}}\n",
        "unknown_key",
        3,
        "did you mean `high`?",
    ),
    (
        "  a: {base_url: 'http://x', quirks: {stor: true}}\n",
        "unknown_key",
        3,
        "did you mean `store`?",
    ),
    (
        "  a: {base_url: 'http://x', quirks: {max_tokens_field: n_predict}}\n",
        "unknown_value",
        3,
        "`max_completion_tokens`",
    ),
    (
        "  a: {base_url: 'http://x', models: {m: {context_window: 8k}}}\n",
        "wrong_type",
        3,
        "a whole number",
    ),
];

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (providers, code, line, words) in WRONG {
        check(providers, &[(code, *line)], words);
    }
    check(
        "  a: []\n  b: {base_url: ftp://x}\n",
        &[("wrong_type", 3), ("bad_url", 4)],
        "2 problems",
    );
}

#[test]
fn a_file_that_is_none_is_told_too() {
    let code = |text: &str| {
        let problems = load(text).unwrap_err();
        (problems.kind, problems.list[0].code)
    };
    assert_eq!(code("providers: {}\n"), (Kind::Config, "missing_key"));
    assert_eq!(
        code("version: 2\nproviders: {}\n"),
        (Kind::Config, "out_of_range")
    );
    assert_eq!(code("version: 1\n"), (Kind::Config, "missing_key"));
    assert_eq!(code(""), (Kind::Config, "wrong_type"));
    assert_eq!(code("- a\n"), (Kind::Config, "wrong_type"));
    assert_eq!(
        code("version: 1\nproviders: {a: !x {}}\n"),
        (Kind::Config, "tag")
    );
    let none = load_providers(Path::new("/nowhere/p.yaml"), &BTreeMap::new(), None).unwrap_err();
    assert_eq!((none.kind, none.list[0].code), (Kind::NoInput, "no_input"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.yaml");
    let text = "version: 1\nproviders: {a: {base_url: 'http://x', api_key_file: ~/k}}\n";
    std::fs::write(&path, text).unwrap();
    let homeless = load_providers(&path, &BTreeMap::new(), None).unwrap_err();
    assert_eq!(homeless.list[0].code, "no_home");
}

#[test]
fn a_key_that_was_written_down_is_in_no_report() {
    const KEY: &str = "0123456789abcdef0123456789abcdef";
    for line in [
        format!("api_key: {KEY}"),
        format!("apikey: '{KEY}'"),
        format!("token: {KEY}"),
        format!("api_key_env: {KEY}-"),
        format!("headers: {{Authorization: \"Bearer {KEY}\", 'a b': c}}"),
        format!("query: {{key: {KEY}, n: 7}}"),
        format!("base_url: ftp://me:{KEY}@x"),
    ] {
        let text = format!("version: 1\nproviders:\n  a:\n    base_url: http://x\n    {line}\n");
        let problems = load(&text).expect_err(&line);
        let json = serde_json::to_string(&problems.list).unwrap();
        for shown in [problems.render(false), problems.to_string(), json] {
            assert!(!shown.contains(KEY), "{line}:\n{shown}");
        }
    }
}
