//! `write`: a whole file, new or in place of an old one.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::Access;
use crate::tool::diff::Difference;
use crate::tool::file::Target;
use crate::tool::work::{self, Failed, Work};
use crate::tool::{
    CallContext, CallFuture, FileLedger, Place, Tool, ToolOutput, ToolSpec, arguments, path,
    title_text,
};

/// The tool.
#[derive(Debug)]
pub(super) struct Write {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

impl Write {
    /// The tool.
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: "write".to_owned(),
            description: "Write a whole file: makes a new one, with the directories it needs, or replaces an \
                          existing one that was read before and has not changed since."
                .to_owned(),
            short_description: "Create or overwrite files".to_owned(),
            guidelines: vec!["Use write for new files and complete rewrites, edit for everything smaller.".to_owned()],
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The file, absolute or relative to the workspace."
                    },
                    "content": {
                        "type": "string",
                        "description": "All that shall be in the file."
                    }
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }),
        };
        Self { spec }
    }
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, args: &Value) -> String {
        format!("write {}", title_text(args, "path"))
    }

    fn accesses(&self, args: &Value, place: &Place) -> Result<Vec<Access>, String> {
        let args: Arguments = arguments(args)?;
        Ok(vec![Access::Write(path::resolve(place, &args.path)?)])
    }

    fn call<'a>(&'a self, args: Value, cx: CallContext<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let place = cx.place.clone();
            let ledger = cx.files.clone();
            work::run(&cx, move |work| {
                write(&arguments(&args)?, &place, &ledger, work)
            })
            .await
        })
    }
}

fn write(
    args: &Arguments,
    place: &Place,
    ledger: &FileLedger,
    work: &Work,
) -> Result<ToolOutput, Failed> {
    let asked = path::resolve(place, &args.path)?;
    if args.path.ends_with('/') {
        return Err(format!("`{}` names a directory", args.path).into());
    }
    let target = Target::find(place, &asked, work)?;
    target.check_fresh(ledger)?;
    let new = args.content.as_bytes();
    let old = target.existing.as_ref().map(|old| old.content.as_slice());
    let shown = &target.shown;
    if old == Some(new) {
        return Ok(ToolOutput::text(
            format!("`{shown}` has this content already"),
            "unchanged",
        ));
    }
    let difference = Difference::between(shown, old, new);
    work.go_on()?;
    target.replace(new, ledger, work)?;
    let did = if old.is_some() { "replaced" } else { "created" };
    let lines = args.content.lines().count();
    Ok(ToolOutput {
        files: vec![target.real.clone()],
        ..ToolOutput::text(
            format!("{did} `{shown}` ({lines} lines)"),
            format!("{did} {shown} ({})", difference.counts()),
        )
    }
    .with_details(difference.details(shown)))
}
