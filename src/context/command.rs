//! `/skill:name arguments` and `/name arguments` at the begin of a prompt.

use crate::event::Warning;

use super::data_block::data_block;
use super::prompt_text::PromptText;
use super::resources::Resources;
use super::skill::{self, Skill};
use super::template::{self, Arguments};

/// What a prompt stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// The prompt for the model.
    pub text: String,
    /// What the user should know.
    pub warning: Option<Warning>,
}

impl Resources {
    /// What a prompt stands for: the skill or the template that it begins
    /// with, or itself. A `/name` that nothing is named stays as it is, like a
    /// path at the begin of a prompt; of a `/skill:name` the user is warned.
    /// What comes out is not expanded again.
    pub fn expand(&self, prompt: PromptText<'_>) -> Expansion {
        let plain = Expansion {
            text: prompt.text.to_owned(),
            warning: None,
        };
        let Some(rest) = prompt.text.strip_prefix('/') else {
            return plain;
        };
        let name = rest.split(char::is_whitespace).next().unwrap_or_default();
        let end = 1 + name.len();
        // The data may follow its name without a space.
        if (0..end).any(|at| prompt.is_data(at)) {
            return plain;
        }
        let arguments = || Arguments::parse(prompt, end);
        if let Some(name) = name
            .strip_prefix("skill:")
            .filter(|name| skill::is_name(name))
        {
            return match self.skills.iter().find(|skill| skill.name == name) {
                Some(skill) => Expansion {
                    text: call(skill, arguments().written),
                    warning: None,
                },
                None => Expansion {
                    warning: Some(self.unknown_skill(name)),
                    ..plain
                },
            };
        }
        if !template::is_name(name) {
            return plain;
        }
        match self.templates.iter().find(|template| template.name == name) {
            Some(template) => Expansion {
                text: template.fill(&arguments()),
                warning: None,
            },
            None => plain,
        }
    }

    fn unknown_skill(&self, name: &str) -> Warning {
        let names: Vec<&str> = self
            .skills
            .iter()
            .map(|skill| skill.name.as_str())
            .collect();
        let known = match names.is_empty() {
            true => "there are no skills".to_owned(),
            false => format!("the skills are {}", names.join(", ")),
        };
        Warning {
            code: "unknown_skill".to_owned(),
            message: format!("`/skill:{name}` stays as text: {known}"),
        }
    }
}

fn call(skill: &Skill, arguments: &str) -> String {
    let directory = skill
        .location
        .rsplit_once('/')
        .map_or(".", |(directory, _)| directory);
    let content = format!(
        "Relative paths in this skill start at {directory}.\n\n{}",
        skill.body
    );
    let attributes = [("name", skill.name.as_str()), ("location", &skill.location)];
    let mut text = data_block("skill", &attributes, &content);
    if !arguments.is_empty() {
        text.push_str("\n\n");
        text.push_str(arguments);
    }
    text
}
