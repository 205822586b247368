//! The output of a command: cleaned, its end at hand, the whole in a file once
//! it is too long, and parts of it on their way to whoever listens.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::access;
use crate::clock::{self, Slept};
use crate::secret::{Redactor, StreamRedactor};
use crate::tool::CallContext;
use crate::tool::file::reason;
use crate::tool::truncate::{self, BYTES_MAX, Cleaner, LINES_MAX, Return};

/// Updates come at most this often.
const UPDATE_EVERY: Duration = Duration::from_millis(100);
/// Of output that nobody has taken yet this much is kept for the next update.
const UPDATE_BYTES_MAX: usize = 64 * 1024;
/// The file with the whole output grows no further.
const SPILL_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The end of the output that is held while the command runs.
const TAIL_BYTES: usize = 2 * BYTES_MAX;

/// The output of a command in bounded memory.
#[derive(Debug)]
pub(super) struct Capture {
    cleaner: Cleaner,
    /// The whole output, or its end once there is more than is shown.
    text: String,
    /// Of the whole output.
    lines: usize,
    bytes: u64,
    spill: Spill,
    spill_path: Option<PathBuf>,
    redactor: Redactor,
}

/// Where output beyond the limits goes.
#[derive(Debug)]
enum Spill {
    /// All of it still fits.
    NotNeeded,
    /// A file with all output so far.
    File(Kept),
    /// The file could not be written, or there is no place for it.
    Lost(String),
}

/// The file with the whole output, without the secrets in it.
#[derive(Debug)]
struct Kept {
    file: std::fs::File,
    stream: StreamRedactor,
    /// Bytes in the file.
    bytes: u64,
    /// Whether the file is full and there was more.
    full: bool,
}

impl Kept {
    /// Adds output; a secret may go on in the next one.
    fn add(&mut self, new: &str) -> std::io::Result<()> {
        let clean = self.stream.push(new);
        self.write(&clean)
    }

    /// Adds what was held back.
    fn finish(&mut self) -> std::io::Result<()> {
        let clean = self.stream.finish();
        self.write(&clean)
    }

    fn write(&mut self, clean: &str) -> std::io::Result<()> {
        let room =
            usize::try_from(SPILL_BYTES_MAX.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        let part = clean
            .get(..clean.floor_char_boundary(room))
            .unwrap_or_default();
        self.full |= part.len() < clean.len();
        self.bytes += part.len() as u64;
        access::write_record(&self.file, part.as_bytes())
    }
}

impl Capture {
    /// Output that goes to `spill_path`, without the secrets that `redactor`
    /// knows, once it is too long to be shown.
    pub(super) fn new(spill_path: Option<PathBuf>, redactor: Redactor) -> Self {
        Self {
            cleaner: Cleaner::new(Return::Overwrites),
            text: String::new(),
            lines: 0,
            bytes: 0,
            spill: Spill::NotNeeded,
            spill_path,
            redactor,
        }
    }

    /// Takes output and gives back what of it is clean and complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let mut new = String::new();
        self.cleaner.push(bytes, &mut new);
        self.keep(&new);
        new
    }

    /// Takes the end of the output and gives back what was held.
    pub(super) fn finish(&mut self) -> String {
        let mut new = String::new();
        self.cleaner.finish(&mut new);
        self.keep(&new);
        if let Spill::File(kept) = &mut self.spill
            && let Err(error) = kept.finish()
        {
            self.spill = Spill::Lost(reason(&error));
        }
        // Only the last line may lack its end.
        self.lines += usize::from(!self.text.is_empty() && !self.text.ends_with('\n'));
        new
    }

    fn keep(&mut self, new: &str) {
        self.lines += new.matches('\n').count();
        self.bytes += new.len() as u64;
        self.text.push_str(new);
        if self.lines <= LINES_MAX && self.text.len() <= BYTES_MAX {
            return;
        }
        match &mut self.spill {
            Spill::NotNeeded => {
                let stream = self.redactor.stream();
                self.spill = open_spill(self.spill_path.as_deref(), &self.text, stream);
            }
            Spill::File(kept) if kept.full => {}
            Spill::File(kept) => {
                if let Err(error) = kept.add(new) {
                    self.spill = Spill::Lost(reason(&error));
                }
            }
            Spill::Lost(_) => {}
        }
        if self.text.len() > 2 * TAIL_BYTES {
            let start = self.text.ceil_char_boundary(self.text.len() - TAIL_BYTES);
            self.text.drain(..start);
        }
    }

