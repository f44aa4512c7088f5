//! A transport of rmcp whose requests go to the replicas in turn, so that its own loop crosses from one to the other.

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

type Fault = StreamableHttpError<reqwest::Error>;

/// The replicas, and which is next.
#[derive(Clone)]
pub(crate) struct Alternating {
    http: reqwest::Client,
    urls: Arc<[Arc<str>]>,
    turn: Arc<AtomicUsize>,
}

impl Alternating {
    pub(crate) fn new(urls: &[String]) -> Self {
        let urls = urls.iter().map(|url| Arc::from(url.as_str())).collect();
        Self { http: reqwest::Client::new(), urls, turn: Arc::default() }
    }

    /// How many requests went out.
    pub(crate) fn requests(&self) -> usize {
        self.turn.load(Ordering::Relaxed)
    }
}

impl StreamableHttpClient for Alternating {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let uri = Arc::clone(&self.urls[turn % self.urls.len()]);
        self.http.post_message(uri, message, session_id, auth_header, custom_headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Fault> {
        self.http.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Fault> {
        self.http.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
    }
}
