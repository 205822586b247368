//! What of the process's environment goes where: credentials to the model
//! client, a small harmless rest to commands, values of secrets to the redactor.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::{self, Authorities, Catalog, Model, OwnProvider, Proxies};
use crate::sandbox::toolchain_variable;
use crate::session::{Credential, Credentials};
use crate::task::{self, CommandEnv, Inherit, Job};

/// The process's environment, read once.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    program: Option<PathBuf>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.variables.keys()).finish()
    }
}

/// Commands get these without being named.
const INHERITED: &[&str] = &[
    "PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ", "CI",
];

/// Nobody is there: a pager, an editor or a password prompt must fail at once.
/// And files of the workspace are data: those that look like the inside of a
/// repository must not become one, whose configuration names programs to run.
const UNATTENDED: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("EDITOR", "false"),
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
    ("GIT_EDITOR", "false"),
    // `git status` would write the index to remember what it saw.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("VISUAL", "false"),
];

/// Names a file with further authorities.
const AUTHORITIES: &str = "SSL_CERT_FILE";
/// The largest such file. Those of whole systems have a quarter of a mebibyte.
const BUNDLE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Where programs are looked for when nobody says.
pub(super) const PATH_DEFAULT: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Environment {
    /// Keeps `variables`.
    pub fn new(variables: BTreeMap<String, String>) -> Self {
        Self {
            variables,
            program: None,
        }
    }

    /// The same with the file of this program, for what runs it again.
    #[must_use]
    pub fn with_program(self, program: Option<PathBuf>) -> Self {
        Self { program, ..self }
    }

    /// The file of this program.
    pub fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    /// All variables.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// A variable that is set and not empty.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Crashes at `place` when a test of the debug build asks for it, because
    /// that every crash is an ending like any other cannot be seen without one.
    pub fn crash_if_asked(&self, place: &str) {
        if cfg!(debug_assertions) {
            let wanted = self.value("AGENT_TEST_FAULT") == Some(place);
            assert!(!wanted, "a crash at {place} was asked for");
        }
    }

    /// The home directory.
    pub fn home(&self) -> Option<PathBuf> {
        self.value("HOME").map(PathBuf::from)
    }

    /// What the environment knows of each model, asked when it is needed.
    pub fn credentials(&self) -> Credentials {
        let environment = self.clone();
        Credentials::new(move |model| {
            Ok(Credential {
                key: environment.api_key(model)?,
                base_url: environment.base_url(model).map(str::to_owned),
            })
        })
    }

    /// The user's directory for agents: what `AGENT_DIR` names, from `cwd`, and
    /// for a prompt of the command line otherwise the usual one. A task file
    /// shall mean the same on every machine, so it gets nothing of this one
    /// that nobody named.
    pub fn agent_dir_of(&self, job: &Job, cwd: &Path) -> Option<PathBuf> {
        if let Some(named) = self.value("AGENT_DIR") {
            return Some(cwd.join(named));
        }
        let usual = self.usual_dir().filter(|_| job.file.is_none())?;
        Some(usual).filter(|path| path.is_dir())
    }

    /// The user's own directory for this program: `AGENT_DIR`, else the usual one.
    pub fn agent_dir(&self) -> Option<PathBuf> {
        let named = self.value("AGENT_DIR").map(PathBuf::from);
        named.or_else(|| self.usual_dir())
    }

    /// `agent` below `XDG_CONFIG_HOME`, else below `.config` in the home
    /// directory. What is not absolute names no place of the user.
    pub(super) fn usual_dir(&self) -> Option<PathBuf> {
        let named = self.value("XDG_CONFIG_HOME").map(PathBuf::from);
        let base = named.filter(|path| path.is_absolute());
        let base = base.or_else(|| Some(self.home()?.join(".config")))?;
        Some(base.join("agent"))
    }

    /// The key for a model: from its variable, or from the file that
    /// `<variable>_FILE` or the user's file of providers names.
    pub fn api_key(&self, model: &Model) -> Result<Option<String>, String> {
        for name in &model.api_key_env {
            if let Some(key) = self.value(name) {
                return Ok(Some(key.trim().to_owned()));
            }
            let file_variable = format!("{name}_FILE");
            if let Some(path) = self.value(&file_variable) {
                let key = read_key_file(Path::new(path))
                    .map_err(|error| format!("{error} ({file_variable})"))?;
                return Ok(Some(key.trim().to_owned()));
            }
        }
        let Some(path) = &model.extras.key_file else {
            return Ok(None);
        };
        let key = read_key_file(path).map_err(|error| format!("{error} (api_key_file)"))?;
        Ok(Some(key.trim().to_owned()))
    }

    /// The files that are there of those that variables name for keys, as
    /// `ANTHROPIC_API_KEY_FILE` does; real.
    pub fn key_files(&self) -> impl Iterator<Item = PathBuf> {
        let is_key = |name: &str| {
            let of_key = name.strip_suffix("_FILE");
            of_key.is_some_and(looks_like_credential)
        };
        let named = self
            .variables()
            .iter()
            .filter(move |(name, _)| is_key(name));
        named.filter_map(|(_, path)| Path::new(path).canonicalize().ok())
    }

    /// The proxies on the way to providers. Commands of the job are told of them
    /// only by `env.pass`.
    pub fn proxies(&self) -> Proxies {
        Proxies::new(|name| self.value(name))
    }

    /// The authorities that `SSL_CERT_FILE` adds, read when a connection needs
    /// them.
    pub fn authorities(&self) -> Option<Authorities> {
        let path = PathBuf::from(self.value(AUTHORITIES)?);
        Some(Authorities::new(AUTHORITIES, move || {
            task::read_bytes(&path, BUNDLE_BYTES_MAX).map_err(|error| error.to_string())
        }))
    }

    /// The model at the endpoint that the environment asks for.
    pub fn place(&self, model: Model) -> Model {
        match self.base_url(&model).map(str::to_owned) {
            Some(url) => model.with_base_url(url),
            None => model,
        }
    }

    /// The endpoint that the environment asks for.
    pub(super) fn base_url(&self, model: &Model) -> Option<&str> {
        self.value(model.base_url_env.as_deref()?)
    }
}

