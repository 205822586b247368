//! Runs jobs to their end, whatever happens: a panic is an ending like any
//! other, and a thread of its own sees to it that a signal ends the process
//! even when the loop cannot turn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::event::{ErrorReport, Reason};
use crate::process;
use crate::report::{Ending, Opening, Recorder};
use crate::run::{self, Flow, RunDirectory, RunSettings, Signals};
use crate::session::{Cause, Stop};
use crate::task::Job;

use super::outputs;

/// Threads for blocking work: searches, the session file's sync.
const BLOCKING_THREADS_MAX: usize = 4;

/// What the loop gets to end by itself after a first signal, and after a second.
const PATIENCE: Duration = Duration::from_millis(4_700);
const PATIENCE_SECOND: Duration = Duration::from_millis(500);

/// Where the result is, once there is one.
type Place = Arc<OnceLock<(RunDirectory, Opening)>>;

/// A runtime that already hears signals.
pub(super) struct Engine {
    runtime: Runtime,
    signals: Signals,
    place: Place,
}

impl Engine {
    /// Hears signals from now on, so that one that comes while the outputs are
    /// opened ends the run like any other.
    ///
    /// # Errors
    /// A message for people.
    pub(super) fn start() -> Result<Self, String> {
        process::keep_to_itself();
        process::adopt_orphans();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()
            .map_err(|error| format!("cannot start the runtime: {error}"))?;
        let guard = runtime.enter();
        let signals =
            Signals::listen().map_err(|error| format!("cannot listen to signals: {error}"))?;
        drop(guard);
        let place = Place::default();
        let theirs = Arc::clone(&place);
        std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || watch(&theirs))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self {
            runtime,
            signals,
            place,
        })
    }

    /// From now on there is a result that has to be true.
    pub(super) fn answers_for(&self, directory: &RunDirectory, opening: &Opening) {
        let _ = self.place.set((directory.clone(), opening.clone()));
    }

    /// Runs the jobs.
    pub(super) fn drive(
        mut self,
        jobs: Vec<Job>,
        settings: &Arc<RunSettings>,
        recorder: &mut Recorder,
    ) -> Ending {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut emit = |emission| {
                recorder.write(emission);
                match recorder.failure() {
                    None => Flow::Continue,
                    Some(_) => Flow::Stop,
                }
            };
            let running = run::execute(jobs, Arc::clone(settings), &mut self.signals, &mut emit);
            self.runtime.block_on(running)
        }));
        self.runtime.shutdown_background();
        match outcome {
            Ok(run::Ending { reason, error }) => Ending { reason, error },
            Err(_) => {
                process::kill_all_children();
                Ending {
                    reason: Reason::Internal,
                    error: Some(internal("agent itself failed".to_owned())),
                }
            }
        }
    }
}

/// The error of an ending that is our own fault.
pub(super) fn internal(message: String) -> ErrorReport {
    ErrorReport {
        code: Reason::Internal.name().to_owned(),
        message,
        hints: vec!["this is a bug in agent; please report it".to_owned()],
        ..ErrorReport::default()
    }
}

/// Waits for a signal, then for the run to end, and ends the process when it
/// does not: an output that takes nothing stops the loop, and with it whoever
/// would have heard the signal.
fn watch(place: &Place) {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let number = runtime.block_on(async {
        let Ok(mut signals) = Signals::listen() else {
            return std::future::pending().await;
        };
        let never = CancellationToken::new();
        let number = signals.next().await;
        tokio::select! {
            _ = clock::sleep(PATIENCE, &never) => {}
            _ = signals.next() => {
                clock::sleep(PATIENCE_SECOND, &never).await;
            }
        }
        number
    });
    let stop = Stop::Interrupted(Cause::Signal(number));
    let reason = stop.reason();
    if let Some((directory, opening)) = place.get() {
        let error = ErrorReport {
            code: reason.name().to_owned(),
            message: format!("{stop}, and the run did not end in time: its log is cut"),
            hints: vec!["an output that is not read stops a run".to_owned()],
            ..ErrorReport::default()
        };
        // Without it the file still says that the run is incomplete.
        let _ = outputs::end_result(directory, opening.clone(), reason, error);
    }
    process::kill_all_children();
    leave(reason);
}

#[expect(clippy::exit, reason = "the main thread cannot")]
fn leave(reason: Reason) -> ! {
    std::process::exit(i32::from(reason.exit_code()))
}
