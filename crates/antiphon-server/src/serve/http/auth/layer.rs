//! The tower layer that verifies access tokens in front of the endpoint.

use crate::{
    errors::refusal_log::RefusalLog,
    serve::http::{auth::ResourceServer, fields::is_preflight},
};
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use hyper::body::Bytes;
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::SystemTime,
};
use tower_layer::Layer;
use tower_service::Service;

/// A tower layer that verifies the access token of each request, so that layers of the program stand between authentication and the
/// endpoint. They read [`Principal`](antiphon_seal::Principal) and [`Bearer`](crate::Bearer) from the extensions of the request. The
/// endpoint does not verify the token again.
///
/// ```
/// use antiphon::{seal::Principal, server::{Bearer, Server}};
/// use antiphon::serve::http::{HttpOptions, HttpService, auth::{AuthLayer, ResourceServer, StaticTokens}};
/// use tower::ServiceBuilder;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = Server::builder("orders", "1.0").build()?;
/// let auth = ResourceServer::builder("https://api.example.com/mcp")
///     .verifier(StaticTokens::new().token("secret", Bearer::new(Principal::user("ada"))))
///     .build()?;
/// let mcp = ServiceBuilder::new()
///     .layer(AuthLayer::new(auth.clone()))
///     .map_request(|request: http::Request<http_body_util::Empty<bytes::Bytes>>| {
///         println!("{:?}", request.extensions().get::<Principal>());
///         request
///     })
///     .service(HttpService::new(server, HttpOptions::default().authorize(auth)));
/// # let _ = mcp;
/// # Ok(()) }
/// ```
///
/// Give the same resource server to [`HttpOptions::authorize`](crate::serve::http::HttpOptions::authorize): the endpoint then verifies a request
/// that came around the layer. A request without a valid token gets the endpoint's response and goes no further, but for two that need
/// no token: a preflight of a browser, and `GET` of the [metadata](ResourceServer::metadata_path). Route a health check around
/// the layer. Web pages read a 401 only if a CORS layer stands outside of this one.
#[derive(Clone, Debug)]
pub struct AuthLayer(ResourceServer);

impl AuthLayer {
    /// Returns a layer that accepts the tokens of this resource server.
    pub fn new(auth: ResourceServer) -> Self {
        Self(auth)
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService { auth: self.0.clone(), refusals: Arc::default(), inner }
    }
}

/// The service of [`AuthLayer`].
#[derive(Clone)]
pub struct AuthService<S> {
    auth: ResourceServer,
    /// The refusals that were logged.
    refusals: Arc<RefusalLog>,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for AuthService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: From<Bytes>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // The service that was asked is the one that is called.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let (auth, refusals) = (self.auth.clone(), Arc::clone(&self.refusals));
        let is_metadata = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
            && auth.metadata_path() == Some(request.uri().path());
        let needs_no_token = is_metadata || is_preflight(request.method(), request.headers());
        Box::pin(async move {
            if !needs_no_token {
                match auth.verify(request.method(), request.headers()).await {
                    Ok(verified) => verified.insert(request.extensions_mut()),
                    Err(refused) => {
                        refused.0.log(&refusals, SystemTime::now());
                        return Ok(refused.into_response());
                    }
                }
            }
            inner.call(request).await
        })
    }
}

impl<S> fmt::Debug for AuthService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthService").field("auth", &self.auth).finish_non_exhaustive()
    }
}
