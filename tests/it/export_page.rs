//! Exported pages: sessions made from JSON, and pages read as a browser reads
//! them, which must keep the laws of a page that shows hostile text.

use std::collections::{BTreeMap, BTreeSet};

use agent::export::session_html;
use agent::secret::Redactor;
use agent::store::{Entry, Header, SessionTree};
use base64::Engine as _;
use html5gum::{DefaultEmitter, Token, Tokenizer};
use serde_json::{Value, json};

/// Elements that have no end tag.
const VOID: &[&str] = &["br", "hr", "img", "input", "meta"];
/// All elements that a page may hold.
const ELEMENTS: &[&str] = &[
    "a",
    "article",
    "b",
    "blockquote",
    "body",
    "br",
    "button",
    "code",
    "dd",
    "del",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "img",
    "input",
    "label",
    "li",
    "main",
    "meta",
    "nav",
    "ol",
    "p",
    "pre",
    "script",
    "section",
    "span",
    "strong",
    "style",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "title",
    "tr",
    "ul",
];
/// All attributes that they may have.
const ATTRIBUTES: &[&str] = &[
    "alt",
    "aria-label",
    "aria-labelledby",
    "autocomplete",
    "charset",
    "checked",
    "class",
    "content",
    "data-do",
    "data-language",
    "data-n",
    "datetime",
    "decoding",
    "hidden",
    "href",
    "http-equiv",
    "id",
    "lang",
    "loading",
    "name",
    "rel",
    "role",
    "scope",
    "src",
    "start",
    "tabindex",
    "title",
    "type",
];

/// A session of these entries. Ids are their places as eight digits; the
/// parent is the entry before, unless one is named.
pub(crate) fn session(entries: &[Value]) -> SessionTree {
    let mut header = Header::new("/srv/project");
    header.id = "0193a6f0-0000-7000-8000-000000000001".to_owned();
    header.timestamp = "2026-11-21T20:00:00.000Z".to_owned();
    let mut tree = SessionTree::new(header);
    for (place, fields) in entries.iter().enumerate() {
        let mut line = json!({
            "type": fields["type"],
            "id": id(place),
            "parentId": place.checked_sub(1).map(id),
            "timestamp": format!("2026-11-21T20:{:02}:{:02}.000Z", place / 60 % 60, place % 60),
        });
        for (name, value) in fields.as_object().unwrap() {
            line[name] = value.clone();
        }
        tree.push(Entry::parse(&line.to_string()).unwrap()).unwrap();
    }
    tree
}

/// The id of the entry at a place.
pub(crate) fn id(place: usize) -> String {
    format!("{place:08x}")
}

/// A user's message.
pub(crate) fn user(text: &str) -> Value {
    json!({"type": "message", "message": {"role": "user", "content": text, "timestamp": 1}})
}

/// A reply of these blocks, with usage and a price.
pub(crate) fn reply(blocks: &[Value]) -> Value {
    let usage = json!({"input": 1000, "output": 200, "cacheRead": 300, "cacheWrite": 40,
        "reasoning": 50, "cost": {"total": 0.25}});
    json!({"type": "message", "message": {"role": "assistant", "content": blocks,
        "api": "scripted", "provider": "maker", "model": "large", "usage": usage,
        "stopReason": "stop", "timestamp": 1}})
}

/// A block of text.
pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A call.
pub(crate) fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

/// A result of a call that went well.
pub(crate) fn result(id: &str, name: &str, text: &str) -> Value {
    json!({"type": "message", "message": {"role": "toolResult", "toolCallId": id,
        "toolName": name, "content": [{"type": "text", "text": text}], "isError": false,
        "timestamp": 1}})
}

/// The same entry below another parent.
pub(crate) fn below(parent: Option<usize>, mut entry: Value) -> Value {
    entry["parentId"] = parent.map(id).into();
    entry
}

/// The page of a session, which keeps the laws.
pub(crate) fn page_of(entries: &[Value]) -> Page {
    let mut html = Vec::new();
    session_html(&session(entries), &Redactor::default(), &mut html).unwrap();
    Page::read(&String::from_utf8(html).unwrap())
}

/// A page as a tree in its order.
pub(crate) struct Page {
    pub(crate) html: String,
    pub(crate) nodes: Vec<Node>,
}

/// An element or a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// How many elements are around it.
    pub(crate) depth: usize,
    /// Empty for a text.
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
    /// Of a text.
    pub(crate) text: String,
}

impl Node {
    fn class(&self) -> &str {
        self.attributes.get("class").map_or("", String::as_str)
    }
}

