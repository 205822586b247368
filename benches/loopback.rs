//! What the runner costs on top of the model: the program against a server on
//! the loopback interface, beside a bare HTTP client in the same run.
//!
//! `cargo bench` prints medians; differences and ratios between the rows are
//! what to compare, since both sides saw the same machine at the same time.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures, prints, and stops at the first surprise"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const ROUNDS: usize = 40;
const DELTAS: usize = 20_000;

fn main() {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("bare") {
        return bare(&args.next().unwrap(), args.next().unwrap().parse().unwrap());
    }
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("a.txt"), "one\ntwo\n").unwrap();

    let short = Server::start(vec![text_reply(1)]);
    let [agent, bare, first_agent, first_bare] = one_reply(&short, workspace.path());
    println!("one reply, whole process (median of {ROUNDS})");
    row("bare HTTP client", bare);
    row("agent -p", agent);
    row("difference", agent.saturating_sub(bare));
    println!("start of the process to the first request");
    row("bare HTTP client", first_bare);
    row("agent -p", first_agent);

    println!("a step with one read, beyond the request itself");
    let ten = steps(10, workspace.path());
    let fifty = steps(50, workspace.path());
    row("10 steps, whole process", ten.0);
    row("50 steps, whole process", fifty.0);
    let request = (fifty.1.saturating_sub(ten.1)) / 40;
    let step = (fifty.0.saturating_sub(ten.0)) / 40;
    row("a bare request", request);
    row("a step", step);
    row("a step beyond its request", step.saturating_sub(request));

    println!("{DELTAS} text deltas, whole process");
    let long = Server::start(vec![text_reply(DELTAS)]);
    let [agent, bare, ..] = one_reply(&long, workspace.path());
    row("bare HTTP client", bare);
    row("agent -p", agent);

    println!("peak memory");
    println!(
        "  {:<28} {:>9.1} MiB",
        "one reply",
        peak(&short, workspace.path())
    );
    println!(
        "  {:<28} {:>9.1} MiB",
        "20,000 deltas",
        peak(&long, workspace.path())
    );
    let many = Server::start(script(50));
    println!(
        "  {:<28} {:>9.1} MiB",
        "50 steps",
        peak(&many, workspace.path())
    );
}

fn row(name: &str, time: Duration) {
    println!("  {name:<28} {:>9.3} ms", time.as_secs_f64() * 1e3);
}

/// Medians of agent and bare client, and of their times to the first request.
fn one_reply(server: &Server, workspace: &Path) -> [Duration; 4] {
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (index, mut command) in [agent(server, workspace), bare_command(server, 1)]
            .into_iter()
            .enumerate()
        {
            server.rewind();
            let start = Instant::now();
            finish(command.spawn().unwrap());
            times[index].push(start.elapsed());
            times[index + 2].push(server.first().unwrap().duration_since(start));
        }
    }
    times.map(median)
}

/// Medians of a run of `count` steps, and of as many bare requests.
fn steps(count: usize, workspace: &Path) -> (Duration, Duration) {
    let server = Server::start(script(count));
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..ROUNDS / 2 {
        for (index, mut command) in [agent(&server, workspace), bare_command(&server, count)]
            .into_iter()
            .enumerate()
        {
            server.rewind();
            let start = Instant::now();
            finish(command.spawn().unwrap());
            times[index].push(start.elapsed());
        }
    }
    let [agent, bare] = times.map(median);
    (agent, bare)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn agent(server: &Server, workspace: &Path) -> Command {
    let runs = workspace.join("runs");
    let _ = std::fs::remove_dir_all(&runs);
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent"));
    command
        .args([
            "-p",
            "look at a.txt",
            "--model",
            "openai-chat/bench",
            "--quiet",
        ])
        .args(["--base-url", &server.url, "--max-turns", "100", "--run-dir"])
        .arg(&runs)
        .current_dir(workspace)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", workspace);
    command
}

fn bare_command(server: &Server, requests: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["bare", &server.url, &requests.to_string()])
        .stdin(Stdio::null())
        .env_clear();
    command
}

fn finish(mut child: Child) {
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

/// The highest resident memory of a run, sampled until it ends.
fn peak(server: &Server, workspace: &Path) -> f64 {
    server.rewind();
    let mut child = agent(server, workspace).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0.0f64;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let kib = text
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"))
            .and_then(|kib| kib.trim().parse::<f64>().ok());
        most = most.max(kib.unwrap_or(0.0) / 1024.0);
    }
    most
}

/// What any client has to do: as many requests over one connection, each read
/// to its end.
fn bare(url: &str, requests: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    runtime.block_on(async {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .build()
            .unwrap();
        for _ in 0..requests {
            let response = client
                .post(format!("{url}/chat/completions"))
                .body("{}")
                .send()
                .await
                .unwrap();
            assert!(!response.bytes().await.unwrap().is_empty());
        }
    });
}

fn frame(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n";

fn text_reply(deltas: usize) -> String {
    let mut body = frame("{\"content\":\"some more text \"}", "null").repeat(deltas);
    body.push_str(&frame("{}", "\"stop\""));
    body + USAGE
}

/// Replies for a run of `count` steps: all but the last read the file, at
/// changing places so that no guard against repetition speaks up.
fn script(count: usize) -> Vec<String> {
    let call = |index: usize| {
        let arguments = format!("{{\\\"path\\\":\\\"a.txt\\\",\\\"limit\\\":{}}}", index + 1);
        let delta = format!(
            "{{\"tool_calls\":[{{\"index\":0,\"id\":\"c{index}\",\"type\":\"function\",\"function\":{{\"name\":\"read\",\"arguments\":\"{arguments}\"}}}}]}}"
        );
        frame(&delta, "null") + &frame("{}", "\"tool_calls\"") + USAGE
    };
    let mut replies: Vec<String> = (1..count).map(call).collect();
    replies.push(text_reply(1));
    replies
}

/// Answers requests with its replies in order, from the start after `rewind`.
struct Server {
    url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    next: usize,
    first: Option<Instant>,
}

impl Server {
    fn start(replies: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let replies = Arc::new(replies);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (shared, replies) = (Arc::clone(&shared), Arc::clone(&replies));
                std::thread::spawn(move || serve(stream.unwrap(), &shared, &replies));
            }
        });
        Self { url, state }
    }

    fn rewind(&self) {
        *self.state.lock().unwrap() = State::default();
    }

    fn first(&self) -> Option<Instant> {
        self.state.lock().unwrap().first
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>, replies: &[String]) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let reply = {
            let mut state = state.lock().unwrap();
            state.first.get_or_insert_with(Instant::now);
            state.next += 1;
            &replies[(state.next - 1).min(replies.len() - 1)]
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            reply.len()
        );
        let sent = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(reply.as_bytes()));
        if sent.is_err() {
            return;
        }
    }
}
