//! One request on a session, and what the server asks and tells meanwhile.

use crate::{
    Inner,
    call_error::CallErrorKind,
    dispatch::Origin,
    fault::RequestFault,
    hearing::Hearing,
    leg::{Wanted, Write},
    legacy::{Session, asks::Counter},
    patience::Patience,
    transport::{OutgoingRequest, ServerMessage, ServerReply},
};
use antiphon_wire::{Meta, RequestId, method};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;

impl Session {
    /// Sends a request and waits for its response. The time in which somebody is asked does not count.
    pub(crate) async fn converse(
        &self,
        inner: &Inner,
        wanted: &Wanted<'_>,
        write: &Write<'_>,
    ) -> Result<ServerReply, RequestFault> {
        let id = RequestId::from(inner.next_id.fetch_add(1, Ordering::Relaxed));
        let patience = Patience::new(wanted.timeout, self.shared.bounds.progress_stretches);
        let mut hearing = Hearing::new(inner, wanted, &patience);
        let mut meta = Meta::default();
        hearing.ask_for_progress(&id, &mut meta);
        let body = write(&id, meta).map_err(RequestFault::Unwritable)?;
        let request = wanted.request(id, self.version().clone(), body);
        let work = self.under_way(request, wanted, &mut hearing, &patience);
        patience.within(work).await.map_err(RequestFault::Timeout)?
    }

    async fn under_way(
        &self,
        request: OutgoingRequest,
        wanted: &Wanted<'_>,
        hearing: &mut Hearing<'_>,
        patience: &Patience,
    ) -> Result<ServerReply, RequestFault> {
        let shared = &self.shared;
        let limit = shared.bounds.max_asks;
        let (to_asked, mut asked) = mpsc::channel(limit.max(1));
        let flooded = AtomicBool::new(false);
        let mut hear = |message| match message {
            ServerMessage::Notification(told)
                if matches!(&*told.method, method::PROGRESS | method::MESSAGE) =>
            {
                hearing.take(told);
            }
            ServerMessage::Notification(told) => shared.hear(&told),
            ServerMessage::Request(request) => {
                if to_asked.try_send(shared.asks.heard(request)).is_err() {
                    flooded.store(true, Ordering::Relaxed);
                }
            }
        };
        let mut exchange = shared.link.exchange(request, &mut hear);
        let target = wanted.name.unwrap_or_default().to_owned();
        let arguments = wanted.arguments.map(ToOwned::to_owned);
        let mut counter = Counter::new(shared, Origin { method: wanted.method, target, arguments });
        let most = shared.bounds.max_rounds.saturating_mul(u32::try_from(limit).unwrap_or(u32::MAX));
        let mut open = shared.asks.count.subscribe();
        patience.pause(*open.borrow_and_update() > 0);
        let ended = |kind| Err(RequestFault::Ask(Box::new(kind)));
        loop {
            tokio::select! {
                biased;
                // Dropping the exchange cancels the request.
                reply = &mut exchange => {
                    return match counter.fault() {
                        Some(kind) => ended(kind),
                        None => reply.map_err(RequestFault::Transport),
                    };
                }
                Some(request) = asked.recv() => {
                    if let Err(kind) = counter.take(request) {
                        return ended(kind);
                    }
                }
                Some(fault) = counter.next() => {
                    if let Some(kind) = fault {
                        return ended(kind);
                    }
                }
                Ok(()) = open.changed() => {}
            }
            patience.pause(*open.borrow_and_update() > 0);
            if flooded.load(Ordering::Relaxed) {
                return ended(CallErrorKind::TooManyAsks { asks: limit.saturating_add(1), limit });
            }
            if counter.rounds() > most {
                return ended(CallErrorKind::RoundLimit { rounds: most });
            }
        }
    }
}
