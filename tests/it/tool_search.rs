//! The `grep`, `find` and `ls` tools.

use serde_json::{Value, json};

use crate::tool_scene::{Scene, text};

fn tree() -> Scene {
    let scene = Scene::new();
    scene
        .put("src/main.rs", "fn main() {\n    run();\n}\n")
        .put("src/deep/run.rs", "pub fn run() {}\n// Run it\n")
        .put("b.txt", "run\r\nrun (it)\r\n")
        .put(".gitignore", "target/\n*.log\n")
        .put("target/out.rs", "fn run() {}\n")
        .put("trace.log", "run\n")
        .put(".env", "run=secret\n")
        .put(".github/ci.yml", "run: x\n")
        .put(".git/config", "run\n")
        .put("image.bin", b"run\0run\n");
    scene
}

#[tokio::test]
async fn grep_gives_sorted_lines() {
    let scene = tree();
    let check = async |args: Value, expect: &str| {
        assert_eq!(scene.ok("grep", args.clone()).await, expect, "{args}");
    };
    check(
        json!({"pattern": r"run\("}),
        "src/deep/run.rs:1:pub fn run() {}\nsrc/main.rs:2:    run();",
    )
    .await;
    check(
        json!({"pattern": "run (it)", "literal": true}),
        "b.txt:2:run (it)",
    )
    .await;
    check(json!({"pattern": "^run$"}), "b.txt:1:run").await;
    check(
        json!({"pattern": "RUN IT", "ignore_case": true}),
        "src/deep/run.rs:2:// Run it",
    )
    .await;
    check(
        json!({"pattern": "fn", "glob": "main.*"}),
        "src/main.rs:1:fn main() {",
    )
    .await;
    check(
        json!({"pattern": "fn", "glob": "src/*.rs"}),
        "src/main.rs:1:fn main() {",
    )
    .await;
    check(
        json!({"pattern": "fn", "glob": "!main.rs"}),
        "src/deep/run.rs:1:pub fn run() {}",
    )
    .await;
    check(
        json!({"pattern": "fn", "path": "src/deep"}),
        "src/deep/run.rs:1:pub fn run() {}",
    )
    .await;
    check(
        json!({"pattern": "run", "path": ".github"}),
        ".github/ci.yml:1:run: x",
    )
    .await;
    check(
        json!({"pattern": "run", "path": "trace.log"}),
        "trace.log:1:run",
    )
    .await;
    check(json!({"pattern": "secret"}), "no matches").await;
    check(json!({"pattern": "secret", "glob": ".env*"}), "no matches").await;
    check(json!({"pattern": "run", "path": "image.bin"}), "no matches").await;
}

#[tokio::test]
async fn grep_shows_surroundings() {
    let scene = Scene::new();
    scene.put("a", "1\n2\nX\n4\n5\n6\n7\nX\n9\n");
    assert_eq!(
        scene
            .ok("grep", json!({"pattern": "X", "context": 1}))
            .await,
        "a-2-2\na:3:X\na-4-4\n--\na-7-7\na:8:X\na-9-9"
    );
}

#[tokio::test]
async fn grep_stops_at_its_limits() {
    let scene = Scene::new();
    scene.put("a", "hit\n".repeat(150)).put("b", "hit\n");
    let output = scene.call("grep", json!({"pattern": "hit"})).await;
    assert!(output.truncated);
    assert_eq!(output.summary, "100 matches or more in 1 file");
    assert!(
        text(&output)
            .ends_with("a:100:hit\n\n[the first 100 matches are shown; narrow the search]")
    );
    let all = scene
        .call("grep", json!({"pattern": "hit", "limit": 151}))
        .await;
    assert_eq!(
        (all.summary.as_str(), all.truncated),
        ("151 matches in 2 files", false)
    );

    let line = format!("{}needle{}\n", "x".repeat(3000), "y".repeat(3000));
    scene.put("long", line);
    let cut = scene
        .ok("grep", json!({"pattern": "needle", "path": "long"}))
        .await;
    assert!(
        cut.starts_with("long:1:…xxx") && cut.contains("needleyyy") && cut.len() < 700,
        "{cut}"
    );

    scene.put("giant", format!("{}hit\n", "z".repeat(9 * 1024 * 1024)));
    let skipped = scene
        .ok("grep", json!({"pattern": "zhit", "path": "giant"}))
        .await;
    assert_eq!(skipped, "no matches\n\n[1 entry could not be read]");
}

#[tokio::test]
async fn grep_refuses_what_it_cannot_search() {
    let scene = tree();
    let check = async |args: Value, expect: &str| {
        let why = scene.refused("grep", args).await;
        assert!(why.contains(expect), "{why}");
    };
    check(json!({"pattern": "("}), "the pattern is not usable").await;
    check(json!({"pattern": "a\nb"}), "the pattern is not usable").await;
    check(json!({"pattern": "x", "glob": "[a"}), "`[a` is not a glob").await;
    check(
        json!({"pattern": "x", "path": "scr"}),
        "did you mean `src`?",
    )
    .await;
    check(json!({"pattern": "x", "path": "/dev/zero"}), "is a device").await;
}

