//! Whether a number of a JSON text is still the same once it was read.

/// Whether a double has exactly this value, as far as its shortest spelling
/// tells. Whole numbers of 64 bits need no double.
pub(super) fn is_kept(written: &str) -> bool {
    if written.parse::<i64>().is_ok() || written.parse::<u64>().is_ok() {
        return true;
    }
    let read = written.parse::<f64>().ok().filter(|read| read.is_finite());
    read.is_some_and(|read| Decimal::of(written) == Decimal::of(&format!("{read:e}")))
}

/// A decimal number: its digits without zeros around them, and the power of ten
/// of the last one.
#[derive(PartialEq)]
struct Decimal {
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// None when there is no such exponent.
    fn of(written: &str) -> Option<Self> {
        let written = written.trim_start_matches('-');
        let (mantissa, exponent) = match written.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (written, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let kept = all.trim_end_matches('0');
        let digits = kept.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self {
                digits,
                exponent: 0,
            });
        }
        let dropped = i64::try_from(all.len() - kept.len()).ok()?;
        let behind = i64::try_from(fraction.len()).ok()?;
        let exponent = exponent.checked_add(dropped)?.checked_sub(behind)?;
        Some(Self { digits, exponent })
    }
}
