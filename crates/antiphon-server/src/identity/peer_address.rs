//! The address of a peer, as far as it counts for limits.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

/// The number of bits of an IPv6 address that name the network of one customer.
const NETWORK_BITS: u32 = 64;

/// The address of the peer of a connection, as in [`Caller::peer_address`](crate::Caller::peer_address). The limits of anonymous callers apply to each
/// address: [`Limits::sessions_per_address`](crate::Limits::sessions_per_address) and its neighbours.
///
/// [`serve_http`](crate::serve::http::serve_http) has the address of each request. An [`HttpService`] in a router of yours gets
/// it from a layer, as an extension of the request. With axum, `into_make_service_with_connect_info::<SocketAddr>()` makes the address known, and this
/// layer adds it:
///
/// ```text
/// async fn peer_address(ConnectInfo(peer): ConnectInfo<SocketAddr>, mut request: Request, next: Next) -> Response {
///     request.extensions_mut().insert(PeerAddress::new(peer.ip()));
///     next.run(request).await
/// }
/// ```
///
/// Behind a proxy, the peer is the proxy. A proxy on the same machine has a loopback address, which counts as no address. For
/// a proxy on another machine, let a layer insert the client's address that the proxy names (`Forwarded`,
/// `X-Forwarded-For`), or raise the limits.
///
/// [`HttpService`]: crate::serve::http::HttpService
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerAddress(IpAddr);

impl PeerAddress {
    /// Returns this address. An IPv6 address stands for its network of 64 bits, since one customer usually has all of
    /// it; an IPv4 address in the form of IPv6 is the IPv4 address.
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let mask = u128::MAX << (u128::BITS - NETWORK_BITS);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
            address => address,
        })
    }

    /// Returns whether the peer is on the same machine.
    pub(crate) fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }
}

impl From<IpAddr> for PeerAddress {
    fn from(address: IpAddr) -> Self {
        Self::new(address)
    }
}

impl fmt::Debug for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PeerAddress").field(&self.0).finish()
    }
}
