//! Layers around every request of a client, and the passage through them.
//!
//! The services of tower own their requests, and a request borrows its call. So the innermost service sends the request back to the
//! future of the call, which sends it to the server beside the layers, in the same task.

use crate::{
    asks::questions::ServerIdentity,
    request::{Added, RequestSpec, fault::RequestFault},
};
use antiphon_wire::Meta;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::{
    borrow::Cow,
    error::Error as StdError,
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::{mpsc, oneshot};
use tower_service::Service;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// The service under a layer of a client: the next layer, or the server.
#[derive(Clone)]
pub struct RequestService(Option<Arc<dyn AnyService>>);

/// A service of any type.
trait AnyService: Send + Sync {
    fn run(&self, request: Request) -> BoxFuture<'static, Result<Reply, BoxError>>;
}

impl<S> AnyService for S
where
    S: Service<Request, Response = Reply> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    fn run(&self, request: Request) -> BoxFuture<'static, Result<Reply, BoxError>> {
        let mut service = self.clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            service.call(request).await.map_err(Into::into)
        })
    }
}

impl Service<Request> for RequestService {
    type Response = Reply;
    type Error = RequestFault;
    type Future = BoxFuture<'static, Result<Reply, RequestFault>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RequestFault>> {
        // The service of a layer is asked when the request arrives.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match &self.0 {
            Some(layered) => {
                let reply = layered.run(request);
                Box::pin(async move { reply.await.map_err(fault_of) })
            }
            None => Box::pin(async move {
                let (reply, replied) = oneshot::channel();
                let server = request.server.clone();
                // Without a receiver, the request is over, and nobody reads this.
                let gone = || RequestFault::Layer("the request is over".into());
                server.0.send(Run { request, reply }).await.map_err(|_| gone())?;
                replied.await.map_err(|_| gone())?
            }),
        }
    }
}

impl fmt::Debug for RequestService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestService").finish_non_exhaustive()
    }
}

/// Returns the fault of a layer's error: the same one if it is a fault of a request.
fn fault_of(error: BoxError) -> RequestFault {
    match error.downcast::<RequestFault>() {
        Ok(fault) => *fault,
        Err(error) => RequestFault::Layer(error),
    }
}

/// Adds a layer around the services inside of it.
type Wrap = Arc<dyn Fn(RequestService) -> RequestService + Send + Sync>;

