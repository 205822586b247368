//! `read`: a part of a text file, an image, or a directory's names.

use std::io::{BufRead, BufReader, Read as _};

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::{Access, OpenFile};
use crate::message::{Content, Image};
use crate::tool::file::Found;
use crate::tool::truncate::{self, BYTES_MAX, LINES_MAX};
use crate::tool::work::{self, Failed, Watched, Work};
use crate::tool::{
    CallContext, CallFuture, FileLedger, Fingerprint, Place, Tool, ToolOutput, ToolSpec, arguments,
    file, ls, path, title_text,
};

/// Larger images are refused.
const IMAGE_BYTES_MAX: u64 = 5 * 1024 * 1024;
/// A file up to this size is read to its end, for the number of its lines and
/// for the hash by which a later change is recognised.
const WHOLE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// No call looks further into a file than this.
const SCAN_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How much of the begin tells text from other content.
const SNIFF_BYTES: usize = 8 * 1024;

/// The tool.
#[derive(Debug)]
pub(super) struct Read {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

impl Read {
    /// The tool.
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: "read".to_owned(),
            description: "Read a file. Text comes without line numbers, at most 2,000 lines or 50 KiB a call, in \
                          whole lines; when more follows, a notice names the offset to go on with. PNG, JPEG, GIF \
                          and WebP files come as images. A directory gives the names in it."
                .to_owned(),
            short_description: "Read files and images".to_owned(),
            guidelines: vec![
                "Use read to look at a file, not cat, head or sed through bash.".to_owned(),
                "Read a file before you edit or overwrite it, and again when something else has changed it.".to_owned(),
            ],
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The file, absolute or relative to the workspace."
                    },
                    "offset": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The line to begin with, counted from 1. Default 1."
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The most lines to read. Default 2000."
                    }
                },
                "required": ["path"],
                "additionalProperties": false
            }),
        };
        Self { spec }
    }
}

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, args: &Value) -> String {
        format!("read {}", title_text(args, "path"))
    }

    fn accesses(&self, args: &Value, place: &Place) -> Result<Vec<Access>, String> {
        let args: Arguments = arguments(args)?;
        Ok(vec![Access::Read(path::resolve(place, &args.path)?)])
    }

    fn call<'a>(&'a self, args: Value, cx: CallContext<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let place = cx.place.clone();
            let ledger = cx.files.clone();
            work::run(&cx, move |work| {
                read(&arguments(&args)?, &place, &ledger, work)
            })
            .await
        })
    }
}

fn read(
    args: &Arguments,
    place: &Place,
    ledger: &FileLedger,
    work: &Work,
) -> Result<ToolOutput, Failed> {
    let asked = path::resolve(place, &args.path)?;
    let shown = path::display(place, &asked);
    let real = file::real(place, &asked, work, Access::Read)?;
    let OpenFile { file, metadata } = match file::open(place, &real, &shown)? {
        Found::File(opened) => opened,
        Found::Directory => return ls::list(&real, &shown, None, work),
    };
    let mut reader = BufReader::with_capacity(64 * 1024, work.watch(file, SCAN_BYTES_MAX));
    let failed = |error: std::io::Error| work.failed(&format!("cannot read `{shown}`"), &error);
    let begin = reader.fill_buf().map_err(failed)?;
    let begin = begin.get(..SNIFF_BYTES).unwrap_or(begin);
    if let Some(mime_type) = image_type(begin) {
        return image(&mut reader, &shown, mime_type).map_err(|why| match why {
            Some(error) => failed(error),
            None => Failed::Message(format!(
                "`{shown}` is an image larger than 5 MiB; make it smaller first"
            )),
        });
    }
    if is_binary(begin) {
        return Err(format!(
            "`{shown}` is a binary file of {} bytes; it can only be looked at with a command",
            metadata.len()
        )
        .into());
    }
    let mut page = Page::new(args);
    page.skip(&mut reader).map_err(failed)?;
    if page.passed < page.first - 1 {
        return Err(beyond_the_end(&shown, page.first, page.passed).into());
    }
    page.take(&mut reader).map_err(failed)?;
    page.count_rest(&mut reader, metadata.len())
        .map_err(failed)?;
    if page.is_beyond() {
        return Err(beyond_the_end(&shown, page.first, page.passed).into());
    }
    let hash = page.ended.then(|| reader.get_ref().hash());
    ledger.record(&real, Fingerprint::new(&metadata, hash));
    Ok(page.output(&shown))
}

fn beyond_the_end(shown: &str, first: u64, lines: u64) -> String {
    format!("offset {first} is beyond the end of `{shown}`, which has {lines} lines")
}

type Source<'a> = BufReader<Watched<'a, std::fs::File>>;

/// The lines of one call.
#[derive(Debug)]
struct Page {
    /// The line to begin with, from 1.
    first: u64,
    lines_max: u64,
    text: String,
    lines: u64,
    /// All lines seen so far, shown or not.
    passed: u64,
    /// Whether the file's end was seen, so that `passed` counts all its lines.
    ended: bool,
    /// Whether there are lines after the shown ones.
    more: bool,
    /// Whether the only shown line is longer than a page.
    line_cut: bool,
}

