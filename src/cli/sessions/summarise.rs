//! Compacts a kept session: opens it, asks the model, tells what goes wrong.

use std::fs::{self, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio::runtime::Builder;
use tokio::sync::mpsc::{self, Receiver};
use tokio_util::sync::CancellationToken;

use crate::access::Folder;
use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::flags::ProvidersFlag;
use crate::clock::Activity;
use crate::event::{Emission, EventKind, Reason};
use crate::model::ClientOptions;
use crate::report::neutral;
use crate::run::{self, Signals};
use crate::session::{Cause, Compacted, Compaction, Session, SessionError, SessionOptions, Stop};
use crate::store::{Durability, EntryKind, Store, StoreError};

use super::place::{Opened, refuse};

/// Events that may wait.
const EVENTS_MAX: usize = 64;

/// What is asked for.
pub(super) struct Order<'o> {
    pub(super) model: Option<&'o str>,
    pub(super) base_url: Option<&'o str>,
    pub(super) providers: &'o ProvidersFlag,
    pub(super) keep_recent_tokens: u64,
    pub(super) instructions: Option<&'o str>,
}

/// Why there is no summary.
struct Trouble {
    reason: Reason,
    message: String,
}

impl Trouble {
    fn new(reason: Reason, message: impl ToString) -> Self {
        Self {
            reason,
            message: message.to_string(),
        }
    }

    fn of(stop: &Stop) -> Self {
        let mut trouble = Self::new(stop.reason(), stop);
        for hint in stop.hints() {
            trouble.message.push_str(&format!("\n  hint: {hint}"));
        }
        trouble
    }
}

/// Compacts the session.
///
/// # Errors
/// The exit, told already.
pub(super) fn compact(
    opened: &Opened,
    order: &Order<'_>,
    console: &Console,
) -> Result<Compacted, Exit> {
    let told = |trouble: Trouble| {
        console.complain(&format!("agent: {}\n", neutral(&trouble.message)));
        Exit::Reason(trouble.reason)
    };
    let activity = Activity::new();
    let name = model(opened, order).map_err(told)?;
    let asking = ClientOptions::new(activity.clone());
    let catalog = order.providers.catalog_here(console)?;
    let environment = console.environment();
    let models = run::models(environment, &catalog, Some(&name), order.base_url, asking)
        .map_err(|problem| told(Trouble::new(problem.kind.reason(), &problem)))?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| told(Trouble::new(Reason::Internal, error)))?;
    let before =
        Before::read(&opened.path).map_err(|error| told(Trouble::new(Reason::Io, error)))?;
    let mut store = Store::open(&opened.path, Durability::Step, console.redactor())
        .map_err(|error| refuse(&error, console))?
        .store;
    opened.seal(&mut store);
    let (sender, events) = mpsc::channel(EVENTS_MAX);
    let cwd = PathBuf::from(&opened.tree.header().cwd);
    let mut options = SessionOptions::with_models(models, activity, cwd, sender);
    options.model = Some(name);
    options.store = store;
    options.compaction = Compaction {
        keep_recent_tokens: order.keep_recent_tokens,
        ..Compaction::default()
    };
    match runtime.block_on(converse(options, events, order.instructions, console)) {
        Ok(compacted) => {
            restore(opened, console).map_err(|error| refuse(&error, console))?;
            Ok(compacted)
        }
        Err(trouble) => {
            let put_back = before.put_back(&opened.path);
            put_back.map_err(|error| told(Trouble::new(Reason::Io, error)))?;
            opened.seal_content(&before.bytes);
            Err(told(trouble))
        }
    }
}

/// A session file before a compaction, which may fail.
struct Before {
    bytes: Vec<u8>,
    metadata: Metadata,
}

impl Before {
    fn read(path: &Path) -> io::Result<Self> {
        Ok(Self {
            bytes: fs::read(path)?,
            metadata: fs::metadata(path)?,
        })
    }

    /// Makes the file what it was.
    fn put_back(&self, path: &Path) -> io::Result<()> {
        if fs::read(path).is_ok_and(|now| now == self.bytes) {
            return Ok(());
        }
        let path = path.canonicalize()?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let folder = Folder::open(parent)?;
        let mut draft = folder.draft(self.metadata.permissions().mode() & 0o777)?;
        draft.file.write_all(&self.bytes)?;
        draft.file.set_modified(self.metadata.modified()?)?;
        draft.file.sync_all()?;
        draft.replace(name)
    }
}

/// The model that wrote the summary is not the one that goes on.
fn restore(opened: &Opened, console: &Console) -> Result<(), StoreError> {
    let before = &opened.tree;
    let mut store = Store::open(&opened.path, Durability::Step, console.redactor())?.store;
    opened.seal(&mut store);
    if let Some((provider, model_id)) = before.model()
        && store.tree().model() != Some((provider, model_id))
    {
        store.append(EntryKind::ModelChange {
            provider: provider.to_owned(),
            model_id: model_id.to_owned(),
        })?;
    }
    if let Some(level) = before.thinking_level()
        && store.tree().thinking_level() != Some(level)
    {
        store.append(EntryKind::ThinkingLevelChange {
            thinking_level: level.to_owned(),
        })?;
    }
    store.close()
}

/// The model that is asked: the one of the flag, else that of the session, and
/// no other, because nobody would expect its price.
fn model(opened: &Opened, order: &Order<'_>) -> Result<String, Trouble> {
    let own = || {
        let (provider, id) = opened.tree.model()?;
        Some(format!("{provider}/{id}"))
    };
    order.model.map(str::to_owned).or_else(own).ok_or_else(|| {
        let message = "the session names no model; give --model provider/id";
        Trouble::new(Reason::Usage, message)
    })
}

async fn converse(
    options: SessionOptions,
    mut events: Receiver<Emission>,
    instructions: Option<&str>,
    console: &Console,
) -> Result<Compacted, Trouble> {
    let mut signals = Signals::listen().map_err(|error| Trouble::new(Reason::Internal, error))?;
    let created = Session::create(options).await;
    let session = created.map_err(|stop| Trouble::of(&stop))?.session;
    let mut signal = None;
    let outcome = {
        let compacting = session.compact(instructions);
        tokio::pin!(compacting);
        loop {
            tokio::select! {
                biased;
                Some(emission) = events.recv() => warn(&emission.kind, console),
                number = signals.next() => {
                    signal = Some(number);
                    session.cancel().await;
                }
                outcome = &mut compacting => break outcome,
            }
        }
    };
    let stored = session.close(&CancellationToken::new()).await.stored;
    while let Ok(emission) = events.try_recv() {
        warn(&emission.kind, console);
    }
    if let Some(number) = signal {
        return Err(Trouble::of(&Stop::Interrupted(Cause::Signal(number))));
    }
    let compacted = outcome.map_err(|error| match error {
        SessionError::Stopped(stop) => Trouble::of(&stop),
        SessionError::NothingToCompact | SessionError::NotCompacted(_) => {
            Trouble::new(Reason::Incomplete, error)
        }
        other => Trouble::new(Reason::Internal, other),
    })?;
    stored.map_err(|error| Trouble::new(Reason::Io, error))?;
    Ok(compacted)
}

fn warn(kind: &EventKind, console: &Console) {
    if let EventKind::Warning(warning) = kind {
        console.complain(&format!("agent: {}\n", neutral(&warning.message)));
    }
}