/// The whole environment of a job's commands.
pub fn command_env(job: &Job, environment: &Environment) -> Vec<(String, String)> {
    let spec = &job.env;
    let mut env: BTreeMap<String, String> = UNATTENDED
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    env.insert("PATH".to_owned(), PATH_DEFAULT.to_owned());
    env.insert("TERM".to_owned(), "dumb".to_owned());
    for (name, value) in environment.variables() {
        if is_inherited(spec.inherit, name) || spec.pass.contains(name) {
            env.insert(name.clone(), value.clone());
        } else if spec.inherit == Inherit::Minimal
            && let Some(value) = toolchain_variable(name, value)
        {
            env.insert(name.clone(), value);
        }
    }
    if let Some(path) = env.get_mut("PATH") {
        *path = absolute(path);
    }
    let passed = job
        .secrets
        .iter()
        .filter(|secret| spec.pass.contains(&secret.name));
    env.extend(passed.map(|secret| (secret.name.clone(), secret.value.clone())));
    env.extend(spec.set.clone());
    env.into_iter().collect()
}

fn is_inherited(inherit: Inherit, name: &str) -> bool {
    match inherit {
        Inherit::Minimal => INHERITED.contains(&name) || name.starts_with("LC_"),
        Inherit::None => name == "PATH",
    }
}

/// Whether commands of a job see a variable of this name, when there is one.
pub(super) fn reaches_commands(job: &Job, environment: &Environment, name: &str) -> bool {
    let CommandEnv { inherit, set, pass } = &job.env;
    let named = set.contains_key(name) || pass.iter().any(|one| one == name);
    let of_tools = || {
        let value = environment.value(name)?;
        toolchain_variable(name, value).filter(|_| *inherit == Inherit::Minimal)
    };
    named || is_inherited(*inherit, name) || of_tools().is_some()
}

/// The search path without what depends on where one is: in the working copy
/// of a stranger `.` would make `ls` any program.
fn absolute(path: &str) -> String {
    let kept: Vec<&str> = path.split(':').filter(|at| at.starts_with('/')).collect();
    if kept.is_empty() {
        return PATH_DEFAULT.to_owned();
    }
    kept.join(":")
}

/// The search path for what runs outside of the job's permissions: nothing that its
/// commands can write is in it.
pub(super) fn trusted_path(environment: &Environment, job: &Job, workspace: &Path) -> String {
    let path = environment.value("PATH").unwrap_or(PATH_DEFAULT);
    path_outside(path, &written(job, workspace))
}

/// The environment of a job's commands for programs that run outside of its sandbox,
/// such as those that are asked for their version: its search path has nothing that
/// commands of the job can write.
pub fn trusted_env(job: &Job, environment: &Environment) -> Vec<(String, String)> {
    let mut env = command_env(job, environment);
    for (_, value) in env.iter_mut().filter(|(name, _)| name == "PATH") {
        *value = path_outside(value, &written(job, &job.workspace.path));
    }
    env
}

/// Where the shell of a job's commands is looked up.
pub(super) fn shell_path(job: &Job, env: &[(String, String)], workspace: &Path) -> String {
    let path = env.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or(PATH_DEFAULT, |(_, value)| value);
    path_outside(path, &written(job, workspace))
}

