//! From words to what a program gets: expansions, splitting, globs found.

use super::builtin;
use super::state::{Field, Names, State, Value};
use super::syntax::{Form, Kind, Operator, Parameter, Piece, Script, Word, is_glob};
use super::tilde::no_visited_directory;
use super::walk::Walker;
use super::{Edit, NUMBER, Refusal, UNKNOWN, brace, refuse};

/// More words than this are not looked at in one command.
const WORDS_MAX: usize = 4096;

/// More texts are not kept that unknown words may turn out to be.
const TEXTS_MAX: usize = 256;

/// Marks that make a word a glob.
const GLOB: [char; 3] = ['*', '?', '['];

/// Marks by which a text outside quotes means more than itself.
const ACTIVE: [char; 5] = ['*', '?', '[', '\\', '~'];

/// Parameters that are always integers.
pub(super) const NUMBERS: &[&str] = &[
    "?",
    "#",
    "$",
    "BASHPID",
    "EPOCHSECONDS",
    "EUID",
    "LINENO",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
    "UID",
];

/// The fields that a word becomes, while they are put together.
#[derive(Default)]
struct Building {
    done: Vec<Field>,
    open: Option<Field>,
    /// Whether the open field has a mark of globs that is quoted.
    quoted_mark: bool,
    /// And one that is not.
    plain_mark: bool,
}

impl Building {
    fn quoted(&mut self, text: &str) {
        self.quoted_mark |= text.contains(GLOB) || text.contains('\\');
        self.open.get_or_insert_default().text.push_str(text);
    }

    fn plain(&mut self, text: &str) {
        let field = self.open.get_or_insert_default();
        field.text.push_str(text);
        self.plain_mark |= text.contains(GLOB);
    }

    /// A known value outside quotes.
    fn split(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                ' ' | '\t' | '\n' => self.end(),
                '\\' => self.quoted("\\"),
                c => self.plain(c.encode_utf8(&mut [0; 4])),
            }
        }
    }

    fn unknown(&mut self, quoted: bool) {
        let field = self.open.get_or_insert_default();
        field.text.push(UNKNOWN);
        field.splits |= !quoted;
    }

    fn number(&mut self) {
        self.open.get_or_insert_default().text.push(NUMBER);
    }

    fn end(&mut self) {
        let quoted_mark = std::mem::take(&mut self.quoted_mark);
        let plain_mark = std::mem::take(&mut self.plain_mark);
        let Some(mut field) = self.open.take() else {
            return;
        };
        field.glob = plain_mark && is_glob(&field.text);
        if field.glob && (quoted_mark || field.text.contains([UNKNOWN, NUMBER])) {
            field.glob = false;
            let end = field.text.find(GLOB).unwrap_or_default();
            field.text.truncate(end);
            field.text.push(UNKNOWN);
        }
        let more = field.splits && !field.glob && field.text.chars().ne([UNKNOWN]);
        self.done.push(field);
        if more {
            self.done.push(Field::anything());
        }
    }
}

impl Walker {
    /// Notes a text that a word may turn out to be which is not known.
    pub(super) fn may_turn_out(&mut self, text: &str) {
        let texts = &mut self.analysis.texts;
        let new = !text.is_empty() && !texts.iter().any(|known| known == text);
        if new && texts.len() < TEXTS_MAX {
            texts.push(text.to_owned());
        }
    }

    /// Notes what is left of a variable when an end of it is cut off.
    fn may_turn_out_part(&mut self, name: &str, state: &State) {
        if let Value::Known(text) = self.plain_value(name, state) {
            for (at, _) in text.char_indices() {
                let (begin, end) = text.split_at(at);
                self.may_turn_out(begin);
                self.may_turn_out(end);
            }
        }
    }

    /// The fields of several words.
    pub(super) fn all_fields(
        &mut self,
        words: &[Word],
        state: &mut State,
    ) -> Result<Vec<Field>, Refusal> {
        let mut fields = Vec::new();
        for word in words {
            fields.extend(self.fields(word, state)?);
            if fields.len() > WORDS_MAX {
                return refuse("a command has too many words");
            }
        }
        Ok(fields)
    }

