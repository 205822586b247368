//! Which commands a denial of writing refuses, and which only look at a file.

use crate::policy_bash::check;

const DENY: &[&str] = &["Edit(tests/**)", "Edit(test.sh)"];

#[test]
fn runners_may_be_given_what_must_not_be_edited() {
    check(
        &[
            "Bash(pytest:*)",
            "Bash(python3 -m unittest:*)",
            "Bash(python3.12 -m pytest:*)",
            "Bash(cargo:*)",
            "Bash(go:*)",
            "Bash(npm test:*)",
            "Bash(make:*)",
            "Bash(gcc:*)",
            "Bash(bash run.sh:*)",
            "Bash(python3 tools/run.py:*)",
        ],
        DENY,
        &[
            "pytest tests",
            "pytest tests/x.py",
            "pytest -q tests/x.py::test_a",
            "pytest -n4 --tb=short tests/x.py",
            "pytest -k name tests/x.py",
            "pytest --ignore=tests/slow tests/x.py",
            "python3 -m unittest -v tests/x.py",
            "python3.12 -m pytest tests/x.py",
            "cargo test --test tests",
            "cargo test --manifest-path tests/Cargo.toml",
            "cargo test -- --nocapture tests/x.rs",
            "go test ./tests/...",
            "go vet tests/x.go",
            "npm test tests/x.js",
            "npm test -- tests/x.js",
            "make tests",
            "gcc -Wall -Itests tests/x.c -o x",
            "bash run.sh tests/x",
            "python3 tools/run.py --verbose tests/x",
        ],
        &[],
    );
}

#[test]
fn what_runners_write_is_still_written() {
    check(
        &[
            "Bash(pytest:*)",
            "Bash(cargo:*)",
            "Bash(go:*)",
            "Bash(npm test:*)",
            "Bash(npm run:*)",
            "Bash(make:*)",
            "Bash(gcc:*)",
            "Bash(bash run.sh:*)",
            "Bash(python3 -m black:*)",
            "Bash(./pytest:*)",
        ],
        DENY,
        &[],
        &[
            "pytest --junitxml=tests/x.xml",
            "pytest --junitxml tests/x.xml",
            "pytest --junitx=tests/x.xml a",
            "pytest --snapshot-update tests/x.py",
            "pytest tests/x.py --inline-snapshot=fix",
            "pytest @tests/arguments",
            "cargo build --target-dir tests/out",
            "cargo test -- --logfile tests/log",
            "cargo fmt -- tests/x.rs",
            "cargo clippy --fix tests/x.rs",
            "cargo run tests/x.rs",
            "go build -o tests/x",
            "go test -coverprofile=tests/c",
            "go vet -fix -v tests/x.go",
            "go fmt tests/x.go",
            "npm test -- -u tests/x.js",
            "npm test -- --outputFile tests/x.json",
            "npm run format tests/x.js",
            "make -C tests/x",
            "gcc x.c -o tests/x",
            "gcc x.c -otests/x",
            "gcc -MD -MF tests/x.d x.c",
            "bash run.sh --out tests/x",
            "python3 -m black tests/x.py",
            "./pytest tests/x.py",
        ],
    );
}

#[test]
fn programs_that_write_or_are_unknown_are_held_to_the_denial() {
    check(
        &[
            "Bash(cp:*)",
            "Bash(mv:*)",
            "Bash(rm:*)",
            "Bash(tee:*)",
            "Bash(touch:*)",
            "Bash(truncate:*)",
            "Bash(ln:*)",
            "Bash(chmod:*)",
            "Bash(git:*)",
            "Bash(mytool:*)",
            "Bash(cat:*)",
            "Bash(diff:*)",
        ],
        DENY,
        &[
            "cp a b",
            "cat tests/x",
            "diff test.sh a",
            "git diff tests/x",
        ],
        &[
            "cp a tests/x",
            "cp tests/x b",
            "mv tests/x b",
            "rm -r tests",
            "rm test.sh",
            "tee tests/x",
            "touch tests/x",
            "truncate -s 0 tests/x",
            "ln -s a tests/x",
            "chmod +x test.sh",
            "git checkout tests/x",
            "git restore ./tests/x",
            "git rm tests/x",
            "git mv tests/x a",
            "git apply --include=tests/x a",
            "mytool tests/x",
            "mytool --in=tests/x",
        ],
    );
}

#[test]
fn the_words_of_the_granting_rule_are_not_held_against_it() {
    check(
        &[
            "Bash(bash test.sh:*)",
            "Bash(mytool tests:*)",
            "Bash(./tests/run:*)",
            "Bash(checker tests/a * tests/b)",
        ],
        DENY,
        &[
            "bash test.sh",
            "bash test.sh quick",
            "mytool tests",
            "mytool tests --jobs 3",
            "./tests/run a",
        ],
        &[
            "bash test.sh --save test.sh",
            "mytool tests tests/x",
            "mytool tests --out=tests/x",
            "./tests/run tests/x",
            // Behind the first star a word may mean anything.
            "checker tests/a x tests/b",
        ],
    );
}

#[test]
fn denials_of_reading_hold_for_runners_too() {
    check(
        &[
            "Bash(pytest:*)",
            "Bash(bash test.sh:*)",
            "Bash(pytest secret/a:*)",
        ],
        &["Read(secret/**)", "Read(test.sh)"],
        &["pytest tests"],
        &[
            "pytest secret/x.py",
            "pytest secret/a",
            "bash test.sh",
            "pytest --tb=short secret/x",
        ],
    );
}
