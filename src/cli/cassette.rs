//! `--record` and `--replay`: the files of recorded runs.
//!
//! A recording is kept in memory and put in place when the run is over, with one
//! rename: a run that is killed leaves an older cassette as it was, and never
//! half of a new one. One that was interrupted leaves it, too, because its last
//! call has no answer.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::event::{Event, EventKind, Outcome, Reason};
use crate::model::{CASSETTE_BYTES_MAX, Cassette, Catalog, Recording, ToolsFrom};
use crate::report::{Sink, SinkError, create_private};
use crate::run::Tape;
use crate::secret::Redactor;
use crate::task::{self, Job};

use super::refusal::Refusal;

/// Flags of recorded runs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Recorded runs")]
pub(super) struct CassetteFlags {
    /// Records all calls of models and results of tools, without secrets, in this
    /// file, a cassette; it is written when the run is over.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,

    /// Answers the calls of models from this cassette: no network, no key. A run
    /// that asks for something else ends with exit code 10. (`agent replay`, which
    /// folds an event log again, is something else.)
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,

    /// Takes the results of tools from the cassette too: no command runs and no
    /// file is written.
    #[arg(long, requires = "replay")]
    replay_tools: bool,
}

impl CassetteFlags {
    /// The same with files below `directory`, the one of `-C`.
    pub(super) fn within(&self, directory: &Path) -> Self {
        let place = |path: &Option<PathBuf>| path.as_ref().map(|path| directory.join(path));
        Self {
            record: place(&self.record),
            replay: place(&self.replay),
            ..self.clone()
        }
    }

    /// The file that is written.
    pub(super) fn written(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.record.iter_mut()
    }

    /// Reads the cassette that is replayed, if one is. `cwd` is where its name
    /// starts.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub(super) fn load(&self, cwd: &Path) -> Result<Option<Cassette>, Refusal> {
        let Some(path) = &self.replay else {
            return Ok(None);
        };
        let refused = |reason: Reason, message: String| Refusal::new(reason, message);
        let text = task::read_text(path, CASSETTE_BYTES_MAX as u64).map_err(|error| {
            let missing = matches!(error, task::ReadError::NoInput(_));
            let reason = if missing {
                Reason::NoInput
            } else {
                Reason::BadTask
            };
            refused(reason, error.to_string())
        })?;
        // As it was given.
        let name = path.strip_prefix(cwd).unwrap_or(path);
        Cassette::parse(&text, &name.display().to_string())
            .map(Some)
            .map_err(|error| refused(Reason::BadTask, error.to_string()))
    }

    /// The tape of a run of these jobs.
    ///
    /// # Errors
    /// When the recording could not be kept, or there is nothing to record.
    pub(super) fn tape(
        &self,
        cassette: Option<Cassette>,
        jobs: &[Job],
        catalog: &Catalog,
        redactor: &Redactor,
    ) -> Result<Tape, Refusal> {
        if let (Some(cassette), Some(path)) = (cassette, &self.replay) {
            let tools = match self.replay_tools {
                true => ToolsFrom::Cassette,
                false => ToolsFrom::Running,
            };
            return Ok(Tape::Replaying(cassette, tools, path.clone()));
        }
        let Some(path) = &self.record else {
            return Ok(Tape::None);
        };
        let scripted = |job: &&Job| job.model_name(catalog).starts_with(task::SCRIPTED);
        if let Some(job) = jobs.iter().find(scripted) {
            return Err(Refusal::new(
                Reason::Usage,
                format!(
                    "the job `{}` plays a script, which is a recording already: --record needs a \
                     model of a provider",
                    job.name
                ),
            ));
        }
        probe(path).map_err(|error| Refusal::new(Reason::Io, error.to_string()))?;
        Ok(Tape::Recording(
            Recording::new(redactor.clone()),
            path.clone(),
        ))
    }
}

/// Whether a cassette could be put there, before anything is paid for.
fn probe(path: &Path) -> Result<(), SinkError> {
    match Target::of(path) {
        Target::File { directory, .. } => tempfile::NamedTempFile::new_in(directory).map(drop),
        Target::Device => create_private(path).map(drop),
    }
    .map_err(|source| SinkError::new("record to", path.display().to_string(), source))
}

/// What a path leads to.
enum Target {
    /// A file, or none yet; a link is followed, and stays one.
    File { file: PathBuf, directory: PathBuf },
    /// Something that cannot be replaced.
    Device,
}

impl Target {
    fn of(path: &Path) -> Self {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Self::Device;
        }
        let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let directory = match file.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory.to_owned(),
            _ => PathBuf::from("."),
        };
        Self::File { file, directory }
    }
}

/// Writes the cassette when the run ends.
pub(super) struct CassetteSink {
    recording: Recording,
    path: PathBuf,
}

impl CassetteSink {
    /// The sink of a run that is recorded.
    pub(super) fn of(tape: &Tape) -> Option<Box<dyn Sink>> {
        match tape {
            Tape::Recording(recording, path) => Some(Box::new(Self {
                recording: recording.clone(),
                path: path.clone(),
            })),
            Tape::None | Tape::Replaying(..) => None,
        }
    }

    fn keep(&self) -> io::Result<()> {
        let text = self.recording.text().map_err(io::Error::other)?;
        let (file, directory) = match Target::of(&self.path) {
            Target::File { file, directory } => (file, directory),
            Target::Device => return create_private(&self.path)?.write_all(text.as_bytes()),
        };
        // Only its owner may read it.
        let mut written = tempfile::NamedTempFile::new_in(directory)?;
        written.write_all(text.as_bytes())?;
        written.as_file().sync_all()?;
        written.persist(file).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Whether a run that ended so has a recording that can be replayed.
pub(super) fn is_kept(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Cancellation | Outcome::Timeout)
}

impl Sink for CassetteSink {
    fn write(&mut self, event: &Event, _line: &str) -> Result<(), SinkError> {
        match &event.kind {
            EventKind::RunEnd(end) if is_kept(end.outcome) => self
                .keep()
                .map_err(|source| SinkError::new("write", self.path.display().to_string(), source)),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
