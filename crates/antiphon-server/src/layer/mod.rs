//! Layers around every request: what they see, how a request and the notifications to a client pass through them, and those that the
//! crate has.
//!
//! A layer is a tower layer, whose services own their requests; the handler borrows the message. So the innermost service sends the
//! call back to the future of the request, which runs the server beside the layers, in the same task.

#[cfg(feature = "layers")]
pub(crate) mod audit;
pub(crate) mod call;
#[cfg(feature = "layers")]
pub(crate) mod limits;
pub(crate) mod visibility;

use crate::{
    errors::refusal::Refusal,
    identity::{Caller, PeerAddress},
    subscribe::NotificationFilter,
};
use antiphon_seal::Principal;
use antiphon_wire::{Meta, escaped};
use call::{Call, CallReply, Outcome, Refused, Run, ToServer};
use futures_util::{FutureExt as _, future::BoxFuture};
use http::Extensions;
use std::{
    error::Error as StdError,
    fmt,
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::{mpsc, oneshot};
use tower_service::Service;
use visibility::OfferVisibility;

type BoxError = Box<dyn StdError + Send + Sync>;

/// The service under a layer: the next layer, or the server.
#[derive(Clone)]
pub struct CallService(Option<Arc<dyn AnyService>>);

/// A service of any type.
trait AnyService: Send + Sync {
    fn run(&self, call: Call) -> BoxFuture<'static, Result<CallReply, BoxError>>;
}

impl<S> AnyService for S
where
    S: Service<Call, Response = CallReply> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    fn run(&self, call: Call) -> BoxFuture<'static, Result<CallReply, BoxError>> {
        let mut service = self.clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            service.call(call).await.map_err(Into::into)
        })
    }
}

impl Service<Call> for CallService {
    type Response = CallReply;
    type Error = Refused;
    type Future = BoxFuture<'static, Result<CallReply, Refused>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        // The service of a layer is asked when the call arrives.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        match &self.0 {
            Some(layered) => {
                let reply = layered.run(call);
                Box::pin(async move { reply.await.map_err(refused) })
            }
            None => Box::pin(async move {
                let (reply, replied) = oneshot::channel();
                let server = call.server.clone();
                // Without a receiver, the request is over, and nobody reads this.
                let gone = |_| Refused(Refusal::Internal);
                server.0.send(Run { call, reply }).await.map_err(|_| Refused(Refusal::Internal))?;
                replied.await.map_err(gone)?
            }),
        }
    }
}

impl CallService {
    /// Returns a service that runs this function with each call, and with this service inside.
    pub(crate) fn inside_of<F, Fut>(self, run: F) -> Self
    where
        F: Fn(Call, Self) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CallReply, Refused>> + Send + 'static,
    {
        Self(Some(Arc::new(Around { run, inner: self })))
    }
}

/// A function around a service.
struct Around<F> {
    run: F,
    inner: CallService,
}

impl<F, Fut> AnyService for Around<F>
where
    F: Fn(Call, CallService) -> Fut + Send + Sync,
    Fut: Future<Output = Result<CallReply, Refused>> + Send + 'static,
{
    fn run(&self, call: Call) -> BoxFuture<'static, Result<CallReply, BoxError>> {
        let reply = (self.run)(call, self.inner.clone());
        Box::pin(async move { reply.await.map_err(Into::into) })
    }
}

impl fmt::Debug for CallService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallService").finish_non_exhaustive()
    }
}

/// The refusal of a layer. The text of an error that is no [`Refused`] is for the log.
fn refused(error: BoxError) -> Refused {
    match error.downcast::<Refused>() {
        Ok(refused) => *refused,
        Err(error) => {
            tracing::error!(cause = %escaped(&error), "a layer failed");
            Refused(Refusal::Internal)
        }
    }
}

/// Adds a layer around the services inside of it.
type Wrap = Box<dyn FnOnce(CallService) -> CallService + Send + Sync>;

