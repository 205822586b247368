//! The model: whether it can be asked, what that costs, and the way to it. No
//! key is shown, and none is sent.

use crate::clock::Activity;
use crate::model::{self, ClientOptions, Model};
use crate::run;
use crate::session::{ChoiceError, check_price};

use super::Patient;
use super::finding::Finding;

/// The variables that name proxies.
const PROXY_VARIABLES: [&str; 6] = [
    "https_proxy",
    "HTTPS_PROXY",
    "http_proxy",
    "HTTP_PROXY",
    "all_proxy",
    "ALL_PROXY",
];

/// The providers for which there are keys, and where those are.
pub(super) fn credentials(patient: &Patient<'_>) -> Finding {
    let providers = patient.catalog.providers().into_iter();
    let found: Vec<String> = providers
        .filter_map(|provider| {
            let mut sources = provider.key_sources.iter();
            let place = sources.find_map(|source| place_of_key(source, patient))?;
            Some(format!("{} ({place})", provider.id))
        })
        .collect();
    match found.is_empty() {
        false => Finding::ok("credentials", found.join(", ")),
        true if patient.job.settings.model.is_some() => Finding::ok("credentials", "none"),
        true => Finding::warning(
            "credentials",
            "none for any provider",
            "set the variable of a provider, such as ANTHROPIC_API_KEY, or ANTHROPIC_API_KEY_FILE \
             with the path of a file; `agent models` lists them",
        ),
    }
}

/// Where a key is that is looked for in `source`, a variable or a file.
fn place_of_key(source: &str, patient: &Patient<'_>) -> Option<String> {
    let environment = patient.environment;
    if environment.value(source).is_some() {
        return Some(source.to_owned());
    }
    let variable = format!("{source}_FILE");
    if environment.value(&variable).is_some() {
        return Some(variable);
    }
    let is_file = source.starts_with('/') && std::path::Path::new(source).exists();
    is_file.then(|| source.to_owned())
}

fn resolved(patient: &Patient<'_>) -> Option<Model> {
    run::model_of(patient.job, patient.environment, patient.catalog).ok()?
}

/// The model, made ready as for a run.
pub(super) fn model(patient: &Patient<'_>) -> Finding {
    let settings = &patient.job.settings;
    let name = settings.model.as_deref();
    let options = ClientOptions::new(Activity::new());
    let base_url = settings.base_url.as_deref();
    let models = run::models(
        patient.environment,
        patient.catalog,
        name,
        base_url,
        options,
    );
    let mut models = match models {
        Ok(models) => models,
        Err(problem) => {
            let advice = "correct the script, or name another model";
            return Finding::error("model", problem.message, advice);
        }
    };
    let error = match models.choose(name, None) {
        Ok(chosen) => return Finding::ok("model", described(chosen.client.model(), patient)),
        Err(error) => error,
    };
    let advice = match &error {
        ChoiceError::Credentials(_) => {
            "make the file readable, or set the variable of the key".to_owned()
        }
        other => other.hints().join("; "),
    };
    match name.is_none() && !patient.is_task {
        true => Finding::warning("model", error.to_string(), advice),
        false => Finding::error("model", error.to_string(), advice),
    }
}

fn described(model: &Model, patient: &Patient<'_>) -> String {
    let name = model.full_id();
    if model.source == model::Source::Script {
        return format!("{name}, which asks nobody");
    }
    let sources = model.key_sources();
    let place = sources.iter().find_map(|one| place_of_key(one, patient));
    let key = match place {
        Some(place) => format!("key from {place}"),
        None => "without a key".to_owned(),
    };
    let base_url = model::without_login(&model.base_url);
    format!("{name} by {} at {base_url}, {key}", model.api.name())
}

/// Whether the price of the model is known, and what follows when it is not.
pub(super) fn price(patient: &Patient<'_>) -> Option<Finding> {
    let model = resolved(patient)?;
    let limits = &patient.job.limits;
    Some(match check_price(limits, &model) {
        Err(stop) => Finding::error("price", stop.to_string(), stop.hints().join("; ")),
        Ok(Some(warning)) => Finding::warning(
            "price",
            warning.message,
            "lower limits.max_tokens, or give the price in the file of providers",
        ),
        Ok(None) => Finding::ok(
            "price",
            format!("known; limits.max_cost_usd is ${:.2}", limits.max_cost_usd),
        ),
    })
}

/// The proxy on the way to the model.
pub(super) fn proxy(patient: &Patient<'_>) -> Finding {
    let environment = patient.environment;
    let set = PROXY_VARIABLES.iter();
    let set: Vec<&str> = set
        .copied()
        .filter(|name| environment.value(name).is_some())
        .collect();
    if set.is_empty() {
        return Finding::ok("proxy", "none");
    }
    let model = resolved(patient).filter(|model| !model.base_url.is_empty());
    let Some(model) = model else {
        return Finding::ok("proxy", format!("{} set", set.join(", ")));
    };
    let host = model::without_login(&model.base_url);
    match environment.proxies().on_the_way_to(&model.base_url) {
        Ok(Some(proxy)) => Finding::ok("proxy", format!("{} on the way to {host}", proxy.shown())),
        Ok(None) => Finding::ok("proxy", format!("none on the way to {host}")),
        Err(error) => Finding::error("proxy", error.message, error.hints.join("; ")),
    }
}

/// Who vouches for the provider.
pub(super) fn certificates(patient: &Patient<'_>) -> Finding {
    let Some(authorities) = patient.environment.authorities() else {
        return Finding::ok("certificates", "the built-in authorities");
    };
    match authorities.check() {
        Ok(()) => Finding::ok(
            "certificates",
            "the built-in authorities and those of SSL_CERT_FILE",
        ),
        Err(error) => {
            let encrypted =
                resolved(patient).is_some_and(|model| model.base_url.starts_with("https:"));
            let advice = error.hints.join("; ");
            match encrypted {
                true => Finding::error("certificates", error.message, advice),
                false => Finding::warning("certificates", error.message, advice),
            }
        }
    }
}
