//! Project files: where they are found, what is cut, what is refused.

use std::path::Path;

use agent::context::{RepoConfig, Resources, Sources};

use crate::context_scene::{ALL, Scene, warnings};

/// Paths, relative to the scene, and contents.
fn files(scene: &Scene, resources: &Resources) -> Vec<(String, String)> {
    let base = format!(
        "{}/",
        scene.path("").display().to_string().trim_end_matches('/')
    );
    let file =
        |file: &agent::context::ProjectFile| (file.path.replace(&base, ""), file.content.clone());
    resources.project.iter().map(file).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let pair = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    expected.iter().map(pair).collect()
}

#[test]
fn from_the_user_down_to_the_workspace() {
    let scene = Scene::new()
        .file("agent/AGENTS.md", "user\n")
        .file("outside/AGENTS.md", "unseen")
        .file("AGENTS.md", "above the repository")
        .file("repo/AGENTS.md", "\u{feff}root\r\n")
        .file("repo/CLAUDE.md", "not read beside the other")
        .file("repo/a/CLAUDE.md", "a\n")
        .file("repo/a/b/AGENTS.md", "  \n")
        .file("repo/a/b/CLAUDE.md", "an empty file counts as the file")
        .file("repo/a/b/c/AGENTS.md", "c \u{1f600}\n")
        .file("repo/a/b/c/d/AGENTS.md", "below the workspace");
    let loaded = scene.load_in("repo/a/b/c", &ALL);
    assert_eq!(
        files(&scene, &loaded),
        pairs(&[
            ("agent/AGENTS.md", "user\n"),
            ("repo/AGENTS.md", "root\n"),
            ("repo/a/CLAUDE.md", "a\n"),
            ("AGENTS.md", "c \u{1f600}\n"),
        ])
    );
    assert_eq!(warnings(&scene, &loaded), [""; 0]);

    // Nothing of the repository speaks unless it may.
    for kinds in [&[][..], &[RepoConfig::Skills, RepoConfig::Templates]] {
        let loaded = scene.load_in("repo/a/b/c", kinds);
        assert_eq!(
            files(&scene, &loaded),
            pairs(&[("agent/AGENTS.md", "user\n")])
        );
    }
}

#[test]
fn a_worktree_has_a_root_and_a_plain_directory_is_its_own() {
    let scene = Scene::new()
        .file("tree/.git", "gitdir: elsewhere\n")
        .file("tree/AGENTS.md", "tree")
        .file("tree/a/AGENTS.md", "a")
        .file("plain/AGENTS.md", "plain")
        .file("plain/a/AGENTS.md", "inner");
    let load = |directory| files(&scene, &scene.load_in(directory, &ALL));
    assert_eq!(
        load("tree/a"),
        pairs(&[("tree/AGENTS.md", "tree"), ("AGENTS.md", "a")])
    );
    assert_eq!(load("plain/a"), pairs(&[("AGENTS.md", "inner")]));
}

#[test]
fn the_most_general_is_cut_first() {
    let line = "0123456789abcde\n";
    let text = |bytes: usize| line.repeat(bytes / line.len());
    let scene = Scene::new()
        .file("agent/AGENTS.md", text(1_024))
        .file("repo/AGENTS.md", text(20 * 1_024))
        .file("repo/a/AGENTS.md", text(16 * 1_024));
    let loaded = scene.load_in("repo/a", &ALL);
    let contents: Vec<&str> = loaded
        .project
        .iter()
        .map(|file| file.content.as_str())
        .collect();
    assert_eq!(
        contents[0],
        "[Left out for lack of room: 0 of 1024 bytes are shown.]"
    );
    assert_eq!(
        contents[1],
        format!(
            "{}\n[The first 16384 of 20480 bytes are shown.]",
            text(16 * 1_024)
        )
    );
    assert_eq!(contents[2], text(16 * 1_024));
    assert_eq!(
        warnings(&scene, &loaded),
        [
            "project_file_cut: agent/AGENTS.md: 0 of 1024 bytes are in the system prompt; all \
             project files together may have 32 KiB",
            "project_file_cut: repo/AGENTS.md: 16384 of 20480 bytes are in the system prompt; all \
             project files together may have 32 KiB",
        ]
    );

    // Alone it gets all the room there is, and ends with a whole character.
    let scene = Scene::new().file("repo/AGENTS.md", "é".repeat(40_000));
    let loaded = scene.load();
    let content = &loaded.project[0].content;
    assert!(content.starts_with("éé"), "{content:.20}");
    assert!(
        content
            .ends_with("\n[The first 32768 of 80000 bytes are shown; read the file for the rest.]")
    );
    assert!(!content.contains('\u{fffd}'));

    let whole = "x".repeat(32 * 1_024);
    let scene = Scene::new().file("repo/AGENTS.md", &whole);
    assert_eq!(scene.load().project[0].content, whole);
}

