//! The end of a leg in a session: the questions that a handler returned are asked here, and it is entered again with the
//! record, as by the next request of a call. What a handler awaits is asked while it runs.

mod round;

use super::{Entry, end};
use crate::{
    pacing::{Pacing, StateOnlyLimits},
    server::{
        admit::Admitted,
        legacy::{Session, Wait},
        outbox::Outbox,
        refusal::Refusal,
        round::{Carrier, Pushed, Round},
        serve::Inner,
    },
};
use antiphon_engine::{LegOutput, Record};
use antiphon_seal::Call;
use antiphon_wire::{AskSupport, InputRequest, InputRequests, UrlElicitations};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The pause before a handler is entered again whose last leg failed behind something that it recorded.
const AFTER_A_FAULT: Duration = Duration::from_millis(50);

/// How far a call has come over its legs.
#[derive(Default)]
pub(super) struct Progress {
    /// Of a row of legs that ended with state only.
    pacing: Option<Pacing>,
}

impl Progress {
    /// Has the round answered. The next leg begins with this.
    pub(super) async fn next(
        &mut self,
        server: &Inner,
        admitted: &mut Admitted<'_>,
        pushed: &Pushed,
        round: Round,
        left: LegOutput,
    ) -> Result<Entry, Refusal> {
        let LegOutput { call, mut record, steps_done, .. } = left;
        let given = round.by_hand.as_ref().map_or(&[] as &[_], |by_hand| &by_hand.ids);
        let ids = Ids::of(call.as_ref(), &round.requests, given);
        let id = call.as_ref().map(Call::id);
        admitted.put_call(call.and_then(Call::next_leg));
        let Some(by_hand) = round.by_hand else {
            // The last leg failed: how often that may be is counted in the record.
            self.pacing = None;
            sleep(AFTER_A_FAULT).await;
            return Ok(Entry { record: Some(record), responses: None });
        };
        if by_hand.urls_first
            && let Some(refusal) = urls_required(admitted, pushed, &round.requests, &ids)?
        {
            return Err(refusal);
        }
        if round.requests.is_empty() {
            let pacing = self.pacing.get_or_insert_with(|| Pacing::new(StateOnlyLimits::default()));
            let Some(wait) = pacing.next(Instant::now()) else {
                tracing::warn!(target = admitted.leg().target, name = "state_only", "a bound was reached");
                let text = "This call only goes on, and comes to nothing".to_owned();
                return Err(Refusal::Limit { name: "state_only", text }.behind(steps_done));
            };
            sleep(wait).await;
        } else {
            self.pacing = None;
            let target = admitted.leg().target;
            let asked = ask(server, admitted, pushed, &mut record, &round.requests, &ids).await;
            asked.map_err(|fault| fault.refuse(target, id).behind(steps_done))?;
        }
        Ok(Entry { record: Some(record), responses: None })
    }
}

/// Why a round in a session has no answers.
enum Unanswered {
    Refused(Refusal),
    Stopped(antiphon_engine::StopReason),
}

impl Unanswered {
    fn refuse(self, target: &str, call: Option<antiphon_seal::CallId>) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Stopped(stop) => end::refuse(target, stop, call),
        }
    }
}

/// Asks until every question has an answer that counts.
async fn ask(
    server: &Inner,
    admitted: &Admitted<'_>,
    pushed: &Pushed,
    record: &mut Record,
    requests: &InputRequests,
    ids: &Ids,
) -> Result<(), Unanswered> {
    let declared = admitted.missing(requests);
    let lacks = |missing: AskSupport, (_, request)| missing.and(pushed.session.missing(request));
    let missing = requests.iter().fold(declared, lacks);
    if missing != AskSupport::NONE {
        return Err(Unanswered::Refused(Refusal::Capability { missing }));
    }
    let limits = server.limits.of_call();
    let round = round::Round::send(pushed, ids, requests).map_err(Unanswered::Stopped)?;
    round.answered(record, limits).await.map_err(Unanswered::Stopped)
}

/// The carrier of this leg: pushed, if it is in a session that can be asked.
pub(super) fn carrier(server: &Inner, admitted: &Admitted<'_>) -> Carrier {
    match pushed(server, admitted) {
        Some(pushed) => Carrier::Pushed(Box::new(pushed)),
        None => Carrier::Sealed,
    }
}

fn pushed(server: &Inner, admitted: &Admitted<'_>) -> Option<Pushed> {
    let leg = admitted.leg();
    let session: &Session = leg.request.session.as_ref()?;
    let outbox: &Outbox = leg.caller.outbox?;
    let limit = leg.settings.answer_within.unwrap_or(server.answer_within);
    let wait = Wait { limit, at_most: Some(server.limits.answer_at_most) };
    let scopes = leg.settings.scopes.clone();
    Some(Pushed { session: session.clone(), outbox: outbox.clone(), wait, scopes })
}

/// The ids of the URL questions of one round, by their keys.
struct Ids(Vec<(String, String)>);

impl Ids {
    /// Those that were given, and made up ones.
    fn of(call: Option<&Call>, requests: &InputRequests, given: &[(String, String)]) -> Self {
        let is_url =
            |request: &InputRequest| matches!(request, InputRequest::Elicit(elicit) if elicit.is_url());
        let made_up = |key: &str| {
            let call = call?;
            // Another one each time that it is asked.
            Some(call.secret().idempotency_key("#elicitation", &format!("{key} {}", call.leg())))
        };
        let urls = requests.iter().filter(|(_, request)| is_url(request)).filter_map(|(key, _)| {
            let given = given.iter().find(|(known, _)| known == key).map(|(_, id)| id.clone());
            Some((key.to_owned(), given.or_else(|| made_up(key))?))
        });
        Self(urls.collect())
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, id)| id.as_str())
    }
}

/// The error that names the URLs, where the client knows it.
fn urls_required(
    admitted: &Admitted<'_>,
    pushed: &Pushed,
    requests: &InputRequests,
    ids: &Ids,
) -> Result<Option<Refusal>, Refusal> {
    let session = &pushed.session;
    if !session.version().has_elicitation_modes() {
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
                    target,
                    key,
                    "only URLs can be asked for first: something else was asked with them"
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
