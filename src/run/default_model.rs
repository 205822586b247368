//! The model of a job that names none.

use std::path::Path;

use serde_json::json;

use crate::clock::Activity;
use crate::event::Warning;
use crate::model::ClientOptions;
use crate::session::Models;
use crate::task::{self, Job};

use super::Environment;

/// The variable that names the model of every job that names none.
const VARIABLE: &str = "AGENT_MODEL";

/// Gives a job that names no model the one of the environment: `AGENT_MODEL`,
/// else one of the first provider with credentials, with a warning, because
/// nobody chose it. A relative script starts at `cwd`.
///
/// Without either the job still names none.
pub fn choose_model(job: &mut Job, environment: &Environment, cwd: &Path) {
    if job.settings.model.is_some() {
        return;
    }
    // Names are looked at; nothing is called.
    let options = ClientOptions::new(Activity::new());
    let mut models = Models::new(environment.credentials(), options);
    if let Some(name) = environment.value(VARIABLE) {
        models = models.with_default(absolute(name, cwd));
    }
    let Ok(pick) = models.pick(None, None) else {
        return;
    };
    job.warnings.extend(pick.fallback.map(|why| Warning {
        code: "default_model".to_owned(),
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
