//! A short name for bytes: the same on every machine and in every version,
//! unlike the hashers of the standard library. It tells apart what nobody
//! forges; it protects nothing.

use std::fmt;

/// The FNV-1a hash, 64 bits, of all that was added. It shows as 16 hexadecimal
/// digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fnv1a(u64);

impl Fnv1a {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = Self::default();
        hash.add(bytes);
        hash
    }

    /// Adds bytes behind those that were added before.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The number that it is.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl fmt::Display for Fnv1a {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