    /// The fields that a word of a command becomes.
    pub(super) fn fields(&mut self, word: &Word, state: &mut State) -> Result<Vec<Field>, Refusal> {
        let mut fields = Vec::new();
        for pieces in brace::expand(&word.pieces)? {
            no_visited_directory(&pieces)?;
            let mut building = Building::default();
            if let Some(field) = self.names(&pieces, state)? {
                fields.push(field);
                continue;
            }
            for piece in &pieces {
                self.add(piece, state, &mut building)?;
            }
            building.end();
            fields.append(&mut building.done);
        }
        if word.is_literal() {
            fields.iter_mut().for_each(|field| field.literal = true);
        }
        Ok(fields)
    }

    /// The word that pieces are with one variable among them whose value is the
    /// name of a file; none when they are something else.
    fn names(&mut self, pieces: &[Piece], state: &mut State) -> Result<Option<Field>, Refusal> {
        let (mut before, mut behind) = (String::new(), String::new());
        let mut found = None;
        for piece in pieces {
            let text = match piece {
                Piece::Text { text, quoted } if *quoted || !text.contains(ACTIVE) => text.clone(),
                Piece::Parameter(parameter) => match self.parameter(parameter, state)? {
                    Value::Names(names) if found.is_none() => {
                        found = Some((names, !parameter.quoted));
                        continue;
                    }
                    Value::Known(text) if parameter.quoted => text,
                    _ => return Ok(None),
                },
                _ => return Ok(None),
            };
            match found {
                None => before.push_str(&text),
                Some(_) => behind.push_str(&text),
            }
        }
        Ok(found.map(|(names, splits)| names.field(&before, &behind, splits)))
    }

    /// What an expansion stands for, and whether it is quoted.
    pub(super) fn value(
        &mut self,
        piece: &Piece,
        state: &mut State,
    ) -> Result<(Value, bool), Refusal> {
        Ok(match piece {
            Piece::Text { text, quoted } => (Value::Known(text.clone()), *quoted),
            Piece::Parameter(parameter) => (self.parameter(parameter, state)?, parameter.quoted),
            Piece::Substitution { script, quoted } => (self.substitution(script, state)?, *quoted),
            Piece::Process(script) => {
                self.script(script, &mut state.clone())?;
                (Value::Known("/dev/fd/63".to_owned()), true)
            }
            Piece::Arithmetic(pieces) => {
                self.arithmetic(pieces, state)?;
                (Value::Number, true)
            }
        })
    }

    fn add(
        &mut self,
        piece: &Piece,
        state: &mut State,
        building: &mut Building,
    ) -> Result<(), Refusal> {
        if let Piece::Text {
            text,
            quoted: false,
        } = piece
        {
            building.plain(text);
            return Ok(());
        }
        let (value, quoted) = self.value(piece, state)?;
        match (value, quoted) {
            (Value::Known(text), true) => building.quoted(&text),
            (Value::Known(text), false) => building.split(&text),
            (Value::Number | Value::Commit, _) => building.number(),
            (Value::Unknown, quoted) => building.unknown(quoted),
            (Value::Names(names), quoted) => {
                // Where the names are is known, and that they begin with it.
                let pattern = match names.edit == Edit::default() {
                    true => names.pattern,
                    false => String::new(),
                };
                let end = pattern.find(GLOB).unwrap_or_default();
                let end = pattern
                    .get(..end)
                    .and_then(|text| text.rfind('/'))
                    .map_or(0, |at| at + 1);
                building.quoted(pattern.get(..end).unwrap_or_default());
                building.unknown(quoted);
            }
            (Value::List(fields), _) => {
                for (at, field) in fields.into_iter().enumerate() {
                    if at > 0 {
                        building.end();
                    }
                    match field.known() {
                        Some(text) if quoted => building.quoted(text),
                        Some(text) => building.split(text),
                        None => building.unknown(quoted && !field.splits && !field.glob),
                    }
                }
            }
        }
        Ok(())
    }