    /// The end of the output, and whether there was more.
    pub(super) fn end(&self) -> (String, bool) {
        let cut = truncate::tail(&self.text);
        let truncated = cut.truncated || !matches!(self.spill, Spill::NotNeeded);
        (cut.text.to_owned(), truncated)
    }

    /// The file with the whole output.
    pub(super) fn spilled(&self) -> Option<&Path> {
        match &self.spill {
            Spill::File(_) => self.spill_path.as_deref(),
            Spill::NotNeeded | Spill::Lost(_) => None,
        }
    }

    /// What is shown, and whether it is a part.
    pub(super) fn shown(&self) -> (String, bool) {
        let cut = truncate::tail(&self.text);
        let truncated = cut.truncated || !matches!(self.spill, Spill::NotNeeded);
        let mut text = cut.text.trim_end_matches('\n').to_owned();
        if text.is_empty() {
            text.push_str("(no output)");
        }
        if truncated {
            let place = self.spill_notice();
            let lines = self.lines.max(cut.lines);
            text = format!(
                "[the last {} of {lines} lines are shown; {place}]\n\n{text}",
                cut.lines
            );
        }
        (text, truncated)
    }

    /// Where the whole output is, for viewers.
    pub(super) fn details(&self) -> Option<Value> {
        let path = self.spilled()?;
        Some(json!({ "outputPath": path, "outputBytes": self.bytes }))
    }

    fn spill_notice(&self) -> String {
        match (&self.spill, &self.spill_path) {
            (Spill::File(kept), Some(path)) if kept.full => {
                format!(
                    "the first {} of {} bytes are in {}",
                    kept.bytes,
                    self.bytes,
                    path.display()
                )
            }
            (Spill::File(_), Some(path)) => {
                format!("all of the output is in {}", path.display())
            }
            (Spill::Lost(why), _) => format!("the rest was not kept: {why}"),
            (Spill::NotNeeded | Spill::File(_), _) => "the rest was not kept".to_owned(),
        }
    }
}

/// Makes the file for the whole output, for its owner only.
fn open_spill(path: Option<&Path>, text: &str, stream: StreamRedactor) -> Spill {
    let Some(path) = path else {
        return Spill::Lost("there is no directory for it".to_owned());
    };
    let open = || -> std::io::Result<Kept> {
        let file = access::create_record(path)?;
        let mut kept = Kept {
            file,
            stream,
            bytes: 0,
            full: false,
        };
        kept.add(text)?;
        Ok(kept)
    };
    match open() {
        Ok(kept) => Spill::File(kept),
        Err(error) => Spill::Lost(reason(&error)),
    }
}

/// Partial output on its way to whoever listens. It never waits for them: what
/// they have no room for joins the next update.
#[derive(Debug)]
pub(super) struct Updates<'a> {
    cx: &'a CallContext<'a>,
    pending: String,
    sent: Option<Instant>,
}

impl<'a> Updates<'a> {
    /// Nothing has been sent yet.
    pub(super) fn new(cx: &'a CallContext<'a>) -> Self {
        Self {
            cx,
            pending: String::new(),
            sent: None,
        }
    }

    /// Takes new output, and sends it when an update is due.
    pub(super) fn push(&mut self, text: String) {
        if self.pending.is_empty() {
            self.pending = text;
        } else {
            self.pending.push_str(&text);
        }
        if self.pending.len() > 2 * UPDATE_BYTES_MAX {
            let start = self
                .pending
                .ceil_char_boundary(self.pending.len() - UPDATE_BYTES_MAX);
            self.pending.replace_range(..start, "[…]\n");
        }
        if self.wait().is_zero() {
            self.send();
        }
    }

    /// Waits until an update may be sent; for ever while there is none.
    pub(super) async fn due(&self) {
        if self.pending.is_empty() || self.cx.updates.is_closed() {
            return std::future::pending().await;
        }
        if clock::sleep(self.wait(), self.cx.cancel).await == Slept::Cancelled {
            // The process hears of it too and ends the loop.
            std::future::pending().await
        }
    }

    /// How long the next update has to wait.
    fn wait(&self) -> Duration {
        self.sent.map_or(Duration::ZERO, |sent| {
            UPDATE_EVERY.saturating_sub(clock::monotonic().duration_since(sent))
        })
    }

    /// Sends what there is, if there is room for it.
    pub(super) fn send(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.sent = Some(clock::monotonic());
        if let Ok(room) = self.cx.updates.try_reserve() {
            room.send(std::mem::take(&mut self.pending));
        }
    }
}
