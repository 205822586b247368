//! Any text is read or refused, in bounded time and depth, and a command that
//! follows a readable line is found behind it.

#![no_main]

use agent::policy::simple_commands;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| {
    let Ok(before) = simple_commands(line) else {
        return;
    };
    // A line that ends in a comment or in nothing open takes another one.
    let longer = format!("{line}\nthe_last_command found");
    if let Ok(after) = simple_commands(&longer) {
        let last = ["the_last_command".to_owned(), "found".to_owned()];
        assert!(after.iter().any(|words| *words == last), "{line:?}");
        assert!(after.len() > before.len() || before.contains(&last.to_vec()), "{line:?}");
    }
});
