//! Skills and templates: where they are found and what is refused.

use crate::context_scene::{ALL, Scene, warnings};
use agent::context::{RepoConfig, Resources};

fn skills(resources: &Resources) -> Vec<(&str, &str)> {
    let skills = resources.skills.iter();
    skills
        .map(|skill| (skill.name.as_str(), skill.body.as_str()))
        .collect()
}

fn templates(resources: &Resources) -> Vec<(&str, &str)> {
    let templates = resources.templates.iter();
    templates
        .map(|template| (template.name.as_str(), template.body.as_str()))
        .collect()
}

#[test]
fn skills_are_found_in_their_places() {
    let scene = Scene::new()
        .skill("agent/skills/user", "U")
        .skill("agent/skills/both", "the user's")
        .skill("repo/.agent/skills/ours", "O")
        .skill("repo/.agents/skills/shared", "S")
        .skill("repo/.claude/skills/other", "C")
        .skill("repo/a/.agent/skills/near", "N")
        .skill("repo/a/.agent/skills/twice", "the nearer")
        .skill("repo/.agent/skills/twice", "the farther")
        .skill("repo/.agent/skills/both", "the repository's")
        .skill("repo/.agent/skills/group/inner", "too deep")
        .link("repo/.claude/skills/shared", "../../.agents/skills/shared")
        .file("repo/.agent/skills/README.md", "no skill");
    let loaded = scene.load_in("repo/a", &ALL);
    assert_eq!(
        skills(&loaded),
        [
            ("both", "the user's"),
            ("near", "N"),
            ("other", "C"),
            ("ours", "O"),
            ("shared", "S"),
            ("twice", "the nearer"),
            ("user", "U"),
        ]
    );
    assert_eq!(
        warnings(&scene, &loaded),
        [
            "skill_skipped: repo/.agent/skills/both/SKILL.md has the name of \
             agent/skills/both/SKILL.md; it is left out",
            "skill_skipped: repo/.agent/skills/twice/SKILL.md has the name of \
             .agent/skills/twice/SKILL.md; it is left out",
        ]
    );
    let near = &loaded.skills[1];
    assert_eq!(near.description, "For near.");
    assert_eq!(near.location, ".agent/skills/near/SKILL.md");
    assert_eq!(near.directory, scene.path("repo/a/.agent/skills/near"));

    for kinds in [&[][..], &[RepoConfig::AgentsMd, RepoConfig::Templates]] {
        let names = [("both", "the user's"), ("user", "U")];
        assert_eq!(skills(&scene.load_in("repo/a", kinds)), names);
    }
}

#[test]
fn what_is_no_skill_is_said_to_be_none() {
    let header = |name: &str, description: &str| {
        format!("---\nname: {name}\ndescription: {description}\n---\nx\n")
    };
    let cases = [
        (
            "a",
            "just text".to_owned(),
            "does not begin with front matter",
        ),
        (
            "a",
            "---\nname: a\n".to_owned(),
            "does not begin with front matter",
        ),
        (
            "a",
            "---\nname: a\n---\nx".to_owned(),
            "has bad front matter",
        ),
        (
            "a",
            "---\nname: [a\n---\nx".to_owned(),
            "has bad front matter",
        ),
        (
            "a",
            header("b", "x"),
            "is named `b` in its front matter, but its directory is `a`",
        ),
        ("A", header("A", "x"), "has a bad name"),
        ("a--b", header("a--b", "x"), "has a bad name"),
        ("-a", header("-a", "x"), "has a bad name"),
        ("a", header("a", "''"), "has a description of 0 characters"),
        (
            "a",
            header("a", &"x".repeat(1_025)),
            "has a description of 1025 characters",
        ),
        (
            "a",
            header("a", "x") + &"y".repeat(65 * 1_024),
            "is larger than 64 KiB",
        ),
    ];
    for (name, text, expected) in cases {
        let scene = Scene::new().file(&format!("repo/.agent/skills/{name}/SKILL.md"), &text);
        let loaded = scene.load();
        assert_eq!(skills(&loaded), [], "{name}: {text:.80}");
        let told = warnings(&scene, &loaded);
        let place = format!("skill_skipped: .agent/skills/{name}/SKILL.md {expected}");
        assert!(told.len() == 1 && told[0].starts_with(&place), "{told:?}");
    }
}

