//! Error `-32042` of legacy servers: URLs that must be finished before a request is sent again. It becomes a round of URLs.

use crate::{
    asks::dispatch::AskRound,
    call::{outcome::Leg, pending::PendingCall},
    request::fault::RequestFault,
    session::{connection::Connection, legacy::Session},
};
use antiphon_wire::{
    Action, AskKind, ElicitRequest, ElicitResult, ErrorCode, ErrorObject, InputRequest, InputRequests,
    InputRequiredResult, UrlElicitations,
};
use futures_util::future::join_all;
use serde::Deserialize as _;
use std::time::Duration;
use tokio::time::timeout;

/// Turns the error into a round of the URLs that it names, if a person can be shown them.
pub(crate) fn round_of_urls<T>(
    connection: &Connection,
    leg: Result<Leg<T>, RequestFault>,
) -> Result<Leg<T>, RequestFault> {
    let Err(RequestFault::Server(error)) = &leg else { return leg };
    if error.code != ErrorCode::URL_ELICITATION_REQUIRED || !connection.core.handlers.declared.url {
        return leg;
    }
    let (Some(session), Some(urls)) = (connection.current_session(), UrlElicitations::of(error)) else {
        return leg;
    };
    let mut asks = InputRequests::new();
    for (id, ask) in urls.0 {
        session.expect_url(&id);
        let _ = asks.insert(id, InputRequest::Elicit(ask));
    }
    match InputRequiredResult::new(asks, None) {
        Ok(round) => Ok(Leg::InputRequired(round)),
        Err(_) => leg,
    }
}

/// Waits until the URLs of this round are finished, for `limit` at most: not every server reports that.
///
/// > Clients: **MAY** wait for this notification to automatically retry requests
pub(crate) async fn urls_finished(
    session: &Session,
    pending: &PendingCall,
    limit: Duration,
) -> Result<(), RequestFault> {
    if let Some(refused) = refused(pending) {
        return Err(RequestFault::Server(refused));
    }
    let all = join_all(pending.asks().iter().map(|(id, _)| session.url_finished(id)));
    if timeout(limit, all).await.is_err() {
        tracing::debug!("the server did not report that its URLs were finished: the request is sent again");
    }
    Ok(())
}

/// Returns `true` if this is such a round: URLs only, and no state.
pub(crate) fn is_url_round(pending: &PendingCall) -> bool {
    !pending.has_state()
        && !pending.asks().is_empty()
        && pending.asks().iter().all(|(_, ask)| ask.kind() == AskKind::Url)
}

/// The error of the server, if the person did not agree to all of its URLs.
fn refused(pending: &PendingCall) -> Option<ErrorObject> {
    let agreed = |id: &str| {
        let answer = pending.answers().get(id)?;
        Some(ElicitResult::deserialize(answer).ok()?.action == Action::Accept)
    };
    if pending.asks().iter().all(|(id, _)| agreed(id) == Some(true)) {
        return None;
    }
    let urls = pending.asks().iter().filter_map(|(id, ask)| match ask {
        InputRequest::Elicit(ask @ ElicitRequest::Url { .. }) => Some((id.to_owned(), ask.clone())),
        _ => None,
    });
    Some(UrlElicitations(urls.collect()).to_error())
}

/// Keeps the consents of the round before: the server still waits for those URLs, and they need no second consent.
pub(crate) fn keep_consents(before: &PendingCall, round: &mut AskRound) {
    let url = |ask: Option<&InputRequest>| match ask {
        Some(InputRequest::Elicit(ElicitRequest::Url { url, .. })) => Some(url.clone()),
        _ => None,
    };
    let same: Vec<String> = round
        .asks
        .iter()
        .filter(|(id, ask)| {
            before.answers().get(id).is_some() && url(Some(ask)) == url(before.asks().get(id))
        })
        .map(|(id, _)| id.to_owned())
        .collect();
    for id in same {
        // Only consents come this far: anything else ended the call.
        let _ = round.answer(&id, &ElicitResult::consent());
    }
}
