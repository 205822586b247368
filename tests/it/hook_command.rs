//! Hooks that are programs: what they are given, what they may say, how they fail.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::event::TurnStatus;
use agent::hook::{
    AfterTool, AgentStart, BeforeAgentStart, BeforeCompact, BeforeRequest, BeforeTool, CommandHook,
    CompactVerdict, Context, History, HookCommand, HookPoint, Hooks, Injected, Input, InputVerdict,
    Matcher, OnFinal, Ran, RequestVerdict, ResultVerdict, ToolVerdict,
};
use agent::message::{Content, Message, Usage, UserMessage};
use agent::process::CommandSandbox;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::cli;

/// A directory in which hooks run.
struct Yard {
    dir: tempfile::TempDir,
}

impl Yard {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// A hook that is this line of bash, as `change` wants it.
    fn hook(&self, point: HookPoint, line: &str, change: impl FnOnce(&mut HookCommand)) -> Hooks {
        let mut command = HookCommand {
            point,
            matcher: None,
            name: "guard".to_owned(),
            program: "bash".into(),
            args: vec!["-c".to_owned(), line.to_owned()],
            timeout: Duration::from_secs(20),
        };
        change(&mut command);
        let path = cli::path().into_string().unwrap();
        let env = vec![
            ("PATH".to_owned(), path),
            ("ONLY".to_owned(), "this".to_owned()),
        ];
        Hooks::new().with_hook(Arc::new(CommandHook::new(
            command,
            self.path(),
            env,
            CommandSandbox::Off,
        )))
    }

    /// What becomes of a call of `bash`.
    async fn judged(&self, line: &str) -> Ran<ToolVerdict> {
        let hooks = self.hook(HookPoint::BeforeTool, line, |_| {});
        hooks.before_tool(call(), &CancellationToken::new()).await
    }
}

fn call() -> BeforeTool {
    BeforeTool {
        session_id: "s".to_owned(),
        turn: 1,
        step: 2,
        tool_call_id: "c".to_owned(),
        tool: "bash".to_owned(),
        input: json!({"command": "rm -rf ü"}),
    }
}

fn faults<T>(ran: &Ran<T>) -> Vec<String> {
    let fault = |failure: &agent::hook::HookFailure| {
        assert_eq!(failure.name, "guard");
        failure.error.to_string()
    };
    ran.failures.iter().map(fault).collect()
}

