//! Every model of the catalog at every level: the request is whole, asks for a
//! level that the model offers, and in the words that the catalog gives.

use agent::model::{Api, Model, Request, ThinkingFormat, ThinkingLevel, ids};
use serde_json::Value;

use crate::support::models::{model, request, user};
use crate::support::streams::body;

/// What a request says of thinking.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    /// The name of a level, wherever the dialect puts it.
    level: Option<String>,
    /// Whether thinking is on, where that is said.
    on: Option<bool>,
    budget: Option<u64>,
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn asked(model: &Model, body: &Value) -> Asked {
    let is_on = |kind: &Value| kind.as_str().map(|kind| kind != "disabled");
    match model.api {
        Api::AnthropicMessages => Asked {
            level: text(&body["output_config"]["effort"]),
            on: is_on(&body["thinking"]["type"]),
            budget: body["thinking"]["budget_tokens"].as_u64(),
        },
        Api::OpenaiResponses => Asked {
            level: text(&body["reasoning"]["effort"]),
            ..Asked::default()
        },
        Api::OpenaiChat => Asked {
            level: text(&body["reasoning_effort"]).or_else(|| text(&body["reasoning"]["effort"])),
            on: is_on(&body["thinking"]["type"]).or(body["reasoning"]["enabled"].as_bool()),
            budget: None,
        },
        Api::GoogleGenerativeAi => {
            let config = &body["generationConfig"]["thinkingConfig"];
            Asked {
                level: text(&config["thinkingLevel"]),
                on: config["includeThoughts"].as_bool(),
                budget: config["thinkingBudget"].as_u64(),
            }
        }
    }
}

/// The levels whose name is a null of the catalog.
fn refused(model: &Model) -> Vec<&'static str> {
    let levels = model.thinking_levels.iter();
    levels
        .filter(|(_, name)| name.is_none())
        .map(|(level, _)| level.name())
        .collect()
}

/// What is wrong with what `model` is asked for at `level`.
fn fault(model: &Model, level: ThinkingLevel, body: &Value) -> Option<String> {
    let asked = asked(model, body);
    if !model.reasoning {
        return (asked != Asked::default()).then(|| "cannot think, and is asked to".to_owned());
    }
    let clamped = model.clamp_thinking(level);
    if !model.offers(clamped) && clamped != ThinkingLevel::Off {
        return Some(format!("{} is not offered", clamped.name()));
    }
    let given: Vec<&str> = model
        .thinking_levels
        .values()
        .filter_map(Option::as_deref)
        .collect();
    if let Some(name) = &asked.level {
        let is_given = given.contains(&&**name);
        if !is_given && refused(model).contains(&&**name) {
            return Some(format!("{name} is refused"));
        }
        let usual = ["none", clamped.name()].contains(&&**name);
        // Anthropic has no effort below `low`.
        let lowest = clamped == ThinkingLevel::Minimal && name == "low";
        if !is_given && !usual && !lowest {
            return Some(format!("{name} is nobody's name"));
        }
    }
    let on = clamped != ThinkingLevel::Off;
    if asked.on.is_some_and(|said| said != on) {
        // A model that cannot be kept from thinking is not asked to show it.
        let least = asked.budget.is_some_and(|budget| budget > 0);
        if on || !least {
            return Some(format!("says {:?} at {}", asked.on, clamped.name()));
        }
    }
    None
}

fn at(level: ThinkingLevel) -> Request {
    let mut asked = request(vec![user("go")]);
    asked.thinking = level;
    asked
}

