//! The sample task files: the good ones load, the bad ones give exactly the report beside them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent::task::{Overrides, load};

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/tasks")
        .join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn overrides(file: &Path) -> Overrides {
    let env = [("TRACKER_TOKEN_FOR_CI", "tracker-token-value")];
    Overrides {
        cwd: file.parent().unwrap().to_owned(),
        env: env
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        ..Overrides::default()
    }
}

#[test]
fn good_tasks_load() {
    for file in fixtures("good") {
        let name = Path::new(file.file_name().unwrap());
        if let Err(problems) = load(name, &overrides(&file)) {
            panic!("{}", problems.render(false));
        }
    }
}

#[test]
fn bad_tasks_give_the_report_beside_them() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../fixtures/tasks/bad");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for file in fixtures("bad") {
            let name = Path::new(file.file_name().unwrap());
            let problems = load(name, &overrides(&file)).err().unwrap();
            let here = file.parent().unwrap().display().to_string();
            let report = problems.render(false).replace(&here, "DIR");
            let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
            insta::assert_snapshot!(stem, report);
        }
    });
}
