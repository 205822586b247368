//! Arguments that are programs in a language of their own: sed, awk, jq, SQL.

use super::{script_awk, script_sed};
use crate::policy::texts::pattern_at;

/// Reporters that node has itself.
const NODE_REPORTERS: &[&str] = &["dot", "junit", "lcov", "spec", "tap"];

/// `node --test`: where the rule names it, with reporters of node itself.
pub(crate) fn node_tests(words: &[String], named: usize) -> Result<(), String> {
    for (at, word) in words.iter().enumerate().skip(named.max(1)) {
        if word == "--test" {
            return Err("`--test` runs files; the rule has to name it".to_owned());
        }
        let Some(value) = word.strip_prefix("--test-reporter") else {
            continue;
        };
        let next = words.get(at + 1).map_or("", String::as_str);
        let reporter = match value.strip_prefix('=') {
            Some(glued) => glued,
            None => next,
        };
        if !NODE_REPORTERS.contains(&reporter) {
            return Err(format!("`{reporter}` is loaded as a reporter"));
        }
    }
    Ok(())
}

/// sed: scripts that print, delete, substitute or move lines.
pub(crate) fn sed(words: &[String], _named: usize) -> Result<(), String> {
    let scripts = script_sed::scripts(words)?;
    match scripts.iter().find(|script| !script_sed::is_plain(script)) {
        Some(script) => Err(format!(
            "the script `{script}` may run programs or write files"
        )),
        None => Ok(()),
    }
}

/// awk: programs in the argument itself, without output, pipes or calls out.
pub(crate) fn awk(words: &[String], _named: usize) -> Result<(), String> {
    let mut rest = words.iter().skip(1).map(String::as_str);
    let program = loop {
        match rest.next() {
            Some("-F" | "-v" | "--field-separator" | "--assign") => {
                rest.next();
            }
            Some("--") => break rest.next().unwrap_or_default(),
            Some(option)
                if (option.starts_with("-F") || option.starts_with("-v"))
                    || option.starts_with("--field-separator=")
                    || option.starts_with("--assign=")
                    || matches!(
                        option,
                        "--posix" | "--traditional" | "--csv" | "-S" | "--sandbox"
                    ) => {}
            Some(option) if option.starts_with('-') => {
                return Err(format!("`{option}` may load a program or write files"));
            }
            Some(program) => break program,
            None => return Ok(()),
        }
    };
    script_awk::check(program)
}

/// jq: programs that load nothing and do not read the environment.
pub(crate) fn jq(words: &[String], named: usize) -> Result<(), String> {
    // Where they begin; behind all words when an option is not known.
    let files = pattern_at("jq", words).map_or(words.len(), |at| at + 1);
    for (at, word) in words.iter().enumerate().skip(named.max(1)) {
        let file = at >= files && is_path_like(word);
        let loads = [
            "import",
            "include",
            "input_filename",
            "get_search_list",
            "modulemeta",
        ]
        .iter()
        .any(|name| is_called(word, name));
        let environment = word.contains("$ENV") || (is_called(word, "env") && !file);
        let state = word.contains("$__prog") || is_called(word, "input_line_number");
        if loads || environment || state {
            return Err(format!("`{word}` loads a module or reads the environment"));
        }
    }
    Ok(())
}

/// An expression of jq inside another program, which gives it the environment.
pub(crate) fn plain_jq(expression: &str) -> Result<(), String> {
    match expression.contains("$ENV") || is_called(expression, "env") {
        true => Err(format!("`{expression}` reads the environment")),
        false => Ok(()),
    }
}

/// yq: expressions that only look at what they are given.
pub(crate) fn yq(words: &[String], named: usize) -> Result<(), String> {
    const ACTIVE: &[&str] = &[
        "load",
        "load_str",
        "load_base64",
        "load_props",
        "load_xml",
        "env",
        "strenv",
        "envsubst",
        "system",
        "eval",
        "include",
        "import",
        "exec",
        "split_doc",
    ];
    // The second word may be a subcommand, and is then no expression.
    let subcommand = words.get(1).is_some_and(|word| word == "eval");
    let first = named.max(1 + usize::from(subcommand));
    for word in words.iter().skip(first) {
        let active = ACTIVE.iter().any(|name| is_called(word, name)) && !is_path_like(word);
        if word.ends_with(".yq") {
            return Err(format!("`{word}` is a file of expressions"));
        }
        if active || word.contains("$ENV") {
            return Err(format!(
                "`{word}` may read files or variables, or run a program"
            ));
        }
    }
    Ok(())
}