#[tokio::test]
async fn a_program_reads_the_event_and_sees_only_its_environment() {
    let yard = Yard::new();
    let ran = yard
        .judged("cat > told; env | sort | cut -d= -f1 > env; pwd > where")
        .await;
    assert_eq!(ran.verdict, ToolVerdict::Continue);
    assert_eq!(faults(&ran), [""; 0]);
    let expected = json!({
        "event": "before_tool", "cwd": yard.path(), "session_id": "s", "turn": 1, "step": 2,
        "tool_call_id": "c", "tool": "bash", "input": {"command": "rm -rf ü"},
    });
    assert_eq!(yard.read("told"), expected.to_string());
    // What bash sets by itself, and the marker by which its children are known.
    let names = yard.read("env");
    let names: Vec<_> = names
        .lines()
        .filter(|name| !["AGENT_COMMAND_ID", "PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .collect();
    assert_eq!(names, ["ONLY", "PATH"]);
    assert_eq!(Path::new(yard.read("where").trim()), yard.path());
}

#[tokio::test]
async fn the_verdict_about_a_call_is_strict() {
    let replace = json!({"command": "ls"});
    let cases: &[(&str, Result<ToolVerdict, &str>)] = &[
        ("", Ok(ToolVerdict::Continue)),
        (" \n", Ok(ToolVerdict::Continue)),
        (r#"{"action":"continue"}"#, Ok(ToolVerdict::Continue)),
        (
            r#"{"action":"replace","input":{"command":"ls"}}"#,
            Ok(ToolVerdict::Replace(replace)),
        ),
        (
            r#"{"action":"block","reason":"no"}"#,
            Ok(ToolVerdict::Block("no".to_owned())),
        ),
        ("allowed", Err("expected value")),
        (r#"{"action":"allow"}"#, Err("unknown variant `allow`")),
        (r#"{"action":"block"}"#, Err("missing field `reason`")),
        (
            r#"{"action":"continue","input":{}}"#,
            Err("unknown field `input`"),
        ),
        (
            r#"{"action":"replace","input":[]}"#,
            Err("invalid type: sequence"),
        ),
        (r#"{"action":"continue"} {}"#, Err("trailing characters")),
        (r#"{"decision":"approve"}"#, Err("missing field `action`")),
    ];
    for (output, expected) in cases {
        let yard = Yard::new();
        std::fs::write(yard.path().join("say"), output).unwrap();
        let ran = yard.judged("cat say").await;
        match expected {
            Ok(verdict) => assert_eq!((&ran.verdict, faults(&ran)), (verdict, vec![])),
            Err(part) => {
                let faults = faults(&ran);
                let start = "its output is no verdict for this point: ";
                assert_eq!(faults.len(), 1, "{output}");
                assert!(faults[0].starts_with(start), "{output}: {faults:?}");
                assert!(faults[0].contains(part), "{output}: {faults:?}");
                assert!(matches!(ran.verdict, ToolVerdict::Block(_)), "{output}");
            }
        }
    }
}

#[tokio::test]
async fn exit_status_2_blocks_with_standard_error_as_the_reason() {
    for (line, reason) in [
        ("echo no rm >&2; exit 2", "no rm"),
        (
            "echo ignored; printf ' a\\033b\\n\\tc ' >&2; exit 2",
            "ab\n\tc",
        ),
        ("printf 'a\\377b' >&2; exit 2", "a\u{fffd}b"),
        ("exit 2", "`guard` gave no reason"),
    ] {
        let ran = Yard::new().judged(line).await;
        assert_eq!(ran.verdict, ToolVerdict::Block(reason.to_owned()));
        assert_eq!(faults(&ran), [""; 0]);
    }
    let ran = Yard::new()
        .judged("yes 2>/dev/null | head -c 3000000 >&2; exit 2")
        .await;
    let ToolVerdict::Block(reason) = ran.verdict else {
        unreachable!("{:?}", ran.verdict)
    };
    assert_eq!(reason.chars().count(), 4_001);
    assert!(reason.ends_with('…'));
}

#[tokio::test]
async fn every_other_ending_is_a_failure_and_blocks_the_call() {
    for (line, fault) in [
        ("exit 1", "exit status 1"),
        ("echo oh >&2; exit 1", "exit status 1: oh"),
        (r#"echo '{"action":"continue"}'; exit 3"#, "exit status 3"),
        ("no-such-program-at-all 2>/dev/null", "exit status 127"),
        ("kill -KILL $$", "killed by signal 9"),
        ("head -c 17000000 /dev/zero", "it wrote more than 16 MiB"),
    ] {
        let ran = Yard::new().judged(line).await;
        assert_eq!(faults(&ran), [fault], "{line}");
        let reason = format!("the hook `guard` must agree and did not answer: {fault}");
        assert_eq!(ran.verdict, ToolVerdict::Block(reason));
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_a_failure() {
    let yard = Yard::new();
    for (program, fault) in [
        ("no-such-program-at-all", "not found in PATH"),
        ("/no/such/file", "/no/such/file is not found"),
    ] {
        let hooks = yard.hook(HookPoint::BeforeTool, "", |command| {
            command.program = program.into();
        });
        let ran = hooks.before_tool(call(), &CancellationToken::new()).await;
        assert_eq!(faults(&ran), [format!("cannot start `{program}`: {fault}")]);
    }
}

#[tokio::test]
async fn a_program_without_a_sandbox_starts_only_where_that_is_said() {
    let yard = Yard::new();
    let mut command = None;
    yard.hook(HookPoint::BeforeTool, "touch made", |hook| {
        command = Some(hook.clone())
    });
    let env = vec![("PATH".to_owned(), cli::path().into_string().unwrap())];
    let hook = CommandHook::new(
        command.unwrap(),
        yard.path(),
        env,
        CommandSandbox::default(),
    );
    let hooks = Hooks::new().with_hook(Arc::new(hook));
    let ran = hooks.before_tool(call(), &CancellationToken::new()).await;
    let faults = faults(&ran);
    assert!(faults[0].starts_with("no sandbox was set up"), "{faults:?}");
    assert!(!yard.path().join("made").exists());
}

/// Whether a process lives; a dead one that nobody reaped does not count.
fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit_once(')')
            .unwrap()
            .1
            .trim_start()
            .starts_with('Z')
    })
}

#[tokio::test]
async fn a_program_out_of_time_ends_with_its_children() {
    let yard = Yard::new();
    let line = "trap '' TERM; sleep 300 & echo $! > child; wait; wait";
    let hooks = yard.hook(HookPoint::BeforeTool, line, |command| {
        command.timeout = Duration::from_millis(300);
    });
    let ran = hooks.before_tool(call(), &CancellationToken::new()).await;
    assert_eq!(faults(&ran), ["no answer within 0.3 s"]);
    assert!(matches!(ran.verdict, ToolVerdict::Block(_)));
    let child = yard.read("child");
    assert!(!child.trim().is_empty() && !lives(child.trim()), "{child}");
}

#[tokio::test]
async fn a_cancelled_program_ends_and_did_nothing_wrong() {
    let yard = Yard::new();
    let cancel = CancellationToken::new();
    let fifo = yard.path().join("ready");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    let hooks = yard.hook(HookPoint::BeforeTool, "echo $$ > ready; sleep 300", |_| {});
    let ready = {
        let cancel = cancel.clone();
        async move {
            let pid = tokio::task::spawn_blocking(move || std::fs::read_to_string(fifo).unwrap());
            let pid = pid.await.unwrap();
            cancel.cancel();
            pid
        }
    };
    let (ran, pid) = tokio::join!(hooks.before_tool(call(), &cancel), ready);
    assert_eq!(faults(&ran), [""; 0]);
    assert!(matches!(ran.verdict, ToolVerdict::Block(_)));
    assert!(!lives(pid.trim()), "{pid}");
}

#[tokio::test]
async fn a_program_need_not_read_what_it_is_told() {
    let yard = Yard::new();
    let mut call = call();
    call.input = json!({"command": "x".repeat(1 << 20)});
    let hooks = yard.hook(HookPoint::BeforeTool, "exec 0<&-; exit 0", |_| {});
    let ran = hooks.before_tool(call, &CancellationToken::new()).await;
    assert_eq!((ran.verdict, ran.failures), (ToolVerdict::Continue, vec![]));
}

#[tokio::test]
async fn it_is_called_for_its_point_and_its_tools_only() {
    let yard = Yard::new();
    let hooks = yard.hook(HookPoint::BeforeTool, "echo once >> ran", |command| {
        command.matcher = Some(Matcher::parse("edit|write").unwrap());
    });
    assert!(hooks.listens(HookPoint::BeforeTool));
    assert!(!hooks.listens(HookPoint::OnAction));
    for tool in ["bash", "edit", "read", "write"] {
        let mut call = call();
        call.tool = tool.to_owned();
        let ran = hooks.before_tool(call, &CancellationToken::new()).await;
        assert_eq!((ran.verdict, ran.failures), (ToolVerdict::Continue, vec![]));
    }
    assert_eq!(yard.read("ran"), "once\nonce\n");
}

#[tokio::test]
async fn who_only_listens_may_write_anything_and_block_nothing() {
    let told = || OnFinal {
        session_id: "s".to_owned(),
        turn: 1,
        step: None,
        final_text: "done".to_owned(),
        status: TurnStatus::Ok,
        error_message: None,
        token_usage: None,
        turn_usage: Usage::default(),
        steps: Vec::new(),
    };
    let cannot = "exit status 2 means to block, which is not possible here: no";
    for (line, expected) in [
        ("echo anything", None),
        ("echo no >&2; exit 2", Some(cannot)),
        ("exit 1", Some("exit status 1")),
    ] {
        let yard = Yard::new();
        let hooks = yard.hook(HookPoint::OnFinal, line, |_| {});
        let failures = hooks.on_final(told(), &CancellationToken::new()).await;
        let faults: Vec<_> = failures.iter().map(|f| f.error.to_string()).collect();
        assert_eq!(faults, expected.into_iter().collect::<Vec<_>>());
    }
}

/// What a hook that writes `said` makes of something.
async fn says<T>(point: HookPoint, said: &Value, ask: impl AsyncFn(Hooks) -> Ran<T>) -> T {
    let yard = Yard::new();
    std::fs::write(yard.path().join("say"), said.to_string()).unwrap();
    let ran = ask(yard.hook(point, "cat say", |_| {})).await;
    assert_eq!(faults(&ran), [""; 0], "{said}");
    ran.verdict
}

#[tokio::test]
async fn a_program_settles_prompts() {
    let ask = async |hooks: Hooks| {
        let input = Input {
            session_id: "s".to_owned(),
            text: "go".to_owned(),
        };
        hooks.input(input, &CancellationToken::new()).await
    };
    for (said, verdict) in [
        (json!({"action": "continue"}), InputVerdict::Continue),
        (
            json!({"action": "transform", "text": "x"}),
            InputVerdict::Transform("x".to_owned()),
        ),
        (
            json!({"action": "handled", "answer": "x"}),
            InputVerdict::Handled("x".to_owned()),
        ),
        (
            json!({"action": "block", "reason": "x"}),
            InputVerdict::Block("x".to_owned()),
        ),
    ] {
        assert_eq!(says(HookPoint::Input, &said, ask).await, verdict);
    }
    let ran = ask(Yard::new().hook(HookPoint::Input, "echo no >&2; exit 2", |_| {})).await;
    assert_eq!(ran.verdict, InputVerdict::Block("no".to_owned()));
}

#[tokio::test]
async fn a_program_adds_to_a_run() {
    let ask = async |hooks: Hooks| {
        let start = BeforeAgentStart {
            session_id: "s".to_owned(),
            prompt: "go".to_owned(),
            system_prompt: "base".to_owned(),
            messages: Vec::new(),
        };
        hooks
            .before_agent_start(start, &CancellationToken::new())
            .await
    };
    let said = json!({
        "messages": [{"content": "a"}, {"content": "b", "custom_type": "note", "display": false}],
        "system_prompt": "other",
    });
    let injected = |text: &str, custom_type: &str, display| Injected {
        custom_type: custom_type.to_owned(),
        content: vec![Content::text(text)],
        display,
    };
    let expected = AgentStart {
        messages: vec![injected("a", "hook", true), injected("b", "note", false)],
        system_prompt: Some("other".to_owned()),
    };
    assert_eq!(
        says(HookPoint::BeforeAgentStart, &said, ask).await,
        expected
    );
    let nothing = says(HookPoint::BeforeAgentStart, &json!({}), ask).await;
    assert_eq!(nothing, AgentStart::default());
}

#[tokio::test]
async fn a_program_replaces_messages_and_requests() {
    let before = Arc::new(Message::User(UserMessage::text("before", 7)));
    let after = Message::User(UserMessage::text("after", 8));
    let context = Context {
        session_id: "s".to_owned(),
        turn: 1,
        step: 1,
        messages: vec![before],
    };
    let said = json!({"action": "replace", "messages": [after]});
    let messages = says(HookPoint::Context, &said, async |hooks: Hooks| {
        hooks
            .context(context.clone(), &CancellationToken::new())
            .await
    })
    .await;
    assert_eq!(messages, [Arc::new(after)]);

    let said = json!({"action": "replace", "payload": {"model": "other"}});
    let verdict = says(HookPoint::BeforeRequest, &said, async |hooks: Hooks| {
        let request = BeforeRequest {
            session_id: "s".to_owned(),
            model: "p/m".to_owned(),
            payload: json!({"model": "m"}),
        };
        hooks
            .before_request(request, &CancellationToken::new())
            .await
    })
    .await;
    assert_eq!(verdict, RequestVerdict::Replace(json!({"model": "other"})));
}

#[tokio::test]
async fn a_program_replaces_or_withholds_a_result() {
    let ask = async |hooks: Hooks| {
        let result = AfterTool {
            session_id: "s".to_owned(),
            turn: 1,
            step: 1,
            tool_call_id: "c".to_owned(),
            tool: "bash".to_owned(),
            input: json!({}),
            content: vec![Content::text("secret")],
            is_error: false,
        };
        hooks.after_tool(result, &CancellationToken::new()).await
    };
    let said = json!({"action": "replace", "content": "masked"});
    let verdict = says(HookPoint::AfterTool, &said, ask).await;
    assert_eq!(
        verdict,
        ResultVerdict::Replace(vec![Content::text("masked")])
    );
    let line = "grep -q secret && { echo it has a secret >&2; exit 2; }";
    let ran = ask(Yard::new().hook(HookPoint::AfterTool, line, |_| {})).await;
    let text = "The result is withheld by a hook: it has a secret";
    assert_eq!(
        ran.verdict,
        ResultVerdict::Replace(vec![Content::text(text)])
    );
}

#[tokio::test]
async fn a_program_judges_a_compaction() {
    let ask = async |hooks: Hooks| {
        let compaction = BeforeCompact {
            session_id: "s".to_owned(),
            reason: agent::event::CompactReason::Manual,
            tokens_before: 10,
            instructions: Some("files".to_owned()),
            summary: None,
            history: History::default(),
        };
        hooks
            .before_compact(compaction, &CancellationToken::new())
            .await
    };
    let said = json!({"action": "summary", "text": "short"});
    let verdict = says(HookPoint::BeforeCompact, &said, ask).await;
    assert_eq!(verdict, CompactVerdict::Summary("short".to_owned()));
    let ran =
        ask(Yard::new().hook(HookPoint::BeforeCompact, "echo not now >&2; exit 2", |_| {})).await;
    assert_eq!(ran.verdict, CompactVerdict::Cancel("not now".to_owned()));
}