    /// The text of a word that is neither split nor a glob.
    pub(super) fn text(&mut self, pieces: &[Piece], state: &mut State) -> Result<String, Refusal> {
        let mut text = String::new();
        for piece in pieces {
            match self.value(piece, state)?.0 {
                Value::Known(known) => text.push_str(&known),
                Value::Number | Value::Commit => text.push(NUMBER),
                Value::Names(_) | Value::Unknown => text.push(UNKNOWN),
                Value::List(fields) => {
                    let known: Vec<&str> = fields
                        .iter()
                        .map(|field| field.known().unwrap_or("\u{fffd}"))
                        .collect();
                    text.push_str(&known.join(" "));
                }
            }
        }
        Ok(text)
    }

    /// The value that a word has when it is assigned.
    pub(super) fn assigned(&mut self, word: &Word, state: &mut State) -> Result<Value, Refusal> {
        no_visited_directory(&word.pieces)?;
        match sole(&word.pieces) {
            Some(Piece::Parameter(parameter)) => {
                return Ok(match self.parameter(parameter, state)? {
                    Value::List(_) => Value::Unknown,
                    value => value,
                });
            }
            Some(Piece::Substitution { script, .. }) => return self.substitution(script, state),
            Some(Piece::Arithmetic(pieces)) => {
                self.arithmetic(pieces, state)?;
                return Ok(Value::Number);
            }
            _ => {}
        }
        let text = self.text(&word.pieces, state)?;
        Ok(if text.contains([UNKNOWN, NUMBER]) {
            Value::Unknown
        } else {
            Value::Known(text)
        })
    }

    /// What a substitution prints, as far as that can be said.
    fn substitution(&mut self, script: &Script, state: &State) -> Result<Value, Refusal> {
        let mut inner = state.clone();
        self.last = None;
        self.script(script, &mut inner)?;
        let last = self.last.take().unwrap_or_default();
        let [statement] = script.statements.as_slice() else {
            return Ok(Value::Unknown);
        };
        if !statement.rest.is_empty() || statement.background {
            return Ok(Value::Unknown);
        }
        // What stands in a function, a group or a branch may print more, or
        // nothing, and so may what is redirected.
        let [before @ .., command] = statement.first.commands.as_slice() else {
            return Ok(Value::Unknown);
        };
        let Kind::Simple { words, .. } = &command.kind else {
            return Ok(Value::Unknown);
        };
        let program = words.first().and_then(Word::bare);
        let itself = last
            .first()
            .is_some_and(|first| program == Some(first.text.as_str()));
        let redefined = program.is_some_and(|program| inner.functions.contains_key(program));
        let mut redirections = command.redirections.iter();
        if !itself || redefined || !redirections.all(|one| one.operator == Operator::Read) {
            return Ok(Value::Unknown);
        }
        let alone = before.is_empty() && command.redirections.is_empty();
        if let Some(top) = self
            .top
            .as_ref()
            .filter(|_| alone && builtin::asks_for_top(&last))
        {
            // In another directory there may be another repository.
            let here = state
                .directories
                .iter()
                .all(|place| self.is_workspace(place));
            return Ok(match here {
                true => Value::Known(top.display().to_string()),
                false => Value::Unknown,
            });
        }
        Ok(builtin::printed(&last, alone))
    }

