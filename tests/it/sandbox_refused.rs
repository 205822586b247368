//! Where the machine has no sandbox for a task: it is refused, or it is told.
//!
//! The program is started under filters of system calls that make this machine
//! one without Landlock, or one that refuses user namespaces, as older kernels
//! and strict containers do.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::collections::BTreeMap;
use std::net::TcpListener;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use serde_json::{Value, json};

use crate::cli_scene::agree;
use crate::sandbox_run::task;
use crate::support::cli::Cli;

/// What a machine does not have.
#[derive(Clone, Copy, PartialEq)]
enum Machine {
    WithoutNamespaces,
    WithoutAnything,
}

/// How a run on such a machine ended.
struct Done {
    code: i32,
    stderr: String,
    events: Vec<Value>,
    result: Value,
}

impl Machine {
    /// Runs the program on it. Only the thread that starts it is bound, and with it
    /// what it starts.
    fn run(self, cli: &Cli) -> Done {
        let mut command = cli.command();
        let output = std::thread::scope(|scope| {
            let bound = scope.spawn(|| {
                self.put_on();
                command.output().unwrap()
            });
            bound.join().unwrap()
        });
        let read = |name: &str| std::fs::read_to_string(cli.cwd().join("out").join(name)).unwrap();
        let code = output.status.code().unwrap();
        let result: Value = serde_json::from_str(&read("result.json")).unwrap();
        Done {
            code,
            stderr: String::from_utf8(output.stderr).unwrap(),
            events: agree(code, &read("events.jsonl"), &result),
            result,
        }
    }

    fn put_on(self) {
        if self == Self::WithoutAnything {
            let landlock = [
                libc::SYS_landlock_create_ruleset,
                libc::SYS_landlock_add_rule,
                libc::SYS_landlock_restrict_self,
            ];
            filter(landlock.map(|call| (call, Vec::new())), libc::ENOSYS);
        }
        let flag = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
        let asked = SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(flag),
            flag,
        );
        let rule = SeccompRule::new(vec![asked.unwrap()]).unwrap();
        let calls = [libc::SYS_clone, libc::SYS_unshare];
        filter(calls.map(|call| (call, vec![rule.clone()])), libc::EPERM);
        // Its flags lie where no filter sees them; the older call is tried instead.
        filter([(libc::SYS_clone3, Vec::new())], libc::ENOSYS);
    }
}

