//! The loop: legs and rounds, until the final result.

use crate::{
    Client, ServerIdentity, Step,
    ask_progress::AskProgress,
    call::Call,
    call_error::{CallError, CallErrorKind},
    dispatch::{self, Origin},
    fault::RequestFault,
    finished::{Final, Finished, Leg},
    leg::Position,
    legacy::{is_url_round, keep_consents},
    pending::{NotReady, Outgoing, PendingCall},
};
use antiphon_wire::ErrorCode;
use antiphon_wire::pacing::Pacing;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What legs lead to.
enum Sent<T> {
    Done(T),
    Asked(Box<PendingCall>),
}

/// One call under way. Whatever ends it, what was gathered so far is still here.
pub(crate) struct Run<'a> {
    client: &'a Client,
    call: Call,
    pending: Option<PendingCall>,
    /// How many legs were sent.
    legs: u32,
}

impl<'a> Run<'a> {
    /// A call from its beginning.
    pub(crate) fn first(client: &'a Client, call: Call) -> Self {
        Self { client, call, pending: None, legs: 0 }
    }

    /// A call from where it stood.
    pub(crate) fn resumed(client: &'a Client, pending: PendingCall) -> Self {
        Self { client, call: pending.call().clone(), pending: Some(pending), legs: 0 }
    }

    /// To the final result, answered by the callbacks.
    pub(crate) async fn finish<T: Final>(mut self) -> Result<T, CallError> {
        let (client, call) = (self.client, self.call.clone());
        let outcome = within(client, &call, self.answer_and_send()).await;
        outcome.map_err(|kind| self.failed(kind))
    }

    /// To the next question, or the final result.
    pub(crate) async fn step(mut self) -> Result<Step, CallError> {
        let (client, call) = (self.client, self.call.clone());
        match within(client, &call, self.send::<Finished>()).await {
            Ok(Sent::Done(finished)) => Ok(Step::Done(finished)),
            Ok(Sent::Asked(pending)) => Ok(Step::Pending(*pending)),
            Err(kind) => Err(self.failed(kind)),
        }
    }

    async fn answer_and_send<T: Final>(&mut self) -> Result<T, CallErrorKind> {
        let limit = self.client.inner.bounds.max_rounds;
        let mut answered = 0;
        loop {
            // A call that is resumed may start with asks.
            if let Some(pending) = self.pending.as_mut().filter(|pending| !pending.asks().is_empty()) {
                if answered == limit {
                    return Err(CallErrorKind::RoundLimit { rounds: answered });
                }
                answered += 1;
                belongs_here(self.client, pending)?;
                let (desk, origin) = (&self.client.inner.desk, Origin::of(&self.call));
                let wait = dispatch::answer_round(desk, &origin, pending, &AskProgress::default()).await?;
                // A timer has a resolution of a millisecond, even for nothing.
                if !wait.is_zero() {
                    sleep(wait).await;
                }
            }
            match self.send().await? {
                Sent::Done(result) => return Ok(result),
                Sent::Asked(pending) => self.pending = Some(*pending),
            }
        }
    }

    /// Sends legs until there is a final result, or something is asked.
    async fn send<T: Final>(&mut self) -> Result<Sent<T>, CallErrorKind> {
        let bounds = self.client.inner.bounds;
        let (mut pacing, mut since) = (Pacing::new(bounds.state_only), None);
        loop {
            let result = match self.leg().await? {
                Leg::Complete(result) => return Ok(Sent::Done(result)),
                Leg::InputRequired(result) => result,
            };
            let asks = result.input_requests().len();
            if asks > bounds.max_asks {
                return Err(CallErrorKind::TooManyAsks { asks, limit: bounds.max_asks });
            }
            let pending = self.next_pending(result.into_parts());
            if asks > 0 {
                let undeclared = pending.asks().iter().find_map(|(key, ask)| {
                    dispatch::must_be_declared(&self.client.inner.desk, key, ask).err()
                });
                if let Some(kind) = undeclared {
                    self.pending = Some(pending);
                    return Err(kind);
                }
                return Ok(Sent::Asked(Box::new(pending)));
            }
            self.pending = Some(pending);
            // > If the `InputRequiredResult` does _not_ contain the `inputRequests` field, the client **MAY** retry the
            // > original request immediately.
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            let Some(wait) = pacing.next(waited) else { return Err(CallErrorKind::StateOnlyLimit) };
            sleep(wait).await;
        }
    }

