//! A decision in its parts: what was understood of a call, and what became of
//! each of it.

use super::decide::{Judged, doing};
use super::{Decision, Policy, named};
use crate::access::Access;

/// A decision with its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The decision about the call.
    pub decision: Decision,
    /// What was understood, in the order in which it is judged.
    pub parts: Vec<Part>,
}

/// One thing that a call would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is, as `running git log -3` or `writing src/a.rs`.
    pub doing: String,
    /// What would become of it if it were all.
    pub decision: Decision,
}

impl Policy {
    /// Decides as [`Policy::decide`] does, and tells what was understood.
    pub fn explain(&self, tool: &str, accesses: &[Access]) -> Explanation {
        let (judged, exact) = self.judged(accesses);
        let whole = self.decide(tool, accesses);
        let parts = judged.iter().map(|access| Part {
            doing: self.doing(access),
            decision: match (self.refusal(tool, std::slice::from_ref(access)), &exact) {
                (Some(refusal), _) => refusal,
                // One rule for the whole text allows what is in it.
                (None, Some(_)) => whole.clone(),
                (None, None) => self.grant(tool, access),
            },
        });
        let mut parts: Vec<Part> = parts.collect();
        // A loop does the same again and again.
        parts.dedup();
        Explanation {
            parts,
            decision: whole,
        }
    }

    fn doing(&self, access: &Judged<'_>) -> String {
        match access {
            Judged::Path { kind, path, .. } => doing(*kind, &self.scope.shown(path)),
            Judged::Somewhere { kind, text } => {
                format!("{}, of which a part is not known", doing(*kind, text))
            }
            Judged::Exec(exec) => match &exec.command.words {
                Ok(_) => format!("running {}", exec.command.text),
                Err(refusal) => format!("running what cannot be taken apart ({refusal})"),
            },
            Judged::Named(access) => named::doing(access),
        }
    }
}
