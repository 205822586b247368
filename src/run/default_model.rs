//! The models of a job, and the one that is asked when it names none.

use std::path::Path;

use serde_json::json;

use crate::clock::Activity;
use crate::event::Warning;
use crate::model::{self, Client, ClientOptions};
use crate::session::Models;
use crate::task::{self, Job, ScriptProblem};

use super::Environment;

/// The variable that names the model of every job that names none.
const VARIABLE: &str = "AGENT_MODEL";

/// Gives a job that names no model that of the session which it goes on with,
/// else the one of the environment: `AGENT_MODEL`, else one of the first provider
/// with credentials. Whenever nobody named it, there is a warning. A relative
/// script starts at `cwd`.
///
/// Without any the job still names none.
pub fn choose_model(job: &mut Job, environment: &Environment, cwd: &Path) {
    if job.settings.model.is_some() {
        return;
    }
    // Names are looked at; nothing is called.
    let options = ClientOptions::new(Activity::new());
    let mut models = Models::new(environment.credentials(), options);
    if let Some(url) = &job.settings.base_url {
        models = models.with_base_url(url);
    }
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
    if let Some(field) = job.resolved.pointer_mut("/settings/model") {
        *field = json!(pick.name);
    }
    job.settings.model = Some(pick.name);
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
    name: Option<&str>,
    base_url: Option<&str>,
    options: ClientOptions,
) -> Result<Models, ScriptProblem> {
    let mut models = Models::new(environment.credentials(), options.clone());
    if let Some(url) = base_url {
        models = models.with_base_url(url);
    }
    let path = name.and_then(|name| Some((name, name.strip_prefix(task::SCRIPTED)?)));
    // What is no name is said when it is asked for.
    if let Some((name, path)) = path
        && let Ok(model) = model::resolve(name, None)
    {
        let script = task::load_script(Path::new(path))?;
        models = models.with_client(Client::scripted(model, script, options));
    }
    Ok(models)
}
