//! The user's file of providers: read like a task file, strictly and with the
//! place of every mistake. What may be a key is never in a message or a snippet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::{
    self, Api, Catalog, ExtraHeader, ModelSection, OwnProvider, ProviderSection, ProvidersFile,
};
use crate::task::diagnostics::{At, Diagnostics, Kind as ProblemKind, Report};
use crate::task::tree::{Entry, Kind, Node};
use crate::task::{read, schema, validate, yaml};

/// The largest file, in bytes.
const FILE_MAX: u64 = 1 << 20;
/// Words in the name of a key whose value may be a secret.
const SECRET_WORDS: &[&str] = &["key", "token", "secret", "password", "auth"];
/// The keys of a provider that hold the place of a secret, and none.
const HARMLESS: &[&str] = &["api_key_file", "api_key_header", "api_key_query"];

/// Loads the file of providers at `path`, which is absolute. Header values come
/// from `env`; `~/` is `home`. No key is read.
///
/// # Errors
/// Everything that is wrong with the file, in one report.
pub fn load_providers(
    path: &Path,
    env: &BTreeMap<String, String>,
    home: Option<&Path>,
) -> Result<Catalog, Diagnostics> {
    let mut report = Report::default();
    let name = path.display().to_string();
    let text = match read::text(path, FILE_MAX) {
        Ok(text) => text,
        Err(error) => {
            let source = report.source(name, "");
            let at = report.whole(source);
            report.unread(at, &error);
            return Err(told(report));
        }
    };
    let source = report.source(name, text);
    let Some(mut root) = yaml::parse(&mut report, source) else {
        return Err(told(report));
    };
    if !matches!(root.kind, Kind::Map(_)) {
        let message = "a file of providers must be a map of keys to values";
        let hint = "write `version: 1` and `providers: …`".to_owned();
        report.error_with(root.at, "wrong_type", message, hint);
        return Err(told(report));
    }
    conceal(&root, &mut report);
    validate::check_all(&mut root, schema::providers(), &mut report);
    let loading = Loading {
        env,
        home,
        directory: path.parent().unwrap_or(Path::new("/")),
        report: &mut report,
    };
    let own = loading.run(&root);
    match own.filter(|_| report.is_clean()) {
        Some(own) => Ok(Catalog::new(path.to_owned(), own)),
        None => Err(told(report)),
    }
}

/// The problems, which are those of a configuration.
fn told(report: Report) -> Diagnostics {
    let mut problems = report.into_diagnostics();
    if problems.kind == ProblemKind::BadTask {
        problems.kind = ProblemKind::Config;
    }
    problems
}

/// Takes what may be a secret out of the text that snippets are cut from.
fn conceal(root: &Node, report: &mut Report) {
    for (_, provider) in entries(root.get("providers")) {
        for (key, value) in entries(Some(provider)) {
            let suspicious = match key {
                "api_key_env" => !value.text().is_some_and(is_variable),
                "base_url" => value.text().is_some_and(|url| url.contains('@')),
                _ if HARMLESS.contains(&key) => false,
                _ => SECRET_WORDS.iter().any(|word| key.contains(word)),
            };
            if suspicious {
                report.mask(value.at);
            }
            if matches!(key, "headers" | "query") {
                for (_, value) in entries(Some(value)) {
                    report.mask(value.at);
                }
            }
        }
    }
}

/// Keys and values of a map.
fn entries(node: Option<&Node>) -> impl Iterator<Item = (&str, &Node)> {
    let entries: &[Entry] = match node.map(|node| &node.kind) {
        Some(Kind::Map(entries)) => entries,
        _ => &[],
    };
    entries.iter().map(|one| (one.key.as_str(), &one.value))
}

/// Whether a text can be the name of an environment variable.
fn is_variable(text: &str) -> bool {
    let allowed = |symbol: char| symbol.is_ascii_alphanumeric() || symbol == '_';
    !text.is_empty() && text.chars().all(allowed) && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// A file on its way to providers.
struct Loading<'a> {
    env: &'a BTreeMap<String, String>,
    home: Option<&'a Path>,
    directory: &'a Path,
    report: &'a mut Report,
}

/// A provider that is looked at.
struct Place<'a> {
    id: &'a str,
    key_at: At,
    node: &'a Node,
}

