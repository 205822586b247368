//! Toolchains: the variables that name their directories, where those are without
//! a variable, and the credentials in them. What reaches commands, what they may
//! read and what is kept from them follow from this one table.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A directory of a toolchain.
struct Toolchain {
    /// The variable that names it; empty where there is none.
    variable: &'static str,
    /// Where it is below the home directory; empty where that is not known.
    home: &'static str,
    kind: Kind,
    /// Credentials in it.
    secrets: &'static [&'static str],
    /// Settings in it, which tools need and which may hold credentials.
    settings: &'static [&'static str],
}

/// How the variable of a toolchain is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It names a directory. Set for commands where the directory is at its place
    /// below the home directory, because their home is another one.
    Home,
    /// It names a directory, or several.
    Named,
    /// It names a directory that is of use only to those who can write it.
    Written,
}

const fn tool(variable: &'static str, home: &'static str, kind: Kind) -> Toolchain {
    Toolchain {
        variable,
        home,
        kind,
        secrets: &[],
        settings: &[],
    }
}

const TOOLCHAINS: &[Toolchain] = &[
    Toolchain {
        secrets: &["credentials", "credentials.toml"],
        settings: &["config", "config.toml"],
        ..tool("CARGO_HOME", ".cargo", Kind::Home)
    },
    tool("RUSTUP_HOME", ".rustup", Kind::Home),
    tool("GOPATH", "go", Kind::Home),
    tool("GOROOT", "", Kind::Named),
    tool("GOMODCACHE", "", Kind::Named),
    tool("GOCACHE", ".cache/go-build", Kind::Written),
    Toolchain {
        secrets: &["credentials"],
        ..tool("GEM_HOME", ".gem", Kind::Named)
    },
    tool("GEM_PATH", "", Kind::Named),
    Toolchain {
        settings: &["config"],
        ..tool("BUNDLE_APP_CONFIG", "", Kind::Named)
    },
    Toolchain {
        settings: &["config"],
        ..tool("BUNDLE_USER_HOME", ".bundle", Kind::Named)
    },
    tool("BUNDLE_PATH", "", Kind::Named),
    tool("RBENV_ROOT", ".rbenv", Kind::Home),
    tool("JAVA_HOME", "", Kind::Named),
    Toolchain {
        secrets: &[
            "gradle.properties",
            "init.d",
            "init.gradle",
            "init.gradle.kts",
        ],
        ..tool("GRADLE_USER_HOME", ".gradle", Kind::Home)
    },
    tool("GRADLE_HOME", "", Kind::Named),
    Toolchain {
        secrets: &["settings.xml", "settings-security.xml"],
        ..tool("", ".m2", Kind::Named)
    },
    tool("M2_HOME", "", Kind::Named),
    tool("MAVEN_HOME", "", Kind::Named),
    tool("ANDROID_HOME", "", Kind::Named),
    tool("ANDROID_SDK_ROOT", "", Kind::Named),
    tool("SDKMAN_DIR", ".sdkman", Kind::Home),
    tool("VIRTUAL_ENV", "", Kind::Named),
    Toolchain {
        settings: &[".condarc"],
        ..tool("CONDA_PREFIX", "", Kind::Named)
    },
    tool("PYENV_ROOT", ".pyenv", Kind::Home),
    tool("PIPX_HOME", ".local/pipx", Kind::Named),
    tool("", ".cache/pip", Kind::Named),
    tool("", ".local/bin", Kind::Named),
    tool("", ".local/lib", Kind::Named),
    Toolchain {
        secrets: &["credentials"],
        ..tool("", ".local/share/uv", Kind::Named)
    },
    tool("UV_PYTHON_INSTALL_DIR", "", Kind::Named),
    tool("UV_TOOL_DIR", "", Kind::Named),
    tool("NVM_DIR", ".nvm", Kind::Home),
    tool("NODE_PATH", "", Kind::Named),
    tool("PNPM_HOME", ".local/share/pnpm", Kind::Home),
    tool("VOLTA_HOME", ".volta", Kind::Home),
    tool("FNM_DIR", ".local/share/fnm", Kind::Named),
    tool("BUN_INSTALL", ".bun", Kind::Named),
    tool("DENO_INSTALL", ".deno", Kind::Named),
    tool("DENO_DIR", "", Kind::Written),
    tool("", ".npm", Kind::Named),
    Toolchain {
        secrets: &["auth.json"],
        ..tool("COMPOSER_HOME", ".composer", Kind::Named)
    },
    tool("DOTNET_ROOT", "", Kind::Named),
    tool("STACK_ROOT", ".stack", Kind::Named),
    Toolchain {
        settings: &["config"],
        ..tool("CABAL_DIR", ".cabal", Kind::Named)
    },
    tool("OPAMROOT", ".opam", Kind::Named),
    tool("ASDF_DIR", "", Kind::Named),
    tool("ASDF_DATA_DIR", ".asdf", Kind::Home),
    tool("MISE_DATA_DIR", ".local/share/mise", Kind::Home),
];

