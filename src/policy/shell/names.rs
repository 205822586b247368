//! Variables that change what programs are, load, or take as configuration.
//! A line that assigns one of them is refused.

use super::state::is_number;

/// Such variables, by name.
const LOADING: &[&str] = &[
    // Bash and its builtins.
    "BASH",
    "BASHOPTS",
    "BASHPID",
    "BASH_COMMAND",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "CDPATH",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "ENV",
    "EUID",
    "EXECIGNORE",
    "FCEDIT",
    "FPATH",
    "FUNCNAME",
    "GLOBIGNORE",
    "GLOBSORT",
    "GROUPS",
    "HISTCMD",
    "HISTCONTROL",
    "HISTFILE",
    "HISTTIMEFORMAT",
    "HOME",
    "IFS",
    "INPUTRC",
    "LINENO",
    "MAILPATH",
    "OLDPWD",
    "OPTIND",
    "PATH",
    "PIPESTATUS",
    "POSIXLY_CORRECT",
    "PPID",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PWD",
    "SHELL",
    "SHELLOPTS",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TERMPATH",
    "TEXTDOMAIN",
    "TEXTDOMAINDIR",
    "UID",
    "ZDOTDIR",
    "_",
    // Directories of configuration and code.
    "APPDATA",
    "CLASSPATH",
    "GOBIN",
    "GOENV",
    "GOPATH",
    "GOROOT",
    "GOTOOLCHAIN",
    "LOCALDOMAIN",
    "NLSPATH",
    "LOCPATH",
    "MANPATH",
    "HOSTALIASES",
    "INFOPATH",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "GCONV_PATH",
    "USERPROFILE",
    "VIRTUAL_ENV",
    "LOGNAME",
    "USER",
    // Programs that others start.
    "AR",
    "AS",
    "BROWSER",
    "CC",
    "CPP",
    "CXX",
    "EDITOR",
    "FC",
    "LD",
    "LESS",
    "LESSCLOSE",
    "LESSEDIT",
    "LESSOPEN",
    "LEX",
    "MAKE",
    "MAKEFILES",
    "MANPAGER",
    "MANROFFOPT",
    "MORE",
    "NM",
    "PAGER",
    "RANLIB",
    "RUSTC",
    "RUSTDOC",
    "RUSTFMT",
    "SUDO_ASKPASS",
    "SYSTEMD_PAGER",
    "VISUAL",
    "YACC",
    "EX_INIT",
    "EXINIT",
    "VIMINIT",
    "GVIMINIT",
    "TAR_OPTIONS",
    "TAPE",
    "RSH",
    "GREP_OPTIONS",
    "DISPLAY",
    "GZIP",
    "BZIP",
    "BZIP2",
    "XZ_OPT",
    "XZ_DEFAULTS",
    "ZSTD_CLEVEL",
    "UNZIP",
    "ZIPOPT",
    "WGETRC",
    "CURL_HOME",
    "NETRC",
    "GOFLAGS",
    "GOPROXY",
    "GOSUMDB",
    "GONOSUMDB",
    "GONOSUMCHECK",
    "GOINSECURE",
    "GOPRIVATE",
    "GOEXPERIMENT",
    "GOAUTH",
    "GOVCS",
    "TSC_COMPILE_ON_ERROR",
    "CDROM",
    "TMPDIR",
    "TEMP",
    "TMP",
    "KUBECONFIG",
];

/// Beginnings of such names.
const PREFIXES: &[&str] = &[
    "ANSIBLE_",
    "AWS_",
    "AZURE_",
    "BASH_FUNC_",
    "BUNDLE_",
    "CARGO_",
    "CGO_",
    "CMAKE_",
    "COMPOSER_",
    "CONDA_",
    "DBUS_",
    "DOCKER_",
    "DOTNET_",
    "DYLD_",
    "ELECTRON_",
    "GCC_",
    "GCONV_",
    "GEM_",
    "GIT_",
    "GRADLE_",
    "GLIBC_",
    "GO_",
    "HG",
    "JAVA_",
    "JDK_",
    "JRUBY",
    "JULIA_",
    "LD_",
    "LUA_",
    "MALLOC_",
    "MAKE",
    "MAVEN_",
    "MSBUILD",
    "NIX_",
    "NODE_",
    "NPM_",
    "npm_",
    "OPENSSL_",
    "PERL",
    "PHP",
    "PIP_",
    "POETRY_",
    "PYTEST_",
    "PYTHON",
    "R_",
    "RUBY",
    "RUSTC_",
    "RUSTUP_",
    "SSH_",
    "SSL_",
    "SVN_",
    "TCL",
    "UV_",
    "XDG_",
    "YARN_",
    "ZSH",
    "_JAVA_",
    "__",
];

