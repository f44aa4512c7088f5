//! The open connections, and which of them is closed to make room for another.

#![cfg_attr(not(feature = "http2"), allow(dead_code, reason = "the rest is for HTTP/2"))]

use crate::{
    identity::PeerAddress,
    quota::{Quota, QuotaLimits},
    serve::http::request_body::StreamPlace,
};
use antiphon_wire::lock::Lock;
use futures_util::task::AtomicWaker;
use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// The number of connections that may have a head of more than [`SMALL_HEAD`](super::read_ahead::SMALL_HEAD) bytes at a
/// time, before their requests begin.
pub(crate) const LARGE_HEADS: usize = 768;

/// One connection in this many is closed at a time, so that a full table is searched seldom.
const EVICTED_SHARE: usize = 256;

/// The bit of [`Connection::requests`] that is set once the connection may begin no further request.
const EVICTED: usize = 1 << (usize::BITS - 1);

/// The connections that [`serve_http`](crate::serve::http::serve_http) keeps open. It is locked when a connection begins or
/// ends, and never by a request.
#[derive(Debug)]
pub(crate) struct ConnectionTable {
    limit: usize,
    per_address: usize,
    began: Instant,
    open: Lock<Open>,
    /// True while a new connection waits for a place.
    is_awaited: AtomicBool,
    /// Notified while a new connection waits: a place is free, or a connection is idle.
    changed: Notify,
    large_heads: AtomicUsize,
    /// The requests of all HTTP/2 connections.
    streams: Arc<Quota>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    connections: HashMap<u64, Arc<Connection>>,
    by_address: HashMap<PeerAddress, usize>,
}

/// The state of one connection. The requests of the connection change it with atomics that no other connection uses.
#[derive(Debug)]
pub(crate) struct Connection {
    table: Arc<ConnectionTable>,
    id: u64,
    address: PeerAddress,
    /// The number of requests under way, and [`EVICTED`].
    requests: AtomicUsize,
    /// The time since `began` at which the last request ended, in milliseconds.
    idle_since: AtomicU64,
    /// True once a byte has arrived.
    has_sent: AtomicBool,
    /// True while a write waits for the peer.
    is_blocked: AtomicBool,
    /// The rest of the request's body that its handler is reading; 0 while no body is being read.
    body_left: AtomicUsize,
    /// The number of requests so far.
    begun: AtomicUsize,
    /// The number of pieces of bodies that were delivered, in either direction.
    pieces: AtomicUsize,
    eviction: AtomicWaker,
}

/// A place in the table, which its drop frees.
#[derive(Debug)]
pub(crate) struct Place(Arc<Connection>);

/// A request under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct RequestGuard(Arc<Connection>);

/// The permission to have a large head, until it is dropped.
#[derive(Debug)]
pub(crate) struct LargeHead(Arc<Connection>);

/// A reason to have no place for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All connections have a request under way.
    Full,
    /// All connections of this address have a request under way, and the address has as many as it may have.
    AddressFull,
}

