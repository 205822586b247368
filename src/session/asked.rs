//! Which model the next request asks, and how much it thinks. Both may change
//! while a turn runs; the next request has the change, and so has the file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::Warning;
use crate::model::{Client, Model, ModelError, ThinkingLevel, without_login};
use crate::store::SessionTree;

use super::Session;
use super::budget;
use super::engine::Engine;
use super::limits::Limits;
use super::models::{ChoiceError, Chosen, Models};
use super::options::SessionOptions;
use super::refusal::SessionError;
use super::stop::Stop;

/// The model that a request asks, and how much it thinks.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) client: Client,
    /// A level that the model offers.
    pub(super) thinking: ThinkingLevel,
}

/// What the next request asks.
#[derive(Debug)]
pub(super) struct Asked {
    models: Models,
    limits: Limits,
    /// In the order in which they take over.
    fallbacks: Vec<Client>,
    small: Option<Client>,
    wanted: Mutex<Wanted>,
}

#[derive(Debug)]
struct Wanted {
    /// As it was asked for: another model may offer it.
    thinking: ThinkingLevel,
    asking: Arc<Asking>,
    /// What was chosen, while a fallback is asked instead.
    chosen: Option<Arc<Asking>>,
    /// The models that failed since the turn began.
    failed: Vec<String>,
    /// The clients of the models before.
    former: Vec<Client>,
}

/// The models of a new session.
pub(super) struct Choice {
    pub(super) asked: Asked,
    /// Why it is this model, when nobody named it.
    pub(super) fallback: Option<String>,
    /// What must be known of the others.
    pub(super) warnings: Vec<Warning>,
}

impl Asking {
    fn new(client: Client, wanted: ThinkingLevel) -> Self {
        Self {
            thinking: client.model().clamp_thinking(wanted),
            client,
        }
    }
}

impl Asked {
    /// Chooses the model of a session, and tells why when nobody named it.
    pub(super) fn choose(options: &SessionOptions) -> Result<Choice, Stop> {
        let tree = options.store.tree();
        let mut models = options.models.clone();
        let Chosen { client, fallback } = models.choose(options.model.as_deref(), tree.model())?;
        let thinking = options.thinking.or_else(|| restored_thinking(tree));
        let thinking = thinking.unwrap_or_default();
        let mut warnings = Vec::new();
        let mut spare = |role: &str, name: &String| match models.spare(role, name)? {
            Ok(client) => {
                budget::check_price(&options.limits, client.model())?;
                Ok(Some(client))
            }
            Err(warning) => {
                warnings.push(warning);
                Ok::<_, Stop>(None)
            }
        };
        let mut fallbacks = Vec::new();
        for name in &options.fallback_models {
            fallbacks.extend(spare("fallback", name)?);
        }
        let small = options.small_model.as_ref();
        let small = small.map(|name| spare("small model", name)).transpose()?;
        let small = small.flatten();
        if let Some(client) = &small {
            // A fallback is told of when it takes over; this one is sure to come.
            warnings.extend(budget::check_price(&options.limits, client.model())?);
            warnings.extend(key_in_clear(client.model()));
        }
        let asked = Self {
            models,
            limits: options.limits.clone(),
            fallbacks,
            small,
            wanted: Mutex::new(Wanted {
                thinking,
                asking: Asking::new(client, thinking).into(),
                chosen: None,
                failed: Vec::new(),
                former: Vec::new(),
            }),
        };
        Ok(Choice {
            asked,
            fallback,
            warnings,
        })
    }

    /// What is asked now; the same `Arc` until it changes.
    pub(super) fn asking(&self) -> Arc<Asking> {
        Arc::clone(&self.lock().asking)
    }

    /// The model that writes summaries, if it is not to be the one that is asked.
    pub(super) fn small(&self) -> Option<Client> {
        self.small.clone()
    }

    /// The models that another session of the same kind may ask, its own model's
    /// name, and how much that thinks.
    pub(super) fn handed_on(&self) -> (Models, String, ThinkingLevel) {
        let wanted = self.lock();
        let chosen = wanted.chosen.as_ref().unwrap_or(&wanted.asking);
        let client = chosen.client.clone();
        let name = client.model().full_id();
        (
            self.models.clone().with_client(client),
            name,
            wanted.thinking,
        )
    }

    /// Asks another model from the next request on. Tells what must be known of
    /// it.
    pub(super) fn set_model(&self, name: &str) -> Result<Vec<Warning>, SessionError> {
        let mut wanted = self.lock();
        let former = |client: &&Client| client.model().full_id() == name;
        let client = match wanted.former.iter().find(former) {
            // Connections are kept, and a script goes on where it was.
            Some(client) => client.clone(),
            None => self.models.client(name)?,
        };
        let model = client.model();
        if *model == *wanted.asking.client.model() {
            wanted.chosen = None;
            return Ok(Vec::new());
        }
        let mut warnings = Vec::from_iter(budget::check_price(&self.limits, model)?);
        warnings.extend(key_in_clear(model));
        let next = Asking::new(client, wanted.thinking);
        wanted.ask(next.into());
        wanted.chosen = None;
        wanted.failed.clear();
        Ok(warnings)
    }

    /// Whether a fallback is asked instead of the chosen model.
    pub(super) fn stands_in(&self) -> bool {
        self.lock().chosen.is_some()
    }

