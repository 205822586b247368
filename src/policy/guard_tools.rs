//! More of the guard table: build tools, compilers, package managers, linters
//! and test runners. As there, lists are separated by `, `.

use super::guard_checks;
use super::guard_table::{BASE, Covers, Guard, OTHER};

const PACKAGES: Guard = Guard {
    why: "it runs or installs packages, or options name programs that it runs",
    covers: Covers::Subcommands("test, t, run, run-script, ls, list, outdated"),
    long: "browser, call, config, editor, git, globalconfig, init-module, node-options, prefix, \
              script-shell, shell, userconfig, viewer",
    // What follows is for the script, which is the workspace's own.
    operands_after_dashes: true,
    ..BASE
};

/// The rows.
pub(crate) const TOOLS: &[Guard] = &[
    // Programs that start others, and are not of the usual set.
    Guard {
        programs: "ip, chronic, ifne, pee, sem, rlwrap, ssh-agent, prlimit, numactl, choom, uclampset, \
              linux32, linux64, i386, x86_64, cgexec, chpst, catchsegv, cross-env, \
              cross-env-shell, dotenvx, nyc, c8, npm-run-all, run-s, run-p, pueue, tsp, \
              dumb-init, tini, gosu, su-exec, runcon, sg, newgrp, capsh, mispipe, daemonize, \
              daemon, softlimit, setlock, envdir, envuidgid, setuidgid, cpulimit, torsocks, \
              proxychains, aa-exec, schedtool, tcpdump, wine, qemu, coproc, arch, op, \
              doppler, chamber, aws-vault, honcho, foreman, overmind, forego",
        why: "it runs the program that its arguments name",
        covers: Covers::Nothing,
        ..BASE
    },
    // Programs that write what they are given, and run nothing.
    Guard {
        programs: "cp, mv, rm, mkdir, rmdir, touch, tee, ln, chmod, truncate, uniq, xxd, mktemp, unlink, \
              csplit, shred",
        why: "",
        ..BASE
    },
    Guard {
        programs: "split, gsplit",
        why: "split runs a program on each part by it",
        long: "filter",
        ..BASE
    },
    // npm runs scripts of package.json; `npm run env` is not one of them.
    Guard {
        programs: "npm",
        check: Some(guard_checks::npm_script),
        ..PACKAGES
    },
    // These run binaries and files under the same word as scripts.
    Guard {
        programs: "yarn run, pnpm run, pnpm run-script, bun run, deno run, deno task",
        why: "it runs any binary or file by name; a prefix rule has to name the script",
        covers: Covers::NamedScript,
        ..PACKAGES
    },
    Guard {
        programs: "yarn exec, yarn dlx, yarn node, pnpm exec, pnpm dlx, pnpm node, bun x, bun exec, bun \
              repl, deno eval, deno repl, deno install, deno compile, deno serve",
        why: "it runs what its arguments name",
        covers: Covers::Nothing,
        ..BASE
    },
    Guard {
        programs: "yarn, pnpm, bun, deno",
        covers: Covers::Subcommands("test, t, ls, list, outdated, lint, fmt, check"),
        long: "browser, call, config, cwd, dir, editor, git, globalconfig, import-map, init-module, \
              node-options, prefix, preload, require, script-shell, shell, use-yarnrc, \
              userconfig, viewer",
        short: "Cr",
        ..PACKAGES
    },
    // Runners inside an environment: what they run is judged.
    Guard {
        programs: "uv run, poetry run, pdm run, pipenv run, hatch run, rye run, bundle exec, conda run",
        why: "it runs the program that its arguments name; a prefix rule has to name it",
        covers: Covers::Wrapped,
        ..BASE
    },
    // Compilers load plugins, start linkers and read arguments from files.
    Guard {
        programs: "gcc, g++, cc, c++, clang, clang++, gfortran, tcc, ld, gold, mold",
        why: "compilers start programs and load plugins by it",
        check: Some(guard_checks::compiler),
        ..BASE
    },
    Guard {
        programs: "rustc, rustdoc",
        why: "it starts a linker or loads a library by it",
        long: "codegen, extern, runtool, test-runtool, test-builder, sysroot, crate-attr",
        short: "CZL",
        words: "-",
        check: Some(guard_checks::no_argument_file),
        ..BASE
    },
    Guard {
        programs: "javac, kotlinc, scalac, swiftc, ghc, ocamlc, ocamlopt, dmd, ldc2",
        why: "compilers load plugins and processors by it",
        long: "pgmF, pgmP, pgmc, pgml, plugin, plugin-path, processor, processorpath, \
              processor-path, fplugin, use-ld, load-plugin-library",
        short: "JFX",
        check: Some(guard_checks::no_argument_file),
        ..BASE
    },
    Guard {
        programs: "cmake",
        why: "cmake runs scripts, or takes the programs that it runs from it",
        long: "toolchain, debugger, install-script",
        words: "--",
        check: Some(guard_checks::cmake),
        ..BASE
    },
    Guard {
        programs: "ctest",
        why: "ctest runs scripts and commands by it",
        long: "script, script-new-process, build-and-test, build-makeprogram, build-generator, \
              test-command, overwrite, dashboard",
        short: "SDMTA",
        ..BASE
    },
    // Builds on the JVM: properties and settings name programs.
    Guard {
        programs: "mvn, mvnw, gradle, gradlew, sbt, ant, lein",
        why: "it takes build files, settings or properties that name programs from it",
        covers: Covers::Subcommands(""),
        long: "settings, global-settings, toolchains, global-toolchains, file, init-script, \
              include-build, settings-file, build-file, project-dir, gradle-user-home, \
              project-cache-dir, system-prop, buildfile, lib, logger, listener, propertyfile",
        short: "IbpcgsltjfPS",
        with_value: "D",
        check: Some(guard_checks::jvm_properties),
        ..BASE
    },
    Guard {
        programs: "bazel, buck, pants",
        why: "it runs programs by it, or takes configuration",
        covers: Covers::Subcommands(""),
        long: "run_under, run-under, bazelrc, script_path, workspace_status_command, \
              override_repository, override_module, package_path, shell_executable, \
              extra_toolchains, host_javabase, server_javabase, config",
        ..OTHER
    },
    Guard {
        programs: "yq",
        why: "its expressions read files and variables, and some versions run programs",
        long: "from-file, expression-file, split-exp-file",
        check: Some(guard_checks::yq),
        ..BASE
    },
    // Version control besides git.
    Guard {
        programs: "svn, hg, bzr, fossil, jj",
        why: "it runs programs or takes configuration from it",
        covers: Covers::Subcommands(""),
        long: "diff-cmd, diff3-cmd, editor-cmd, config-dir, config-option, config, config-file, \
              config-toml, repository, cwd, tool",
        short: "R",
        ..OTHER
    },
    // Converters and indexers.
    Guard {
        programs: "pandoc",
        why: "filters, engines and defaults are programs or name them",
        long: "filter, lua-filter, pdf-engine, pdf-engine-opt, defaults, data-dir, extract-media, \
              metadata-file, syntax-definition, template, include-in-header",
        short: "FLd",
        ..BASE
    },
    Guard {
        programs: "ctags, etags, cscope",
        why: "files of options define programs and patterns",
        long: "options, options-maybe, optlib-dir, filter",
        ..BASE
    },
    // Test runners and linters that load code by an option.
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
        programs: "eslint, stylelint, prettier",
        why: "it loads code or configuration by it",
        long: "config, parser, parser-options, plugin, plugins, rulesdir, format, \
              resolve-plugins-relative-to, custom-formatter, custom-syntax, plugin-search-dir, \
              stdin-filepath, config-basedir",
        short: "cf",
        ..OTHER
    },
    Guard {
        programs: "pylint, mypy, flake8, phpunit, phpstan, psalm",
        why: "it loads code or configuration by it",
        long: "init-hook, load-plugins, rcfile, config-file, config, append-config, \
              python-executable, install-types, custom-typeshed-dir, bootstrap, autoload-file, \
              configuration, include-path, extension, printer, prepend, enable-extensions, \
              cache-dir, shadow-file",
        short: "c",
        ..OTHER
    },
];
