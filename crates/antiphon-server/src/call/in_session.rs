//! The end of a leg in a session: returned questions are sent here, and the handler is entered again with the record,
//! as by the next request of a call. Awaited questions are sent while the handler runs.

use crate::{
    call::{Round, leg_end},
    errors::refusal::{Refusal, StepsKept},
    request::{admit::Admitted, carrier::Pushed},
    runtime::Runtime,
    session::{AskEnd, OutboundRequest, Question, not_answered, too_late},
};
use antiphon_engine::{LegOutput, Limits, Record, StopReason};
use antiphon_seal::Call;
use antiphon_wire::{
    AskSupport, InputRequest, InputRequests, UrlElicitations, escaped,
    pacing::{Pacing, StateOnlyLimits},
};
use std::{
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// The pause before a handler is entered again after its last leg failed with something recorded.
const AFTER_A_FAULT: Duration = Duration::from_millis(50);

/// The pacing of a call over its legs.
#[derive(Default)]
pub(crate) struct SessionPacing {
    /// The pacing of consecutive legs that ended with state only.
    pacing: Option<(Pacing, Instant)>,
}

impl SessionPacing {
    /// Waits for the answers to the round, and returns the record of the next leg.
    pub(crate) async fn next(
        &mut self,
        server: &Runtime,
        admitted: &mut Admitted<'_>,
        pushed: &Pushed,
        round: Round,
        left: LegOutput,
    ) -> Result<Box<Record>, Refusal> {
        let LegOutput { call, mut record, steps_done, .. } = left;
        let given = round.by_hand.as_ref().map_or(&[] as &[_], |by_hand| &by_hand.ids);
        let ids = ElicitationIds::of(call.as_ref(), &round.requests, given);
        let id = call.as_ref().map(Call::id);
        admitted.put_call(call.and_then(Call::next_leg));
        let Some(by_hand) = round.by_hand else {
            // The last leg failed: the record counts how often.
            self.pacing = None;
            sleep(AFTER_A_FAULT).await;
            return Ok(Box::new(record));
        };
        // A call from the beginning would repeat completed steps.
        if by_hand.urls_first
            && steps_done.is_empty()
            && let Some(refusal) = urls_required(admitted, pushed, &round.requests, &ids)?
        {
            return Err(refusal);
        }
        if round.requests.is_empty() {
            let new = || (Pacing::new(StateOnlyLimits::default()), Instant::now());
            let (pacing, since) = self.pacing.get_or_insert_with(new);
            let Some(wait) = pacing.next(since.elapsed()) else {
                tracing::warn!(target = ?escaped(admitted.leg().target), name = "state_only", "a limit was reached");
                let text = "This call returns state again and again, without a result".to_owned();
                return Err(
                    Refusal::Limit { name: "state_only", text }.after_steps(steps_done, StepsKept::Nowhere)
                );
            };
            sleep(wait).await;
        } else {
            self.pacing = None;
            let target = admitted.leg().target;
            let asked = ask(server, admitted, pushed, &mut record, &round.requests, &ids).await;
            asked.map_err(|fault| {
                fault.refuse(server, target, id).after_steps(steps_done, StepsKept::Nowhere)
            })?;
        }
        Ok(Box::new(record))
    }
}

/// The reason for which a round in a session has no answers.
enum AskFailure {
    Refused(Refusal),
    Stopped(StopReason),
}

impl AskFailure {
    fn refuse(self, server: &Runtime, target: &str, call: Option<antiphon_seal::CallId>) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Stopped(stop) => leg_end::refuse(server, target, stop, call),
        }
    }
}

/// Asks until every question has a valid answer.
async fn ask(
    server: &Runtime,
    admitted: &Admitted<'_>,
    pushed: &Pushed,
    record: &mut Record,
    requests: &InputRequests,
    ids: &ElicitationIds,
) -> Result<(), AskFailure> {
    let declared = admitted.missing(requests);
    let lacks = |missing: AskSupport, (_, request)| missing.and(pushed.missing(request));
    let missing = requests.iter().fold(declared, lacks);
    if missing != AskSupport::NONE {
        return Err(AskFailure::Refused(Refusal::Capability { missing }));
    }
    let is_elicitation = |(_, request): (_, &InputRequest)| matches!(request, InputRequest::Elicit(_));
    if !pushed.may_answer && requests.iter().any(is_elicitation) {
        return Err(AskFailure::Refused(Refusal::NotApprover));
    }
    let limits = server.engine_limits();
    let round = PendingRound::send(pushed, ids, requests).map_err(AskFailure::Stopped)?;
    round.answered(record, limits).await.map_err(AskFailure::Stopped)
}

