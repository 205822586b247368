//! Package managers and the runners that come with them.

use super::{BASE, CLOSED, Covers, Guard, OTHER};
use crate::policy::checks::{data, packages};

/// Options of npm and its like that name programs, places or sources.
const LONG: &str = "browser, call, config, cwd, dir, editor, git, global, globalconfig, import-map, init-module, \
                    location, node-options, prefix, preload, registry, require, script-shell, shell, \
                    use-yarnrc, userconfig, viewer, modules-folder, global-folder, virtual-store-dir, \
                    store-dir, nodedir, python, cafile, node-gyp, onload-script, shell-emulator, \
                    global-dir, config-dir, cache-folder, link-folder, package, proxy, https-proxy";

const NPM: Guard = Guard {
    why: "it runs or installs packages, or options name programs that it runs",
    long: LONG,
    // What follows is for the script, which is the workspace's own.
    operands_after_dashes: true,
    ..BASE
};

/// Options of python's installers that name sources, places or programs.
const PIP_LONG: &str = "index-url, extra-index-url, index, default-index, find-links, trusted-host, target, \
                        prefix, root, src, config-settings, config-setting, global-option, \
                        install-option, build-option, python, log, cache-dir, proxy, cert, client-cert, \
                        config-file, directory, project, allow-insecure-host, keyring-provider, \
                        with-editable, user, break-system-packages, source, overrides, override";