#[tokio::test]
async fn walks_follow_no_links_and_wait_for_nothing() {
    let scene = Scene::new();
    let outside = Scene::new();
    outside.put("o.txt", "hit\n");
    scene.put("in.txt", "hit\n");
    std::os::unix::fs::symlink(outside.root(), scene.path("out")).unwrap();
    std::os::unix::fs::symlink(outside.path("o.txt"), scene.path("file")).unwrap();
    std::os::unix::fs::symlink(".", scene.path("loop")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.path("fifo"), rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(
        scene.ok("grep", json!({"pattern": "hit"})).await,
        "in.txt:1:hit"
    );
    assert_eq!(
        scene.ok("find", json!({"pattern": "*.txt"})).await,
        "in.txt"
    );
    assert_eq!(
        scene.ok("ls", json!({})).await,
        "fifo\nfile\nin.txt\nloop/\nout/"
    );
    // A link that is named is looked into: policy has judged where it leads.
    assert_eq!(
        scene
            .ok("grep", json!({"pattern": "hit", "path": "out"}))
            .await,
        "out/o.txt:1:hit"
    );
}

#[tokio::test]
async fn find_matches_names_and_paths() {
    let scene = tree();
    let check = async |args: Value, expect: &str| {
        assert_eq!(scene.ok("find", args.clone()).await, expect, "{args}");
    };
    check(json!({"pattern": "*.rs"}), "src/deep/run.rs\nsrc/main.rs").await;
    check(json!({"pattern": "src/*"}), "src/deep/\nsrc/main.rs").await;
    check(json!({"pattern": "**/deep/**"}), "src/deep/run.rs").await;
    check(json!({"pattern": "*.{txt,md}"}), "b.txt").await;
    check(
        json!({"pattern": "run.rs", "path": "src"}),
        "src/deep/run.rs",
    )
    .await;
    check(json!({"pattern": "*.log"}), "no names match").await;
    check(json!({"pattern": "*.yml"}), "no names match").await;
    check(json!({"pattern": ".github/*.yml"}), ".github/ci.yml").await;
    check(json!({"pattern": "config"}), "no names match").await;
    check(
        json!({"pattern": "*", "limit": 1}),
        "b.txt\n\n[the first 1 names are shown; there are more: narrow the pattern or the path]",
    )
    .await;
    assert!(
        scene
            .refused("find", json!({"pattern": "*", "path": "b.txt"}))
            .await
            .contains("is a file")
    );
}

#[tokio::test]
async fn find_stops_at_a_thousand_names() {
    let scene = Scene::new();
    for number in 0..1010 {
        scene.put(&format!("f{number:04}"), "");
    }
    let output = scene.call("find", json!({"pattern": "f*"})).await;
    assert!(output.truncated);
    assert_eq!(output.summary, "1000 or more names");
    assert!(text(&output).contains("f0999\n\n[the first 1000 names"));
}

#[tokio::test]
async fn ls_sorts_and_limits() {
    let scene = Scene::new();
    scene
        .put("b", "")
        .put("A/x", "")
        .put("C", "")
        .put(".hidden", "")
        .put("a\nb", "");
    assert_eq!(
        scene.ok("ls", json!({})).await,
        "\"a\\nb\"\n.hidden\nA/\nb\nC"
    );
    let output = scene.call("ls", json!({"limit": 2})).await;
    assert_eq!(
        text(&output),
        "\"a\\nb\"\n.hidden\n\n[2 of 5 entries are shown]"
    );
    assert!(output.truncated);
    std::fs::create_dir(scene.path("empty")).unwrap();
    assert_eq!(
        scene.ok("ls", json!({"path": "empty"})).await,
        "(the directory is empty)"
    );
    assert!(
        scene
            .refused("ls", json!({"path": "b"}))
            .await
            .contains("is a file")
    );
    for number in 0..600 {
        scene.put(&format!("many/f{number:03}"), "");
    }
    let many = scene.ok("ls", json!({"path": "many"})).await;
    assert!(
        many.starts_with("f000\n") && many.ends_with("f499\n\n[500 of 600 entries are shown]"),
        "{many}"
    );
}

#[tokio::test]
async fn deep_trees_are_walked() {
    let scene = Scene::new();
    let mut dir = scene.root().to_owned();
    for _ in 0..200 {
        dir.push("d");
    }
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("leaf.txt"), "hit\n").unwrap();
    let found = scene.ok("grep", json!({"pattern": "hit"})).await;
    assert!(found.ends_with("d/leaf.txt:1:hit"), "{found}");
}
