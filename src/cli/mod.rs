//! The command line: reads the environment, the flags and the files, calls the
//! library, prints, and chooses the exit code. One file a command.

mod cassette;
mod check;
mod completions;
mod console;
mod doctor;
mod engine;
mod exit;
mod exit_codes;
mod flags;
mod help;
mod models;
mod outputs;
mod permissions;
mod refusal;
mod replay;
mod run;
mod sandbox_forward;
mod sandbox_watch;
mod schema;
mod sessions;
mod stdin;

use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::event::Reason;
use crate::process;

use console::Console;
use exit::Exit;

/// A headless coding agent for CI: strict tasks, hard limits, explained
/// permissions, one truthful event log.
#[derive(Debug, Parser)]
#[command(name = "agent", version, args_conflicts_with_subcommands = true)]
#[command(disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: agent exit-codes. A first run without a key: agent run tasks/demo.yaml"
)]
struct Cli {
    /// Runs one prompt; `-` reads it from standard input.
    #[arg(short = 'p', long = "prompt", value_name = "PROMPT")]
    prompt: Option<String>,

    /// Files and directories that the prompt is about.
    #[arg(value_name = "@FILE", requires = "prompt", value_parser = flags::mentioned)]
    files: Vec<String>,

    #[command(flatten)]
    flags: flags::RunFlags,

    #[command(subcommand)]
    command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// Runs task files.
    Run(run::RunCommand),
    /// Validates task files and shows what they resolve to; calls no model.
    Check(check::CheckCommand),
    /// Checks whether a task can run on this machine, and how; sends nothing.
    Doctor(doctor::DoctorCommand),
    /// Explains permission decisions.
    Permissions(permissions::PermissionsCommand),
    /// Folds an event log again and verifies its result.
    Replay(replay::ReplayCommand),
    /// Works on kept conversations.
    Sessions(sessions::SessionsCommand),
    /// Lists the models that can be named, with prices and limits.
    Models(models::ModelsCommand),
    /// Prints a JSON Schema.
    Schema(schema::SchemaCommand),
    /// Lists the exit codes.
    ExitCodes(exit_codes::ExitCodesCommand),
    /// Prints a completion script for a shell.
    Completions(completions::CompletionsCommand),
    /// Shows the help of a command, or a page of the manual.
    Help(help::HelpCommand),
    /// Runs a command inside a sandbox, with a way to the hosts that it may reach.
    #[command(hide = true)]
    SandboxForward(sandbox_forward::SandboxForwardCommand),
    /// Ends the commands of a runner that was killed.
    #[command(hide = true)]
    SandboxWatch(sandbox_watch::SandboxWatchCommand),
}

/// Runs the program with the process's arguments and environment.
pub fn main() -> ExitCode {
    process::harden();
    std::panic::set_hook(Box::new(tell_panic));
    let console = Console::of_process();
    let work = AssertUnwindSafe(|| dispatch(std::env::args_os(), &console));
    let exit = catch_unwind(work).unwrap_or(Exit::Reason(Reason::Internal));
    exit.code(&console)
}

/// A panic is told by its place alone: what it says may hold anything.
fn tell_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(
        io::stderr(),
        "agent: internal error at {place}; please report it"
    );
}

fn dispatch(args: impl IntoIterator<Item = OsString>, console: &Console) -> Exit {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return console.usage(&error),
    };
    match (cli.command, cli.prompt) {
        (Some(Command::Run(command)), _) => command.execute(console),
        (Some(Command::Check(command)), _) => command.execute(console),
        (Some(Command::Doctor(command)), _) => command.execute(console),
        (Some(Command::Permissions(command)), _) => command.execute(console),
        (Some(Command::Replay(command)), _) => command.execute(console),
        (Some(Command::Sessions(command)), _) => command.execute(console),
        (Some(Command::Models(command)), _) => command.execute(console),
        (Some(Command::Schema(command)), _) => command.execute(console),
        (Some(Command::ExitCodes(command)), _) => command.execute(console),
        (Some(Command::Completions(command)), _) => command.execute(&mut Cli::command(), console),
        (Some(Command::Help(command)), _) => command.execute(&mut Cli::command(), console),
        (Some(Command::SandboxForward(command)), _) => command.execute(console),
        (Some(Command::SandboxWatch(command)), _) => command.execute(),
        (None, Some(prompt)) => run::prompt(&prompt, &cli.files, &cli.flags, console),
        (None, None) => {
            console.complain(&Cli::command().render_help().to_string());
            Exit::Reason(Reason::Usage)
        }
    }
}
