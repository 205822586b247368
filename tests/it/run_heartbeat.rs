//! A run that hears nothing for long says that it is alive.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::sync::Arc;
use std::time::Duration;

use agent::event::{EventKind, Reason};
use agent::run::{Environment, Flow, HEARTBEAT, RunDirectory, RunSettings, Signals, execute};
use agent::secret::Redactor;
use agent::session::Chunks;
use agent::task::{self, Overrides};

use crate::support::workspace::Workspace;

const TASK: &str = "version: 1\nprompt: x\nsettings: {model: scripted/model.yaml}\n\
                    permissions: {mode: bypass}\n";

/// Silent until the third heartbeat was told.
const MODEL: &str = "- calls: [{name: bash, arguments: {command: 'until test -e go; do sleep 0.02; done'}}]\n\
                     - text: done\n";

#[tokio::test]
async fn every_while_of_silence_is_told() {
    assert_eq!(HEARTBEAT, Duration::from_secs(30));
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
        catalog: agent::model::Catalog::default(),
        environment: Arc::new(Environment::default()),
        redactor: Redactor::default(),
        tape: agent::run::Tape::None,
        chunks: Chunks::None,
        cwd: String::new(),
        config_hash: String::new(),
        heartbeat: Duration::from_millis(20),
    });
    let mut beats = Vec::new();
    let mut signals = Signals::listen().unwrap();
    let mut emit = |emission: agent::event::Emission| {
        if let EventKind::Heartbeat(beat) = &emission.kind {
            beats.push(beat.waiting_for.clone());
            if beats.iter().filter(|what| what.contains("go")).count() == 3 {
                files.write("go", "");
            }
        }
        Flow::Continue
    };
    let ending = execute(vec![job], settings, &mut signals, &mut emit).await;
    assert_eq!(ending.reason, Reason::Success, "{ending:?}");
    assert!(beats.len() >= 3, "{beats:?}");
}
