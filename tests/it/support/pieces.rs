//! Text through a redactor in pieces, as it comes from a command.

use agent::secret::Redactor;

/// What is shown of `text` in pieces of these many bytes, again and again; a
/// character with more bytes is a piece of its own.
pub fn in_pieces(redactor: &Redactor, text: &str, sizes: &[usize]) -> String {
    let mut stream = redactor.stream();
    let (mut shown, mut rest) = (String::new(), text);
    for size in sizes.iter().cycle() {
        let Some(first) = rest.chars().next() else {
            break;
        };
        let at = rest.floor_char_boundary(*size).max(first.len_utf8());
        let (piece, after) = rest.split_at(at);
        shown.push_str(&stream.push(piece));
        rest = after;
    }
    shown + &stream.finish()
}
