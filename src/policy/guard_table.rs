//! The programs whose arguments can do more than be data, each with the
//! reason. Whoever reviews what a prefix rule may let through reads this.
//! Lists are separated by `, `.

use super::guard::Reach;
use super::guard_checks;

/// What a prefix rule for a program covers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Covers {
    /// Nothing: only exact rules allow the program.
    Nothing,
    /// Arguments of a script that the rule names (or of a module, after `-m`).
    NamedScript,
    /// A program that the rule names after the subcommand, judged by its own row.
    Wrapped,
    /// Arguments of a subcommand that the rule names; these need no naming.
    Subcommands(&'static str),
    /// Arguments.
    Arguments,
}

/// A check that no list can express: the words, and how many the rule names.
type Check = fn(&[String], usize) -> Result<(), String>;

/// What is known of some programs.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Names without path and version, or `program subcommand`.
    pub(crate) programs: &'static str,
    /// Why it is here; follows a refused form.
    pub(crate) why: &'static str,
    pub(crate) covers: Covers,
    /// Refused long options.
    pub(crate) long: &'static str,
    /// Letters of refused short options.
    pub(crate) short: &'static str,
    /// Letters of short options that take a value.
    pub(crate) with_value: &'static str,
    /// Refused words.
    pub(crate) words: &'static str,
    pub(crate) reach: Reach,
    pub(crate) check: Option<Check>,
    /// Whether options by which programs usually load or run something are
    /// refused by their names, as nothing is known of this one.
    pub(crate) by_name: bool,
    /// Whether words after `--` are operands, or for what the workspace runs.
    pub(crate) operands_after_dashes: bool,
}

/// A program of which nothing is refused.
pub(crate) const BASE: Guard = Guard {
    programs: "",
    why: "",
    covers: Covers::Arguments,
    long: "",
    short: "",
    with_value: "",
    words: "",
    reach: Reach::Workspace,
    check: None,
    by_name: false,
    operands_after_dashes: false,
};

const READER: Guard = Guard {
    reach: Reach::Read,
    ..BASE
};

/// Every program that is not in the table.
pub(crate) const OTHER: Guard = Guard {
    why: "such options usually run programs or load code or configuration",
    long: "command, config, editor, eval, exec, exec-batch, init-file, load, loader, pager, \
              plugin, plugin-dir, plugins, preload, rcfile, require, shell",
    by_name: true,
    ..BASE
};

/// Subcommands of git that a rule for all of git covers.
const GIT: &str = "add, apply, blame, branch, cat-file, check-ignore, checkout, cherry-pick, \
              commit, count-objects, describe, diff, diff-files, diff-index, diff-tree, \
              for-each-ref, grep, log, ls-files, ls-tree, merge, merge-base, mv, name-rev, \
              reflog, reset, restore, rev-list, rev-parse, revert, rm, shortlog, show, \
              show-ref, stash, status, switch, tag, whatchanged";

const GIT_LONG: &str = "config, config-env, exec, exec-path, ext-diff, extcmd, git-dir, \
              open-files-in-pager, output, receive-pack, template, textconv, unsafe-paths, \
              upload-pack, work-tree";

const GIT_BASE: Guard = Guard {
    why: "git runs programs, writes files or takes configuration from such arguments",
    long: GIT_LONG,
    ..BASE
};

