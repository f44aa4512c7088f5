//! Address classes: a URL that a server names may not lead to a more private place than the server itself.

use hyper_util::client::legacy::connect::dns::Name;
use std::{
    fmt,
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _},
    pin::Pin,
    task::{Context, Poll},
    vec,
};
use tower_service::Service;

/// A class of addresses. A later one is more private.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The internet.
    Public,
    /// A private network, or the network between a carrier and its customers.
    Private,
    /// This machine.
    Loopback,
}

impl Reach {
    /// Returns the class of an address; `None` for an address that no URL of a server may lead to: link-local ones, among them
    /// the metadata services of clouds, unspecified, multicast and reserved ones. An IPv4 address inside of an IPv6 address
    /// (mapped, 6to4, NAT64) decides.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => match inner_v4(address) {
                Some(inner) => of_v4(inner),
                None => of_v6(address),
            },
        }
    }

    /// Returns the least private class among the addresses of a host, because its owner may give it addresses of others. A name other
    /// than `localhost` is not more private than a private network: a page of the internet may have the address of this machine. A host
    /// that has no address here counts as public.
    pub async fn of_host(host: &str) -> Self {
        let host = host.trim_matches(['[', ']']).to_owned();
        if let Ok(address) = host.parse::<IpAddr>() {
            return Self::of(address).unwrap_or(Self::Public);
        }
        let found = addresses(host.clone()).await.unwrap_or_default();
        Self::of_name(&host, found.iter().map(SocketAddr::ip))
    }

    fn of_name(name: &str, addresses: impl Iterator<Item = IpAddr>) -> Self {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let is_local = name == "localhost" || name.ends_with(".localhost");
        let most = if is_local { Self::Loopback } else { Self::Private };
        addresses.filter_map(Self::of).min().unwrap_or(Self::Public).min(most)
    }

    /// Returns `true` if an address may be connected to.
    fn admits(self, address: IpAddr) -> bool {
        Self::of(address).is_some_and(|class| class <= self)
    }

    /// Checks a host that is written as an address, or that is a known name of a metadata service: neither goes through a resolver.
    pub(crate) fn check_host(self, host: &str) -> Result<(), String> {
        let host = host.trim_matches(['[', ']']);
        let metadata = host.trim_end_matches('.').eq_ignore_ascii_case("metadata.google.internal");
        let refused = metadata || host.parse().is_ok_and(|address| !self.admits(address));
        if refused { Err(format!("`{host}` is not an address that this server may lead to")) } else { Ok(()) }
    }
}

fn of_v4(address: Ipv4Addr) -> Option<Reach> {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => Some(Reach::Loopback),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Some(Reach::Private),
        // This network, link-local, protocol assignments, benchmarks, documentation, multicast, reserved.
        (0, ..) | (169, 254, _) | (192, 0, 0) | (198, 18..=19, _) | (224.., ..) => None,
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => None,
        _ => Some(Reach::Public),
    }
}

fn of_v6(address: Ipv6Addr) -> Option<Reach> {
    // The metadata service of AWS.
    if address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254) {
        return None;
    }
    match address.segments()[0] {
        _ if address.is_loopback() => Some(Reach::Loopback),
        0xfc00..=0xfdff => Some(Reach::Private),
        // Unspecified and others that are no unicast address of the internet.
        0x2000..=0x3fff if address.segments()[..2] != [0x2001, 0xdb8] => Some(Reach::Public),
        _ => None,
    }
}

/// The IPv4 address inside of an IPv6 address.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(v4(g, h)),
        // NAT64 for local use: its prefix may be of several lengths, so it counts as private.
        (0x64, 0xff9b, 1, ..) => Some(Ipv4Addr::new(10, 0, 0, 0)),
        (0, 0, 0, 0, 0, 0) if (g, h) != (0, 1) => Some(v4(g, h)),
        (0x2002, ..) => Some(v4(b, c)),
        _ => None,
    }
}

