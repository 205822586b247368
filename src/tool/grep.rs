//! `grep`: lines by regular expression, through ripgrep's own libraries.

use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::{Access, OpenFile};
use crate::tool::file::Found;
use crate::tool::walk::{self, Gaps, Glob, Hidden, Kind, Next, Wanted};
use crate::tool::work::{self, Failed, Work};
use crate::tool::{
    CallContext, CallFuture, Place, Tool, ToolOutput, ToolSpec, arguments, file, path, title_text,
    truncate,
};

/// Matches shown when the call names no limit.
const MATCHES: usize = 100;
/// No call gets more.
const MATCHES_MAX: usize = 1_000;
/// Lines around a match.
const CONTEXT_MAX: usize = 20;
/// Longer lines are cut.
const LINE_CHARS_MAX: usize = 500;
/// What stands before the match in a line that is cut.
const LINE_CHARS_BEFORE: usize = 100;
/// A file with a longer line is passed over.
const HEAP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// No file is searched further.
const SCAN_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The tool.
#[derive(Debug)]
pub(super) struct Grep {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    context: usize,
    limit: Option<usize>,
}

impl Grep {
    /// The tool.
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: "grep".to_owned(),
            description: "Search the lines of files for a regular expression (Rust syntax, line by line). Gives \
                          `path:line:text`, sorted by path, at most 100 matches unless limit says otherwise. \
                          Respects .gitignore; binary files are passed over, and so are hidden ones unless path \
                          names them."
                .to_owned(),
            short_description: "Search file contents".to_owned(),
            guidelines: vec!["Use grep to search file contents, not grep or rg through bash.".to_owned()],
            parameters: parameters(),
        };
        Self { spec }
    }
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "pattern": {
                "type": "string",
                "minLength": 1,
                "description": "The regular expression, or plain text with literal."
            },
            "path": {
                "type": "string",
                "description": "The file or directory to search, absolute or relative to the workspace. Default: the workspace."
            },
            "glob": {
                "type": "string",
                "description": "Only files that fit: `*.rs`, `src/**/*.{ts,tsx}`, `!*.lock`."
            },
            "ignore_case": {
                "type": "boolean",
                "description": "Whether upper and lower case are the same. Default false."
            },
            "literal": {
                "type": "boolean",
                "description": "Whether pattern is plain text. Default false."
            },
            "context": {
                "type": "integer",
                "minimum": 0,
                "description": "Lines to show before and after each match, at most 20. Default 0."
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": "The most matches. Default 100, maximum 1000."
            }
        },
        "required": ["pattern"],
        "additionalProperties": false
    })
}

impl Tool for Grep {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, args: &Value) -> String {
        let pattern = title_text(args, "pattern");
        match args.get("path") {
            Some(_) => format!("grep {pattern} in {}", title_text(args, "path")),
            None => format!("grep {pattern}"),
        }
    }

    fn accesses(&self, args: &Value, place: &Place) -> Result<Vec<Access>, String> {
        let args: Arguments = arguments(args)?;
        Ok(vec![Access::Read(path::resolve_or_workspace(
            place,
            args.path.as_deref(),
        )?)])
    }

    fn call<'a>(&'a self, args: Value, cx: CallContext<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let place = cx.place.clone();
            work::run(&cx, move |work| grep(&arguments(&args)?, &place, work)).await
        })
    }
}

fn grep(args: &Arguments, place: &Place, work: &Work) -> Result<ToolOutput, Failed> {
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(args.ignore_case)
        .fixed_strings(args.literal)
        .crlf(true)
        .size_limit(HEAP_BYTES_MAX)
        .build(&args.pattern)
        .map_err(|error| format!("the pattern is not usable: {error}"))?;
    let glob = args.glob.as_deref().map(Glob::parse).transpose()?;
    let asked = path::resolve_or_workspace(place, args.path.as_deref())?;
    let root = file::real(place, &asked, work, Access::Read)?;
    let shown_root = path::display(place, &asked);
    let mut search = Search {
        searcher: searcher(args.context.min(CONTEXT_MAX)),
        matcher,
        found: Results::new(args.limit.unwrap_or(MATCHES).clamp(1, MATCHES_MAX)),
        work,
    };
    let mut gaps = Gaps::default();
    match file::open(place, &root, &shown_root)? {
        Found::File(opened) => search.file(opened, shown_root, &mut gaps)?,
        Found::Directory => {
            let wanted = Wanted {
                hidden: Hidden::Skipped,
                glob: glob.as_ref(),
                kind: Kind::Files,
            };
            gaps = walk::walk(&root, &wanted, work, |entry, below, gaps| {
                let shown = path::display(place, &walk::asked_path(&asked, below));
                match file::open(place, &entry.path, &shown) {
                    Ok(Found::File(opened)) => search.file(opened, shown, gaps)?,
                    Ok(Found::Directory) | Err(_) => gaps.unreadable(),
                }
                Ok(if search.found.more {
                    Next::Enough
                } else {
                    Next::Go
                })
            })?;
        }
    }
    Ok(search.found.output(&gaps))
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        // The same as the matcher's: `$` matches before `\r\n` as before `\n`.
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP_BYTES_MAX))
        .build()
}