/// The rows.
pub(crate) const ROWS: &[Guard] = &[
    // npm runs scripts of package.json; `npm run env` is not one of them.
    Guard {
        programs: "npm init, npm create, npm innit, npm config, npm c, npm set, npm get, npm \
                   explore, npm edit, npm link, npm ln, npm login, npm adduser, npm logout, npm publish, \
                   npm token, npm owner, npm access, npm hook, npm repo, npm docs, npm home, npm bugs, npm \
                   issues, npm pkg, npm set-script, npm shrinkwrap, npm rebuild, npm rb, npm org, npm \
                   profile, npm star, npm team, npm dist-tag, npm deprecate, npm unpublish, npm sbom, npm \
                   help, npm completion",
        why: "it runs what its arguments name, or changes configuration or the registry",
        covers: Covers::Nothing,
        ..NPM
    },
    Guard {
        programs: "npm",
        covers: Covers::Subcommands(
            "test, t, tst, run, run-script, start, stop, restart, ls, list, ll, la, outdated, install, i, \
             add, ci, clean-install, install-test, it, uninstall, remove, rm, un, update, up, upgrade, \
             audit, view, info, show, why, explain, fund, dedupe, prune, pack, version, root, bin, ping, \
             whoami, search, doctor, cache, query, diff",
        ),
        short: "gcC",
        with_value: "w",
        check: Some(packages::npm),
        ..NPM
    },
    // These run binaries and files under the same word as scripts.
    Guard {
        programs: "yarn run, pnpm run, pnpm run-script, bun run",
        why: "it runs any binary or file by name; a prefix rule has to name the script",
        short: "Cr",
        check: Some(packages::usual_script),
        ..NPM
    },
    Guard {
        programs: "deno task",
        why: "it takes other tasks from it",
        short: "c",
        ..NPM
    },
    Guard {
        programs: "yarn node, yarn global, yarn config, yarn plugin, yarn set, yarn create, yarn init, \
                   yarn link, yarn login, yarn publish, yarn policies, yarn npm, yarn patch, yarn unplug, yarn \
                   rebuild, pnpm node, pnpm config, pnpm set, pnpm get, pnpm env, pnpm create, pnpm init, pnpm \
                   link, pnpm publish, pnpm patch, pnpm patch-commit, pnpm deploy, pnpm server, pnpm setup, pnpm \
                   self-update, bun exec, bun repl, bun create, bun init, bun link, bun publish, bun upgrade, \
                   deno eval, deno repl, deno install, deno compile, deno serve, deno upgrade, deno jupyter, \
                   deno x, deno bundle",
        why: "it runs or changes what its arguments name",
        ..CLOSED
    },
    Guard {
        programs: "npm exec, npm x, yarn exec, npx, pnpx, bunx, uvx, pipx run, yarn dlx, pnpm dlx, pnpm exec, bun x",
        why: "it runs the program that its arguments name; a prefix rule has to name it",
        covers: Covers::Wrapped,
        ..BASE
    },
    Guard {
        programs: "yarn, pnpm, bun",
        covers: Covers::Subcommands(
            "test, t, install, i, ci, add, remove, rm, uninstall, up, update, upgrade, upgrade-interactive, \
             ls, list, outdated, audit, why, info, view, dedupe, prune, pm, licenses, import, fetch, \
             store, workspaces, version, versions, check, start",
        ),
        short: "Crg",
        check: Some(packages::install),
        ..NPM
    },
    Guard {
        programs: "deno",
        covers: Covers::Subcommands(
            "lint, fmt, check, test, bench, doc, info, types, coverage, outdated",
        ),
        short: "crAL",
        check: Some(data::some_operand),
        ..NPM
    },
    // Runners inside an environment: what they run is judged.
    Guard {
        programs: "uv run, poetry run, pdm run, pipenv run, hatch run, rye run, bundle exec, conda run, opam exec, \
                   rbenv exec, pyenv exec, direnv exec, stack exec, cabal exec, uv tool",
        why: "it runs the program that its arguments name; a prefix rule has to name it",
        covers: Covers::Wrapped,
        ..BASE
    },
    Guard {
        programs: "pip",
        why: "it installs from elsewhere, runs another python or writes elsewhere by it",
        covers: Covers::Subcommands(
            "install, uninstall, list, show, freeze, check, download, wheel, index, hash, inspect, \
             help",
        ),
        long: PIP_LONG,
        short: "ift",
        with_value: "rc",
        check: Some(packages::install),
        ..BASE
    },
    Guard {
        programs: "pip config, pip debug, pip cache, pip search, uv publish, uv self, uv auth, uv python, uv init, \
                   poetry config, poetry self, poetry source, poetry publish, poetry init, poetry new, poetry \
                   cache, poetry shell, pdm config, pdm self, pdm plugin, pdm publish, pdm use, pipenv shell, \
                   pipenv open, pipenv scripts, pipx inject, pipx runpip, pipx install, pipx environment, conda \
                   init, conda config, conda shell, gem cert, gem push, gem signin, gem server, gem open, gem \
                   exec, bundle config, bundle open, bundle console, bundle plugin, bundle viz, bundle gem, \
                   composer config, composer exec, composer run-script, composer run, composer global, \
                   composer browse, composer create-project, composer self-update, composer init, composer \
                   home, stack ghci, stack runghc, stack script, stack eval, stack hoogle, cabal run, cabal \
                   repl, cabal install, mix run, mix eval, mix cmd, mix do, mix archive, mix archive.install, \
                   mix escript.install, mix local.hex, mix local.rebar, mix new, dotnet exec, dotnet tool, \
                   dotnet script, dotnet nuget, dotnet fsi, dotnet new, dotnet msbuild, dotnet watch, \
                   dotnet sln, dotnet dev-certs, swift run, swift repl, swift script, dart pub, flutter \
                   config, flutter pub, brew edit, brew tap, brew services, brew sh, brew irb, brew ruby, apt \
                   edit-sources, apt-get source",
        why: "it runs, publishes or configures what its arguments name",
        ..CLOSED
    },
    Guard {
        programs: "uv, poetry, pdm, pipenv, pipx, hatch, rye",
        why: "it installs from elsewhere, runs another python or writes elsewhere by it",
        covers: Covers::Subcommands(
            "sync, lock, tree, add, remove, export, build, venv, version, install, update, show, \
             check, list, uninstall, upgrade, outdated, pip, fmt, lint, test, graph, requirements",
        ),
        long: PIP_LONG,
        short: "iftpCP",
        with_value: "rGE",
        check: Some(packages::install),
        ..BASE
    },
    Guard {
        programs: "bundle, gem, composer, mix, rebar3, stack, cabal, opam, cpan, cpanm, luarocks, conan, vcpkg, pod, \
                   carthage, swift, dart, flutter, zig, nimble, shards, dub, raco",
        why: "it installs from elsewhere, runs code or writes elsewhere by it",
        covers: Covers::Subcommands(
            "install, update, check, list, outdated, show, info, test, compile, build, format, fmt, \
             validate, analyze, deps, deps.get, deps.tree, dump-autoload, dumpautoload, audit, \
             credo, dialyzer, clean, licenses, why, package, search, lock, ecto.migrate, freeze",
        ),
        long: "source, gemfile, path, install-dir, bindir, plugin, trust-policy, working-dir, \
               repository, repository-url, stack-yaml, with-compiler, with-ghc, with-gcc, \
               project-file, system-ghc, extra-prog-path, package-path, zig-lib-dir, build-runner, \
               toolchain, config, require, eval, plugins, prefix, root",
        short: "diergwn",
        check: Some(packages::install),
        ..OTHER
    },
    Guard {
        programs: "dotnet",
        why: "properties, loggers and settings name programs or code",
        covers: Covers::Subcommands(
            "build, test, restore, clean, format, publish, pack, list, run, help, store",
        ),
        long: "property, logger, settings, source, configfile, test-adapter-path, collect, diag, \
               tool-path, additionalprobingpath, additional-deps, fx-version, launch-profile, \
               packages, artifacts-path, output, distributedlogger, binaryLogger",
        short: "psdlo",
        with_value: "cfvr",
        check: Some(packages::msbuild),
        operands_after_dashes: true,
        ..BASE
    },
    Guard {
        programs: "apt, apt-get, apt-cache, brew, apk, dnf, yum, zypper, pacman, nix, nix-env, guix, choco, winget, \
                   conda, mamba, micromamba, port, emerge, xbps-install",
        why: "its subcommands change the machine or run hooks; a prefix rule has to name one",
        covers: Covers::Subcommands(
            "list, search, show, info, policy, depends, rdepends, outdated",
        ),
        long: "option, config-file, config, file, root, installroot, setopt, repofrompath, installdb, \
               target, expr, impure, builders, hookdir, dbpath, gpgdir, prefix, command, run, \
               build-from-source, debug-config",
        short: "oceE",
        check: Some(packages::install),
        ..OTHER
    },
];
