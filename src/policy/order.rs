//! What a command of a line changes for those behind it, which were looked at
//! before anything ran: where paths lead, and what names globs stand for.

use super::exec::Exec;
use super::scope::normal;
use super::shell::Refusal;
use super::uncertain;
use super::writes;

/// Programs whose words are no paths, or that look at paths themselves.
const NO_PATHS: &[&str] = &["echo", "false", "git", "printf", "pwd", "true"];

/// Turns commands that a former one may make mean something else into ones of
/// which nothing is known.
pub(super) fn check(commands: &mut [Exec]) {
    let mut wrote = false;
    let mut moved = false;
    for exec in commands {
        let Ok(words) = exec.command.words.as_deref() else {
            return;
        };
        let program = exec.program();
        let paths = !NO_PATHS.contains(&program)
            && exec
                .touched
                .as_ref()
                .is_none_or(|touched| !touched.is_empty());
        let reason = if leads_elsewhere(exec) {
            Some("bash follows the links in it where that directory is not there")
        } else if wrote && exec.command.loose_glob && !uncertain::is_tame(program) {
            Some("a command before it may make names that look like options")
        } else if moved && !exec.command.free && paths {
            Some("a command before it may change where its paths lead")
        } else {
            None
        };
        wrote |= !exec.reads_only;
        moved |= program == "ln" || writes::rewrites_tree(words);
        if let Some(reason) = reason {
            exec.command.free = false;
            exec.command.words = Err(Refusal {
                reason: format!("{reason} (`{}`)", exec.command.text),
            });
        }
    }
}

/// Whether `cd` may lead elsewhere than its text says: where that directory is
/// not there, bash tries the path once more as the kernel reads it, which follows
/// links before it goes up.
fn leads_elsewhere(exec: &Exec) -> bool {
    let words = exec.command.words.as_deref().unwrap_or_default();
    let target = words.last().map_or("", String::as_str);
    matches!(exec.program(), "cd" | "pushd")
        && target.contains("..")
        && exec.command.directories.iter().any(|from| {
            let path = from.join(target);
            path.is_dir() && !normal(&path).is_dir()
        })
}
