//! Commands that the user runs beside the conversation.

use std::sync::Arc;
use std::time::Duration;

use agent::policy::{Permissions, Policy, Surroundings};
use agent::process::CommandSandbox;
use agent::secret::Redactor;
use agent::session::{
    BashOptions, PromptOptions, Session, SessionError, TranscriptKind, TranscriptSource, Workbench,
};
use agent::store::{BashExecution, EntryKind};
use agent::tool::{CommandSettings, Place, ToolOutput, Toolset};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::support::session::{Stage, TestTool, calls, expecting, text};

/// Runs a command and gives what is kept of it, without the time.
async fn run(session: &Session, command: &str, options: BashOptions) -> BashExecution {
    let ran = session.execute_bash(command, options, |_| {}).await;
    BashExecution {
        timestamp: 0,
        ..ran.unwrap().as_ref().clone()
    }
}

/// What the entries behind the model and the level say.
fn entries(session: &Session) -> Vec<String> {
    let entries = session.tree().entries();
    let told = entries.iter().skip(2).map(|entry| match &entry.kind {
        EntryKind::BashExecution(ran) => format!("$ {}", ran.command),
        EntryKind::Message(message) => {
            let message = serde_json::to_value(message.as_ref()).unwrap();
            message["role"].as_str().unwrap().to_owned()
        }
        other => other.type_name().to_owned(),
    });
    told.collect()
}

#[tokio::test]
async fn a_command_is_kept_and_read_by_the_model_with_the_next_prompt() {
    let seen = json!({"contains": ["echo one; echo two", "one\ntwo", "exit code 3"]});
    let mut play = Stage::new(json!([expecting(text("done"), seen)]))
        .open()
        .await;
    let mut chunks = String::new();
    let command = "echo one; echo two; exit 3";
    let ran = play
        .session
        .execute_bash(command, BashOptions::default(), |chunk| chunks += chunk)
        .await
        .unwrap();
    assert_eq!(chunks, "one\ntwo\n");
    assert!(ran.timestamp > 0);
    assert_eq!(
        *ran,
        BashExecution {
            command: command.to_owned(),
            output: "one\ntwo\n".to_owned(),
            exit_code: Some(3),
            timestamp: ran.timestamp,
            ..BashExecution::default()
        }
    );
    assert_eq!(entries(&play.session), ["$ echo one; echo two; exit 3"]);
    let told = play.session.transcript();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].source, TranscriptSource::Shell);
    assert_eq!(
        told[0].kind,
        TranscriptKind::Command {
            command: command.to_owned(),
            output: "one\ntwo\n".to_owned(),
            exit_code: Some(3),
        }
    );
    assert_eq!(play.prompt("go").await.unwrap().text, "done");
    assert_eq!(play.end().await.speakers(), "uua");
}

#[tokio::test]
async fn a_command_may_be_kept_from_the_model() {
    let mut play = Stage::new(json!([text("done")])).open().await;
    let options = BashOptions {
        exclude_from_context: true,
        ..BashOptions::default()
    };
    let ran = run(&play.session, "echo quiet", options).await;
    assert!(ran.exclude_from_context);
    assert_eq!(entries(&play.session), ["$ echo quiet"]);
    play.prompt("go").await.unwrap();
    assert_eq!(play.end().await.speakers(), "ua");
}

