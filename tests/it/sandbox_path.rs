//! Programs that run outside of the sandbox, or start what runs in it, are not the
//! workspace's, whatever `PATH` says.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::cli::{self, Cli};

/// Programs that leave a file behind when they run.
const PLANTED: &[&str] = &["bash", "git", "bwrap", "helper", "uname"];

fn plant(directory: &Path, trace: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    for name in PLANTED {
        let script = format!("#!/bin/sh\necho {name} >> '{}'\n", trace.display());
        let program = directory.join(name);
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn led_by(directories: &[&Path]) -> OsString {
    let mut path = OsString::new();
    for directory in directories {
        path.push(directory);
        path.push(":");
    }
    path.push(cli::path());
    path
}

#[test]
fn neither_doctor_nor_the_shell_nor_requirements_run_what_a_workspace_planted() {
    for (sandbox, command) in [("off", "run"), ("require", "run"), ("prefer", "doctor")] {
        let tools = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let tool = tools.path().join("tool");
        std::fs::write(&tool, "#!/usr/bin/env helper\n").unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        let trusted = tools.path().join("helper");
        std::fs::write(&trusted, "#!/bin/sh\necho tool 2.0\n").unwrap();
        std::fs::set_permissions(&trusted, std::fs::Permissions::from_mode(0o755)).unwrap();
        let task = format!(
            "version: 1\nprompt: go\nsettings: {{model: scripted/s.yaml}}\n\
             permissions: {{mode: bypass, additional_directories: ['{0}/bin']}}\n\
             requires: {{commands: [tool >= 1.0]}}\n\
             sandbox: {{mode: {sandbox}, write: ['{0}']}}\n",
            other.path().display()
        );
        let script =
            "- calls: [{name: bash, arguments: {command: 'echo shell-works'}}]\n- text: done\n";
        let cli = Cli::new().file("task.yaml", task).file("s.yaml", script);
        let bin = cli.cwd().join("bin");
        let link = tools.path().join("link");
        std::os::unix::fs::symlink(&bin, &link).unwrap();
        let trace = cli.cwd().join("trace");
        plant(&bin, &trace);
        plant(&other.path().join("bin"), &trace);
        let path = led_by(&[&bin, &link, &other.path().join("bin"), tools.path()]);
        let cli = match command {
            "run" => cli.args(["run", "task.yaml", "--allow-bypass"]),
            _ => cli.args(["doctor", "task.yaml", "--allow-bypass"]),
        };
        let done = cli.env("PATH", path).run();
        let ran = std::fs::read_to_string(&trace).unwrap_or_default();
        assert_eq!(ran, "", "{command} {sandbox}: {}", done.stdout);
        if command == "run" {
            let log = done.artifact("events.jsonl");
            assert!(
                log.contains("shell-works\\n") || log.contains("shell-works"),
                "{log}"
            );
            assert!(log.contains("\"exitCode\":0"), "{log}");
        }
    }
}
