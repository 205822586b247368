//! The rules of the house, checked by machine.

use std::path::{Path, PathBuf};

use crate::support::cli::Cli;

/// Every module of the top level with its layer. A module imports from lower
/// layers only; within one layer only what `BESIDE` allows.
const LAYERS: &[(&str, u8)] = &[
    ("message", 0),
    ("access", 0),
    ("event", 0),
    ("clock", 0),
    ("process", 0),
    ("secret", 0),
    ("fingerprint", 0),
    ("model", 1),
    ("tool", 1),
    ("policy", 1),
    ("sandbox", 1),
    ("hook", 1),
    ("store", 1),
    ("workspace", 1),
    ("context", 1),
    ("report", 1),
    ("export", 1),
    ("session", 2),
    ("task", 3),
    ("run", 4),
    ("cli", 5),
];

/// Who may import whom within a layer. The ground may, as long as it is acyclic.
const BESIDE: &[(&str, &str)] = &[
    ("access", "message"),
    ("event", "message"),
    ("event", "access"),
    ("event", "clock"),
    ("process", "clock"),
    ("secret", "clock"),
    ("secret", "message"),
    ("export", "report"),
    ("export", "store"),
];

/// What looks lower and is forbidden all the same.
const NEVER: &[(&str, &str)] = &[
    ("session", "report"),
    ("task", "report"),
    ("task", "export"),
    ("run", "report"),
    ("run", "export"),
];

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;
const BANNED_FILES: &[&str] = &[
    "error", "errors", "util", "utils", "helper", "helpers", "types", "common",
];
/// Errors of a module that others build on may stand in a file of their own.
const ALLOWED_FILES: &[&str] = &["src/model/error.rs"];
const BANNED_SUFFIXES: &[&str] = &["Manager", "Helper", "Handler", "Util", "Utils"];