/// The layers of a builder, from the outermost on.
#[derive(Clone, Default)]
pub(crate) struct LayerSettings(Vec<(&'static str, Wrap)>);

impl LayerSettings {
    /// Adds a layer inside of the others, with the name of its type.
    #[cfg(feature = "layers")]
    pub(crate) fn push<S>(
        &mut self,
        name: &'static str,
        wrap: impl Fn(RequestService) -> S + Send + Sync + 'static,
    ) where
        S: Service<Request, Response = Reply> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
    {
        self.0.push((name, Arc::new(move |inner| RequestService(Some(Arc::new(wrap(inner)))))));
    }

    /// Builds the services; `None` without layers.
    pub(crate) fn build(&self) -> Option<Layers> {
        let names: Vec<_> = self.0.iter().map(|(name, _)| *name).collect();
        let outermost = self.0.iter().rev().fold(RequestService(None), |inner, (_, wrap)| wrap(inner));
        (!names.is_empty()).then_some(Layers { names, outermost })
    }
}

/// The layers of a client.
pub(crate) struct Layers {
    /// The types of the layers, from the outermost on.
    pub(crate) names: Vec<&'static str>,
    outermost: RequestService,
}

impl Layers {
    /// Passes a request through the layers. `send` sends it to the server, as often as a layer does. A layer that drops its
    /// request, or answers before its reply, cancels the request.
    pub(crate) async fn run<F, Fut>(
        &self,
        request: impl FnOnce(ToServer) -> Request,
        send: F,
    ) -> Result<Reply, RequestFault>
    where
        F: Fn(Request) -> Fut,
        Fut: Future<Output = Result<Reply, RequestFault>>,
    {
        let (sender, mut runs) = mpsc::channel(1);
        let mut layered = pin!(self.outermost.clone().call(request(ToServer(sender))));
        loop {
            let Run { request, mut reply } = tokio::select! {
                biased;
                done = &mut layered => return done,
                Some(run) = runs.recv() => run,
            };
            let mut sent = pin!(send(request));
            tokio::select! {
                biased;
                done = &mut layered => return done,
                () = reply.closed() => {}
                // A layer that has dropped the receiver wants no reply.
                done = &mut sent => drop(reply.send(done)),
            }
        }
    }
}

/// One request of a client on its way to the server, as a layer sees it: of any method, in both eras, and each leg of a call. A clone may
/// be sent again, with an id of its own.
#[derive(Clone)]
pub struct Request {
    method: Cow<'static, str>,
    target: Option<String>,
    arguments: Option<Arc<RawValue>>,
    round: u32,
    leg: u32,
    of: ServerIdentity,
    pub(crate) added: Added,
    pub(crate) server: ToServer,
}

/// The way from the innermost service to the future of the request.
#[derive(Clone)]
pub(crate) struct ToServer(pub(crate) mpsc::Sender<Run>);

/// A request for the server, and the place of its reply.
pub(crate) struct Run {
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Reply, RequestFault>>,
}

impl Request {
    pub(crate) fn new(spec: &RequestSpec<'_>, of: ServerIdentity, server: ToServer) -> Self {
        Self {
            method: spec.method.clone(),
            target: spec.name.map(str::to_owned),
            arguments: spec.arguments.cloned(),
            round: spec.round,
            leg: spec.leg,
            of,
            added: Added::default(),
            server,
        }
    }

    /// Returns the method: `tools/call`, `tools/list`, `subscriptions/listen`, ..
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the name of the tool or prompt, the URI of the resource, or the id of the task; `None` for other methods.
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// Returns the arguments of the call, as JSON text.
    pub fn arguments(&self) -> Option<&RawValue> {
        self.arguments.as_deref()
    }

    /// Returns the number of rounds that the call has had before this request.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns the number of the request in its call, from 1.
    pub fn leg(&self) -> u32 {
        self.leg
    }

    /// Returns the server, as far as it is known.
    pub fn server(&self) -> &ServerIdentity {
        &self.of
    }

    /// Returns the members that layers add to the `_meta` of the request. Members of the protocol and of the call itself are not in
    /// it, and are not replaced. Use a prefix of your own, such as `com.example/`.
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.added.meta
    }

    /// Sets a header of this request; only HTTP sends headers. The headers of the protocol are not replaced. A name or a value
    /// that HTTP does not permit fails the request.
    pub fn set_header(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        self.added.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
        self.added.headers.push((name, value.into()));
    }
}

impl fmt::Debug for Request {
    /// Omits arguments, `_meta` and headers: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("leg", &self.leg)
            .finish_non_exhaustive()
    }
}

/// The result of a request of a client.
#[derive(Clone)]
pub struct Reply(Box<RawValue>);

/// The kind of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyKind {
    /// A final result.
    Complete {
        /// True for a result with `isError`.
        is_error: bool,
    },
    /// Questions, or a state alone: the client sends another leg.
    Asked,
    /// The call continues as a task.
    Task,
}

impl Reply {
    /// Returns a reply in the place of the server's, such as a [`CallToolResult`](antiphon_wire::CallToolResult). The client reads it as
    /// any result of the request's method.
    ///
    /// # Errors
    /// If the result cannot be written as JSON.
    pub fn new(result: &impl Serialize) -> Result<Self, serde_json::Error> {
        to_raw_value(result).map(Self)
    }

    /// Returns the result, as JSON text. Untrusted and unchecked.
    pub fn result(&self) -> &RawValue {
        &self.0
    }

    /// Returns what the result says.
    pub fn kind(&self) -> ReplyKind {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind<'a> {
            #[serde(borrow, default)]
            result_type: Option<Cow<'a, str>>,
            #[serde(default)]
            is_error: Option<bool>,
            #[serde(borrow, default)]
            task: Option<&'a RawValue>,
        }
        let kind: Option<Kind<'_>> = serde_json::from_str(self.0.get()).ok();
        match kind {
            Some(kind) if kind.result_type.as_deref() == Some("input_required") => ReplyKind::Asked,
            Some(kind) if kind.result_type.as_deref() == Some("task") || kind.task.is_some() => {
                ReplyKind::Task
            }
            kind => ReplyKind::Complete { is_error: kind.and_then(|kind| kind.is_error) == Some(true) },
        }
    }

    pub(crate) fn of(result: Box<RawValue>) -> Self {
        Self(result)
    }

    pub(crate) fn into_result(self) -> Box<RawValue> {
        self.0
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reply").field(&self.kind()).finish()
    }
}
