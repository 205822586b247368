//! Build tools, test runners and linters: the code of the workspace runs, and
//! options must not change which.

use super::{BASE, CLOSED, Covers, Guard, OTHER};
use crate::policy::checks::{build, data};

/// The rows.
pub(crate) const ROWS: &[Guard] = &[
    Guard {
        programs: "cargo clippy, cargo rustc, cargo rustdoc, cargo doc, cargo d",
        why: "options for the compiler can name a linker or a plugin",
        long: "config, codegen, open",
        short: "CZ",
        with_value: "jpFADWE",
        check: Some(build::cargo_target),
        ..BASE
    },
    Guard {
        programs: "cargo fmt",
        why: "it takes other configuration from it",
        long: "config, config-path",
        with_value: "p",
        ..BASE
    },
    Guard {
        programs: "cargo install, cargo uninstall, cargo publish, cargo login, cargo logout, cargo owner, cargo \
                   yank, cargo watch, cargo hack, cargo make, cargo binstall, cargo run-bin, cargo flamegraph, \
                   cargo xtask, cargo generate, cargo script, cargo with, cargo config, cargo credential",
        why: "it installs, publishes or runs what its arguments name",
        ..CLOSED
    },
    Guard {
        programs: "cargo",
        why: "it installs, publishes, or takes configuration that runs programs",
        covers: Covers::Subcommands(
            "add, b, bench, build, c, check, clean, clippy, d, doc, fetch, fix, fmt, \
             generate-lockfile, help, info, init, locate-project, metadata, new, nextest, package, \
             pkgid, r, remove, rm, run, search, t, test, tree, update, vendor, verify-project, \
             version",
        ),
        long: "config, config-file, tool-config-file, git, path, registry, index, artifact-dir, open, \
               runner, root, unit-graph",
        short: "ZC",
        with_value: "jpFE",
        check: Some(build::cargo_target),
        operands_after_dashes: true,
        ..BASE
    },
    Guard {
        programs: "go run",
        why: "it runs a package by its name; only those of the workspace are covered",
        long: GO_LONG,
        short: "",
        check: Some(build::go_run),
        ..BASE
    },
    Guard {
        programs: "go env",
        why: "it sets what other go commands use",
        words: "-w, -u",
        ..BASE
    },
    Guard {
        programs: "go install, go get, go generate, go tool, go telemetry, go bug",
        why: "it runs or installs what its arguments name",
        covers: Covers::NamedScript,
        ..BASE
    },
    Guard {
        programs: "go",
        why: "it runs programs, or options name programs that it runs",
        covers: Covers::Subcommands(
            "build, clean, doc, fix, fmt, help, list, mod, test, version, vet, work",
        ),
        long: GO_LONG,
        check: Some(build::go_linker),
        ..BASE
    },
    Guard {
        programs: "make, gmake, bmake, ninja, just, task, rake, mage, invoke, scons, samu",
        why: "it runs what another file or a variable names",
        long: "eval, file, makefile, include-dir, justfile, working-directory, rakefile, \
               shell, shell-arg, set, taskfile, dir, require, execute, execute-print, \
               execute-continue, command, choose, edit, global, dotenv-path, dotenv-filename, \
               libdir, rakelibdir, assume-new, search-root, collection, config, sconstruct, \
               environment-overrides, old-file, chooser, tempdir",
        short: "fIEretcgpPYd",
        with_value: "Cjlo",
        check: Some(build::no_assignment),
        ..BASE
    },
    Guard {
        programs: "cmake",
        why: "cmake runs scripts, or takes the programs that it runs from it",
        long: "toolchain, debugger, debugger-pipe, install-script, preset, workflow, profiling-output, \
               open, project-file",
        words: "--",
        check: Some(build::cmake),
        ..BASE
    },
    Guard {
        programs: "ctest",
        why: "ctest runs scripts and commands by it",
        long: "script, script-new-process, build-and-test, build-makeprogram, build-generator, \
               test-command, overwrite, dashboard, extra-script, build-options",
        short: "SDMTA",
        with_value: "jRELICOU",
        ..BASE
    },
    Guard {
        programs: "meson",
        why: "it runs programs by it, or takes their names",
        covers: Covers::Subcommands(
            "setup, compile, test, install, introspect, configure, dist, format",
        ),
        long: "native-file, cross-file, wrapper, gdb, gdb-path, vsenv, bat, setup, editor-mode, \
               configuration, source-file, options",
        short: "D",
        ..BASE
    },
    // Builds on the JVM: properties and settings name programs.
    Guard {
        programs: "mvn, mvnw, mvnd",
        why: "it takes build files, settings or properties that name programs from it",
        long: "settings, global-settings, toolchains, global-toolchains, file, builder, \
               encrypt-password, encrypt-master-password, log-file, define",
        check: Some(build::maven),
        ..BASE
    },
    Guard {
        programs: "gradle, gradlew",
        why: "it takes build files, settings or properties that name programs from it",
        long: "init-script, include-build, settings-file, build-file, project-dir, gradle-user-home, \
               project-cache-dir, system-prop, project-prop, gui, foreground",
        short: "IbpcgPS",
        with_value: "D",
        check: Some(build::jvm_properties),
        ..BASE
    },
    Guard {
        programs: "ant, sbt, lein, mill, bloop, buildr",
        why: "it takes commands, build files or properties that name programs from it",
        covers: Covers::Subcommands(
            "clean, compile, test, package, check, jar, uberjar, build, doc, deps, update",
        ),
        long: "file, buildfile, lib, logger, listener, propertyfile, inputhandler, main, sbt-dir, \
               java-home, ivy, addPluginSbtFile, find, cp",
        short: "fJ",
        with_value: "D",
        check: Some(build::one_word_commands),
        ..BASE
    },
    Guard {
        programs: "bazel, bazelisk, buck, buck2, pants, please, plz",
        why: "it runs programs by it, or takes configuration",
        covers: Covers::Subcommands("build, test, query, cquery, aquery, info, version, help"),
        long: "run_under, run-under, bazelrc, script_path, workspace_status_command, \
               override_repository, override_module, package_path, shell_executable, \
               extra_toolchains, host_javabase, server_javabase, config, action_env, \
               sandbox_add_mount_pair, output_base, output_user_root, repo_env, java_runtime_version, \
               test_env, spawn_strategy, credential_helper, remote_executor",
        ..OTHER
    },
    // Test runners and linters that load code by an option.
    Guard {
        programs: "pytest, py.test",
        why: "it loads a plugin or a configuration",
        long: "config-file, override-ini, pdbcls, pastebin, basetemp, rootdir, confcutdir, debug, \
               plugin, pdb, trace, import-plugin, ds, tx, px, rsyncdir, looponfail, driver-path",
        plain_long: "driver",
        short: "co",
        with_value: "kmprnW",
        check: Some(build::pytest),
        ..BASE
    },
    Guard {
        programs: "tox, nox",
        why: "it takes other configuration or overrides it",
        long: "conf, override, root, workdir, noxfile, force-python, extra-python, plugins, \
               installpkg, discover, runner, default-runner",
        short: "cxf",
        with_value: "esk",
        words: "exec, e, devenv, quickstart",
        operands_after_dashes: true,
        ..BASE
    },
    Guard {
        programs: "pre-commit",
        why: "it installs hooks, or takes other configuration",
        covers: Covers::Subcommands("run, validate-config, validate-manifest, clean, gc"),
        long: "config, template",
        short: "c",
        ..BASE
    },
    Guard {
        programs: "pre-commit install, pre-commit try-repo, pre-commit init-templatedir, pre-commit \
                   uninstall, pre-commit hook-impl",
        why: "it writes hooks, or runs another repository",
        ..CLOSED
    },
    Guard {
        programs: "mocha, rspec, rubocop, cucumber, ava, tap, jasmine, standardrb",
        why: "it loads code or configuration by it",
        long: "require, file, config, package, opts, reporter, ui, import, loader, plugin, options, \
               format, formatter, spec, experimental-loader, node-option, server, test-arg",
        short: "rfIOcu",
        ..OTHER
    },
    Guard {
        programs: "jest, vitest, playwright, cypress",
        why: "it loads code or configuration by it",
        long: "config, globalSetup, globalTeardown, setupFiles, setupFilesAfterEnv, resolver, \
               runner, testRunner, testEnvironment, testSequencer, transform, preset, rootDir, \
               root, dir, reporters, reporter, environment, watchPlugins, testResultsProcessor, \
               snapshotResolver, moduleNameMapper, haste, prettierPath, dependencyExtractor",
        short: "c",
        ..OTHER
    },
    Guard {
        programs: "eslint, stylelint, prettier, biome, oxlint, standard, xo",
        why: "it loads code or configuration by it",
        long: "config, parser, parser-options, plugin, plugins, rulesdir, format, \
               resolve-plugins-relative-to, custom-formatter, custom-syntax, plugin-search-dir, \
               stdin-filepath, config-basedir, config-path",
        short: "cf",
        ..OTHER
    },
    Guard {
        programs: "pylint, mypy, flake8, phpunit, phpstan, psalm, pyright, bandit, black, isort, ruff, yapf",
        why: "it loads code or configuration by it",
        long: "init-hook, load-plugins, rcfile, config-file, config, append-config, \
               python-executable, install-types, custom-typeshed-dir, bootstrap, autoload-file, \
               configuration, include-path, extension, printer, prepend, enable-extensions, \
               cache-dir, shadow-file, settings-file, settings-path, settings, style, project, \
               pythonpath, typeshedpath, venvpath",
        short: "c",
        with_value: "lnjk",
        check: Some(data::no_argument_file),
        ..OTHER
    },
    Guard {
        programs: "actionlint, ansible-lint, checkov, checkstyle, codespell, commitlint, cspell, depcheck, \
                   detekt, dprint, editorconfig-checker, gitleaks, golangci-lint, hadolint, haml-lint, \
                   hlint, htmlhint, knip, ktlint, kube-linter, luacheck, lychee, markdownlint, \
                   markdownlint-cli2, php-cs-fixer, phpcbf, phpcs, pmd, rector, redocly, \
                   scss-lint, selene, slim-lint, spectral, sqlfluff, stylua, swiftlint, textlint, tflint, \
                   tfsec, trivy, typos, vale, yamllint",
        why: "it takes other configuration, which can load rules that are code",
        long: "config, config-dir, config-file, config-path, configuration, autoload, bootstrap, \
               default-config, external-checks-dir, external-checks-git, extends, library-path, plugin, \
               plugin-dir, plugins, pyflakes, require, rules-dir, rulesdir, ruleset, runtime-set, \
               shellcheck",
        short: "cR",
        check: Some(data::no_argument_file),
        ..OTHER
    },
    Guard {
        programs: "lcov, geninfo, genhtml, gcovr, gcov, kcov, grcov",
        why: "it runs a program or takes other configuration",
        long: "gcov-tool, gcov-executable, config-file, config, rc, criteria-script, \
               annotate-script, version-script, select-script, llvm-path",
        ..OTHER
    },
    Guard {
        programs: "pandoc",
        why: "filters, engines and defaults are programs or name them",
        long: "filter, lua-filter, pdf-engine, pdf-engine-opt, defaults, data-dir, extract-media, \
               metadata-file, syntax-definition, template, include-in-header, include-before-body, \
               include-after-body, bash-completion",
        short: "FLdHBA",
        with_value: "frtoMV",
        ..BASE
    },
    Guard {
        programs: "ctags, etags, cscope, universal-ctags",
        why: "files of options define programs and patterns",
        long: "options, options-maybe, optlib-dir, filter, langdef, regex",
        ..BASE
    },
];

/// Options of go that name programs, or other sources.
const GO_LONG: &str = "exec, toolexec, vettool, gcflags, asmflags, gccgoflags, overlay, modfile, \
                       compiler, pkgdir, C, fixtool";