struct Source {
    /// Relative to the package, with `/`.
    name: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(dir: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut open = vec![root().join(dir)];
    while let Some(dir) = open.pop() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        for path in entries {
            // What was built from the sources is none of them.
            if path.is_dir() && !path.ends_with("tests/fuzz/target") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path
                    .strip_prefix(root())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                found.push(Source {
                    name,
                    text: std::fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    assert!(!found.is_empty(), "no sources under {dir}");
    found
}

fn assert_none(breaches: &[String]) {
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}

/// The file's lines that are code, with their numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The top-level modules that a text names as `crate::x` or `crate::{x, y::z}`.
fn imports(text: &str) -> Vec<String> {
    let code: String = code(text).flat_map(|(_, line)| [line, "\n"]).collect();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|one| one.is_alphanumeric() || one == '_' || one == ':') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => found.extend(first_names(list)),
            None => found.push(word(rest)),
        }
    }
    found.retain(|name| LAYERS.iter().any(|(known, _)| known == name));
    found
}

/// The first name of each entry of a `use` list, up to its closing brace.
fn first_names(list: &str) -> Vec<String> {
    let mut depth = 0;
    let mut names = Vec::new();
    let mut fresh = true;
    for (at, symbol) in list.char_indices() {
        match symbol {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            _ if fresh && !symbol.is_whitespace() => {
                names.push(word(&list[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

fn word(text: &str) -> String {
    text.chars()
        .take_while(|one| one.is_alphanumeric() || *one == '_')
        .collect()
}

fn layer(module: &str) -> Option<u8> {
    LAYERS
        .iter()
        .find(|(name, _)| *name == module)
        .map(|(_, layer)| *layer)
}

fn may_import(from: &str, to: &str) -> bool {
    if from == to {
        return true;
    }
    let (Some(above), Some(below)) = (layer(from), layer(to)) else {
        return false;
    };
    !NEVER.contains(&(from, to)) && (above > below || BESIDE.contains(&(from, to)))
}

/// The top-level module of a file: `src/tool/bash.rs` and `src/tool.rs` are `tool`.
fn module_of(name: &str) -> &str {
    let inside = name.strip_prefix("src/").unwrap();
    inside.split(['/', '.']).next().unwrap()
}

#[test]
fn imports_go_down_only() {
    let mut breaches = Vec::new();
    for source in sources("src") {
        let module = module_of(&source.name);
        if matches!(module, "lib" | "main") {
            continue;
        }
        if layer(module).is_none() {
            breaches.push(format!(
                "{}: the module `{module}` has no layer",
                source.name
            ));
        }
        for import in imports(&source.text) {
            if !may_import(module, &import) {
                breaches.push(format!(
                    "{}: `{module}` must not import `{import}`",
                    source.name
                ));
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn the_layer_check_finds_what_it_must() {
    let text = "use crate::{run::Job, tool::{Tool, b::C}, clock};\n// crate::cli::x\nfn f() { crate::policy::y(); my_crate::session::z() }";
    assert_eq!(imports(text), ["run", "tool", "clock", "policy"]);
    for (from, to, expect) in [
        ("tool", "process", true),
        ("tool", "policy", false),
        ("tool", "tool", true),
        ("session", "tool", true),
        ("session", "run", false),
        ("run", "report", false),
        ("cli", "report", true),
        ("event", "message", true),
        ("message", "event", false),
    ] {
        assert_eq!(may_import(from, to), expect, "{from} -> {to}");
    }
}

#[test]
fn files_are_short_named_and_documented() {
    let mut breaches = Vec::new();
    for source in sources("src").iter().chain(&sources("tests")) {
        let name = &source.name;
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            breaches.push(format!("{name}: {lines} lines, at most {FILE_LINES_MAX}"));
        }
        let stem = Path::new(name).file_stem().unwrap().to_str().unwrap();
        if BANNED_FILES.contains(&stem) && !ALLOWED_FILES.contains(&name.as_str()) {
            breaches.push(format!("{name}: the name says nothing"));
        }
        if !source.text.starts_with("//! ") {
            breaches.push(format!("{name}: does not say what it is responsible for"));
        }
    }
    assert_none(&breaches);
}

/// Where connections are made or taken.
const SOCKETS: &[&str] = &[
    "src/model/http.rs",
    "src/sandbox/proxy/connection.rs",
    "src/sandbox/proxy/forward.rs",
    "src/sandbox/proxy/mod.rs",
    "src/sandbox/proxy/reach.rs",
];

#[test]
fn sockets_stand_in_few_places() {
    let kinds = [
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "UnixStream",
        "UnixListener",
        "lookup_host",
        "reqwest::Client",
        "Client::builder",
    ];
    let mut breaches = Vec::new();
    for source in sources("src") {
        for (at, line) in code(&source.text) {
            let opens = kinds.iter().any(|kind| line.contains(kind));
            if opens && !SOCKETS.contains(&source.name.as_str()) {
                breaches.push(format!("{}:{at}: {}", source.name, line.trim()));
            }
        }
    }
    assert_none(&breaches);
}

/// Each function that is too long, by the line it begins at.
fn long_functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let starts = [
            "fn ",
            "pub fn ",
            "async fn ",
            "pub async fn ",
            "const fn ",
            "pub(crate) fn ",
            "pub(super) fn ",
            "pub(super) async fn ",
            "pub(crate) async fn ",
            "pub const fn ",
        ];
        if !starts
            .iter()
            .any(|start| line.trim_start().starts_with(start))
            || line.trim_end().ends_with([';', '}'])
        {
            continue;
        }
        // The formatter puts the closing brace under the function's first letter.
        let closing = lines
            .iter()
            .skip(at)
            .position(|other| *other == format!("{}}}", &line[..indent]));
        let length = closing.map_or(1, |closing| closing + 1);
        if length > FUNCTION_LINES_MAX {
            found.push((at + 1, length));
        }
    }
    found
}

#[test]
fn functions_are_short() {
    let long = format!("fn f() {{\n{}}}\n", "    x();\n".repeat(80));
    assert_eq!(long_functions(&long), [(1, 82)]);
    let mut breaches = Vec::new();
    for source in sources("src").iter().chain(&sources("tests")) {
        for (line, length) in long_functions(&source.text) {
            breaches.push(format!(
                "{}:{line}: a function of {length} lines",
                source.name
            ));
        }
    }
    assert_none(&breaches);
}

#[test]
fn type_names_say_what_they_are() {
    let mut breaches = Vec::new();
    for source in sources("src") {
        for (at, line) in code(&source.text) {
            for keyword in ["struct ", "enum ", "trait ", "type "] {
                let Some((before, rest)) = line.split_once(keyword) else {
                    continue;
                };
                let name = word(rest);
                let declares = before.trim().is_empty() || before.trim_start().starts_with("pub");
                if declares && BANNED_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) {
                    breaches.push(format!("{}:{at}: `{name}`", source.name));
                }
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn exceptions_have_reasons() {
    let mut breaches = Vec::new();
    for source in sources("src").iter().chain(&sources("tests")) {
        for attribute in ["#[allow(", "#![allow(", "#[expect(", "#![expect("] {
            let code: String = code(&source.text)
                .flat_map(|(_, line)| [line, "\n"])
                .collect();
            for (at, _) in code.match_indices(attribute) {
                let line_start = code[..at].rfind('\n').map_or(0, |end| end + 1);
                let whole = code[at..].split_once(")]").map_or("", |(whole, _)| whole);
                if code[line_start..at].trim().is_empty() && !whole.contains("reason = ") {
                    breaches.push(format!("{}: {whole})] gives no reason", source.name));
                }
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn tests_neither_sleep_nor_hide() {
    // Put together here, so that this file does not find itself.
    let banned = ["#[ign", "thread::sle", "time::sle"].map(|start| match start {
        "#[ign" => format!("{start}ore"),
        other => format!("{other}ep("),
    });
    let mut breaches = Vec::new();
    for source in sources("tests") {
        for (at, line) in code(&source.text) {
            if banned.iter().any(|word| line.contains(word.as_str())) {
                breaches.push(format!("{}:{at}: {}", source.name, line.trim()));
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn task_files_validate_and_help_editors() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join("tasks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no task files");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap_or_default();
        let schema = first.strip_prefix("# yaml-language-server: $schema=");
        let schema = schema.unwrap_or_else(|| panic!("{}: no modeline", file.display()));
        let schema = file.parent().unwrap().join(schema);
        assert!(
            schema.is_file(),
            "{}: {} is missing",
            file.display(),
            schema.display()
        );
        Cli::at(root()).arg("check").arg(&file).run();
    }
}
