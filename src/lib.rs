//! A headless coding-agent runner for CI.
//!
//! `agent run task.yaml` takes a declarative task through a full session engine
//! under non-interactive permissions, and leaves an event log, a result and an
//! exit code that a pipeline can trust.
//!
//! # The way of a task
//!
//! ```text
//! task file -> plan -> job -> session -> turn -> model stream -> tool calls -> events -> sinks -> report
//! ```
//!
//! 1. [`cli`] reads flags, environment and files, opens every output, and later
//!    chooses the exit code.
//! 2. [`task`] turns YAML into a [`task::Job`]: strict, templated, nothing
//!    optional left that need not be.
//! 3. [`run`] starts jobs and owns the one event loop: signals, heartbeats, the
//!    end. Each job ([`run::execute`]) brings its workspace up, prompts a
//!    session, tells the diff.
//! 4. [`session`] is the engine. A turn is a bounded loop of steps; a step is one
//!    reply of the model and its tool calls.
//! 5. [`model`] gets one reply: request, HTTP, SSE, dialect, assembled message.
//! 6. [`tool`] is what the model may do, [`policy`] whether it may, [`sandbox`] how
//!    the kernel sees to it, [`workspace`] what became of the files, [`store`] the
//!    conversation on disk, [`context`] what the model is told, [`hook`] where users
//!    step in.
//! 7. [`event`] is what happened. Events go one way: through a bounded channel
//!    to the loop, to [`report`] (numbered, redacted, folded, written), and at
//!    the end to [`export`].
//!
//! One descent, one return, one sideways river of events.
//!
//! # Layers: imports go down only
//!
//! | layer | modules |
//! |---|---|
//! | 5 shell | [`cli`] |
//! | 4 batch | [`run`] |
//! | 3 input | [`task`] |
//! | 2 engine | [`session`] |
//! | 1 abilities, which never import each other | [`model`] [`tool`] [`policy`] [`sandbox`] [`store`] [`workspace`] [`context`] [`hook`] |
//! | 1 outputs | [`report`], then [`export`], which also reads [`store`] |
//! | 0 ground | [`message`] [`access`] [`event`] [`clock`] [`process`] [`secret`] [`fingerprint`] |
//!
//! `tests/it/tidy.rs` fails on an import that goes up or sideways.
//!
//! # Invariants
//!
//! 1. Events go outward only: nothing in the engine reads a sink. A failing sink
//!    ends the run with its own exit code; all other sinks still finish.
//! 2. A session entry is on disk before its event is emitted. The session file is
//!    state, the event log is observation; they share [`message`] and nothing else.
//! 3. Hooks may rewrite a call; policy decides after them, about what they left;
//!    nothing comes between the decision and the execution.
//! 4. The report is a pure fold over events, and the exit status a function of
//!    the report: a recorded log folds to the same report and status.
//! 5. Sockets only in `model::http`, and in [`sandbox::proxy`] for commands that may
//!    reach some hosts; processes only in [`process`], session files only in
//!    `store::file`, time only in [`clock`]; environment, printing and
//!    exit only in [`cli`], which passes down what it read.
//! 6. SSE, dialects, assembling, retry decisions, the tree, policy, summary and
//!    exports are synchronous; all but policy, which resolves paths, do no I/O.
//! 7. Every loop is bounded by a field of [`session::Limits`]; every queue and
//!    buffer has a cap.
//! 8. A failed tool is data for the model, never an `Err`; an `Err` ends the turn.
//! 9. A run always ends, with exactly one `run:end` and a truthful result file, on
//!    every path that can be caught.
//! 10. What keeps commands in was tried on this machine before anything rested on
//!     it, and what was taken is told: never silently less than was asked for.

pub mod access;
pub mod cli;
pub mod clock;
pub mod context;
pub mod event;
pub mod export;
pub mod fingerprint;
pub mod hook;
pub mod message;
pub mod model;
pub mod policy;
pub mod process;
pub mod report;
pub mod run;
pub mod sandbox;
pub mod secret;
pub mod session;
pub mod store;
pub mod task;
pub mod tool;
pub mod workspace;
