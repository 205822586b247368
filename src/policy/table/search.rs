//! Programs that search.

use super::{CLOSED, Guard, READER};

/// The rows.
pub(crate) const ROWS: &[Guard] = &[
    Guard {
        programs: "find, gfind, bfs",
        why: "find runs programs, deletes or writes files by it",
        words: "-exec, -execdir, -ok, -okdir, -delete, -fprint, -fprint0, -fprintf, -fls, -rm",
        ..READER
    },
    Guard {
        programs: "fd, fdfind",
        why: "fd runs programs by it",
        long: "exec, exec-batch",
        short: "xX",
        with_value: "eEdtSojcC",
        ..READER
    },
    Guard {
        programs: "rg, ripgrep",
        why: "rg runs programs by it",
        long: "pre, hostname-bin, search-zip",
        short: "z",
        with_value: "ABCegGfjmtTMrEd",
        operands_after_dashes: true,
        ..READER
    },
    Guard {
        programs: "ag, ack, pt, sift",
        why: "it starts a pager, evaluates an expression, takes other configuration or opens hidden files",
        long: "pager, ackrc, output, config, env, type-set, search-zip, conf, hidden, unrestricted, \
               all-types, all-text, skip-vcs-ignores",
        short: "zuaUt",
        with_value: "ABCGmpE",
        operands_after_dashes: true,
        ..READER
    },
    Guard {
        programs: "grep, egrep, fgrep, rgrep, ggrep, zgrep, bzgrep, xzgrep, zdiff, zcmp, pcregrep, pgrep, \
                   ugrep, locate, plocate, mlocate, cloc, tokei, scc",
        why: "it only reads and prints",
        long: "pager, filter, view, config, write-lang-def, out, report-file, save-config, \
               read-lang-def, force-lang-def, extract-with",
        ..READER
    },
    Guard {
        programs: "fzf, sk, peco, percol, updatedb, ripgrep-all, rga, semgrep, ast-grep, comby",
        why: "it runs commands for what it finds, or rewrites it",
        ..CLOSED
    },
];
