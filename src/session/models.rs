//! Which model a session asks, and clients of models by name.
//!
//! A session takes the model that its options name; else that of the session it
//! goes on with; else the configured default; else one of the first provider
//! with credentials. Whenever nobody named the one that is taken, it is told.
//! A name that no model has is an error with the nearest names, never a guess.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::clock::Activity;
use crate::model::{
    self, Catalog, Client, ClientOptions, Model, ModelError, Recording, Replay, UnknownModel,
};

/// One model a provider, in the order in which credentials are looked for.
const CANDIDATES: &[&str] = &[
    "anthropic/claude-sonnet-5",
    "openai/gpt-6.1-sol",
    "google/gemini-3.8-flash",
    "deepseek/deepseek-v4-pro",
    "mistral/devstral-2512",
    "groq/openai/gpt-oss-120b",
    "cerebras/gpt-oss-120b",
    "moonshotai/kimi-k3",
    "zai/glm-5.3",
    "openrouter/z-ai/glm-5.3",
];

/// What opens the door to one model.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credential {
    /// The key; none when there is none.
    pub key: Option<String>,
    /// Replaces the provider's base URL.
    pub base_url: Option<String>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base_url = self.base_url.as_deref().map(model::without_login);
        f.debug_struct("Credential")
            .field("key", &self.key.as_ref().map(|_| "***"))
            .field("base_url", &base_url)
            .finish()
    }
}

type LookUp = dyn Fn(&Model) -> Result<Credential, String> + Send + Sync;

/// Where credentials are looked up, each when its model is asked for. Cheap to
/// clone; shows no key.
#[derive(Clone)]
pub struct Credentials(Arc<LookUp>);

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Asks `look_up` for each model. Its error says why a credential that
    /// should be there cannot be read.
    pub fn new(
        look_up: impl Fn(&Model) -> Result<Credential, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(look_up))
    }

    /// There are none: only models that need none can be asked.
    pub fn none() -> Self {
        Self::new(|_| Ok(Credential::default()))
    }

    /// The keys of these providers, `("anthropic", key)`.
    pub fn keys<P: Into<String>, K: Into<String>>(keys: impl IntoIterator<Item = (P, K)>) -> Self {
        let keys: BTreeMap<String, String> = keys
            .into_iter()
            .map(|(provider, key)| (provider.into(), key.into()))
            .collect();
        Self::new(move |model| {
            Ok(Credential {
                key: keys.get(&model.provider).cloned(),
                base_url: None,
            })
        })
    }

    fn of(&self, model: &Model) -> Result<Credential, String> {
        let mut credential = (self.0)(model)?;
        credential.key = credential.key.filter(|key| !key.trim().is_empty());
        Ok(credential)
    }
}

/// The models that a session may ask. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Models {
    catalog: Catalog,
    credentials: Credentials,
    options: ClientOptions,
    default: Option<String>,
    candidates: Vec<String>,
    base_url: Option<String>,
    /// The provider that the base URL belongs to, once a model was chosen.
    base_url_of: Option<String>,
    ready: Vec<Client>,
    tape: Option<Tape>,
}

/// What becomes of the calls of all models.
#[derive(Debug, Clone)]
enum Tape {
    Recording(Recording),
    Replaying(Replay),
}

/// The name of the model to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// As it was named.
    pub name: String,
    /// Why it is this one, when nobody named it.
    pub fallback: Option<String>,
}

/// The model to ask, ready to be called.
#[derive(Debug)]
pub struct Chosen {
    /// The client.
    pub client: Client,
    /// Why it is this one, when nobody named it.
    pub fallback: Option<String>,
}

/// No model can be asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChoiceError {
    /// No model has the name.
    #[error(transparent)]
    Unknown(#[from] UnknownModel),
    /// A credential should be there and cannot be read.
    #[error("{0}")]
    Credentials(String),
    /// The model's client cannot be made, for want of a key for example.
    #[error("{0}")]
    Client(Box<ModelError>),
    /// The cassette has no calls of the model.
    #[error("{cassette}: it was recorded with {}, and now {name} is asked", .recorded.join(", "))]
    NotRecorded {
        /// The model that is asked for.
        name: String,
        /// The cassette.
        cassette: String,
        /// The models that it knows.
        recorded: Vec<String>,
    },
    /// No model is named, and there are no credentials for any.
    #[error("{}", nothing_left(.restored.as_deref()))]
    NoModel {
        /// Why the model of the session that goes on cannot be asked.
        restored: Option<String>,
        /// The variables that usually hold keys.
        variables: Vec<String>,
    },
}

