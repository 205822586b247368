//! From a tree to a job: parameters, templates, checks, paths, rules.

use crate::access::WorkingCopies;
use crate::task::diagnostics::{At, Diagnostics, Report};
use crate::task::file::TaskFile;
use crate::task::overrides::Overrides;
use crate::task::parameters::{self, Places};
use crate::task::plan::Job;
use crate::task::template::Templates;
use crate::task::tree::{Kind, Node};
use crate::task::{read, schema, validate, yaml};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The largest task file, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Loads a task file and resolves everything in it: after this nothing about
/// the task is read, looked up or guessed again.
///
/// A relative path that is written in the file starts at the file's
/// directory; one that comes from a flag, and every default, starts at
/// `overrides.cwd`.
///
/// # Errors
///
/// Everything that is wrong with the file, its parameters and the flags, in
/// one report.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Job, Diagnostics> {
    let mut report = Report::default();
    let file = overrides.cwd.join(path);
    let text = match read::text(&file, FILE_MAX) {
        Ok(text) => text,
        Err(error) => {
            let source = report.source(path.display().to_string(), "");
            let at = report.whole(source);
            report.unread(at, &error);
            return Err(report.into_diagnostics());
        }
    };
    let source = report.source(path.display().to_string(), text);
    let Some(root) = yaml::parse(&mut report, source) else {
        return Err(report.into_diagnostics());
    };
    let task_dir = file.parent().unwrap_or(&overrides.cwd).to_owned();
    let resolution = Resolution {
        overrides,
        task_dir,
        file: Some(file),
        task_source: source,
        copies: WorkingCopies::default(),
        report,
    };
    resolution.run(root)
}

/// Resolves the task that `agent -p` stands for: the prompt, literally, in the
/// current directory, with the same flags and defaults as a file.
///
/// # Errors
///
/// Everything that is wrong with the flags, in one report.
pub fn implicit(prompt: &str, overrides: &Overrides) -> Result<Job, Diagnostics> {
    let mut report = Report::default();
    let source = report.source("-p", prompt);
    let at = report.whole(source);
    let mut root = Node::literal(Kind::Map(Vec::new()), at);
    root.set(&["version"], Node::literal(Kind::Number(1.into()), at));
    root.set(
        &["name"],
        Node::literal(Kind::Text("prompt".to_owned()), at),
    );
    root.set(
        &["prompt"],
        Node::literal(Kind::Text(prompt.to_owned()), at),
    );
    let task_dir = overrides.cwd.clone();
    Resolution {
        overrides,
        task_dir,
        file: None,
        task_source: source,
        copies: WorkingCopies::default(),
        report,
    }
    .run(root)
}

/// A task on its way to a job.
pub(super) struct Resolution<'a> {
    /// The command line.
    pub(super) overrides: &'a Overrides,
    /// The directory of the task file.
    pub(super) task_dir: PathBuf,
    /// The task file.
    pub(super) file: Option<PathBuf>,
    /// The source that the task was read from.
    pub(super) task_source: usize,
    /// Directories whose links may be anybody's.
    pub(super) copies: WorkingCopies,
    /// What is wrong so far.
    pub(super) report: Report,
}

/// The two long texts, rendered.
pub(super) struct Texts {
    /// What to do.
    pub(super) prompt: String,
    /// Where in it untrusted parameters stand.
    pub(super) untrusted: Vec<Range<usize>>,
    /// The system-side part.
    pub(super) instructions: Option<String>,
}

