//! `find`: files and directories by name.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::{self, Access};
use crate::tool::file::Found;
use crate::tool::walk::{self, Glob, Kind, Next, Wanted};
use crate::tool::work::{self, Failed, Work};
use crate::tool::{
    CallContext, CallFuture, Place, Tool, ToolOutput, ToolSpec, arguments, file, path, title_text,
    truncate,
};

/// Names shown when the call names no limit; also the most.
const NAMES: usize = 1_000;

/// The tool.
#[derive(Debug)]
pub(super) struct Find {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    limit: Option<usize>,
}

impl Find {
    /// The tool.
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: "find".to_owned(),
            description: "Find files and directories by a glob: `*.rs` looks at names at any depth, `src/**/*.rs` at \
                          paths below the directory searched. Respects .gitignore; names that begin with a dot are \
                          found only by a pattern that writes the dot. Directories end in `/`. At most 1,000 names, \
                          sorted."
                .to_owned(),
            short_description: "Find files by name".to_owned(),
            guidelines: vec!["Use find to look for files by name, not find or fd through bash.".to_owned()],
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {
                        "type": "string",
                        "minLength": 1,
                        "description": "The glob: *, **, ?, [abc], {a,b}."
                    },
                    "path": {
                        "type": "string",
                        "description": "The directory to search, absolute or relative to the workspace. Default: the workspace."
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The most names. Default and maximum 1000."
                    }
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
        };
        Self { spec }
    }
}

impl Tool for Find {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, args: &Value) -> String {
        let pattern = title_text(args, "pattern");
        match args.get("path") {
            Some(_) => format!("find {pattern} in {}", title_text(args, "path")),
            None => format!("find {pattern}"),
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
            work::run(&cx, move |work| find(&arguments(&args)?, &place, work)).await
        })
    }
}

fn find(args: &Arguments, place: &Place, work: &Work) -> Result<ToolOutput, Failed> {
    let glob = Glob::parse(&args.pattern)?;
    let asked = path::resolve_or_workspace(place, args.path.as_deref())?;
    let root = file::real(place, &asked, work, Access::Read)?;
    let shown_root = path::display(place, &asked);
    if let Found::File(_) = file::open(place, &root, &shown_root)? {
        return Err(format!("`{shown_root}` is a file, not a directory").into());
    }
    let limit = args.limit.unwrap_or(NAMES).clamp(1, NAMES);
    let mut names: Vec<String> = Vec::new();
    let mut more = false;
    let wanted = Wanted {
        hidden: glob.hidden(),
        glob: Some(&glob),
        kind: Kind::Names,
    };
    let gaps = walk::walk(&root, &wanted, work, |entry, below, _| {
        if names.len() == limit {
            more = true;
            return Ok(Next::Enough);
        }
        let mut name = path::display(place, &walk::asked_path(&asked, below));
        if entry.kind == access::Kind::Directory {
            name.push('/');
        }
        names.push(name);
        Ok(Next::Go)
    })?;
    let text = names.join("\n");
    let cut = truncate::head(&text);
    let mut shown = cut.text.trim_end_matches('\n').to_owned();
    if names.is_empty() {
        shown.push_str("no names match");
    }
    let truncated = more || cut.truncated;
    if truncated {
        shown.push_str(&format!(
            "\n\n[the first {} names are shown; there are more: narrow the pattern or the path]",
            cut.lines
        ));
    }
    if let Some(notice) = gaps.notice() {
        shown.push_str(&format!("\n\n[{notice}]"));
    }
    let summary = match names.len() {
        1 => "1 name".to_owned(),
        count => format!("{count}{} names", if more { " or more" } else { "" }),
    };
    Ok(ToolOutput {
        truncated,
        ..ToolOutput::text(shown, summary)
    })
}