impl Place<'_> {
    /// The place of a value, or of the provider when it is not there.
    fn at(&self, path: &[&str]) -> At {
        self.node.at_path(path).map_or(self.key_at, |node| node.at)
    }

    /// A key of the provider, for people.
    fn name(&self, key: &str) -> String {
        format!("`providers.{}.{key}`", self.id)
    }
}

impl Loading<'_> {
    fn run(mut self, root: &Node) -> Option<BTreeMap<String, OwnProvider>> {
        let file: ProvidersFile = match serde_json::from_value(root.to_json()) {
            Ok(file) => file,
            Err(_) if !self.report.is_clean() => return None,
            Err(error) => {
                self.report.error(root.at, "bad_file", error.to_string());
                return None;
            }
        };
        let Some(Kind::Map(nodes)) = root.get("providers").map(|node| &node.kind) else {
            return Some(BTreeMap::new());
        };
        let mut own = BTreeMap::new();
        for (id, section) in file.providers {
            let Some(entry) = nodes.iter().find(|entry| entry.key == id) else {
                continue;
            };
            let place = Place {
                id: &id,
                key_at: entry.key_at,
                node: &entry.value,
            };
            let provider = self.provider(section, &place);
            own.insert(id, provider);
        }
        Some(own)
    }

    fn provider(&mut self, section: ProviderSection, place: &Place<'_>) -> OwnProvider {
        self.check_id(place);
        self.check_url(section.base_url.as_deref(), place, &["base_url"]);
        self.check_reach(&section, place);
        self.check_key(&section, place);
        for (id, model) in &section.models {
            if let Some(model) = model {
                self.check_model(id, model, &section, place);
            } else if id.is_empty() {
                self.report
                    .error(place.key_at, "bad_id", "the id of a model is empty");
            }
        }
        OwnProvider {
            key_file: self.key_file(section.api_key_file.as_deref(), place),
            headers: self.headers(&section, place),
            section,
        }
    }

    fn check_id(&mut self, place: &Place<'_>) {
        let id = place.id;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        let fits = id.chars().all(plain) && id.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !fits {
            let message = format!("`{id}` cannot be the id of a provider");
            let hint = "use lower-case letters, digits, `.`, `_` and `-`".to_owned();
            self.report
                .error_with(place.key_at, "bad_id", message, hint);
        } else if id == "scripted" || Api::from_name(id).is_some() {
            let message = format!("`{id}` has a meaning of its own and cannot be a provider");
            let hint = format!("choose another id, as `my-{id}`");
            self.report
                .error_with(place.key_at, "bad_id", message, hint);
        }
    }

    fn check_url(&mut self, url: Option<&str>, place: &Place<'_>, path: &[&str]) {
        let Some(Err(reason)) = url.map(model::check_base_url) else {
            return;
        };
        let message = format!("{}: {reason}", place.name(&path.join(".")));
        let hint = reason
            .contains("query")
            .then(|| "`query` takes query parameters".to_owned());
        self.report
            .error_with(place.at(path), "bad_url", message, hint);
    }

    /// Every model must have an address.
    fn check_reach(&mut self, section: &ProviderSection, place: &Place<'_>) {
        if section.base_url.is_some() {
            return;
        }
        let of_its_own = |model: &Option<ModelSection>| {
            model.as_ref().is_some_and(|model| model.base_url.is_some())
        };
        let reachable = match (model::is_built_in(place.id), section.api) {
            (true, None) => true,
            (true, Some(api)) => model::has_built_in_url(place.id, api),
            (false, _) => !section.models.is_empty() && section.models.values().all(of_its_own),
        };
        if !reachable {
            let message = format!("{} is missing", place.name("base_url"));
            let hint = "write where the dialect's paths start, as `http://127.0.0.1:8080/v1`";
            self.report
                .error_with(place.key_at, "missing_key", message, hint.to_owned());
        }
    }

    fn check_key(&mut self, section: &ProviderSection, place: &Place<'_>) {
        if section
            .api_key_env
            .as_deref()
            .is_some_and(|name| !is_variable(name))
        {
            let message = format!(
                "{} must name an environment variable",
                place.name("api_key_env")
            );
            let hint = "a key itself never stands in the file".to_owned();
            let at = place.at(&["api_key_env"]);
            self.report.error_with(at, "bad_format", message, hint);
        }
        if let (Some(_), Some(_)) = (&section.api_key_header, &section.api_key_query) {
            let message = "the key goes into a header or into the query, not both";
            self.report
                .error(place.at(&["api_key_query"]), "conflict", message);
        }
        let keyless = section.api_key_env.is_none() && section.api_key_file.is_none();
        for (key, value) in [
            ("api_key_header", &section.api_key_header),
            ("api_key_query", &section.api_key_query),
        ] {
            if value.is_some() && keyless && !model::is_built_in(place.id) {
                let message = format!("{} has no key to carry", place.name(key));
                let hint = "write `api_key_env` or `api_key_file` as well".to_owned();
                self.report
                    .error_with(place.at(&[key]), "unused_key", message, hint);
            }
        }
        if let Some(name) = &section.api_key_header
            && let Err(reason) = model::check_header(name)
        {
            let message = format!("`{name}`: {reason}");
            self.report
                .error(place.at(&["api_key_header"]), "bad_header", message);
        }
    }

    fn check_model(
        &mut self,
        id: &str,
        model: &ModelSection,
        section: &ProviderSection,
        place: &Place<'_>,
    ) {
        self.check_url(
            model.base_url.as_deref(),
            place,
            &["models", id, "base_url"],
        );
        let defaults = section.defaults.as_ref();
        let window = model.context_window;
        let window = window.or(defaults.and_then(|defaults| defaults.context_window));
        let output = model.max_output_tokens;
        let output = output.or(defaults.and_then(|defaults| defaults.max_output_tokens));
        if let (Some(window), Some(output)) = (window, output)
            && output > window
        {
            let message = format!("a reply of {output} tokens does not fit the window of {window}");
            let at = place.at(&["models", id, "max_output_tokens"]);
            self.report.error(at, "out_of_range", message);
        }
    }

    /// The key's file, absolute.
    fn key_file(&mut self, written: Option<&str>, place: &Place<'_>) -> Option<PathBuf> {
        let written = written?;
        let Some(below_home) = written.strip_prefix("~/") else {
            return Some(self.directory.join(written));
        };
        if self.home.is_none() {
            let message = "there is no home directory to start at";
            self.report
                .error(place.at(&["api_key_file"]), "no_home", message);
        }
        Some(self.home?.join(below_home))
    }

    fn headers(&mut self, section: &ProviderSection, place: &Place<'_>) -> Vec<ExtraHeader> {
        let mut headers: Vec<ExtraHeader> = Vec::new();
        for (name, text) in &section.headers {
            headers.push(ExtraHeader {
                name: name.to_ascii_lowercase(),
                env: None,
                value: Some(text.clone()),
            });
            self.check_header_value(name, Some(text), place.at(&["headers", name]));
        }
        for (name, variable) in &section.headers_env {
            let at = place.at(&["headers_env", name]);
            if !is_variable(variable) {
                let message = format!("the header {name} must name an environment variable");
                self.report.error(place.key_at, "bad_format", message);
            }
            let value = self.env.get(variable).map(|value| value.trim().to_owned());
            let value = value.filter(|value| !value.is_empty());
            self.check_header_value(name, value.as_deref(), at);
            headers.push(ExtraHeader {
                name: name.to_ascii_lowercase(),
                env: Some(variable.clone()),
                value,
            });
        }
        let carrier = section
            .api_key_header
            .iter()
            .map(|name| name.to_ascii_lowercase());
        let mut names: Vec<String> = headers.iter().map(|header| header.name.clone()).collect();
        names.extend(carrier);
        names.sort_unstable();
        if let Some([twice, _]) = names.array_windows().find(|[one, other]| one == other) {
            let message = format!("the header {twice} has two values");
            self.report.error(place.key_at, "conflict", message);
        }
        headers
    }

    fn check_header_value(&mut self, name: &str, value: Option<&str>, at: At) {
        if let Err(reason) = model::check_header(name) {
            self.report
                .error(at, "bad_header", format!("`{name}`: {reason}"));
        }
        if value.is_some_and(|value| !model::is_header_value(value)) {
            let message =
                format!("the value of the header {name} holds characters that no header has");
            self.report.error(at, "bad_header", message);
        }
    }
}
