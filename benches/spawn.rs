//! What the sandbox costs: starting `true` and waiting for its end, bare and in
//! each tier, in turn, and finding out once whether a tier works.
//!
//! `cargo bench --bench spawn` prints medians and their ratio to a bare start.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures, prints, and stops at the first surprise"
)]

#[allow(dead_code, reason = "each benchmark takes what it needs")]
mod measure;

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::process::{CommandSpec, Confinement, Ending, Streams, capture};
use agent::sandbox::{self, Grounds, Sandbox, SandboxMode, SandboxOptions, Tier, TierChoice};
use tokio_util::sync::CancellationToken;

use measure::median;

const ROUNDS: usize = 100;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measure_all());
}

async fn measure_all() {
    let start = Instant::now();
    let tiers = sandbox::tiers().await;
    println!("both tiers tried in {:.1} ms", ms(start.elapsed()));
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("work")).unwrap();
    let mut ways: Vec<(&str, Option<Arc<dyn Confinement>>)> = vec![("bare", None)];
    for (tier, works) in tiers {
        match works {
            Ok(()) => ways.push((tier.name(), Some(sandbox_of(tier, &root).await))),
            Err(reason) => println!("  {:<12} does not work here: {reason}", tier.name()),
        }
    }
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for ((_, confinement), times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            let spec = spec(&root, confinement.clone());
            let done = capture(spec, 1024, &CancellationToken::new()).await;
            assert_eq!(done.unwrap().ending, Ending::Exited(0));
            times.push(start.elapsed());
        }
    }
    let medians: Vec<f64> = times.into_iter().map(|times| ms(median(times))).collect();
    for ((name, _), time) in ways.iter().zip(&medians) {
        println!("  {name:<12} {time:>7.2} ms  {:>5.2}", time / medians[0]);
    }
}

async fn sandbox_of(tier: Tier, root: &std::path::Path) -> Arc<dyn Confinement> {
    let options = SandboxOptions {
        mode: SandboxMode::Require,
        tier: match tier {
            Tier::Namespaces => TierChoice::Namespaces,
            Tier::Landlock => TierChoice::Landlock,
        },
        ..SandboxOptions::default()
    };
    let grounds = Grounds {
        workspace: root.join("work"),
        private: root.join(tier.name()),
        path: "/usr/bin:/bin".to_owned(),
        ..Grounds::default()
    };
    let made = Sandbox::establish(&options, grounds).await.unwrap();
    Arc::new(made.sandbox.unwrap())
}

fn spec(root: &std::path::Path, confinement: Option<Arc<dyn Confinement>>) -> CommandSpec {
    CommandSpec {
        program: "true".into(),
        args: Vec::new(),
        cwd: root.join("work"),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        stdin: None,
        streams: Streams::Merged,
        timeout: Some(Duration::from_secs(10)),
        confinement,
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
