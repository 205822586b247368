//! Flushing a file in the background, on one thread that its owner joins.
//!
//! A plain thread rather than a task: a flush may take long, must not hold up
//! the runtime, and must also end when there is no runtime.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

const STACK_BYTES: usize = 128 * 1024;

/// A thread that flushes one file on request.
#[derive(Debug)]
pub(crate) struct Flusher {
    /// None once no more requests come.
    requests: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Flusher {
    /// Starts the thread with a first request.
    pub(crate) fn start(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        let failure = Arc::new(Mutex::new(None));
        let failed = Arc::clone(&failure);
        // One waiting request stands for all that come while a flush runs.
        let (requests, receiver) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("session-flush".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || flush_on_request(&file, &receiver, &failed))?;
        let flusher = Self {
            requests: Some(requests),
            thread: Some(thread),
            failure,
        };
        flusher.request();
        Ok(flusher)
    }

    /// Asks for a flush of all that was written so far. Returns at once.
    pub(crate) fn request(&self) {
        if let Some(requests) = &self.requests {
            // Full: the waiting request has not begun and covers this one.
            // Gone: the thread ended with a failure, which is reported.
            let _ = requests.try_send(());
        }
    }

    /// The failure of a flush, once.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Waits for all requests.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.join();
        self.failure().map_or(Ok(()), Err)
    }

    fn join(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // The thread runs no code that panics.
            let _ = thread.join();
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.join();
    }
}

fn flush_on_request(file: &File, requests: &Receiver<()>, failure: &Mutex<Option<io::Error>>) {
    // The name of a new file needs no flush of its own: the file systems that
    // keep a journal write it with the file's first data.
    while requests.recv().is_ok() {
        if let Err(error) = file.sync_data() {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return;
        }
    }
}
