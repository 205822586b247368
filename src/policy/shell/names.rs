//! Assignments: every form of them ends in [`Walker::set`]. A line that assigns a
//! variable which changes what programs are, load, or take as configuration is
//! refused.

use super::state::{State, Value, is_number};
use super::walk::Walker;
use super::{Refusal, refuse};
use crate::policy::assignment::{assignment_denied, is_counter, is_plain_setting};

/// A longer value is not followed.
const VALUE_BYTES_MAX: usize = 16 * 1024;

impl Walker {
    /// Assigns a variable: every form of assignment ends here, so that every name
    /// is checked.
    pub(super) fn set(
        &mut self,
        name: &str,
        value: Value,
        state: &mut State,
    ) -> Result<(), Refusal> {
        let known = match &value {
            Value::Known(text) => Some(text.as_str()),
            _ => None,
        };
        let shown = match &value {
            Value::Number => Some("0"),
            _ => known,
        };
        if let Some(reason) = refused(name, shown) {
            return refuse(reason);
        }
        if known.is_some_and(|text| text.len() > VALUE_BYTES_MAX) {
            return refuse(format!("the value of `{name}` grows too long"));
        }
        if let Some(text) = known {
            self.may_turn_out(text);
        }
        // What is read from a counter is never known.
        let value = match is_counter(name) {
            true => Value::Number,
            false => value,
        };
        let value = if self.may_be_left_out() || state.frozen.contains(name) {
            match state.values.get(name) {
                Some(old) if *old == value => value,
                _ => Value::Unknown,
            }
        } else {
            value
        };
        state.values.insert(name.to_owned(), value);
        Ok(())
    }

    /// Assigns the variable of a loop, which no jump can leave out.
    pub(super) fn set_loop_variable(
        &mut self,
        name: &str,
        value: Value,
        state: &mut State,
    ) -> Result<(), Refusal> {
        self.set(name, value.clone(), state)?;
        if !state.frozen.contains(name) {
            state.values.insert(name.to_owned(), value);
        }
        Ok(())
    }
}

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
    if is_counter(name) && value.is_some_and(is_number) {
        return None;
    }
    if name.ends_with("PAGER") && matches!(value, Some("" | "cat")) {
        return None;
    }
    let flags = name.ends_with("FLAGS") || name == "NODE_OPTIONS";
    if flags && value.is_some_and(|value| are_plain_flags(name, value)) {
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

/// Flags for go that choose among what is there; with `=` at their end, any plain
/// word follows.
const GO_FLAGS: &[&str] = &[
    "-buildvcs=",
    "-count=",
    "-json",
    "-mod=",
    "-p=",
    "-race",
    "-short",
    "-tags=",
    "-timeout=",
    "-trimpath",
    "-v",
];

/// Flags for node of the same kind.
const NODE_FLAGS: &[&str] = &[
    "--enable-source-maps",
    "--experimental-vm-modules",
    "--max-old-space-size=",
    "--max-semi-space-size=",
    "--max_old_space_size=",
    "--no-deprecation",
    "--no-warnings",
    "--openssl-legacy-provider",
    "--stack-size=",
    "--stack-trace-limit=",
    "--throw-deprecation",
    "--trace-deprecation",
    "--trace-warnings",
    "--unhandled-rejections=",
];

/// Whether a flag is one of a list, with a plain word as its value.
fn is_plain_of(flags: &[&str], flag: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-,".contains(c);
    flags.iter().any(|known| match flag.strip_prefix(known) {
        Some("") => !known.ends_with('='),
        Some(value) => known.ends_with('=') && value.chars().all(plain),
        None => false,
    })
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
        "GOFLAGS" => value.split(' ').all(|flag| is_plain_of(GO_FLAGS, flag)),
        "NODE_OPTIONS" => value.split(' ').all(|flag| is_plain_of(NODE_FLAGS, flag)),
        "MAKEFLAGS" => value.strip_prefix("-j").is_some_and(is_number),
        _ => false,
    }
}
