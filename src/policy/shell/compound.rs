//! Compound commands: loops, conditions, groups, functions.

use std::rc::Rc;

use super::read::{Reader, Within};
use super::syntax::{Command, Kind, Script, Word};
use super::{Refusal, refuse};

impl Reader<'_> {
    /// The compound command that begins here, if one does.
    pub(super) fn compound(&mut self) -> Result<Option<Kind>, Refusal> {
        if self.rest().starts_with("((") {
            self.at += 2;
            return Ok(Some(Kind::Arithmetic(self.arithmetic()?)));
        }
        if self.eat("(") {
            self.no_continuation()?;
            let script = self.script(&[])?;
            if !self.eat(")") {
                return refuse("a subshell is not closed");
            }
            return Ok(Some(Kind::Subshell(non_empty(script)?)));
        }
        let Some(word) = self.reserved() else {
            return Ok(None);
        };
        let kind = match word.as_str() {
            "{" => {
                self.at += 1;
                let script = self.script(&["}"])?;
                self.expect("}")?;
                Kind::Group(non_empty(script)?)
            }
            "if" => self.conditional()?,
            "while" | "until" => {
                self.at += word.len();
                let condition = non_empty(self.script(&["do"])?)?;
                let body = self.loop_body()?;
                Kind::While { condition, body }
            }
            "for" | "select" => self.for_loop(&word)?,
            "case" => self.case()?,
            "function" => self.function()?,
            "[[" => self.test()?,
            "coproc" => self.coproc()?,
            "]]" | "in" => return refuse(format!("`{word}` stands where no command can")),
            _ => return Ok(None),
        };
        Ok(Some(kind))
    }

    fn conditional(&mut self) -> Result<Kind, Refusal> {
        self.at += "if".len();
        let mut branches = Vec::new();
        let mut otherwise = None;
        loop {
            let condition = non_empty(self.script(&["then"])?)?;
            self.expect("then")?;
            let body = non_empty(self.script(&["elif", "else", "fi"])?)?;
            branches.push((condition, body));
            if self.keyword("elif") {
                continue;
            }
            if self.keyword("else") {
                otherwise = Some(non_empty(self.script(&["fi"])?)?);
            }
            self.expect("fi")?;
            return Ok(Kind::If {
                branches,
                otherwise,
            });
        }
    }

    fn loop_body(&mut self) -> Result<Script, Refusal> {
        self.expect("do")?;
        let body = non_empty(self.script(&["done"])?)?;
        self.expect("done")?;
        Ok(body)
    }

    fn for_loop(&mut self, keyword: &str) -> Result<Kind, Refusal> {
        self.at += keyword.len();
        self.skip_blanks();
        if keyword == "for" && self.eat("((") {
            let header = self.arithmetic()?;
            self.skip_blanks();
            self.eat(";");
            self.skip_lines()?;
            let body = self.loop_body()?;
            return Ok(Kind::Counted { header, body });
        }
        let Some(name) = self.identifier() else {
            return refuse(format!("`{keyword}` has no name of a variable"));
        };
        self.skip_lines()?;
        let words = if self.keyword("in") {
            let words = self.words_on_line()?;
            if !self.eat(";") && self.peek() != Some('\n') {
                return refuse(format!("the words of a `{keyword}` are not ended"));
            }
            Some(words)
        } else {
            self.eat(";");
            None
        };
        self.skip_lines()?;
        let body = self.loop_body()?;
        Ok(Kind::For {
            name,
            words,
            body,
            select: keyword == "select",
        })
    }

    fn case(&mut self) -> Result<Kind, Refusal> {
        self.at += "case".len();
        self.skip_blanks();
        let Some(subject) = self.word(Within::Command)? else {
            return refuse("a `case` has no word");
        };
        self.skip_lines()?;
        self.expect("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.keyword("esac") {
                return Ok(Kind::Case { subject, arms });
            }
            self.eat("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks();
                match self.word(Within::Command)? {
                    Some(pattern) => patterns.push(pattern),
                    None => return refuse("a `case` has an empty pattern"),
                }
                self.skip_blanks();
                if !self.eat("|") {
                    break;
                }
            }
            if !self.eat(")") {
                return refuse("a pattern of a `case` is not closed");
            }
            let body = self.script(&["esac"])?;
            arms.push((patterns, body));
            let ended = self.eat(";;&") || self.eat(";;") || self.eat(";&");
            if !ended {
                self.skip_lines()?;
                self.expect("esac")?;
                return Ok(Kind::Case { subject, arms });
            }
        }
    }

    fn function(&mut self) -> Result<Kind, Refusal> {
        self.at += "function".len();
        self.skip_blanks();
        let name = match self.word(Within::Command)? {
            Some(word) => word.bare().map(str::to_owned),
            None => None,
        };
        let Some(name) = name else {
            return refuse("a function has no plain name");
        };
        self.skip_blanks();
        if self.eat("(") {
            self.skip_blanks();
            if !self.eat(")") {
                return refuse("a function's parentheses are not closed");
            }
        }
        self.function_body(name)
    }

    /// What follows the name and parentheses of a function.
    pub(super) fn function_body(&mut self, name: String) -> Result<Kind, Refusal> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:+@".contains(c);
        if !name.chars().all(plain) {
            return refuse("a function has an unusual name");
        }
        self.skip_lines()?;
        let body = self.command()?;
        if matches!(
            body.kind,
            Kind::Simple { .. } | Kind::Function { .. } | Kind::Coproc(_)
        ) {
            return refuse("a function's body is no compound command");
        }
        Ok(Kind::Function {
            name,
            body: Rc::new(body),
        })
    }

    fn coproc(&mut self) -> Result<Kind, Refusal> {
        self.at += "coproc".len();
        self.skip_blanks();
        let command: Command = self.command()?;
        match &command.kind {
            // `coproc NAME { …; }` reads as a command with a brace.
            Kind::Simple { words, .. } if words.len() != 1 => {
                let braced = words.iter().any(|word| {
                    word.bare().is_some_and(|word| {
                        matches!(
                            word,
                            "{" | "[[" | "if" | "while" | "until" | "for" | "case" | "select"
                        )
                    })
                });
                if braced {
                    return refuse("a coprocess has a name of its own");
                }
            }
            Kind::Function { .. } => return refuse("a coprocess is no function"),
            _ => {}
        }
        Ok(Kind::Coproc(Box::new(command)))
    }

    /// `[[ … ]]`: its words and operators in their order.
    fn test(&mut self) -> Result<Kind, Refusal> {
        self.at += 2;
        let mut words: Vec<Word> = Vec::new();
        loop {
            self.skip_lines()?;
            if self.keyword("]]") {
                if words.is_empty() {
                    return refuse("a `[[` is empty");
                }
                return Ok(Kind::Test(words));
            }
            if self.rest().starts_with("<(") || self.rest().starts_with(">(") {
                return refuse("a `[[` has a process substitution in it");
            }
            let operators = ["&&", "||", "(", ")", "<", ">"];
            if let Some(operator) = operators.iter().find(|operator| self.eat(operator)) {
                words.push(operator_word(operator));
                continue;
            }
            let after = words.last().and_then(Word::bare);
            let within = match after {
                Some("=~" | "==" | "!=" | "=") => Within::Pattern,
                _ => Within::Command,
            };
            match self.word(within)? {
                Some(word) => words.push(word),
                None => return refuse("a `[[` has something that is no word"),
            }
        }
    }
}

fn operator_word(operator: &str) -> Word {
    Word {
        pieces: vec![super::syntax::Piece::Text {
            text: operator.to_owned(),
            quoted: false,
        }],
        array: None,
    }
}

fn non_empty(script: Script) -> Result<Script, Refusal> {
    if script.statements.is_empty() {
        return refuse("a compound command is empty");
    }
    Ok(script)
}
