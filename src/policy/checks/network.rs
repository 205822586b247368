//! Arguments of programs that fetch: addresses, and where the answer goes.

/// Whether an address is one of another machine, by a protocol that reads and
/// runs nothing here.
fn is_remote(word: &str) -> bool {
    const SAFE: &[&str] = &["http", "https", "ftp", "ftps", "ws", "wss"];
    word.split_once("://")
        .is_none_or(|(scheme, _)| SAFE.contains(&scheme.to_ascii_lowercase().as_str()))
}

fn is_file_address(word: &str) -> bool {
    word.get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// The last part of an address, by which the answer may be stored.
fn stored_name(word: &str) -> &str {
    let path = word.split(['?', '#']).next().unwrap_or(word);
    path.rsplit('/').next().unwrap_or(path)
}

fn address(word: &str) -> Result<(), String> {
    let value = word.split_once('=').map_or(word, |(_, value)| value);
    if !is_remote(word) && !is_remote(value) || is_file_address(word) || is_file_address(value) {
        return Err(format!("`{word}` is no address of another machine"));
    }
    Ok(())
}

/// curl: other machines only, no file by another door.
pub(crate) fn curl(words: &[String], named: usize) -> Result<(), String> {
    let stores = words.iter().skip(1).any(|word| {
        let cluster = word.starts_with('-') && !word.starts_with("--");
        word.starts_with("--remote-n") || (cluster && word.contains(['O', 'J']))
    });
    for word in words.iter().skip(named.max(1)) {
        address(word)?;
        if word.contains("=<") || word.contains("%output{") {
            return Err(format!("`{word}` reads or writes a file"));
        }
        if stores && word.contains("://") && stored_name(word).starts_with('.') {
            return Err(format!("`{word}` would be stored as a hidden file"));
        }
    }
    Ok(())
}

/// wget: the same; it always stores unless it is told a name.
pub(crate) fn wget(words: &[String], named: usize) -> Result<(), String> {
    for word in words.iter().skip(named.max(1)) {
        address(word)?;
        if word.contains("://") && stored_name(word).starts_with('.') {
            return Err(format!("`{word}` would be stored as a hidden file"));
        }
    }
    Ok(())
}
