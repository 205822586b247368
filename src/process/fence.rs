//! The end of all that a command is, at one stroke.
//!
//! A process that forks without pause is gone by the time its number is known.
//! Where the kernel keeps the signals of a thread to what that starts, a thread of
//! its own starts the command and stays: a signal that it sends to everybody
//! reaches that command alone, whatever became of it, and nothing of it forks
//! meanwhile.

use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::process::{Pid, Signal};

/// Ends a command with all that it started. Dropping it ends nothing.
#[derive(Debug)]
pub(super) struct Fence {
    orders: Sender<Sender<()>>,
}

/// What the thread of a fence waits for.
pub(super) struct Orders(Receiver<Sender<()>>);

impl Fence {
    /// A fence, and what its thread holds.
    pub(super) fn new() -> (Self, Orders) {
        let (orders, given) = channel();
        (Self { orders }, Orders(given))
    }

    /// Kills everything. All of it has the signal when this returns.
    pub(super) fn kill(&self) {
        let (done, told) = channel();
        if self.orders.send(done).is_ok() {
            let _ = told.recv();
        }
    }
}

impl Orders {
    /// Serves them until the fence is dropped. The calling thread's signals must
    /// reach nothing but the command.
    pub(super) fn serve(self) {
        for done in self.0 {
            // The group of the first process means everybody.
            let _ = rustix::process::kill_process_group(Pid::INIT, Signal::KILL);
            let _ = done.send(());
        }
    }
}
