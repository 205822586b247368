//! Rules about what is neither a path nor a command: hosts, the tools of MCP
//! servers, agents and skills.
//!
//! `WebFetch(domain:example.com)` allows that host alone and denies it with
//! every host below it; `domain:*.example.com` is about the hosts below it.
//! In the names of servers, tools, agents and skills `*` stands for any
//! characters. Allow rules take the names of agents and skills as they are
//! written; deny rules, and the names of tools, are taken without case.

use super::decide::allow;
use super::rule::Target;
use super::{Decision, Policy};
use crate::access::{Access, host_of};
use crate::event::Decider;

/// What a rule of this kind matches. None is everything of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedPattern {
    /// `WebFetch`: a host.
    Host(Option<HostPattern>),
    /// `mcp__server__tool`: the whole name in lower case, or `mcp__server`.
    Server(String),
    /// `Task`: an agent.
    Agent(Option<String>),
    /// `Skill`: a skill.
    Skill(Option<String>),
}

/// A host of a rule, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostPattern {
    /// `domain:example.com`.
    Itself(String),
    /// `domain:*.example.com`.
    Below(String),
}

impl NamedPattern {
    /// Reads a rule whose tool is of this kind; none when it is not.
    ///
    /// # Errors
    /// What is wrong, and whether that is in the name.
    pub(crate) fn parse(
        name: &str,
        specifier: Option<&str>,
    ) -> Option<Result<Self, (bool, String)>> {
        let lower = name.to_ascii_lowercase();
        let specifier = specifier.map(str::trim);
        if lower.starts_with("mcp__") {
            return Some(server(&lower, specifier));
        }
        let named = |kind: fn(Option<String>) -> Self| {
            let plain = |name: &str| !name.contains(|c: char| c.is_control() || c.is_whitespace());
            match specifier {
                Some(name) if !plain(name) => {
                    let problem = format!("`{name}` is no name: a name has no blanks");
                    Err((false, problem))
                }
                name => Ok(kind(name.map(str::to_owned))),
            }
        };
        match lower.as_str() {
            "webfetch" => Some(host(specifier).map(Self::Host).map_err(|why| (false, why))),
            "task" => Some(named(Self::Agent)),
            "skill" => Some(named(Self::Skill)),
            _ => None,
        }
    }

    /// Whether an allow rule matches.
    pub(crate) fn allows(&self, access: &Access) -> bool {
        match (self, access) {
            (Self::Host(None), Access::Network(_)) => true,
            (Self::Host(Some(HostPattern::Itself(host))), Access::Network(have)) => host == have,
            (Self::Host(Some(HostPattern::Below(host))), Access::Network(have)) => {
                is_below(have, host)
            }
            (Self::Server(name), Access::Server { server, tool }) => {
                fits_server(name, server, tool)
            }
            (Self::Agent(name), Access::Agent(have)) | (Self::Skill(name), Access::Skill(have)) => {
                name.as_ref().is_none_or(|name| fits(name, have))
            }
            _ => false,
        }
    }

    /// Whether a deny or ask rule matches.
    pub(crate) fn denies(&self, access: &Access) -> bool {
        match (self, access) {
            (
                Self::Host(Some(HostPattern::Itself(host) | HostPattern::Below(host))),
                Access::Network(have),
            ) => host == have || is_below(have, host),
            (Self::Agent(Some(name)), Access::Agent(have))
            | (Self::Skill(Some(name)), Access::Skill(have)) => {
                fits(&name.to_lowercase(), &have.to_lowercase())
            }
            _ => self.allows(access),
        }
    }

    /// What an example of a rule stands for; none when it is no such thing.
    pub(crate) fn example(&self, text: &str) -> Option<Access> {
        match self {
            Self::Host(_) => {
                let host = host_of(text).or_else(|_| host_of(&format!("https://{text}")));
                host.ok().map(Access::Network)
            }
            Self::Server(_) => server_access(text),
            Self::Agent(_) => Some(Access::Agent(text.to_owned())),
            Self::Skill(_) => Some(Access::Skill(text.to_owned())),
        }
    }
}

/// What a call of the MCP tool with this name touches; none when it is no such
/// name.
pub fn server_access(name: &str) -> Option<Access> {
    let prefix = name
        .get(..5)
        .filter(|own| own.eq_ignore_ascii_case("mcp__"))?;
    let (server, tool) = name.get(prefix.len()..)?.split_once("__")?;
    (!server.is_empty() && !tool.is_empty()).then(|| Access::Server {
        server: server.to_owned(),
        tool: tool.to_owned(),
    })
}

