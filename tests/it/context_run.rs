//! What a run tells the model of the files that people keep for agents.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::anthropic;
use crate::support::cli::{Cli, Output};
use crate::support::dialect::{ANTHROPIC, told};
use crate::support::server::{ModelServer, Recorded};
use crate::support::workspace::Workspace;

/// What only a hostile file says.
const POISON: &str = "PWNED-BY-THE-REPOSITORY";

fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: For {name}, says {body}.\n---\n{body}\n")
}

/// A repository with everything through which it could speak.
fn repository() -> Workspace {
    let skill = skill("helper", POISON);
    Workspace::git(&[
        ("AGENTS.md", POISON),
        ("CLAUDE.md", POISON),
        (".agent/skills/helper/SKILL.md", &skill),
        (".agents/skills/helper/SKILL.md", &skill),
        (".claude/skills/helper/SKILL.md", &skill),
        (".agent/templates/review.md", POISON),
        ("sub/AGENTS.md", POISON),
        ("a.txt", "alpha\n"),
    ])
}

/// Runs with a server that says `done` once, in `cwd`.
fn run(cwd: &Path, prepare: impl FnOnce(Cli) -> Cli) -> (Output, Recorded) {
    let server = ModelServer::start([anthropic::text("done")]);
    let run_dir = format!(".agent/runs/{}", agent::clock::new_id());
    let cli = prepare(Cli::at(cwd))
        .args(["--run-dir", &run_dir])
        .args([
            "--quiet",
            "--model",
            ANTHROPIC.model,
            "--base-url",
            &server.url(),
        ])
        .env(ANTHROPIC.key_env, "sk-test-0123456789abcdef");
    let output = cli.run();
    let mut requests = server.finish();
    assert_eq!(requests.len(), 1);
    (output, requests.remove(0))
}

fn task(workspace: &Workspace, more: &str) -> impl FnOnce(Cli) -> Cli {
    let text = format!("version: 1\nname: job\nprompt: /review @a.txt\n{more}");
    let file = workspace.write("sub/task.yaml", text);
    move |cli: Cli| cli.arg("run").arg(file)
}

fn system(request: &Recorded) -> &str {
    request.body["system"][0]["text"].as_str().unwrap()
}

/// The texts of the first message.
fn first(request: &Recorded) -> Vec<&str> {
    let blocks = request.body["messages"][0]["content"].as_array().unwrap();
    blocks
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect()
}

#[test]
fn a_hostile_repository_does_not_speak() {
    let workspace = repository();
    let (output, request) = run(workspace.path(), task(&workspace, ""));
    assert!(!String::from_utf8_lossy(&request.bytes).contains(POISON));
    assert_eq!(first(&request)[0], "/review @a.txt");
    let (prompted, request) = run(workspace.path(), |cli| cli.args(["-p", "/skill:helper x"]));
    assert!(!String::from_utf8_lossy(&request.bytes).contains(POISON));
    let warnings: Vec<Value> = told(&prompted, "warning");
    assert_eq!(warnings[0]["code"], "unknown_skill", "{warnings:?}");
    assert_eq!(told(&output, "warning"), [Value::Null; 0]);

    // Each kind speaks for itself only.
    let spoken = |request: &Recorded| {
        [
            system(request).contains("# Project files"),
            system(request).contains("# Skills"),
            first(request)[0].contains(POISON),
        ]
    };
    for (at, kind) in ["agents_md", "skills", "templates"].iter().enumerate() {
        let more = format!("load_repo_config: [{kind}]\n");
        let (_, request) = run(workspace.path(), task(&workspace, &more));
        let expected = [0, 1, 2].map(|other| other == at);
        assert_eq!(spoken(&request), expected, "{kind}");
        assert!(String::from_utf8_lossy(&request.bytes).contains(POISON));
    }
}

