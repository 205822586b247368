//! What a long history costs: the body of one more request, one more step,
//! opening and extending a large session file.
//!
//! `cargo bench --bench history` prints medians; beside each stands what any
//! program would have to do, measured in the same run. A word behind `--` picks
//! one section: body, step or file.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures, prints, and stops at the first surprise"
)]

mod conversation;
#[allow(dead_code, reason = "each benchmark takes what it needs")]
mod measure;
#[allow(dead_code, reason = "each benchmark takes what it needs")]
mod server;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent::clock::Activity;
use agent::model::wire::Encoder;
use agent::model::{Client, ClientOptions, Model, Request, resolve};
use agent::session::{Limits, PromptOptions, Session, SessionOptions, Workbench};
use agent::store::{Durability, EntryKind, Header, Store};
use agent::tool::{CommandSettings, Place, Toolset};

use conversation::{model, request, steps};
use measure::{bare_client, median, row, runtime, timed};
use server::{Exchange, Server, script};

const ENTRIES: [usize; 4] = [10, 100, 1_000, 5_000];
const ROUNDS: usize = 5;
/// Steps of one run.
const STEPS: usize = 40;
const LARGE_BYTES: u64 = 100_000_000;

fn main() {
    let wanted = std::env::args()
        .nth(1)
        .filter(|word| !word.starts_with('-'));
    let sections: [(&str, fn()); 3] = [("body", bodies), ("step", one_step), ("file", large_file)];
    for (name, section) in sections {
        if wanted.as_deref().is_none_or(|wanted| wanted == name) {
            section();
        }
    }
}

/// The body of a request that is one step longer than the one before.
fn bodies() {
    for name in [
        "anthropic/claude-sonnet-4-5",
        "openai/gpt-5",
        "google/gemini-3-flash-preview",
        "openai-chat/bench",
    ] {
        println!("the body of one more step, {name}");
        let model = model(name);
        for entries in ENTRIES {
            let all = steps(&model, entries + 2 * STEPS);
            let mut encoder = Encoder::new(model.clone());
            let mut request = request(all[..entries].to_vec());
            encoder.encode(&request);
            let [mut grown, mut whole, mut copied, mut cloned]: [Vec<Duration>; 4] =
                Default::default();
            let mut bytes = 0;
            for end in (entries..all.len()).step_by(2) {
                let (time, messages) = timed(|| all[..end].to_vec());
                cloned.push(time);
                request.messages = messages.into();
                let (time, body) = timed(|| encoder.encode(&request));
                grown.push(time);
                bytes = body.len();
                let (time, _) = timed(|| black_box(body.to_vec()));
                copied.push(time);
                drop(body);
                whole.push(timed(|| whole_body(&model, &request)).0);
            }
            println!(" {entries} entries, {} KiB", bytes / 1024);
            row("grown", median(grown));
            row("whole", median(whole));
            row("a copy of the bytes", median(copied));
            row("a copy of the pointers", median(cloned));
        }
    }
}

fn whole_body(model: &Model, request: &Request) -> usize {
    Encoder::new(model.clone()).encode(request).len()
}

/// From the answer that calls a tool to the next request, whole at the server:
/// decoding, the call, the session file, the next body, its bytes. A bare client
/// sends as many bytes after each answer.
fn one_step() {
    println!("one step with one read");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    let server = Server::start(script(STEPS));
    for entries in ENTRIES {
        let (mut agent, mut bare, mut bytes) = (Vec::new(), Vec::new(), 0);
        for _ in 0..ROUNDS {
            runtime().block_on(prompt(&server, dir.path(), entries));
            let exchanges = server.exchanges();
            assert_eq!(exchanges.len(), STEPS);
            bytes = exchanges[STEPS / 2].bytes;
            agent.extend(gaps(&exchanges));
            runtime().block_on(bare_requests(&server, bytes));
            bare.extend(gaps(&server.exchanges()));
        }
        let (agent, bare) = (median(agent), median(bare));
        println!(" {entries} entries, {} KiB a request", bytes / 1024);
        row("a bare request", bare);
        row("a step", agent);
        row("a step beyond its request", agent.saturating_sub(bare));
    }
}