#[test]
fn links_stay_inside_and_lead_to_markdown() {
    let scene = Scene::new()
        .file("outside/secret.md", "secret")
        .file("repo/.git/config.md", "token")
        .file("repo/.env", "KEY=secret")
        .file("repo/docs/agents.md", "docs\n")
        .link("repo/AGENTS.md", "docs/agents.md")
        .link("repo/a/AGENTS.md", "../../outside/secret.md")
        .link("repo/a/b/AGENTS.md", "../../.env")
        .link("repo/a/b/c/AGENTS.md", "../../../.git/config.md")
        .link("repo/a/b/c/d/AGENTS.md", "nowhere.md")
        .link("repo/a/b/c/d/e/AGENTS.md", "AGENTS.md")
        .link("agent/AGENTS.md", "../outside/secret.md");
    let loaded = scene.load_in("repo/a/b/c/d/e", &ALL);
    assert_eq!(
        files(&scene, &loaded),
        pairs(&[
            // The user's links lead where the user wants.
            ("agent/AGENTS.md", "secret"),
            ("repo/AGENTS.md", "docs\n"),
        ])
    );
    let told = warnings(&scene, &loaded);
    assert_eq!(
        told[..4],
        [
            "project_file_skipped: repo/a/AGENTS.md leads outside the repository; it is left out",
            "project_file_skipped: repo/a/b/AGENTS.md leads to a file that is no Markdown; it is \
             left out",
            "project_file_skipped: repo/a/b/c/AGENTS.md leads into the repository's own files; it \
             is left out",
            "project_file_skipped: repo/a/b/c/d/AGENTS.md is a link to something that does not \
             exist; it is left out",
        ]
    );
    assert!(
        told[4].starts_with("project_file_skipped: AGENTS.md cannot be read:"),
        "{told:?}"
    );
    assert_eq!(told.len(), 5);
}

/// A pipe that nobody writes to must not be waited for.
#[test]
fn what_is_no_regular_file_is_refused() {
    let scene = Scene::new()
        .file("repo/a/b/CLAUDE.md", "not in place of a bad one")
        .file("repo/bad/AGENTS.md", b"caf\xe9 \xff\n");
    std::fs::create_dir(scene.path("repo/AGENTS.md")).unwrap();
    let fifo = scene.path("repo/a/AGENTS.md");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(scene.path("repo/a/b/AGENTS.md")).unwrap();
    let loaded = scene.load_in("repo/a/b", &ALL);
    assert_eq!(files(&scene, &loaded), []);
    assert_eq!(
        warnings(&scene, &loaded),
        [
            "project_file_skipped: repo/AGENTS.md is no regular file; it is left out",
            "project_file_skipped: repo/a/AGENTS.md is no regular file; it is left out",
            "project_file_skipped: AGENTS.md is no regular file; it is left out",
        ]
    );

    let loaded = scene.load_in("repo/bad", &ALL);
    assert_eq!(loaded.project[0].content, "caf\u{fffd} \u{fffd}\n");
}

#[test]
fn the_permissions_of_the_task_hold_and_a_copy_has_its_own_paths() {
    let scene = Scene::new()
        .file("repo/AGENTS.md", "root")
        .file("repo/a/AGENTS.md", "a")
        .skill("repo/a/.agent/skills/s", "Do it.");
    let (directory, workspace) = (scene.path("repo/a"), scene.path("copy"));
    let load = |permit: &dyn Fn(&Path) -> bool| {
        Resources::load(&Sources {
            agent_dir: None,
            directory: &directory,
            workspace: &workspace,
            repository: &ALL,
            permit,
        })
    };
    let denied = workspace.join("AGENTS.md");
    let loaded = load(&|path| path != denied);
    assert_eq!(files(&scene, &loaded), pairs(&[("repo/AGENTS.md", "root")]));
    assert_eq!(
        warnings(&scene, &loaded),
        [
            "project_file_skipped: AGENTS.md may not be read under the permissions of the task; it \
             is left out"
        ]
    );
    assert_eq!(loaded.skills[0].location, ".agent/skills/s/SKILL.md");
    assert_eq!(
        loaded.skills[0].directory,
        workspace.join(".agent/skills/s")
    );
}