/// A search over several files.
struct Search<'a> {
    searcher: Searcher,
    matcher: RegexMatcher,
    found: Results,
    work: &'a Work,
}

impl Search<'_> {
    fn file(&mut self, opened: OpenFile, shown: String, gaps: &mut Gaps) -> Result<(), Failed> {
        let mut lines = Lines {
            matcher: &self.matcher,
            shown,
            found: &mut self.found,
            matched: false,
        };
        let source = self.work.watch(opened.file, SCAN_BYTES_MAX);
        let searched = self
            .searcher
            .search_reader(&self.matcher, source, &mut lines);
        let matched = lines.matched;
        self.found.files += usize::from(matched);
        if searched.is_err() {
            self.work.go_on()?;
            gaps.unreadable();
        }
        Ok(())
    }
}

/// What was found so far, as text.
#[derive(Debug)]
struct Results {
    text: String,
    matches: usize,
    matches_max: usize,
    files: usize,
    /// Whether there are more matches than may be shown.
    more: bool,
    /// Whether a line was cut.
    line_cut: bool,
}

impl Results {
    fn new(matches_max: usize) -> Self {
        Self {
            text: String::new(),
            matches: 0,
            matches_max,
            files: 0,
            more: false,
            line_cut: false,
        }
    }

    /// Adds a line; `sign` is `:` for a match and `-` for its surroundings.
    fn push(&mut self, place: (&str, u64), sign: char, line: &str) {
        let (shown, number) = place;
        self.text
            .push_str(&format!("{shown}{sign}{number}{sign}{line}\n"));
    }

    fn output(self, gaps: &Gaps) -> ToolOutput {
        let cut = truncate::head(&self.text);
        let mut text = cut.text.trim_end_matches('\n').to_owned();
        if self.matches == 0 {
            text.push_str("no matches");
        }
        let truncated = self.more || cut.truncated;
        let mut notices = Vec::new();
        if cut.truncated {
            notices.push(format!(
                "the first {} lines are shown; narrow the search",
                cut.lines
            ));
        } else if self.more {
            notices.push(format!(
                "the first {} matches are shown; narrow the search",
                self.matches
            ));
        }
        if self.line_cut {
            notices.push(format!(
                "lines over {LINE_CHARS_MAX} characters were cut; read shows them whole"
            ));
        }
        notices.extend(gaps.notice());
        if !notices.is_empty() {
            text.push_str(&format!("\n\n[{}]", notices.join("; ")));
        }
        let count = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        let summary = match self.matches {
            0 => "no matches".to_owned(),
            matches => format!(
                "{}{} in {}",
                count(matches, "match", "matches"),
                if self.more { " or more" } else { "" },
                count(self.files, "file", "files")
            ),
        };
        ToolOutput {
            truncated,
            ..ToolOutput::text(text, summary)
        }
    }
}

/// Takes the matches of one file.
struct Lines<'a> {
    matcher: &'a RegexMatcher,
    shown: String,
    found: &'a mut Results,
    matched: bool,
}

impl Lines<'_> {
    fn take(&mut self, bytes: &[u8], number: Option<u64>, sign: char) {
        let text = truncate::clean(bytes);
        let text = text.trim_end_matches('\n').replace('\n', " ");
        let line = if text.chars().nth(LINE_CHARS_MAX).is_some() {
            self.found.line_cut = true;
            window(&text, self.match_start(&text))
        } else {
            text
        };
        self.found
            .push((&self.shown, number.unwrap_or_default()), sign, &line);
    }

    fn match_start(&self, text: &str) -> usize {
        let found = self.matcher.find(text.as_bytes()).ok().flatten();
        found.map_or(0, |found| found.start())
    }
}

/// The part of a long line around the byte offset `at`.
fn window(text: &str, at: usize) -> String {
    let before = text.get(..text.floor_char_boundary(at)).unwrap_or_default();
    let skipped = before.chars().count().saturating_sub(LINE_CHARS_BEFORE);
    let kept: String = text.chars().skip(skipped).take(LINE_CHARS_MAX).collect();
    let begin = if skipped > 0 { "…" } else { "" };
    let end = if text.ends_with(&kept) { "" } else { "…" };
    format!("{begin}{kept}{end}")
}

impl Sink for Lines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        if self.found.matches == self.found.matches_max {
            self.found.more = true;
            return Ok(false);
        }
        self.found.matches += 1;
        self.matched = true;
        self.take(line.bytes(), line.line_number(), ':');
        // More text could not be shown.
        self.found.more |= self.found.text.len() > truncate::BYTES_MAX;
        Ok(!self.found.more)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        self.take(line.bytes(), line.line_number(), '-');
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.found.text.push_str("--\n");
        Ok(true)
    }
}