/// Answers these calls with an error from now on.
fn filter(calls: impl IntoIterator<Item = (i64, Vec<SeccompRule>)>, error: i32) {
    let calls: BTreeMap<i64, Vec<SeccompRule>> = calls.into_iter().collect();
    let filter = SeccompFilter::new(
        calls,
        SeccompAction::Allow,
        SeccompAction::Errno(error.cast_unsigned()),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

/// A task for a model that must not be asked, and where it would be.
fn expensive(sandbox: &str) -> (Cli, TcpListener) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    let task = format!(
        "version: 1\nname: demo\nprompt: Do it.\n\
         settings: {{model: openai-chat/own, base_url: '{url}'}}\n\
         permissions: {{allow: ['Bash(true)']}}\nsandbox: {sandbox}\n"
    );
    let cli = Cli::new().file("task.yaml", task);
    (cli.args(["run", "task.yaml", "--run-dir", "out"]), server)
}

/// A run that ended before a token was spent, and what it said.
fn refused(machine: Machine, sandbox: &str) -> String {
    let (cli, server) = expensive(sandbox);
    let done = machine.run(&cli);
    assert_eq!(done.code, 78, "{sandbox}: {}", done.stderr);
    let accepted = server.accept().map(|_| ());
    assert_eq!(accepted.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let names: Vec<&Value> = done.events.iter().map(|event| &event["event"]).collect();
    assert_eq!(names, ["run:start", "job:start", "job:end", "run:end"]);
    assert_eq!(done.result["reason"], "config");
    assert_eq!(done.result["turns"], 0);
    let error = &done.result["error"];
    assert_eq!(error["code"], "no_sandbox");
    assert_eq!(done.events[2]["data"]["conclusion"]["error"], *error);
    let message = error["message"].as_str().unwrap().to_owned();
    let line = format!("error {message}\n");
    assert!(done.stderr.contains(&line), "{}", done.stderr);
    for hint in error["hints"].as_array().unwrap() {
        let line = format!("hint {}\n", hint.as_str().unwrap());
        assert!(done.stderr.contains(&line), "{}", done.stderr);
    }
    message
}

#[test]
fn a_sandbox_that_is_required_and_is_not_there_costs_nothing() {
    let written = refused(Machine::WithoutAnything, "{mode: require}");
    let both = refused(Machine::WithoutAnything, "{}");
    assert_eq!(both, written);
    assert!(both.contains("none works here: namespaces: "), "{both}");
    let landlock = "; landlock: this kernel has no Landlock of version 3 or later";
    assert!(both.ends_with(landlock), "{both}");
    let one = refused(Machine::WithoutAnything, "{mode: require, tier: landlock}");
    assert!(!one.contains("namespaces: "), "{one}");
    let other = refused(
        Machine::WithoutNamespaces,
        "{mode: require, tier: namespaces}",
    );
    assert!(!other.contains("landlock: "), "{other}");
}

#[test]
fn hosts_that_the_only_tier_cannot_tell_apart_cost_nothing() {
    for sandbox in [
        "{mode: require, network: [crates.io]}",
        "{mode: require, tier: landlock, network: [crates.io]}",
    ] {
        let message = refused(Machine::WithoutNamespaces, sandbox);
        let reason = "landlock: it cannot tell the hosts of `sandbox.network` apart";
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn a_sandbox_that_is_preferred_and_is_not_there_is_warned_about() {
    let cli = task(&["echo ran in $HOME"], "{mode: prefer}").args(["--run-dir", "out"]);
    let done = Machine::WithoutAnything.run(&cli);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let sandbox = &done.result["sandbox"];
    assert_eq!(sandbox["tier"], "none");
    let tiers: Vec<&Value> = sandbox["passedOver"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["tier"])
        .collect();
    assert_eq!(tiers, ["namespaces", "landlock"]);
    let named = |name: &str| {
        let mut events = done.events.iter().filter(|event| event["event"] == name);
        events.next().unwrap_or_else(|| panic!("no {name}"))
    };
    assert_eq!(named("session:ready")["data"]["sandbox"], *sandbox);
    let warning = &named("warning")["data"];
    assert_eq!(warning["code"], "no_sandbox");
    assert_eq!(done.result["warnings"], json!([warning]));
    let message = "commands run without a sandbox, because none works here: namespaces: ";
    assert!(warning["message"].as_str().unwrap().starts_with(message));
    assert!(done.stderr.contains(message), "{}", done.stderr);
    let ran = format!("ran in {}", cli.home().display());
    assert!(
        done.events
            .iter()
            .any(|event| event.to_string().contains(&ran))
    );
}

/// A task that only reads, and whose model calls these commands.
fn reading(commands: &[&str], sandbox: &str) -> Cli {
    let task = format!(
        "version: 1\nprompt: go\nsettings: {{model: scripted/s.yaml}}\nsandbox: {sandbox}\n"
    );
    let call =
        |command: &&str| json!({"calls": [{"name": "bash", "arguments": {"command": command}}]});
    let mut script: Vec<Value> = commands.iter().map(call).collect();
    script.push(json!({"text": "done"}));
    Cli::new()
        .file("task.yaml", task)
        .file("s.yaml", Value::from(script).to_string())
        .args(["run", "task.yaml", "--run-dir", "out"])
}

#[test]
fn a_task_without_commands_needs_no_sandbox_and_starts_none() {
    let commands = ["cd .", "RANDOM='a[$(touch made)]'"];
    for (sandbox, tier) in [
        ("{}", None),
        ("{mode: require}", None),
        ("{mode: off}", None),
    ] {
        let cli = reading(&commands, sandbox);
        let done = Machine::WithoutAnything.run(&cli);
        assert_eq!(done.code, 0, "{sandbox}: {}", done.stderr);
        assert_eq!(done.result["sandbox"]["tier"].as_str(), tier, "{sandbox}");
        assert_eq!(
            done.result["denials"].as_array().unwrap().len(),
            2,
            "{sandbox}"
        );
        let told = done.events.iter().map(Value::to_string).collect::<String>();
        assert!(
            told.contains("without one even what bash does by itself needs a rule"),
            "{told}"
        );
        assert!(!cli.cwd().join("made").exists(), "{sandbox}");
    }
}

#[test]
fn the_other_tier_works_where_namespaces_are_refused() {
    let cli = task(&["echo ran in $HOME"], "{mode: require}").args(["--run-dir", "out"]);
    let done = Machine::WithoutNamespaces.run(&cli);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.result["sandbox"]["tier"], "landlock");
    assert_eq!(done.result["warnings"], json!([]));
}
