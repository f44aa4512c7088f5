//! The passage of a request through the layers of its server, and the settings of layers.

use crate::{
    dispatch::reply::{encode, write_result},
    errors::refusal::Refusal,
    identity::Caller,
    layer::{
        self, Layers,
        call::{Call, CallReply, EarlyResult, Refused, Served, Written},
        visibility::OfferVisibility,
    },
    offer::offers::Offers,
    request::{carrier, observe::call_of, receive::Request},
    runtime::Runtime,
    server::{Server, builder::ServerBuilder},
    subscribe::NotificationFilter,
};
use antiphon_wire::{Meta, meta_keys};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::to_raw_value;
#[cfg(feature = "layers")]
use std::error::Error as StdError;
use std::sync::Arc;
use tower_service::Service;
#[cfg(feature = "layers")]
use {crate::layer::CallService, tower_layer::Layer};

impl Server {
    /// Passes a request through the layers of the server, and answers it inside of them.
    pub(crate) async fn layered(
        &self,
        layers: &Layers,
        offers: &Offers,
        request: &Request<'_>,
        caller: &Caller<'_>,
    ) -> Result<Served, Refusal> {
        let runtime = &self.0.runtime;
        // A layer would take the caller for an anonymous one.
        let principal = carrier::principal(runtime, caller).map_err(|cause| {
            runtime.log_no_identity(&cause, &request.method);
            Refusal::Internal
        })?;
        let call = |server| {
            let opened = call_of(runtime, request, principal.as_ref());
            let visibility = OfferVisibility::of(offers, request, caller, principal.as_ref());
            Call::new(request, caller, principal.clone(), opened, visibility, server)
        };
        let serve = |call: Call| async move {
            let meta = call.meta_changed.then(|| to_raw_value(&with_client(call.meta, request))).transpose();
            let meta = meta.map_err(|_| Refused(Refusal::Internal))?;
            let extensions = Arc::new(call.extensions);
            let changed = meta.as_deref().map(|meta| request.with_meta(Some(meta)));
            let caller = caller.with_extensions(&extensions);
            let served = self.served(offers, changed.as_ref().unwrap_or(request), &caller).await;
            served.map(CallReply::served).map_err(Refused)
        };
        // The code of layers may panic.
        let reply = self
            .caught(request, async { layers.run(call, serve).await.map_err(|refused| refused.0) })
            .await?;
        written(runtime, request, reply)
    }
}

/// Returns a `_meta` that a layer has changed, with the version, the client and its capabilities as the request has them.
fn with_client(mut meta: Meta, request: &Request<'_>) -> Meta {
    let own = request.params.meta.and_then(|text| serde_json::from_str::<Meta>(text.get()).ok());
    let mut own = own.unwrap_or_default();
    for key in [meta_keys::PROTOCOL_VERSION, meta_keys::CLIENT_INFO, meta_keys::CLIENT_CAPABILITIES] {
        match own.0.remove(key) {
            Some(value) => meta.0.insert(key.to_owned(), value),
            None => meta.0.remove(key),
        };
    }
    meta
}

/// Writes the reply of a layer.
fn written(server: &Runtime, request: &Request<'_>, reply: CallReply) -> Result<Served, Refusal> {
    let body = match reply.0 {
        Written::Served { served, .. } => return Ok(served),
        // No layer can make one for a request.
        Written::Notified => return Err(Refusal::Internal),
        Written::Again { result, .. } => encode(request, &result),
        Written::Early(early) => match *early {
            EarlyResult::Tool(result) => write_result(server, request, result),
            EarlyResult::Prompt(result) => write_result(server, request, result),
            EarlyResult::Resource(result) => write_result(server, request, result),
        },
    };
    body.map(Served::Body)
}

impl Server {
    /// Returns the filter of the notifications to this caller, who was identified before.
    pub(crate) fn notification_filter(&self, caller: &Caller<'_>, version: &str) -> NotificationFilter {
        let Some(layers) = &self.0.layers else { return NotificationFilter::default() };
        let principal = self.0.runtime.identity.of(caller).ok().flatten();
        layer::filter(layers, caller, principal, version)
    }
}

