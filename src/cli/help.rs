//! `agent help`: the help of a command, or a page of the manual.

use clap::Args;

use super::console::Console;
use super::exit::Exit;
use crate::event::Reason;
use crate::task;

/// Shows the help of a command, or a page of the manual.
#[derive(Debug, Args)]
pub(super) struct HelpCommand {
    /// A command, such as `sessions list`, or a topic of the manual.
    #[arg(value_name = "COMMAND|TOPIC")]
    words: Vec<String>,
}

/// A page of the manual.
struct Topic {
    name: &'static str,
    summary: &'static str,
    text: &'static str,
}

const TOPICS: &[Topic] = &[Topic {
    name: "security",
    summary: "Threat model, what each sandbox tier holds, and how that is tested",
    text: include_str!("manual/security.md"),
}];

impl HelpCommand {
    /// `program` is the definition of the whole command line.
    pub(super) fn execute(&self, program: &mut clap::Command, console: &Console) -> Exit {
        program.build();
        if let [name] = self.words.as_slice()
            && let Some(topic) = TOPICS.iter().find(|topic| topic.name == name)
        {
            console.print(topic.text);
            return Exit::Done;
        }
        let names: Vec<String> = names(program);
        let mut command = program;
        for word in &self.words {
            command = match command.find_subcommand_mut(word) {
                Some(found) => found,
                None => {
                    console.complain(&unknown(word, &names));
                    return Exit::Reason(Reason::Usage);
                }
            };
        }
        let mut text = command.render_long_help().to_string();
        if self.words.is_empty() {
            text.push_str("\nTopics of the manual (agent help TOPIC):\n");
            for topic in TOPICS {
                text.push_str(&format!("  {:<12} {}\n", topic.name, topic.summary));
            }
        }
        console.print(&text);
        Exit::Done
    }
}

/// What can be asked for with one word.
fn names(program: &clap::Command) -> Vec<String> {
    let commands = program.get_subcommands().filter(|one| !one.is_hide_set());
    let commands = commands.map(|one| one.get_name().to_owned());
    commands
        .chain(TOPICS.iter().map(|topic| topic.name.to_owned()))
        .collect()
}

fn unknown(word: &str, names: &[String]) -> String {
    let near = task::nearest(word, names.iter().map(String::as_str));
    let help = match near {
        Some(name) => format!("did you mean `agent help {name}`?"),
        None => "`agent help` lists commands and topics".to_owned(),
    };
    format!("error: unknown command or topic `{word}`\nhelp: {help}\n")
}
