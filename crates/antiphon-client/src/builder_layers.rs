//! The layers of a client, as its builder takes them.

use crate::{
    builder::ClientBuilder,
    layer::{BoxError, Reply, Request, RequestService},
};
use tower_service::Service;

impl ClientBuilder {
    /// Adds a tower layer around every request: of each method, in both eras, and each leg of a call. It may change the `_meta` and
    /// the headers, refuse the request, answer it, delay it, send it again, and see its reply. The layer that is added first sees a request
    /// first; [`Client::layers`](crate::Client::layers) returns their order. A result from the cache is no request. Without a layer, a request costs nothing more.
    ///
    /// ```
    /// use antiphon::client::{Client, layers::{Reply, Request, RequestService}};
    ///
    /// let tenant = tower::layer::layer_fn(|inner: RequestService| {
    ///     tower::service_fn(move |mut request: Request| {
    ///         let (mut inner, name) = (inner.clone(), format!("{} {:?}", request.method(), request.target()));
    ///         request.set_header("x-tenant", "front");
    ///         request.meta_mut().0.insert("example.com/tenant".into(), "front".into());
    ///         async move {
    ///             let reply = tower::Service::call(&mut inner, request).await;
    ///             println!("{name}: {:?}", reply.as_ref().map(Reply::kind));
    ///             reply
    ///         }
    ///     })
    /// });
    /// let client = Client::builder("my-host", "1.0").layer(tenant);
    /// ```
    ///
    /// An error that is no [`RequestFault`](crate::RequestFault) becomes [`RequestFault::Layer`](crate::RequestFault::Layer). A request that is sent again may act
    /// twice at the server: look at [`Request::method`](crate::Request::method) and the fault first. The time limit of one request begins again with each
    /// sending. The messages of a session that belong to no request (`initialize`, notifications) pass no layer, nor does the
    /// subscription of [`task_notifications`](Self::task_notifications).
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: tower_layer::Layer<RequestService> + Send + Sync + 'static,
        L::Service: Service<Request, Response = Reply> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Error: Into<BoxError>,
        <L::Service as Service<Request>>::Future: Send,
    {
        self.layers.push(std::any::type_name::<L>(), move |inner| layer.layer(inner));
        self
    }
}
