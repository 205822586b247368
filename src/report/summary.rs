//! The result document, as a pure fold over events: no clock, no files. The
//! same events give the same document, live or from a log.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::event::{
    Artifacts, Budget, ChangedFile, Denial, ErrorReport, Event, EventKind, JobEnd, MessageComplete,
    ModelFallback, ModelUsed, ModelsUsed, Place, Reason, ReplyDiscarded, ResultDocument, RunStart,
    SandboxReport, ToolCount, ToolError, ToolErrorStatus, TurnStatus, Warning,
};
use crate::message::Usage;

/// What the fold has seen so far.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    run_id: String,
    started_at: String,
    start: Option<RunStart>,
    jobs: Vec<JobFold>,
    warnings: Vec<Warning>,
}

/// What only the end of a run knows.
#[derive(Debug, Clone)]
pub struct RunEnding<'a> {
    /// Why it ended.
    pub reason: Reason,
    /// What went wrong; none takes the first error of a job.
    pub error: Option<ErrorReport>,
    /// The time of `run:end`, RFC 3339.
    pub ended_at: &'a str,
}

/// One job, or what happened outside any.
#[derive(Debug, Clone, Default)]
struct JobFold {
    name: Option<String>,
    started_at: String,
    end: Option<JobEnd>,
    model: String,
    models: ModelsUsed,
    final_text: String,
    /// Whether the current step is the closing one.
    closing: bool,
    /// Whether a closing reply said something in this turn.
    wrapped_up: bool,
    turns: u32,
    tool_calls: BTreeMap<String, ToolCount>,
    usage: Usage,
    /// None once a reply had no price.
    cost_usd: Price,
    files_changed: Vec<ChangedFile>,
    patch: Option<String>,
    denials: Vec<Denial>,
    retries: u32,
    compactions: u32,
    warnings: Vec<Warning>,
    sandbox: Option<SandboxReport>,
    calls: HashMap<CallKey, CallFold>,
}

/// A sum of dollars, unknown once one summand is.
#[derive(Debug, Clone, Copy)]
struct Price(Option<f64>);

/// Session, agent and call.
type CallKey = (Option<String>, Option<String>, String);

/// What is known of a call before its end.
#[derive(Debug, Clone, Default)]
struct CallFold {
    input: Value,
    rule: Option<String>,
    reason: Option<String>,
    suggested_rule: Option<String>,
}

impl Default for Price {
    fn default() -> Self {
        Self(Some(0.0))
    }
}

impl Price {
    fn add(&mut self, cost_usd: Option<f64>) {
        self.0 = self.0.zip(cost_usd).map(|(sum, cost)| sum + cost);
    }
}

impl Summary {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one event.
    pub fn observe(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStart(start) => {
                self.run_id.clone_from(&event.run_id);
                self.started_at.clone_from(&event.ts);
                self.start = Some(start.clone());
            }
            EventKind::Warning(warning) => {
                self.warnings.push(warning.clone());
                self.job(&event.place).warnings.push(warning.clone());
            }
            EventKind::ModelFallback(fallback) => {
                let warning = warning_of(fallback);
                self.warnings.push(warning.clone());
                self.job(&event.place).warnings.push(warning);
            }
            EventKind::JobStart(_) => {
                self.job(&event.place).started_at.clone_from(&event.ts);
            }
            _ => self.job(&event.place).observe(&event.place, &event.kind),
        }
    }

    /// The result of a run that ends like this.
    pub fn result(&self, ending: &RunEnding<'_>) -> ResultDocument {
        let all = self.merged();
        let named: Vec<&JobFold> = self.jobs.iter().filter(|job| job.name.is_some()).collect();
        let start = self.start.as_ref();
        let run_dir = start.and_then(|start| start.run_dir.clone());
        let several = named.len() > 1;
        ResultDocument {
            task: self.task(&named),
            model: if several || all.model.is_empty() {
                start.map(|start| start.model.clone()).unwrap_or_default()
            } else {
                all.model.clone()
            },
            error: ending.error.clone().or_else(|| {
                named
                    .iter()
                    .find_map(|job| job.end.as_ref()?.conclusion.error.clone())
            }),
            started_at: self.started_at.clone(),
            duration_ms: between_ms(&self.started_at, ending.ended_at),
            warnings: self.warnings.clone(),
            replay: start.and_then(|start| start.replay.clone()),
            jobs: if several {
                let document = |job: &&JobFold| job.ended(&self.run_id, run_dir.clone());
                named.iter().map(document).collect()
            } else {
                Vec::new()
            },
            ..all.document(&self.run_id, run_dir.clone(), ending.reason)
        }
    }

    fn task(&self, named: &[&JobFold]) -> String {
        let planned = self.start.as_ref().map(|start| start.jobs.as_slice());
        match planned {
            Some(planned) if !planned.is_empty() => planned.join(", "),
            _ => {
                let names: Vec<&str> = named.iter().filter_map(|job| job.name.as_deref()).collect();
                names.join(", ")
            }
        }
    }

    fn merged(&self) -> JobFold {
        let mut all = JobFold::default();
        for job in &self.jobs {
            all.merge(job);
        }
        all
    }

    fn job(&mut self, place: &Place) -> &mut JobFold {
        let known = self.jobs.iter().position(|job| job.name == place.job);
        let index = known.unwrap_or_else(|| {
            self.jobs.push(JobFold {
                name: place.job.clone(),
                ..JobFold::default()
            });
            self.jobs.len() - 1
        });
        self.jobs
            .get_mut(index)
            .expect("the index was found or made just now")
    }
}