/// Whether a name stands in an expression as a word that is no field: `env`,
/// not `.env` and not `environment`.
fn is_called(expression: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    expression.match_indices(name).any(|(at, _)| {
        let before = expression
            .get(..at)
            .and_then(|text| text.chars().next_back());
        let after = expression
            .get(at + name.len()..)
            .and_then(|text| text.chars().next());
        let field = before.is_some_and(|c| part(c) || matches!(c, '.' | '"' | '$' | '-'));
        !field && !after.is_some_and(|c| part(c) || c == '-')
    })
}

/// The name of a file, in which no expression hides.
fn is_path_like(word: &str) -> bool {
    word.contains(['.', '/'])
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !word.starts_with('.')
}

/// The value of the first of these options, glued or in the next word.
fn value_of<'a>(words: &'a [String], short: &str, long: &str) -> Option<&'a str> {
    words.iter().enumerate().skip(1).find_map(|(at, word)| {
        let next = || words.get(at + 1).map(String::as_str);
        if word == short || word == long {
            return next();
        }
        if let Some(glued) = word
            .strip_prefix(long)
            .and_then(|rest| rest.strip_prefix('='))
        {
            return Some(glued);
        }
        word.strip_prefix(short)
            .filter(|glued| !glued.is_empty() && !word.starts_with("--"))
    })
}

/// SQL that leaves the files of the machine alone.
fn plain_sql(sql: &str) -> Result<(), String> {
    const ACTIVE: &[&str] = &[
        "attach",
        "copy",
        "dblink",
        "dumpfile",
        "edit",
        "extension",
        "fts3_tokenizer",
        "infile",
        "load_extension",
        "load_file",
        "lo_export",
        "lo_import",
        "outfile",
        "pg_ls_dir",
        "pg_read_binary_file",
        "pg_read_file",
        "pragma",
        "program",
        "readfile",
        "source",
        "system",
        "sys_eval",
        "sys_exec",
        "vacuum",
        "writefile",
        "xp_cmdshell",
        "function",
        "plugin",
        "tee",
        "pager",
    ];
    let lower = sql.to_lowercase();
    let mut words = lower.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let active = words.find(|word| ACTIVE.contains(word));
    match active {
        Some(word) => Err(format!(
            "`{word}` may read or write files, or run a program"
        )),
        None if sql.contains('\\') || sql.contains('|') => {
            Err("commands of the client run programs".to_owned())
        }
        None => Ok(()),
    }
}

/// psql: a statement on the command line, or a list of databases.
pub(crate) fn psql(words: &[String], _named: usize) -> Result<(), String> {
    if words
        .iter()
        .any(|word| matches!(word.as_str(), "-l" | "--list"))
    {
        return Ok(());
    }
    let mut given = words.iter().enumerate().filter_map(|(at, word)| {
        value_of(words.get(at..).unwrap_or_default(), "-c", "--command")
            .filter(|_| at < words.len() && !word.is_empty())
    });
    let Some(first) = given.next() else {
        return Err("it would read commands".to_owned());
    };
    plain_sql(first)?;
    words
        .iter()
        .skip(1)
        .try_for_each(|word| plain_sql_word(word))
}

/// Any word may hold a statement; one that does not is a name.
fn plain_sql_word(word: &str) -> Result<(), String> {
    match word.contains(char::is_whitespace) || word.contains('\\') {
        true => plain_sql(word),
        false => Ok(()),
    }
}

/// mysql: a statement on the command line.
pub(crate) fn mysql(words: &[String], _named: usize) -> Result<(), String> {
    let Some(sql) = value_of(words, "-e", "--execute") else {
        return Err("it would read commands".to_owned());
    };
    plain_sql(sql)?;
    words
        .iter()
        .skip(1)
        .try_for_each(|word| plain_sql_word(word))
}

/// sqlite3: a statement after the name of the database.
pub(crate) fn sqlite(words: &[String], _named: usize) -> Result<(), String> {
    const LOOKING: &[&str] = &[
        ".tables",
        ".schema",
        ".databases",
        ".indexes",
        ".fullschema",
    ];
    let operands: Vec<&str> = words
        .iter()
        .skip(1)
        .map(String::as_str)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let [database, statements @ ..] = operands.as_slice() else {
        return Err("it would read commands".to_owned());
    };
    if statements.is_empty() || database.contains(['|', '?']) {
        return Err("it would read commands".to_owned());
    }
    for statement in statements {
        let first = statement.split_whitespace().next().unwrap_or_default();
        if first.starts_with('.') && (!LOOKING.contains(&first) || statement.contains(['|', '>'])) {
            return Err(format!("`{first}` may run a program or write a file"));
        }
        plain_sql(statement)?;
        if statement.contains("\n.") {
            return Err("it has a command of the client".to_owned());
        }
    }
    Ok(())
}