impl Page {
    /// Reads a page and checks it.
    pub(crate) fn read(html: &str) -> Self {
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        let mut nodes = Vec::new();
        let mut open: Vec<String> = Vec::new();
        for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
            match token {
                Token::StartTag(tag) => {
                    let name = string(&tag.name);
                    nodes.push(Node {
                        depth: open.len(),
                        name: name.clone(),
                        attributes: tag
                            .attributes
                            .iter()
                            .map(|(name, value)| (string(name), string(value)))
                            .collect(),
                        text: String::new(),
                    });
                    if !VOID.contains(&name.as_str()) {
                        open.push(name);
                    }
                }
                Token::EndTag(tag) => {
                    let last = open.pop();
                    assert_eq!(last.as_deref(), Some(string(&tag.name).as_str()), "{html}");
                }
                Token::String(text) => nodes.push(Node {
                    depth: open.len(),
                    name: String::new(),
                    attributes: BTreeMap::new(),
                    text: string(&text),
                }),
                Token::Doctype(doctype) => assert!(!doctype.force_quirks),
                Token::Comment(comment) => panic!("a comment: {:?}", string(&comment)),
                Token::Error(error) => panic!("{error:?} in\n{html}"),
            }
        }
        assert_eq!(open, [] as [String; 0], "{html}");
        let page = Self {
            html: html.to_owned(),
            nodes,
        };
        page.check_names();
        page.check_links();
        page.check_policy();
        page
    }

    fn check_names(&self) {
        for node in self.elements() {
            assert!(ELEMENTS.contains(&node.name.as_str()), "{node:?}");
            for name in node.attributes.keys() {
                assert!(ATTRIBUTES.contains(&name.as_str()), "{node:?}");
            }
        }
        let acts = |one: char| one.is_control() && one != '\n' && one != '\t';
        assert!(!self.html.contains(acts), "{:?}", self.html.find(acts));
    }

    fn check_links(&self) {
        let mut ids = BTreeSet::new();
        for id in self.values("id") {
            assert!(ids.insert(id), "the id {id} stands twice");
        }
        for link in self.values("href") {
            match link.strip_prefix('#') {
                Some(id) => assert!(ids.contains(id), "{link} leads nowhere"),
                None => assert!(
                    ["http:", "https:", "mailto:"]
                        .iter()
                        .any(|scheme| link.to_lowercase().starts_with(scheme)),
                    "{link}"
                ),
            }
        }
        for source in self.values("src") {
            assert!(source.starts_with("data:image/"), "{source}");
        }
    }

    /// The policy permits the one style sheet and the one script, and no load.
    fn check_policy(&self) {
        let policy = self
            .elements()
            .find(|node| node.attributes.contains_key("http-equiv"))
            .map(|node| node.attributes["content"].clone())
            .unwrap();
        let source = |name: &str| {
            let texts = self.texts_of(name);
            assert_eq!(texts.len(), 1, "{name}");
            let hash = ring::digest::digest(&ring::digest::SHA256, texts[0].as_bytes());
            base64::engine::general_purpose::STANDARD.encode(hash)
        };
        let (style, script) = (source("style"), source("script"));
        assert_eq!(
            policy,
            format!(
                "default-src 'none'; img-src data:; style-src 'sha256-{style}'; \
                 script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
            )
        );
    }

    /// The elements.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.name.is_empty())
    }

    /// The names of the elements in their order.
    pub(crate) fn shape(&self) -> Vec<&str> {
        self.elements().map(|node| node.name.as_str()).collect()
    }

    /// The values of an attribute in their order.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.elements()
            .filter_map(move |node| node.attributes.get(name).map(String::as_str))
    }

    /// The text in each element that `selector` names: an element, a `.class`
    /// or an `#id`.
    pub(crate) fn texts_of(&self, selector: &str) -> Vec<String> {
        self.places(selector)
            .into_iter()
            .map(|place| {
                self.inside(place)
                    .map(|node| node.text.as_str())
                    .collect::<String>()
            })
            .collect()
    }

    /// What such an element holds, one line a node.
    pub(crate) fn sketch(&self, selector: &str) -> String {
        let place = self.places(selector)[0];
        let depth = self.nodes[place].depth;
        let mut sketch = String::new();
        for node in std::iter::once(&self.nodes[place]).chain(self.inside(place)) {
            let line = if node.name.is_empty() {
                match node.text.trim() {
                    "" => continue,
                    text => format!("{text:?}"),
                }
            } else {
                let mut line = node.name.clone();
                for name in ["id", "class", "href", "data-n"] {
                    if let Some(value) = node.attributes.get(name) {
                        line.push_str(&format!(" {name}={value}"));
                    }
                }
                line
            };
            sketch.push_str(&"  ".repeat(node.depth - depth));
            sketch.push_str(&line);
            sketch.push('\n');
        }
        sketch
    }

    fn places(&self, selector: &str) -> Vec<usize> {
        let matches = |node: &Node| match selector.split_at(1) {
            (".", class) => node.class().split(' ').any(|one| one == class),
            ("#", id) => node.attributes.get("id").is_some_and(|one| one == id),
            _ => node.name == selector,
        };
        self.nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| !node.name.is_empty() && matches(node))
            .map(|(place, _)| place)
            .collect()
    }

    fn inside(&self, place: usize) -> impl Iterator<Item = &Node> {
        let depth = self.nodes[place].depth;
        self.nodes[place + 1..]
            .iter()
            .take_while(move |node| node.depth > depth)
    }
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