/// The layers of a builder, from the outermost on.
#[derive(Default)]
pub(crate) struct LayerSettings(Vec<(&'static str, Wrap)>);

impl LayerSettings {
    /// Adds a layer inside of the others, with the name of its type.
    #[cfg(feature = "layers")]
    pub(crate) fn push<S>(
        &mut self,
        name: &'static str,
        wrap: impl FnOnce(CallService) -> S + Send + Sync + 'static,
    ) where
        S: Service<Call, Response = CallReply> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
    {
        self.push_wrap(name, |inner| CallService(Some(Arc::new(wrap(inner)))));
    }

    /// Adds a layer whose service is one of this crate.
    pub(crate) fn push_wrap(
        &mut self,
        name: &'static str,
        wrap: impl FnOnce(CallService) -> CallService + Send + Sync + 'static,
    ) {
        self.0.push((name, Box::new(wrap)));
    }

    /// Builds the services; `None` without layers.
    pub(crate) fn build(self) -> Option<Layers> {
        let names: Vec<_> = self.0.iter().map(|(name, _)| *name).collect();
        let wrap = |inner, (_, wrap): (_, Wrap)| wrap(inner);
        let outermost = self.0.into_iter().rev().fold(CallService(None), wrap);
        (!names.is_empty()).then_some(Layers { names, outermost })
    }
}

/// The layers of a server.
pub(crate) struct Layers {
    /// The types of the layers, from the outermost on.
    pub(crate) names: Vec<&'static str>,
    outermost: CallService,
}

impl Layers {
    /// Passes a request through the layers. `call` makes the call; `serve` is the server, which a layer may run again. A layer that
    /// drops its call, or answers before its reply, cancels the handler.
    pub(crate) async fn run<F, Fut>(
        &self,
        call: impl FnOnce(ToServer) -> Call,
        serve: F,
    ) -> Result<CallReply, Refused>
    where
        F: Fn(Call) -> Fut,
        Fut: Future<Output = Result<CallReply, Refused>>,
    {
        let (sender, mut runs) = mpsc::channel(1);
        let mut layered = pin!(self.outermost.clone().call(call(ToServer(sender))));
        loop {
            let Run { call, mut reply } = tokio::select! {
                biased;
                done = &mut layered => return done,
                Some(run) = runs.recv() => run,
            };
            let mut served = pin!(serve(call));
            tokio::select! {
                biased;
                done = &mut layered => return done,
                () = reply.closed() => {}
                // A layer that has dropped the receiver wants no reply.
                done = &mut served => drop(reply.send(done)),
            }
        }
    }
}

/// The layers between a server and one subscriber: of a subscription, or of a session.
struct NotificationLayers {
    layers: Arc<Layers>,
    principal: Option<Principal>,
    version: String,
    peer: Option<PeerAddress>,
    extensions: Extensions,
}

/// Returns the filter of the notifications to this caller: each passes the layers.
pub(crate) fn filter(
    layers: &Arc<Layers>,
    caller: &Caller<'_>,
    principal: Option<Principal>,
    version: &str,
) -> NotificationFilter {
    let layers = Arc::new(NotificationLayers {
        layers: Arc::clone(layers),
        principal,
        version: version.to_owned(),
        peer: caller.peer_address(),
        extensions: caller.extensions.cloned().unwrap_or_default(),
    });
    NotificationFilter::new(move |method, target| {
        let (layers, method, target) = (Arc::clone(&layers), method.to_owned(), target.map(str::to_owned));
        Box::pin(async move { layers.permit(method, target).await })
    })
}

impl NotificationLayers {
    /// Returns whether the layers pass this notification on. A layer that refuses it, or answers in its place, keeps it back.
    async fn permit(&self, method: String, target: Option<String>) -> bool {
        let call = |server| Call {
            method: method.clone(),
            target,
            arguments: None,
            answers: Vec::new(),
            version: self.version.clone(),
            meta: Meta::default(),
            meta_changed: false,
            principal: self.principal.clone(),
            call: None,
            leg: 1,
            is_of_task: false,
            peer: self.peer,
            head: None,
            extensions: self.extensions.clone(),
            visibility: OfferVisibility::Shown,
            server,
        };
        let run = self.layers.run(call, |_| async { Ok(CallReply::notified()) });
        // The code of layers may panic; its future is dropped then.
        match AssertUnwindSafe(run).catch_unwind().await {
            Ok(reply) => reply.is_ok_and(|reply| reply.outcome() == Outcome::Notified),
            Err(_panic) => {
                tracing::error!(method = %escaped(&method), "a layer panicked: a notification is not sent");
                false
            }
        }
    }
}
