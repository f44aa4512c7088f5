//! Layers around every request of a client, and the passage through them.
//!
//! The services of tower own their requests, and a request borrows its call. So the innermost service sends the request back to the
//! future of the call, which sends it to the server beside the layers, in the same task.

pub(crate) mod request;

use crate::request::fault::RequestFault;
use futures_util::future::BoxFuture;
use request::{Reply, Request, Run, ToServer};
use std::{
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
