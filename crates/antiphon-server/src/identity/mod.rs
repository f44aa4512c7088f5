//! The caller of a request: headers, principal, token and its scopes, the account of its use of the server, and the values that tasks
//! keep of it.

pub(crate) mod account;

use crate::{
    errors::{BuildError, refusal::Refusal},
    outbox::Outbox,
    task_registry::leg::TaskLeg,
};
use antiphon_seal::Principal;
use antiphon_wire::escaped;
use http::{Extensions, HeaderMap};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Error, Map, Value, from_value, to_value};
use std::{
    collections::BTreeSet,
    error::Error as StdError,
    fmt,
    net::{IpAddr, Ipv6Addr},
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::SystemTime,
};

/// The sender of one request, as known to the transport.
///
/// `Caller::default()` is the owner of the process, as on stdio: no scope and no share of anonymous callers applies to
/// it. A transport of one's own that receives requests from a network, such as a bridge, uses
/// [`remote`](Self::remote), or [`http`](Self::http) if the request has HTTP headers.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Caller<'a> {
    /// The HTTP headers; `None` on other transports.
    pub headers: Option<&'a HeaderMap>,
    /// The values that layers in front of the server added, such as a [`Principal`]; `None` on other transports.
    pub extensions: Option<&'a Extensions>,
    /// The address of the peer, unless an extension has it.
    pub(crate) address: Option<PeerAddress>,
    /// Headers and extensions, where handlers can share them.
    pub(crate) head: Option<&'a Arc<RequestHead>>,
    /// The extensions, where layers of the server have added some.
    pub(crate) added: Option<&'a Arc<Extensions>>,
    /// The outbox for messages before the reply; without it, none are sent.
    pub(crate) outbox: Option<&'a Outbox>,
    /// The leg of a task; `None` for a request of a client.
    pub(crate) task: Option<&'a Arc<TaskLeg>>,
    /// See [`is_remote`](Caller::is_remote).
    pub(crate) is_remote: bool,
}

impl<'a> Caller<'a> {
    /// Returns the sender of an HTTP request, who is [remote](Self::remote).
    pub fn http(headers: &'a HeaderMap, extensions: &'a Extensions) -> Self {
        Self { headers: Some(headers), ..Self::remote(extensions) }
    }

    /// Returns a sender on the other side of a network, for a transport of one's own that is not HTTP. The extensions hold what
    /// the transport knows of the sender: a [`Bearer`], a [`Principal`], a [`PeerAddress`]. Without them the sender is
    /// anonymous, and holds no scope.
    pub fn remote(extensions: &'a Extensions) -> Self {
        Self { extensions: Some(extensions), is_remote: true, ..Self::default() }
    }

    /// Returns the sender of an HTTP request, whose head its handlers share.
    #[cfg(feature = "http")]
    pub(crate) fn of_head(head: &'a Arc<RequestHead>, address: Option<PeerAddress>) -> Self {
        Self { head: Some(head), address, ..Self::http(&head.headers, &head.extensions) }
    }

    /// Returns the same sender, with these extensions.
    pub(crate) fn with_extensions(self, added: &'a Arc<Extensions>) -> Self {
        Self { extensions: Some(added), added: Some(added), ..self }
    }

    /// Returns headers and extensions for the handlers; `None` on other transports.
    pub(crate) fn shared_head(&self) -> Option<Arc<RequestHead>> {
        self.head.cloned().or_else(|| {
            let extensions = self.extensions.cloned().unwrap_or_default();
            Some(Arc::new(RequestHead { headers: self.headers?.clone(), extensions }))
        })
    }

    /// Returns the address of the peer: the one that a layer inserted as an extension, or else that of the connection. `None`
    /// if neither is known.
    pub fn peer_address(&self) -> Option<PeerAddress> {
        self.extensions.and_then(|found| found.get().copied()).or(self.address)
    }

    /// Returns true if the sender is on the other side of a network, and shows by a token who it is: rights need a
    /// [`bearer`](Self::bearer) then. Otherwise (stdio, memory) the sender is the owner of the process, whom nobody authenticates, or
    /// the leg of a task, whose caller was checked when the task was created.
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Returns the verified token of the sender, if there is one.
    pub fn bearer(&self) -> Option<&'a Bearer> {
        self.extensions?.get()
    }

    /// Returns the outbox for the messages before the reply. Without one, none are sent.
    pub fn outbox(&self) -> Option<&'a Outbox> {
        self.outbox
    }

    /// Returns the caller of a leg of a task: the one who created the task.
    pub(crate) fn of_task(task: &'a Arc<TaskLeg>) -> Self {
        let added = task.kept.as_ref();
        Self { task: Some(task), extensions: added.map(|added| &**added), added, ..Self::default() }
    }

    /// Returns the same caller, with an outbox for the messages before the reply.
    pub fn with_outbox(self, outbox: &'a Outbox) -> Self {
        Self { outbox: Some(outbox), ..self }
    }
}

impl fmt::Debug for Caller<'_> {
    /// Omits headers and extensions: they hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("is_remote", &self.is_remote).finish_non_exhaustive()
    }
}

/// A function that identifies the caller.
type PrincipalBinder =
    Arc<dyn Fn(&Caller<'_>) -> Result<Option<Principal>, Box<dyn StdError + Send + Sync>> + Send + Sync>;

/// The rules by which a server identifies its callers.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) binder: PrincipalBinder,
    pub(crate) client_is_enough: bool,
}

impl Default for Identity {
    /// Returns the rule that reads the [`Principal`] that a layer in front left in the request's extensions.
    fn default() -> Self {
        let binder: PrincipalBinder =
            Arc::new(|caller| Ok(caller.extensions.and_then(|found| found.get::<Principal>()).cloned()));
        Self { binder, client_is_enough: false }
    }
}

