//! Which models there are: those that are built in, and those of the user's own
//! file of providers, which goes first.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::assumed;
use crate::model::description::{Api, Model, Source};
use crate::model::embedded::{self, Provider};
use crate::model::endpoint;
use crate::model::own::OwnProvider;

/// The provider of models that are scripts.
const SCRIPTED: &str = "scripted";
/// The most names that an error suggests.
const NEAREST_MAX: usize = 3;

/// No model of this name can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnknownModel {
    /// What is wrong, for people.
    pub message: String,
    /// The nearest names, best first.
    pub nearest: Vec<String>,
}

/// The models that can be named. Cheap to clone; the default has those that are
/// built in.
#[derive(Clone, Default)]
pub struct Catalog {
    own: Option<Arc<Own>>,
}

/// The user's file of providers.
struct Own {
    file: PathBuf,
    providers: BTreeMap<String, OwnProvider>,
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own: Vec<&str> = self.own().map(|(id, _)| id).collect();
        f.debug_struct("Catalog").field("own", &own).finish()
    }
}

/// A provider, as lists tell of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedProvider {
    /// The id.
    pub id: String,
    /// The dialects that it speaks, each with its base URL.
    pub base_urls: Vec<(Api, String)>,
    /// Where its key is looked for: variables, then a file.
    pub key_sources: Vec<String>,
    /// Who knows it.
    pub source: Source,
    /// Whether any id may stand behind its own.
    pub any_model: bool,
}

impl Catalog {
    /// The built-in models under `providers`, by id, which `file` describes.
    pub fn new(file: PathBuf, providers: BTreeMap<String, OwnProvider>) -> Self {
        let own = Arc::new(Own { file, providers });
        Self { own: Some(own) }
    }