    /// Notes that the model which is asked failed, and gives the fallbacks that
    /// have not, in their order.
    pub(super) fn after_failure(&self) -> Vec<Client> {
        let mut wanted = self.lock();
        let failed = wanted.asking.client.model().full_id();
        wanted.failed.push(failed);
        let is_left = |client: &&Client| !wanted.failed.contains(&client.model().full_id());
        self.fallbacks.iter().filter(is_left).cloned().collect()
    }

    /// Asks a fallback until [`Asked::end_turn`].
    pub(super) fn fall_back(&self, client: Client) {
        let mut wanted = self.lock();
        let next = Asking::new(client, wanted.thinking);
        let before = wanted.ask(next.into());
        wanted.chosen.get_or_insert(before);
    }

    /// Asks the chosen model again, and gives every model another chance.
    pub(super) fn end_turn(&self) {
        let mut wanted = self.lock();
        wanted.failed.clear();
        if let Some(chosen) = wanted.chosen.take() {
            wanted.ask(chosen);
        }
    }

    /// Thinks more or less from the next request on; the nearest level that the
    /// model offers.
    pub(super) fn set_thinking(&self, level: ThinkingLevel) -> ThinkingLevel {
        let mut wanted = self.lock();
        wanted.thinking = level;
        if let Some(chosen) = &mut wanted.chosen {
            *chosen = Asking::new(chosen.client.clone(), level).into();
        }
        let offered = wanted.asking.client.model().clamp_thinking(level);
        if offered != wanted.asking.thinking {
            wanted.asking = Arc::new(Asking {
                client: wanted.asking.client.clone(),
                thinking: offered,
            });
        }
        offered
    }

    /// Ends the use of all models that were asked.
    pub(super) fn finish(&self) -> Result<(), ModelError> {
        let wanted = self.lock();
        let former = wanted.former.iter();
        let now = &wanted.asking.client;
        let now = former
            .clone()
            .all(|client| client.model() != now.model())
            .then_some(now);
        former.chain(now).try_for_each(Client::finish)
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wanted {
    /// Asks this from now on; gives what was asked before, whose client is kept.
    fn ask(&mut self, next: Arc<Asking>) -> Arc<Asking> {
        let before = std::mem::replace(&mut self.asking, next);
        let known = before.client.model().full_id();
        self.former
            .retain(|client| client.model().full_id() != known);
        self.former.push(before.client.clone());
        before
    }
}

impl Models {
    /// A client of a model besides the chosen one; none with what must be known
    /// of it when it has no usable key. `role` says what it is for.
    ///
    /// # Errors
    /// `Unknown` with the nearest names.
    pub fn spare(&self, role: &str, name: &str) -> Result<Result<Client, Warning>, ChoiceError> {
        match self.client(name) {
            Ok(client) => Ok(Ok(client)),
            Err(
                error @ (ChoiceError::Client(_)
                | ChoiceError::Credentials(_)
                | ChoiceError::NotRecorded { .. }),
            ) => Ok(Err(Warning {
                code: "model_left_out".to_owned(),
                message: format!("the {role} {name} is left out: {error}"),
            })),
            Err(error) => Err(error),
        }
    }
}

impl Session {
    /// The model of the next request, `provider/id`.
    pub fn model(&self) -> String {
        self.asked.asking().client.model().full_id()
    }

    /// How much the model of the next request thinks.
    pub fn thinking_level(&self) -> ThinkingLevel {
        self.asked.asking().thinking
    }

    /// Asks another model, `provider/id`, from the next request on; a reply that
    /// is on its way is still that of the model before. Nothing but this session
    /// is changed, and its file says so.
    ///
    /// # Errors
    /// [`SessionError::NoModel`] when no model has the name or there are no
    /// credentials for it; [`SessionError::Stopped`] when the limits need its
    /// price, which nobody knows, or the file cannot be written. After a refusal
    /// the model is the same as before.
    pub async fn set_model(&self, name: &str) -> Result<(), SessionError> {
        self.feed.warn_of(self.asked.set_model(name)?).await;
        self.record_model()
    }

    /// Thinks more or less from the next request on. Gives back the nearest level
    /// that the model offers; another model may offer the level itself.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] when the file cannot be written.
    pub fn set_thinking_level(&self, level: ThinkingLevel) -> Result<ThinkingLevel, SessionError> {
        let offered = self.asked.set_thinking(level);
        self.record_model()?;
        Ok(offered)
    }

    /// At rest the engine writes a change down at once; a running turn does
    /// before its next request or at its end.
    fn record_model(&self) -> Result<(), SessionError> {
        let written = self.desk.with_engine(Engine::take_up_model);
        Ok(written.unwrap_or(Ok(()))?)
    }
}

/// The level of the session that goes on, if it is one of ours.
fn restored_thinking(tree: &SessionTree) -> Option<ThinkingLevel> {
    ThinkingLevel::from_name(tree.thinking_level()?)
}

/// What must be known of a key that others can read on its way.
pub(super) fn key_in_clear(model: &Model) -> Option<Warning> {
    model.sends_key_in_clear().then(|| Warning {
        code: "key_in_clear".to_owned(),
        message: format!(
            "the key for {} travels unencrypted to {}",
            model.provider,
            without_login(&model.base_url)
        ),
    })
}
