//! The notes that the engine adds to a conversation, as user messages or as
//! results of calls that did not run.

/// Why a closing answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// The last model call that the task allows.
    Turns,
    /// The tool calls are used up.
    ToolCalls,
    /// The money or the tokens are almost spent.
    Budget,
    /// The time is almost over.
    Time,
}

/// After a reply with neither text nor a call; sent once.
pub fn empty_reply() -> &'static str {
    "Your reply was empty. If the task is not finished, go on with a tool call. If it is, give the \
     final answer: what was done, how it was verified, what remains open."
}

/// After a final answer that was cut by the output limit; sent once.
pub fn truncated_reply() -> &'static str {
    "Your reply was cut off because it reached the output limit. Give the final answer again, \
     complete and shorter."
}

/// After a reply that the provider paused: a request never ends with a reply.
pub fn paused_reply() -> &'static str {
    "Your reply was paused. Go on exactly where it stopped."
}

/// The result of a call in a reply that was cut by the output limit.
pub fn truncated_call() -> &'static str {
    "Not run: the reply was cut off by the output limit, so the arguments may be incomplete. Call \
     again with smaller arguments, for example by writing a large file in several steps."
}

/// The result of a call in a reply that ends with a refusal.
pub fn refused_reply() -> &'static str {
    "Not run: the reply that made this call ended with a refusal."
}

/// What the system prompt says of an answer that a program reads. The schema is
/// there unless the provider shows it to the model.
pub fn final_answer(schema: Option<&str>) -> String {
    let (fits, shown) = match schema {
        Some(schema) => (
            "fits the JSON Schema below",
            format!("\n\nThe JSON Schema:\n{schema}\n"),
        ),
        None => (
            "fits the response format of this conversation",
            "\n".to_owned(),
        ),
    };
    format!(
        "\n\n# Final answer\n\nThe final answer is read by a program. It is one JSON document that \
         {fits}, and nothing else: no word before or after it, no code fence. What was done, how it \
         was verified and what remains open has its place in it only as far as the schema provides \
         for it. Do the work with tools first: a reply without a tool call is taken for the answer.\
         {shown}"
    )
}

/// After a final answer that does not fit its schema.
pub fn repair(problems: &[String]) -> String {
    let problems: Vec<String> = problems
        .iter()
        .map(|problem| format!("- {problem}"))
        .collect();
    format!(
        "Your final answer cannot be used:\n{}\n\nReply with the corrected JSON document only: no \
         word before or after it, no code fence, and no tool call; tools do not run any more.",
        problems.join("\n")
    )
}

/// The request for a closing answer; it is sent without tools.
pub fn closing(reason: Closing) -> String {
    let why = match reason {
        Closing::Turns => "This is the last step that the task allows",
        Closing::ToolCalls => "The tool calls that the task allows are used up",
        Closing::Budget => "The budget of the task is almost spent",
        Closing::Time => "The time of the task is almost over",
    };
    format!(
        "{why}, and tools are no longer available. Give the final answer now: what was done, what \
         was verified and what was not, and what remains to be done."
    )
}

/// Added to a result when the same call gave the same result `count` times in
/// a row; at `stop_at` the run stops.
pub fn repeated(count: u32, stop_at: u32) -> String {
    format!(
        "Note: this is the same call with the same result for the {count}. time in a row. \
         Repeating it will not change the result; try something else or give the final answer. \
         At {stop_at} the run is stopped."
    )
}

/// After a final answer that asks something; sent once.
pub fn nobody_is_here() -> &'static str {
    "Nobody is here to answer, and nobody will be. Decide yourself by the most sensible reading of \
     the task and go on; name your assumption in the final answer. If you cannot go on, end with \
     an answer that says exactly what is missing."
}

/// The result of a call that was running when the run was interrupted.
pub fn interrupted_call() -> &'static str {
    "Interrupted: the run was stopped while this call was running. Its effect is unknown; look \
     before you rely on it or repeat it."
}

/// The result of a call that had not started when the run ended.
pub fn skipped_call() -> &'static str {
    "Not run: the run ended before this call was started."
}

/// The result of a call in a reply that was asked to have none.
pub fn no_tools_left() -> &'static str {
    "Not run: tools are no longer available in this run."
}

/// The result of a call beyond the number that the task allows.
pub fn no_calls_left() -> &'static str {
    "Not run: the tool calls that the task allows are used up."
}

/// The result of a call to a tool that does not exist.
pub fn unknown_tool(name: &str, tools: &[String]) -> String {
    format!(
        "There is no tool `{name}`. The tools are: {}.",
        tools.join(", ")
    )
}

/// The result of a call to a tool that is switched off.
pub fn inactive_tool(name: &str, tools: &[String]) -> String {
    format!(
        "The tool `{name}` is not active now. The active tools are: {}.",
        tools.join(", ")
    )
}

/// The result of a call whose arguments do not fit.
pub fn invalid_arguments(tool: &str, problem: &str) -> String {
    format!("The arguments do not fit the tool `{tool}`: {problem}")
}

/// The result of a call whose arguments a hook replaced with some that do not fit.
pub fn rewritten_arguments(tool: &str, problem: &str) -> String {
    format!(
        "Not run: a hook replaced the arguments of this call, and those do not fit the tool \
         `{tool}`: {problem}"
    )
}

/// The result of a call that a hook blocks.
pub fn blocked_by_hook(reason: &str) -> String {
    format!("Blocked by a hook: {reason}")
}

/// Says that arguments were no JSON object, showing what came.
pub fn unparsable_arguments(raw: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 2_000;
    let shown: String = raw.chars().take(SHOWN_CHARS_MAX).collect();
    format!("they are no JSON object; this is what arrived: {shown}")
}
