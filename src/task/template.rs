//! Templates in the texts of a task: `{{ name }}` stands for a parameter.
//!
//! The tree exists before its texts are rendered, so a value can never add a
//! key, an item or a type. Values from elsewhere are fenced as data; a template
//! never sees them, but a mark in their place, so whatever it does to its text,
//! they come out whole or not at all, and where they stand is known.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use serde_json::Value;

use crate::policy::changes_rules;
use crate::task::diagnostics::{At, Report, did_you_mean};
use crate::task::parameters::{Param, Params};
use crate::task::tree::{Kind, Node};
use crate::task::untrusted::{self, Fence, find};

/// Steps of one template; a loop over a parameter's characters fits, a bomb does not.
const FUEL: u64 = 200_000;

/// The most that one text may become, in bytes.
const RENDERED_MAX: usize = 4 << 20;

/// Renders texts with the parameters of a task and notes which were used.
pub(super) struct Templates<'a> {
    environment: Environment<'static>,
    params: &'a Params,
    values: BTreeMap<&'a str, minijinja::Value>,
    /// The fenced texts behind the marks.
    fences: Vec<Fence>,
    /// Where they stand in the prompt.
    untrusted: Vec<Range<usize>>,
    used: BTreeSet<String>,
}

impl<'a> Templates<'a> {
    /// Templates that know `params`.
    pub(super) fn new(params: &'a Params) -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_syntax(keep_trailing_newline());
        environment.set_fuel(Some(FUEL));
        environment.remove_global("debug");
        let mut fences = Vec::new();
        let values = params
            .iter()
            .filter_map(|(name, param)| {
                let value = match param.value.as_ref()? {
                    Value::Null => minijinja::Value::from(""),
                    Value::String(text) if param.untrusted => {
                        let fence = Fence::new(fences.len(), name, text);
                        let mark = fence.mark.clone();
                        fences.push(fence);
                        mark.into()
                    }
                    value => minijinja::value::Serde(value).into(),
                };
                Some((name.as_str(), value))
            })
            .collect();
        Self {
            environment,
            params,
            values,
            fences,
            untrusted: Vec::new(),
            used: BTreeSet::new(),
        }
    }

    /// Renders all texts below `node`, in place; what cannot be rendered is
    /// reported and becomes [`Kind::Broken`].
    pub(super) fn tree(&mut self, node: &mut Node, report: &mut Report) {
        match &mut node.kind {
            Kind::Map(entries) => {
                for entry in entries {
                    match entry.key.as_str() {
                        "prompt" => self.prompt(&mut entry.value, report),
                        "permissions" => self.permissions(&mut entry.value, report),
                        _ => self.inner(&mut entry.value, Place::Elsewhere, report),
                    }
                }
            }
            _ => self.inner(node, Place::Elsewhere, report),
        }
    }

    fn permissions(&mut self, node: &mut Node, report: &mut Report) {
        let Kind::Map(entries) = &mut node.kind else {
            return self.inner(node, Place::Elsewhere, report);
        };
        for entry in entries {
            let place = match entry.key.as_str() {
                "allow" | "ask" | "deny" => Place::Rule,
                _ => Place::Elsewhere,
            };
            self.inner(&mut entry.value, place, report);
        }
    }

    fn inner(&mut self, node: &mut Node, place: Place, report: &mut Report) {
        match &mut node.kind {
            Kind::List(items) => items
                .iter_mut()
                .for_each(|item| self.inner(item, place, report)),
            Kind::Map(entries) => {
                entries
                    .iter_mut()
                    .for_each(|entry| self.inner(&mut entry.value, place, report));
            }
            _ => self.leaf(node, place, report),
        }
    }

    /// Renders one text outside the prompt.
    pub(super) fn text(&mut self, node: &mut Node, report: &mut Report) {
        self.leaf(node, Place::Elsewhere, report);
    }

    /// Renders the prompt, the only text that may use untrusted parameters.
    pub(super) fn prompt(&mut self, node: &mut Node, report: &mut Report) {
        self.leaf(node, Place::Prompt, report);
    }

    /// Reports the parameters that nothing used.
    pub(super) fn report_unused(&self, report: &mut Report) {
        for (name, param) in self.params {
            if param.declared && !self.used.contains(name) {
                let message = format!("the parameter `{name}` is not used");
                let hint =
                    format!("write `{{{{ {name} }}}}` where its value belongs, or remove it");
                report.error_with(param.at, "unused_parameter", message, hint);
            }
        }
    }

    fn leaf(&mut self, node: &mut Node, place: Place, report: &mut Report) {
        let Kind::Text(text) = &node.kind else { return };
        if node.literal || !["{{", "{%", "{#"].iter().any(|open| text.contains(open)) {
            return;
        }
        let text = text.clone();
        node.kind = match self.render(&text, node.at, place, report) {
            Some(rendered) => Kind::Text(rendered),
            None => Kind::Broken,
        };
    }

