//! The job of a checked task: paths, rules and secrets become what they stand for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::access::WorkingCopies;
use crate::clock::Activity;
use crate::context::RepoConfig;
use crate::event::Warning;
use crate::model::{ClientOptions, RetryPolicy};
use crate::policy::{Effect, Mode, Permissions, Rule};
use crate::secret::weakness;
use crate::session::{Compaction, DenialLimits, Limits};
use crate::task::duration::{self, HumanDuration};
use crate::task::file::{CompactionSection, LimitsSection, RuleEntry, TaskFile};
use crate::task::parameters::Params;
use crate::task::plan::{CommandEnv, Job, Patience, RUNS, Resume, Secret, Settings, WorkspaceSpec};
use crate::task::resolve::{Resolution, Texts};
use crate::task::resolved;
use crate::task::tree::{Kind, Node};

/// A shell would run what they name before the command that was judged.
const UNSAFE_VARIABLES: &[&str] = &["BASH_ENV", "BASHOPTS", "ENV", "SHELLOPTS"];

impl Resolution<'_> {
    /// The job of `task`, which is `root` decoded; what is wrong with it is reported.
    pub(super) fn job(
        &mut self,
        task: TaskFile,
        root: &Node,
        texts: Texts,
        params: &Params,
    ) -> Job {
        let mut warnings = Vec::new();
        let mut job = Job {
            name: task.name.clone().unwrap_or_else(|| self.default_name()),
            description: task.description.clone(),
            labels: task.labels.clone(),
            params: params
                .iter()
                .map(|(name, param)| (name.clone(), param.value.clone().unwrap_or_default()))
                .collect(),
            prompt: texts.prompt,
            untrusted: texts.untrusted,
            instructions: texts.instructions,
            append_system_prompt: self.overrides.append_system_prompt.clone(),
            load_repo_config: self.load_repo_config(&task, root),
            settings: self.settings(&task, root),
            limits: self.limits(&task.limits, root),
            retry: self.retry(&task, root),
            compaction: compaction(&task.compaction),
            permissions: self.permissions(&task, root),
            response: self.response(&task, root),
            sandbox: self.sandbox(&task.sandbox, root),
            env: self.env(&task, root),
            secrets: self.secrets(&task, root, &mut warnings),
            tools: self.tools(&task, root),
            hooks: self.hooks(&task.hooks, root),
            workspace: self.workspace(&task, root),
            requires: self.requires(&task.requires, root),
            reports_dir: self.reports_dir(&task, root),
            persist_session: task.session.persist,
            resume: self.resume(&task, root),
            file: self.file.clone(),
            resolved: Value::Null,
            warnings,
        };
        job.resolved = resolved::document(&job);
        job
    }

    /// The file's stem as a slug.
    fn default_name(&self) -> String {
        let stem = self
            .file
            .as_deref()
            .and_then(Path::file_stem)
            .unwrap_or_default();
        let slug: String = stem
            .to_string_lossy()
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '_' {
                    c.to_ascii_lowercase()
                } else {
                    '-'
                }
            })
            .take(64)
            .collect();
        let slug = slug.trim_matches(['-', '_']);
        if slug.is_empty() {
            "task".to_owned()
        } else {
            slug.to_owned()
        }
    }

    fn settings(&mut self, task: &TaskFile, root: &Node) -> Settings {
        let settings = &task.settings;
        let name = |name: &String, node: Option<&Node>| match name.strip_prefix("scripted/") {
            Some(path) => {
                let at = node.map_or(root.at, |node| node.at);
                format!("scripted/{}", tidy(&self.base(at).join(path)).display())
            }
            None => name.clone(),
        };
        let node = |key: &str| root.at_path(&["settings", key]);
        let fallbacks = node("fallback_models").map_or(&[][..], Node::items);
        let fallbacks = settings.fallback_models.iter().zip(fallbacks);
        Settings {
            model: settings.model.as_ref().map(|own| name(own, node("model"))),
            fallback_models: fallbacks.map(|(own, node)| name(own, Some(node))).collect(),
            small_model: settings
                .small_model
                .as_ref()
                .map(|own| name(own, node("small_model"))),
            base_url: settings.base_url.clone(),
            thinking: settings.thinking,
            max_output_tokens: settings.max_output_tokens,
            temperature: settings.temperature,
            patience: self.patience(task, root),
        }
    }

    /// A silence that ends the whole job leaves no time for another attempt.
    fn patience(&mut self, task: &TaskFile, root: &Node) -> Patience {
        let settings = &task.settings;
        let idle = task.limits.idle_timeout.0;
        for (key, written) in [
            ("response_timeout", settings.response_timeout),
            ("stream_idle_timeout", settings.stream_idle_timeout),
        ] {
            if let Some(node) = root.at_path(&["settings", key])
                && written.is_some_and(|written| written.0 >= idle)
            {
                let message = format!(
                    "`settings.{key}` must be shorter than `limits.idle_timeout` ({}), which ends the job",
                    duration::format(idle)
                );
                self.report.error(node.at, "out_of_range", &message);
            }
        }
        let usual = ClientOptions::new(Activity::new());
        let within = |usual: Duration| usual.min(idle / 4 * 3);
        let or = |written: Option<HumanDuration>, usual| written.map_or(usual, |written| written.0);
        Patience {
            connect: or(settings.connect_timeout, usual.connect_timeout),
            response: or(settings.response_timeout, within(usual.header_timeout)),
            stream: or(settings.stream_idle_timeout, within(usual.idle_timeout)),
        }
    }

    fn limits(&mut self, limits: &LimitsSection, root: &Node) -> Limits {
        let in_order = limits.max_denials.consecutive <= limits.max_denials.total;
        if let Some(node) = root.at_path(&["limits", "max_denials", "consecutive"])
            && !in_order
        {
            let message = "`limits.max_denials.consecutive` must not be more than `total`";
            self.report.error(node.at, "out_of_range", message);
        }
        let mut warn_at = limits.warn_at.clone();
        warn_at.sort_by(f64::total_cmp);
        Limits {
            max_turns: limits.max_turns,
            max_cost_usd: limits.max_cost_usd,
            cost_cap_asked: root.at_path(&["limits", "max_cost_usd"]).is_some(),
            max_tokens: limits.max_tokens,
            max_tool_calls: limits.max_tool_calls,
            max_repeats: limits.max_repeats,
            max_denials: DenialLimits {
                consecutive: limits.max_denials.consecutive,
                total: limits.max_denials.total.max(limits.max_denials.consecutive),
            },
            timeout: limits.timeout.0,
            idle_timeout: limits.idle_timeout.0,
            command_timeout: limits.command_timeout.0,
            max_retry_wait: limits.max_retry_wait.0,
            warn_at,
            on_exhausted: limits.on_exhausted,
            on_unknown_price: limits.on_unknown_price,
        }
    }

    fn retry(&mut self, task: &TaskFile, root: &Node) -> RetryPolicy {
        let retry = &task.retry;
        let written = ["base_delay", "max_delay"]
            .iter()
            .find_map(|key| root.at_path(&["retry", key]));
        if let Some(node) = written
            && retry.base_delay > retry.max_delay
        {
            let message = "`retry.base_delay` must not be longer than `retry.max_delay`";
            self.report.error(node.at, "out_of_range", message);
        }
        RetryPolicy {
            max_attempts: retry.max_attempts,
            base_delay: retry.base_delay.0,
            max_delay: Duration::max(retry.max_delay.0, retry.base_delay.0),
            max_wait: task.limits.max_retry_wait.0,
        }
    }

    fn permissions(&mut self, task: &TaskFile, root: &Node) -> Permissions {
        let section = &task.permissions;
        if section.mode == Mode::Bypass && !self.overrides.allow_bypass {
            let at = root
                .at_path(&["permissions", "mode"])
                .map_or(root.at, |node| node.at);
            let hint = "give `--allow-bypass` as well".to_owned();
            let message = "permission mode `bypass` is not allowed here";
            self.report.error_with(at, "bypass", message, hint);
        }
        let directories = root.at_path(&["permissions", "additional_directories"]);
        let mut additional_directories = Vec::new();
        for node in directories.map_or(&[][..], Node::items) {
            additional_directories.extend(self.directory(node));
        }
        Permissions {
            mode: section.mode,
            allow: self.rules("allow", &section.allow, root),
            ask: self.rules("ask", &section.ask, root),
            deny: self.rules("deny", &section.deny, root),
            on_ask: section.on_ask,
            fail_on_denied: section.fail_on_denied,
            additional_directories,
        }
    }

    fn rules(&mut self, list: &str, entries: &[RuleEntry], root: &Node) -> Vec<Rule> {
        let nodes = root
            .at_path(&["permissions", list])
            .map_or(&[][..], Node::items);
        let effect = if list == "allow" {
            Effect::Allow
        } else {
            Effect::Deny
        };
        let mut rules = Vec::new();
        for (index, (entry, node)) in entries.iter().zip(nodes).enumerate() {
            let flag = self.report.name(node.at.source);
            let origin = match flag {
                "--allow" | "--deny" => flag.to_owned(),
                _ => format!("permissions.{list}[{index}]"),
            };
            let rule = match entry {
                RuleEntry::Text(text) => Rule::parse(text, &origin),
                RuleEntry::Checked(checked) => {
                    Rule::parse(&checked.rule, &origin).and_then(|rule| {
                        rule.with_examples(effect, &checked.matching, &checked.not_match)
                    })
                }
            };
            match rule {
                Ok(rule) => rules.push(rule),
                Err(error) => {
                    let at = node.get("rule").map_or(node.at, |rule| rule.at);
                    self.report.error(at, "bad_rule", error.to_string());
                }
            }
        }
        rules
    }

    fn env(&mut self, task: &TaskFile, root: &Node) -> CommandEnv {
        let section = root.get("env");
        let set = section.and_then(|env| env.get("set"));
        let named = task.env.set.keys().map(|name| (name, set));
        let pass = section.and_then(|env| env.get("pass"));
        let passed = task.env.pass.iter().map(|name| (name, pass));
        for (name, node) in named.chain(passed) {
            if UNSAFE_VARIABLES.contains(&name.as_str()) {
                let at = node.map_or(root.at, |node| node.at);
                let message = format!("commands cannot be given {name}");
                let hint = "bash would run or do something else before the command that was \
                            permitted; set variables with `env.set`"
                    .to_owned();
                self.report.error_with(at, "unsafe_env", message, hint);
            }
        }
        CommandEnv {
            inherit: task.env.inherit,
            set: task.env.set.clone(),
            pass: task.env.pass.clone(),
        }
    }

    fn secrets(
        &mut self,
        task: &TaskFile,
        root: &Node,
        warnings: &mut Vec<Warning>,
    ) -> Vec<Secret> {
        let nodes = root.get("secrets").map_or(&[][..], Node::items);
        let mut secrets: Vec<Secret> = Vec::new();
        for (entry, node) in task.secrets.iter().zip(nodes) {
            let place = |key: &str| node.get(key).map_or(node.at, |node| node.at);
            if secrets.iter().any(|secret| secret.name == entry.name) {
                let message = format!("the secret `{}` is declared twice", entry.name);
                self.report
                    .error(place("name"), "duplicate_secret", message);
                continue;
            }
            let value = self
                .overrides
                .env
                .get(&entry.from_env)
                .filter(|value| !value.is_empty());
            let Some(value) = value else {
                if entry.required {
                    let message = format!("the environment variable {} is not set", entry.from_env);
                    let hint = format!(
                        "the secret `{}` comes from it; or write `required: false`",
                        entry.name
                    );
                    self.report
                        .error_with(place("from_env"), "missing_secret", message, hint);
                }
                continue;
            };
            if let Some(weakness) = weakness(value) {
                warnings.push(Warning {
                    code: "short_secret".to_owned(),
                    message: format!(
                        "the secret `{}` {weakness} and is not hidden: hiding it would hide \
                         harmless text too. Give it a longer value",
                        entry.name
                    ),
                });
            }
            secrets.push(Secret {
                name: entry.name.clone(),
                value: value.clone(),
            });
        }
        secrets
    }

    fn load_repo_config(&mut self, task: &TaskFile, root: &Node) -> Vec<RepoConfig> {
        let nodes = root.get("load_repo_config").map_or(&[][..], Node::items);
        let mut kinds: Vec<RepoConfig> = Vec::new();
        for (index, kind) in task.load_repo_config.iter().enumerate() {
            if kinds.contains(kind) {
                let at = nodes.get(index).map_or(root.at, |node| node.at);
                let message = "`load_repo_config` has this value twice";
                self.report.error(at, "duplicate_value", message);
            } else {
                kinds.push(*kind);
            }
        }
        kinds
    }

    fn tools(&mut self, task: &TaskFile, root: &Node) -> Vec<String> {
        let nodes = root
            .at_path(&["tools", "enabled"])
            .map_or(&[][..], Node::items);
        let mut names: Vec<String> = Vec::new();
        for (index, tool) in task.tools.enabled.iter().enumerate() {
            let name = tool.name().to_owned();
            if names.contains(&name) {
                let at = nodes.get(index).map_or(root.at, |node| node.at);
                let message = format!("the tool `{name}` is there twice");
                self.report.error(at, "duplicate_tool", message);
            } else {
                names.push(name);
            }
        }
        names
    }

    fn workspace(&mut self, task: &TaskFile, root: &Node) -> WorkspaceSpec {
        let path = match root
            .at_path(&["workspace", "path"])
            .filter(|node| node.text().is_some())
        {
            Some(node) => self.directory(node),
            None => {
                let cwd = self.overrides.cwd.display().to_string();
                let source = self.report.source("the current directory", cwd);
                let at = self.report.whole(source);
                self.directory(&Node::literal(Kind::Text(".".to_owned()), at))
            }
        };
        WorkspaceSpec {
            path: path.unwrap_or_default(),
            isolation: task.workspace.isolation,
            require_clean: task.workspace.require_clean,
        }
    }

    /// An existing directory, absolute and real; none when it is not, which is reported.
    fn directory(&mut self, node: &Node) -> Option<PathBuf> {
        let written = self.expand_home(node.text()?);
        let path = self.base(node.at).join(&written);
        let shown = path.display();
        // A task of a repository names what the repository has; a user may name
        // anything by an absolute path or a flag.
        if node.at.source == self.task_source && written.is_relative() {
            let repository = WorkingCopies::default().with_repository_of(&self.task_dir);
            if let Err(error) = repository.resolve(&path) {
                self.report.error(node.at, "leads_out", error.to_string());
                return None;
            }
        }
        match std::fs::canonicalize(&path) {
            Ok(real) if real.is_dir() => Some(real),
            Ok(_) => {
                self.report.error(
                    node.at,
                    "no_directory",
                    format!("{shown} is not a directory"),
                );
                None
            }
            Err(_) => {
                self.report
                    .no_input(node.at, format!("there is no directory {shown}"));
                None
            }
        }
    }

    /// `~/x` below the user's home directory, when that is known.
    pub(super) fn expand_home(&self, path: &str) -> PathBuf {
        match (&self.overrides.home, path.strip_prefix("~/")) {
            (Some(home), Some(rest)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }

    /// The session to go on with; a path that is written in the file starts there.
    fn resume(&mut self, task: &TaskFile, root: &Node) -> Option<Resume> {
        let section = &task.session;
        let place = |key: &str| {
            root.at_path(&["session", key])
                .map_or(root.at, |node| node.at)
        };
        let Some(session) = &section.resume else {
            if section.fork {
                let message = "`session.fork` needs a session to go on with";
                let hint = "name one with `session.resume`, --resume or --continue".to_owned();
                self.report
                    .error_with(place("fork"), "conflict", message, hint);
            }
            return None;
        };
        let at = place("resume");
        if !section.persist {
            let message = "a session that is gone on with is written to disk";
            let hint = "take out `persist: false` or --no-session".to_owned();
            self.report.error_with(at, "conflict", message, hint);
        }
        let is_path = session.contains('/') || session.ends_with(".jsonl");
        let session = if is_path {
            let path = tidy(&self.base(at).join(self.expand_home(session)));
            path.display().to_string()
        } else {
            session.clone()
        };
        Some(Resume {
            session,
            fork: section.fork,
            file: None,
            believed: false,
            model: None,
        })
    }

    fn reports_dir(&self, task: &TaskFile, root: &Node) -> PathBuf {
        match (&task.reports.dir, root.at_path(&["reports", "dir"])) {
            (Some(dir), Some(node)) => tidy(&self.base(node.at).join(self.expand_home(dir))),
            _ => self.overrides.cwd.join(RUNS),
        }
    }
}

fn compaction(section: &CompactionSection) -> Compaction {
    Compaction {
        enabled: section.enabled,
        reserve_tokens: section.reserve_tokens,
        keep_recent_tokens: section.keep_recent_tokens,
        max_compactions: section.max_compactions,
        min_reduction: section.min_reduction,
    }
}

/// `path` without `.` parts; `..` stays, because of links.
pub(super) fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}