impl ConnectionTable {
    pub(crate) fn new(limit: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            per_address,
            began: Instant::now(),
            open: Lock::default(),
            is_awaited: AtomicBool::new(false),
            changed: Notify::new(),
            large_heads: AtomicUsize::new(0),
            streams: Arc::default(),
        })
    }

    /// Returns a place for a connection of this address, once there is one. If there is none, connections without a request
    /// are closed to make room.
    pub(crate) async fn place(self: &Arc<Self>, address: PeerAddress) -> Result<Place, NoPlace> {
        let placed = self.try_place(address);
        if placed.as_ref().err() != Some(&NoPlace::Full) {
            return placed;
        }
        self.is_awaited.store(true, Ordering::SeqCst);
        // From here on, a request that ends is noticed.
        let placed = loop {
            match self.try_place(address) {
                Err(NoPlace::Full) => self.changed.notified().await,
                placed => break placed,
            }
        };
        self.is_awaited.store(false, Ordering::SeqCst);
        placed
    }

    pub(super) fn try_place(self: &Arc<Self>, address: PeerAddress) -> Result<Place, NoPlace> {
        let mut open = self.open();
        // An address that may have all places waits as the others do.
        let has_most = open.by_address.get(&address).is_some_and(|&count| count >= self.per_address);
        if self.per_address < self.limit && has_most && !self.evict(&mut open, Some(address)) {
            return Err(NoPlace::AddressFull);
        }
        if open.connections.len() >= self.limit && !self.evict(&mut open, None) {
            return Err(NoPlace::Full);
        }
        let id = open.next;
        open.next += 1;
        let connection = Arc::new(Connection {
            table: Arc::clone(self),
            id,
            address,
            requests: AtomicUsize::new(0),
            idle_since: AtomicU64::new(self.now()),
            has_sent: AtomicBool::new(false),
            is_blocked: AtomicBool::new(false),
            body_left: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            pieces: AtomicUsize::new(0),
            eviction: AtomicWaker::new(),
        });
        open.connections.insert(id, Arc::clone(&connection));
        *open.by_address.entry(address).or_default() += 1;
        Ok(Place(connection))
    }

    /// Closes idle connections of this address, or of the address with most idle connections. Returns false if no connection
    /// is idle.
    fn evict(&self, open: &mut Open, address: Option<PeerAddress>) -> bool {
        let idle = |connection: &&Arc<Connection>| connection.is_idle();
        let address = address.or_else(|| {
            let mut counts = HashMap::<PeerAddress, usize>::new();
            for connection in open.connections.values().filter(idle) {
                *counts.entry(connection.address).or_default() += 1;
            }
            counts.into_iter().max_by_key(|&(_, count)| count).map(|(address, _)| address)
        });
        let Some(address) = address else { return false };
        let mut candidates: Vec<Arc<Connection>> = open
            .connections
            .values()
            .filter(|connection| connection.address == address)
            .filter(idle)
            .cloned()
            .collect();
        // A connection that never sent a byte is first, then the one without a request for the longest time.
        candidates.sort_unstable_by_key(|connection| {
            let has_sent = connection.has_sent.load(Ordering::Relaxed);
            (has_sent, connection.idle_since.load(Ordering::Relaxed), connection.id)
        });
        let most = (self.limit / EVICTED_SHARE).max(1);
        let mut evicted = 0;
        for connection in candidates {
            if evicted < most && connection.evict() {
                open.remove(&connection);
                evicted += 1;
            }
        }
        if evicted > 0 {
            tracing::debug!(evicted, "idle connections were closed to make room");
        }
        evicted > 0
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }

    /// Returns the time since `began`, in milliseconds.
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Wakes the connection that waits for a place, if there is one.
    fn notify(&self) {
        if self.is_awaited.load(Ordering::SeqCst) {
            self.changed.notify_one();
        }
    }
}

impl Open {
    fn remove(&mut self, connection: &Connection) {
        if self.connections.remove(&connection.id).is_none() {
            return;
        }
        if let Some(count) = self.by_address.get_mut(&connection.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&connection.address);
            }
        }
    }
}