/// Variables that choose a version by its name.
const VERSIONS: &[&str] = &[
    "GOTOOLCHAIN",
    "PYENV_VERSION",
    "RBENV_VERSION",
    "RUSTUP_TOOLCHAIN",
];

/// Settings larger than this are taken to hold credentials.
const SETTINGS_BYTES_MAX: u64 = 256 * 1024;

/// The value under which commands get a variable of this process, when it belongs to a
/// toolchain and leads somewhere: directories must be absolute and there.
pub fn toolchain_variable(name: &str, value: &str) -> Option<String> {
    if VERSIONS.contains(&name) {
        let plain = |one: char| one.is_ascii_alphanumeric() || "._+-:".contains(one);
        let chosen = !value.is_empty() && value.chars().all(plain);
        return chosen.then(|| value.to_owned());
    }
    row(name)?;
    let kept: Vec<String> = directories(value)
        .map(|path| path.display().to_string())
        .collect();
    (!kept.is_empty()).then(|| kept.join(":"))
}

fn row(name: &str) -> Option<&'static Toolchain> {
    let named = |row: &&Toolchain| row.variable == name && !name.is_empty();
    TOOLCHAINS.iter().find(named)
}

/// The directories that are there of those that a variable names: some name several,
/// as `PATH` does.
fn directories(value: &str) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(value).filter(|path| path.is_absolute() && path.is_dir())
}

/// The variables that name directories below the user's home, for commands whose home
/// is another one.
pub(super) fn below_home(home: &Path) -> impl Iterator<Item = (&'static str, PathBuf)> {
    let usual = TOOLCHAINS.iter().filter(|row| row.kind == Kind::Home);
    let there = usual.map(move |row| (row.variable, home.join(row.home)));
    there.filter(|(_, place)| place.is_dir())
}

/// Whether a variable is of use only where commands can write what it names.
pub(super) fn must_be_written(name: &str) -> bool {
    row(name).is_some_and(|row| row.kind == Kind::Written)
}

/// What the toolchains of a machine open to commands, and what in it stays closed.
#[derive(Default)]
pub(super) struct ToolPlaces {
    pub(super) read: Vec<PathBuf>,
    pub(super) secret: Vec<PathBuf>,
}

/// The places of the toolchains below `home`, and of those that variables of `env` name.
pub(super) fn places(home: Option<&Path>, env: &[(String, String)]) -> ToolPlaces {
    let mut places = ToolPlaces::default();
    for row in TOOLCHAINS {
        let usual = home.filter(|_| !row.home.is_empty());
        let mut roots: Vec<PathBuf> = usual.map(|home| home.join(row.home)).into_iter().collect();
        let named = env.iter().filter(|(name, _)| name == row.variable);
        for (_, value) in named.filter(|_| !row.variable.is_empty()) {
            roots.extend(directories(value));
        }
        for root in roots {
            // Where a link leads has to be open too.
            let real = root.canonicalize().ok().filter(|real| *real != root);
            for root in [Some(root), real].into_iter().flatten() {
                places
                    .secret
                    .extend(row.secrets.iter().map(|name| root.join(name)));
                let settings = row.settings.iter().map(|name| root.join(name));
                places
                    .secret
                    .extend(settings.filter(|path| holds_credentials(path)));
                places.read.push(root);
            }
        }
    }
    places
}

/// Whether settings hold a credential: a value under such a name, or a login in an
/// address. What cannot be read as text is taken to.
fn holds_credentials(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut text = String::new();
    let read = File::open(path).map(|file| file.take(SETTINGS_BYTES_MAX + 1));
    let read = read.and_then(|mut file| file.read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 <= SETTINGS_BYTES_MAX => text.lines().any(is_credential_line),
        // What this program cannot read, commands cannot.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => false,
        Ok(_) | Err(_) => true,
    }
}

fn is_credential_line(line: &str) -> bool {
    const NAMES: &[&str] = &["token", "password", "passwd", "secret", "auth"];
    // Bundler writes a host as a key, with two underscores for each dot.
    const NOT_HOSTS: &[&str] = &[
        "bundle_build__",
        "bundle_local__",
        "bundle_mirror__",
        "bundle_gem__",
    ];
    let line = line.trim().to_ascii_lowercase();
    if line.starts_with('#') || line.starts_with("--") {
        return false;
    }
    let (name, value) = line.split_at(line.find(['=', ':']).unwrap_or(line.len()));
    let host = name.starts_with("bundle_")
        && name.contains("__")
        && !NOT_HOSTS.iter().any(|other| name.starts_with(other));
    let names_one = NAMES.iter().any(|one| name.contains(one)) && !value.is_empty();
    // `git@host` is the user of every server of repositories.
    let login = value.replace("git@", "").contains('@');
    host || names_one || login || value.contains("/t/")
}