impl ChoiceError {
    /// What to do about it, for people.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Client(error) => error.hints.clone(),
            Self::NoModel { variables, .. } if variables.is_empty() => {
                vec!["name a model, provider/id".to_owned()]
            }
            Self::NoModel { variables, .. } => vec![format!(
                "name a model, provider/id, or set the key of a provider: {}",
                variables.join(", ")
            )],
            Self::NotRecorded {
                cassette, recorded, ..
            } => vec![format!(
                "ask {}, or record it again: --record {cassette}",
                recorded.join(" or ")
            )],
            Self::Unknown(_) | Self::Credentials(_) => Vec::new(),
        }
    }
}

fn nothing_left(restored: Option<&str>) -> String {
    let why = "no model is named, and there are no credentials to choose one by";
    match restored {
        Some(restored) => format!("{restored}; {why}"),
        None => why.to_owned(),
    }
}

impl Models {
    /// All models of the built-in catalog, reached with these credentials.
    pub fn new(credentials: Credentials, options: ClientOptions) -> Self {
        Self {
            catalog: Catalog::default(),
            credentials,
            options,
            default: None,
            candidates: CANDIDATES.iter().map(|name| (*name).to_owned()).collect(),
            base_url: None,
            base_url_of: None,
            ready: Vec::new(),
            tape: None,
        }
    }

    /// Only this model, and those that need no credentials.
    pub fn of(client: Client, activity: Activity) -> Self {
        let name = client.model().full_id();
        Self::new(Credentials::none(), ClientOptions::new(activity))
            .with_client(client)
            .with_default(name)
    }

    /// Names are looked up in `catalog`.
    #[must_use]
    pub fn with_catalog(self, catalog: Catalog) -> Self {
        Self { catalog, ..self }
    }

    /// Where names are looked up.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The model of a session that names none.
    #[must_use]
    pub fn with_default(self, name: impl Into<String>) -> Self {
        Self {
            default: Some(name.into()),
            ..self
        }
    }

    /// Of these, the first with credentials is taken when no model is named;
    /// instead of one of each well-known provider.
    #[must_use]
    pub fn with_candidates<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        Self {
            candidates: names.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// Replaces the base URL of the model that [`Models::choose`] takes and of
    /// its provider's others. Those of other providers keep theirs, because the
    /// keys of one provider are none of another's business.
    #[must_use]
    pub fn with_base_url(self, url: impl Into<String>) -> Self {
        Self {
            base_url: Some(url.into()),
            ..self
        }
    }

    /// Records the calls of all models.
    #[must_use]
    pub fn with_recording(self, recording: Recording) -> Self {
        Self {
            tape: Some(Tape::Recording(recording)),
            ..self
        }
    }

    /// A cassette answers the calls of all models: only those that it knows can
    /// be asked, without credentials and without a network.
    #[must_use]
    pub fn with_replay(self, replay: Replay) -> Self {
        Self {
            tape: Some(Tape::Replaying(replay)),
            ..self
        }
    }

    /// A client that is ready answers to its model's full id: a script, or an
    /// endpoint that no catalog knows. It needs no credentials.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        let id = client.model().full_id();
        self.ready.retain(|other| other.model().full_id() != id);
        self.ready.push(client);
        self
    }

    /// The name of the model to ask: `given`, else that of the session that goes
    /// on, `restored` as provider and id, if it can still be asked; else the
    /// default; else the first candidate with a key. Whether a name that was
    /// given is one is for [`Models::client`] to say.
    ///
    /// # Errors
    /// `NoModel` when nothing is left.
    pub fn pick(
        &self,
        given: Option<&str>,
        restored: Option<(&str, &str)>,
    ) -> Result<Pick, ChoiceError> {
        if let Some(name) = given {
            return Ok(named(name));
        }
        let lost = match restored {
            None => None,
            Some((provider, id)) => match self.restorable(provider, id) {
                Ok(()) => return Ok(named(&format!("{provider}/{id}"))),
                Err(why) => Some(format!(
                    "the session's model {provider}/{id} cannot be asked: {why}"
                )),
            },
        };
        if let Some(name) = &self.default {
            let fallback = lost.map(|lost| format!("{lost}; the default, {name}, is used"));
            return Ok(Pick {
                name: name.clone(),
                fallback,
            });
        }
        let candidate = self.candidates.iter().find(|name| self.has_key(name));
        let Some(name) = candidate else {
            return Err(self.nothing(lost));
        };
        let nobody = lost.unwrap_or_else(|| "no model is named".to_owned());
        Ok(Pick {
            name: name.clone(),
            fallback: Some(format!(
                "{nobody}: {name} is used, because there are credentials for it"
            )),
        })
    }

    /// A client of the model that [`Models::pick`] names. The base URL, if there
    /// is one, is from now on that of its provider.
    ///
    /// # Errors
    /// As [`Models::pick`] and [`Models::client`].
    pub fn choose(
        &mut self,
        given: Option<&str>,
        restored: Option<(&str, &str)>,
    ) -> Result<Chosen, ChoiceError> {
        let Pick { name, fallback } = self.pick(given, restored)?;
        let client = self.client(&name)?;
        self.base_url_of = Some(client.model().provider.clone());
        Ok(Chosen { client, fallback })
    }