impl ServerBuilder {
    /// Adds a tower layer around every request: of each method, in both eras, and each leg of a task; and around every notification of a
    /// change to a subscriber. It may refuse the request, answer it, delay it, add values for the handler, and see what became of it. A refused
    /// notification is not sent. The layer that is added first sees a request first; [`Server::layers`](crate::Server::layers) returns their order. Without a layer, a request costs nothing more.
    ///
    /// ```
    /// use antiphon::server::{Server, layers::{Call, CallReply, CallService, Refused}};
    /// use std::{future::Future, pin::Pin, task::{Context, Poll}};
    /// use tower::{Layer, Service, ServiceBuilder};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let log = tower::layer::layer_fn(|inner: CallService| {
    ///     tower::service_fn(move |call: Call| {
    ///         let (mut inner, name) = (inner.clone(), call.target().map(str::to_owned));
    ///         async move {
    ///             let reply = inner.call(call).await;
    ///             println!("{name:?}: {:?}", reply.as_ref().map(CallReply::outcome));
    ///             reply
    ///         }
    ///     })
    /// });
    /// let server = Server::builder("orders", "1.0").layer(log).build()?;
    /// assert_eq!(server.layers().len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// An error that is not a [`Refused`](crate::Refused) goes to the log, and the client receives an internal error. A layer that drops its call,
    /// or answers first, cancels the handler; a step that runs then ends as after a client that hangs up.
    #[cfg(feature = "layers")]
    #[must_use]
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<CallService> + Send + Sync + 'static,
        L::Service: Service<Call, Response = CallReply> + Clone + Send + Sync + 'static,
        <L::Service as Service<Call>>::Error: Into<Box<dyn StdError + Send + Sync>>,
        <L::Service as Service<Call>>::Future: Send,
    {
        self.layers.push(std::any::type_name::<L>(), move |inner| layer.layer(inner));
        self
    }

    /// Adds a value to each request, for handlers and inner layers: [`RequestInfo::extension`](crate::RequestInfo::extension). The function sees the
    /// caller as the transport knows it. A value of the same type that is there already is replaced, but for two kinds of calls that have
    /// no request: a leg of a task that [keeps](Self::keep_in_tasks) the value, and a notification, which has the value of its subscription.
    #[must_use]
    pub fn request_context<T: Clone + Send + Sync + 'static>(
        mut self,
        context: impl Fn(&Call) -> T + Clone + Send + Sync + 'static,
    ) -> Self {
        self.layers.push_wrap(std::any::type_name::<T>(), |inner| {
            inner.inside_of(move |mut call, mut inner| {
                // A leg of a task and a notification have no request to read the value from.
                let has_request = !call.is_of_task() && !call.method().starts_with("notifications/");
                if has_request || call.extensions().get::<T>().is_none() {
                    let value = context(&call);
                    call.extensions_mut().insert(value);
                }
                inner.call(call)
            })
        });
        self
    }

    /// Keeps a value of layers in tasks: every leg of a task has the value of this type that the request had when its call became a task,
    /// after a restart and in another process too. The sealed row of the task has it, as JSON, under this name. Without this method, a
    /// leg of a task has the values only that [`request_context`](Self::request_context) makes without a request. A value that does not fit its type any more is absent, and the log says so: give a changed type
    /// another name, or a default for what is new.
    ///
    /// ```
    /// use antiphon::server::{Server, layers::Call};
    ///
    /// #[derive(Clone, serde::Serialize, serde::Deserialize)]
    /// struct Tenant(String);
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("orders", "1.0")
    ///     .request_context(|call: &Call| {
    ///         let header = call.headers().and_then(|headers| headers.get("x-tenant")?.to_str().ok());
    ///         Tenant(header.unwrap_or("everybody").to_owned())
    ///     })
    ///     .keep_in_tasks::<Tenant>("tenant")
    ///     .build()?;
    /// # Ok(()) }
    /// ```
    ///
    /// A server does not build with two types of one name.
    #[must_use]
    pub fn keep_in_tasks<T>(mut self, name: impl Into<String>) -> Self
    where
        T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.kept.add::<T>(name.into());
        self
    }
}
