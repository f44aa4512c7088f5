//! A request through the proxy, and the receiver of its events.

use std::fmt;

/// A request through the proxy.
pub(crate) trait Request: Clone + fmt::Debug + Send + Sync + 'static {
    /// Returns the method.
    fn method(&self) -> &'static str;

    /// Returns the name in the header `Mcp-Name`.
    fn name(&self) -> &str;

    /// Returns the principal.
    fn person(&self) -> &str;

    /// Returns the message.
    fn body(&self) -> Vec<u8>;

    /// Returns true if the network may deliver the request more than once.
    fn may_repeat(&self) -> bool {
        true
    }
}

/// One delivery of a request to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// The number of the delivery.
    pub(crate) number: u64,
    pub(crate) process: u32,
}

/// The receiver of the events of requests.
pub(crate) trait Observer<R>: fmt::Debug + Send + Sync + 'static {
    /// A request begins that nobody waits for.
    fn open_delivery(&self, request: &R);

    /// A request has ended that nobody waits for.
    fn close_delivery(&self, request: &R);

    /// A request leaves for a server.
    fn sent(&self, request: &R, delivery: Delivery);

    /// A reply has come, also one that the person does not get.
    fn replied(&self, request: &R, delivery: Delivery, reply: &[u8]);

    /// A connection was cut while a server had the request.
    fn cut(&self, request: &R);
}
