//! A leg in a session. What a handler awaits is asked while it runs; what it asks by hand is asked here, and then the
//! handler is entered again, as by the next request of a call.

use super::{Answers, Came, Running, asked, context, settle, too_long};
use crate::{
    pacing::{Pacing, StateOnlyLimits},
    server::{
        Ask, Ctx,
        admit::Admitted,
        in_flight::InFlight,
        leg::LegResult,
        legacy::{AskEnd, Live, Session, Wait, not_answered, too_late},
        outbox::Outbox,
        refusal::Refusal,
        round::{Flow, Judged, Payload, Push, Ran, judge},
        serve::Inner,
    },
};
use antiphon_seal::Call;
use antiphon_wire::{InputRequest, InputRequests, InputResponses, UrlElicitations};
use std::{
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
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
            ask(server, &admitted, Payload { state, asked, journal }, requests, &ids, &mut legs).await?
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
    let Some(slot) = server.slot(true) else { return Err(Refusal::Busy) };
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
    mut payload: Payload,
    mut requests: InputRequests,
    ids: &Ids,
    legs: &mut u16,
) -> Result<Answers, Refusal> {
    let Some(push) = push(server, admitted) else { return Err(Refusal::Internal) };
    loop {
        *legs += 1;
        if *legs > server.limits.legs {
            let text = format!("This call has asked {} times, as often as it may", server.limits.legs - 1);
            return Err(limit(admitted, "legs", &text));
        }
        drop(admitted.permit(requests.clone())?);
        let responses = Round::send(&push, &requests, ids)?.answered().await?;
        match judge(payload, Some(&responses), &server.limits)? {
            Judged::Ready { answered, state, journal } => {
                return Ok(Answers { answered, state, journal, responses: None });
            }
            Judged::AskAgain { payload: rest, requests: again } => (payload, requests) = (rest, again),
        }
    }
}

/// How this leg reaches its client, if that is in a session that can be asked.
pub(super) fn push(server: &Inner, admitted: &Admitted<'_>) -> Option<Push> {
    let leg = admitted.leg();
    let session: &Session = leg.request.session.as_ref()?;
    let outbox: &Outbox = leg.caller.outbox?;
    let limit = leg.settings.answer_within.unwrap_or(server.answer_within);
    let wait = Wait { limit, at_most: Some(server.limits.answer_at_most) };
    Some(Push { session: session.clone(), outbox: outbox.clone(), wait })
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

/// The questions of one round, on their way.
struct Round<'a> {
    waiting: Vec<(&'a str, Live)>,
}

impl<'a> Round<'a> {
    fn send(push: &Push, requests: &'a InputRequests, ids: &Ids) -> Result<Self, Refusal> {
        let mut waiting = Vec::with_capacity(requests.len());
        for (key, request) in requests.iter() {
            let live = Live::send(&push.session, &push.outbox, request, ids.get(key), push.wait);
            let live = live.map_err(|cause| {
                tracing::error!(%cause, "an ask cannot be sent");
                Refusal::Internal
            })?;
            waiting.push((key, live));
        }
        Ok(Self { waiting })
    }

    async fn answered(mut self) -> Result<InputResponses, Refusal> {
        let mut responses = InputResponses::new();
        poll_fn(|cx| self.poll(cx, &mut responses)).await?;
        Ok(responses)
    }

    fn poll(&mut self, cx: &mut Context<'_>, responses: &mut InputResponses) -> Poll<Result<(), Refusal>> {
        let mut refused = None;
        self.waiting.retain_mut(|(key, live)| match live.poll(cx) {
            Poll::Pending => true,
            Poll::Ready(end) => {
                refused = refused.take().or_else(|| keep(key, end, responses).err());
                false
            }
        });
        if let Some(refusal) = refused {
            return Poll::Ready(Err(refusal));
        }
        if self.waiting.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

fn keep(key: &str, end: AskEnd, responses: &mut InputResponses) -> Result<(), Refusal> {
    match end {
        AskEnd::Answer(Ok(text)) => responses.insert(key, &text).map_err(|_fault| Refusal::Internal),
        AskEnd::Answer(Err(error)) => Err(Refusal::Told(not_answered(key, &error))),
        AskEnd::SessionOver => Err(Refusal::Told(format!("`{key}` was not answered: the session ended"))),
        AskEnd::TooLate(waited) => Err(Refusal::Limit { name: "answer_within", text: too_late(key, waited) }),
    }
}