/// What commands of a job may write, as named and real.
pub(super) fn written(job: &Job, workspace: &Path) -> Vec<PathBuf> {
    let named = [workspace, &job.workspace.path].map(Path::to_owned);
    let additional = job.permissions.additional_directories.iter();
    let listed = additional.chain(&job.sandbox.write).cloned();
    let mut places: Vec<PathBuf> = named.into_iter().chain(listed).collect();
    let real: Vec<PathBuf> = places.iter().flat_map(|path| path.canonicalize()).collect();
    places.extend(real);
    places
}

/// The absolute entries of a search path that are in none of `places`.
fn path_outside(path: &str, places: &[PathBuf]) -> String {
    let path = absolute(path);
    let outside = |at: &&str| {
        let named = PathBuf::from(at);
        let real = named.canonicalize().unwrap_or_else(|_| named.clone());
        !places
            .iter()
            .any(|place| named.starts_with(place) || real.starts_with(place))
    };
    let kept: Vec<&str> = path.split(':').filter(outside).collect();
    absolute(&kept.join(":"))
}

/// Values that no output of the run may show: declared secrets, what commands
/// are given under the name of a credential, the keys and headers of the user's
/// own providers, and whatever in the environment looks
/// like a credential. A value that names a place or a person of this machine is
/// none, whatever its variable is called: without it no log could be read.
pub fn known_secrets(jobs: &[Job], environment: &Environment, catalog: &Catalog) -> Vec<String> {
    let declared = jobs
        .iter()
        .flat_map(|job| job.secrets.iter().map(|secret| secret.value.clone()));
    let set = jobs.iter().flat_map(|job| &job.env.set);
    let set =
        set.filter(|(name, value)| looks_like_credential(name) && !is_ordinary(value, environment));
    let variables = environment
        .variables()
        .iter()
        .filter(|(name, value)| looks_like_credential(name) && !is_ordinary(value, environment))
        .map(|(_, value)| value.clone());
    let files = environment
        .key_files()
        .filter_map(|path| read_key_file(&path).ok())
        .map(|value| value.trim().to_owned());
    let proxies = environment.proxies().secrets();
    let own = catalog.own();
    let own = own.flat_map(|(_, provider)| own_secrets(provider, environment));
    declared
        .chain(set.map(|(_, value)| value.clone()))
        .chain(variables)
        .chain(files)
        .chain(proxies)
        .chain(own)
        .collect()
}

/// The secrets of a provider of the user's file: its key wherever it is, what
/// its headers carry, and the login in a base URL.
fn own_secrets(provider: &OwnProvider, environment: &Environment) -> Vec<String> {
    let section = &provider.section;
    let mut secrets: Vec<String> = Vec::new();
    if let Some(name) = &section.api_key_env {
        secrets.extend(environment.value(name).map(str::to_owned));
        let file = environment.value(&format!("{name}_FILE"));
        secrets.extend(file.and_then(|path| read_key_file(Path::new(path)).ok()));
    }
    let file = provider.key_file.as_ref();
    secrets.extend(file.and_then(|path| read_key_file(path).ok()));
    for header in &provider.headers {
        if header.env.is_some() || looks_like_credential(&header.name.replace('-', "_")) {
            secrets.extend(header.value.clone());
        }
    }
    let query = section.query.iter();
    let query = query.filter(|(name, _)| looks_like_credential(&name.replace('-', "_")));
    secrets.extend(query.map(|(_, value)| value.clone()));
    let of_models = section.models.values().flatten();
    let urls = of_models.filter_map(|model| model.base_url.as_ref());
    let urls = urls.chain(&section.base_url);
    secrets.extend(urls.flat_map(|url| model::login_secrets(url)));
    secrets
}

/// Whether a value stands in every log for good reasons: a path that exists,
/// or what the usual variables say of the machine and its user.
fn is_ordinary(value: &str, environment: &Environment) -> bool {
    const USUAL: &[&str] = &[
        "HOME", "HOSTNAME", "LANG", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHELL", "TERM", "TMPDIR",
        "USER",
    ];
    let value = value.trim();
    let usual = USUAL
        .iter()
        .any(|name| environment.value(name) == Some(value));
    let path = Path::new(value);
    usual || (path.is_absolute() && path.exists())
}

/// Reads a small regular file; anything else could block or never end.
fn read_key_file(path: &Path) -> Result<String, String> {
    const KEY_BYTES_MAX: u64 = 64 * 1024;
    task::read_text(path, KEY_BYTES_MAX).map_err(|error| error.to_string())
}

/// Whether a variable of this name holds a credential.
pub(super) fn looks_like_credential(name: &str) -> bool {
    const MARKS: &[&str] = &[
        "TOKEN",
        "KEY",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "CREDENTIALS",
        "PAT",
        "AUTH",
        "DSN",
        "COOKIE",
    ];
    let name = name.to_ascii_uppercase();
    name.split('_').any(|word| MARKS.contains(&word)) || name.ends_with("APIKEY")
}