impl Connection {
    /// Begins a request. Returns `None` if the connection is being closed.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<RequestGuard> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        // The guard exists in both cases: its drop takes the request away again.
        let before = self.requests.fetch_add(1, Ordering::SeqCst);
        let guard = RequestGuard(Arc::clone(self));
        (before & EVICTED == 0).then_some(guard)
    }

    /// Returns a place for a request of HTTP/2, unless all of them are taken.
    pub(crate) fn begin_stream(&self, limits: QuotaLimits) -> Option<Arc<StreamPlace>> {
        StreamPlace::take(&self.table.streams, limits).map(Arc::new)
    }

    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::SeqCst) == 0 && !self.is_blocked()
    }

    /// Forbids further requests and wakes the connection's task, if the connection is still idle.
    pub(super) fn evict(&self) -> bool {
        let evicted = self.requests.compare_exchange(0, EVICTED, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if evicted {
            self.eviction.wake();
        }
        evicted
    }

    /// Waits until the connection is to be closed.
    pub(crate) async fn evicted(&self) {
        poll_fn(|cx| {
            self.eviction.register(cx.waker());
            if self.requests.load(Ordering::SeqCst) & EVICTED == 0 { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    /// Waits until the connection has had no request for this time. A response that waits for the client to read belongs to
    /// its request.
    pub(crate) async fn idle_for(&self, limit: Duration) {
        loop {
            let idle = match self.requests.load(Ordering::SeqCst) {
                0 if !self.is_blocked() => {
                    let since = self.idle_since.load(Ordering::Relaxed);
                    Duration::from_millis(self.table.now().saturating_sub(since))
                }
                _ => Duration::ZERO,
            };
            if idle >= limit {
                return;
            }
            tokio::time::sleep(limit - idle).await;
        }
    }

    pub(crate) fn address(&self) -> PeerAddress {
        self.address
    }

    pub(crate) fn has_sent(&self) {
        if !self.has_sent.load(Ordering::Relaxed) {
            self.has_sent.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }

    pub(crate) fn set_blocked(&self, is_blocked: bool) {
        if self.is_blocked.load(Ordering::Relaxed) != is_blocked {
            self.is_blocked.store(is_blocked, Ordering::Relaxed);
            if !is_blocked {
                self.idle_since.store(self.table.now(), Ordering::Relaxed);
                self.table.notify();
            }
        }
    }

    pub(crate) fn body_left(&self) -> usize {
        self.body_left.load(Ordering::Relaxed)
    }

    pub(crate) fn set_body_left(&self, bytes: usize) {
        self.body_left.store(bytes, Ordering::Relaxed);
    }

    /// Counts a piece of a body that was delivered.
    pub(crate) fn piece(&self) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests so far.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Returns a number that changes with each request and each piece of a body.
    pub(crate) fn progress(&self) -> usize {
        self.begun().wrapping_add(self.pieces.load(Ordering::Relaxed))
    }

    /// Returns true while a request is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.requests.load(Ordering::SeqCst) & !EVICTED != 0
    }

    /// Returns the permission to have a large head, unless too many connections have one.
    pub(crate) fn large_head(self: &Arc<Self>) -> Option<LargeHead> {
        let before = self.table.large_heads.fetch_add(1, Ordering::Relaxed);
        let permission = LargeHead(Arc::clone(self));
        (before < LARGE_HEADS).then_some(permission)
    }
}

impl Place {
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.table.open().remove(&self.0);
        self.0.table.notify();
    }
}

impl RequestGuard {
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let Connection { table, idle_since, requests, .. } = &*self.0;
        idle_since.store(table.now(), Ordering::Relaxed);
        if requests.fetch_sub(1, Ordering::SeqCst) == 1 {
            table.notify();
        }
    }
}

impl Drop for LargeHead {
    fn drop(&mut self) {
        self.0.table.large_heads.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::{Blocked, Busy, Idle, Silent};
    use std::net::IpAddr;

    /// The state of a connection when a new one arrives.
    #[derive(Clone, Copy, Debug)]
    enum State {
        /// No byte has arrived.
        Silent,
        /// The last request has ended.
        Idle,
        Busy,
        /// A response waits for the client to read.
        Blocked,
    }

    /// Opens a connection of each address, a second after the other, then one of `new`. Returns the numbers of those that were
    /// closed.
    async fn check(
        (limit, per_address): (usize, usize),
        open: &[(&str, State)],
        new: &str,
        expected: Result<&[usize], NoPlace>,
    ) {
        let table = ConnectionTable::new(limit, per_address);
        let mut held = Vec::new();
        for (address, state) in open {
            let place = table.try_place(address.parse::<IpAddr>().unwrap().into()).unwrap();
            let connection = Arc::clone(place.connection());
            if !matches!(state, Silent) {
                connection.has_sent();
            }
            connection.set_blocked(matches!(state, Blocked));
            let request = matches!(state, Busy).then(|| connection.begin().unwrap());
            held.push((place, request));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let placed = table.try_place(new.parse::<IpAddr>().unwrap().into());
        let closed: Vec<usize> = (0..held.len())
            .filter(|&number| held[number].0.connection().requests.load(Ordering::SeqCst) & EVICTED != 0)
            .collect();
        assert_eq!(placed.as_ref().map(|_| &*closed).map_err(|no| *no), expected, "{open:?}, {new}");
        // Each place is given back once.
        drop((placed, held));
        let open = table.open();
        assert!(open.connections.is_empty() && open.by_address.is_empty(), "{open:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_of_the_most_idle_address_makes_room() {
        let (a, b) = ("10.0.0.1", "10.0.0.2");
        check((3, 3), &[(a, Idle), (a, Idle)], a, Ok(&[])).await;
        check((2, 2), &[(a, Idle), (a, Idle)], a, Ok(&[0])).await;
        check((2, 2), &[(a, Idle), (a, Silent)], a, Ok(&[1])).await;
        check((3, 3), &[(a, Busy), (a, Idle), (a, Idle)], b, Ok(&[1])).await;
        check((3, 3), &[(b, Idle), (a, Idle), (a, Idle)], b, Ok(&[1])).await;
        check((3, 3), &[(b, Silent), (a, Idle), (a, Idle)], "10.0.0.3", Ok(&[1])).await;
        check((3, 3), &[(a, Busy), (a, Busy), (b, Idle)], a, Ok(&[2])).await;
        check((2, 2), &[(a, Blocked), (a, Idle)], a, Ok(&[1])).await;
        check((2, 2), &[(a, Busy), (a, Blocked)], b, Err(NoPlace::Full)).await;
        // Of a large table, several at a time.
        check((600, 600), &vec![(a, Idle); 600], a, Ok(&[0, 1])).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_its_own_limit() {
        let (a, b) = ("10.0.0.1", "10.0.0.2");
        check((9, 2), &[(a, Busy), (a, Busy)], a, Err(NoPlace::AddressFull)).await;
        check((9, 2), &[(a, Busy), (a, Busy)], b, Ok(&[])).await;
        check((9, 2), &[(b, Idle), (a, Busy), (a, Idle)], a, Ok(&[2])).await;
        check((2, 2), &[(a, Busy), (a, Busy)], a, Err(NoPlace::Full)).await;
        check((3, 2), &[(a, Busy), (b, Busy), (a, Busy)], a, Err(NoPlace::AddressFull)).await;
        check((9, 1), &[("::ffff:10.0.0.1", Busy)], a, Err(NoPlace::AddressFull)).await;
        check((9, 1), &[("2001:db8::1", Busy)], "2001:db8::2:3", Err(NoPlace::AddressFull)).await;
        check((9, 1), &[("2001:db8::1", Busy)], "2001:db8:0:1::1", Ok(&[])).await;
    }

    /// A request that ends makes room for a connection that waits.
    #[tokio::test(start_paused = true)]
    async fn a_connection_waits_until_one_is_idle_or_ends() {
        let address = "10.0.0.1".parse::<IpAddr>().unwrap().into();
        for ends in [true, false] {
            let table = ConnectionTable::new(1, 1);
            let place = table.try_place(address).unwrap();
            let request = place.connection().begin().unwrap();
            let mut waits = Box::pin(table.place("10.0.0.2".parse::<IpAddr>().unwrap().into()));
            assert!(futures_util::poll!(waits.as_mut()).is_pending());
            if ends {
                drop((request, place))
            } else {
                drop(request)
            }
            waits.await.unwrap();
        }
    }

    /// A response that waits for its client to read is no time without a request; what follows it is.
    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_client_reads_slowly_is_not_idle() {
        let limit = Duration::from_secs(30);
        let place =
            ConnectionTable::new(1, 1).try_place("10.0.0.1".parse::<IpAddr>().unwrap().into()).unwrap();
        let connection = place.connection();
        drop(connection.begin().unwrap());
        connection.set_blocked(true);
        let mut idle = Box::pin(connection.idle_for(limit));
        assert!(tokio::time::timeout(limit * 4, idle.as_mut()).await.is_err());
        connection.set_blocked(false);
        let unblocked = Instant::now();
        idle.await;
        let waited = unblocked.elapsed();
        assert!((limit..limit + Duration::from_secs(1)).contains(&waited), "{waited:?}");
    }

    /// A request that arrives while its connection loses its place is not begun.
    #[tokio::test]
    async fn a_closed_connection_begins_no_request() {
        let table = ConnectionTable::new(1, 1);
        let place = table.try_place("10.0.0.1".parse::<IpAddr>().unwrap().into()).unwrap();
        let connection = place.connection();
        drop(connection.begin().unwrap());
        assert!(connection.evict() && !connection.evict());
        assert!(connection.begin().is_none());
        connection.evicted().await;
    }
}