#[tokio::test]
async fn every_end_of_a_command_is_told() {
    let play = Stage::new(json!([])).open().await;
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let stopped = BashOptions {
        cancel: cancelled,
        ..BashOptions::default()
    };
    let short = BashOptions {
        timeout: Some(Duration::from_millis(100)),
        ..BashOptions::default()
    };
    let usual = BashOptions::default;
    let table = [
        ("true", usual(), "", Some(0), false),
        ("exit 7", usual(), "", Some(7), false),
        (
            "echo dying; kill -9 $$",
            usual(),
            "dying\n[killed by signal 9 (SIGKILL, perhaps out of memory)]",
            None,
            false,
        ),
        (
            "printf begun; sleep 30",
            short,
            "begun\n[timed out after 0.1 s and was stopped]",
            None,
            false,
        ),
        ("sleep 30", stopped, "", None, true),
    ];
    for (command, options, output, exit_code, cancelled) in table {
        let ran = run(&play.session, command, options).await;
        let expect = BashExecution {
            command: command.to_owned(),
            output: output.to_owned(),
            exit_code,
            cancelled,
            ..BashExecution::default()
        };
        assert_eq!(ran, expect);
    }
    assert_eq!(entries(&play.session).len(), 5);
    for command in ["", " \n", "echo \0"] {
        let refused = play
            .session
            .execute_bash(command, BashOptions::default(), |_| {})
            .await;
        assert!(matches!(refused, Err(SessionError::Command(_))));
    }
    assert_eq!(entries(&play.session).len(), 5);
    play.end().await;
}

#[tokio::test]
async fn a_command_beside_a_prompt_is_kept_when_that_ends() {
    let (called, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (calling, going) = (Arc::clone(&called), Arc::clone(&go_on));
    let wait = TestTool::reads("wait", move |_, _| {
        let (calling, going) = (Arc::clone(&calling), Arc::clone(&going));
        async move {
            calling.notify_one();
            going.notified().await;
            ToolOutput::text("waited", "waited")
        }
    });
    let seen = json!({"contains": ["echo beside"]});
    let replies = json!([
        calls(&["wait"]),
        text("done"),
        expecting(text("seen"), seen)
    ]);
    let stage = Stage::new(replies).tool(wait);
    let (sender, _events) = mpsc::channel(1_000);
    let created = Session::create(stage.options(sender)).await.unwrap();
    let session = created.session;
    let beside = async {
        called.notified().await;
        let ran = run(&session, "echo beside", BashOptions::default()).await;
        assert_eq!(ran.output, "beside\n");
        // Between a call and its result it has no place.
        assert_eq!(entries(&session), ["user", "assistant"]);
        go_on.notify_one();
    };
    let (answer, ()) = tokio::join!(session.prompt("go", PromptOptions::default()), beside);
    assert_eq!(answer.unwrap().text, "done");
    let turn = [
        "user",
        "assistant",
        "toolResult",
        "assistant",
        "$ echo beside",
    ];
    assert_eq!(entries(&session), turn);
    let next = session.prompt("more", PromptOptions::default()).await;
    assert_eq!(next.unwrap().text, "seen");
}

#[tokio::test]
async fn long_output_is_kept_whole_in_a_file_without_secrets() {
    let stage = Stage::new(json!([]));
    let dir = tempfile::tempdir().unwrap();
    let place = Place {
        workspace: dir.path().canonicalize().unwrap(),
        home: None,
    };
    let (sender, _events) = mpsc::channel(1_000);
    let mut options = stage.options(sender);
    options.workbench = Workbench::new(
        Toolset::default(),
        Arc::new(Policy::new(Permissions::default(), Surroundings::default())),
        place,
        CommandSettings {
            env: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
            shell_path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            timeout: Duration::from_secs(20),
            timeout_max: Duration::from_secs(20),
            sandbox: CommandSandbox::Off,
        },
        Some(dir.path().join("output")),
    )
    .with_redactor(Redactor::new(["hunter2hunter2".to_owned()]));
    let session = Session::create(options).await.unwrap().session;
    let command = "echo hunter2hunter2; seq 1 5000";
    let ran = run(&session, command, BashOptions::default()).await;
    assert!(
        ran.truncated && ran.output.ends_with("\n5000\n"),
        "{}",
        ran.output.len()
    );
    assert!(!ran.output.contains("\n2999\n"));
    let whole = std::fs::read_to_string(ran.full_output_path.as_ref().unwrap()).unwrap();
    assert!(whole.ends_with("\n5000\n") && whole.contains("\n2\n"));
    assert!(!whole.contains("hunter2hunter2"));
    let value: Value = serde_json::to_value(&ran).unwrap();
    assert_eq!(value["role"], "bashExecution");
    assert!(ran.text().contains("all of it is in "));
}
