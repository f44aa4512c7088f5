//! A legacy session over HTTP+SSE of 2024-11-05: one stream of events, and an endpoint for messages that it names first.
//!
//! Events become lines, and lines become POSTs, so that the session runs on an ordinary pair of streams.

use crate::transport::{
    OutgoingRequest, ServerMessage, ServerReply, SessionLink, SessionTransport as _, Transport as _,
    TransportError,
    TransportErrorKind::{Closed, Malformed, TooLarge},
    http::{
        answer,
        core::{CookieJar, Core, host_of},
        resume,
    },
    stdio::StreamTransport,
};
use antiphon_wire::{
    ProtocolVersion, escaped,
    framing::{Line, LineBuffer},
    header::MCP_PROTOCOL_VERSION,
    sse::SseDecoder,
};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming as Body};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    task::JoinHandle,
    time::timeout,
};

/// The size of the buffer between the stream and the session, in bytes.
const BUFFER: usize = 64 * 1024;
/// The time limit of the first event, which names the endpoint.
const ENDPOINT_WITHIN: Duration = Duration::from_secs(10);

pub(crate) struct EventsLink {
    link: Arc<dyn SessionLink>,
    stream: StreamTransport,
    pump: JoinHandle<()>,
    version: Version,
}

/// The version of the session, once it is agreed on, where its clients repeat it.
type Version = Arc<OnceLock<HeaderValue>>;

impl EventsLink {
    /// Opens the stream and waits for its first event.
    ///
    /// > When a client connects, the server **MUST** send an `endpoint` event containing a URI for the client to use for
    /// > sending messages.
    pub(crate) async fn open(core: &Arc<Core>) -> Result<Self, TransportError> {
        let cookies = CookieJar::default();
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = core.uri.clone();
        *request.headers_mut() = core.headers.clone();
        request.headers_mut().remove(header::CONTENT_TYPE);
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let silent =
            || TransportError::new(Malformed, "the server's event stream does not begin with an endpoint");
        let response = timeout(ENDPOINT_WITHIN, core.send_with_token(request)).await;
        let response = response.map_err(|_| silent())??;
        cookies.keep(response.headers());
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Err(answer::read_refused(&head, body).await);
        }
        if resume::media_type(&head.headers) != "text/event-stream" {
            return Err(TransportError::new(Malformed, "the server's answer to GET is no event stream"));
        }
        let mut events = Events { body, decoder: SseDecoder::new(core.max_response) };
        let first = timeout(ENDPOINT_WITHIN, events.next()).await;
        let (kind, data) = first.map_err(|_| silent())??;
        if kind != "endpoint" {
            return Err(silent());
        }
        let endpoint = endpoint(&core.uri, &data)?;
        let (ours, theirs) = (duplex(BUFFER), duplex(BUFFER));
        let stream = StreamTransport::with_max_line(ours.0, theirs.0, core.target.clone(), core.max_response);
        let link = stream.open()?;
        let (core, version) = (Arc::clone(core), Version::default());
        let of_posts = Arc::clone(&version);
        // If one direction ends, the other ends too, and all requests that wait fail.
        let pump = tokio::spawn(async move {
            tokio::select! {
                () = read(events, ours.1) => {}
                () = write(core, endpoint, cookies, of_posts, theirs.1) => {}
            }
        });
        Ok(Self { link, stream, pump, version })
    }
}

/// Returns the endpoint. It must have the same origin: otherwise the server could send messages and tokens to another host.
fn endpoint(base: &Uri, data: &str) -> Result<Uri, TransportError> {
    let unusable =
        |why: &str| TransportError::new(Malformed, format!("the server's endpoint for messages {why}"));
    let base_url = url::Url::parse(&base.to_string()).map_err(|_| unusable("cannot be resolved"))?;
    let joined = base_url.join(data.trim()).map_err(|_| unusable("is no URL"))?;
    if joined.origin() != base_url.origin() {
        return Err(unusable("is of another origin than its stream"));
    }
    let endpoint: Uri = joined.as_str().parse().map_err(|_| unusable("is no URL"))?;
    if host_of(&endpoint).contains('@') {
        return Err(unusable("holds a user name"));
    }
    Ok(endpoint)
}

struct Events {
    body: Body,
    decoder: SseDecoder,
}

impl Events {
    /// Kind and data of the next event.
    async fn next(&mut self) -> Result<(String, String), TransportError> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                let event = event.map_err(|fault| TransportError::new(TooLarge, fault.to_string()))?;
                return Ok((event.kind, String::from_utf8_lossy(&event.data).into_owned()));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.decoder.push(&frame.into_data().unwrap_or_default()),
                Some(Err(fault)) => return Err(resume::broken(&fault)),
                None => return Err(TransportError::new(Closed, "the server ended the event stream")),
            }
        }
    }
}

/// > Server messages are sent as SSE `message` events, with the message content encoded as JSON in the event data.
async fn read(mut events: Events, mut lines: DuplexStream) {
    while let Ok((kind, data)) = events.next().await {
        if kind != "message" {
            continue;
        }
        // In JSON a bare line end is white space.
        let line = data.replace(['\n', '\r'], " ") + "\n";
        if lines.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// > All subsequent client messages **MUST** be sent as HTTP POST requests to this endpoint.
async fn write(
    core: Arc<Core>,
    endpoint: Uri,
    cookies: CookieJar,
    version: Version,
    mut lines: DuplexStream,
) {
    let mut buffer = LineBuffer::new(usize::MAX);
    let mut chunk = vec![0; 8192];
    loop {
        while let Some(Line::Whole(line)) = buffer.next_line() {
            let mut post = Request::new(Full::new(Bytes::from(line)));
            *post.method_mut() = Method::POST;
            *post.uri_mut() = endpoint.clone();
            *post.headers_mut() = core.headers.clone();
            // > the client **MUST** include the `MCP-Protocol-Version: <protocol-version>` HTTP header on all subsequent
            // > requests to the MCP server
            if let Some(version) = version.get() {
                post.headers_mut().insert(MCP_PROTOCOL_VERSION, version.clone());
            }
            cookies.add(post.headers_mut());
            // The end of the stream fails the requests whose answer cannot come.
            match core.send_with_token(post).await {
                Ok(response) if response.status().is_success() => cookies.keep(response.headers()),
                Ok(response) => return tracing::warn!(status = %response.status(), "a message was refused"),
                Err(fault) => return tracing::warn!(fault = %escaped(&fault), "a message could not be sent"),
            }
        }
        match lines.read(&mut chunk).await {
            Ok(count @ 1..) => buffer.push(&chunk[..count]),
            _ => return,
        }
    }
}

impl SessionLink for EventsLink {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        // This stream cannot be used again, but the next session opens another one.
        Box::pin(async move {
            self.link.exchange(request, on_message).await.map_err(TransportError::not_for_good)
        })
    }

    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async move { self.link.send(message).await.map_err(TransportError::not_for_good) })
    }

    fn established(&self, version: &ProtocolVersion) {
        if version.has_version_header()
            && let Ok(value) = HeaderValue::from_str(version.as_str())
        {
            // The version is negotiated once, so the cell is empty.
            let _ = self.version.set(value);
        }
    }

    fn listen<'a>(
        &'a self,
        ready: &'a mut (dyn FnMut() + Send),
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(
            async move { self.link.listen(ready, on_message).await.map_err(TransportError::not_for_good) },
        )
    }

    fn is_over(&self) -> bool {
        self.link.is_over()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.stream.close()
    }
}

impl Drop for EventsLink {
    fn drop(&mut self) {
        self.pump.abort();
    }
}