#[test]
fn front_matter_of_other_tools_is_fine() {
    let text = "---\r\nname: pdf\r\ndescription: >-\r\n  Reads PDF files.\r\n  Use it for PDFs.\r\n\
                license: MIT\r\nallowed-tools: Bash(x)\r\nmetadata:\r\n  author: me\r\n\
                disable-model-invocation: true\r\n---\r\n\r\n# PDF\r\n\r\n---\r\nend\r\n";
    let scene = Scene::new().file("repo/.claude/skills/pdf/SKILL.md", text);
    let loaded = scene.load();
    assert_eq!(warnings(&scene, &loaded), [""; 0]);
    assert_eq!(skills(&loaded), [("pdf", "# PDF\n\n---\nend")]);
    assert_eq!(
        loaded.skills[0].description,
        "Reads PDF files. Use it for PDFs."
    );
    assert!(!loaded.skills[0].listed);
}

#[test]
fn skills_and_templates_lead_nowhere_else() {
    let scene = Scene::new()
        .skill("outside/skills/evil", "E")
        .skill("repo/docs/skills/inside", "I")
        .file("outside/templates/evil.md", "E")
        .link("repo/.agent/skills", "../../outside/skills")
        .link("repo/.agents/skills/evil", "../../../outside/skills/evil")
        .link("repo/.claude/skills", "../docs/skills")
        .link("repo/.agent/templates", "../../outside/templates");
    let loaded = scene.load();
    assert_eq!(skills(&loaded), [("inside", "I")]);
    assert_eq!(templates(&loaded), []);
    assert_eq!(
        warnings(&scene, &loaded),
        [
            "skill_skipped: .agent/skills leads outside the repository; it is left out",
            "skill_skipped: .agents/skills/evil/SKILL.md leads outside the repository; it is left \
             out",
            "template_skipped: .agent/templates leads outside the repository; it is left out",
        ]
    );
}

#[test]
fn numbers_are_bounded() {
    let mut scene = Scene::new();
    for number in 0..70 {
        scene = scene.skill(&format!("repo/.agent/skills/s{number:02}"), "x");
    }
    for number in 0..130 {
        scene = scene.file(&format!("repo/.agent/templates/t{number:03}.md"), "x");
    }
    let loaded = scene.load();
    assert_eq!(loaded.skills.len(), 64);
    assert_eq!(loaded.skills[63].name, "s63");
    assert_eq!(loaded.templates.len(), 128);
    let told = warnings(&scene, &loaded);
    assert_eq!(told.len(), 6 + 2);
    assert_eq!(
        told[0],
        "skill_skipped: .agent/skills/s64/SKILL.md is beyond the limit of 64 skills; it is left out"
    );
    assert!(
        told[7].contains("t129.md is beyond the limit of 128 templates"),
        "{told:?}"
    );
}

#[test]
fn the_list_of_skills_is_bounded() {
    let description = "\u{1f600}".repeat(1_024);
    let mut scene = Scene::new();
    for number in 0..9 {
        let text = format!("---\nname: s{number}\ndescription: {description}\n---\nx\n");
        scene = scene.file(&format!("repo/.agent/skills/s{number}/SKILL.md"), text);
    }
    let scene = scene.skill("repo/.agent/skills/t", "x");
    let loaded = scene.load();
    let names: Vec<&str> = loaded
        .skills
        .iter()
        .map(|skill| skill.name.as_str())
        .collect();
    assert_eq!(names, ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "t"]);
    let told = warnings(&scene, &loaded);
    assert_eq!(told.len(), 2);
    assert!(told[1].contains("s8/SKILL.md is beyond the limit of 32 KiB of descriptions"));
}

#[test]
fn templates_are_files_with_a_name() {
    let scene = Scene::new()
        .file(
            "agent/templates/review.md",
            "---\ndescription: Reviews.\n---\nReview $1.\n",
        )
        .file("repo/.agent/templates/review.md", "not this one")
        .file(
            "repo/.agent/templates/Fix_it-2.md",
            "---\n---\nFix $ARGUMENTS",
        )
        .file("repo/.agent/templates/notes.txt", "no Markdown")
        .file("repo/.agent/templates/empty.md", " \n")
        .file(
            "repo/.agent/templates/bad.md",
            "---\ndescription: [x\n---\ny",
        )
        .file("repo/.agent/templates/bad name.md", "x")
        .file("repo/a/.agent/templates/near.md", "unseen from the root");
    let loaded = scene.load();
    assert_eq!(
        templates(&loaded),
        [("Fix_it-2", "Fix $ARGUMENTS"), ("review", "Review $1.")]
    );
    assert_eq!(loaded.templates[1].description.as_deref(), Some("Reviews."));
    let told = warnings(&scene, &loaded);
    let starts = [
        "template_skipped: .agent/templates/bad name.md has a bad name",
        "template_skipped: .agent/templates/bad.md has bad front matter",
        "template_skipped: .agent/templates/empty.md is empty",
        "template_skipped: .agent/templates/review.md has the name of ",
    ];
    assert_eq!(told.len(), starts.len(), "{told:?}");
    for (told, start) in told.iter().zip(starts) {
        assert!(told.starts_with(start), "{told}");
    }
}
