//! Whatever a session says stays text on its page, and says it all.

use agent::export::session_html;
use agent::secret::Redactor;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::export_page::{Page, call, id, page_of, reply, result, session, text, user};

/// What people try.
const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style></title></pre></details><img src=x onerror=alert(1)>",
    "\"><svg/onload=alert(1)>",
    "' onmouseover='alert(1)",
    "<!-- --><iframe src=javascript:alert(1)>",
    "]]><![CDATA[<b>",
    "&lt;b&gt; &amp; &#60;b&#62;",
    "{{constructor.constructor('alert(1)')()}} ${1} `x`",
    "<meta http-equiv=refresh content=0>",
];

/// A field's name, and a session with some text in it.
type Field = (&'static str, Vec<Value>);

/// A session with `text` in one field, for each field there is.
fn fields(text: &str) -> Vec<Field> {
    let mut fields = in_messages(text);
    fields.extend(in_calls(text));
    fields.extend(in_results(text));
    fields.extend(in_entries(text));
    fields
}

fn in_messages(text: &str) -> Vec<Field> {
    let with = |field: &str| {
        let mut entry = reply(&[]);
        entry["message"][field] = text.into();
        vec![entry]
    };
    let image = json!({"type": "image", "mimeType": text, "data": "aGk="});
    let mut pictured = user("x");
    pictured["message"]["content"] = json!([image]);
    vec![
        ("prompt", vec![user(text)]),
        ("model", with("model")),
        ("provider", with("provider")),
        ("error", with("errorMessage")),
        ("image type", vec![pictured]),
    ]
}

fn in_calls(text: &str) -> Vec<Field> {
    let asked = |name: &str, arguments: Value| vec![reply(&[call("c", name, arguments)])];
    let edit = |path: &str, old: &str| json!({"path": path, "oldText": old, "newText": old});
    vec![
        ("tool", asked(text, json!({"a": 1}))),
        ("argument", asked("x", json!({"a": text}))),
        ("argument name", asked("x", json!({text: 1}))),
        ("command", asked("bash", json!({"command": text}))),
        ("path", asked("edit", edit(text, "a"))),
        ("edit", asked("edit", edit("a", text))),
    ]
}

fn in_results(text: &str) -> Vec<Field> {
    let answered = |name: &str, details: Value| {
        let mut answer = result("c", name, text);
        answer["message"]["details"] = details;
        vec![reply(&[call("c", name, json!({}))]), answer]
    };
    let diff = format!("-{text}\n+{text}");
    let mut failed = result("c", "read", text);
    failed["message"]["isError"] = true.into();
    let refused = vec![reply(&[call("c", "read", json!({}))]), failed.clone()];
    vec![
        ("output", answered("x", Value::Null)),
        ("details", answered("x", json!({"a": [text, {text: text}]}))),
        ("diff", answered("edit", json!({"diff": diff}))),
        ("failure", refused),
        ("lone result", vec![failed]),
    ]
}

fn in_entries(text: &str) -> Vec<Field> {
    let level = json!({"type": "thinking_level_change", "thinkingLevel": text});
    let model = json!({"type": "model_change", "provider": text, "modelId": text});
    let label = json!({"type": "label", "targetId": id(0), "label": text});
    let target = json!({"type": "label", "targetId": text, "label": "x"});
    let state = json!({"type": "custom", "customType": text, "data": text});
    let message =
        json!({"type": "custom_message", "customType": text, "content": text, "display": true});
    let kept =
        json!({"type": "compaction", "summary": "s", "firstKeptEntryId": text, "tokensBefore": 1});
    let ran = json!({"role": "bashExecution", "command": text, "output": text, "exitCode": 1,
        "truncated": true, "fullOutputPath": text, "timestamp": 1});
    let mut late = user("x");
    late["timestamp"] = text.into();
    vec![
        ("level", vec![level]),
        ("new model", vec![model]),
        ("label", vec![user("x"), label]),
        ("label's target", vec![target]),
        ("name", vec![json!({"type": "session_info", "name": text})]),
        ("custom", vec![state]),
        ("custom message", vec![message]),
        ("kept entry", vec![kept]),
        ("unknown", vec![json!({"type": text, "x": text})]),
        (
            "command of the user",
            vec![json!({"type": "message", "message": ran})],
        ),
        ("time", vec![late]),
        (
            "id",
            vec![json!({"type": "session_info", "name": "n", "id": text})],
        ),
    ]
}

#[test]
fn hostile_text_changes_no_tag_and_is_shown_as_it_is() {
    for hostile in HOSTILE {
        let harmless = "x".repeat(hostile.len());
        for ((field, attacked), (_, plain)) in fields(hostile).into_iter().zip(fields(&harmless)) {
            let attacked = page_of(&attacked);
            assert_eq!(
                attacked.shape(),
                page_of(&plain).shape(),
                "{field}: {hostile}"
            );
            let shown = attacked.texts_of("body").concat();
            // JSON escapes quotation marks once more.
            let as_json = serde_json::to_string(hostile).unwrap();
            let seen = shown.contains(hostile) || shown.contains(as_json.trim_matches('"'));
            assert!(seen || field == "id", "{field}: {hostile}\n{shown}");
        }
    }
}

/// The prose of a reply.
fn prose(markdown: &str) -> String {
    let page = page_of(&[reply(&[text(markdown)])]);
    let (_, rest) = page.html.split_once("<div class=\"prose\">\n").unwrap();
    let (prose, _) = rest.split_once("</div>\n<footer").unwrap();
    prose.trim_end().to_owned()
}

/// Markdown and what becomes of it; `LINK` stands for the beginning of a link.
const MARKDOWN: &[(&str, &str)] = &[
    (
        "a *b* **c** ~~d~~ `e<f>`",
        "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e&lt;f&gt;</code></p>",
    ),
    ("# One\n\n### Three", "<h4>One</h4>\n<h5>Three</h5>"),
    ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>"),
    (
        "<script>\nalert(1)\n</script>",
        "<p class=\"markup\">&lt;script&gt;\nalert(1)\n&lt;/script&gt;</p>",
    ),
    ("a  \nb\nc", "<p>a<br>\nb\nc</p>"),
    (
        "3. x\n4. y",
        "<ol start=\"3\">\n<li>x</li>\n<li>y</li>\n</ol>",
    ),
    (
        "- [x] a\n- [ ] b",
        "<ul>\n<li>☑ a</li>\n<li>☐ b</li>\n</ul>",
    ),
    (
        "```rust x\nfn f<T>() {}\n```",
        "<pre data-language=\"rust\" tabindex=\"0\"><code>fn f&lt;T&gt;() {}\n</code></pre>",
    ),
    (
        "```\"><script>\nx\n```",
        "<pre data-language=\"&quot;&gt;&lt;script&gt;\" tabindex=\"0\"><code>x\n</code></pre>",
    ),
    ("> q\n\n---", "<blockquote>\n<p>q</p>\n</blockquote>\n<hr>"),
    (
        "|a|b|\n|-:|:-:|\n|1|2|",
        "<div class=\"table\"><table>\n<thead><tr><th class=\"right\">a</th><th class=\"middle\">b</th></tr></thead>\n<tbody>\n<tr><td class=\"right\">1</td><td class=\"middle\">2</td></tr>\n</tbody></table></div>",
    ),
    (
        "[a](https://x.test/?q=\"1\")",
        "<p>LINK href=\"https://x.test/?q=&quot;1&quot;\" title=\"https://x.test/?q=&quot;1&quot;\">a</a></p>",
    ),
    (
        "<mailto:a@x.test>",
        "<p>LINK href=\"mailto:a@x.test\" title=\"mailto:a@x.test\">mailto:a@x.test</a></p>",
    ),
    (
        "[a](javascript:alert(1))",
        "<p><span class=\"elsewhere\">a ⟨javascript:alert(1)⟩</span></p>",
    ),
    (
        "[a](JaVaScRiPt&#58;alert(1))",
        "<p><span class=\"elsewhere\">a ⟨JaVaScRiPt:alert(1)⟩</span></p>",
    ),
    (
        "[a](<\tjavascript:alert(1)>)",
        "<p><span class=\"elsewhere\">a ⟨\tjavascript:alert(1)⟩</span></p>",
    ),
    (
        "[a](data:text/html,x)",
        "<p><span class=\"elsewhere\">a ⟨data:text/html,x⟩</span></p>",
    ),
    (
        "[a](//x.test)",
        "<p><span class=\"elsewhere\">a ⟨//x.test⟩</span></p>",
    ),
    (
        "[a](#e-00000000)",
        "<p><span class=\"elsewhere\">a ⟨#e-00000000⟩</span></p>",
    ),
    (
        "![alt](https://x.test/p.png)",
        "<p><span class=\"elsewhere\">image: alt ⟨https://x.test/p.png⟩</span></p>",
    ),
];

#[test]
fn markdown_is_shown_without_what_could_harm() {
    for (markdown, expect) in MARKDOWN {
        let expect = expect.replace("LINK", "<a rel=\"noopener noreferrer nofollow\"");
        assert_eq!(prose(markdown), expect, "{markdown:?}");
    }
}

#[test]
fn deep_markdown_makes_a_shallow_page() {
    for markdown in [
        ">".repeat(5_000) + " x",
        "- ".repeat(5_000) + "x",
        "*a ".repeat(5_000),
        "[".repeat(5_000),
    ] {
        let page = page_of(&[reply(&[text(&markdown)])]);
        let deepest = page.elements().map(|node| node.depth).max().unwrap();
        assert!(deepest < 60, "{deepest} for {}", &markdown[..10]);
    }
}

#[test]
fn what_hides_or_reorders_is_made_visible() {
    for (said, expect) in [
        ("a\u{202e}b", "a⟨U+202E⟩b"),
        ("a\u{0}b\u{1b}[31m\u{7f}", "a⟨U+0000⟩b⟨U+001B⟩[31m⟨U+007F⟩"),
        ("a\r\nb\rc", "a\nb⟨U+000D⟩c"),
        ("tab\there", "tab\there"),
        (
            "\u{e0041}\u{200b}\u{feff}\u{ffff}",
            "⟨U+E0041⟩⟨U+200B⟩⟨U+FEFF⟩⟨U+FFFF⟩",
        ),
        ("👩\u{200d}🚀 é ا", "👩\u{200d}🚀 é ا"),
    ] {
        assert_eq!(
            page_of(&[user(said)]).texts_of(".plain"),
            [expect],
            "{said:?}"
        );
    }
}

#[test]
fn a_page_in_a_log_gives_no_commands_to_the_ci_system() {
    let page = page_of(&[user(
        "::error::x\n  ::set-output::y\n##[error]z ##vso[task] a::b",
    )]);
    assert!(!page.html.contains("##"), "{}", page.html);
    assert!(
        !page
            .html
            .lines()
            .any(|line| line.trim_start().starts_with("::"))
    );
    assert!(page.texts_of(".plain")[0].contains("##[error]z ##vso[task] a::b"));
}

#[test]
fn only_images_are_shown_as_images() {
    let with = |kind: &str, data: &str| {
        page_of(&[
            json!({"type": "message", "message": {"role": "user", "timestamp": 1,
            "content": [{"type": "image", "mimeType": kind, "data": data}]}}),
        ])
    };
    let shown = with("image/png", "aGk=");
    assert_eq!(
        shown.values("src").collect::<Vec<_>>(),
        ["data:image/png;base64,aGk="]
    );
    assert_eq!(shown.texts_of("figcaption"), ["image/png, 2 bytes"]);
    for (kind, data) in [
        ("image/svg+xml", "aGk="),
        ("text/html", "aGk="),
        ("image/png", "\" onerror=alert(1) x=\""),
        ("image/png", "***"),
        ("IMAGE/PNG\"", "aGk="),
    ] {
        let page = with(kind, data);
        assert_eq!(page.values("src").count(), 0, "{kind} {data}");
        assert_eq!(
            page.texts_of(".fault"),
            [format!("An image of type {kind}, which cannot be shown")]
        );
    }
}

#[test]
fn no_known_secret_is_on_a_page() {
    let secret = "hunter2-hunter2";
    let redactor = Redactor::new([secret.to_owned()]);
    let mut all = fields(secret);
    all.push((
        "prose",
        vec![reply(&[text(&format!(
            "*x* {secret} [a](https://{secret}.test)"
        ))])],
    ));
    all.push((
        "thinking",
        vec![reply(&[json!({"type": "thinking", "thinking": secret})])],
    ));
    // Cut by a preview, which must not leave its beginning.
    all.push(("cut", vec![user(&format!("{}{secret}", "y".repeat(80)))]));
    for (field, entries) in all {
        let mut html = Vec::new();
        session_html(&session(&entries), &redactor, &mut html).unwrap();
        let html = String::from_utf8(html).unwrap();
        Page::read(&html);
        assert!(!html.contains("hunter2"), "{field}: {html}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The laws of a page hold for any text in any field.
    #[test]
    fn any_text_makes_a_lawful_page(text in "(?s).{0,60}|[<>&\"'`*_\\[\\]()#|:\n -]{0,60}") {
        for (_, entries) in fields(&text) {
            page_of(&entries);
        }
        page_of(&[reply(&[json!({"type": "text", "text": text})])]);
    }
}
