//! Variables that no command may be given before its name (`PATH=x ls`): those
//! that make a program load code, start another program or take other
//! configuration. Whoever reviews what an assignment may do reads this.
//!
//! Lists are separated by `, `; a `*` at either end stands for any characters.
//! A name that fits none of the rows is data for the program.

/// Variables that fit a row below, and hold data all the same.
const HARMLESS: &str = "CARGO_BUILD_JOBS, CARGO_INCREMENTAL, CARGO_NET_OFFLINE, CARGO_NET_RETRY, CARGO_PROFILE_*, \
     CARGO_TERM_*, CGO_ENABLED, CMAKE_BUILD_PARALLEL_LEVEL, CMAKE_BUILD_TYPE, GIT_AUTHOR_DATE, \
     GIT_AUTHOR_EMAIL, GIT_AUTHOR_NAME, GIT_COMMITTER_DATE, GIT_COMMITTER_EMAIL, \
     GIT_COMMITTER_NAME, GIT_OPTIONAL_LOCKS, GIT_TERMINAL_PROMPT, PIP_DISABLE_PIP_VERSION_CHECK, \
     PIP_NO_INPUT, PYTHONDONTWRITEBYTECODE, PYTHONHASHSEED, PYTHONIOENCODING, PYTHONUNBUFFERED, \
     PYTHONUTF8, PYTEST_DISABLE_PLUGIN_AUTOLOAD, UV_OFFLINE, NPM_CONFIG_FUND, NPM_CONFIG_AUDIT, \
     npm_config_loglevel, npm_config_yes";

/// Programs that load the code of the workspace whatever their environment is,
/// and may so be told where in it that lies: `PYTHONPATH=src pytest`.
const LOADS_WORKSPACE: &[&[&str]] = &[
    &["py.test"],
    &["pytest"],
    &["python", "-m", "pytest"],
    &["python3", "-m", "pytest"],
    &["poetry", "run", "pytest"],
    &["uv", "run", "pytest"],
];

/// Variables that bash keeps as numbers. A decimal number may be assigned; what
/// they hold afterwards is a number, but not that one.
const COUNTERS: &str = "OPTIND, RANDOM, SECONDS";

