//! The loop over the legs of a call: sends a request, answers its questions, sends the next request.

use crate::{
    answer_flags::AnswerFlags,
    arguments::Arguments,
    ask::{self, RoundError},
    console,
    failure::{Failure, wants_session},
    outcome::Outcome,
};
use antiphon::{
    client::{
        Call, CallProgress, Client, Era, Finished, PendingCall,
        calls::CallKind,
        tasks::{ClientTask, TaskForm},
        transport::{
            IncomingNotification, OutgoingRequest, ServerReply, SessionTransport, Transport, TransportError,
        },
    },
    wire::{Action, ElicitRequest, ElicitResult, InputRequest, InputRequests, InputResponses, Meta},
};
use serde::Deserialize;
use std::{
    borrow::Cow,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

/// The maximum number of answered rounds. Common clients stop at ten.
const MAX_ROUNDS: u32 = 10;

/// The beginning of a call: a new call or a pending one.
pub(crate) enum Start {
    New(Call),
    /// A call of a tool of this name, whose arguments are read by its schema.
    Tool(String, Arguments),
    Resume(PendingCall),
}

impl Start {
    /// Returns the kind and the name of what a new call is for, if a list of the server has it.
    fn offer(&self) -> Option<(CallKind, String)> {
        match self {
            Self::New(call) => Some((call.kind(), call.name().to_owned())),
            Self::Tool(name, _) => Some((CallKind::Tool, name.clone())),
            Self::Resume(_) => None,
        }
    }
}

/// The rules for driving a call.
#[derive(Clone, Copy)]
pub(crate) struct Driving {
    /// Stop after one leg.
    pub(crate) once: bool,
    /// Stop if the call becomes a task.
    pub(crate) detach: bool,
    /// The time limit for a server that requires the same URLs again and again.
    pub(crate) wait: Duration,
    /// The time to wait for the server's report that required URLs are finished.
    pub(crate) page_wait: Duration,
}

/// Drives a call to its end, or with `once` over one leg.
pub(crate) async fn drive(
    client: &Client,
    start: Start,
    answers: &mut AnswerFlags,
    driving: Driving,
) -> Outcome {
    answers.begin_call();
    let (is_stored, offer) = (matches!(start, Start::Resume(_)), start.offer());
    let mut outcome = walk(client, start, answers, driving).await.unwrap_or_else(Outcome::Failed);
    if let Outcome::Failed(failure) = &mut outcome {
        failure.is_in_file = is_stored && answers.is_silent();
    }
    match client.era() {
        Some(Era::Legacy) if driving.once && !matches!(outcome, Outcome::Pending { .. }) => console::hint(
            "--once: this server has a session, in which no call stops at a question, so it was not told that questions are \
             possible. Leave out --once, and answer with --answer or at the terminal",
        ),
        Some(Era::Modern) if outcome.error_text().is_some_and(wants_session) => {
            console::hint("the server can ask in sessions only: try `--mode legacy`")
        }
        _ => {}
    }
    if let Some((kind, name)) = offer
        && outcome.error_text().is_some_and(says_unknown)
        && let Some(text) = not_offered(client, kind, &name).await
    {
        console::hint(&text);
    }
    outcome.with_unanswered(answers.take_unanswered())
}

/// Returns `true` for an error about a name that the server does not have.
fn says_unknown(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["unknown", "not found", "not exist", "no such"].iter().any(|words| text.contains(words))
}

/// Returns the sentence about a name that is in no list of the server, with those that may be meant.
async fn not_offered(client: &Client, kind: CallKind, name: &str) -> Option<String> {
    let (what, names): (_, Vec<String>) = match kind {
        CallKind::Tool => ("tool", client.list_tools().await.ok()?.into_iter().map(|it| it.name).collect()),
        CallKind::Prompt => {
            ("prompt", client.list_prompts().await.ok()?.into_iter().map(|it| it.name).collect())
        }
        _ => return None,
    };
    let is_offered = names.iter().any(|it| it == name);
    (!is_offered).then(|| console::unknown_name(what, name, names.iter().map(String::as_str)))
}

async fn walk(
    client: &Client,
    start: Start,
    answers: &mut AnswerFlags,
    Driving { once, detach, wait, page_wait }: Driving,
) -> Result<Outcome, Failure> {
    // On a session, the list of tools says if a call may be a task.
    if detach && client.discover().await.is_ok() && client.era() == Some(Era::Legacy) {
        client.list_tools().await?;
    }
    let (mut step, mut legs) = match start {
        Start::New(call) => (client.begin(call).await?, 1),
        Start::Tool(name, arguments) => {
            let call = arguments.tool(name, client).await?;
            (client.begin(call).await?, 1)
        }
        Start::Resume(pending) => (CallProgress::Pending(pending), 0),
    };
    let mut answered = 0;
    let mut same_urls: Option<(Vec<String>, Instant)> = None;
    loop {
        let mut pending = match step {
            CallProgress::Done(finished) => return Ok(Outcome::Done(finished)),
            CallProgress::Pending(pending) => pending,
            CallProgress::Task(handle) if once || detach => {
                return Ok(Outcome::Task { handle: Box::new(handle), missing: None });
            }
            CallProgress::Task(handle) => {
                console::hint(&format!("The call became the task {}", console::line(handle.task_id())));
                return follow(client.task(handle), answers).await;
            }
            _ => {
                return Err(Failure::protocol(
                    "call",
                    "the call continues in a way that this program does not support",
                ));
            }
        };
        if once && legs == 1 {
            return Ok(Outcome::Pending { pending: Box::new(pending), missing: None });
        }
        if answered == MAX_ROUNDS {
            let text = format!("{} still asks after {answered} answered rounds", pending.server());
            return Err(Failure::protocol("round_limit", text));
        }
        let mut is_first = true;
        match (urls(&pending), &same_urls) {
            (Some(urls), Some((before, since))) if urls == *before => {
                // A person at the terminal sees each of them, and may need more time for the page.
                if since.elapsed() >= wait && !console::has_terminal() {
                    let text =
                        format!("{} still requires the same page after {wait:?} (--wait)", pending.server());
                    return Err(Failure::protocol("not_yet", text));
                }
                is_first = false;
            }
            (urls, _) => same_urls = urls.map(|urls| (urls, Instant::now())),
        }
        // A prompt blocks this thread until the person answers. Other tasks continue on other threads.
        match tokio::task::block_in_place(|| ask::answer_round(&mut pending, answers)) {
            Ok(()) => {}
            Err(RoundError::Missing(missing)) => {
                return Ok(Outcome::Pending { pending: Box::new(pending), missing: Some(missing) });
            }
            Err(RoundError::Failed(failure)) => return Err(failure),
        }
        if is_first && client.era() == Some(Era::Legacy) && waits_for_pages(&pending) {
            console::hint(&format!(
                "Waiting until {} reports that the page is finished, at most {page_wait:?} (--wait); then the call is sent again",
                console::line(&pending.server().to_string())
            ));
        }
        answered += 1;
        legs += 1;
        step = client.resume(pending).await?;
    }
}

/// Follows a task to its end. The callbacks of the client answer its questions.
pub(crate) async fn follow(mut task: ClientTask, answers: &AnswerFlags) -> Result<Outcome, Failure> {
    // An id alone does not say in which form the server speaks about the task.
    if task.handle().tool().is_none() {
        task.get().await?;
    }
    // The questions of a task have keys, unlike those of a session.
    if task.handle().form() != TaskForm::Session {
        answers.set_keyed();
    }
    let outcome = match task.wait().await {
        Ok(result) => Outcome::Done(Finished::Tool(result)),
        Err(error) => Outcome::Failed(error.into()),
    };
    Ok(outcome.with_unanswered(answers.take_unanswered()))
}

/// Returns `true` if the client waits before it sends the request again: in a session, a round without state is the error -32042,
/// and the person agreed to all of its pages.
fn waits_for_pages(pending: &PendingCall) -> bool {
    let is_agreed = |key: &str| {
        let answer = pending.answers().get(key).map(ElicitResult::deserialize);
        matches!(answer, Some(Ok(answer)) if answer.action == Action::Accept)
    };
    !pending.has_state() && urls(pending).is_some() && pending.asks().iter().all(|(key, _)| is_agreed(key))
}

/// Returns the URLs that a round asks to open, if it asks nothing else.
fn urls(pending: &PendingCall) -> Option<Vec<String>> {
    let url = |ask: &InputRequest| match ask {
        InputRequest::Elicit(ElicitRequest::Url { url, .. }) => Some(url.clone()),
        _ => None,
    };
    pending.asks().iter().map(|(_, ask)| url(ask)).collect()
}

/// The observer of the legs of a call. Clones share the counters.
#[derive(Clone)]
pub(crate) struct LegObserver(Arc<Counters>);

struct Counters {
    legs: AtomicU32,
    rounds: AtomicU32,
    log: Option<fn(&str)>,
}

impl LegObserver {
    /// Returns an observer that logs each leg with `log`, if there is one.
    pub(crate) fn new(log: Option<fn(&str)>) -> Self {
        Self(Arc::new(Counters { legs: AtomicU32::new(0), rounds: AtomicU32::new(0), log }))
    }

    /// Returns the number of results that were `input_required`.
    pub(crate) fn rounds(&self) -> u32 {
        self.0.rounds.load(Ordering::Relaxed)
    }

    /// Adds the rounds that an earlier process counted.
    pub(crate) fn add_rounds(&self, rounds: u32) {
        self.0.rounds.fetch_add(rounds, Ordering::Relaxed);
    }

    /// Returns a transport that this observer observes.
    pub(crate) fn observe(&self, transport: impl Transport) -> ObservedTransport {
        ObservedTransport { inner: Box::new(transport), legs: self.clone() }
    }

    fn begin(&self, request: &OutgoingRequest) -> u32 {
        let leg = self.0.legs.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(log) = self.0.log {
            let name =
                request.name.as_deref().map(|name| format!(" `{}`", console::line(name))).unwrap_or_default();
            log(&format!("-> leg {leg}: {}{name}{}", request.method, describe_request(&request.body)));
        }
        leg
    }

    fn end(&self, leg: u32, reply: &Result<ServerReply, TransportError>) {
        let result = match reply {
            Ok(Ok(result)) => serde_json::from_str::<ResultView<'_>>(result.get()).ok(),
            _ => None,
        };
        if result.as_ref().is_some_and(|result| result.result_type.as_deref() == Some("input_required")) {
            self.add_rounds(1);
        }
        let Some(log) = self.0.log else { return };
        match (result, reply) {
            (Some(result), _) => result.lines().iter().for_each(|line| log(&format!("<- leg {leg}: {line}"))),
            (None, Ok(Err(error))) => log(&format!("<- leg {leg}: error {}", error.code)),
            (None, Ok(Ok(_))) => log(&format!("<- leg {leg}: a result that cannot be read")),
            (None, Err(_)) => log(&format!("<- leg {leg}: no response")),
        }
    }
}

#[derive(Deserialize)]
struct RequestView<'a> {
    #[serde(borrow)]
    params: ParamsView<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ParamsView<'a> {
    #[serde(default)]
    input_responses: Option<InputResponses>,
    #[serde(borrow, default)]
    request_state: Option<Cow<'a, str>>,
}

