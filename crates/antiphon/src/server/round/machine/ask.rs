//! Questions: which have an answer, which are asked, which are asked again.

use super::{Machine, Open, Place, Stop};
use crate::server::{
    Limits,
    round::{
        journal::{AskedOnce, Body, Entry, Kind},
        judge::{UNREADABLE, read, short_enough, written},
    },
};
use antiphon_seal::Digest;
use antiphon_wire::{ElicitRequest, InputRequest};
use std::time::Duration;

/// Says why an answer that fits its question is not what the handler expects: without the value, for the log.
pub(crate) type Decodes = fn(&str) -> Result<(), String>;

/// A question as the handler puts it now.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) path: Box<str>,
    pub(crate) request: InputRequest,
    pub(crate) pin: Digest,
    pub(crate) decodes: Option<Decodes>,
    pub(crate) within: Option<Duration>,
    /// What else the person is told, outside of the pin.
    pub(crate) line: Option<&'static str>,
    /// The id of a URL question in a session.
    pub(crate) elicitation_id: Option<Box<str>>,
    /// Which call of the leg this is.
    pub(crate) order: u64,
    pub(crate) place: Place,
}

/// A question that waits for its answer.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) asked: AskedOnce,
    pub(super) request: InputRequest,
    pub(super) order: u64,
    elicitation_id: Option<Box<str>>,
    place: Place,
}

/// A question that waits, as it goes out in a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedNow<'a> {
    pub(crate) path: &'a str,
    pub(crate) request: &'a InputRequest,
    /// The last second at which an answer counts.
    pub(crate) deadline: Option<u64>,
    pub(crate) elicitation_id: Option<&'a str>,
}

/// What becomes of a question.
#[derive(Debug)]
pub(crate) enum AskVerdict {
    /// Its answer, as JSON, checked.
    Given(String),
    /// The time for it is over.
    Expired,
    /// It is asked.
    Pending,
    /// Not yet: here it is again.
    Held(Box<Question>),
    /// It does not resolve.
    Never,
}

impl Machine {
    /// A question is put.
    pub(crate) fn ask(&mut self, question: Question, limits: &Limits) -> AskVerdict {
        let Question { path, pin, place, .. } = &question;
        if self.refuse_in_step("The question", path, place) || self.is_over() {
            return AskVerdict::Never;
        }
        if let Some(first) = self.pending.iter().find(|pending| pending.asked.path == *path) {
            let first = first.place;
            self.used_twice("The question", path, first, place);
            return AskVerdict::Never;
        }
        if let Some(at) = self.history.find(Kind::Ask, path) {
            return self.answered(at, question, limits);
        }
        let at = self.open.iter().position(|open| open.asked.path == *path);
        match at.map(|at| self.open.swap_remove(at)) {
            None => self.put(question, 1, None, None, limits),
            Some(Open { asked, fault }) if asked.pin.matches(pin) => {
                let again = u8::from(fault.is_some());
                self.put(question, asked.times.saturating_add(again), asked.deadline, fault, limits)
            }
            Some(Open { asked, .. }) => self.put(question, asked.times.saturating_add(1), None, None, limits),
        }
    }

    /// A question whose answer was recorded, or has come.
    fn answered(&mut self, at: usize, question: Question, limits: &Limits) -> AskVerdict {
        let place = question.place;
        if let Some(first) = self.history.met_at(at) {
            self.used_twice("The question", &question.path, first, place);
            return AskVerdict::Never;
        }
        let Body::Answer { pin, times, used, text } = &self.history.entry(at).body else {
            return AskVerdict::Never;
        };
        let (pin, times, used) = (*pin, *times, *used);
        if !pin.matches(&question.pin) {
            // It was given to another question.
            if used {
                self.history.make_stale(at);
            }
            self.history.forget(at);
            self.epoch += 1;
            return self.put(question, times.saturating_add(1), None, None, limits);
        }
        if !self.history.is_due(at) {
            return AskVerdict::Held(Box::new(question));
        }
        let checked = match text {
            None => None,
            Some(text) if used => Some(Ok(text.clone())),
            Some(text) => {
                let checked = short_enough(&question.request, text, limits);
                let checked = checked.and_then(|()| read(&question.request, text));
                Some(checked.and_then(|answer| written(&answer)).and_then(|text| decoded(&question, text)))
            }
        };
        let text = match checked {
            None => None,
            Some(Ok(text)) => Some(text),
            Some(Err(cause)) => {
                self.history.forget(at);
                self.epoch += 1;
                // A bad answer gives no more time.
                let deadline = self.deadlines.iter().find(|(path, _)| *path == question.path);
                let deadline = deadline.map(|(_, deadline)| *deadline);
                return self.put(question, times.saturating_add(1), deadline, Some(cause), limits);
            }
        };
        if !used {
            self.history.change(at, Body::Answer { pin, times, used: true, text: text.clone() });
        }
        self.witness.shown = self.witness.shown.and(question.request.needs());
        self.history.meet(at, place);
        self.epoch += 1;
        text.map_or(AskVerdict::Expired, AskVerdict::Given)
    }

