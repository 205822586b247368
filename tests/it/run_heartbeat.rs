//! A run that hears nothing for long says that it is alive.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::sync::Arc;

use agent::event::EventKind;
use agent::run::{Environment, Flow, RunDirectory, RunSettings, Signals, execute};
use agent::secret::Redactor;
use agent::session::Chunks;
use agent::task::{self, Overrides};

use crate::support::workspace::Workspace;

const TASK: &str = "version: 1\nprompt: x\nsettings: {model: scripted/model.yaml}\n\
                    permissions: {mode: bypass}\nlimits: {command_timeout: 100s}\n";
const MODEL: &str =
    "- calls: [{name: bash, arguments: {command: 'exec sleep 300', timeout: 100}}]\n- text: done\n";

#[tokio::test(start_paused = true)]
async fn every_half_minute_of_silence_is_told() {
    let files = Workspace::new(&[("task.yaml", TASK), ("model.yaml", MODEL)]);
    let overrides = Overrides {
        allow_bypass: true,
        cwd: files.path().to_owned(),
        ..Overrides::default()
    };
    let job = task::load(&files.path().join("task.yaml"), &overrides).unwrap();
    let settings = Arc::new(RunSettings {
        run_id: "run".to_owned(),
        directory: RunDirectory::at(&files.path().join("out")).unwrap(),
        environment: Arc::new(Environment::default()),
        redactor: Redactor::default(),
        chunks: Chunks::None,
        cwd: String::new(),
        config_hash: String::new(),
    });
    let mut beats = Vec::new();
    let mut signals = Signals::listen().unwrap();
    let ending = execute(vec![job], settings, &mut signals, &mut |emission| {
        if let EventKind::Heartbeat(beat) = &emission.kind {
            beats.push(beat.waiting_for.clone());
        }
        Flow::Continue
    })
    .await;
    assert_eq!(ending.reason, agent::event::Reason::Success, "{ending:?}");
    // 100 seconds of silence by a clock that jumps: 30, 60 and 90.
    assert_eq!(beats.len(), 3, "{beats:?}");
    assert!(
        beats.iter().all(|what| what.contains("sleep 300")),
        "{beats:?}"
    );
}
