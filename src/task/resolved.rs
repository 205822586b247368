//! The resolved task as a JSON document.

use serde_json::{Map, Value, json};

use crate::hook::HookCommand;
use crate::model;
use crate::policy::{Permissions, Rule};
use crate::session::Limits;
use crate::task::plan::{Job, ResponseJob};
use crate::task::{duration, requires, sandbox};

/// Everything that decides what the job does, with keys in camel case and
/// durations as people write them. Of secrets it has the names only.
pub(super) fn document(job: &Job) -> Value {
    json!({
        "version": 1,
        "name": job.name,
        "description": job.description,
        "labels": job.labels,
        "file": job.file,
        "params": job.params.iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Map<_, _>>(),
        "prompt": job.prompt,
        "instructions": job.instructions,
        "appendSystemPrompt": job.append_system_prompt,
        "loadRepoConfig": job.load_repo_config,
        "settings": {
            "model": job.settings.model,
            "fallbackModels": job.settings.fallback_models,
            "smallModel": job.settings.small_model,
            "baseUrl": job.settings.base_url.as_deref().map(model::without_login),
            "thinking": job.settings.thinking,
            "maxOutputTokens": job.settings.max_output_tokens,
            "temperature": job.settings.temperature,
            "connectTimeout": duration::format(job.settings.patience.connect),
            "responseTimeout": duration::format(job.settings.patience.response),
            "streamIdleTimeout": duration::format(job.settings.patience.stream),
        },
        "limits": limits(&job.limits),
        "retry": {
            "maxAttempts": job.retry.max_attempts,
            "baseDelay": duration::format(job.retry.base_delay),
            "maxDelay": duration::format(job.retry.max_delay),
        },
        "compaction": {
            "enabled": job.compaction.enabled,
            "reserveTokens": job.compaction.reserve_tokens,
            "keepRecentTokens": job.compaction.keep_recent_tokens,
            "maxCompactions": job.compaction.max_compactions,
            "minReduction": job.compaction.min_reduction,
        },
        "permissions": permissions(&job.permissions),
        "response": job.response.as_ref().map(response),
        "sandbox": sandbox::document(&job.sandbox),
        "env": {
            "inherit": job.env.inherit,
            "set": job.env.set,
            "pass": job.env.pass,
        },
        "secrets": job.secrets.iter().map(|secret| secret.name.as_str()).collect::<Vec<_>>(),
        "tools": { "enabled": job.tools },
        "hooks": job.hooks.iter().map(hook).collect::<Vec<_>>(),
        "workspace": {
            "path": job.workspace.path,
            "isolation": job.workspace.isolation,
            "requireClean": job.workspace.require_clean,
        },
        "requires": requires::document(&job.requires),
        "reports": { "dir": job.reports_dir },
        "session": {
            "persist": job.persist_session,
            "resume": job.resume.as_ref().map(|resume| &resume.session),
            "fork": job.resume.as_ref().is_some_and(|resume| resume.fork),
        },
    })
}

fn permissions(permissions: &Permissions) -> Value {
    let texts =
        |rules: &[Rule]| -> Value { rules.iter().map(|rule| Value::from(rule.text())).collect() };
    json!({
        "mode": permissions.mode,
        "allow": texts(&permissions.allow),
        "ask": texts(&permissions.ask),
        "deny": texts(&permissions.deny),
        "onAsk": permissions.on_ask,
        "failOnDenied": permissions.fail_on_denied,
        "additionalDirectories": permissions.additional_directories,
    })
}

fn response(response: &ResponseJob) -> Value {
    json!({
        "schema": response.spec.schema.document().as_ref(),
        "schemaFile": response.schema_file,
        "repairs": response.spec.repairs,
        "file": response.file,
    })
}

fn hook(hook: &HookCommand) -> Value {
    let mut command = vec![hook.program.display().to_string()];
    command.extend(hook.args.iter().cloned());
    json!({
        "event": hook.point,
        "match": hook.matcher.as_ref().map(ToString::to_string),
        "command": command,
        "timeout": duration::format(hook.timeout),
    })
}

fn limits(limits: &Limits) -> Value {
    json!({
        "maxTurns": limits.max_turns,
        "maxCostUsd": limits.max_cost_usd,
        "maxTokens": limits.max_tokens,
        "maxToolCalls": limits.max_tool_calls,
        "maxRepeats": limits.max_repeats,
        "maxDenials": {
            "consecutive": limits.max_denials.consecutive,
            "total": limits.max_denials.total,
        },
        "timeout": duration::format(limits.timeout),
        "idleTimeout": duration::format(limits.idle_timeout),
        "commandTimeout": duration::format(limits.command_timeout),
        "maxRetryWait": duration::format(limits.max_retry_wait),
        "warnAt": limits.warn_at,
        "onExhausted": limits.on_exhausted,
        "onUnknownPrice": limits.on_unknown_price,
    })
}