impl Identity {
    /// Returns the caller's principal. The text of an `Err` is for the log: such a caller is refused.
    pub(crate) fn of(&self, caller: &Caller<'_>) -> Result<Option<Principal>, String> {
        // The author's function may panic, and some callers of this method do not catch panics.
        let bound = panic::catch_unwind(AssertUnwindSafe(|| (self.binder)(caller)));
        let bound = bound.map_err(|_panic| "bind_principal panicked".to_owned())?;
        let principal = bound.map_err(|error| format!("bind_principal failed: {error}"))?;
        match &principal {
            Some(found) if !found.has_subject() && !self.client_is_enough => {
                Err("the principal has no subject, so all \
                 users of one client software would be one; allow_client_principal() accepts that"
                    .to_owned())
            }
            _ => Ok(principal),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("client_is_enough", &self.client_is_enough).finish_non_exhaustive()
    }
}

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

/// A verified bearer token: its principal, scopes, expiry and claims. It does not hold the token itself.
///
/// A [`ResourceServer`](crate::serve::http::auth::ResourceServer) puts one into the extensions of each HTTP request. An
/// authentication layer of your own may do the same, together with its [`Principal`]. Cheap to clone.
#[derive(Clone)]
pub struct Bearer(Arc<Verified>);

#[derive(Clone)]
struct Verified {
    principal: Principal,
    scopes: BTreeSet<String>,
    expires_at: Option<SystemTime>,
    claims: Map<String, Value>,
}

impl Bearer {
    /// Returns a token of this principal, without scopes and without expiry.
    pub fn new(principal: Principal) -> Self {
        let (scopes, claims) = (BTreeSet::new(), Map::new());
        Self(Arc::new(Verified { principal, scopes, expires_at: None, claims }))
    }

    /// Replaces the scopes.
    #[must_use]
    pub fn with_scopes<Text: Into<String>>(mut self, scopes: impl IntoIterator<Item = Text>) -> Self {
        Arc::make_mut(&mut self.0).scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the expiry. Requests with the token are refused after that time.
    #[must_use]
    pub fn expiring_at(mut self, time: SystemTime) -> Self {
        Arc::make_mut(&mut self.0).expires_at = Some(time);
        self
    }

    /// Replaces the claims.
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        Arc::make_mut(&mut self.0).claims = claims;
        self
    }

    /// Returns the principal.
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// Returns the scopes in order: the granted ones, and those that they imply.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter().map(String::as_str)
    }

    /// Returns whether the token has this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.contains(scope)
    }

    /// Returns the expiry, if it is known.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.0.expires_at
    }

    /// Returns all claims of the issuer, such as those of a JWT.
    pub fn claims(&self) -> &Map<String, Value> {
        &self.0.claims
    }
}

impl fmt::Debug for Bearer {
    /// Omits the claims: they identify a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer").field("scopes", &self.0.scopes).finish_non_exhaustive()
    }
}

/// The headers of a request, and the values that tower layers in front of the server have added.
#[derive(Clone)]
pub(crate) struct RequestHead {
    pub(crate) headers: HeaderMap,
    pub(crate) extensions: Extensions,
}

impl RequestHead {
    /// Takes the head of a request.
    #[cfg(feature = "http")]
    pub(crate) fn taken(parts: &mut http::request::Parts) -> Self {
        use std::mem::take;
        Self { headers: take(&mut parts.headers), extensions: take(&mut parts.extensions) }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

/// The types of values that tasks keep, by name.
#[derive(Default)]
pub(crate) struct KeptValues(Vec<KeptValue>);

struct KeptValue {
    name: String,
    write: fn(&Extensions) -> Option<Result<Value, Error>>,
    read: fn(Value, &mut Extensions) -> Result<(), Error>,
}

impl KeptValues {
    pub(crate) fn add<T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static>(
        &mut self,
        name: String,
    ) {
        let write = |from: &Extensions| from.get::<T>().map(to_value);
        let read = |value, to: &mut Extensions| {
            to.insert(from_value::<T>(value)?);
            Ok(())
        };
        self.0.push(KeptValue { name, write, read });
    }

    /// Checks that no name is used twice.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let names: Vec<&str> = self.0.iter().map(|kept| &*kept.name).collect();
        match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            None => Ok(()),
            Some((_, name)) => Err(BuildError(format!(
                "`keep_in_tasks(\"{name}\")` is there twice: give each type a name of its own"
            ))),
        }
    }

    /// Returns the values of the request that becomes a task.
    pub(crate) fn write(&self, caller: &Caller<'_>) -> Result<Map<String, Value>, Refusal> {
        let Some(extensions) = caller.extensions else { return Ok(Map::new()) };
        let written = self.0.iter().filter_map(|kept| {
            let value = (kept.write)(extensions)?;
            Some(value.map(|value| (kept.name.clone(), value)))
        });
        written.collect::<Result<_, _>>().map_err(|fault| {
            tracing::error!(fault = %escaped(&fault), "a value that a task keeps cannot be written as JSON: no task is created");
            Refusal::Internal
        })
    }

    /// Returns the values for a leg of the task; `None` without any. A value that does not fit its type any more is absent.
    pub(crate) fn read(&self, values: &Map<String, Value>) -> Option<Arc<Extensions>> {
        let mut extensions = Extensions::new();
        for kept in &self.0 {
            let Some(value) = values.get(&kept.name) else { continue };
            if let Err(fault) = (kept.read)(value.clone(), &mut extensions) {
                tracing::error!(name = kept.name, fault = %escaped(&fault), "a value that a task keeps cannot be read: it is absent");
            }
        }
        (!extensions.is_empty()).then(|| Arc::new(extensions))
    }
}
