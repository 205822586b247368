//! Objects of a repository that a command replaces: git would believe their names.

use serde_json::{Value, json};

use crate::sandbox_run::{said, tiers};
use crate::support::cli::{Cli, Output};
use crate::support::workspace::{GIT_ENV, Workspace};

/// Runs scripts in a repository and expects this exit status.
fn run(workspace: &Workspace, (tier, git): (&str, &str), scripts: &[&str], code: i32) -> Output {
    let set: serde_json::Map<String, Value> = GIT_ENV
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let task = json!({
        "version": 1,
        "prompt": "x",
        "settings": {"model": "scripted/model.yaml"},
        "permissions": {"mode": "bypass"},
        "workspace": {"path": workspace.path()},
        "env": {"set": set},
        "sandbox": {"mode": "require", "tier": tier, "git": git},
    });
    let mut replies: Vec<Value> = Vec::new();
    for (number, script) in scripts.iter().enumerate() {
        let file = format!("step{number}.sh");
        workspace.write(&file, script);
        let arguments = json!({ "command": format!("bash {file}") });
        replies.push(json!({"calls": [{"name": "bash", "arguments": arguments}]}));
    }
    replies.push(json!({"text": "done"}));
    Cli::new()
        .file("task.yaml", task.to_string())
        .file("model.yaml", Value::from(replies).to_string())
        .args(["run", "task.yaml", "--allow-bypass", "--run-dir", "out"])
        .expect_code(code)
        .run()
}

fn repository() -> Workspace {
    Workspace::git(&[
        ("a.txt", "a\n"),
        ("b.txt", "b\n"),
        (".gitignore", "step*.sh\n"),
    ])
}

/// Where commands can write objects: everywhere but where these are mounted read-only.
fn open_ways() -> Vec<(&'static str, &'static str)> {
    let ways = tiers()
        .into_iter()
        .flat_map(|tier| [(tier, "read_only"), (tier, "writable")]);
    ways.filter(|way| *way != ("namespaces", "read_only"))
        .collect()
}

/// `$A` and `$B` are the files of two objects.
const OBJECTS: &str =
    "file() { local id=$(git rev-parse HEAD:$1); echo .git/objects/${id:0:2}/${id:2}; }
A=$(file a.txt) B=$(file b.txt)\n";

#[test]
fn an_object_with_another_content_breaks_the_run() {
    for way in open_ways() {
        for replace in [
            "chmod u+w $A; cat $B > $A",
            "rm -f $A; cp $B $A",
            "rm -f $A; ln -s ../../../x $A",
        ] {
            let workspace = repository();
            let done = run(
                &workspace,
                way,
                &[&format!("{OBJECTS}{replace}; echo end")],
                74,
            );
            let told = said(&done);
            assert!(
                told.contains("it does not hold what its name says"),
                "{way:?} {replace}: {told}"
            );
        }
    }
}

#[test]
fn a_pack_with_another_content_breaks_the_run() {
    for way in open_ways() {
        for kind in ["pack", "idx"] {
            let workspace = repository();
            workspace.run_git(&["gc", "-q"]);
            let script = format!(
                "f=$(ls .git/objects/pack/*.{kind}); chmod u+w $f; printf X | dd of=$f bs=1 seek=40 conv=notrunc status=none; echo end"
            );
            let done = run(&workspace, way, &[&script], 74);
            assert!(
                said(&done).contains("it does not hold what its name says"),
                "{way:?} {kind}"
            );
        }
    }
}

/// Git makes the objects that it meets again look new.
#[test]
fn objects_that_are_only_touched_are_left_alone() {
    for way in open_ways() {
        for packed in [false, true] {
            let workspace = repository();
            if packed {
                workspace.run_git(&["gc", "-q"]);
            }
            let touch = "git hash-object -w a.txt b.txt; touch .git/objects/pack/*; chmod -R u+w .git/objects; echo end";
            let done = run(&workspace, way, &[touch, "echo again"], 0);
            assert!(said(&done).contains("again"), "{way:?}");
            workspace.run_git(&["fsck"]);
        }
    }
}

#[test]
fn new_objects_stay_only_where_commands_may_commit() {
    for way in open_ways() {
        let workspace = repository();
        let make = "echo new > new.txt; git hash-object -w new.txt; echo end";
        let done = run(&workspace, way, &[make, "echo again"], 0);
        let id = "3e757656cf36eca53338e520d134963a44f793f8";
        let there = said(&done).contains(id)
            && workspace.exists(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
        assert_eq!(there, way.1 == "writable", "{way:?}: {}", said(&done));
        workspace.run_git(&["fsck"]);
    }
}

/// What is to come from elsewhere later would not be fetched.
#[test]
fn an_object_under_a_foreign_name_is_removed() {
    let name = "12/34567890123456789012345678901234567890";
    for way in open_ways() {
        let workspace = repository();
        let script =
            format!("{OBJECTS}mkdir -p .git/objects/12; cp $A .git/objects/{name}; echo end");
        let done = run(&workspace, way, &[&script], 0);
        assert!(said(&done).contains("end"), "{way:?}");
        assert!(
            !workspace.exists(&format!(".git/objects/{name}")),
            "{way:?}: {}",
            said(&done)
        );
    }
}

#[test]
fn an_object_that_is_gone_breaks_a_run_that_may_not_commit() {
    for way in open_ways().into_iter().filter(|way| way.1 == "read_only") {
        let workspace = repository();
        let done = run(&workspace, way, &[&format!("{OBJECTS}rm -f $A")], 74);
        assert!(
            said(&done).contains("this object of the repository is gone"),
            "{}",
            said(&done)
        );
    }
}
