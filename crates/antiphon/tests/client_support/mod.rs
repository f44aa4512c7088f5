//! A scripted server behind a fake transport, with a record of the requests.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "shared by several test programs, each of which uses a part")]

pub(crate) mod failing;

use antiphon::{
    client::{
        Client, ClientBuilder, ClientError,
        transport::{
            IncomingNotification, OutgoingRequest, ServerReply, Transport, TransportError, TransportErrorKind,
        },
    },
    wire::{ErrorCode, ErrorObject},
};
use futures_util::future::BoxFuture;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The reaction of the server to a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Answers with this result.
    Result(Value),
    /// Answers with this text: members keep their order.
    Text(String),
    /// Answers with this error.
    Error(i64, Value),
    /// Answers with an error of this text; null is no data.
    Refused(i64, &'static str, Value),
    /// Sends no answer.
    Hang,
    /// The connection breaks.
    Broken,
    /// Sends these notifications first, each after a pause. The text `?` as a progress token stands for the right one.
    Telling(Vec<(Duration, &'static str, Value)>, Box<Reply>),
}

type Answer = dyn Fn(&Value) -> Reply + Send + Sync;

/// The transport to such a server.
pub(crate) struct Fake {
    answer: Box<Answer>,
    seen: Mutex<Vec<(Value, String)>>,
    headers: Mutex<Vec<Vec<(String, String)>>>,
    mirrors: bool,
    dropped: AtomicUsize,
}

impl Fake {
    /// Answers each request as `answer` says.
    pub(crate) fn new(answer: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self::with(answer, false))
    }

    /// The same over HTTP, as far as headers go.
    pub(crate) fn http(answer: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self::with(answer, true))
    }

    fn with(answer: impl Fn(&Value) -> Reply + Send + Sync + 'static, mirrors: bool) -> Self {
        Self {
            answer: Box::new(answer),
            seen: Mutex::default(),
            headers: Mutex::default(),
            mirrors,
            dropped: AtomicUsize::new(0),
        }
    }

    /// Answers the requests one after another.
    pub(crate) fn script(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Self::new(in_turn(replies))
    }

    /// The same over HTTP, as far as headers go.
    pub(crate) fn http_script(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Self::http(in_turn(replies))
    }

    /// A client of it.
    pub(crate) fn client(self: &Arc<Self>, builder: ClientBuilder) -> Client {
        builder.connect(Arc::clone(self) as Arc<dyn Transport>)
    }

    /// The requests so far, whole.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.seen.lock().unwrap().iter().map(|(request, _)| request.clone()).collect()
    }

    /// The methods of the requests so far.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.requests().iter().map(|request| request["method"].as_str().unwrap().to_owned()).collect()
    }

    /// The headers of the requests so far, with the mirrored parameters.
    pub(crate) fn headers(&self) -> Vec<Vec<(String, String)>> {
        self.headers.lock().unwrap().clone()
    }

    /// The requests so far, as text.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(_, text)| text.clone()).collect()
    }

    /// The state and answers of each request: `[inputResponses, requestState]`, null where absent.
    pub(crate) fn carried(&self) -> Vec<Value> {
        let member =
            |request: &Value, name: &str| request["params"].get(name).cloned().unwrap_or(Value::Null);
        self.requests()
            .iter()
            .map(|request| json!([member(request, "inputResponses"), member(request, "requestState")]))
            .collect()
    }

    /// The number of cancelled requests.
    pub(crate) fn cancelled(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }
}

impl Transport for Fake {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        tell: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        let text = String::from_utf8(request.body).unwrap();
        assert!(!text.contains(['\n', '\r']), "{text}");
        let body: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(body["method"], *request.method);
        assert_eq!(body["id"], serde_json::to_value(&request.id).unwrap());
        let meta = &body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], request.version.as_str());
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"], json!({"name": "my-host", "version": "1.0"}));
        // Transports find the request by its token.
        assert!(meta.get("progressToken").is_none_or(|token| *token == body["id"]), "{text}");
        let named = ["name", "uri", "taskId"].iter().find_map(|member| body["params"].get(member));
        assert_eq!(named.and_then(Value::as_str), request.name.as_deref());
        self.seen.lock().unwrap().push((body.clone(), text));
        self.headers.lock().unwrap().push(request.headers);
        let mut reply = (self.answer)(&body);
        Box::pin(async move {
            struct Cancelled<'a>(&'a AtomicUsize);
            impl Drop for Cancelled<'_> {
                fn drop(&mut self) {
                    self.0.fetch_add(1, Ordering::SeqCst);
                }
            }
            while let Reply::Telling(told, then) = reply {
                for (pause, method, mut params) in told {
                    tokio::time::sleep(pause).await;
                    if params["progressToken"] == "?" {
                        params["progressToken"] = body["id"].clone();
                    }
                    let params = (!params.is_null()).then(|| to_raw_value(&params).unwrap());
                    tell(IncomingNotification::new(method, params));
                }
                reply = *then;
            }
            match reply {
                Reply::Telling(..) => unreachable!("told above"),
                Reply::Result(result) => Ok(Ok(to_raw_value(&result).unwrap())),
                Reply::Text(text) => Ok(Ok(RawValue::from_string(text).unwrap())),
                Reply::Error(code, data) => {
                    Ok(Err(ErrorObject::new(ErrorCode(code), "says the server").with_data(data)))
                }
                Reply::Refused(code, text, data) => {
                    let error = ErrorObject::new(ErrorCode(code), text);
                    Ok(Err(if data.is_null() { error } else { error.with_data(data) }))
                }
                Reply::Hang => {
                    let _guard = Cancelled(&self.dropped);
                    std::future::pending().await
                }
                Reply::Broken => Err(TransportError::new(TransportErrorKind::Closed, "the pipe broke")),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn target(&self) -> &str {
        "fake:server"
    }

    fn mirrors_parameters(&self) -> bool {
        self.mirrors
    }
}

fn in_turn(replies: impl IntoIterator<Item = Reply>) -> impl Fn(&Value) -> Reply + Send + Sync + 'static {
    let replies: Mutex<VecDeque<Reply>> = Mutex::new(replies.into_iter().collect());
    move |request| {
        let next = replies.lock().unwrap().pop_front();
        next.unwrap_or_else(|| panic!("one request too many: {request}"))
    }
}

/// A builder with the name the fake expects.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder("my-host", "1.0")
}

/// A final result with this text.
pub(crate) fn done(text: &str) -> Reply {
    Reply::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}))
}

/// A question: these asks, and this state.
pub(crate) fn asking(asks: Value, state: Option<&str>) -> Reply {
    let mut result = json!({"resultType": "input_required", "inputRequests": asks});
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    Reply::Result(result)
}

/// State only.
pub(crate) fn not_yet(state: &str) -> Reply {
    Reply::Result(json!({"resultType": "input_required", "requestState": state}))
}

/// An ask for a form with a required `region` and a `size` that defaults to 1.
pub(crate) fn form() -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Where?", "requestedSchema": {
        "type": "object",
        "properties": {
            "region": {"type": "string", "title": "Region", "maxLength": 8},
            "size": {"type": "integer", "default": 1}
        },
        "required": ["region"]
    }}})
}

/// An ask for a URL.
pub(crate) fn url(to: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "url", "message": "Pay", "url": to}})
}

/// An ask for a message of the model.
pub(crate) fn sampling() -> Value {
    json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Capital?"}}], "maxTokens": 9
    }})
}

/// An ask for the roots.
pub(crate) fn roots() -> Value {
    json!({"method": "roots/list"})
}

/// The texts of an error and of its causes.
pub(crate) fn chain(error: &ClientError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