impl Page {
    fn new(args: &Arguments) -> Self {
        Self {
            first: args.offset.unwrap_or(1).max(1),
            lines_max: args
                .limit
                .unwrap_or(LINES_MAX as u64)
                .clamp(1, LINES_MAX as u64),
            text: String::new(),
            lines: 0,
            passed: 0,
            ended: false,
            more: false,
            line_cut: false,
        }
    }

    /// Passes the lines before the first.
    fn skip(&mut self, reader: &mut Source<'_>) -> std::io::Result<()> {
        while self.passed < self.first - 1 {
            if reader.skip_until(b'\n')? == 0 {
                self.ended = true;
                break;
            }
            self.passed += 1;
        }
        Ok(())
    }

    /// Takes lines until the page is full.
    fn take(&mut self, reader: &mut Source<'_>) -> std::io::Result<()> {
        let mut line = Vec::new();
        while self.lines < self.lines_max {
            line.clear();
            let most = BYTES_MAX as u64 + 1;
            if reader.take(most).read_until(b'\n', &mut line)? == 0 {
                self.ended = true;
                return Ok(());
            }
            self.passed += 1;
            let unfinished = line.len() > BYTES_MAX && line.last() != Some(&b'\n');
            let text = truncate::clean(&line);
            if unfinished || self.text.len() + text.len() > BYTES_MAX {
                self.more = true;
                if self.lines == 0 {
                    self.text.push_str(truncate::head(&text).text);
                    self.lines = 1;
                    self.line_cut = true;
                    self.more = false;
                }
                if unfinished {
                    reader.skip_until(b'\n')?;
                }
                return Ok(());
            }
            self.text.push_str(&text);
            self.lines += 1;
        }
        Ok(())
    }

    /// Finds out whether lines follow, and in a file of ordinary size how many.
    fn count_rest(&mut self, reader: &mut Source<'_>, size: u64) -> std::io::Result<()> {
        if self.ended {
            return Ok(());
        }
        if reader.fill_buf()?.is_empty() {
            self.ended = true;
            return Ok(());
        }
        self.more = true;
        if size > WHOLE_BYTES_MAX {
            return Ok(());
        }
        while reader.skip_until(b'\n')? > 0 {
            self.passed += 1;
        }
        self.ended = true;
        Ok(())
    }

    fn is_beyond(&self) -> bool {
        self.lines == 0 && self.first > 1
    }

    fn output(mut self, shown: &str) -> ToolOutput {
        if self.lines == 0 {
            return ToolOutput::text("(the file is empty)", format!("{shown} is empty"));
        }
        let last = self.first + self.lines - 1;
        let summary = match self.lines {
            1 => "1 line".to_owned(),
            lines => format!("{lines} lines"),
        };
        let mut notices = Vec::new();
        if self.line_cut {
            notices.push(format!("line {last} is longer than 50 KiB and was cut"));
        }
        if self.more {
            let of = if self.ended {
                format!(" of {}", self.passed)
            } else {
                String::new()
            };
            notices.push(format!(
                "lines {}-{last}{of} are shown; go on with offset={}",
                self.first,
                last + 1
            ));
        }
        if !notices.is_empty() {
            if !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text.push_str(&format!("\n[{}]", notices.join("; ")));
        }
        ToolOutput {
            truncated: !notices.is_empty(),
            ..ToolOutput::text(self.text, summary)
        }
    }
}

fn image_type(begin: &[u8]) -> Option<&'static str> {
    if begin.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if begin.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if begin.starts_with(b"GIF87a") || begin.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if begin.starts_with(b"RIFF") && begin.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

/// Whether the content is no text: a NUL, or the signature of a format that
/// may have none at its begin.
fn is_binary(begin: &[u8]) -> bool {
    begin.contains(&0)
        || [&b"%PDF-"[..], b"\x1f\x8b", b"PK\x03\x04"]
            .iter()
            .any(|magic| begin.starts_with(magic))
}

/// The image; none as an error when it is too large.
fn image(
    reader: &mut Source<'_>,
    shown: &str,
    mime_type: &str,
) -> Result<ToolOutput, Option<std::io::Error>> {
    let mut bytes = Vec::new();
    reader
        .take(IMAGE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(Some)?;
    if bytes.len() as u64 > IMAGE_BYTES_MAX {
        return Err(None);
    }
    let note = format!("{shown}: {mime_type}, {} bytes", bytes.len());
    let image = Image {
        data: base64::engine::general_purpose::STANDARD.encode(&bytes),
        mime_type: mime_type.to_owned(),
    };
    Ok(ToolOutput {
        content: vec![Content::text(note.clone()), Content::Image(image)],
        summary: note,
        ..ToolOutput::default()
    })
}