    /// The user's file of providers, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.own.as_ref().map(|own| own.file.as_path())
    }

    /// The providers of the user's file.
    pub fn own(&self) -> impl Iterator<Item = (&str, &OwnProvider)> {
        let own = self.own.iter().flat_map(|own| &own.providers);
        own.map(|(id, provider)| (id.as_str(), provider))
    }

    /// Finds a model: `provider/id`, a bare id that only one provider has,
    /// `openai-chat/any-id` or the same with another dialect for an endpoint
    /// that nobody knows, or `scripted/path`. `base_url` replaces the known one.
    ///
    /// # Errors
    /// When no model has that name (the nearest names are given), when several
    /// have, or when `base_url` is no URL.
    pub fn resolve(&self, name: &str, base_url: Option<&str>) -> Result<Model, UnknownModel> {
        if let Some(url) = base_url {
            endpoint::check(url).map_err(|reason| {
                let shown = endpoint::without_login(url);
                unknown(format!("base_url `{shown}`: {reason}"))
            })?;
        }
        let (provider, id) = name.split_once('/').unwrap_or(("", name));
        if id.is_empty() {
            return Err(unknown(format!(
                "`{name}` names no model; write `provider/id`"
            )));
        }
        if provider == SCRIPTED {
            return Ok(assumed::scripted(id));
        }
        if let Some(api) = Api::from_name(provider) {
            let url = base_url.unwrap_or_else(|| api.usual_base_url());
            return Ok(assumed::ad_hoc(api, id, url));
        }
        let model = match self.find(provider, id) {
            Some(model) => model,
            None => self.find_bare(name)?,
        };
        Ok(match base_url {
            Some(url) => model.with_base_url(url.to_owned()),
            None => model.with_key_need(),
        })
    }

    /// All models that have a name: one's own, then those of the catalog.
    pub fn models(&self) -> impl Iterator<Item = Model> {
        self.names().filter_map(|(provider, id)| {
            let model = self.find(provider, id)?;
            Some(model.with_key_need())
        })
    }

    /// All providers: one's own, then those of the catalog.
    pub fn providers(&self) -> Vec<ListedProvider> {
        let listed = |id: &str| self.listed(id);
        let own = self.own().map(|(id, _)| id);
        let only_own = own.filter(|id| Provider::of(id).is_none());
        let built_in = embedded::providers().map(listed);
        only_own.map(listed).chain(built_in).collect()
    }

    /// The names that are most like `name`, best first.
    pub fn nearest(&self, name: &str, most: usize) -> Vec<String> {
        let wanted = name.to_ascii_lowercase();
        let likeness = |other: &str| {
            strsim::normalized_damerau_levenshtein(&wanted, &other.to_ascii_lowercase())
        };
        let mut scored: Vec<(f64, String)> = self
            .names()
            .map(|(provider, id)| {
                let full = format!("{provider}/{id}");
                (likeness(&full).max(likeness(id)), full)
            })
            .filter(|(score, _)| *score >= 0.6)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let names = scored.into_iter().map(|(_, name)| name);
        names.take(most).collect()
    }

    /// Provider and id of every model: those that only the user's file names,
    /// then the catalog's.
    fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.own().flat_map(|(provider, own)| {
            let ids = own.section.models.keys();
            ids.map(move |id| (provider, id.as_str()))
        });
        let only_own = own.filter(|(provider, id)| !embedded::has(provider, id));
        only_own.chain(embedded::names().map(|(provider, id): (&str, &str)| (provider, id)))
    }

    fn own_provider(&self, id: &str) -> Option<&OwnProvider> {
        self.own.as_ref()?.providers.get(id)
    }

    /// The model `provider/id`.
    fn find(&self, provider: &str, id: &str) -> Option<Model> {
        let known = embedded::find(provider, id);
        let Some(own) = self.own_provider(provider) else {
            return known;
        };
        let section = own.section.models.get(id);
        if known.is_none() && section.is_none() && !takes_any(provider, own) {
            return None;
        }
        let base = known.unwrap_or_else(|| own.assumed(provider, id));
        Some(own.over(base, section.and_then(Option::as_ref)))
    }

    /// The model of an id that only one provider has.
    fn find_bare(&self, name: &str) -> Result<Model, UnknownModel> {
        let found: Vec<(&str, &str)> = self.names().filter(|(_, id)| *id == name).collect();
        if let [(provider, id)] = found.as_slice()
            && let Some(model) = self.find(provider, id)
        {
            return Ok(model);
        }
        let names: Vec<String> = found
            .iter()
            .map(|(provider, id)| format!("{provider}/{id}"))
            .collect();
        if !names.is_empty() {
            return Err(UnknownModel {
                message: format!(
                    "several providers have `{name}`; write one of {}",
                    quoted(&names)
                ),
                nearest: names,
            });
        }
        let nearest = self.nearest(name, NEAREST_MAX);
        let hint = match nearest.as_slice() {
            [] => "a model is written `provider/id`, and `agent models` lists them".to_owned(),
            names => format!("did you mean {}?", quoted(names)),
        };
        Err(UnknownModel {
            message: format!("unknown model `{name}`; {hint}"),
            nearest,
        })
    }

    fn listed(&self, id: &str) -> ListedProvider {
        let built_in = Provider::of(id);
        let own = self.own_provider(id);
        // What holds for all models of the provider, any of them tells.
        let key_sources = match (own, &built_in) {
            (Some(own), _) => own.over(own.assumed(id, ""), None).key_sources(),
            (None, Some(built_in)) => vec![built_in.api_key_env.clone()],
            (None, None) => Vec::new(),
        };
        let section = own.map(|own| &own.section);
        let apis = match (&built_in, section.and_then(|own| own.api)) {
            (Some(built_in), None) => built_in.apis().collect(),
            (_, api) => vec![api.unwrap_or(Api::OpenaiChat)],
        };
        let base_url = |api: Api| {
            let written = section.and_then(|own| own.base_url.as_deref());
            let known = built_in.as_ref().and_then(|known| known.base_url(api));
            written.or(known).unwrap_or_default().to_owned()
        };
        ListedProvider {
            id: id.to_owned(),
            base_urls: apis.into_iter().map(|api| (api, base_url(api))).collect(),
            key_sources,
            source: match own {
                Some(_) => Source::Providers,
                None => Source::Catalog,
            },
            any_model: own.is_some_and(|own| takes_any(id, own)),
        }
    }
}

/// Whether any id may stand behind that of a provider.
fn takes_any(id: &str, own: &OwnProvider) -> bool {
    own.section.models.is_empty() && Provider::of(id).is_none()
}

/// Finds a model of the built-in catalog, as [`Catalog::resolve`] does.
///
/// # Errors
/// As [`Catalog::resolve`].
pub fn resolve(name: &str, base_url: Option<&str>) -> Result<Model, UnknownModel> {
    Catalog::default().resolve(name, base_url)
}

/// The ids of all models of the built-in catalog, `provider/id`.
pub fn ids() -> impl Iterator<Item = String> {
    embedded::names().map(|(provider, id)| format!("{provider}/{id}"))
}

fn quoted(names: &[String]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn unknown(message: String) -> UnknownModel {
    UnknownModel {
        message,
        nearest: Vec::new(),
    }
}
