//! Durations as people write them.

use std::time::Duration;

use agent::task::duration::{format, parse};
use proptest::prelude::*;

#[test]
fn durations_are_numbers_with_units() {
    let good = [
        ("500ms", 500),
        ("90s", 90_000),
        ("45m", 2_700_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("1h1ms", 3_600_001),
        ("0h5s", 5_000),
        (" 5s ", 5_000),
        ("365d", 31_536_000_000),
    ];
    for (text, ms) in good {
        assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
    }
    let bad = [
        ("", "is no duration"),
        ("5", "has no unit"),
        ("5x", "is no duration"),
        ("5 s", "is no duration"),
        ("-5s", "is no duration"),
        ("1.5h", "is no duration"),
        ("s", "is no duration"),
        ("1h30", "is no duration"),
        ("5S", "is no duration"),
        ("٣s", "is no duration"),
        ("30m1h", "from large to small"),
        ("1s1s", "from large to small"),
        ("0s", "out of range"),
        ("366d", "out of range"),
        ("99999999999999999999s", "out of range"),
        ("18446744073709551615d", "out of range"),
    ];
    for (text, why) in bad {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(ms in 1u64..31_536_000_000) {
        let duration = Duration::from_millis(ms);
        prop_assert_eq!(parse(&format(duration)), Ok(duration));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,30}") {
        let _ = parse(&text);
    }
}