impl JobFold {
    fn observe(&mut self, place: &Place, kind: &EventKind) {
        match kind {
            EventKind::JobEnd(end) => self.end = Some(JobEnd::clone(end)),
            EventKind::SessionReady(ready) if is_main(place) => {
                self.model.clone_from(&ready.model);
                self.sandbox.clone_from(&ready.sandbox);
            }
            EventKind::MessageComplete(message) => self.reply(place, message),
            EventKind::TurnStart(_) if is_main(place) => self.wrapped_up = false,
            EventKind::StepStart(start) if is_main(place) => self.closing = start.closing,
            EventKind::TurnEnd(end) if is_main(place) => {
                // What a model said on its way to an answer is none.
                let wrapped_up = end.status == TurnStatus::Limit && self.wrapped_up;
                let answered = matches!(end.status, TurnStatus::Ok | TurnStatus::Invalid);
                if answered || wrapped_up {
                    self.final_text.clone_from(&end.final_text);
                } else {
                    self.final_text.clear();
                }
            }
            EventKind::RetryStart(_) => self.retries += 1,
            EventKind::ReplyDiscarded(discarded) => self.discarded(discarded),
            EventKind::CompactExec(compaction) => {
                self.compactions += u32::from(!compaction.aborted);
                self.usage.add(&compaction.usage);
                self.cost_usd.add(compaction.cost_usd);
                add_models(&mut self.models, &compaction.models);
            }
            EventKind::BranchSummary(summary) => {
                self.usage.add(&summary.usage);
                self.cost_usd.add(summary.cost_usd);
                add_models(&mut self.models, &summary.models);
            }
            EventKind::Diff(diff) => {
                self.files_changed.clone_from(&diff.files);
                self.patch.clone_from(&diff.patch_path);
            }
            EventKind::PermissionRequest(request) => {
                let call = self.call(place, &request.tool_call_id);
                call.suggested_rule.clone_from(&request.suggested_rule);
            }
            EventKind::PermissionResponse(response) => {
                let call = self.call(place, &response.tool_call_id);
                call.rule.clone_from(&response.rule);
                call.reason = Some(response.reason.clone());
            }
            EventKind::ToolStart(start) => {
                let call = self.call(place, &start.tool_call_id);
                call.input.clone_from(&start.args);
            }
            EventKind::ToolComplete(end) => {
                self.calls.remove(&key(place, &end.tool_call_id));
                self.count(&end.tool_name).count += 1;
            }
            EventKind::ToolError(error) => self.tool_error(place, error),
            _ => {}
        }
    }

    fn reply(&mut self, place: &Place, message: &MessageComplete) {
        if message.agent_id == "main" {
            self.turns += 1;
            self.wrapped_up |= self.closing && !message.content.trim().is_empty();
        }
        self.usage.add(&message.usage);
        self.cost_usd.add(message.cost_usd);
        let used = ModelUsed::reply(&message.usage, message.cost_usd);
        self.models
            .entry(message.model.clone())
            .or_default()
            .add(&used);
        for call in &message.tool_calls {
            let known = CallFold {
                input: call.args.clone(),
                ..CallFold::default()
            };
            self.calls.insert(key(place, &call.id), known);
        }
    }

    /// What no reply came of is paid for, too.
    fn discarded(&mut self, discarded: &ReplyDiscarded) {
        self.usage.add(&discarded.usage);
        self.cost_usd.add(discarded.cost_usd);
        let used = ModelUsed {
            replies: 0,
            usage: discarded.usage,
            cost_usd: discarded.cost_usd,
        };
        let model = self.models.entry(discarded.model.clone());
        model.or_default().add(&used);
    }

    fn tool_error(&mut self, place: &Place, error: &ToolError) {
        let call = self
            .calls
            .remove(&key(place, &error.tool_call_id))
            .unwrap_or_default();
        let count = self.count(&error.tool_name);
        count.count += 1;
        count.errors += 1;
        if error.status == ToolErrorStatus::Denied {
            count.denied += 1;
            self.denials.push(Denial {
                tool: error.tool_name.clone(),
                input: call.input,
                rule: call.rule,
                reason: call.reason.unwrap_or_else(|| error.content.clone()),
                suggested_rule: call.suggested_rule,
            });
        }
    }

    fn call(&mut self, place: &Place, id: &str) -> &mut CallFold {
        self.calls.entry(key(place, id)).or_default()
    }

    fn count(&mut self, tool: &str) -> &mut ToolCount {
        self.tool_calls.entry(tool.to_owned()).or_default()
    }

