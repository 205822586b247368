//! Why a run or a job ended: the closed set behind exit codes, reports and
//! documentation. There is no other list of codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run or a job ended, in one word for dashboards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The task was done.
    Success,
    /// The task was not done.
    Failure,
    /// Something broke: provider, configuration, input, disk, or we.
    Error,
    /// Time ran out.
    Timeout,
    /// A signal ended it.
    Cancellation,
    /// Nothing was to be done.
    Skip,
}

/// Whether running the same command again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rerun {
    /// It succeeded; there is no need.
    NotNeeded,
    /// The same would happen again.
    No,
    /// Yes, at once.
    Yes,
    /// Yes, after a while.
    Later,
    /// It depends on what was slow or full.
    Maybe,
}

macro_rules! reasons {
    ($($variant:ident $name:literal $code:literal $outcome:ident $rerun:ident $meaning:literal;)*) => {
        /// Why a run or a job ended. Each reason has one exit code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Reason {
            $(#[doc = $meaning] #[serde(rename = $name)] $variant,)*
        }

        impl Reason {
            /// Every reason, ordered by exit code.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name that logs and results use.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The process's exit status when a run ends with this reason.
            pub fn exit_code(self) -> u8 {
                match self { $(Self::$variant => $code,)* }
            }

            /// The outcome it belongs to.
            pub fn outcome(self) -> Outcome {
                match self { $(Self::$variant => Outcome::$outcome,)* }
            }

            /// Whether to run it again.
            pub fn rerun(self) -> Rerun {
                match self { $(Self::$variant => Rerun::$rerun,)* }
            }

            /// One line for people.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

reasons! {
    Success "success" 0 Success NotNeeded "the task was done";
    Incomplete "incomplete" 1 Failure No "the model ended without a usable final answer, the conversation outgrew the model, the run was cut before it could end, or what it changed could not be determined";
    InvalidResponse "invalid_response" 1 Failure No "the final answer does not fit the response schema";
    Usage "usage" 2 Error No "wrong flags";
    Denied "denied" 3 Failure No "a permission denial stopped the run";
    Budget "budget" 4 Failure No "a limit on turns, cost, tokens, tool calls or repeats was reached";
    BatchPartial "batch_partial" 8 Failure No "every task ran, and some failed";
    ReplayMismatch "replay_mismatch" 10 Error No "the cassette does not answer this run: a request differs, or one is missing or left over";
    BadTask "bad_task" 65 Error No "the task file, a parameter or a script is invalid";
    NoInput "no_input" 66 Error No "a file that was named does not exist";
    Unavailable "unavailable" 69 Error Yes "the provider could not be reached, or kept failing";
    Internal "internal" 70 Error No "a bug in agent; please report it";
    Io "io" 74 Error Maybe "results could not be written";
    RateLimited "rate_limited" 75 Error Later "the provider asks to wait longer than the task allows";
    Auth "auth" 77 Error No "credentials are missing or refused, or the quota is spent";
    Config "config" 78 Error No "the configuration cannot work: something that the task requires is missing, no sandbox works where one is required, the file of providers is wrong, a price is unknown under a cost limit, the workspace is unusable, a proxy or a certificate file cannot be used, or the provider rejects the request as invalid";
    Timeout "timeout" 124 Timeout Maybe "the wall clock or the idle limit ran out";
    HungUp "hung_up" 129 Cancellation Yes "ended by SIGHUP";
    Interrupted "interrupted" 130 Cancellation Yes "ended by SIGINT";
    Terminated "terminated" 143 Cancellation Yes "ended by SIGTERM";
}
