//! Variables that change what programs are, load, or take as configuration.
//! A line that assigns one of them is refused.

use super::state::is_number;
use crate::policy::assignment::{assignment_denied, is_plain_setting};

/// Why a variable must not be assigned; `value` is what is known of it.
pub(super) fn refused(name: &str, value: Option<&str>) -> Option<String> {
    let plain = |value: &str| {
        value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    if is_plain_setting(name) && value.is_some_and(plain) {
        return None;
    }
    if name.ends_with("PAGER") && matches!(value, Some("" | "cat")) {
        return None;
    }
    if name.ends_with("FLAGS") && value.is_some_and(|value| are_plain_flags(name, value)) {
        return None;
    }
    let locale = name == "LANG" || name == "LANGUAGE" || name == "TZ" || name.starts_with("LC_");
    let is_path = |value: &str| value.starts_with(['/', ':', '.', '~']) || value.contains("..");
    // A locale or a time zone can be the path of a file.
    let by_value =
        locale && value.is_none_or(|value| is_path(value) || (name != "TZ" && value.contains('/')));
    let by_name = assignment_denied(name);
    if by_name.is_none() && !by_value {
        return None;
    }
    let why = by_name.unwrap_or("programs load the file that it names");
    Some(format!("it assigns `{name}`: {why}"))
}

/// Flags for compilers that choose warnings, optimisation and levels.
fn are_plain_flags(name: &str, value: &str) -> bool {
    const OPTIMISED: &[&str] = &[
        "-O", "-O0", "-O1", "-O2", "-O3", "-Os", "-Og", "-g", "-pipe", "-fPIC",
    ];
    match name {
        "CFLAGS" | "CXXFLAGS" => value.split(' ').all(|flag| {
            let warning = flag
                .strip_prefix("-W")
                .is_some_and(|rest| !rest.contains([',', '/']));
            OPTIMISED.contains(&flag) || warning || flag.starts_with("-std=")
        }),
        "RUSTFLAGS" | "RUSTDOCFLAGS" => {
            let mut flags = value.split(' ');
            while let Some(flag) = flags.next() {
                let lint = |text: &str| {
                    !text.is_empty()
                        && text
                            .chars()
                            .all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
                };
                let fine = match flag {
                    "-D" | "-A" | "-W" => flags.next().is_some_and(lint),
                    _ => ["-D", "-A", "-W"]
                        .iter()
                        .any(|letter| flag.strip_prefix(letter).is_some_and(lint)),
                };
                if !fine {
                    return false;
                }
            }
            true
        }
        "MAKEFLAGS" => value.strip_prefix("-j").is_some_and(is_number),
        _ => false,
    }
}