#[test]
fn every_model_is_asked_only_for_what_it_offers() {
    let mut faults = Vec::new();
    let mut requests = 0;
    for id in ids() {
        let model = model(&id);
        for level in ThinkingLevel::ALL {
            let body = body(&model, &at(level));
            requests += 1;
            if let Some(fault) = fault(&model, level, &body) {
                faults.push(format!("{id} {}: {fault}", level.name()));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(requests >= 675 * 7, "{requests}");
}

/// The output cap and the budget inside of it fit the model, whatever is asked.
#[test]
fn every_cap_fits_its_model() {
    for id in ids() {
        let model = model(&id);
        for tokens in [1, 8000, u64::MAX] {
            let mut asked = at(ThinkingLevel::High);
            asked.max_output_tokens = tokens;
            let body = body(&model, &asked);
            let caps = [
                &body["max_tokens"],
                &body["max_completion_tokens"],
                &body["max_output_tokens"],
                &body["generationConfig"]["maxOutputTokens"],
            ];
            let caps: Vec<u64> = caps.iter().filter_map(|cap| cap.as_u64()).collect();
            let [cap] = caps[..] else {
                panic!("{id}: {caps:?}")
            };
            assert!(
                cap >= 1 && cap <= model.max_output_tokens.max(16),
                "{id}: {cap}"
            );
            let budget = body["thinking"]["budget_tokens"].as_u64();
            assert!(
                budget.is_none_or(|budget| (1024..cap).contains(&budget)),
                "{id}"
            );
        }
    }
}

/// Each way to be asked is in the catalog, so that the test above sees it.
#[test]
fn all_ways_to_ask_occur() {
    let models: Vec<Model> = ids().map(|id| model(&id)).collect();
    for format in [
        ThinkingFormat::Openai,
        ThinkingFormat::Openrouter,
        ThinkingFormat::Together,
        ThinkingFormat::Zai,
        ThinkingFormat::Deepseek,
    ] {
        let of_format =
            |model: &&Model| model.api == Api::OpenaiChat && model.quirks.thinking_format == format;
        assert!(models.iter().any(|model| of_format(&model)), "{format:?}");
    }
    let count = |is: fn(&Model) -> bool| models.iter().filter(|model| is(model)).count();
    assert!(count(|model| model.quirks.adaptive_thinking) > 0);
    assert!(count(|model| model.quirks.echo_reasoning_content) > 0);
    assert!(count(|model| model.quirks.relays_anthropic) > 0);
    assert!(count(|model| model.quirks.nine_letter_ids) > 0);
}

/// Model, level, and what is asked: the level's name, whether it is on, the budget.
const TABLE: &[(&str, &str, &str)] = &[
    ("anthropic/claude-haiku-5-5", "off", "- off -"),
    ("anthropic/claude-haiku-5-5", "minimal", "low on -"),
    ("anthropic/claude-opus-4-6", "xhigh", "max on -"),
    ("anthropic/claude-opus-4-5", "xhigh", "- on 16384"),
    (
        "fireworks/accounts/fireworks/models/qwen3p8-max",
        "high",
        "xhigh on -",
    ),
    (
        "fireworks/accounts/fireworks/models/minimax-m3",
        "off",
        "low on -",
    ),
    ("cerebras/qwen-3.8-27b", "off", "none - -"),
    ("deepseek/deepseek-v4-pro", "low", "high on -"),
    ("groq/qwen/qwen3.6-27b", "medium", "default - -"),
    ("mistral/mistral-large-4", "off", "low - -"),
    ("moonshotai/kimi-k2.7-code", "off", "- on -"),
    ("openrouter/google/gemini-2.5-pro", "off", "minimal - -"),
    ("openrouter/openai/gpt-5-pro", "off", "high - -"),
    ("together/deepseek-ai/DeepSeek-V4.1-Flash", "low", "- on -"),
    ("zai/glm-5.2", "max", "max on -"),
    ("openai/gpt-5.2-pro", "off", "medium - -"),
    ("xai/grok-4.3", "off", "none - -"),
    ("google/gemma-4-31b-it", "low", "HIGH on -"),
    ("google/gemini-2.5-pro", "off", "- - 128"),
];

#[test]
fn a_table_of_what_is_asked() {
    for (id, level, expect) in TABLE {
        let level = ThinkingLevel::from_name(level).unwrap();
        let asked = asked(&model(id), &body(&model(id), &at(level)));
        let on = asked.on.map_or("-", |on| if on { "on" } else { "off" });
        let budget = asked.budget.map(|tokens| tokens.to_string());
        let said = [
            asked.level.as_deref().unwrap_or("-"),
            on,
            budget.as_deref().unwrap_or("-"),
        ];
        assert_eq!(said.join(" "), *expect, "{id} {level:?}");
    }
}