    /// A client of the model with this name, in any form that
    /// [`Catalog::resolve`] understands.
    ///
    /// # Errors
    /// `Unknown` with the nearest names, `Credentials` when a key cannot be
    /// read, `Client` when there is none or it cannot be used.
    pub fn client(&self, name: &str) -> Result<Client, ChoiceError> {
        match &self.tape {
            None => self.untaped(name),
            Some(Tape::Recording(recording)) => Ok(self.untaped(name)?.recorded(recording.clone())),
            Some(Tape::Replaying(replay)) => self.replayed(name, replay),
        }
    }

    /// A client of a recorded model, as it was described then.
    fn replayed(&self, name: &str, replay: &Replay) -> Result<Client, ChoiceError> {
        let known = replay.model(name).or_else(|| {
            let model = self.catalog.resolve(name, None).ok()?;
            replay.model(&model.full_id())
        });
        let model = known.ok_or_else(|| ChoiceError::NotRecorded {
            name: name.to_owned(),
            cassette: replay.name().to_owned(),
            recorded: replay.models().map(Model::full_id).collect(),
        })?;
        let options = self.options.clone();
        Ok(Client::replayed(model.clone(), replay.clone(), options))
    }

    fn untaped(&self, name: &str) -> Result<Client, ChoiceError> {
        if let Some(client) = self.ready(name) {
            return Ok(client.clone());
        }
        let model = self.catalog.resolve(name, None)?;
        if let Some(client) = self.ready(&model.full_id()) {
            return Ok(client.clone());
        }
        if model.base_url.is_empty() {
            return Err(ChoiceError::Unknown(UnknownModel {
                message: format!("there is no script for `{name}`"),
                nearest: self.ready.iter().map(|one| one.model().full_id()).collect(),
            }));
        }
        let (model, credential) = self.reach(name, model)?;
        Client::http(model, credential.key, self.options.clone())
            .map_err(|error| ChoiceError::Client(Box::new(error)))
    }

    /// The model at the address that holds for it, and what opens it.
    fn reach(&self, name: &str, model: Model) -> Result<(Model, Credential), ChoiceError> {
        let credential = self
            .credentials
            .of(&model)
            .map_err(ChoiceError::Credentials)?;
        let url = self.base_url_for(&model).or(credential.base_url.as_deref());
        let model = match url {
            Some(url) => self.catalog.resolve(name, Some(url))?,
            None => model,
        };
        Ok((model, credential))
    }

    fn base_url_for(&self, model: &Model) -> Option<&str> {
        let ours = self.base_url_of.as_ref();
        self.base_url
            .as_deref()
            .filter(|_| ours.is_none_or(|provider| *provider == model.provider))
    }

    fn ready(&self, name: &str) -> Option<&Client> {
        self.ready.iter().find(|one| one.model().full_id() == name)
    }

    /// Whether a session may go on with its model, or why not. A key that
    /// should be there and cannot be read is no reason for another model.
    fn restorable(&self, provider: &str, id: &str) -> Result<(), String> {
        let name = format!("{provider}/{id}");
        if self.ready(&name).is_some() {
            return Ok(());
        }
        if let Some(Tape::Replaying(replay)) = &self.tape {
            let known = replay.model(&name).is_some();
            return known
                .then_some(())
                .ok_or("the cassette has no calls of it".to_owned());
        }
        let exact = |model: &Model| model.provider == provider && model.id == id;
        let model = self.catalog.resolve(&name, None).ok().filter(exact);
        let Some(model) = model.filter(|model| !model.base_url.is_empty()) else {
            return Err("there is no such model".to_owned());
        };
        match self.reach(&name, model) {
            Ok((model, credential)) if credential.key.is_none() && !model.key_optional => {
                Err(format!("there is no key for {provider}"))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Whether there is a key for a candidate, or should be one.
    fn has_key(&self, name: &str) -> bool {
        self.ready(name).is_some()
            || self.catalog.resolve(name, None).is_ok_and(|model| {
                !matches!(
                    self.credentials.of(&model),
                    Ok(Credential { key: None, .. })
                )
            })
    }

    fn nothing(&self, restored: Option<String>) -> ChoiceError {
        let mut variables: Vec<String> = Vec::new();
        let candidates = self.candidates.iter();
        for model in candidates.filter_map(|name| self.catalog.resolve(name, None).ok()) {
            for name in model.api_key_env {
                if !variables.contains(&name) {
                    variables.push(name);
                }
            }
        }
        ChoiceError::NoModel {
            restored,
            variables,
        }
    }
}

fn named(name: &str) -> Pick {
    Pick {
        name: name.to_owned(),
        fallback: None,
    }
}
