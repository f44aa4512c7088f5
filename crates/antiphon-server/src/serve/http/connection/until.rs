//! The end of a connection: by its protocol, for want of a place, without a request, or at the shutdown.

#![cfg_attr(not(feature = "http2"), allow(dead_code, reason = "the rest is for HTTP/2"))]

use crate::serve::http::connection::table::{Connection, Place};
use antiphon_wire::escaped;
use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time::timeout};

/// The time in which a connection without a request ends after it lost its place: for a response to a request that arrived
/// at this moment, and for the frames that end HTTP/2.
const EVICTION_TIME: Duration = Duration::from_millis(100);

/// The same for a connection that was without a request for too long. Nobody waits for its place, so a slow client has time to
/// learn that it ends.
const CLOSING_TIME: Duration = Duration::from_secs(1);

/// The reasons to end a connection, besides those of its protocol.
#[derive(Debug)]
pub(super) struct Until<'a> {
    place: &'a Place,
    write_timeout: Duration,
    draining: watch::Receiver<bool>,
}

impl<'a> Until<'a> {
    pub(super) fn new(place: &'a Place, write_timeout: Duration, draining: watch::Receiver<bool>) -> Self {
        Self { place, write_timeout, draining }
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        self.place.connection()
    }

    /// Waits until the connection loses its place, or the server drains.
    pub(super) async fn ends(&mut self) {
        tokio::select! {
            () = self.place.connection().evicted() => {}
            () = drained(&mut self.draining) => {}
        }
    }

    /// Runs a connection to its end. `shut_down` ends it once its requests have ended; `idle_timeout` limits the time
    /// without a request: until the first one, until the next, and in both cases until its head is complete.
    pub(super) async fn run<C>(
        &mut self,
        connection: C,
        shut_down: impl Fn(Pin<&mut C>),
        idle_timeout: Duration,
    ) -> hyper::Result<()>
    where
        C: Future<Output = hyper::Result<()>>,
    {
        let Self { place, write_timeout, draining } = self;
        let state = place.connection();
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = state.evicted() => {
                shut_down(connection.as_mut());
                // A response may be on its way still.
                let time = if state.is_blocked() { *write_timeout } else { EVICTION_TIME };
                timeout(time, connection).await.unwrap_or(Ok(()))
            }
            () = state.idle_for(idle_timeout) => {
                // A request that arrives now is refused and not begun: nothing would be left of it.
                state.evict();
                shut_down(connection.as_mut());
                timeout(CLOSING_TIME, connection).await.unwrap_or(Ok(()))
            }
            () = drained(draining) => {
                shut_down(connection.as_mut());
                let ended = tokio::select! {
                    biased;
                    ended = connection.as_mut() => Some(ended),
                    () = state.idle_for(idle_timeout) => None,
                };
                match ended {
                    Some(ended) => ended,
                    None => {
                        state.evict();
                        timeout(CLOSING_TIME, connection).await.unwrap_or(Ok(()))
                    }
                }
            }
        };
        if let Err(error) = &ended {
            tracing::debug!(error = %escaped(&error), "a connection ended early");
        }
        ended
    }
}

/// Waits until the server drains.
async fn drained(draining: &mut watch::Receiver<bool>) {
    drop(draining.wait_for(|draining| *draining).await);
}
