//! git by subcommand, and other version control.

use super::{BASE, CLOSED, Covers, Guard, OTHER, READER};
use crate::policy::checks::{git, network};

/// Subcommands of git without a row that a rule for all of git covers.
const PLAIN: &str = "add, am, apply, branch, bundle, check-attr, check-mailmap, check-ref-format, checkout, \
                     cherry-pick, clean, column, commit, commit-graph, format-patch, fsck, gc, merge-file, \
                     mv, notes, pack-refs, prune, range-diff, read-tree, reflog, repack, replace, rerere, \
                     reset, restore, rm, stash, stripspace, switch, symbolic-ref, tag, update-index, \
                     update-ref, verify-pack, write-tree";

/// Options of git's subcommands that run programs, write files or take other
/// configuration.
const LONG: &str = "config, config-env, edit-description, exec, exec-path, ext-diff, extcmd, git-dir, \
                    open-files-in-pager, output, receive-pack, template, textconv, tool, unsafe-paths, \
                    upload-pack, work-tree, directory, separate-git-dir, gpg-sign, local-user, \
                    show-signature, verify-signatures, signed";

const GIT_BASE: Guard = Guard {
    why: "git runs programs, writes files or takes configuration from such arguments",
    long: LONG,
    plain_long: "verify",
    check: Some(git::no_signature),
    ..BASE
};

const GIT_READER: Guard = Guard {
    reach: READER.reach,
    ..GIT_BASE
};

/// The rows of git.
pub(crate) const GIT: &[Guard] = &[
    Guard {
        programs: "git grep",
        short: "O",
        with_value: "eABCmf",
        ..GIT_READER
    },
    Guard {
        programs: "git diff, git log, git show, git status, git blame, git annotate, git rev-parse, git \
                   ls-files, git ls-tree, git describe, git shortlog, git rev-list, git merge-base, git \
                   name-rev, git show-ref, git show-branch, git for-each-ref, git diff-tree, git \
                   diff-index, git diff-files, git whatchanged, git check-ignore, git count-objects, \
                   git cherry, git version, git var, git hash-object, git merge-tree, git patch-id",
        ..GIT_READER
    },
    Guard {
        programs: "git cat-file",
        long: "filters, textconv",
        ..GIT_READER
    },
    Guard {
        programs: "git rebase",
        short: "xi",
        long: "exec, interactive, edit-todo, gpg-sign",
        with_value: "sXC",
        check: Some(git::strategy),
        ..GIT_BASE
    },
    Guard {
        programs: "git merge, git cherry-pick, git revert",
        check: Some(git::strategy),
        ..GIT_BASE
    },
    Guard {
        programs: "git push, git fetch, git pull, git ls-remote",
        long: "config, exec, output, receive-pack, remote, repo, upload-pack, server-option, \
               add-virtual-file, signed, verify-signatures",
        with_value: "sXjo",
        check: Some(git::remote),
        ..GIT_BASE
    },
    Guard {
        programs: "git archive",
        long: "exec, output, remote, add-file, add-virtual-file",
        short: "o",
        ..GIT_BASE
    },
    Guard {
        programs: "git remote",
        check: Some(git::remotes),
        ..GIT_BASE
    },
    Guard {
        programs: "git clone",
        long: "config, template, upload-pack, separate-git-dir, reference, reference-if-able, \
               bundle-uri, recurse-submodules, recursive, server-option, local, shared",
        short: "culs",
        with_value: "bjo",
        check: Some(git::clone),
        ..GIT_BASE
    },
    Guard {
        programs: "git config",
        check: Some(git::config),
        ..GIT_BASE
    },
    Guard {
        programs: "git submodule",
        words: "foreach, add, set-url, absorbgitdirs",
        ..GIT_BASE
    },
    Guard {
        programs: "git init",
        ..GIT_BASE
    },
    Guard {
        programs: "git bisect",
        words: "run, visualize, view, replay",
        ..GIT_BASE
    },
    Guard {
        programs: "git worktree",
        words: "move, repair",
        ..GIT_BASE
    },
    Guard {
        programs: "git tag",
        short: "usv",
        // There it runs gpg.
        plain_long: "",
        with_value: "mF",
        ..GIT_BASE
    },
    Guard {
        programs: "git add",
        short: "e",
        ..GIT_BASE
    },
    Guard {
        programs: "git commit, git notes, git stash, git am",
        short: "Se",
        with_value: "mFCct",
        ..GIT_BASE
    },
    Guard {
        programs: "git filter-branch, git filter-repo, git difftool, git mergetool, git hook, git \
                   send-email, git instaweb, git daemon, git shell, git credential, git \
                   credential-store, git credential-cache, git maintenance, git upload-pack, \
                   git receive-pack, git upload-archive, git fast-import, git fast-export, git \
                   for-each-repo, git help, git web--browse, git gui, git gitk, git citool, git \
                   remote-ext, git remote-fd, git interpret-trailers, git imap-send, git http-backend, \
                   git svn, git p4, git cvsserver, git cvsimport, git archimport, git lfs, git \
                   request-pull, git quiltimport, git scalar, git sh-i18n, git sh-setup, git \
                   checkout-index, git fsmonitor--daemon, git cat-file--batch, git unpack-file, git \
                   mailinfo, git mailsplit, git flow, git annex",
        ..Guard {
            covers: Covers::Nothing,
            ..GIT_BASE
        }
    },
    Guard {
        programs: "git",
        covers: Covers::Subcommands(PLAIN),
        ..GIT_BASE
    },
];

/// Version control besides git, and the tools of its hosts.
pub(crate) const OTHERS: &[Guard] = &[
    Guard {
        programs: "svn, hg, bzr, fossil, jj",
        why: "it runs programs or takes configuration from it",
        covers: Covers::Subcommands("status, st, log, diff, info, annotate, blame, summary"),
        long: "diff-cmd, diff3-cmd, editor-cmd, config-dir, config-option, config, config-file, \
               config-toml, repository, cwd, tool, ssh, remotecmd, pager, debugger",
        short: "R",
        ..OTHER
    },
    Guard {
        programs: "gh alias, gh extension, gh extensions, gh ext, gh config, gh auth, gh codespace, gh cs, gh \
                   ssh-key, gh gpg-key, gh browse, gh secret, gh variable, gh attestation, gh skill, \
                   glab alias, glab config, glab auth, glab ssh-key, glab variable",
        why: "it changes what runs, opens programs, or hands out credentials",
        ..CLOSED
    },
    Guard {
        programs: "gh repo, gh pr, gh gist, glab repo, glab mr",
        why: "it hands options to git, opens a browser or an editor, or reaches another host",
        long: "web, editor, template, config, hostname",
        short: "w",
        words: "--, set-default, sync, edit",
        check: Some(network::forge),
        ..OTHER
    },
    Guard {
        programs: "gh, glab, hub",
        why: "its subcommands differ too much; a prefix rule has to name one",
        covers: Covers::Subcommands(
            "api, cache, issue, label, org, project, release, run, ruleset, search, status, workflow, ci",
        ),
        long: "web, editor, hostname",
        check: Some(network::forge),
        ..OTHER
    },
];
