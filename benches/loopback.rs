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

#[allow(dead_code, reason = "each benchmark takes what it needs")]
mod measure;
#[allow(dead_code, reason = "each benchmark takes what it needs")]
mod server;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use measure::{bare_client, median, row, runtime};
use server::{Server, script, text_reply};

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
        "  {:<36} {:>9.1} MiB",
        "one reply",
        peak(&short, workspace.path())
    );
    println!(
        "  {:<36} {:>9.1} MiB",
        "20,000 deltas",
        peak(&long, workspace.path())
    );
    let many = Server::start(script(50));
    println!(
        "  {:<36} {:>9.1} MiB",
        "50 steps",
        peak(&many, workspace.path())
    );
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
            times[index + 2].push(server.exchanges()[0].received.duration_since(start));
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
    runtime().block_on(async {
        let client = bare_client();
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
