//! What a task file means where it says nothing.

use crate::model::RetryPolicy;
use crate::session::{Compaction, Limits};
use crate::task::duration::HumanDuration;
use crate::task::file::{
    CompactionSection, DenialsSection, LimitsSection, ResponseSection, RetrySection,
    SessionSection, ToolName, ToolsSection,
};

impl ToolName {
    /// All tools, which is also the default.
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Grep,
        Self::Find,
        Self::Ls,
        Self::Edit,
        Self::Write,
        Self::Bash,
    ];

    /// The name that the model calls it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Grep => "grep",
            Self::Find => "find",
            Self::Ls => "ls",
            Self::Edit => "edit",
            Self::Write => "write",
            Self::Bash => "bash",
        }
    }
}

impl Default for ToolsSection {
    fn default() -> Self {
        Self {
            enabled: ToolName::ALL.to_vec(),
        }
    }
}

impl Default for ResponseSection {
    fn default() -> Self {
        Self {
            schema: None,
            schema_file: None,
            repairs: 3,
            file: None,
        }
    }
}

impl Default for SessionSection {
    fn default() -> Self {
        Self {
            persist: true,
            resume: None,
            fork: false,
        }
    }
}

impl Default for LimitsSection {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            max_turns: limits.max_turns,
            max_cost_usd: limits.max_cost_usd,
            max_tokens: limits.max_tokens,
            max_tool_calls: limits.max_tool_calls,
            max_repeats: limits.max_repeats,
            max_denials: DenialsSection::default(),
            timeout: HumanDuration(limits.timeout),
            idle_timeout: HumanDuration(limits.idle_timeout),
            command_timeout: HumanDuration(limits.command_timeout),
            max_retry_wait: HumanDuration(limits.max_retry_wait),
            warn_at: limits.warn_at,
            on_exhausted: limits.on_exhausted,
            on_unknown_price: limits.on_unknown_price,
        }
    }
}

impl Default for DenialsSection {
    fn default() -> Self {
        let denials = Limits::default().max_denials;
        Self {
            consecutive: denials.consecutive,
            total: denials.total,
        }
    }
}

impl Default for RetrySection {
    fn default() -> Self {
        let retry = RetryPolicy::default();
        Self {
            max_attempts: retry.max_attempts,
            base_delay: HumanDuration(retry.base_delay),
            max_delay: HumanDuration(retry.max_delay),
        }
    }
}

impl Default for CompactionSection {
    fn default() -> Self {
        let compaction = Compaction::default();
        Self {
            enabled: compaction.enabled,
            reserve_tokens: compaction.reserve_tokens,
            keep_recent_tokens: compaction.keep_recent_tokens,
            max_compactions: compaction.max_compactions,
            min_reduction: compaction.min_reduction,
        }
    }
}