/// Describes the answers and the state in a request.
fn describe_request(body: &[u8]) -> String {
    let Ok(request) = serde_json::from_slice::<RequestView<'_>>(body) else { return String::new() };
    let RequestView { params: ParamsView { input_responses: answers, request_state: state } } = request;
    let keys: Vec<String> =
        answers.iter().flat_map(InputResponses::iter).map(|(key, _)| console::line(key)).collect();
    let answers = (!keys.is_empty()).then(|| format!("the answer to `{}`", keys.join("`, `")));
    let state = state.map(|state| format!("{} bytes of state", state.len()));
    match (answers, state) {
        (Some(answers), Some(state)) => format!(" with {answers} and {state}"),
        (Some(one), None) | (None, Some(one)) => format!(" with {one}"),
        (None, None) => String::new(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultView<'a> {
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
    #[serde(default)]
    input_requests: Option<InputRequests>,
    #[serde(borrow, default)]
    request_state: Option<Cow<'a, str>>,
    #[serde(rename = "_meta", default)]
    meta: Option<Meta>,
}

impl ResultView<'_> {
    fn lines(&self) -> Vec<String> {
        let server = self.meta.as_ref().and_then(Meta::server_info);
        let server = server.map_or_else(|| "the server".into(), |info| console::line(info.display_name()));
        match self.result_type.as_deref() {
            Some("input_required") => {}
            Some("task") => return vec![format!("{server} made a task of the call")],
            _ => return vec![format!("{server} is done")],
        }
        let state = self.request_state.as_ref().map(|state| format!("{} bytes of state", state.len()));
        let asks = self.input_requests.iter().flat_map(InputRequests::iter);
        let mut lines: Vec<String> = asks
            .map(|(key, ask)| format!("{server} asks `{}`: {}", console::line(key), ask::summary(ask)))
            .collect();
        match (lines.last_mut(), state) {
            (Some(last), Some(state)) => last.push_str(&format!(" ({state})")),
            (Some(_), None) => {}
            (None, state) => {
                lines.push(format!("{server} returns state only ({})", state.unwrap_or_default()))
            }
        }
        lines
    }
}

/// A transport with an observer.
pub(crate) struct ObservedTransport {
    inner: Box<dyn Transport>,
    legs: LegObserver,
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Transport for ObservedTransport {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> Boxed<'a, Result<ServerReply, TransportError>> {
        // These requests are no legs of a call.
        if request.method == "server/discover" || request.method.starts_with("tasks/") {
            return self.inner.exchange(request, on_notification);
        }
        Box::pin(async move {
            let leg = self.legs.begin(&request);
            let reply = self.inner.exchange(request, on_notification).await;
            self.legs.end(leg, &reply);
            reply
        })
    }

    fn close(&self) -> Boxed<'_, ()> {
        self.inner.close()
    }

    fn target(&self) -> &str {
        self.inner.target()
    }

    fn mirrors_parameters(&self) -> bool {
        self.inner.mirrors_parameters()
    }

    fn sessions(&self) -> Option<&dyn SessionTransport> {
        self.inner.sessions()
    }
}