/// Ends of such names.
const SUFFIXES: &[&str] = &[
    "_ASKPASS",
    "_CMD",
    "_COMMAND",
    "_CONFIG",
    "_CONFIG_FILE",
    "_DIR",
    "_EDITOR",
    "_EXEC",
    "_FLAGS",
    "_HOME",
    "_HOOK",
    "_INIT",
    "_INTERPRETER",
    "_LINKER",
    "_LOADER",
    "_OPTIONS",
    "_OPTS",
    "_PAGER",
    "_PATH",
    "_PLUGIN",
    "_PLUGINS",
    "_PRELOAD",
    "_PROXY",
    "_proxy",
    "_RC",
    "_REGISTRY",
    "_RUNNER",
    "_SHELL",
    "_STARTUP",
    "_WRAPPER",
    "FLAGS",
    "PATH",
    "RC",
];

/// Names like those above whose values only choose among what is there.
const HARMLESS: &[&str] = &[
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_NET_RETRY",
    "CARGO_PROFILE_DEV_DEBUG",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_PROGRESS_WHEN",
    "CARGO_TERM_QUIET",
    "CARGO_TERM_VERBOSE",
    "CARGO_BUILD_JOBS",
    "CGO_ENABLED",
    "DOTNET_CLI_TELEMETRY_OPTOUT",
    "DOTNET_NOLOGO",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "NODE_ENV",
    "NPM_CONFIG_FUND",
    "NPM_CONFIG_AUDIT",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "PYTHONWARNINGS",
    "PIP_NO_INPUT",
    "PIP_DISABLE_PIP_VERSION_CHECK",
];

/// Why a variable must not be assigned; `value` is what is known of it.
pub(super) fn refused(name: &str, value: Option<&str>) -> Option<String> {
    let plain = |value: &str| {
        value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    if HARMLESS.contains(&name) && value.is_some_and(plain) {
        return None;
    }
    if name.ends_with("PAGER") && matches!(value, Some("" | "cat")) {
        return None;
    }
    if name.ends_with("FLAGS") && value.is_some_and(|value| are_plain_flags(name, value)) {
        return None;
    }
    let locale = name == "LANG" || name == "LANGUAGE" || name == "TZ" || name.starts_with("LC_");
    let is_path = |value: &str| value.starts_with(['/', ':', '.', '~']) || value.contains("..");
    // A locale or a time zone can be the path of a file.
    let by_value =
        locale && value.is_none_or(|value| is_path(value) || (name != "TZ" && value.contains('/')));
    let loads = LOADING.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
        || matches!(
            name.to_ascii_lowercase().as_str(),
            "http_proxy" | "https_proxy" | "all_proxy" | "no_proxy"
        );
    (loads || by_value)
        .then(|| format!("it assigns `{name}`, which can load code or change what programs do"))
}

/// Flags for compilers that choose warnings, optimisation and levels.
fn are_plain_flags(name: &str, value: &str) -> bool {
    const OPTIMISED: &[&str] = &[
        "-O", "-O0", "-O1", "-O2", "-O3", "-Os", "-Og", "-g", "-pipe", "-fPIC",
    ];
    match name {
        "CFLAGS" | "CXXFLAGS" => value.split(' ').all(|flag| {
            let warning = flag
                .strip_prefix("-W")
                .is_some_and(|rest| !rest.contains([',', '/']));
            OPTIMISED.contains(&flag) || warning || flag.starts_with("-std=")
        }),
        "RUSTFLAGS" | "RUSTDOCFLAGS" => {
            let mut flags = value.split(' ');
            while let Some(flag) = flags.next() {
                let lint = |text: &str| {
                    !text.is_empty()
                        && text
                            .chars()
                            .all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
                };
                let fine = match flag {
                    "-D" | "-A" | "-W" => flags.next().is_some_and(lint),
                    _ => ["-D", "-A", "-W"]
                        .iter()
                        .any(|letter| flag.strip_prefix(letter).is_some_and(lint)),
                };
                if !fine {
                    return false;
                }
            }
            true
        }
        "MAKEFLAGS" => value.strip_prefix("-j").is_some_and(is_number),
        _ => false,
    }
}