/// Returns the error that names the URLs, if the client supports it.
fn urls_required(
    admitted: &Admitted<'_>,
    pushed: &Pushed,
    requests: &InputRequests,
    ids: &ElicitationIds,
) -> Result<Option<Refusal>, Refusal> {
    let session = &pushed.session;
    if !session.version().has_url_required_error() {
        return Ok(None);
    }
    drop(admitted.permit(requests.clone())?);
    let mut urls = UrlElicitations::default();
    for (key, request) in requests.iter() {
        match (request, ids.get(key)) {
            (InputRequest::Elicit(elicit), Some(id)) => urls.0.push((id.to_owned(), elicit.clone())),
            _ => {
                let target = admitted.leg().target;
                tracing::error!(
                    target = ?escaped(target),
                    key,
                    "`urls_first` allows URL questions only: another question was returned with them"
                );
                return Err(Refusal::Internal);
            }
        }
    }
    for (id, _) in &urls.0 {
        session.note_url(id);
    }
    Ok(Some(Refusal::UrlsFirst(Box::new(urls.to_error()))))
}

/// The ids of the URL questions of one round, by their keys.
pub(crate) struct ElicitationIds(Vec<(String, String)>);

impl ElicitationIds {
    /// Collects the given ids, and generates the others.
    pub(crate) fn of(call: Option<&Call>, requests: &InputRequests, given: &[(String, String)]) -> Self {
        let is_url =
            |request: &InputRequest| matches!(request, InputRequest::Elicit(elicit) if elicit.is_url());
        let made_up = |key: &str| {
            let call = call?;
            // A repeated question has a new id.
            Some(call.secret().idempotency_key("#elicitation", &format!("{key} {}", call.leg())))
        };
        let urls = requests.iter().filter(|(_, request)| is_url(request)).filter_map(|(key, _)| {
            let given = given.iter().find(|(known, _)| known == key).map(|(_, id)| id.clone());
            Some((key.to_owned(), given.or_else(|| made_up(key))?))
        });
        Self(urls.collect())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, id)| id.as_str())
    }
}

/// One round. Each answer is checked when it arrives. A bad answer is dropped, and its question is sent again at once,
/// while the others still wait.
pub(crate) struct PendingRound<'a> {
    pushed: &'a Pushed,
    ids: &'a ElicitationIds,
    pending: Vec<(String, OutboundRequest)>,
}

impl<'a> PendingRound<'a> {
    /// Sends all questions.
    pub(crate) fn send(
        pushed: &'a Pushed,
        ids: &'a ElicitationIds,
        requests: &InputRequests,
    ) -> Result<Self, StopReason> {
        let mut round = Self { pushed, ids, pending: Vec::with_capacity(requests.len()) };
        for (key, request) in requests.iter() {
            round.put(key, request)?;
        }
        Ok(round)
    }

    fn put(&mut self, key: &str, request: &InputRequest) -> Result<(), StopReason> {
        let question = Question { key, request, elicitation_id: self.ids.get(key), related_task: None };
        self.pending.push((key.to_owned(), self.pushed.send(&question, self.pushed.wait)?));
        Ok(())
    }

    /// Waits until the record has an answer to each question.
    pub(crate) async fn answered(mut self, record: &mut Record, limits: Limits) -> Result<(), StopReason> {
        poll_fn(|cx| self.poll(cx, record, &limits)).await
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        record: &mut Record,
        limits: &Limits,
    ) -> Poll<Result<(), StopReason>> {
        let mut at = 0;
        while let Some((_, outbound)) = self.pending.get_mut(at) {
            if let Poll::Ready(end) = outbound.poll(cx) {
                let (key, _) = self.pending.remove(at);
                let text = text_of(&key, end)?;
                if let Some(again) = record.receive_one(&key, Some(text.get()), limits)? {
                    self.put(&key, &again)?;
                }
            } else {
                at += 1;
            }
        }
        if self.pending.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

fn text_of(key: &str, end: AskEnd) -> Result<Box<serde_json::value::RawValue>, StopReason> {
    match end {
        AskEnd::Answer(Ok(text)) => Ok(text),
        AskEnd::Answer(Err(error)) => Err(StopReason::Client(not_answered(key, &error))),
        AskEnd::SessionOver => {
            Err(StopReason::Client(format!("`{key}` was not answered: the session ended")))
        }
        AskEnd::TooLate(waited) => {
            Err(StopReason::Limit { name: "answer_timeout", text: too_late(key, waited) })
        }
    }
}
