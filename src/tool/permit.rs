//! Whether something that a call meets on its way may be used.
//!
//! The decision about a call speaks of its root and its name. What lies below
//! the root, and where the name really leads by the time it is opened, is
//! asked here.

use std::path::Path;
use std::sync::Arc;

use crate::access::Access;

/// Answers for single accesses of one call. Cheap to clone.
#[derive(Clone)]
pub struct Permit(Arc<dyn Fn(&Access) -> bool + Send + Sync>);

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Permit")
    }
}

impl Permit {
    /// Permits what `allows` is true of. It is asked for every file of a
    /// walk, away from the runtime's thread.
    pub fn new(allows: impl Fn(&Access) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(allows))
    }

    /// Permits everything.
    pub fn everything() -> Self {
        Self::new(|_| true)
    }

    /// Whether the access may happen.
    pub fn allows(&self, access: &Access) -> bool {
        (self.0)(access)
    }

    /// Whether the path may be read, or shown in a list.
    pub(super) fn may_read(&self, path: &Path) -> bool {
        self.allows(&Access::Read(path.to_owned()))
    }
}
