//! Hooks in a sandbox: what a command leaves does not decide what they answer.

use serde_json::{Value, json};

use crate::sandbox_run::{said, tiers};
use crate::support::cli::{Cli, Output};

/// Says where it lives and what it finds there, and leaves something for the next.
const HOOK: &str = "#!/bin/bash
cat > /dev/null
{ echo HOME=$HOME TMPDIR=$TMPDIR XDG=$XDG_CONFIG_HOME
  cat ~/.jq $TMPDIR/settings $XDG_CONFIG_HOME/settings 2>/dev/null
  cat ~/own 2>/dev/null
  echo kept > ~/own; echo kept > $TMPDIR/own; echo end; } >> hook.log
exit 0
";

/// A command that writes wherever a hook could look.
const COMMAND: &str = "#!/bin/bash
for home in ~ $TMPDIR $XDG_CONFIG_HOME $(sed -n 's/^HOME=\\([^ ]*\\) .*/\\1/p' hook.log); do
    echo evil > $home/.jq; echo evil > $home/settings; mkdir -p $home/.config; echo evil > $home/own
done 2>/dev/null
echo HOME=$HOME
";

/// A task with a hook before each of three commands.
fn task(tier: &str, sandbox: &Value, env: &Value) -> Cli {
    let mut sandbox = sandbox.clone();
    sandbox["tier"] = json!(tier);
    sandbox["mode"] = json!("require");
    let task = json!({
        "version": 1,
        "prompt": "x",
        "settings": {"model": "scripted/model.yaml"},
        "permissions": {"mode": "bypass"},
        "hooks": {"before_tool": [{"command": ["bash", "./hook.sh"]}]},
        "env": env,
        "sandbox": sandbox,
    });
    let call = json!({"calls": [{"name": "bash", "arguments": {"command": "bash command.sh"}}]});
    let replies = json!([call, call, call, {"text": "done"}]);
    Cli::new()
        .file("task.yaml", task.to_string())
        .file("model.yaml", replies.to_string())
        .file("hook.sh", HOOK)
        .file("command.sh", COMMAND)
        .args(["run", "task.yaml", "--allow-bypass"])
}

fn log(done: &Output) -> String {
    std::fs::read_to_string(done.cwd().join("hook.log")).unwrap_or_default()
}

/// The home directory that hooks had.
fn home_of_hooks(log: &str) -> &str {
    let home = log.strip_prefix("HOME=").unwrap();
    home.split_whitespace().next().unwrap()
}

#[test]
fn a_command_cannot_write_what_hooks_read() {
    for tier in tiers() {
        let done = task(tier, &json!({}), &json!({})).run();
        let log = log(&done);
        assert!(!log.contains("evil"), "{tier}: {log}");
        // They find what they left themselves.
        assert_eq!(log.matches("kept").count(), 2, "{tier}: {log}");
        assert_eq!(log.matches("end").count(), 3, "{tier}: {log}");
        let home = home_of_hooks(&log);
        assert!(!said(&done).contains(&format!("HOME={home}\n")), "{tier}");
        assert!(!std::path::Path::new(home).exists(), "{tier}: {home}");
    }
}

#[test]
fn a_place_that_commands_may_write_is_no_home_of_hooks() {
    for tier in tiers() {
        let there = tempfile::tempdir().unwrap();
        let place = there.path().canonicalize().unwrap();
        let sandbox = json!({"write": [place]});
        let env = json!({"set": {"XDG_CONFIG_HOME": place, "TMPDIR": place}});
        // The runner's own temporary files are there, too.
        let done = task(tier, &sandbox, &env).env("TMPDIR", &place).run();
        let log = log(&done);
        assert!(!log.contains("evil"), "{tier}: {log}");
        assert_eq!(log.matches("end").count(), 3, "{tier}: {log}");
        let home = home_of_hooks(&log);
        assert!(!home.starts_with(place.to_str().unwrap()), "{tier}: {home}");
    }
}

/// `/bin` is a link on most systems.
#[test]
fn a_hook_that_is_named_through_a_link_of_the_system_keeps_no_command_from_starting() {
    for tier in tiers() {
        let task = json!({
            "version": 1,
            "prompt": "x",
            "settings": {"model": "scripted/model.yaml"},
            "permissions": {"mode": "workspace"},
            "hooks": {"before_tool": [{"command": ["/bin/true"]}]},
            "sandbox": {"mode": "require", "tier": tier},
        });
        let call = json!({"name": "bash", "arguments": {"command": "echo started"}});
        let replies = json!([{"calls": [call]}, {"text": "done"}]);
        let cli = Cli::new().file("task.yaml", task.to_string());
        let cli = cli.file("model.yaml", replies.to_string());
        let done = cli.args(["run", "task.yaml"]).run();
        assert!(
            said(&done).contains("\"summary\":\"exit code 0\""),
            "{}",
            said(&done)
        );
    }
}
