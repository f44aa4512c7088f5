//! A transport of rmcp that sends each request to the next replica, so that the rounds of one call reach different
//! replicas.

use futures_core::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

type ClientError = StreamableHttpError<reqwest::Error>;

/// The URLs of the replicas, and the number of requests sent.
#[derive(Clone)]
pub(crate) struct ReplicaClient {
    http: reqwest::Client,
    urls: Arc<[Arc<str>]>,
    next: Arc<AtomicUsize>,
}

impl ReplicaClient {
    pub(crate) fn new(urls: &[String]) -> Self {
        let urls = urls.iter().map(|url| Arc::from(url.as_str())).collect();
        Self { http: reqwest::Client::new(), urls, next: Arc::default() }
    }

    /// Number of requests sent.
    pub(crate) fn requests(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }
}

impl StreamableHttpClient for ReplicaClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, ClientError> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let uri = Arc::clone(&self.urls[next % self.urls.len()]);
        self.http.post_message(uri, message, session_id, auth_header, custom_headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), ClientError> {
        self.http.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, ClientError> {
        self.http.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
    }
}
