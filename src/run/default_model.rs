//! The model of a job that names none.

use std::path::Path;

use serde_json::json;

use crate::event::Warning;
use crate::model;
use crate::task::{self, Job};

use super::Environment;

/// The variable that names the model of every job that names none.
const VARIABLE: &str = "AGENT_MODEL";

/// One model a provider, the first with credentials is taken.
const CHOICES: &[&str] = &[
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

/// Gives a job that names no model the one of the environment: `AGENT_MODEL`,
/// else one of the first provider with credentials, with a warning, because
/// nobody chose it. A relative script starts at `cwd`.
///
/// Without either the job still names none.
pub fn choose_model(job: &mut Job, environment: &Environment, cwd: &Path) {
    if job.settings.model.is_some() {
        return;
    }
    let chosen = environment.value(VARIABLE).map(|name| {
        let script = name.strip_prefix(task::SCRIPTED).map(|path| cwd.join(path));
        script.map_or_else(
            || name.to_owned(),
            |path| format!("{}{}", task::SCRIPTED, path.display()),
        )
    });
    let name = match chosen.or_else(|| with_credentials(environment, job)) {
        Some(name) => name,
        None => return,
    };
    if let Some(field) = job.resolved.pointer_mut("/settings/model") {
        *field = json!(name);
    }
    job.settings.model = Some(name);
}

fn with_credentials(environment: &Environment, job: &mut Job) -> Option<String> {
    let name = CHOICES.iter().find(|name| {
        model::resolve(name, None)
            // A key file that cannot be read was meant to be one.
            .is_ok_and(|model| !matches!(environment.api_key(&model), Ok(None)))
    })?;
    job.warnings.push(Warning {
        code: "default_model".to_owned(),
        message: format!(
            "no model is named: {name} is used, because there are credentials for it; \
             set settings.model, --model or {VARIABLE}"
        ),
    });
    Some((*name).to_owned())
}
