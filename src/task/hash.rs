//! A short stable name for bytes: FNV-1a, 64 bits. Not for secrets or against forgery.

use serde_json::Value;

/// The hash of `bytes` as 16 hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// A name for a resolved task: the FNV-1a hash (64 bits, 16 hexadecimal
/// digits) of its JSON text, whose keys keep their order. Two tasks with one
/// name are the same configuration; it does not protect against forgery.
pub fn config_hash(resolved: &Value) -> String {
    hex(resolved.to_string().as_bytes())
}
