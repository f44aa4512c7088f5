//! The asks that are open in a session, and their cancellation by the server.

use crate::transport::IncomingRequest;
use antiphon_wire::RequestId;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{Notify, watch};

/// The asks that are open in a session, of all its requests.
#[derive(Default)]
pub(crate) struct OpenAsks {
    /// The number of open asks. While it is not zero, the deadlines of requests are paused.
    pub(crate) count: watch::Sender<usize>,
    cancels: Arc<Cancels>,
}

/// The cancellations of the server's requests, by their ids.
type Cancels = Mutex<HashMap<RequestId, Arc<Notify>>>;

impl OpenAsks {
    /// The server cancelled this request.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(open) = self.cancels.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            open.notify_one();
        }
    }

    /// Registers a request that has just arrived. From then on the server can cancel it, even before it is processed.
    pub(crate) fn received(&self, request: IncomingRequest) -> ReceivedRequest {
        let cancelled = Arc::<Notify>::default();
        self.cancels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(request.id.clone(), Arc::clone(&cancelled));
        ReceivedRequest { of: Arc::clone(&self.cancels), request, cancelled }
    }

    pub(crate) fn begin(&self) -> OpenAsk<'_> {
        self.count.send_modify(|count| *count += 1);
        OpenAsk(self)
    }
}

/// A request of the server that waits, or is being answered.
pub(crate) struct ReceivedRequest {
    of: Arc<Cancels>,
    pub(crate) request: IncomingRequest,
    pub(crate) cancelled: Arc<Notify>,
}

impl Drop for ReceivedRequest {
    fn drop(&mut self) {
        let mut cancels = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        // The server may have used its id again.
        if cancels.get(&self.request.id).is_some_and(|open| Arc::ptr_eq(open, &self.cancelled)) {
            cancels.remove(&self.request.id);
        }
    }
}

/// A guard that counts as an open ask until it is dropped.
pub(crate) struct OpenAsk<'a>(&'a OpenAsks);

impl Drop for OpenAsk<'_> {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}