async fn addresses(host: String) -> io::Result<Vec<SocketAddr>> {
    let found = tokio::task::spawn_blocking(move || (host, 0).to_socket_addrs());
    Ok(found.await.map_err(io::Error::other)??.collect())
}

/// The resolver of a connector. It returns the addresses that may be connected to, so that the checked address is the used one.
#[derive(Clone)]
pub(crate) struct Resolver {
    /// `None` for every address.
    pub(crate) reach: Option<Reach>,
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = self.reach;
        Box::pin(async move {
            let mut found = addresses(name.as_str().to_owned()).await?;
            if let Some(reach) = reach {
                found.retain(|address| reach.admits(address.ip()));
                if found.is_empty() {
                    return Err(io::Error::other(NotAdmitted(name.as_str().to_owned())));
                }
            }
            Ok(found.into_iter())
        })
    }
}

/// The error for a name without an address that may be connected to.
#[derive(Debug)]
struct NotAdmitted(String);

impl fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` has no address that this server may lead to", self.0)
    }
}

impl std::error::Error for NotAdmitted {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_addresses() {
        for (text, expected) in [
            ("8.8.8.8", Some(Reach::Public)),
            ("2606:4700::1111", Some(Reach::Public)),
            ("10.1.2.3", Some(Reach::Private)),
            ("172.31.0.1", Some(Reach::Private)),
            ("172.32.0.1", Some(Reach::Public)),
            ("192.168.0.1", Some(Reach::Private)),
            ("100.100.0.1", Some(Reach::Private)),
            ("fd12::1", Some(Reach::Private)),
            ("127.0.0.1", Some(Reach::Loopback)),
            ("127.9.9.9", Some(Reach::Loopback)),
            ("::1", Some(Reach::Loopback)),
            // IPv4 inside of IPv6.
            ("::ffff:127.0.0.1", Some(Reach::Loopback)),
            ("::ffff:169.254.169.254", None),
            ("64:ff9b::10.0.0.1", Some(Reach::Private)),
            ("64:ff9b:1::8.8.8.8", Some(Reach::Private)),
            ("2002:7f00:1::", Some(Reach::Loopback)),
            ("2002:808:808::1", Some(Reach::Public)),
            ("::127.0.0.1", Some(Reach::Loopback)),
            // Never.
            ("169.254.169.254", None),
            ("fd00:ec2::254", None),
            ("fe80::1", None),
            ("0.0.0.0", None),
            ("::", None),
            ("224.0.0.1", None),
            ("255.255.255.255", None),
            ("192.0.2.1", None),
            ("2001:db8::1", None),
            ("ff02::1", None),
        ] {
            assert_eq!(Reach::of(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn hosts_that_are_addresses() {
        for (reach, host, admitted) in [
            (Reach::Public, "10.0.0.1", false),
            (Reach::Public, "127.0.0.1", false),
            (Reach::Public, "[::1]", false),
            (Reach::Public, "8.8.8.8", true),
            (Reach::Private, "10.0.0.1", true),
            (Reach::Private, "127.0.0.1", false),
            (Reach::Loopback, "[::1]", true),
            (Reach::Loopback, "169.254.169.254", false),
            (Reach::Loopback, "metadata.google.internal", false),
            (Reach::Loopback, "Metadata.google.internal.", false),
            // A name is checked when it is resolved.
            (Reach::Public, "localhost", true),
        ] {
            assert_eq!(reach.check_host(host).is_ok(), admitted, "{reach:?} {host}");
        }
    }

    #[tokio::test]
    async fn names_are_checked_at_the_resolver() {
        for (reach, found) in [(None, true), (Some(Reach::Public), false), (Some(Reach::Loopback), true)] {
            let resolved = Resolver { reach }.call("localhost".parse().unwrap()).await;
            assert_eq!(resolved.is_ok(), found, "{reach:?}");
        }
        assert_eq!(Reach::of_host("localhost").await, Reach::Loopback);
        assert_eq!(Reach::of_host("[::1]").await, Reach::Loopback);
    }
}