    fn merge(&mut self, other: &Self) {
        self.sandbox = self.sandbox.take().or_else(|| other.sandbox.clone());
        if self.model.is_empty() {
            self.model.clone_from(&other.model);
        }
        if !self.final_text.is_empty() && !other.final_text.is_empty() {
            self.final_text.push_str("\n\n");
        }
        self.final_text.push_str(&other.final_text);
        self.turns += other.turns;
        for (tool, added) in &other.tool_calls {
            let count = self.count(tool);
            count.count += added.count;
            count.errors += added.errors;
            count.denied += added.denied;
        }
        self.usage.add(&other.usage);
        self.cost_usd.add(other.cost_usd.0);
        add_models(&mut self.models, &other.models);
        self.files_changed.extend_from_slice(&other.files_changed);
        self.denials.extend_from_slice(&other.denials);
        self.retries += other.retries;
        self.compactions += other.compactions;
        self.merge_end(other);
    }

    fn merge_end(&mut self, other: &Self) {
        if self.patch.is_none() {
            self.patch.clone_from(&other.patch);
        }
        let Some(added) = &other.end else { return };
        match &mut self.end {
            None => self.end = Some(added.clone()),
            Some(end) => {
                add_budget(&mut end.conclusion.budget, &added.conclusion.budget);
                end.conclusion.session_file = None;
                // Each job has its own.
                end.conclusion.structured_output = None;
                let repairs = (end.conclusion.repairs, added.conclusion.repairs);
                end.conclusion.repairs = match repairs {
                    (Some(some), Some(more)) => Some(some + more),
                    (some, more) => some.or(more),
                };
            }
        }
    }

    /// The job's own document, by its own end.
    fn ended(&self, run_id: &str, run_dir: Option<String>) -> ResultDocument {
        let reason = self
            .end
            .as_ref()
            .map_or(Reason::Incomplete, |end| end.reason);
        let document = self.document(run_id, run_dir, reason);
        let Some(end) = &self.end else {
            return document;
        };
        ResultDocument {
            error: end.conclusion.error.clone(),
            duration_ms: end.duration_ms,
            ..document
        }
    }

    fn document(&self, run_id: &str, run_dir: Option<String>, reason: Reason) -> ResultDocument {
        let conclusion = self.end.as_ref().map(|end| &end.conclusion);
        ResultDocument {
            schema_version: crate::event::SCHEMA_VERSION,
            run_id: run_id.to_owned(),
            task: self.name.clone().unwrap_or_default(),
            outcome: reason.outcome(),
            reason,
            exit_code: reason.exit_code(),
            final_text: self.final_text.clone(),
            model: self.model.clone(),
            models: self.models.clone(),
            started_at: self.started_at.clone(),
            duration_ms: 0,
            turns: self.turns,
            tool_calls: self.tool_calls.clone(),
            usage: self.usage,
            cost_usd: self.cost_usd.0,
            budget: conclusion
                .map(|known| known.budget.clone())
                .unwrap_or_default(),
            files_changed: self.files_changed.clone(),
            denials: self.denials.clone(),
            retries: self.retries,
            compactions: self.compactions,
            warnings: self.warnings.clone(),
            sandbox: self.sandbox.clone(),
            session_file: conclusion.and_then(|known| known.session_file.clone()),
            structured_output: conclusion.and_then(|known| known.structured_output.clone()),
            repairs: conclusion.and_then(|known| known.repairs),
            artifacts: Artifacts {
                run_dir,
                patch: self.patch.clone(),
            },
            replay: None,
            error: None,
            jobs: Vec::new(),
        }
    }
}

fn add_models(sum: &mut ModelsUsed, added: &ModelsUsed) {
    for (model, used) in added {
        sum.entry(model.clone()).or_default().add(used);
    }
}

/// What a result says of a model that took over.
fn warning_of(fallback: &ModelFallback) -> Warning {
    Warning {
        code: "model_fallback".to_owned(),
        message: format!(
            "{} took over from {}: {}",
            fallback.to, fallback.from, fallback.reason
        ),
    }
}

fn add_budget(sum: &mut Budget, added: &Budget) {
    for (kind, spent) in added {
        let total = sum.entry(*kind).or_default();
        total.limit += spent.limit;
        total.used += spent.used;
    }
}

fn key(place: &Place, id: &str) -> CallKey {
    (
        place.session_id.clone(),
        place.agent_id.clone(),
        id.to_owned(),
    )
}

fn is_main(place: &Place) -> bool {
    place
        .agent_id
        .as_deref()
        .is_none_or(|agent| agent == "main")
}

/// Milliseconds between two stamps; 0 when the wall clock went backwards.
fn between_ms(start: &str, end: &str) -> u64 {
    let parsed = |stamp: &str| stamp.parse::<jiff::Timestamp>().ok();
    parsed(start)
        .zip(parsed(end))
        .and_then(|(start, end)| u64::try_from(end.as_millisecond() - start.as_millisecond()).ok())
        .unwrap_or(0)
}
