//! What a call carries: its address, its headers, its key.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::model::description::{KeyPlace, Model};
use crate::model::endpoint;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::wire;

/// A call of a model with a key.
pub(super) struct Call<'a> {
    pub(super) model: &'a Model,
    key: Option<&'a str>,
}

impl<'a> Call<'a> {
    pub(super) fn new(model: &'a Model, key: Option<&'a str>) -> Self {
        Self { model, key }
    }

    pub(super) fn address(&self) -> String {
        let extras = &self.model.extras;
        let key = match &extras.key_place {
            KeyPlace::Query(name) => self.key.map(|key| (name.as_str(), key)),
            KeyPlace::Dialect | KeyPlace::Header(_) => None,
        };
        let query = extras.query.iter();
        let query = query.map(|(name, value)| (name.as_str(), value.as_str()));
        let path = wire::path(self.model);
        endpoint::address(&self.model.base_url, &path, query.chain(key))
    }

    pub(super) fn headers(&self) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        let (usual, own) = match &self.model.extras.key_place {
            KeyPlace::Dialect => (self.key, None),
            KeyPlace::Header(name) => (None, self.key.map(|key| (name, key))),
            KeyPlace::Query(_) => (None, None),
        };
        for (name, value) in wire::headers(self.model, usual) {
            headers.insert(HeaderName::from_static(name), sensitive(&value)?);
        }
        if let Some((name, key)) = own {
            let value = match name.eq_ignore_ascii_case("authorization") {
                true => format!("Bearer {key}"),
                false => key.to_owned(),
            };
            headers.insert(header_name(name)?, sensitive(&value)?);
        }
        for header in &self.model.extras.headers {
            let value = header.value.as_deref().unwrap_or_default();
            headers.insert(header_name(&header.name)?, sensitive(value)?);
        }
        Ok(headers)
    }

    /// What no error may repeat.
    pub(super) fn secrets(&self) -> Vec<String> {
        let headers = self.model.extras.headers.iter();
        let from_env = headers.filter(|header| header.env.is_some());
        let values = from_env.filter_map(|header| header.value.clone());
        values.chain(self.key.map(str::to_owned)).collect()
    }
}

pub(super) fn no_key(model: &Model) -> ModelError {
    ModelError::new(
        ModelErrorKind::Auth,
        format!("there is no key for {}", model.provider),
    )
    .with_hint(key_hint(model))
}

pub(super) fn no_header(model: &Model, name: &str, variable: Option<&str>) -> ModelError {
    let variable = variable.unwrap_or("its variable");
    ModelError::new(
        ModelErrorKind::Auth,
        format!(
            "there is no value for the header {name} of {}",
            model.provider
        ),
    )
    .with_hint(format!("set {variable}"))
}

pub(super) fn key_hint(model: &Model) -> String {
    let file = model.extras.key_file.as_ref();
    let into_file = file.map(|path| format!("put a valid key into {}", path.display()));
    match (model.api_key_env.as_slice(), into_file) {
        ([], None) => format!("{} needs another key", model.provider),
        ([], Some(into_file)) => into_file,
        (names, into_file) => {
            let hint = format!("set {} to a valid key", names.join(" or "));
            into_file.map_or_else(
                || hint.clone(),
                |into_file| format!("{hint}, or {into_file}"),
            )
        }
    }
}

fn header_name(name: &str) -> Result<HeaderName, ModelError> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        ModelError::new(
            ModelErrorKind::InvalidRequest,
            format!("`{name}` cannot be the name of a header"),
        )
    })
}

/// A value that is never shown.
fn sensitive(value: &str) -> Result<HeaderValue, ModelError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        ModelError::new(
            ModelErrorKind::Auth,
            "a key or a header holds characters that it cannot have",
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}