/// The names, and why they are refused. Of the variables that bash itself knows,
/// those are missing here that hold whatever they are given and that bash makes
/// nothing of (`COLUMNS`, `REPLY`, `TIMEFORMAT`).
const REFUSED: &[(&str, &str)] = &[
    (
        "PATH, CDPATH, EXECIGNORE, HASH",
        "it changes which programs run",
    ),
    (
        "BASH_ENV, ENV, ZDOTDIR, FPATH, INPUTRC, BASH_FUNC_*, BASH_LOADABLES_PATH, BASH_ALIASES, \
         BASH_CMDS, BASH_XTRACEFD, BASH_COMPAT, BASH_ARGV0",
        "a shell loads or runs what it names",
    ),
    (
        "BASH, BASH_*, BASHOPTS, BASHPID, COMPREPLY, COMP_CWORD, COMP_KEY, COMP_LINE, COMP_POINT, \
         COMP_TYPE, COMP_WORDBREAKS, COMP_WORDS, DIRSTACK, EPOCHREALTIME, EPOCHSECONDS, EUID, FUNCNAME, GROUPS, HISTCMD, LINENO, OPTIND, PIPESTATUS, PPID, RANDOM, READLINE_*, \
         SECONDS, SRANDOM, UID, _, __*",
        "bash sets it itself, or evaluates what it is given as an expression, which can run commands",
    ),
    (
        "IFS, PS0, PS1, PS2, PS3, PS4, PROMPT_COMMAND, PROMPT_DIRTRIM, SHELLOPTS, GLOBIGNORE, GLOBSORT, \
         POSIXLY_CORRECT, FCEDIT, FIGNORE, HISTCONTROL, HISTFILE, HISTFILESIZE, HISTIGNORE, HISTSIZE, \
         HISTTIMEFORMAT, histchars, HOSTFILE, IGNOREEOF, ignoreeof, auto_resume, CHILD_MAX, MAIL, MAILPATH, MAILCHECK, OPTERR, TMOUT, FUNCNEST, SHELL, command_not_found_handle",
        "it changes how the shell reads and runs what follows",
    ),
    (
        "LD_*, DYLD_*, *_PRELOAD, GCONV_PATH, GLIBC_TUNABLES, LOCPATH, NLSPATH, MALLOC_TRACE, \
         LIBPATH, SHLIB_PATH, *_LIBRARY_PATH, *_MODULE_PATH, *_PLUGIN_PATH, *_PLUGINS, GTK_MODULES, \
         GTK_PATH, GTK_EXE_PREFIX, GIO_EXTRA_MODULES, QT_*, VK_*, LIBGL_*, OCL_*, NSS_*, SASL_PATH, \
         KRB5_CONFIG, LSAN_*, ASAN_*, UBSAN_*, TSAN_*",
        "programs load libraries or data by it",
    ),
    (
        "RES_OPTIONS, HOSTALIASES, LOCALDOMAIN, RESOLV_*, GETCONF_DIR",
        "it redirects the names of hosts",
    ),
    (
        "GIT_*, EMAIL",
        "git takes programs, places or configuration from it",
    ),
    (
        "*PAGER, *EDITOR, VISUAL, BROWSER, *BROWSER, LESS, LESS*, MORE, MANOPT, MANPATH, MANROFFOPT, \
         MANROFFSEQ, TERMINAL, TERMCAP, TERMINFO*, *_ASKPASS, *_PREPROC",
        "programs start what it names",
    ),
    (
        "PYTHON*, PYENV_*, PYTEST_*, COVERAGE_*, MYPYPATH, VIRTUAL_ENV, DJANGO_SETTINGS_MODULE, \
         FLASK_APP, IPYTHONDIR, JUPYTER_*, SETUPTOOLS_*, DISTUTILS_*, TOX_*, NOX_*, TWINE_*",
        "python loads code by it",
    ),
    (
        "PIP_*, UV_*, POETRY_*, PDM_*, PIPENV_*, PIPX_*, CONDA_*, MAMBA_*, HATCH_*, RYE_*",
        "an installer takes its source or configuration from it",
    ),
    (
        "NODE_OPTIONS, NODE_PATH, NODE_REPL_*, NODE_EXTRA_CA_CERTS, NODE_TLS_*, NODE_V8_COVERAGE, \
         NODE_ICU_DATA, NODE_REDIRECT_WARNINGS, NODE_PENDING_*, TS_NODE_*, TSX_*, BABEL_*, ESBUILD_*, \
         JEST_*, MOCHA_*, ESLINT_*, WEBPACK_*, ELECTRON_*, PUPPETEER_*, PLAYWRIGHT_*, CYPRESS_*, \
         DENO_*, BUN_*",
        "node loads code or configuration by it",
    ),
    (
        "npm_*, NPM_*, YARN_*, PNPM_*, COREPACK_*, NVM_*, FNM_*, VOLTA_*, NODENV_*, ASDF_*, MISE_*, \
         RTX_*",
        "a package manager takes its source, shell or configuration from it",
    ),
    ("PERL*, PERLLIB, PERLBREW_*", "perl loads code by it"),
    (
        "RUBY*, GEM_*, BUNDLE_*, BUNDLER_*, RBENV_*, RVM_*, RAKEOPT, SPEC_OPTS, IRBRC",
        "ruby loads code by it",
    ),
    (
        "JAVA_*, _JAVA_*, JDK_*, JVM_*, CLASSPATH, MAVEN_*, MVN_*, M2_HOME, GRADLE_*, \
         ORG_GRADLE_PROJECT_*, SBT_*, ANT_*, LEIN_*, KOTLIN_*, SCALA_*, GROOVY_*, JRE_HOME",
        "the virtual machine loads agents or code by it",
    ),
    (
        "LUA_*, LUAROCKS_*, PHPRC, PHP_*, COMPOSER_*, R_*, RSTUDIO_*, JULIA_*, ERL_*, ELIXIR_*, \
         HEX_*, MIX_HOME, MIX_EXS, MIX_ARCHIVES, MIX_PATH, REBAR_*, GUILE_*, TCL*, TK_LIBRARY, \
         OCAML*, CAML*, OPAM*, STACK_*, CABAL_*, GHC*, DART_*, FLUTTER_*, SWIFT_*, DOTNET_STARTUP_*, \
         DOTNET_ROOT*, DOTNET_ADDITIONAL_*, CORECLR_*, COR_*, MSBUILD*, NUGET_*, PSModulePath",
        "an interpreter or its tools load code by it",
    ),
    (
        "RUSTC*, RUSTFLAGS, RUSTDOC*, RUSTFMT, RUSTUP_*, CARGO, CARGO_*, SCCACHE_*, MIRI*, CLIPPY_*, \
         CROSS_*",
        "cargo takes compilers, runners, flags or configuration from it",
    ),
    (
        "GOFLAGS, GOPROXY, GOPATH, GOROOT, GOENV, GOBIN, GOTOOLCHAIN, GOTOOLDIR, GOSUMDB, GONOSUM*, \
         GOPRIVATE, GOINSECURE, GONOPROXY, GOVCS, GOWORK, GOCACHE*, GOMODCACHE, GOTMPDIR, GOAUTH, \
         GCCGO*, CGO_*, GOMOD, GOEXE, GOLANGCI_*, GO_EXTLINK_ENABLED",
        "go takes flags, tools or sources from it",
    ),
    (
        "CC, CXX, CPP, LD, AR, AS, NM, FC, F77, RANLIB, STRIP, OBJCOPY, OBJDUMP, LINKER, YACC, LEX, \
         CC_*, CXX_*, AR_*, HOSTCC, HOSTCXX, CFLAGS*, CXXFLAGS*, CPPFLAGS*, LDFLAGS*, LDLIBS, LIBS, \
         FFLAGS, GCC_*, COLLECT_*, COMPILER_PATH, CPATH, LIBRARY_PATH, C_INCLUDE_PATH, \
         CPLUS_INCLUDE_PATH, OBJC_INCLUDE_PATH, DEPENDENCIES_OUTPUT, CROSS_COMPILE, CCACHE_*, \
         DISTCC_*, *_COMPILER, *_WRAPPER, *_LINKER, *_RUNNER, *_LAUNCHER, PKG_CONFIG*, *_CFLAGS, \
         *_LDFLAGS",
        "a build runs the compiler or takes the flags that it names",
    ),
    (
        "MAKE, MAKEFLAGS, MFLAGS, GNUMAKEFLAGS, MAKEFILES, MAKEFILE_LIST, MAKESHELL, CONFIG_SHELL, \
         CONFIG_SITE, CMAKE_*, CTEST_*, NINJAFLAGS, MESON_*, SCONSFLAGS, SCONS_LIB_DIR, BAZEL_*, \
         BAZELISK_*, USE_BAZEL_VERSION, BUCK_*, ACLOCAL*, AUTOCONF, AUTOMAKE*, AUTOM4TE, AUTOHEADER, \
         LIBTOOL*, M4, M4PATH, INSTALL, JUST_*, TASK_*, EARTHLY_*",
        "a build tool runs what it names or takes options from it",
    ),
    (
        "SSH_*, RSYNC_*, CVS_RSH, CVSROOT, SVN_*, HG*, BZR_*, JJ_*, SUDO_*, DOAS_*, P4*",
        "it names programs, sockets or configuration for connections",
    ),
    (
        "HOME, XDG_*, USERPROFILE, APPDATA, LOCALAPPDATA, TMPDIR, TMP, TEMP, TEMPDIR, PWD, OLDPWD, \
         LOGNAME, USER, *_HOME, *_CONFIG, *_CONFIG_FILE, *_CONFIG_PATH, *_CONFIG_DIR, *_CONFIGDIR, \
         *_CONF, *_RC, *_RCFILE, *_OPTS, *_OPTIONS, *_ARGS, *_INIT, *_STARTUP, *PATH, *FLAGS, \
         *_CMD, *_COMMAND, *_EXEC, *_HOOK, *_INTERPRETER, *_LOADER, *_SHELL, *_REGISTRY, NIX_*, ZSH*, \
         TEXTDOMAIN*, RSH",
        "programs look for their configuration or options there",
    ),
    (
        "*_PROXY, *_proxy, SSL_*, SSLKEYLOGFILE, OPENSSL_*, CURL_*, REQUESTS_CA_BUNDLE, WGETRC, \
         SYSTEM_WGETRC, NETRC, FTP_*, AUTHSSH, ALL_PROXY",
        "it sends connections elsewhere or changes who is believed",
    ),
    (
        "DOCKER_*, BUILDKIT_*, COMPOSE_*, CONTAINER*, PODMAN_*, KUBECONFIG, KUBE*, HELM_*, MINIKUBE_*, \
         AWS_*, AZURE_*, ARM_*, GOOGLE_*, GCLOUD_*, CLOUDSDK_*, GH_*, GITHUB_*, GITLAB_*, GLAB_*, \
         ACTIONS_*, RUNNER_*, TF_CLI_*, TF_DATA_DIR, TF_PLUGIN*, TF_LOG_PATH, TERRAFORM_*, \
         TERRAGRUNT_*, ANSIBLE_*, VAULT_*, CONSUL_*, NOMAD_*, PULUMI_*, PACKER_*, VAGRANT_*, SOPS_*, \
         AGE_*",
        "it names machines, credentials or configuration",
    ),
    (
        "PGSERVICEFILE, PGSYSCONFDIR, PGPASSFILE, PGSSL*, PSQLRC, PSQL_*, MYSQL_*, SQLITE_*, \
         REDISCLI_*, MONGO*, ODBC*, TNS_ADMIN",
        "a client of a database takes configuration from it",
    ),
    (
        "VIMINIT, GVIMINIT, EXINIT, VIM, VIMRUNTIME, MYVIMRC, NVIM_*, EMACS*, NANORC, SCREENRC, TMUX*, \
         STY, GDB*, GNUPGHOME, GPG_*, SEAHORSE_*",
        "a program with commands of its own starts with what it names",
    ),
    (
        "TAR_OPTIONS, TAPE, GZIP, BZIP, BZIP2, XZ_OPT, XZ_DEFAULTS, ZSTD_*, ZIPOPT, ZIP, UNZIP, \
         UNZIPOPT, LZOP, GREP_OPTIONS, RIPGREP_CONFIG_PATH, FD_*, FZF_*, BAT_*, DELTA_*, AWKPATH, \
         AWKLIBPATH, BC_ENV_ARGS, DC_*, MAGIC, PARALLEL*, DIRENV_*, STARSHIP_*, EXA_*, JQ_LIBRARY*, \
         DIFF_OPTIONS, INDENT_PROFILE, WATCH_INTERVAL, STRACE_*, PERF_*, VALGRIND_*, LTRACE_*, \
         ENTR_*, CSCOPE_*, CTAGS, ETAGS, TEXINPUTS, TEXMF*, BIBINPUTS, INFOPATH, GROFF_*, \
         RUFF_*, BLACK_*, PRE_COMMIT*, PANDOC_*",
        "the program takes options or configuration from it",
    ),
    (
        "DISPLAY, XAUTHORITY, WAYLAND_*, DBUS_*, AT_SPI_*, SYSTEMD_*, NOTIFY_SOCKET, LISTEN_*, \
         INVOCATION_ID",
        "it names a socket to talk to",
    ),
];

