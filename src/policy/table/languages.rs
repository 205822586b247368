//! Interpreters, compilers, and the modules that are programs of their own.

use super::{BASE, CLOSED, Covers, Guard, OTHER};
use crate::policy::checks::{build, data, script};

/// The rows.
pub(crate) const ROWS: &[Guard] = &[
    Guard {
        programs: "bash, sh, dash, zsh, ksh, mksh, ash, fish, csh, tcsh, rbash, python, pypy, perl, \
                   ruby, jruby, node, nodejs, lua, luajit, tclsh, wish, expect, rscript, osascript, \
                   pwsh, powershell, julia, swipl, guile, racket, java, elixir, erl, escript, iex, \
                   ts-node, tsx, groovy, kotlin, scala-cli, nu, elvish, xonsh, bb, clojure, clj, sbcl, \
                   ocaml, runghc, runhaskell, awkward, deno run, bun run-file, crystal, nim, raku, R, \
                   octave, matlab, sage, gjs, qjs, d8, wasmtime, wasmer",
        why: "it runs code that its arguments name; a prefix rule has to name the script, or \
              the module after `-m`",
        covers: Covers::NamedScript,
        ..BASE
    },
    Guard {
        programs: "node --test, node --check",
        why: "it loads code or configuration by it",
        long: "require, import, loader, experimental-loader, eval, print, run, interactive, env-file, \
               env-file-if-exists, openssl-config, inspect, inspect-brk, \
               test-reporter-destination, test-global-setup, experimental-config-file, \
               build-snapshot, snapshot-blob, conditions, diagnostic-dir, redirect-warnings",
        plain_long: "check, test, test-reporter",
        short: "repiC",
        check: Some(script::node_tests),
        ..OTHER
    },
    Guard {
        programs: "php",
        why: "it runs code that its arguments name; a prefix rule has to name the script",
        covers: Covers::NamedScript,
        ..BASE
    },
    Guard {
        programs: "timeit, pdb, cprofile, profile, runpy, trace, code, doctest, ensurepip, http.server, \
                   idlelib, zipapp, zipfile, tarfile, webbrowser, pydoc, antigravity, \
                   smtpd, pickle, sqlite3.__main__, ipython, jupyter, notebook, site, asyncio, pty, \
                   bdb, cgi, imp, turtledemo, lib2to3, pyclbr",
        why: "it runs code of its arguments, or writes and serves files",
        ..CLOSED
    },
    Guard {
        programs: "coverage run",
        why: "it runs code that its arguments name; a prefix rule has to name the script, or \
              the module after `-m`",
        covers: Covers::NamedScript,
        ..BASE
    },
    Guard {
        programs: "coverage",
        why: "it takes other configuration",
        covers: Covers::Subcommands("report, xml, json, lcov, html, combine, erase, annotate"),
        long: "rcfile, data-file",
        ..BASE
    },
    Guard {
        programs: "gcc, g++, cc, c++, cpp, clang, clang++, clang-cl, gfortran, tcc, ld, gold, lld, mold, as, \
                   icc, icpc, nvcc, emcc, em++",
        why: "compilers start programs and load plugins by it",
        check: Some(build::compiler),
        ..BASE
    },
    Guard {
        programs: "rustc, rustdoc",
        why: "it starts a linker or loads a library by it",
        long: "codegen, extern, runtool, test-runtool, test-builder, sysroot, crate-attr",
        short: "CZL",
        words: "-",
        check: Some(data::no_argument_file),
        ..BASE
    },
    Guard {
        programs: "rustfmt, gofmt, goimports, clang-format",
        why: "it takes other configuration from it",
        long: "config, config-path, style, cpuprofile, file-lines",
        check: Some(data::no_argument_file),
        ..BASE
    },
    Guard {
        programs: "javac, kotlinc, scalac, swiftc, ghc, ocamlc, ocamlopt, dmd, ldc2, mcs, csc, fsc, valac, \
                   gnatmake, fpc",
        why: "compilers load plugins and processors by it",
        long: "pgmF, pgmP, pgmc, pgml, plugin, plugin-path, processor, processorpath, \
               processor-path, fplugin, use-ld, load-plugin-library, analyzer, pp, ppx",
        short: "JFX",
        check: Some(data::no_argument_file),
        ..BASE
    },
    Guard {
        programs: "protoc, buf, flatc, thrift, bison, flex, yacc, lex, swig",
        why: "it runs a plugin or takes a skeleton from it",
        long: "plugin, skeleton, template, plugin_out, config",
        short: "S",
        check: Some(data::no_argument_file),
        ..BASE
    },
    Guard {
        programs: "tsc",
        why: "it loads code or writes elsewhere by it",
        long: "plugins, build, generateTrace, generateCpuProfile",
        short: "b",
        check: Some(data::no_argument_file),
        ..BASE
    },
    Guard {
        programs: "pdflatex, latex, xelatex, lualatex, tex, pdftex, luatex, xetex, etex, mpost, latexmk",
        why: "documents run programs by it, or it runs one itself",
        long: "shell-escape, enable-write18, write18, ini, fmt, interaction-file, latex, pdflatex, \
               xelatex, lualatex, usepretex, pretex, e, r, latexoption",
        short: "er",
        check: Some(build::no_tex_code),
        ..BASE
    },
];
