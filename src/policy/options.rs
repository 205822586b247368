//! Whether a command has an option that a deny rule names, however it is said.

use std::cmp::Ordering;

use super::bash::base_name;

/// Options that say the same: the program (or `program subcommand`, or nothing
/// for every program), and the forms, separated by `, `. A form that does not
/// begin with `-` is the begin of an operand.
const SAME: &[(&str, &str)] = &[
    // The usual letters of the usual words.
    ("", "--force, -f"),
    ("", "--recursive, -r, -R"),
    // `-n` is `--no-verify` to commit, and something else to most others.
    ("git commit", "--no-verify, -n"),
    // A refspec with `+` forces, and a mirror forces all.
    ("git push", "--force, -f, --mirror, +"),
    // A refspec without a source deletes.
    ("git push", "--delete, -d, --prune, --mirror, :"),
    // `-D` is both at once.
    ("git branch", "--delete, -d, -D"),
    ("git branch", "--force, -f, -D, -M, -C"),
    ("git tag", "--delete, -d"),
    // What is dropped: index and tree.
    ("git checkout", "--force, -f"),
    // Global installation.
    ("npm", "--global, -g"),
    ("pnpm", "--global, -g"),
    // Where the result goes.
    ("", "--output, -o"),
    ("", "--in-place, -i"),
    // Another file of instructions.
    ("make", "--file, --makefile, -f"),
];

/// Whether an option is among the words, as itself, with a value, abbreviated,
/// as letters of clusters, or as another form that says the same.
pub(crate) fn has_option(words: &[String], option: &str) -> bool {
    if has_form(words, option) {
        return true;
    }
    if others(words, option).any(|form| has_form(words, form)) {
        return true;
    }
    // `-rf` may be said as `-r --force`.
    let letters: Vec<String> = match option.strip_prefix('-') {
        Some(cluster) if !option.starts_with("--") && cluster.len() > 1 => {
            cluster.chars().map(|c| format!("-{c}")).collect()
        }
        _ => return false,
    };
    letters.iter().all(|letter| {
        has_form(words, letter) || others(words, letter).any(|form| has_form(words, form))
    })
}

/// The other forms of an option.
fn others<'a>(words: &'a [String], option: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    SAME.iter()
        .filter(|(of, _)| is_of(words, of))
        .map(|(_, forms)| forms.split(", "))
        .filter(move |forms| forms.clone().any(|form| form == option))
        .flatten()
}

fn is_of(words: &[String], of: &str) -> bool {
    let mut parts = of.split(' ').filter(|part| !part.is_empty());
    let Some(program) = parts.next() else {
        return true;
    };
    let have = words.first().map_or("", |word| base_name(word));
    // Options of the program may stand before its subcommand.
    have == program && parts.all(|part| words.iter().any(|word| word == part))
}

fn has_form(words: &[String], option: &str) -> bool {
    let mut arguments = words.iter().skip(1);
    if !option.starts_with('-') {
        return arguments.any(|word| word.starts_with(option));
    }
    if let Some(long) = option.strip_prefix("--") {
        return arguments.any(|word| {
            let Some(have) = word.strip_prefix("--") else {
                return false;
            };
            let name = have.split('=').next().unwrap_or(have);
            match have.len().cmp(&long.len()) {
                Ordering::Less | Ordering::Equal => {
                    have == long || (!name.is_empty() && long.starts_with(name))
                }
                Ordering::Greater => {
                    have.starts_with(long) || (name.len() > 1 && long.starts_with(name))
                }
            }
        });
    }
    let clusters: String = words
        .iter()
        .skip(1)
        .filter(|word| word.starts_with('-') && !word.starts_with("--"))
        .flat_map(|word| word.chars())
        .collect();
    arguments.any(|word| word == option) || option.chars().all(|c| clusters.contains(c))
}
