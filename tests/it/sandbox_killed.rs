//! A runner that is killed leaves nothing of its commands behind.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::sandbox_run::{task, tiers};

/// Whatever a command starts holds the writing end of a FIFO: its end is theirs.
#[test]
fn nothing_outlives_a_killed_runner() {
    for tier in tiers() {
        let command = "exec 9> alive\nsleep 1000 &\nsetsid sleep 1000 &\n\
                       (env -i sleep 1000; true) &\necho started >&9\nsleep 1000";
        let cli = task(&[command], &format!("{{tier: {tier}}}"));
        let fifo = cli.cwd().join("alive");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let mut runner = cli
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let mut alive = BufReader::new(std::fs::File::open(fifo).unwrap());
            let mut line = String::new();
            alive.read_line(&mut line).unwrap();
            tell.send(line).unwrap();
            let mut rest = String::new();
            alive.read_to_string(&mut rest).unwrap();
            tell.send(rest).unwrap();
        });
        let started = told.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_eq!(started, "started\n", "{tier}");
        runner.kill().unwrap();
        runner.wait().unwrap();
        let ended = told.recv_timeout(Duration::from_secs(5));
        assert!(ended.is_ok(), "{tier}: something of the command is left");
    }
}
