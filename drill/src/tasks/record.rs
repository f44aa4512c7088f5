//! The record of a task: its questions, the answers that were sent, and its end.

use super::request::{Answer, Kind, TaskRequest};
use crate::tools::TaskTool;
use crate::{clock::micros, findings::Rule, log::Life};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A task, or the attempt to create one.
#[derive(Clone, Debug)]
pub(crate) struct TaskRecord {
    pub(super) life: Life,
    pub(super) tool: TaskTool,
    pub(super) plan: &'static str,
    /// True if nobody received the id of the task.
    pub(super) is_orphan: bool,
    /// The ids in the results that created the task.
    pub(super) ids: BTreeSet<String>,
    /// The questions, by their keys.
    pub(super) asked: BTreeMap<String, Asked>,
    /// The answers, by the number of their delivery.
    pub(super) sent: BTreeMap<u64, SentAnswers>,
    /// True if somebody has asked to cancel the task.
    pub(super) is_cancelled: bool,
    pub(super) end: Option<End>,
    /// The process that acknowledged the last request.
    pub(super) acknowledged_by: Option<u32>,
    /// The moments of polls under way, by the number of their delivery.
    under_way: BTreeMap<u64, u64>,
    /// The rules that a reply has broken.
    pub(super) broken: Vec<(Rule, String)>,
    /// The errors that strangers got.
    pub(super) refusals: BTreeSet<String>,
    pub(super) polls: u64,
    pub(super) after_end: u64,
    pub(super) thefts: u64,
}

/// A question that a person has seen.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) text: String,
    /// The moment of the first reply that has it.
    pub(super) since: u64,
}

/// One delivery of answers.
#[derive(Clone, Debug)]
pub(super) struct SentAnswers {
    pub(super) answers: Vec<Answer>,
    pub(super) at: u64,
    /// The moment of the acknowledgement. Without one, the server may take the answers at any time.
    pub(super) acknowledged: Option<u64>,
}

/// The end of a task.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// The moment of the first reply that has it.
    since: u64,
    /// The task, as JSON.
    view: Value,
}

impl End {
    pub(super) fn status(&self) -> &str {
        self.view["status"].as_str().unwrap_or_default()
    }

    /// Returns the text of the result, unless it is that of an error.
    pub(super) fn text(&self) -> Option<&str> {
        let result = &self.view["result"];
        result["content"][0]["text"].as_str().filter(|_| result["isError"] != true)
    }

    /// Returns the reason of a task that failed.
    pub(super) fn reason(&self) -> &str {
        let error = &self.view["error"];
        error["data"]["reason"].as_str().or(error["message"].as_str()).unwrap_or_default()
    }
}

/// Returns the reason of an error after which the same request may succeed.
pub(super) fn is_temporary(reply: &Value) -> bool {
    let reason = reply["error"]["data"]["reason"].as_str().unwrap_or_default();
    ["store", "busy", "in_flight", "overloaded"].contains(&reason)
}

impl TaskRecord {
    pub(super) fn new(life: Life, tool: TaskTool, plan: &'static str) -> Self {
        Self {
            life,
            tool,
            plan,
            is_orphan: false,
            ids: BTreeSet::new(),
            asked: BTreeMap::new(),
            sent: BTreeMap::new(),
            is_cancelled: false,
            end: None,
            acknowledged_by: None,
            under_way: BTreeMap::new(),
            broken: Vec::new(),
            refusals: BTreeSet::new(),
            polls: 0,
            after_end: 0,
            thefts: 0,
        }
    }

    /// Notes that a request leaves.
    pub(super) fn leaves(&mut self, request: &TaskRequest, delivery: u64) {
        let at = micros();
        if !request.answers().is_empty() {
            let answers = request.answers().to_vec();
            self.sent.insert(delivery, SentAnswers { answers, at, acknowledged: None });
        }
        match request.kind {
            Kind::Get { .. } => drop(self.under_way.insert(delivery, at)),
            Kind::Cancel { .. } => self.is_cancelled = true,
            Kind::Leg { .. } | Kind::Update { .. } => (),
        }
    }

    /// Notes the reply to a request of the task's owner.
    pub(super) fn receives(&mut self, request: &TaskRequest, delivery: u64, process: u32, reply: &Value) {
        let result = &reply["result"];
        if result.is_object() {
            self.acknowledged_by = Some(process);
            if let Some(sent) = self.sent.get_mut(&delivery) {
                sent.acknowledged = Some(micros());
            }
        }
        match &request.kind {
            Kind::Leg { .. } => {
                self.note_questions(result, None);
                self.ids.extend(result["taskId"].as_str().map(ToOwned::to_owned));
                if self.ids.len() > 1 {
                    self.note(Rule::TaskCreated, format!("one leg is the tasks {:?}", self.ids));
                }
            }
            kind if !result.is_object() => self.note_error(kind, reply),
            Kind::Get { .. } => {
                self.polls += 1;
                let sent = self.under_way.remove(&delivery).unwrap_or_default();
                self.note_questions(result, Some(sent));
                self.note_status(result, sent);
            }
            Kind::Update { .. } | Kind::Cancel { .. } => (),
        }
    }

    /// Notes the reply to a request of somebody else.
    pub(super) fn meets_stranger(&mut self, reply: &Value) {
        self.thefts += 1;
        if reply.get("result").is_some() {
            self.note(Rule::TaskStrangers, format!("somebody else has {reply}"));
        } else if !is_temporary(reply) {
            self.refusals.insert(reply["error"].to_string());
        }
    }

    fn note(&mut self, rule: Rule, what: String) {
        self.broken.push((rule, what));
    }

    fn note_error(&mut self, kind: &Kind, reply: &Value) {
        let error = &reply["error"];
        if error["code"] == -32602 {
            self.note(Rule::TaskKept, format!("{kind:?} has the answer {error}"));
        } else if !is_temporary(reply) {
            self.note(Rule::TaskEnds, format!("{kind:?} has the answer {error}"));
        }
    }

    /// Notes the questions of a reply. `polled` is the moment at which a poll was sent.
    fn note_questions(&mut self, result: &Value, polled: Option<u64>) {
        let now = micros();
        for (key, request) in result["inputRequests"].as_object().into_iter().flatten() {
            let text = request["params"]["message"].as_str().unwrap_or_default();
            let asked =
                self.asked.entry(key.clone()).or_insert_with(|| Asked { text: text.to_owned(), since: now });
            if asked.text != text {
                let what = format!("{key} is asked as {:?} and as {text:?}", asked.text);
                self.note(Rule::TaskAsked, what);
            }
            // Each delivery of a leg has the round of the first one.
            if polled.is_some_and(|polled| self.is_answered(key, polled)) {
                self.note(Rule::TaskAsked, format!("{key} is open after its answer was acknowledged"));
            }
        }
    }

    fn note_status(&mut self, task: &Value, polled: u64) {
        let status = task["status"].as_str().unwrap_or_default();
        let is_over = ["completed", "failed", "cancelled"].contains(&status);
        let Some(end) = &self.end else {
            if is_over {
                self.end = Some(End { since: micros(), view: task.clone() });
            }
            return;
        };
        if end.since >= polled && !is_over {
            return;
        }
        let is_same = end.view == *task;
        let before = end.view.to_string();
        self.after_end += 1;
        if !is_same {
            self.note(Rule::TaskFinal, format!("the end {before} became {task}"));
        }
    }
}
