//! Commands, as bash's grammar puts them together from words and operators.
//!
//! It is a recursive descent over the text. A reserved word counts only where
//! bash looks for one; what bash would refuse, or read in more than one way, is
//! refused.

use super::read::{Reader, Within};
use super::syntax::{
    Command, Descriptor, Join, Kind, Operator, Pipeline, Redirect, Script, Statement, Target, Word,
};
use super::{Refusal, refuse};

/// Words that end what they stand in, where a command could begin.
const CLOSING: &[&str] = &["then", "do", "done", "fi", "elif", "else", "esac", "}"];

impl Reader<'_> {
    /// The whole text.
    pub(super) fn whole(&mut self) -> Result<Script, Refusal> {
        let script = self.script(&[])?;
        match self.peek() {
            None if self.pending.is_empty() => Ok(script),
            None => refuse("a here-document has no text"),
            Some(c) => refuse(format!("`{c}` stands where no command can")),
        }
    }

    /// Blanks, line ends and comments.
    pub(super) fn skip_lines(&mut self) -> Result<(), Refusal> {
        loop {
            self.skip_blanks();
            self.skip_comment();
            if !self.line_end()? {
                return Ok(());
            }
        }
    }

    /// A comment: only where a word could begin.
    fn skip_comment(&mut self) {
        if self.peek() == Some('#') {
            let rest = self.rest();
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    /// Statements up to the end of the text, a `)`, a `;;` or one of these
    /// reserved words, which stay unread.
    pub(super) fn script(&mut self, ends: &[&str]) -> Result<Script, Refusal> {
        let mut statements = Vec::new();
        loop {
            self.skip_lines()?;
            let rest = self.rest();
            if rest.is_empty() || rest.starts_with([')', ';']) {
                break;
            }
            if let Some(word) = self
                .reserved()
                .filter(|word| CLOSING.contains(&word.as_str()))
            {
                if ends.contains(&word.as_str()) {
                    break;
                }
                return refuse(format!("`{word}` stands where no command can"));
            }
            let mut statement = self.statement()?;
            self.skip_blanks();
            self.skip_comment();
            let rest = self.rest();
            let ended = if rest.starts_with(";;") || rest.starts_with(";&") {
                true
            } else if self.eat(";") {
                self.skip_blanks();
                if self.rest().starts_with(';') {
                    return refuse("`;` stands where no command can");
                }
                true
            } else if rest.starts_with('&') && !rest.starts_with("&&") {
                self.at += 1;
                statement.background = true;
                true
            } else {
                rest.starts_with('\n') || rest.is_empty() || rest.starts_with(')')
            };
            if !ended {
                return refuse("text follows a command without a separator");
            }
            statements.push(statement);
        }
        Ok(Script { statements })
    }

    /// The unquoted word that stands here, without reading it.
    pub(super) fn reserved(&self) -> Option<String> {
        let rest = self.rest();
        let end = rest
            .find([' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')'])
            .unwrap_or(rest.len());
        rest.get(..end)
            .map(str::to_owned)
            .filter(|word| !word.is_empty())
    }

    /// Takes a reserved word if it comes next.
    pub(super) fn keyword(&mut self, word: &str) -> bool {
        let found = self.reserved().is_some_and(|found| found == word);
        if found {
            self.at += word.len();
        }
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<(), Refusal> {
        if self.keyword(word) {
            return Ok(());
        }
        refuse(format!("a `{word}` is missing"))
    }

    fn statement(&mut self) -> Result<Statement, Refusal> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let join = if self.eat("&&") {
                Join::And
            } else if self.eat("||") {
                Join::Or
            } else {
                break;
            };
            self.skip_lines()?;
            rest.push((join, self.pipeline()?));
        }
        Ok(Statement {
            first,
            rest,
            background: false,
        })
    }

    fn pipeline(&mut self) -> Result<Pipeline, Refusal> {
        let mut negated = false;
        let mut timed = false;
        loop {
            self.skip_blanks();
            if self.keyword("!") {
                negated = !negated;
            } else if self.keyword("time") {
                timed = true;
                self.skip_blanks();
                if self.keyword("-p") {
                    self.skip_blanks();
                }
                if self.rest().starts_with('-') {
                    return refuse("`time` has an option that bash may take or not");
                }
            } else {
                break;
            }
        }
        let ends = self.peek().is_none_or(|c| "\n;&|)".contains(c));
        if ends {
            return refuse("a command is missing, perhaps after `!` or `time`");
        }
        let mut commands = vec![self.command()?];
        loop {
            self.skip_blanks();
            let rest = self.rest();
            if !rest.starts_with('|') || rest.starts_with("||") {
                break;
            }
            self.at += 1;
            self.eat("&");
            self.skip_lines()?;
            commands.push(self.command()?);
        }
        Ok(Pipeline {
            commands,
            negated,
            timed,
        })
    }

    /// One command.
    pub(super) fn command(&mut self) -> Result<Command, Refusal> {
        self.deeper(|reader| {
            reader.skip_blanks();
            let kind = match reader.compound()? {
                Some(kind) => kind,
                None => return reader.simple(),
            };
            let mut redirections = Vec::new();
            if !matches!(kind, Kind::Function { .. } | Kind::Coproc(_)) {
                loop {
                    reader.skip_blanks();
                    match reader.redirection()? {
                        Some(redirection) => redirections.push(redirection),
                        None => break,
                    }
                }
            }
            Ok(Command { kind, redirections })
        })
    }

    /// The redirection that begins here, if one does.
    pub(super) fn redirection(&mut self) -> Result<Option<Redirect>, Refusal> {
        let from = self.at;
        let descriptor = self.descriptor();
        let Some(operator) = self.operator(descriptor.is_some()) else {
            self.at = from;
            return Ok(None);
        };
        let target = match operator {
            "<<" | "<<-" => self.announce(operator)?,
            _ => {
                self.skip_blanks();
                if operator.ends_with('&') && self.closes_and_goes_on() {
                    // Bash takes the mark for itself: `>&-x` is `>&-` and `x`.
                    return refuse(format!("a word sticks to `{operator}-`"));
                }
                match self.word(Within::Command)? {
                    Some(word) => Target::Word(word),
                    None => return refuse(format!("`{operator}` leads nowhere")),
                }
            }
        };
        Ok(Some(Redirect {
            operator: match operator {
                "<" => Operator::Read,
                "<>" => Operator::ReadWrite,
                "<&" => Operator::DuplicateInput,
                ">&" => Operator::DuplicateOutput,
                "<<" | "<<-" => Operator::Document,
                "<<<" => Operator::Text,
                _ => Operator::Write,
            },
            descriptor,
            target,
        }))
    }

    /// Whether here is the mark that closes a descriptor, with more behind it.
    fn closes_and_goes_on(&self) -> bool {
        let mut rest = self.rest().chars();
        let ends = |c: char| c.is_whitespace() || ";&|()<>".contains(c);
        rest.next() == Some('-') && rest.next().is_some_and(|c| !ends(c))
    }

    /// Digits or `{name}` directly before an operator.
    fn descriptor(&mut self) -> Option<Descriptor> {
        let from = self.at;
        let digits = self.rest().chars().take_while(char::is_ascii_digit).count();
        let descriptor = if digits > 0 {
            let number = self.rest().get(..digits)?.to_owned();
            self.at += digits;
            Some(Descriptor::Number(number))
        } else if self.eat("{") {
            let name = self.identifier();
            name.filter(|_| self.eat("}")).map(Descriptor::Named)
        } else {
            None
        };
        let followed = self.rest().starts_with(['<', '>'])
            && !self.rest().starts_with("<(")
            && !self.rest().starts_with(">(");
        if descriptor.is_none() || !followed {
            self.at = from;
            return None;
        }
        descriptor
    }

    /// The operator of a redirection.
    fn operator(&mut self, has_descriptor: bool) -> Option<&'static str> {
        const OPERATORS: &[&str] = &[
            "&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">",
        ];
        let rest = self.rest();
        if rest.starts_with("<(") || rest.starts_with(">(") {
            return None;
        }
        let found = OPERATORS
            .iter()
            .find(|operator| rest.starts_with(**operator))?;
        if has_descriptor && found.starts_with('&') {
            return None;
        }
        self.at += found.len();
        Some(found)
    }

    /// Words up to the end of a list, with line ends where they may be.
    pub(super) fn words_on_line(&mut self) -> Result<Vec<Word>, Refusal> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek() == Some('#') {
                self.skip_comment();
                return Ok(words);
            }
            match self.word(Within::Command)? {
                Some(word) => words.push(word),
                None => return Ok(words),
            }
        }
    }
}