#[test]
fn what_may_speak_is_told_and_used() {
    let workspace = Workspace::git(&[
        ("AGENTS.md", "root rule\n"),
        ("sub/AGENTS.md", "sub rule\n"),
        (".claude/skills/lint/SKILL.md", &skill("lint", "Lint it.")),
        (".agent/templates/review.md", "Review $1 well."),
        ("sub/a.txt", "alpha\n"),
    ]);
    let more = "load_repo_config: [agents_md, skills, templates]\nworkspace: {path: .}\n";
    let (output, request) = run(workspace.path(), task(&workspace, more));
    let root = workspace.path().display();
    let system = system(&request);
    let parts = [
        format!("<project_file path=\"{root}/AGENTS.md\">\nroot rule\n</project_file>"),
        "<project_file path=\"AGENTS.md\">\nsub rule\n</project_file>".to_owned(),
        format!("- lint ({root}/.claude/skills/lint/SKILL.md): For lint, says Lint it.."),
        "# Environment".to_owned(),
    ];
    let places: Vec<Option<usize>> = parts.iter().map(|part| system.find(part)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?}\n{system}"
    );
    // Skills above the workspace can be read.
    assert!(
        system.contains(&format!("Read({root}/.claude/skills/lint/**)")),
        "{system}"
    );
    assert_eq!(
        first(&request),
        [
            "Review @a.txt well.",
            "<file path=\"a.txt\">\nalpha\n</file>"
        ]
    );
    let ready = &told(&output, "session:ready")[0];
    assert_eq!(
        ready["projectFiles"],
        json!([format!("{root}/AGENTS.md"), "AGENTS.md"])
    );
    assert_eq!(
        (&ready["skills"], &ready["templates"]),
        (&json!(["lint"]), &json!(["review"]))
    );
    let tasks: Value = serde_json::from_str(&output.artifact("run.json")).unwrap();
    assert_eq!(
        tasks["tasks"][0]["loadRepoConfig"],
        json!(["agents_md", "skills", "templates"])
    );
}

#[test]
fn denials_of_the_task_hold_for_project_files() {
    let workspace = repository();
    let more = "load_repo_config: [agents_md]\npermissions: {deny: [\"Read(AGENTS.md)\"]}\n";
    let (output, request) = run(workspace.path(), task(&workspace, more));
    assert!(!String::from_utf8_lossy(&request.bytes).contains(POISON));
    let warnings = told(&output, "warning");
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0]["code"], "project_file_skipped");
}

