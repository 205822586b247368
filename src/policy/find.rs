//! What the expression of a `find` leaves of the files below its roots.
//!
//! It is read as far as that is easy: names, kinds and depth before the first
//! action of every way through it. Where it is not, nothing narrows the walk.

use super::sweep::Sweep;
use super::table::listed;

/// Predicates that take a word, apart from those that are looked at.
const VALUES: &str = "-ipath, -path, -wholename, -iwholename, -regex, -iregex, -size, -mtime, -mmin, -ctime, \
                      -cmin, -atime, -amin, -newer, -anewer, -cnewer, -newermt, -newerct, -newerat, \
                      -perm, -user, -group, -uid, -gid, -mindepth, -regextype, -lname, -ilname, \
                      -inum, -links, -samefile, -xtype, -fstype, -used";

/// Predicates that stand alone.
const ALONE: &str = "-a, -and, -daystart, -depth, -empty, -executable, -false, -follow, -mount, -noleaf, \
                     -nogroup, -nouser, -nowarn, -prune, -quit, -readable, -true, -warn, -writable, \
                     -xdev";

/// Predicates that do something with what is found; where there are some, the
/// ways without one do nothing.
const ACTIONS: &str = "-delete, -exec, -execdir, -fls, -fprint, -fprint0, -fprintf, -ls, -ok, -okdir, -print, \
                       -print0, -printf";

/// What one way through an expression asks of a file.
#[derive(Debug, Default)]
struct Way {
    names: Vec<String>,
    except: Vec<String>,
    /// Whether links are left out.
    without_links: bool,
    directories_only: bool,
    visible_only: bool,
    /// Whether it has an action.
    acts: bool,
}

/// The walk of a `find`: what it acts on is at most what that meets.
pub(crate) fn find(words: &[String]) -> Sweep {
    let rest: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let mut begin = 0;
    while let Some(option) = rest.get(begin) {
        begin += match *option {
            "-L" | "-H" | "-P" => 1,
            "-D" => 2,
            level if level.starts_with("-O") => 1,
            _ => break,
        };
    }
    let expression = rest.get(begin..).unwrap_or_default();
    let roots: Vec<String> = expression
        .iter()
        .take_while(|word| !word.starts_with(['-', '(', '!', ',']))
        .map(|root| (*root).to_owned())
        .collect();
    let tests = expression.get(roots.len()..).unwrap_or_default();
    let whole = Sweep {
        roots,
        hidden: true,
        ignored: true,
        follows: rest.iter().any(|word| matches!(*word, "-L" | "-follow")),
        links: true,
        ..Sweep::default()
    };
    narrowed(tests, &whole).unwrap_or(whole)
}

/// A walk by the tests of an expression; none when these are not understood.
fn narrowed(tests: &[&str], whole: &Sweep) -> Option<Sweep> {
    let mut found = whole.clone();
    let mut ways = Vec::new();
    let mut rest = tests;
    while !rest.is_empty() {
        let (way, taken) = way(rest, &mut found.depth)?;
        ways.push(way);
        rest = rest.get(taken + 1..).unwrap_or_default();
    }
    if ways.iter().any(|way| way.acts) {
        ways.retain(|way| way.acts);
    }
    let all = |holds: fn(&Way) -> bool| !ways.is_empty() && ways.iter().all(holds);
    found.links = !all(|way| way.without_links);
    found.directories_only = all(|way| way.directories_only);
    found.hidden = !all(|way| way.visible_only);
    if all(|way| !way.names.is_empty()) {
        found.only = ways.iter().flat_map(|way| way.names.clone()).collect();
    } else if let [only] = ways.as_slice() {
        found.except.clone_from(&only.except);
    }
    Some(found)
}

/// The first way of an expression, and how many of its words it has.
fn way(words: &[&str], depth: &mut Option<usize>) -> Option<(Way, usize)> {
    let mut way = Way::default();
    let mut negated = false;
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| !is_or(word)) {
        let value = words.get(at + 1).copied().unwrap_or_default();
        at += 1;
        // What stands behind an action comes too late for it.
        let mut late = Way::default();
        let asked = if way.acts { &mut late } else { &mut way };
        match *word {
            "!" | "-not" => {
                negated = !negated;
                continue;
            }
            "(" => {
                let (names, taken) = group(words.get(at..).unwrap_or_default())?;
                at += taken;
                asked.named(names, negated);
            }
            "-name" | "-iname" => {
                at += 1;
                asked.named(vec![glob(word, value)?], negated);
            }
            "-type" => {
                at += 1;
                asked.without_links |= !negated && !value.contains(['l', 'd']);
                asked.directories_only |= !negated && value == "d";
            }
            "-path" | "-wholename" if negated && value == "*/.*" => {
                at += 1;
                asked.visible_only = true;
            }
            "-maxdepth" => {
                at += 1;
                *depth = Some(value.parse().ok()?);
            }
            action if listed(ACTIONS, action) => {
                way.acts = true;
                at += match action {
                    "-fls" | "-fprint" | "-fprint0" | "-printf" => 1,
                    "-fprintf" => 2,
                    _ => 0,
                };
            }
            test if listed(VALUES, test) => at += 1,
            test if listed(ALONE, test) => {}
            _ => return None,
        }
        negated = false;
    }
    Some((way, at))
}

fn is_or(word: &str) -> bool {
    matches!(word, "-o" | "-or" | ",")
}

/// The names of a group that asks for one of several, and its length.
fn group(words: &[&str]) -> Option<(Vec<String>, usize)> {
    let end = words.iter().position(|word| *word == ")")?;
    let inside = words.get(..end)?;
    let names: Option<Vec<String>> = inside
        .split(|word| is_or(word) && *word != ",")
        .map(|test| match test {
            [name @ ("-name" | "-iname"), value] => glob(name, value),
            _ => None,
        })
        .collect();
    Some((names?, end + 1))
}

/// A name as a glob that means the same to the walk.
fn glob(test: &str, name: &str) -> Option<String> {
    // Classes and braces are read otherwise there.
    if name.is_empty() || name.contains(['{', '}', '\\']) || name.contains("[[") {
        return None;
    }
    if test == "-name" {
        return Some(name.to_owned());
    }
    if !name.is_ascii() || name.contains('[') {
        return None;
    }
    let fold = |c: char| match c.is_ascii_alphabetic() {
        true => format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
        false => c.to_string(),
    };
    Some(name.chars().map(fold).collect())
}

impl Way {
    fn named(&mut self, names: Vec<String>, negated: bool) {
        match negated {
            true => self.except.extend(names),
            false => self.names.extend(names),
        }
    }
}