fn server(lower: &str, specifier: Option<&str>) -> Result<NamedPattern, (bool, String)> {
    if let Some(specifier) = specifier {
        let problem = format!(
            "the tools of a server are named whole, without `({specifier})`: write \
             `mcp__server__tool` or `mcp__server__*`"
        );
        return Err((false, problem));
    }
    let rest = lower.strip_prefix("mcp__").unwrap_or_default();
    let valid = |c: char| c.is_ascii_alphanumeric() || "_-.*".contains(c);
    let complete = !rest.is_empty() && !rest.starts_with("__") && !rest.ends_with("__");
    if !complete || !rest.chars().all(valid) {
        let problem = "a rule for a server is `mcp__server`, `mcp__server__tool` or \
                       `mcp__server__*`";
        return Err((true, problem.to_owned()));
    }
    Ok(NamedPattern::Server(lower.to_owned()))
}

fn host(specifier: Option<&str>) -> Result<Option<HostPattern>, String> {
    let Some(specifier) = specifier else {
        return Ok(None);
    };
    let Some(domain) = specifier.strip_prefix("domain:") else {
        return Err(format!(
            "`{specifier}` is no host: write `WebFetch(domain:example.com)`"
        ));
    };
    let (below, name) = match domain.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, domain),
    };
    let plain = !name.contains(['/', '*', '@', '?', '#', '\\', ' ']);
    let host = host_of(&format!("https://{name}"))
        .ok()
        .filter(|_| plain && !name.is_empty() && !has_port(name));
    let Some(host) = host else {
        return Err(format!(
            "`{domain}` is no host name: write it without scheme, port and path, as \
             `domain:example.com`, or `domain:*.example.com` for the hosts below it"
        ));
    };
    Ok(Some(match below {
        true => HostPattern::Below(host),
        false => HostPattern::Itself(host),
    }))
}

fn has_port(name: &str) -> bool {
    name.contains(':') && !name.ends_with(']')
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|above| above.len() > 1 && above.ends_with('.'))
}

fn fits_server(pattern: &str, server: &str, tool: &str) -> bool {
    let server = format!("mcp__{}", server.to_ascii_lowercase());
    let whole = format!("{server}__{}", tool.to_ascii_lowercase());
    fits(pattern, &whole) || fits(pattern, &server)
}

/// Whether a text fits a pattern in which `*` stands for any characters.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(begin) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else {
            return false;
        };
        text = text.get(at + part.len()..).unwrap_or_default();
    }
    text.ends_with(end)
}

/// What the call does, as "… is not allowed".
pub(super) fn doing(access: &Access) -> String {
    match access {
        Access::Network(host) => format!("reaching the host `{host}`"),
        Access::Server { server, tool } => format!("calling `{tool}` of the server `{server}`"),
        Access::Agent(name) => format!("starting the agent `{name}`"),
        Access::Skill(name) => format!("loading the skill `{name}`"),
        Access::Read(path) => format!("reading {}", path.display()),
        Access::Write(path) => format!("writing {}", path.display()),
        Access::Exec(command) => format!("running {command}"),
    }
}

/// The rule that allows exactly this, when a rule can say it.
fn rule_for(access: &Access) -> Option<String> {
    match access {
        Access::Network(host) => Some(format!("WebFetch(domain:{host})")),
        Access::Server { server, tool } => Some(format!("mcp__{server}__{tool}")),
        Access::Agent(name) => Some(format!("Task({name})")),
        Access::Skill(name) => Some(format!("Skill({name})")),
        Access::Read(_) | Access::Write(_) | Access::Exec(_) => None,
    }
}

impl Policy {
    /// Whether a host, a server's tool, an agent or a skill that no rule
    /// denies may be used.
    pub(super) fn grant_named(&self, access: &Access) -> Decision {
        let rule = self.allow.iter().find(|bound| match &bound.rule.target {
            Target::Named(pattern) => pattern.allows(access),
            Target::Path { .. } | Target::Bash(_) => false,
        });
        if let Some(bound) = rule {
            let rule = bound.rule.to_string();
            let reason = format!("allowed by {rule}");
            return allow(Decider::Rule, Some(rule), reason);
        }
        let mode = self.permissions.mode;
        if mode.allows_everything() {
            return allow(Decider::Mode, None, format!("allowed by mode {mode}"));
        }
        let why = format!("{} is not allowed in mode {mode}", doing(access));
        self.refused(Decider::Mode, &why, rule_for(access))
    }
}