    /// Has a question asked in the round that leaves.
    fn put(
        &mut self,
        question: Question,
        times: u8,
        deadline: Option<u64>,
        fault: Option<String>,
        limits: &Limits,
    ) -> AskVerdict {
        let Question { path, request, pin, within, line, elicitation_id, order, place, .. } = question;
        // Not behind a step of this leg: its record leaves first.
        if times > limits.times_asked && (!self.beyond || self.stays) {
            let cause = fault.as_deref().unwrap_or("Its text is another one each time.");
            let text = format!("`{path}` was asked {} times without an answer that fits. {cause}", times - 1);
            self.stop(Stop::Limit { name: "times_asked", text });
            return AskVerdict::Never;
        }
        // What leaves is measured then.
        if self.stays && self.history.size() > limits.state {
            let text = format!("The record of this call has no room for the question `{path}`");
            self.stop(Stop::Limit { name: "state", text });
            return AskVerdict::Never;
        }
        let request = match (request, fault.as_deref().or(line)) {
            (InputRequest::Elicit(elicit), Some(reason)) => InputRequest::Elicit(with_reason(elicit, reason)),
            (request, _) => request,
        };
        let deadline = deadline.or_else(|| within.map(|within| self.now.saturating_add(within.as_secs())));
        let asked = AskedOnce { path, seat: self.seat.clone(), pin, times, deadline };
        self.pending.push(Pending { asked, request, order, elicitation_id, place });
        AskVerdict::Pending
    }

    /// The calls of the questions that wait.
    pub(crate) fn pending_orders(&self) -> impl Iterator<Item = u64> {
        self.pending.iter().map(|pending| pending.order)
    }

    /// Whether this question waits.
    pub(crate) fn asks(&self, order: u64) -> bool {
        self.pending_orders().any(|waiting| waiting == order)
    }

    /// A question that waits.
    pub(crate) fn pending(&self, order: u64) -> Option<AskedNow<'_>> {
        let pending = self.pending.iter().find(|pending| pending.order == order)?;
        let Pending { asked, request, elicitation_id, .. } = pending;
        Some(AskedNow {
            path: &asked.path,
            request,
            deadline: asked.deadline,
            elicitation_id: elicitation_id.as_deref(),
        })
    }

    /// An id for a URL question whose author gave none: the same whenever it is asked.
    pub(crate) fn elicitation_id(&self, path: &str) -> Option<String> {
        // Nobody's scope has this name.
        Some(self.call.as_ref()?.secret().idempotency_key("#elicitation", path))
    }

    /// An answer has come while the handler waits; `None`: its time is over.
    pub(crate) fn arrive(&mut self, order: u64, answer: Option<String>) {
        let Some(at) = self.pending.iter().position(|pending| pending.order == order) else { return };
        let AskedOnce { path, seat, pin, times, deadline } = self.pending.remove(at).asked;
        self.deadlines.retain(|(known, _)| *known != path);
        self.deadlines.extend(deadline.map(|deadline| (path.clone(), deadline)));
        let body = Body::Answer { pin, times, used: false, text: answer };
        self.history.receive(Entry { path, seat, body });
        self.epoch += 1;
    }

    /// Whether an answer to it was recorded, or has come.
    pub(crate) fn has_answer(&self, path: &str) -> bool {
        self.history.find(Kind::Ask, path).is_some()
    }

    /// A question is no longer waited for.
    pub(crate) fn withdraw(&mut self, order: u64) {
        if let Some(at) = self.pending.iter().position(|pending| pending.order == order) {
            let pending = self.pending.remove(at);
            self.witness.note_dropped(Kind::Ask, &pending.asked.path);
        }
    }

    /// How often that was done in this leg.
    pub(crate) fn times_once_more(&self) -> u16 {
        self.once_more
    }

    /// Takes back an answer that was read in this leg, so that its question is asked again. It stays the same question:
    /// how often it was asked is not counted. `deadline` is the last second at which an answer counts.
    pub(crate) fn ask_once_more(&mut self, path: &str, deadline: Option<u64>) {
        self.once_more = self.once_more.saturating_add(1);
        let Some(at) = self.history.find(Kind::Ask, path) else { return };
        let Body::Answer { pin, times, .. } = &self.history.entry(at).body else { return };
        let asked =
            AskedOnce { path: path.into(), seat: self.seat.clone(), pin: *pin, times: *times, deadline };
        self.history.forget(at);
        self.open.push(Open { asked, fault: None });
        self.epoch += 1;
    }
}

/// An answer that fits its form, if its type takes it: forms cannot say all that types do.
fn decoded(question: &Question, text: String) -> Result<String, String> {
    let Some(Err(cause)) = question.decodes.map(|decodes| decodes(&text)) else { return Ok(text) };
    let path = &question.path;
    tracing::error!(%path, %cause, "an answer fits its form but not its type: it is asked again");
    Err(UNREADABLE.to_owned())
}

fn with_reason(elicit: ElicitRequest, reason: &str) -> ElicitRequest {
    let message = format!("{}\n\n{reason}", elicit.message());
    elicit.with_message(message)
}
