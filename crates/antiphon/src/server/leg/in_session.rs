//! A leg in a session. What a handler awaits is asked while it runs; what it asks by hand is asked here, and then the
//! handler is entered again, as by the next request of a call.

mod round;

use super::{Answers, Came, Running, asked, context, settle, too_long};
use crate::{
    pacing::{Pacing, StateOnlyLimits},
    server::{
        Ask, Ctx,
        admit::{Admitted, cannot_be_asked},
        in_flight::InFlight,
        leg::LegResult,
        legacy::{Session, Wait},
        outbox::Outbox,
        refusal::Refusal,
        round::{Answered, Asked, Flow, Push, Ran},
        serve::Inner,
    },
};
use antiphon_seal::Call;
use antiphon_wire::{AskSupport, InputRequest, InputRequests, UrlElicitations};
use round::Round;
use std::{
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};
use tokio::time::{Instant, sleep};

/// Runs the call to its end.
pub(super) async fn run<T: Send + 'static>(
    server: &Inner,
    mut admitted: Admitted<'_>,
    start: impl Fn(Ctx) -> Result<Running<T>, String>,
) -> Result<LegResult<T>, Refusal> {
    let mut answers = Answers::default();
    let mut pacing = Pacing::new(StateOnlyLimits::default());
    let mut legs = 1;
    loop {
        let ran = match enter(server, &mut admitted, answers, &start).await? {
            Ok(ran) => ran,
            Err(fault) => return Ok(LegResult::BadArguments(fault)),
        };
        let (required, journal) = match settle(&mut admitted, ran)? {
            Came::Over(result) => return Ok(result),
            // What is awaited was asked already: this leg has no round that leaves.
            Came::Suspended(..) => return Err(Refusal::Internal),
            Came::ByHand(required, journal) => (required, journal),
        };
        next_leg(server, &mut admitted)?;
        let ids = Ids::of(&admitted, &required.asks);
        let urls_first = required.urls_first;
        let (requests, asked, state) = asked(server, admitted.leg().target, required)?;
        if urls_first && let Some(refusal) = urls_required(&admitted, &requests, &ids)? {
            return Err(refusal);
        }
        answers = if requests.is_empty() {
            let Some(wait) = pacing.next(Instant::now()) else {
                return Err(limit(&admitted, "state_only", "This call only goes on, and comes to nothing"));
            };
            sleep(wait).await;
            Answers { state, journal, ..Answers::default() }
        } else {
            pacing = Pacing::new(StateOnlyLimits::default());
            legs += 1;
            let answered = ask(server, &admitted, asked, &requests, &ids, legs).await?;
            Answers { answered, state, journal, responses: None }
        };
    }
}

/// Runs the handler once; the inner error is that of its arguments.
async fn enter<T: Send + 'static>(
    server: &Inner,
    admitted: &mut Admitted<'_>,
    answers: Answers,
    start: &impl Fn(Ctx) -> Result<Running<T>, String>,
) -> Result<Result<Ran<T>, String>, Refusal> {
    let Some(slot) = server.slot(admitted.leg().request, admitted.principal()) else {
        return Err(Refusal::Busy);
    };
    let shared = context(server, admitted, answers);
    let handler = match start(Ctx::new(Arc::clone(&shared))) {
        Ok(handler) => handler,
        Err(fault) => return Ok(Err(fault)),
    };
    let mut in_flight = InFlight::new(handler, Arc::clone(&shared), slot, server.limits.step_grace);
    bounded(server, admitted, &shared.flow, &mut in_flight).await.map(Ok)
}

/// Runs the handler for as long as it may, from each time that people have answered what it asked.
async fn bounded<T: Send + 'static>(
    server: &Inner,
    admitted: &Admitted<'_>,
    flow: &Flow,
    handler: &mut InFlight<T>,
) -> Result<Ran<T>, Refusal> {
    let time = server.limits.handler_time;
    let mut work = pin!(sleep(time));
    let ran = poll_fn(|cx| {
        if let Poll::Ready(ran) = Pin::new(&mut *handler).poll(cx) {
            return Poll::Ready(Some(ran));
        }
        if flow.machine().asks_or_pauses() {
            work.as_mut().reset(Instant::now() + time);
        }
        work.as_mut().poll(cx).map(|()| None)
    });
    ran.await.ok_or_else(|| too_long(server, admitted, flow))
}

/// The call in its next leg. It begins with the first.
fn next_leg(server: &Inner, admitted: &mut Admitted<'_>) -> Result<(), Refusal> {
    let call = match admitted.take_call() {
        Some(call) => call,
        None => Call::begin(server.clock.now(), None).map_err(|fault| {
            tracing::error!(%fault, "a call could not begin");
            Refusal::Internal
        })?,
    };
    admitted.put_call(call.next_leg());
    Ok(())
}

fn limit(admitted: &Admitted<'_>, name: &'static str, text: &str) -> Refusal {
    tracing::warn!(target = admitted.leg().target, name, "a bound was reached");
    Refusal::Limit { name, text: text.to_owned() }
}

/// Asks until every question has an answer that counts.
async fn ask(
    server: &Inner,
    admitted: &Admitted<'_>,
    asked: Vec<Asked>,
    requests: &InputRequests,
    ids: &Ids,
    leg: u16,
) -> Result<Vec<Answered>, Refusal> {
    let Some(push) = push(server, admitted) else { return Err(Refusal::Internal) };
    if leg > server.limits.legs {
        let (most, what) = (server.limits.legs, cannot_be_asked(requests));
        let text = format!(
            "This call has asked {} times, as often as the limit `legs` ({most}) allows: {what}",
            most.saturating_sub(1)
        );
        return Err(limit(admitted, "legs", &text));
    }
    drop(admitted.permit(requests.clone())?);
    let lacks = |missing: AskSupport, (_, request)| missing.and(push.session.missing(request));
    let missing = requests.iter().fold(AskSupport::NONE, lacks);
    if missing != AskSupport::NONE {
        return Err(Refusal::Capability { missing });
    }
    Round::send(&push, ids, &server.limits, asked, requests)?.answered().await
}

/// How this leg reaches its client, if that is in a session that can be asked.
pub(super) fn push(server: &Inner, admitted: &Admitted<'_>) -> Option<Push> {
    let leg = admitted.leg();
    let session: &Session = leg.request.session.as_ref()?;
    let outbox: &Outbox = leg.caller.outbox?;
    let limit = leg.settings.answer_within.unwrap_or(server.answer_within);
    let wait = Wait { limit, at_most: Some(server.limits.answer_at_most) };
    let scopes = leg.settings.scopes.clone();
    Some(Push { session: session.clone(), outbox: outbox.clone(), wait, scopes })
}

/// The ids of the URL questions of one round, by their keys.
struct Ids(Vec<(String, String)>);

impl Ids {
    /// Those that were given, and made up ones.
    fn of(admitted: &Admitted<'_>, asks: &[Ask]) -> Self {
        let urls = asks
            .iter()
            .filter(|ask| matches!(ask.request(), InputRequest::Elicit(elicit) if elicit.is_url()));
        let ids = urls.filter_map(|ask| {
            let id = ask.elicitation_id.clone().or_else(|| admitted.elicitation_id(ask.key()))?;
            Some((ask.key().to_owned(), id))
        });
        Self(ids.collect())
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, id)| id.as_str())
    }
}

/// The error that names the URLs, where the client knows it.
fn urls_required(
    admitted: &Admitted<'_>,
    requests: &InputRequests,
    ids: &Ids,
) -> Result<Option<Refusal>, Refusal> {
    let Some(session) = &admitted.leg().request.session else { return Ok(None) };
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