    fn render(&mut self, text: &str, at: At, place: Place, report: &mut Report) -> Option<String> {
        let template = match self.environment.template_from_str(text) {
            Ok(template) => template,
            Err(error) => {
                report.error_with(at, "bad_template", explain(&error), literal_hint());
                let params = self
                    .params
                    .keys()
                    .filter(|name| text.contains(name.as_str()));
                self.used.extend(params.cloned());
                return None;
            }
        };
        let mut fine = true;
        let undeclared = template.undeclared_variables(false).into_iter();
        // The list has gaps: it does not look into slices.
        let named = self
            .params
            .keys()
            .filter(|name| untrusted::is_named(text, name));
        let names: BTreeSet<String> = undeclared.chain(named.cloned()).collect();
        for name in names {
            let Some(param) = self.params.get(&name) else {
                if self.environment.globals().any(|(global, _)| global == name) {
                    continue;
                }
                let message = format!("`{name}` is no parameter of this task");
                let hint = did_you_mean(&name, self.params.keys().map(String::as_str))
                    .or_else(|| Some(format!("declare it under `parameters`; {}", literal_hint())));
                report.error_with(
                    find(report.text(at.source), at, &name),
                    "undefined",
                    message,
                    hint,
                );
                fine = false;
                continue;
            };
            self.used.insert(name.clone());
            fine &= param.value.is_some() && self.may_use(param, &name, (text, at, place), report);
        }
        if !fine {
            return None;
        }
        let mut output = Capped(Vec::new());
        if let Err(error) = template.render_captured_to(&self.values, &mut output) {
            report.error(at, "bad_template", explain(&error));
            return None;
        }
        let rendered = String::from_utf8(output.0).ok()?;
        let unmarked = untrusted::unmark(&rendered, &self.fences, RENDERED_MAX);
        let Some((text, untrusted)) = unmarked else {
            report.error(at, "bad_template", too_long());
            return None;
        };
        if place == Place::Prompt {
            self.untrusted = untrusted;
        }
        Some(text)
    }

    /// Whether a parameter may be used by a text that stands there; what is wrong is
    /// reported.
    fn may_use(
        &self,
        param: &Param,
        name: &str,
        (text, at, place): (&str, At, Place),
        report: &mut Report,
    ) -> bool {
        let written = report.text(at.source);
        if param.untrusted
            && let Some(message) = self.misuse(text, name, place)
        {
            let misuse = untrusted::find_misuse(written, at, name);
            let misuse = misuse.filter(|_| place == Place::Prompt);
            let at = misuse.unwrap_or_else(|| find(written, at, name));
            report.error(at, "untrusted", message);
            return false;
        }
        let changes = param.value.as_ref().and_then(changes_rule);
        let Some(why) = changes.filter(|_| place == Place::Rule) else {
            return true;
        };
        let at = find(written, at, name);
        let message = format!("the value of `{name}` cannot be used in a rule, because {why}");
        let hint = format!("give `{name}` a `pattern` such as '[A-Za-z0-9._-]+'");
        report.error_with(at, "bad_parameter", message, Some(hint));
        false
    }

    /// Where untrusted parameters stand in the prompt that was rendered.
    pub(super) fn take_untrusted(&mut self) -> Vec<Range<usize>> {
        std::mem::take(&mut self.untrusted)
    }

    /// Why an untrusted parameter cannot be used like this.
    fn misuse(&self, text: &str, name: &str, place: Place) -> Option<String> {
        if place != Place::Prompt {
            return Some(format!(
                "`{name}` is untrusted: it can be used in the prompt only"
            ));
        }
        // With its plain uses taken away, nothing may be left that reads it: a
        // filter or a slice could take the fence off.
        let rest = untrusted::without_plain_uses(text, name);
        let left = self
            .environment
            .template_from_str(&rest)
            .ok()?
            .undeclared_variables(false);
        (left.contains(name) || untrusted::is_named(&rest, name)).then(|| {
            format!("`{name}` is untrusted: it can only be inserted as `{{{{ {name} }}}}`")
        })
    }
}

/// The usual braces; what a text ends with stays.
fn keep_trailing_newline() -> SyntaxConfig {
    SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .build()
        .unwrap_or_default()
}

/// Where a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Prompt,
    /// A permission rule, whose meaning no value may change.
    Rule,
    Elsewhere,
}

/// Why a value cannot stand in a rule.
fn changes_rule(value: &Value) -> Option<String> {
    match value {
        Value::Null => changes_rules(""),
        Value::String(text) => changes_rules(text),
        // Digits and names.
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn explain(error: &minijinja::Error) -> String {
    match error.kind() {
        ErrorKind::OutOfFuel => "the template does too much".to_owned(),
        ErrorKind::WriteFailure => too_long(),
        kind => {
            let line = error
                .line()
                .filter(|line| *line > 1)
                .map(|line| format!(" (line {line} of the text)"));
            let what = error
                .detail()
                .map_or_else(|| kind.to_string(), str::to_owned);
            format!("the template is wrong: {what}{}", line.unwrap_or_default())
        }
    }
}

fn too_long() -> String {
    format!("the template makes more than {RENDERED_MAX} bytes")
}

fn literal_hint() -> String {
    "for braces that stand for themselves write {% raw %}…{% endraw %}".to_owned()
}

/// A buffer that refuses more than [`RENDERED_MAX`].
struct Capped(Vec<u8>);

impl io::Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > RENDERED_MAX {
            return Err(io::Error::other("too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
