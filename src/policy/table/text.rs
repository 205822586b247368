//! Programs that read text, and those that write the files they are given.

use super::{CLOSED, Guard, READER};
use crate::policy::checks::{data, script};
use crate::policy::guard::Reach;

/// The rows.
pub(crate) const ROWS: &[Guard] = &[
    Guard {
        programs: "sort, gsort",
        why: "sort writes files or runs a compressor by it",
        long: "output, compress-program, temporary-directory, files0-from",
        short: "oT",
        with_value: "ktS",
        ..READER
    },
    Guard {
        programs: "shuf, gshuf, iconv",
        why: "it writes its result to a file by it",
        long: "output",
        short: "o",
        with_value: "eftn",
        ..READER
    },
    Guard {
        programs: "uniq, guniq",
        why: "its second operand is a file that it writes",
        check: Some(data::uniq),
        ..READER
    },
    Guard {
        programs: "xxd",
        why: "its second operand is a file that it writes",
        check: Some(data::xxd),
        ..READER
    },
    Guard {
        programs: "sed, gsed",
        why: "sed scripts write files and run programs",
        writes: "i, in-place",
        check: Some(script::sed),
        ..READER
    },
    Guard {
        programs: "awk, gawk, mawk, nawk, original-awk",
        why: "awk programs write files and run programs",
        check: Some(script::awk),
        ..READER
    },
    Guard {
        programs: "jq, gojq, jaq",
        why: "jq loads programs and modules by it",
        long: "from-file, library-path, run-tests",
        short: "fL",
        check: Some(script::jq),
        ..READER
    },
    Guard {
        programs: "yq, xq, tomlq",
        why: "its expressions read files and variables, and some versions run programs",
        long: "from-file, expression-file, split-exp-file, split-exp",
        short: "s",
        with_value: "oPp",
        writes: "i, inplace, in-place",
        check: Some(script::yq),
        ..READER
    },
    Guard {
        programs: "xmllint",
        why: "it opens a shell, or reads and writes other files by it",
        long: "shell, output, noent, xinclude, catalogs, nocatalogs, path, loaddtd, load-trace, \
               dtdvalid, dtdvalidfpi",
        short: "o",
        ..READER
    },
    Guard {
        programs: "printf, test",
        why: "bash evaluates the name of a variable there, commands in it included",
        short: "vR",
        ..READER
    },
    Guard {
        programs: "date",
        why: "it sets the clock",
        long: "set",
        short: "s",
        with_value: "dfrI",
        check: Some(data::date_format),
        ..READER
    },
    Guard {
        programs: "hostname, domainname",
        why: "it changes the name of the machine",
        long: "file",
        short: "Fb",
        check: Some(data::no_operand),
        ..READER
    },
    Guard {
        programs: "printenv",
        why: "it shows the whole environment",
        check: Some(data::plain_variables),
        ..READER
    },
    Guard {
        programs: "tree, file, diff, gdiff, colordiff",
        why: "it writes a file, runs a program or takes other rules",
        long: "compile, magic-file, paginate, output",
        short: "oCml",
        with_value: "LPIUFfx",
        ..READER
    },
    Guard {
        programs: "diff3, sdiff",
        why: "it runs a program or writes a file by it",
        long: "diff-program, output",
        short: "o",
        ..READER
    },
    Guard {
        programs: "bat, batcat, delta",
        why: "it starts a pager or takes other configuration",
        long: "pager, config-file, config-dir, cache-dir, config, paging",
        short: "",
        words: "cache",
        ..READER
    },
    Guard {
        programs: "less, more, most",
        why: "it runs commands, writes a log or takes keys from it",
        long: "log-file, LOG-FILE, lesskey-file, lesskey-src, lesskey-content, lesskey-context, \
               tag, tag-file, prompt, cmd",
        short: "oOkTtPD",
        with_value: "bhjpxyz",
        check: Some(data::no_plus),
        ..READER
    },
    Guard {
        programs: "man",
        why: "man runs a pager, a browser or a formatter by it, or reads other pages",
        long: "pager, html, config-file, manpath, local-file, preprocessor, troff, troff-device, \
               gxditview, prompt, systems, locale, ditroff, extension, update, recode",
        short: "PHCMlptTXZRrmLe",
        with_value: "sS",
        ..READER
    },
    Guard {
        programs: "groff, troff, pic, nroff",
        why: "documents run programs and write files by it, or it takes other macros or devices",
        short: "UMFPXlL",
        with_value: "dfImnorswT",
        ..READER
    },
    Guard {
        programs: "apropos, whatis",
        why: "it reads other pages or configuration",
        long: "config-file, manpath, systems",
        short: "CMm",
        ..READER
    },
    Guard {
        programs: "nm, objdump, size, gnm, readelf, addr2line, c++filt",
        why: "it loads a library",
        long: "plugin, target-help",
        check: Some(data::no_argument_file),
        ..READER
    },
    Guard {
        programs: "b2sum, b3sum, base32, base64, basename, basenc, cal, cat, cd, cksum, cmp, colrm, \
                   column, comm, cut, df, dir, dirname, du, echo, expand, expr, factor, false, fmt, \
                   fold, free, getconf, groups, head, hexdump, hd, id, join, last, locale, logname, \
                   look, ls, lsblk, lscpu, md, md5sum, nl, nproc, numfmt, od, paste, pr, pwd, \
                   readlink, realpath, rev, seq, sha1sum, sha224sum, sha256sum, sha384sum, \
                   sha512sum, shasum, sleep, stat, strings, sum, tac, tail, tr, true, tsort, tty, \
                   type, uname, unexpand, uptime, users, vdir, wc, whereis, which, who, whoami, \
                   zcat, bzcat, xzcat, zstdcat, bc, [",
        why: "it only reads and prints",
        ..READER
    },
    // What follows writes what it is given.
    Guard {
        programs: "rm, chmod, chown, chgrp, shred, mv, gmv, grm, rmdir",
        why: "it removes or changes what it is given, with all that is below",
        long: "no-preserve-root, from",
        check: Some(data::not_everything),
        reach: Reach::Workspace,
        ..READER
    },
    Guard {
        programs: "install, ginstall",
        why: "it runs a program to strip what it copies",
        long: "strip-program",
        reach: Reach::Workspace,
        ..READER
    },
    Guard {
        programs: "cp, gcp, mkdir, touch, tee, ln, truncate, mktemp, unlink, link, csplit, dd, fallocate, \
                   mkfifo, dos2unix, unix2dos, gzip, gunzip, bzip2, bunzip2, xz, unxz, zstd, unzstd, \
                   lz4, compress, uncompress, pigz, pbzip2",
        why: "it writes what it is given",
        reach: Reach::Workspace,
        ..READER
    },
    Guard {
        programs: "split, gsplit",
        why: "split runs a program on each part by it",
        long: "filter",
        reach: Reach::Workspace,
        ..READER
    },
    // Archives: commands by option, and names inside that lead anywhere.
    Guard {
        programs: "tar, gtar, bsdtar",
        why: "tar runs a program by it, or writes outside the directory that it is in",
        long: "to-command, checkpoint-action, use-compress-program, rsh-command, rmt-command, \
               info-script, new-volume-script, absolute-names, absolute-paths, no-overwrite-dir, \
               insecure, use-program, passphrase",
        short: "IFP",
        with_value: "bCfgHKLNTVX",
        check: Some(data::tar),
        reach: Reach::Workspace,
        ..READER
    },
    Guard {
        programs: "zip",
        why: "zip tests the archive with a program that is named",
        long: "unzip-command, test",
        short: "T",
        reach: Reach::Workspace,
        ..READER
    },
    Guard {
        programs: "unzip, zipinfo, funzip",
        why: "it writes above the directory that it is in",
        short: ":",
        with_value: "dPx",
        reach: Reach::Workspace,
        ..READER
    },
    Guard {
        programs: "7z, 7za, 7zr",
        why: "it writes whole paths or starts another program",
        short: "s@",
        with_value: "oxipwmt",
        check: Some(data::no_argument_file),
        reach: Reach::Workspace,
        ..READER
    },
    Guard {
        programs: "ar, ranlib, strip, objcopy",
        why: "it loads a library, or reads its arguments from a file",
        long: "plugin",
        check: Some(data::no_argument_file),
        reach: Reach::Workspace,
        ..READER
    },
    Guard {
        programs: "cpio, pax, unar, lsar, rar, unrar, patch, dpkg, rpm, dpkg-deb, rpm2cpio, shar, sharutils, \
                   star",
        why: "it writes files that an archive or a patch names, and some options run programs",
        ..CLOSED
    },
];