/// Whether a variable fits a row and holds data all the same, while its value
/// is a plain word.
pub(crate) fn is_plain_setting(name: &str) -> bool {
    fits_one_of(HARMLESS, name)
}

/// A variable that only says where code lies to a command that loads the code of
/// the workspace anyway. Any other command would begin to load it.
pub(crate) const CODE_PATH: &str = "PYTHONPATH";

/// Whether a command loads the code of the workspace whatever its environment is.
pub(crate) fn loads_workspace(words: &[&str]) -> bool {
    LOADS_WORKSPACE.iter().any(|known| words.starts_with(known))
}

/// Whether a value is a list of directories below the one where the command runs.
/// That one itself is not among them: `.` would put every file at the top of the
/// workspace before the modules that a program means.
pub(crate) fn is_workspace_path(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    value.split(':').all(|place| {
        let mut parts = place
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".");
        let below = parts.clone().next().is_some() && !parts.any(|part| part == "..");
        below && !place.starts_with(['/', '-']) && place.chars().all(plain)
    })
}

/// Whether bash keeps a variable as a number and takes any decimal one.
pub(crate) fn is_counter(name: &str) -> bool {
    fits_one_of(COUNTERS, name)
}

/// Why a variable of this name must not be set for a command; none when it may.
pub(crate) fn assignment_denied(name: &str) -> Option<&'static str> {
    // `PATH+=x` and `PATH[0]=x` set the same variable.
    let name = name.split(['[', '+']).next().unwrap_or(name);
    REFUSED
        .iter()
        .find(|(names, _)| fits_one_of(names, name))
        .map(|(_, why)| *why)
}

fn fits_one_of(patterns: &str, name: &str) -> bool {
    patterns.split(", ").any(|pattern| {
        match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => name.ends_with(end),
            (None, Some(begin)) => name.starts_with(begin),
            (None, None) => name == pattern,
        }
    })
}
