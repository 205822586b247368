//! What a run records its calls on, or takes their answers from.

use std::path::{Path, PathBuf};

use crate::model::{Cassette, Places, Recording, Replay, ToolsFrom};
use crate::secret::Redactor;
use crate::session::{Models, ToolTape};
use crate::task::Job;

use super::RunSettings;

/// The tape of a run.
#[derive(Debug, Clone, Default)]
pub enum Tape {
    /// There is none: models are asked and tools run.
    #[default]
    None,
    /// Both happens, and is recorded for this file.
    Recording(Recording, PathBuf),
    /// No model is asked: the cassette of this file answers.
    Replaying(Cassette, ToolsFrom, PathBuf),
}

/// The tape of one job.
#[derive(Debug, Clone)]
pub(super) enum JobTape {
    None,
    Recording(Recording),
    Replaying(Replay, ToolsFrom),
}

impl Tape {
    /// The file, which the run must not change.
    pub(super) fn file(&self) -> Option<PathBuf> {
        match self {
            Self::None => None,
            Self::Recording(_, path) | Self::Replaying(_, _, path) => Some(path.clone()),
        }
    }

    /// Whether no tool runs, because the cassette answers for them too.
    pub(super) fn plays_tools(&self) -> bool {
        matches!(self, Self::Replaying(_, ToolsFrom::Cassette, _))
    }

    /// The cassette that answers, as it was named.
    pub(super) fn replayed(&self) -> Option<&str> {
        match self {
            Self::Replaying(cassette, ..) => Some(cassette.name()),
            Self::None | Self::Recording(..) => None,
        }
    }

    /// The tape of a job.
    pub(super) fn of_job(&self, job: &Job, places: Places, redactor: &Redactor) -> JobTape {
        match self {
            Self::None => JobTape::None,
            Self::Recording(recording, _) => {
                JobTape::Recording(recording.of_job(&job.name, places))
            }
            Self::Replaying(cassette, tools, _) => {
                let redactor = redactor.clone();
                JobTape::Replaying(cassette.of_job(&job.name, places, redactor), *tools)
            }
        }
    }
}

/// The job's tape, which tells the directories of this machine by their names.
pub(super) fn of_job(job: &Job, settings: &RunSettings, workspace: &Path) -> JobTape {
    if let Tape::None = settings.tape {
        return JobTape::None;
    }
    let home = settings.environment.home();
    // Calls that leave the workspace are told by where they lead; a directory
    // right below the root is another's as well.
    let parent = workspace
        .parent()
        .filter(|parent| parent.components().count() > 2);
    let places = [
        ("workspace", Some(workspace)),
        ("source", Some(job.workspace.path.as_path())),
        ("run", Some(settings.directory.path())),
        ("home", home.as_deref()),
        ("parent", parent),
    ];
    let known = places
        .into_iter()
        .filter_map(|(name, path)| Some((name, path?)));
    settings
        .tape
        .of_job(job, Places::new(known), &settings.redactor)
}

impl JobTape {
    /// The models, whose calls are recorded or answered.
    pub(super) fn models(&self, models: Models) -> Models {
        match self {
            Self::None => models,
            Self::Recording(recording) => models.with_recording(recording.clone()),
            Self::Replaying(replay, _) => models.with_replay(replay.clone()),
        }
    }

    /// What becomes of the results of tools.
    pub(super) fn tools(&self) -> ToolTape {
        match self {
            Self::Recording(recording) => ToolTape::Recording(recording.clone()),
            Self::Replaying(replay, ToolsFrom::Cassette) => ToolTape::Replaying(replay.clone()),
            Self::None | Self::Replaying(_, ToolsFrom::Running) => ToolTape::None,
        }
    }

    /// What the cassette holds and the job did not ask for.
    pub(super) fn leftover(&self) -> Option<crate::model::ModelError> {
        match self {
            Self::Replaying(replay, tools) => replay.leftover(*tools),
            Self::None | Self::Recording(_) => None,
        }
    }
}

/// Gives a job that names no model the one that the cassette was recorded with.
pub fn choose_recorded(job: &mut Job, cassette: &Cassette) {
    if job.settings.model.is_some() {
        return;
    }
    if let Some(model) = cassette.first_model(&job.name) {
        job.name_model(model.full_id());
    }
}
