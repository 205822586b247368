//! `ls`: the names in a directory.

use std::collections::BinaryHeap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::{Access, Folder, Kind};
use crate::tool::file::{Found, reason};
use crate::tool::walk;
use crate::tool::work::{self, Failed, Work};
use crate::tool::{
    CallContext, CallFuture, Place, Tool, ToolOutput, ToolSpec, arguments, file, path, title_text,
    truncate,
};

/// Names shown when the call names no limit.
const ENTRIES: usize = 500;

/// The tool.
#[derive(Debug)]
pub(super) struct Ls {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: Option<String>,
    limit: Option<usize>,
}

impl Ls {
    /// The tool.
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: "ls".to_owned(),
            description: "List the names in a directory, hidden ones too, sorted; directories end in `/`. At most 500 \
                          names unless limit says otherwise."
                .to_owned(),
            short_description: "List a directory".to_owned(),
            guidelines: vec!["Use ls to see what is in one directory, find to look below it.".to_owned()],
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The directory, absolute or relative to the workspace. Default: the workspace."
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The most names. Default 500."
                    }
                },
                "additionalProperties": false
            }),
        };
        Self { spec }
    }
}

impl Tool for Ls {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, args: &Value) -> String {
        match args.get("path") {
            Some(_) => format!("ls {}", title_text(args, "path")),
            None => "ls".to_owned(),
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
            work::run(&cx, move |work| {
                let args: Arguments = arguments(&args)?;
                let asked = path::resolve_or_workspace(&place, args.path.as_deref())?;
                let shown = path::display(&place, &asked);
                let real = file::real(&place, &asked, work, Access::Read)?;
                match file::open(&place, &real, &shown)? {
                    Found::Directory => list(&real, &shown, args.limit, work),
                    Found::File(_) => Err(format!("`{shown}` is a file, not a directory").into()),
                }
            })
            .await
        })
    }
}

/// Lists the directory at the real path `real`.
pub(super) fn list(
    real: &Path,
    shown: &str,
    limit: Option<usize>,
    work: &Work,
) -> Result<ToolOutput, Failed> {
    let limit = limit.unwrap_or(ENTRIES).clamp(1, truncate::LINES_MAX);
    let failed = |error: std::io::Error| {
        Failed::Message(format!("cannot list `{shown}`: {}", reason(&error)))
    };
    // The smallest names so far, so that a million of them needs no room.
    let mut names: BinaryHeap<(String, String)> = BinaryHeap::new();
    let (mut total, mut withheld) = (0_usize, 0_usize);
    let folder = Folder::open(real).map_err(failed)?;
    for entry in folder.names().map_err(failed)? {
        work.go_on()?;
        let entry = entry.map_err(failed)?;
        let path = real.join(&entry.name);
        if !work.may_read(&path) {
            withheld += 1;
            continue;
        }
        total += 1;
        let mut name = path::display_name(&entry.name);
        let key = name.to_lowercase();
        if names.len() == limit && names.peek().is_some_and(|(largest, _)| *largest < key) {
            continue;
        }
        if entry.kind == Kind::Directory || (entry.kind == Kind::Link && path.is_dir()) {
            name.push('/');
        }
        names.push((key, name));
        if names.len() > limit {
            names.pop();
        }
    }
    let withheld = walk::withheld(withheld);
    if total == 0 {
        let text = match withheld {
            None => "(the directory is empty)".to_owned(),
            Some(notice) => format!("(no entries)\n\n[{notice}]"),
        };
        return Ok(ToolOutput::text(text, "0 entries"));
    }
    let names: Vec<String> = names
        .into_sorted_vec()
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    let text = names.join("\n");
    let cut = truncate::head(&text);
    let mut shown_text = cut.text.trim_end_matches('\n').to_owned();
    let truncated = cut.truncated || names.len() < total;
    let part = truncated.then(|| format!("{} of {total} entries are shown", cut.lines));
    let notices: Vec<String> = part.into_iter().chain(withheld).collect();
    if !notices.is_empty() {
        shown_text.push_str(&format!("\n\n[{}]", notices.join("; ")));
    }
    let summary = if total == 1 {
        "1 entry".to_owned()
    } else {
        format!("{total} entries")
    };
    Ok(ToolOutput {
        truncated,
        ..ToolOutput::text(shown_text, summary)
    })
}