impl Resolution<'_> {
    fn run(mut self, mut root: Node) -> Result<Job, Diagnostics> {
        if !matches!(root.kind, Kind::Map(_)) {
            let message = match root.kind {
                Kind::Null => "the file is empty".to_owned(),
                _ => "a task must be a map of keys to values".to_owned(),
            };
            let hint = "the shortest task is `version: 1` and `prompt: …`".to_owned();
            self.report.error_with(root.at, "wrong_type", message, hint);
            return Err(self.report.into_diagnostics());
        }
        self.overrides.apply(&mut root, &mut self.report);
        let declared = root.take("parameters");
        let places = self.places(&root);
        self.copies = places.copies.clone();
        let report = &mut self.report;
        let params = parameters::resolve(declared.as_ref(), self.overrides, &places, report);
        let mut templates = Templates::new(&params);
        templates.tree(&mut root, report);
        let texts = self.texts(&root, &mut templates);
        templates.report_unused(&mut self.report);
        // This takes out what is wrong, so that the rest is decoded and looked
        // at too, and all that is wrong with it is in the same report.
        validate::check_all(&mut root, schema::task(), &mut self.report);
        if root.get("version").is_none() {
            root.set(&["version"], Node::literal(Kind::Number(1.into()), root.at));
        }
        let task = match serde_json::from_value::<TaskFile>(root.to_json()) {
            Ok(task) => task,
            Err(error) => {
                self.report.error(root.at, "bad_task", error.to_string());
                return Err(self.report.into_diagnostics());
            }
        };
        let job = self.job(task, &root, texts, &params);
        if self.report.is_clean() {
            Ok(job)
        } else {
            Err(self.report.into_diagnostics())
        }
    }

    /// Where files are that parameters may name.
    fn places(&self, root: &Node) -> Places {
        let written = root.at_path(&["workspace", "path"]);
        let workspace = match written.and_then(|node| Some((node, node.text()?))) {
            None => Some(self.overrides.cwd.clone()),
            Some((_, path)) if path.contains("{{") || path.contains("{%") => None,
            Some((node, path)) => Some(self.base(node.at).join(self.expand_home(path))),
        };
        Places {
            copies: WorkingCopies::around(workspace.as_deref())
                .with_repository_of(&self.task_dir)
                .with_repository_of(&self.overrides.cwd),
            task_dir: self.task_dir.clone(),
            workspace,
        }
    }

    /// The prompt and the instructions, from the file itself or from theirs.
    fn texts(&mut self, root: &Node, templates: &mut Templates<'_>) -> Texts {
        let prompt = self.text(root, "prompt", "prompt_file", templates);
        let written = |key| {
            root.get(key)
                .is_some_and(|node| !matches!(node.kind, Kind::Null))
        };
        if !written("prompt") && !written("prompt_file") {
            let hint = "write `prompt: …`, or `prompt_file: FILE`".to_owned();
            self.report
                .error_with(root.at, "missing_key", "the task has no prompt", hint);
        }
        if let Some((text, at)) = &prompt
            && text.trim().is_empty()
        {
            self.report
                .error(*at, "out_of_range", "the prompt is empty");
        }
        let instructions = self.text(root, "instructions", "instructions_file", templates);
        Texts {
            untrusted: templates.take_untrusted(),
            prompt: prompt.map(|(text, _)| text).unwrap_or_default(),
            instructions: instructions
                .map(|(text, _)| text)
                .filter(|text| !text.trim().is_empty()),
        }
    }

    fn text(
        &mut self,
        root: &Node,
        key: &str,
        file_key: &str,
        templates: &mut Templates<'_>,
    ) -> Option<(String, At)> {
        let inline = root
            .get(key)
            .filter(|node| !matches!(node.kind, Kind::Null));
        let file = root
            .get(file_key)
            .filter(|node| !matches!(node.kind, Kind::Null));
        if let (Some(_), Some(file)) = (inline, file) {
            let message = format!("`{key}` and `{file_key}` cannot both be there");
            self.report.error(file.at, "conflict", message);
        }
        if let Some(node) = inline {
            return node.text().map(|text| (text.to_owned(), node.at));
        }
        let (node, path) = (file?, file?.text()?);
        let path = self.base(node.at).join(path);
        let text = match read::text_within(&self.copies, &path, FILE_MAX) {
            Ok(text) => text,
            Err(error) => {
                self.report.unread(node.at, &error);
                return None;
            }
        };
        let source = self.report.source(path.display().to_string(), text.clone());
        let at = self.report.whole(source);
        let mut content = Node {
            kind: Kind::Text(text),
            at,
            literal: false,
        };
        match key {
            "prompt" => templates.prompt(&mut content, &mut self.report),
            _ => templates.text(&mut content, &mut self.report),
        }
        content.text().map(|text| (text.to_owned(), node.at))
    }

    /// Where a relative path written at `at` starts.
    pub(super) fn base(&self, at: At) -> &Path {
        if at.source == self.task_source {
            &self.task_dir
        } else {
            &self.overrides.cwd
        }
    }
}
