//! The built-in set: names, what models are told, paths and accesses.

use agent::access::Access;
use agent::tool::Toolset;
use serde_json::{Value, json};

use crate::tool_scene::Scene;

fn all() -> Toolset {
    let names: Vec<String> = Toolset::BUILT_IN
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    Toolset::built_in(&names)
}

#[test]
fn built_in_tools_are_sorted_and_unknown_names_left_out() {
    assert_eq!(
        all().names(),
        ["bash", "edit", "find", "grep", "ls", "read", "write"]
    );
    let some = ["write", "read", "nonsense", "read"].map(str::to_owned);
    assert_eq!(Toolset::built_in(&some).names(), ["read", "write"]);
    assert!(Toolset::built_in(&[]).names().is_empty());
}

#[test]
fn every_schema_is_closed_and_described() {
    for spec in all().specs() {
        let schema = &spec.parameters;
        assert_eq!(schema["type"], "object", "{}", spec.name);
        assert_eq!(schema["additionalProperties"], false, "{}", spec.name);
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{}.{name}", spec.name);
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(schema["properties"][required.as_str().unwrap()].is_object());
        }
        assert!(!spec.description.is_empty() && !spec.short_description.is_empty());
        assert!(!spec.guidelines.is_empty(), "{}", spec.name);
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("tool.json", schema.clone()).unwrap();
        compiler.compile("tool.json", &mut schemas).unwrap();
    }
}

#[test]
fn paths_resolve_by_their_text() {
    let scene = Scene::new();
    let home = scene.place.home.clone().unwrap();
    let check = |path: &str, expect: std::path::PathBuf| {
        let got = scene.accesses("read", json!({ "path": path })).unwrap();
        assert_eq!(got, [Access::Read(expect)], "{path}");
    };
    check("src/a.rs", scene.path("src/a.rs"));
    check("@src/a.rs", scene.path("src/a.rs"));
    check("./src/../b", scene.path("b"));
    check("../../../../../../../../x", "/x".into());
    check("/etc/./passwd", "/etc/passwd".into());
    check("/../etc//passwd/", "/etc/passwd".into());
    check("~", home.clone());
    check("~/.ssh/id", home.join(".ssh/id"));
    check("@~/x", home.join("x"));
    check("~/../y", home.parent().unwrap().join("y"));
    check("~other/x", scene.path("~other/x"));
    check(".", scene.root().to_owned());
}

#[test]
fn paths_that_mean_nothing_are_refused() {
    let mut scene = Scene::new();
    for path in ["", "  ", "@", "a\0b"] {
        for tool in ["read", "ls"] {
            assert!(
                scene.accesses(tool, json!({ "path": path })).is_err(),
                "{tool} {path:?}"
            );
        }
    }
    scene.place.home = None;
    let error = scene
        .accesses("read", json!({ "path": "~/x" }))
        .unwrap_err();
    assert!(error.contains("home"), "{error}");
}

#[test]
fn calls_state_what_they_touch() {
    let scene = Scene::new();
    let check = |tool: &str, args: Value, expect: Access| {
        assert_eq!(scene.accesses(tool, args).unwrap(), [expect], "{tool}");
    };
    check(
        "write",
        json!({"path": "a", "content": ""}),
        Access::Write(scene.path("a")),
    );
    let edits = json!([{"oldText": "a", "newText": "b"}]);
    check(
        "edit",
        json!({"path": "a", "edits": edits}),
        Access::Write(scene.path("a")),
    );
    check(
        "grep",
        json!({"pattern": "x"}),
        Access::Read(scene.root().to_owned()),
    );
    check(
        "find",
        json!({"pattern": "x", "path": "sub"}),
        Access::Read(scene.path("sub")),
    );
    check("ls", json!({}), Access::Read(scene.root().to_owned()));
    check(
        "bash",
        json!({"command": " ls -l"}),
        Access::Exec(" ls -l".to_owned()),
    );
    for command in ["", " \n", "a\0b"] {
        assert!(
            scene
                .accesses("bash", json!({ "command": command }))
                .is_err(),
            "{command:?}"
        );
    }
}

#[test]
fn titles_are_one_clean_line() {
    let check = |tool: &str, args: Value, expect: &str| {
        assert_eq!(all().find(tool).unwrap().title(&args), expect);
    };
    check("read", json!({"path": "src/a.rs"}), "read src/a.rs");
    check("bash", json!({"command": "cargo test"}), "bash cargo test");
    check(
        "bash",
        json!({"command": "a \u{1b}[31mb\nc"}),
        "bash a [31mb…",
    );
    check(
        "grep",
        json!({"pattern": "x", "path": "src"}),
        "grep x in src",
    );
    check("ls", json!({}), "ls");
    check("read", json!({}), "read ");
    let long = "x".repeat(500);
    check(
        "bash",
        json!({"command": long}),
        &format!("bash {}…", "x".repeat(120)),
    );
}

#[tokio::test]
async fn a_cancelled_call_does_nothing() {
    let scene = Scene::new();
    scene.put("a", "one\n");
    scene.cancel.cancel();
    for (tool, args) in [
        ("read", json!({"path": "a"})),
        ("ls", json!({})),
        ("grep", json!({"pattern": "one"})),
        ("find", json!({"pattern": "*"})),
        ("write", json!({"path": "b", "content": "x"})),
        ("bash", json!({"command": "touch c"})),
    ] {
        let output = scene.call(tool, args).await;
        assert_eq!(
            output.failure,
            Some(agent::tool::Failure::Aborted),
            "{tool}"
        );
    }
    assert!(!scene.path("b").exists() && !scene.path("c").exists());
}
