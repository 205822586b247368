//! The models of a job, and the one that is asked when it names none.

use std::path::Path;

use crate::clock::Activity;
use crate::event::Warning;
use crate::model::{Catalog, Client, ClientOptions, Model, UnknownModel};
use crate::session::Models;
use crate::task::{self, Job, ScriptProblem};

use super::Environment;
use super::providers::key_file_warning;

/// The variable that names the model of every job that names none.
const VARIABLE: &str = "AGENT_MODEL";

/// Gives a job that names no model that of the session which it goes on with,
/// else the one of the environment: `AGENT_MODEL`, else one of the first provider
/// with credentials. Whenever nobody named it, there is a warning. A relative
/// script starts at `cwd`.
///
/// Without any the job still names none. A key that everybody can read is a
/// warning too.
pub fn choose_model(job: &mut Job, environment: &Environment, catalog: &Catalog, cwd: &Path) {
    if job.settings.model.is_none() {
        pick_model(job, environment, catalog, cwd);
    }
    let name = job.settings.model.as_deref();
    let model = name.and_then(|name| catalog.resolve(name, None).ok());
    let warning = model.and_then(|model| key_file_warning(&model, environment));
    job.warnings.extend(warning);
}

fn pick_model(job: &mut Job, environment: &Environment, catalog: &Catalog, cwd: &Path) {
    // Names are looked at; nothing is called.
    let options = ClientOptions::new(Activity::new());
    let base_url = job.settings.base_url.as_deref();
    let mut models = all_models(environment, catalog, base_url, options);
    if let Some(name) = environment.value(VARIABLE) {
        models = models.with_default(absolute(name, cwd));
    }
    let restored = job.resume.as_ref().and_then(|resume| resume.model.as_ref());
    let had = restored.map(|(provider, id)| (provider.as_str(), id.as_str()));
    let Ok(pick) = models.pick(None, had) else {
        return;
    };
    let code = if restored.is_some() {
        "model_fallback"
    } else {
        "default_model"
    };
    job.warnings.extend(pick.fallback.map(|why| Warning {
        code: code.to_owned(),
        message: format!("{why}; set settings.model, --model or {VARIABLE}"),
    }));
    job.name_model(pick.name);
}

/// The model of a job at the address that holds for it; none when it names none.
///
/// # Errors
/// When there is no such model.
pub fn model_of(
    job: &Job,
    environment: &Environment,
    catalog: &Catalog,
) -> Result<Option<Model>, UnknownModel> {
    let Some(name) = &job.settings.model else {
        return Ok(None);
    };
    let model = catalog.resolve(name, job.settings.base_url.as_deref())?;
    if job.settings.base_url.is_none()
        && let Some(url) = environment.base_url(&model)
    {
        return catalog.resolve(name, Some(url)).map(Some);
    }
    Ok(Some(model))
}

/// A script's file is named from where the command was started.
fn absolute(name: &str, cwd: &Path) -> String {
    match name.strip_prefix(task::SCRIPTED) {
        Some(path) => format!("{}{}", task::SCRIPTED, cwd.join(path).display()),
        None => name.to_owned(),
    }
}

/// The models of the environment, and the script that `name` stands for, if it
/// stands for one. `base_url` belongs to the model that is chosen.
///
/// # Errors
/// When the script cannot be played.
pub fn models(
    environment: &Environment,
    catalog: &Catalog,
    name: Option<&str>,
    base_url: Option<&str>,
    mut options: ClientOptions,
) -> Result<Models, ScriptProblem> {
    options.proxies = environment.proxies();
    options.authorities = environment.authorities();
    let models = all_models(environment, catalog, base_url, options.clone());
    match name {
        Some(name) => with_script(models, name, options),
        None => Ok(models),
    }
}

/// All models that the environment opens. `base_url` belongs to the one that is
/// chosen.
fn all_models(
    environment: &Environment,
    catalog: &Catalog,
    base_url: Option<&str>,
    options: ClientOptions,
) -> Models {
    let models = Models::new(environment.credentials(), options).with_catalog(catalog.clone());
    match base_url {
        Some(url) => models.with_base_url(url),
        None => models,
    }
}

/// The same with the script that `name` stands for, if it stands for one.
///
/// # Errors
/// When the script cannot be played.
pub(super) fn with_script(
    models: Models,
    name: &str,
    options: ClientOptions,
) -> Result<Models, ScriptProblem> {
    let Some(path) = name.strip_prefix(task::SCRIPTED) else {
        return Ok(models);
    };
    // What is no name is said when it is asked for.
    let Ok(model) = models.catalog().resolve(name, None) else {
        return Ok(models);
    };
    let script = task::load_script(Path::new(path))?;
    Ok(models.with_client(Client::scripted(model, script, options)))
}

/// What a run would tell of the models besides its own: those that it leaves
/// out. Nothing is called.
pub fn models_left_out(job: &Job, environment: &Environment, catalog: &Catalog) -> Vec<Warning> {
    let settings = &job.settings;
    let options = ClientOptions::new(Activity::new());
    let base_url = settings.base_url.as_deref();
    let mut models = all_models(environment, catalog, base_url, options);
    // From here on the base URL is that of the job's own model; what is wrong
    // with that one is told elsewhere.
    let _ = models.choose(settings.model.as_deref(), None);
    let fallbacks = settings.fallback_models.iter();
    fallbacks
        .map(|name| ("fallback", name))
        .chain(
            settings
                .small_model
                .iter()
                .map(|name| ("small model", name)),
        )
        .filter(|(_, name)| !name.starts_with(task::SCRIPTED))
        .filter_map(|(role, name)| models.spare(role, name).ok()?.err())
        .collect()
}
