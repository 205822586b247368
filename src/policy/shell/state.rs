//! What is known of the shell at a point of the line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::syntax::Command;
use super::{Edit, Namer};

/// More directories than this are not kept apart.
const DIRECTORIES_MAX: usize = 8;

/// The value of a variable that the line assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Known(String),
    Names(Names),
    /// An integer.
    Number,
    /// What git answers when it is asked for a commit: one word that is not an
    /// option. Of its letters arithmetic could make the name of a variable.
    Commit,
    /// The elements of an array.
    List(Vec<Field>),
    Unknown,
}

/// A name of a file that a glob matches, or the glob itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) pattern: String,
    /// How the name is changed.
    pub(super) edit: Edit,
}

impl Names {
    /// The names that a field stands for.
    pub(super) fn of(field: &Field) -> Self {
        Self {
            pattern: field.text.clone(),
            edit: field.edit.clone().unwrap_or_default(),
        }
    }

    /// The field that stands for them, with texts before and behind.
    pub(super) fn field(self, before: &str, behind: &str, splits: bool) -> Field {
        let edit = self.edit.between(before, behind);
        Field {
            text: self.pattern,
            glob: true,
            splits,
            literal: false,
            edit: Some(edit).filter(|edit| *edit != Edit::default()),
        }
    }
}

/// A word after expansion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Field {
    pub(super) text: String,
    /// Whether it is a glob.
    pub(super) glob: bool,
    /// Whether it may become several words or none.
    pub(super) splits: bool,
    /// Whether it stands in the line as it is.
    pub(super) literal: bool,
    /// How the names that a glob stands for are changed.
    pub(super) edit: Option<Edit>,
}

impl Field {
    pub(super) fn sure(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            literal: true,
            ..Self::default()
        }
    }

    /// A word that may be anything, several words or none.
    pub(super) fn anything() -> Self {
        Self {
            text: super::UNKNOWN.to_string(),
            splits: true,
            ..Self::default()
        }
    }

    /// The text, when it is all there is to the word.
    pub(super) fn known(&self) -> Option<&str> {
        (!self.glob && !self.text.contains([super::UNKNOWN, super::NUMBER]))
            .then_some(self.text.as_str())
    }
}

/// A function: what its name may run.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) bodies: Vec<Rc<Command>>,
    /// Whether the name may also run what it would without the function.
    pub(super) perhaps: bool,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Rc<Command>, &Rc<Command>)| Rc::ptr_eq(a, b);
        self.perhaps == other.perhaps
            && self.bodies.len() == other.bodies.len()
            && self.bodies.iter().zip(&other.bodies).all(same)
    }
}

/// The state of a shell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    /// Variables that the line assigned; others are as the runner set them.
    pub(super) values: BTreeMap<String, Value>,
    /// Variables that may refuse to be assigned.
    pub(super) frozen: BTreeSet<String>,
    pub(super) functions: BTreeMap<String, Function>,
    /// Where the shell may be.
    pub(super) directories: Vec<PathBuf>,
    /// `$1` and so on, when they are known.
    pub(super) arguments: Option<Vec<Field>>,
    /// Whether variables may have been assigned out of sight.
    pub(super) hazy: bool,
    /// Whether standard input is a pipe or a here-document.
    pub(super) fed: bool,
    /// The command that prints the names of files which standard input has.
    pub(super) names: Option<Rc<Namer>>,
}

impl State {
    pub(super) fn new(workspace: &Path) -> Self {
        Self {
            values: BTreeMap::new(),
            frozen: BTreeSet::new(),
            functions: BTreeMap::new(),
            directories: vec![workspace.to_owned()],
            arguments: Some(Vec::new()),
            hazy: false,
            fed: false,
            names: None,
        }
    }

    /// The state of a shell that this one starts.
    pub(super) fn child(&self, arguments: Vec<Field>) -> Self {
        Self {
            values: BTreeMap::new(),
            frozen: BTreeSet::new(),
            functions: BTreeMap::new(),
            directories: self.directories.clone(),
            arguments: Some(arguments),
            hazy: self.hazy || !self.values.is_empty(),
            fed: self.fed,
            names: None,
        }
    }

    /// The value of a variable; none when only the runner can have set it.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        const HAZY: &Value = &Value::Unknown;
        self.values.get(name).or_else(|| self.hazy.then_some(HAZY))
    }

    /// Functions may have been removed or replaced.
    pub(super) fn doubt_functions(&mut self) {
        for function in self.functions.values_mut() {
            function.perhaps = true;
        }
    }

    /// Variables may have been assigned out of sight.
    pub(super) fn forget_values(&mut self) {
        self.values.clear();
        self.hazy = true;
        self.arguments = None;
    }

    /// What is known when the shell may be in this state or in another.
    pub(super) fn joined(mut self, other: &Self) -> Self {
        self.hazy |= other.hazy;
        self.fed |= other.fed;
        if self.names != other.names {
            self.names = None;
        }
        let names: BTreeSet<String> = self
            .values
            .keys()
            .chain(other.values.keys())
            .cloned()
            .collect();
        for name in names {
            let value = match (self.values.get(&name), other.values.get(&name)) {
                (Some(one), Some(two)) => join_values(one, two),
                _ => Value::Unknown,
            };
            self.values.insert(name, value);
        }
        self.frozen.extend(other.frozen.iter().cloned());
        for (name, theirs) in &other.functions {
            match self.functions.get_mut(name) {
                None => {
                    let function = Function {
                        perhaps: true,
                        ..theirs.clone()
                    };
                    self.functions.insert(name.clone(), function);
                }
                Some(mine) => {
                    mine.perhaps |= theirs.perhaps;
                    for body in &theirs.bodies {
                        if !mine.bodies.iter().any(|known| Rc::ptr_eq(known, body)) {
                            mine.bodies.push(Rc::clone(body));
                        }
                    }
                }
            }
        }
        for (name, mine) in &mut self.functions {
            mine.perhaps |= !other.functions.contains_key(name);
        }
        for directory in &other.directories {
            if !self.directories.contains(directory) {
                self.directories.push(directory.clone());
            }
        }
        if self.arguments != other.arguments {
            self.arguments = None;
        }
        self
    }

    /// Whether the shell may be in too many places.
    pub(super) fn is_lost(&self) -> bool {
        self.directories.len() > DIRECTORIES_MAX
    }
}

fn join_values(one: &Value, two: &Value) -> Value {
    let numeric = |value: &Value| match value {
        Value::Number => true,
        Value::Known(text) => is_number(text),
        Value::Names(_) | Value::Commit | Value::List(_) | Value::Unknown => false,
    };
    match (one, two) {
        _ if one == two => one.clone(),
        _ if numeric(one) && numeric(two) => Value::Number,
        _ => Value::Unknown,
    }
}

/// Whether a text is a decimal integer.
pub(super) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.len() < 18 && digits.bytes().all(|byte| byte.is_ascii_digit())
}