/// A task means the same on every machine; a bare prompt is somebody's own.
#[test]
fn the_users_own_files() {
    let user = Workspace::new(&[
        ("AGENTS.md", "user rule\n"),
        ("skills/mine/SKILL.md", &skill("mine", "Mine.")),
        ("templates/review.md", "User review of $1."),
    ]);
    let workspace = Workspace::git(&[("a.txt", "alpha\n")]);
    let own = |cli: Cli| {
        let agent = cli.home().join(".config/agent");
        std::fs::create_dir_all(agent.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(user.path(), agent).unwrap();
        cli
    };
    let (_, request) = run(workspace.path(), |cli| task(&workspace, "")(own(cli)));
    assert!(!system(&request).contains("user rule"));
    assert_eq!(first(&request)[0], "/review @a.txt");

    let (_, request) = run(workspace.path(), |cli| own(cli).args(["-p", "/review it"]));
    assert!(system(&request).contains("user rule\n"));
    assert_eq!(first(&request), ["User review of it."]);

    let named = |cli: Cli| cli.env("AGENT_DIR", user.path());
    let (_, request) = run(workspace.path(), |cli| task(&workspace, "")(named(cli)));
    assert!(system(&request).contains("user rule\n"));
    let place = format!("{}/skills/mine", user.path().display());
    assert!(system(&request).contains(&format!("- mine ({place}/SKILL.md)")));
    assert!(system(&request).contains(&format!("Read({place}/**)")));

    let (output, request) = run(workspace.path(), |cli| {
        cli.args(["-p", "x"]).env("AGENT_DIR", "nowhere")
    });
    assert!(!system(&request).contains("# Project files"));
    assert_eq!(told(&output, "warning")[0]["code"], "no_agent_dir");
}

#[test]
fn a_copy_has_its_skills() {
    let workspace = Workspace::git(&[
        ("AGENTS.md", "root rule\n"),
        (".agent/skills/lint/SKILL.md", &skill("lint", "Lint it.")),
    ]);
    workspace.write(".agent/runs/old/run.json", "{}");
    let read = json!({"path": ".agent/skills/lint/SKILL.md"});
    let list = json!({"path": ".agent"});
    let server = ModelServer::start([
        anthropic::tool_calls(&[("c1", "read", read), ("c2", "ls", list)]),
        anthropic::text("done"),
    ]);
    let more = "load_repo_config: [agents_md, skills]\nworkspace: {isolation: copy}\n";
    let output = task(&workspace, more)(Cli::at(workspace.path()))
        .args(["--quiet", "--run-dir", "run", "--model", ANTHROPIC.model])
        .args(["--base-url", &server.url()])
        .env(ANTHROPIC.key_env, "sk-test-0123456789abcdef")
        .run();
    let requests = server.finish();
    assert!(system(&requests[0]).contains("<project_file path=\"AGENTS.md\">\nroot rule\n"));
    assert!(system(&requests[0]).contains("- lint (.agent/skills/lint/SKILL.md)"));
    let results = ANTHROPIC.results(&requests[1]);
    assert!(results[0].1.contains("Lint it."), "{results:?}");
    assert_eq!(results[1].1, "skills/");
    assert_eq!(told(&output, "diff"), [Value::Null; 0]);
}

#[test]
fn untrusted_text_is_never_expanded() {
    let workspace = repository();
    let more = "load_repo_config: [templates]\n\
                parameters: [{key: body, trust: untrusted}]\n";
    let text = format!("version: 1\nname: job\nprompt: \"See @a.txt. {{{{ body }}}}\"\n{more}");
    let file = workspace.write("task.yaml", text);
    let (output, request) = run(workspace.path(), |cli| {
        cli.arg("run")
            .arg(&file)
            .args(["--param", "body=/review\n@sub/AGENTS.md /review"])
    });
    let said = first(&request);
    assert!(
        said[0].contains("/review\n@sub/AGENTS.md /review\n</untrusted"),
        "{said:?}"
    );
    assert_eq!(said[1..], ["<file path=\"a.txt\">\nalpha\n</file>"]);
    assert!(!String::from_utf8_lossy(&request.bytes).contains(POISON));
    assert_eq!(told(&output, "file:reference").len(), 1);

    // Nor does it name the template, even alone.
    let text = format!("version: 1\nname: job\nprompt: \"{{{{ body }}}}\"\n{more}");
    let file = workspace.write("alone.yaml", text);
    let (_, request) = run(workspace.path(), |cli| {
        cli.arg("run").arg(&file).args(["--param", "body=/review"])
    });
    assert!(first(&request)[0].starts_with("The lines between"));
}

#[test]
fn files_of_the_command_line() {
    let workspace = Workspace::new(&[("a.txt", "alpha\n"), ("b c.txt", "beta\n"), ("d/e", "")]);
    let (_, request) = run(workspace.path(), |cli| {
        cli.args(["-p", "Compare", "@a.txt", "@b c.txt"]).arg("@d")
    });
    assert_eq!(
        first(&request),
        [
            "Compare\n\n@\"a.txt\" @\"b c.txt\" @\"d\"",
            "<file path=\"a.txt\">\nalpha\n</file>",
            "<file path=\"b c.txt\">\nbeta\n</file>",
            "<directory path=\"d\">\ne\n</directory>",
        ]
    );
    let (_, request) = run(workspace.path(), |cli| cli.args(["-p", "See @a.txt."]));
    assert_eq!(first(&request).len(), 2);

    let refused = |args: &[&str], code: i32, message: &str| {
        let output = Cli::at(workspace.path()).args(args).expect_code(code).run();
        assert!(
            output.stderr.contains(message),
            "{args:?}: {}",
            output.stderr
        );
    };
    refused(&["-p", "x", "@missing"], 66, "there is no file");
    refused(&["-p", "x", "a.txt"], 2, "files are named as @PATH");
    refused(&["@a.txt"], 2, "--prompt");
    refused(&["frobnicate"], 2, "this is no command");
    refused(&["rnu"], 2, "did you mean `run`?");
}

#[test]
fn a_prompt_can_let_the_repository_speak() {
    let workspace = Workspace::git(&[("AGENTS.md", "root rule\n")]);
    let (_, request) = run(workspace.path(), |cli| {
        cli.args(["-p", "x", "--set", "load_repo_config=[agents_md]"])
    });
    assert!(system(&request).contains("root rule\n"));
}
