//! `edit`: exact replacements in one file, all or none.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::Access;
use crate::tool::diff::Difference;
use crate::tool::file::Target;
use crate::tool::replacement::{self, Replacement};
use crate::tool::work::{self, Failed, Work};
use crate::tool::{
    CallContext, CallFuture, FileLedger, Place, Tool, ToolOutput, ToolSpec, arguments, path,
    title_text,
};

/// The tool.
#[derive(Debug)]
pub(super) struct Edit {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    edits: Vec<Replacement>,
}

impl Edit {
    /// The tool.
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: "edit".to_owned(),
            description: "Replace texts in one file that was read before. Each oldText must be in the file exactly \
                          once, as it was before this call, and no two may overlap; either all edits are made or \
                          none. Line endings, byte-order mark and mode of the file stay as they are."
                .to_owned(),
            short_description: "Replace exact texts in files".to_owned(),
            guidelines: vec![
                "Make all changes to one file in one edit call, with several entries in edits.".to_owned(),
                "Keep oldText as short as it can be while it is unique; copy it from the file, do not retype it."
                    .to_owned(),
            ],
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The file, absolute or relative to the workspace."
                    },
                    "edits": {
                        "type": "array",
                        "minItems": 1,
                        "description": "The replacements, each found in the file as it is now.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "oldText": {
                                    "type": "string",
                                    "minLength": 1,
                                    "description": "The text to replace; it must be there exactly once."
                                },
                                "newText": {
                                    "type": "string",
                                    "description": "What shall be there instead; empty removes it."
                                }
                            },
                            "required": ["oldText", "newText"],
                            "additionalProperties": false
                        }
                    }
                },
                "required": ["path", "edits"],
                "additionalProperties": false
            }),
        };
        Self { spec }
    }
}

impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, args: &Value) -> String {
        format!("edit {}", title_text(args, "path"))
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
                edit(&arguments(&args)?, &place, &ledger, work)
            })
            .await
        })
    }
}

fn edit(
    args: &Arguments,
    place: &Place,
    ledger: &FileLedger,
    work: &Work,
) -> Result<ToolOutput, Failed> {
    let asked = path::resolve(place, &args.path)?;
    let target = Target::find(place, &asked, work)?;
    let Some(existing) = &target.existing else {
        return Err(format!(
            "{}; use write to make a new file",
            path::missing(place, &asked, work)
        )
        .into());
    };
    target.check_fresh(ledger)?;
    let shown = &target.shown;
    let old = existing.content.as_slice();
    if old.contains(&0) {
        return Err(format!("`{shown}` is a binary file; it cannot be edited as text").into());
    }
    let new = replacement::apply(old, &args.edits).map_err(|why| format!("`{shown}`: {why}"))?;
    let difference = Difference::between(shown, Some(old), &new);
    work.go_on()?;
    target.replace(&new, ledger, work)?;
    let count = match args.edits.len() {
        1 => "1 edit".to_owned(),
        count => format!("{count} edits"),
    };
    Ok(ToolOutput {
        files: vec![target.real.clone()],
        ..ToolOutput::text(
            format!("made {count} in `{shown}` ({})", difference.counts()),
            format!("edited {shown} ({})", difference.counts()),
        )
    }
    .with_details(difference.details(shown)))
}