    /// The value of `$x` and its forms.
    pub(super) fn parameter(
        &mut self,
        parameter: &Parameter,
        state: &mut State,
    ) -> Result<Value, Refusal> {
        let mut element = None;
        if let Some(subscript) = &parameter.subscript {
            let whole = matches!(subscript.as_slice(), [Piece::Text { text, .. }] if text == "@" || text == "*");
            if !whole {
                element = Some(self.arithmetic(subscript, state)?);
            }
        }
        match &parameter.form {
            Form::Plain => {}
            Form::Length => return Ok(Value::Number),
            Form::Changed(pieces) => {
                no_visited_directory(pieces)?;
                let text = self.text(pieces, state)?;
                self.may_turn_out(&text);
                self.may_turn_out_part(&parameter.name, state);
                return Ok(Value::Unknown);
            }
            Form::Cut(pieces) => {
                let end = self.text(pieces, state)?;
                let value = self.plain_value(&parameter.name, state);
                let cut = match parameter.subscript {
                    None => without_end(value, &end),
                    Some(_) => Value::Unknown,
                };
                if cut == Value::Unknown {
                    self.may_turn_out_part(&parameter.name, state);
                }
                return Ok(cut);
            }
            Form::Assign(pieces) => {
                no_visited_directory(pieces)?;
                let text = self.text(pieces, state)?;
                self.may_turn_out(&text);
                self.set(&parameter.name, Value::Unknown, state)?;
                return Ok(Value::Unknown);
            }
            Form::Slice(pieces) => {
                // `${x:1:2}` has two expressions.
                self.arithmetic(pieces, state)?;
                return Ok(Value::Unknown);
            }
        }
        let value = self.plain_value(&parameter.name, state);
        Ok(match (value, element, &parameter.subscript) {
            (Value::List(fields), Some(index), _) => index
                .parse::<usize>()
                .ok()
                .and_then(|index| fields.get(index)?.known().map(str::to_owned))
                .map_or(Value::Unknown, Value::Known),
            (Value::List(fields), None, None) if !matches!(parameter.name.as_str(), "@" | "*") => {
                let first = fields.first().and_then(Field::known);
                first.map_or(Value::Unknown, |text| Value::Known(text.to_owned()))
            }
            (Value::List(_), None, _) if parameter.quoted && joins(parameter) => Value::Unknown,
            (value, None, _) => value,
            (_, Some(_), _) => Value::Unknown,
        })
    }

    fn plain_value(&self, name: &str, state: &State) -> Value {
        if let Some(value) = state.values.get(name) {
            return value.clone();
        }
        if let Ok(number) = name.parse::<usize>() {
            let Some(arguments) = state.arguments.as_ref().filter(|_| number > 0) else {
                return Value::Unknown;
            };
            let argument = arguments.get(number - 1);
            // One that may be several shifts those behind it.
            let shifted = arguments
                .iter()
                .take(number)
                .any(|field| field.splits || field.glob);
            return match argument.map(Field::known) {
                _ if shifted => Value::Unknown,
                None => Value::Known(String::new()),
                Some(Some(text)) => Value::Known(text.to_owned()),
                Some(None) => Value::Unknown,
            };
        }
        match name {
            "HOME" => Value::Known("~".to_owned()),
            "PWD" => match state.directories.as_slice() {
                [only] => Value::Known(only.display().to_string()),
                _ => Value::Unknown,
            },
            // Another program may have started this shell without it.
            "TMPDIR" if self.outer.is_none() && !state.hazy => match &self.tmpdir {
                Some(place) => Value::Known(place.display().to_string()),
                None => Value::Unknown,
            },
            "@" | "*" => state.arguments.clone().map_or(Value::Unknown, Value::List),
            _ if NUMBERS.contains(&name) => Value::Number,
            _ => Value::Unknown,
        }
    }
}

/// A value without an end that has no wildcards and no tilde, which bash reads
/// as a home directory there.
fn without_end(value: Value, end: &str) -> Value {
    if end.contains(GLOB) || end.contains(['\\', '~', UNKNOWN, NUMBER]) {
        return Value::Unknown;
    }
    match value {
        Value::Known(text) => {
            let stem = text.strip_suffix(end).unwrap_or(&text);
            Value::Known(stem.to_owned())
        }
        // What is cut off a pattern has to show where directories end.
        Value::Names(names) if end.contains(['/', ']']) && !names.pattern.ends_with(end) => {
            Value::Unknown
        }
        Value::Names(names) => match names.edit.without(end) {
            Some(edit) => Value::Names(Names {
                pattern: names.pattern,
                edit,
            }),
            None => Value::Unknown,
        },
        Value::Number | Value::Commit | Value::List(_) | Value::Unknown => Value::Unknown,
    }
}

/// The only piece of a word, apart from empty quotes.
fn sole(pieces: &[Piece]) -> Option<&Piece> {
    let mut rest = pieces
        .iter()
        .filter(|piece| !matches!(piece, Piece::Text { text, .. } if text.is_empty()));
    rest.next().filter(|_| rest.next().is_none())
}

/// Whether all elements become one word.
fn joins(parameter: &Parameter) -> bool {
    parameter.name == "*"
        || matches!(parameter.subscript.as_deref(), Some([Piece::Text { text, .. }]) if text == "*")
}