    async fn leg<T: Final>(&mut self) -> Result<Leg<T>, CallErrorKind> {
        let with = match &self.pending {
            None => Outgoing::default(),
            Some(pending) if is_url_round(pending) && self.client.inner.session_now().is_some() => {
                belongs_here(self.client, pending)?;
                if let Err(not_ready) = pending.outgoing() {
                    return Err(kind_of(not_ready));
                }
                if let Some(session) = self.client.inner.session_now() {
                    Box::pin(session.urls_finished(&self.client.inner, pending)).await?;
                }
                Outgoing::default()
            }
            Some(pending) => {
                belongs_here(self.client, pending)?;
                pending.outgoing().map_err(kind_of)?
            }
        };
        self.legs += 1;
        let round = self.pending.as_ref().map_or(0, PendingCall::round);
        let at = Position { round, leg: self.legs };
        self.client.inner.leg(&self.call, &with, at).await.map_err(|fault| match fault {
            RequestFault::Server(error)
                if self.pending.is_some()
                    && error.code == ErrorCode::INVALID_PARAMS
                    && error.reason() == Some("invalid_request_state") =>
            {
                CallErrorKind::StateRefused(error)
            }
            // What ended an ask on its way ended the call.
            RequestFault::Ask(kind) => *kind,
            fault => CallErrorKind::Request(fault),
        })
    }

    /// The latest result replaces what was pending: neither its state nor its answers are used again.
    fn next_pending(&self, (asks, state): (antiphon_wire::InputRequests, Option<String>)) -> PendingCall {
        let before = self.pending.as_ref().map_or(0, PendingCall::round);
        let round = before.saturating_add(u32::from(!asks.is_empty()));
        let mut pending = PendingCall::new(self.client.server(), self.call.clone(), round, asks, state);
        if let Some(before) = &self.pending
            && is_url_round(&pending)
            && self.client.inner.session_now().is_some()
        {
            keep_consents(before, &mut pending);
        }
        pending
    }

    fn failed(self, kind: CallErrorKind) -> CallError {
        CallError::new(self.client.server(), Some(self.call), kind, self.pending)
    }
}

fn kind_of(not_ready: NotReady) -> CallErrorKind {
    match not_ready {
        NotReady::Missing(keys) => CallErrorKind::MissingAnswers { keys },
        NotReady::Bad(error) => CallErrorKind::Answer(error),
    }
}

/// > Both the `inputRequests` and `requestState` fields affect only the client's retry of the original request. They
/// > **MUST NOT** be used for any other request that the client may be sending in parallel.
fn belongs_here(client: &Client, pending: &PendingCall) -> Result<(), CallErrorKind> {
    let ServerIdentity { target, .. } = pending.server();
    if target == client.inner.transport.target() {
        return Ok(());
    }
    Err(CallErrorKind::OtherServer { belongs_to: target.clone() })
}

/// Ends the work when the call is cancelled or takes too long. The work is dropped then, with its open callbacks.
async fn within<T>(
    client: &Client,
    call: &Call,
    work: impl Future<Output = Result<T, CallErrorKind>>,
) -> Result<T, CallErrorKind> {
    let limit = call.options().deadline.or(client.inner.bounds.call_deadline);
    let cancelled = async {
        match &call.options().cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancelled => Err(CallErrorKind::Cancelled),
        outcome = work => outcome,
        () = sleep(limit.unwrap_or_default()), if limit.is_some() => {
            Err(CallErrorKind::Deadline(limit.unwrap_or(Duration::MAX)))
        }
    }
}
