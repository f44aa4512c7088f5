//! Error `-32042`: URLs that must be finished before a request is sent again. To the rounds it is a round of URLs.

use crate::{CallErrorKind, Inner, PendingCall, fault::RequestFault, finished::Leg, legacy::Session};
use antiphon_wire::{
    Action, AskKind, ElicitRequest, ElicitResult, ErrorCode, InputRequest, InputRequests,
    InputRequiredResult, UrlElicitations,
};
use futures_util::future::join_all;
use serde::Deserialize as _;
use tokio::time::timeout;

impl Inner {
    /// Makes a round of the URLs that an error names, if somebody can be shown them.
    pub(crate) fn urls_first<T>(&self, leg: Result<Leg<T>, RequestFault>) -> Result<Leg<T>, RequestFault> {
        let Err(RequestFault::Server(error)) = &leg else { return leg };
        if error.code != ErrorCode::URL_ELICITATION_REQUIRED || !self.desk.declared.url {
            return leg;
        }
        let (Some(session), Some(urls)) = (self.session_now(), UrlElicitations::of(error)) else {
            return leg;
        };
        let mut asks = InputRequests::new();
        for (id, ask) in urls.0 {
            session.shared.told.expect_url(id.clone());
            let _ = asks.insert(id, InputRequest::Elicit(ask));
        }
        match InputRequiredResult::new(asks, None) {
            Ok(round) => Ok(Leg::InputRequired(round)),
            Err(_) => leg,
        }
    }
}

impl Session {
    /// Waits until the URLs of this round are finished, or long enough: not every server says so.
    ///
    /// > Clients: **MAY** wait for this notification to automatically retry requests
    pub(crate) async fn urls_finished(
        &self,
        inner: &Inner,
        pending: &PendingCall,
    ) -> Result<(), CallErrorKind> {
        if let Some(refused) = refused(pending) {
            return Err(CallErrorKind::Request(RequestFault::Server(refused)));
        }
        let told = &self.shared.told;
        let all = join_all(pending.asks().iter().map(|(id, _)| told.url_finished(id)));
        if timeout(inner.elicit_wait, all).await.is_err() {
            tracing::debug!("the server did not say that its URLs were finished: the request is sent again");
        }
        Ok(())
    }
}

/// Whether this is such a round: URLs alone, and nothing to send back.
pub(crate) fn is_url_round(pending: &PendingCall) -> bool {
    !pending.has_state()
        && !pending.asks().is_empty()
        && pending.asks().iter().all(|(_, ask)| ask.kind() == AskKind::Url)
}

/// What the server had said, if the person did not agree to all of it.
fn refused(pending: &PendingCall) -> Option<antiphon_wire::ErrorObject> {
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

/// What was agreed to in the round before needs no second consent: the server still waits for it.
pub(crate) fn keep_consents(before: &PendingCall, pending: &mut PendingCall) {
    let url = |ask: Option<&InputRequest>| match ask {
        Some(InputRequest::Elicit(ElicitRequest::Url { url, .. })) => Some(url.clone()),
        _ => None,
    };
    let same: Vec<String> = pending
        .asks()
        .iter()
        .filter(|(id, ask)| {
            before.answers().get(id).is_some() && url(Some(ask)) == url(before.asks().get(id))
        })
        .map(|(id, _)| id.to_owned())
        .collect();
    for id in same {
        // Only consents come this far: anything else ended the call.
        let _ = pending.answer(&id, &ElicitResult::consent());
    }
}
