//! Real projects of four languages, built and tested by their own tools inside
//! each tier of the sandbox, under the rules that a user would write.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::sandbox_run::tiers;
use crate::support::cli::{Cli, path};

/// A project and how its tools are run.
struct Project {
    files: &'static [(&'static str, &'static str)],
    allow: &'static [&'static str],
    commands: &'static [&'static str],
    /// What the last command prints.
    printed: &'static str,
}

const RUST: Project = Project {
    files: &[
        (
            "Cargo.toml",
            "[package]\nname = \"adder\"\nversion = \"0.1.0\"\nedition = \"2021\"\nbuild = \"build.rs\"\n",
        ),
        (
            "build.rs",
            "fn main() {\n    let out = std::env::var(\"OUT_DIR\").unwrap();\n    \
             std::fs::write(out + \"/made.rs\", \"const MADE: i32 = 2;\").unwrap();\n}\n",
        ),
        (
            "src/lib.rs",
            "include!(concat!(env!(\"OUT_DIR\"), \"/made.rs\"));\npub fn add(a: i32) -> i32 { a + MADE }\n\
             #[test]\nfn adds() { assert_eq!(add(2), 4); }\n",
        ),
    ],
    allow: &["Bash(cargo check:*)", "Bash(cargo test:*)"],
    commands: &[
        "cargo check --offline",
        "cargo test --offline 2>&1 | tail -20",
    ],
    printed: "test result: ok. 1 passed",
};

const PYTHON: Project = Project {
    files: &[
        ("adder.py", "def add(a, b):\n    return a + b\n"),
        (
            "test_adder.py",
            "import concurrent.futures, tempfile, unittest\nfrom adder import add\n\n\
             class Adds(unittest.TestCase):\n    def test_adds(self):\n        \
             with tempfile.NamedTemporaryFile() as file:\n            file.write(b'x')\n        \
             with concurrent.futures.ThreadPoolExecutor() as pool:\n            \
             self.assertEqual(pool.submit(add, 2, 2).result(), 4)\n",
        ),
    ],
    allow: &[
        "Bash(python3 -m venv:*)",
        "Bash(.venv/bin/python -m unittest:*)",
    ],
    commands: &[
        "python3 -m venv --without-pip .venv",
        ".venv/bin/python -m unittest 2>&1",
    ],
    printed: "Ran 1 test",
};

const NODE: Project = Project {
    files: &[
        (
            "package.json",
            "{\"name\": \"adder\", \"type\": \"module\"}\n",
        ),
        ("adder.js", "export const add = (a, b) => a + b;\n"),
        (
            "adder.test.js",
            "import test from 'node:test';\nimport assert from 'node:assert';\n\
             import { add } from './adder.js';\ntest('adds', () => assert.equal(add(2, 2), 4));\n",
        ),
    ],
    allow: &["Bash(node --test:*)"],
    commands: &["node --test"],
    printed: "pass 1",
};

const GO: Project = Project {
    files: &[
        ("go.mod", "module example.com/adder\n\ngo 1.19\n"),
        (
            "adder.go",
            "package adder\n\nfunc Add(a, b int) int { return a + b }\n",
        ),
        (
            "adder_test.go",
            "package adder\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 2) != 4 {\n\t\t\
             t.Fatal(\"wrong\")\n\t}\n}\n",
        ),
    ],
    allow: &["Bash(go vet:*)", "Bash(go test:*)"],
    commands: &["go vet ./...", "go test ./..."],
    printed: "ok  \texample.com/adder",
};

/// Builds and tests it in each tier; `program` has to be in `path`.
fn works(project: &Project, program: &str, path: &str, env: &[(&str, PathBuf)]) {
    let found = path
        .split(':')
        .any(|directory| Path::new(directory).join(program).is_file());
    assert!(
        found,
        "this test needs `{program}`: .ci/run installs it on Debian"
    );
    for tier in tiers() {
        let mut script: Vec<Value> = Vec::new();
        for command in project.commands {
            let arguments = json!({ "command": command });
            script.push(json!({ "calls": [{ "name": "bash", "arguments": arguments }] }));
        }
        script.push(json!({ "text": "done" }));
        let task = json!({
            "version": 1,
            "prompt": "Build and test it.",
            "settings": { "model": "scripted/script.yaml" },
            "permissions": { "mode": "accept_edits", "allow": project.allow },
            "sandbox": { "mode": "require", "tier": tier },
            "limits": { "command_timeout": "50s" },
        });
        let mut cli = Cli::new()
            .file("task.yaml", task.to_string())
            .file("script.yaml", Value::from(script).to_string())
            .env("PATH", path)
            .args(["run", "task.yaml"]);
        for (name, text) in project.files {
            cli = cli.file(name, text);
        }
        for (name, value) in env {
            cli = cli.env(name, value);
        }
        let done = cli.run();
        let ends: Vec<Value> = done
            .events()
            .into_iter()
            .filter(|event| {
                let name = event["event"].as_str().unwrap_or_default();
                name == "tool:execution:complete" || name == "tool:execution:error"
            })
            .collect();
        assert_eq!(ends.len(), project.commands.len(), "{tier}: {ends:#?}");
        for end in &ends {
            assert_eq!(end["event"], "tool:execution:complete", "{tier}: {end:#}");
        }
        let last = ends.last().map(ToString::to_string).unwrap_or_default();
        let printed = json!(project.printed).to_string();
        assert!(last.contains(printed.trim_matches('"')), "{tier}: {last}");
    }
}

#[test]
fn a_rust_project_is_built_and_tested_in_each_tier() {
    // The toolchain that builds these tests, whatever finds it.
    let bin = Path::new(env!("CARGO"))
        .parent()
        .expect("cargo is in a directory");
    let path = format!("{}:{}", bin.display(), path().to_string_lossy());
    let rustup = bin
        .ancestors()
        .nth(3)
        .filter(|home| home.join("toolchains").is_dir());
    let env: Vec<(&str, PathBuf)> = rustup
        .map(|home| ("RUSTUP_HOME", home.to_owned()))
        .into_iter()
        .collect();
    works(&RUST, "cargo", &path, &env);
}

#[test]
fn a_python_project_is_tested_in_a_virtual_environment_in_each_tier() {
    works(&PYTHON, "python3", "/usr/bin:/bin", &[]);
}

#[test]
fn a_node_project_is_tested_in_each_tier() {
    works(&NODE, "node", &path().to_string_lossy(), &[]);
}

#[test]
fn a_go_project_is_built_and_tested_in_each_tier() {
    works(&GO, "go", &path().to_string_lossy(), &[]);
}