/// From each answer to the next request. The first ones are not counted: they
/// open the connection and encode what was there before.
fn gaps(exchanges: &[Exchange]) -> impl Iterator<Item = Duration> {
    exchanges
        .windows(2)
        .skip(1)
        .map(|pair| pair[1].received.duration_since(pair[0].answered.unwrap()))
}

async fn prompt(server: &Server, workspace: &Path, entries: usize) {
    server.rewind();
    let model = resolve("openai-chat/bench", Some(&server.url)).unwrap();
    let activity = Activity::new();
    let file = workspace.join("session.jsonl");
    let _ = std::fs::remove_file(&file);
    let mut store = create(&file, &workspace.display().to_string());
    for message in steps(&model, entries - 1) {
        store.append(EntryKind::Message(message)).unwrap();
    }
    let client = Client::http(model, None, ClientOptions::new(activity.clone())).unwrap();
    let (sender, mut events) = tokio::sync::mpsc::channel(64);
    let mut options = SessionOptions::new(client, activity, workspace, sender);
    options.store = store;
    options.limits = Limits {
        max_turns: 100,
        ..Limits::default()
    };
    options.workbench = workbench(workspace);
    let session = Session::create(options).await.unwrap().session;
    let work = async {
        let options = PromptOptions::default();
        session.prompt("look at a.txt", options).await.unwrap();
        drop(session);
    };
    let listen = async { while events.recv().await.is_some() {} };
    tokio::join!(work, listen);
}

fn workbench(workspace: &Path) -> Workbench {
    let policy = agent::policy::Policy::new(
        Default::default(),
        agent::policy::Surroundings {
            workspace: workspace.to_owned(),
            ..Default::default()
        },
    );
    let place = Place {
        workspace: workspace.to_owned(),
        home: None,
    };
    let commands = CommandSettings {
        env: Vec::new(),
        shell_path: "/usr/bin:/bin".to_owned(),
        timeout: Duration::from_secs(10),
        timeout_max: Duration::from_secs(10),
        sandbox: agent::process::CommandSandbox::Off,
    };
    let tools = Toolset::built_in(&["read".to_owned()]);
    Workbench::new(tools, Arc::new(policy), place, commands, None)
}

async fn bare_requests(server: &Server, bytes: usize) {
    server.rewind();
    let client = bare_client();
    let body = bytes::Bytes::from(vec![b' '; bytes]);
    for _ in 0..STEPS {
        let request = client.post(format!("{}/chat/completions", server.url));
        let response = request.body(body.clone()).send().await.unwrap();
        assert!(!response.bytes().await.unwrap().is_empty());
    }
}

/// A session file of 100 MB: opening it, one more step, what a model is sent of
/// it; beside reading the bytes and finding the lines.
fn large_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("session.jsonl");
    let model = model("openai-chat/bench");
    let mut store = create(&file, "/srv/project");
    let mut entries = 0;
    while std::fs::metadata(&file).unwrap().len() < LARGE_BYTES {
        for message in steps(&model, 1_000) {
            store.append(EntryKind::Message(message)).unwrap();
            entries += 1;
        }
    }
    store.close().unwrap();
    drop(store);
    let [mut read, mut opened, mut built, mut appended]: [Vec<Duration>; 4] = Default::default();
    let mut context = 0;
    for _ in 0..ROUNDS {
        read.push(timed(|| lines(&std::fs::read(&file).unwrap())).0);
        let open = || Store::open(&file, Durability::Step, Default::default()).unwrap();
        let (time, found) = timed(open);
        opened.push(time);
        let mut store = found.store;
        let (time, messages) = timed(|| store.tree().messages().len());
        built.push(time);
        context = messages;
        for message in steps(&model, STEPS) {
            let kind = EntryKind::Message(message);
            appended.push(timed(|| store.append(kind).unwrap()).0);
        }
        store.close().unwrap();
    }
    let bytes = std::fs::metadata(&file).unwrap().len();
    println!(
        "a session file of {} MB, {entries} entries",
        bytes / 1_000_000
    );
    row("reading its bytes and lines", median(read));
    row("opening it", median(opened));
    row("its context", median(built));
    println!("  of {context} messages");
    row("appending an entry", median(appended));
}

fn lines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count()
}

fn create(file: &Path, cwd: &str) -> Store {
    Store::create(file, Header::new(cwd), Durability::Step, Default::default()).unwrap()
}
