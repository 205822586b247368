//! Credentials in the configuration of repositories. A checkout leaves its token
//! there, and every program that reads the workspace could read it.
//!
//! Where a tier can show commands another file, they see the configuration without
//! them. Everywhere they are secrets of the run.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::git_config::{self, Setting};
use super::repositories::Survey;
use crate::access::{Entry, look};

/// A longer file is not a configuration that anybody wrote.
const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// So many files are read.
const FILES_MAX: usize = 2_000;
/// Where the git directories of submodules and of linked worktrees are.
const NESTED: &[&str] = &["modules", "worktrees"];
/// The configuration files of a git directory.
const FILES: &[&str] = &["config", "config.worktree"];
/// What the names of settings with a credential end with.
const NAMES: &[&str] = &[
    "apikey",
    "pass",
    "passwd",
    "password",
    "secret",
    "secretkey",
    "token",
];
/// A user name without a password may be a token; a shorter one is a name.
const TOKEN_CHARS_MIN: usize = 20;

/// What was found in the configuration files of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitCredentials {
    /// The files with credentials, each with what commands are to see of it.
    pub views: Vec<(PathBuf, String)>,
    /// The credentials, to be hidden wherever they come out.
    pub secrets: Vec<String>,
}

/// Reads the configuration files of all repositories that were found, and what
/// those include.
pub fn git_credentials(survey: &Survey, home: Option<&Path>) -> GitCredentials {
    let mut open: Vec<PathBuf> = Vec::new();
    for git in survey.repositories.iter().chain(&survey.outside) {
        open.extend(configurations(git));
    }
    let mut found = GitCredentials::default();
    let mut seen = BTreeSet::new();
    while let Some(path) = open.pop() {
        if seen.len() == FILES_MAX || !seen.insert(path.clone()) {
            continue;
        }
        let Some(text) = content(&path) else {
            continue;
        };
        let Some(settings) = git_config::read(&text) else {
            // Git cannot read it either; what it holds is not known.
            found.views.push((path, String::new()));
            continue;
        };
        open.extend(settings.iter().filter_map(|one| included(one, &path, home)));
        let before = found.secrets.len();
        let clean: Vec<Setting> = settings
            .iter()
            .filter_map(|setting| scrubbed(setting.clone(), &mut found.secrets))
            .collect();
        if clean != settings || found.secrets.len() > before {
            found.views.push((path, git_config::write(&clean)));
        }
    }
    found.secrets.sort_unstable();
    found.secrets.dedup();
    found
}

/// The configuration files at and below a git directory.
fn configurations(git: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = FILES.iter().map(|name| git.join(name)).collect();
    let mut open: Vec<PathBuf> = NESTED.iter().map(|name| git.join(name)).collect();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name();
            if FILES.iter().any(|file| name == *file) {
                found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir())
                && !is_content(&directory, &name)
            {
                open.push(entry.path());
            }
        }
    }
    found
}

/// Whether a directory in a git directory holds what is not configured.
fn is_content(git: &Path, name: &OsStr) -> bool {
    let content = ["objects", "refs", "logs", "hooks", "lfs", "annex"];
    content.iter().any(|one| name == *one) && git.join("HEAD").exists()
}

fn content(path: &Path) -> Option<String> {
    let Entry::File(opened) = look(path).ok()? else {
        return None;
    };
    let mut bytes = Vec::new();
    opened.file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The file that a setting includes.
fn included(setting: &Setting, from: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let includes = matches!(setting.section.as_str(), "include" | "includeif");
    let path = setting
        .value
        .as_ref()
        .filter(|_| includes && setting.name == "path")?;
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => from.parent()?.join(path),
    };
    path.canonicalize().ok()
}

/// A setting without credentials, when something of it is left; they are added to
/// `secrets`.
fn scrubbed(mut setting: Setting, secrets: &mut Vec<String>) -> Option<Setting> {
    let value = setting.value.clone().unwrap_or_default();
    if setting.section == "http" && setting.name == "extraheader" {
        secrets.extend(of_header(&value));
        return None;
    }
    if setting.section == "credential" || NAMES.iter().any(|name| setting.name.ends_with(name)) {
        secrets.extend(of_credential(&setting.name, &value));
        return None;
    }
    setting.value = setting.value.map(|value| without_login(&value, secrets));
    setting.subsection = setting.subsection.map(|name| without_login(&name, secrets));
    Some(setting)
}

/// The credentials of an HTTP header: `Authorization: basic …`, `Private-Token: …`.
fn of_header(header: &str) -> Vec<String> {
    let Some(word) = header.split_whitespace().next_back() else {
        return Vec::new();
    };
    let decoded = STANDARD.decode(word).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let login = decoded.as_deref().and_then(|login| login.split_once(':'));
    let password = login.map(|(_, password)| password.to_owned());
    password.into_iter().chain([word.to_owned()]).collect()
}

/// The credentials of a setting that has one: the value itself, or the passwords
/// that a helper prints.
fn of_credential(name: &str, value: &str) -> Vec<String> {
    if name != "helper" {
        let named = [
            "username",
            "usehttppath",
            "sanitizeprompt",
            "protectprotocol",
        ];
        let plain = named.contains(&name);
        return (!plain).then(|| value.to_owned()).into_iter().collect();
    }
    let ends = |character: char| character.is_whitespace() || "\"';&|)".contains(character);
    let printed = value.split("password=").skip(1);
    let printed = printed.filter_map(|rest| rest.split(ends).next());
    printed.map(str::to_owned).collect()
}

/// A text without the logins of URLs in it.
fn without_login(text: &str, secrets: &mut Vec<String>) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((login, host)) = authority.rsplit_once('@') else {
        return text.to_owned();
    };
    let web = matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https");
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    // To other servers a user without a password is part of the address.
    if password.is_none() && !web {
        return text.to_owned();
    }
    let likely = user.len() >= TOKEN_CHARS_MIN && user.contains(|one: char| one.is_ascii_digit());
    for part in password.into_iter().chain(likely.then_some(user)) {
        let decoded = decoded(part);
        secrets.extend([part.to_owned(), decoded]);
    }
    format!("{scheme}://{host}{path}")
}

/// A part of a URL without its `%` escapes.
fn decoded(part: &str) -> String {
    let encoded = part.replace('+', "%2B");
    let pairs = format!("x={encoded}");
    let mut pairs = url::form_urlencoded::parse(pairs.as_bytes());
    pairs
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}
