//! `/name arguments`: what a prompt stands for.

use agent::context::{PromptText, Resources, Skill, Template};

fn template(name: &str, body: &str) -> Template {
    Template {
        name: name.to_owned(),
        description: None,
        location: format!(".agent/templates/{name}.md"),
        body: body.to_owned(),
    }
}

fn resources() -> Resources {
    let bodies = [
        ("one", "First: $1, third: $3."),
        ("all", "[$@] [$ARGUMENTS]"),
        ("none", "Do the usual."),
        ("money", "It costs $$1, not $12 or $ARGUMENTS_X or $x or $."),
        ("twice", "$1 $1"),
    ];
    Resources {
        templates: bodies.map(|(name, body)| template(name, body)).into(),
        skills: vec![Skill {
            name: "fix-lint".to_owned(),
            description: "Fixes lints.".to_owned(),
            location: ".agent/skills/fix-lint/SKILL.md".to_owned(),
            directory: "/srv/project/.agent/skills/fix-lint".into(),
            body: "Run $1 and /one.".to_owned(),
            listed: true,
        }],
        ..Resources::default()
    }
}

fn expand(text: &str) -> String {
    let expansion = resources().expand(PromptText::trusted(text));
    assert_eq!(expansion.warning, None, "{text}");
    expansion.text
}

#[test]
fn arguments_take_their_places() {
    let cases = [
        ("/one a b c d", "First: a, third: c."),
        ("/one a", "First: a, third: ."),
        ("/one", "First: , third: ."),
        ("/one\ta\nb\nc", "First: a, third: c."),
        (r#"/one "a b" c 'd  e'"#, "First: a b, third: d  e."),
        (r#"/one a"b c"d x y\ z"#, "First: ab cd, third: y z."),
        (
            r#"/one "a \"b\" \\c" "" '\n'"#,
            r#"First: a "b" \c, third: \n."#,
        ),
        ("/one don't b won't", "First: don't, third: won't."),
        ("/one 5\" b c", "First: 5\", third: c."),
        ("/one C:\\dir b c", "First: C:\\dir, third: c."),
        ("/all  a  'b c' ", "[a b c] [a  'b c']"),
        ("/all", "[] []"),
        ("/all line\n\nbreaks", "[line breaks] [line\n\nbreaks]"),
        ("/none", "Do the usual."),
        ("/none a 'b'", "Do the usual.\n\na 'b'"),
        ("/money", "It costs $1, not 2 or $ARGUMENTS_X or $x or $."),
    ];
    for (text, expected) in cases {
        assert_eq!(expand(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_template_stays() {
    for text in [
        "/unknown a b",
        "/usr/bin/env is missing",
        "/",
        "/ one",
        " /one a",
        "Say /one a",
        "/one: a",
        "//one",
        "/skill: x",
        "",
    ] {
        assert_eq!(expand(text), text);
    }
}

#[test]
fn nothing_is_expanded_twice() {
    assert_eq!(expand("/twice $2"), "$2 $2");
    assert_eq!(expand("/twice '/one a'"), "/one a /one a");
    assert_eq!(expand("/twice $ARGUMENTS"), "$ARGUMENTS $ARGUMENTS");
}

#[test]
fn a_skill_is_given_with_its_place() {
    assert_eq!(
        expand("/skill:fix-lint  src $1 'x'"),
        "<skill name=\"fix-lint\" location=\".agent/skills/fix-lint/SKILL.md\">\n\
         Relative paths in this skill start at .agent/skills/fix-lint.\n\n\
         Run $1 and /one.\n\
         </skill>\n\nsrc $1 'x'"
    );
    assert!(expand("/skill:fix-lint").ends_with("Run $1 and /one.\n</skill>"));
}

#[test]
fn a_skill_that_there_is_not_is_told_of() {
    let unknown = |resources: &Resources| {
        let expansion = resources.expand(PromptText::trusted("/skill:fix-lnt x"));
        assert_eq!(expansion.text, "/skill:fix-lnt x");
        let warning = expansion.warning.expect("a warning");
        (warning.code, warning.message)
    };
    assert_eq!(
        unknown(&resources()),
        (
            "unknown_skill".to_owned(),
            "`/skill:fix-lnt` stays as text: the skills are fix-lint".to_owned()
        )
    );
    assert!(
        unknown(&Resources::default())
            .1
            .ends_with("there are no skills")
    );
}

/// Text from elsewhere in its fence is one word or a part of one, as it is,
/// and it can neither name a template nor end one's quotes.
#[test]
fn data_is_passed_on_whole() {
    const DATA: &str = "<d>\n\"it's\" $1 \\' /one</d>";
    let with = |before: &str, behind: &str| {
        let text = format!("{before}{DATA}{behind}");
        let data = before.len()..before.len() + DATA.len();
        let ranges = [data];
        let prompt = PromptText {
            text: &text,
            data: &ranges,
        };
        resources().expand(prompt).text
    };
    assert_eq!(with("/twice ", " x"), format!("{DATA} {DATA}"));
    assert_eq!(with("/one x ", " y"), "First: x, third: y.");
    assert_eq!(with("/one a \"b ", "\" c"), "First: a, third: c.");
    assert_eq!(with("/twice a-", "-b"), format!("a-{DATA}-b a-{DATA}-b"));
    assert_eq!(with("/all ", ""), format!("[{DATA}] [{DATA}]"));
    assert_eq!(with("/one", ""), format!("/one{DATA}"));

    let command = "/one a";
    let all = 0..command.len();
    let ranges = [all];
    let prompt = PromptText {
        text: command,
        data: &ranges,
    };
    assert_eq!(resources().expand(prompt).text, command);
}