/// The table. Subcommands stand beside their programs; the first match counts.
pub(crate) const GUARDS: &[Guard] = &[
    // Programs that run what their arguments name.
    Guard {
        programs: "env, xargs, parallel, timeout, nice, ionice, nohup, stdbuf, setsid, setarch, \
              chrt, taskset, time, watch, entr, flock, script, expect, strace, ltrace, gdb, \
              lldb, perf, valgrind, rr, unshare, nsenter, chroot, systemd-run, sudo, doas, su, \
              runuser, setpriv, pkexec, busybox, toybox, start-stop-daemon, at, batch, \
              crontab, screen, tmux, firejail, bwrap, proot, fakeroot, faketime, unbuffer, \
              run-parts, ld.so, rustup, direnv, dotenv, mise, asdf, hyperfine, cargo-watch, \
              nodemon, watchexec, concurrently, dbus-run-session, xvfb-run, caffeinate",
        why: "it runs the program that its arguments name",
        covers: Covers::Nothing,
        ..BASE
    },
    // Builtins of bash that run, define or change what runs next.
    Guard {
        programs: "., source, eval, exec, command, builtin, trap, alias, unalias, enable, complete, \
              compgen, compopt, bind, hash, history, fc, let, declare, typeset, local, export, \
              readonly, unset, read, mapfile, readarray, getopts, set, shopt, wait, kill, \
              killall, pkill, suspend",
        why: "it runs, redefines or stops other commands",
        covers: Covers::Nothing,
        ..BASE
    },
    // Programs that open editors, pagers or shells of their own.
    Guard {
        programs: "vi, vim, nvim, view, ex, ed, emacs, nano, pico, less, more, most, man, info, \
              mail, mutt, ftp, gpg, openssl, sqlite, mysql, psql, mongo, redis-cli, ghci, irb, \
              scala, jshell, dc, m4",
        why: "it has commands of its own that run programs or write files",
        covers: Covers::Nothing,
        ..BASE
    },
    // The network, other machines, containers.
    Guard {
        programs: "curl, wget, ssh, scp, sftp, rsync, nc, ncat, netcat, socat, telnet, docker, \
              podman, nerdctl, docker-compose, kubectl, helm, vagrant, ansible, \
              ansible-playbook, terraform",
        why: "it reaches other machines or containers, and reads and writes files by argument",
        covers: Covers::Nothing,
        ..BASE
    },
    // Archives: commands by option, and names inside that lead anywhere.
    Guard {
        programs: "tar, bsdtar, gtar, zip, unzip, cpio, pax, ar, 7z, 7za, unar, rar, unrar, dd, \
              install, patch, dpkg, rpm",
        why: "it writes files named by an archive or argument, and some options run programs",
        covers: Covers::Nothing,
        ..BASE
    },
    // Interpreters.
    Guard {
        programs: "bash, sh, dash, zsh, ksh, mksh, ash, fish, csh, tcsh, rbash, python, pypy, perl, \
              ruby, node, nodejs, php, lua, luajit, tclsh, rscript, osascript, pwsh, \
              powershell, julia, swipl, guile, racket, java, elixir, ts-node, tsx, npx, bunx, \
              uvx, pnpx",
        why: "it runs code that its arguments name; a prefix rule has to name the script, or \
              the module after `-m`",
        covers: Covers::NamedScript,
        ..BASE
    },
    // Modules of python that run code of their arguments.
    Guard {
        programs: "timeit, pdb, cprofile, profile, runpy, trace, code, doctest, ensurepip, \
              http.server, idlelib, zipapp, zipfile, tarfile, coverage",
        why: "it runs code of its arguments, or writes and serves files",
        covers: Covers::Nothing,
        ..BASE
    },
    // git, by subcommand.
    Guard {
        programs: "git grep",
        short: "O",
        with_value: "eABCmf",
        reach: Reach::Read,
        ..GIT_BASE
    },
    Guard {
        programs: "git diff, git log, git show, git status, git blame, git rev-parse, git ls-files, \
              git ls-tree, git describe, git shortlog, git rev-list, git merge-base, git \
              name-rev, git show-ref, git for-each-ref, git diff-tree, git diff-index, git \
              diff-files, git whatchanged, git check-ignore, git count-objects",
        reach: Reach::Read,
        ..GIT_BASE
    },
    Guard {
        programs: "git cat-file",
        long: "filters, textconv",
        reach: Reach::Read,
        ..GIT_BASE
    },
    Guard {
        programs: "git rebase",
        short: "xi",
        long: "exec, interactive, edit-todo",
        check: Some(guard_checks::git_strategy),
        ..GIT_BASE
    },
    Guard {
        programs: "git merge, git cherry-pick, git revert",
        check: Some(guard_checks::git_strategy),
        ..GIT_BASE
    },
    Guard {
        programs: "git push, git fetch, git pull, git ls-remote, git remote, git archive",
        check: Some(guard_checks::git_remote),
        ..GIT_BASE
    },
    Guard {
        programs: "git config",
        check: Some(guard_checks::git_config),
        ..GIT_BASE
    },
    Guard {
        programs: "git clone, git submodule, git bisect, git filter-branch, git difftool, git \
              mergetool, git hook, git send-email, git instaweb, git daemon, git shell, git \
              credential, git worktree, git init, git maintenance, git upload-pack, git \
              receive-pack, git fast-import, git for-each-repo, git help, git web--browse, git \
              gui, git citool, git remote-ext, git var",
        covers: Covers::Nothing,
        ..GIT_BASE
    },
    Guard {
        programs: "git",
        covers: Covers::Subcommands(GIT),
        ..GIT_BASE
    },
    // Build tools: the code of the workspace runs, options must not change which.
    Guard {
        programs: "cargo clippy, cargo rustc, cargo rustdoc, cargo doc",
        why: "options for the compiler can name a linker or a plugin",
        long: "config, codegen",
        short: "CZ",
        with_value: "jpFADWE",
        ..BASE
    },
    Guard {
        programs: "cargo",
        why: "it installs, publishes, or takes configuration that runs programs",
        covers: Covers::Subcommands(
            "add, b, bench, build, c, check, clean, clippy, d, doc, fetch, fmt, \
              generate-lockfile, locate-project, metadata, nextest, pkgid, r, remove, run, t, \
              test, tree, update, version",
        ),
        long: "config",
        short: "Z",
        with_value: "jpF",
        operands_after_dashes: true,
        ..BASE
    },
    Guard {
        programs: "go",
        why: "it runs programs, or options name programs that it runs",
        covers: Covers::Subcommands("build, doc, fmt, list, test, version, vet"),
        long: "exec, toolexec, vettool, ldflags, gcflags, asmflags, gccgoflags, overlay, \
              modfile, compiler, pkgdir",
        ..BASE
    },
    Guard {
        programs: "make, gmake, ninja, just, task, rake",
        why: "it runs what another file or a variable names",
        long: "eval, file, makefile, directory, include-dir, justfile, rakefile, shell, \
              shell-arg, set, taskfile, require, execute, command, choose",
        short: "fCIEretc",
        with_value: "jlo",
        check: Some(guard_checks::no_assignment),
        ..BASE
    },
    Guard {
        programs: "pytest, py.test",
        why: "it loads a plugin or a configuration",
        long: "config-file, override-ini, pdbcls, pastebin, basetemp, rootdir, confcutdir, \
              debug, plugin",
        short: "co",
        with_value: "kmprnW",
        check: Some(guard_checks::pytest_plugin),
        ..BASE
    },
    Guard {
        programs: "aws, gcloud, az, gh, glab, pip, pipx, uv, poetry, pdm, conda, apt, apt-get, \
              brew, apk, dnf, yum, gem, bundle, composer, dotnet, systemctl, nix, \
              pre-commit, tox, nox",
        why: "its subcommands differ too much; a prefix rule has to name one",
        covers: Covers::Subcommands(""),
        ..OTHER
    },
    // Searching and text tools with arguments that run or write.
    Guard {
        programs: "find, gfind",
        why: "find runs programs, deletes or writes files by it",
        words: "-exec, -execdir, -ok, -okdir, -delete, -fprint, -fprint0, -fprintf, -fls",
        reach: Reach::Read,
        ..BASE
    },
    Guard {
        programs: "fd, fdfind",
        why: "fd runs programs by it",
        long: "exec, exec-batch",
        short: "xX",
        with_value: "eEdtSoj",
        ..READER
    },
    Guard {
        programs: "rg, ripgrep",
        why: "rg runs programs by it",
        long: "pre, hostname-bin, search-zip",
        short: "z",
        with_value: "ABCegGfjmtTMr",
        operands_after_dashes: true,
        ..READER
    },
    Guard {
        programs: "sort, gsort",
        why: "sort writes files or runs a compressor by it",
        long: "output, compress-program, temporary-directory, files0-from",
        short: "oT",
        with_value: "ktS",
        ..READER
    },
    Guard {
        programs: "sed, gsed",
        why: "sed scripts write files and run programs",
        check: Some(guard_checks::sed),
        ..READER
    },
    Guard {
        programs: "awk, gawk, mawk, nawk",
        why: "awk programs write files and run programs",
        check: Some(guard_checks::awk),
        ..READER
    },
    Guard {
        programs: "printf, test",
        why: "bash evaluates the name of a variable there, commands in it included",
        short: "vR",
        ..READER
    },
    Guard {
        programs: "tree, file, diff, date",
        why: "it writes a file, runs a program or sets the clock",
        long: "compile, magic-file, paginate, set",
        short: "oCmls",
        ..READER
    },
    Guard {
        programs: "ps, top, htop, lsof, pstree",
        why: "it shows the arguments and the environment of other processes",
        covers: Covers::Nothing,
        ..BASE
    },
    Guard {
        programs: "base64, basename, cat, cd, cksum, cmp, column, comm, cut, df, dirname, du, echo, \
              egrep, expand, false, fgrep, fmt, fold, free, grep, head, hexdump, id, join, jq, \
              ls, md, nl, nproc, od, paste, printenv, pwd, readlink, realpath, rev, seq, \
              md5sum, sha1sum, sha224sum, sha256sum, sha384sum, sha512sum, b2sum, sleep, stat, \
              strings, tac, tail, tr, true, type, uname, uptime, wc, which, whoami",
        why: "",
        ..READER
    },
];
