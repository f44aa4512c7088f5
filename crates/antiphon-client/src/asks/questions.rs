//! The arguments of callbacks: one type for each kind of ask, with its origin.

use crate::asks::{
    answers::{AnswerError, checked_form, plural},
    consent,
    progress::AskProgress,
};
use antiphon_wire::{
    AskKind, CreateMessageParams, ElicitResult, FormSchema, Implementation, InputRequest, InputRequests,
    escaped, is_escaped,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

/// The origin of an ask: server, call, round and key. Serializes for a web page, without the callback's progress.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AskContext {
    /// The server that asks.
    pub server: ServerIdentity,
    /// The method of the call: `tools/call`, `prompts/get` or `resources/read`. An ask that a session receives outside of the
    /// response to a call, such as every ask over pipes, names no call: then it is `initialize`, and target and arguments are empty.
    pub method: Cow<'static, str>,
    /// The tool's or prompt's name, or the resource's URI.
    pub target: String,
    /// The arguments of the call, as they were sent.
    #[serde(serialize_with = "shared_text")]
    pub arguments: Option<Arc<RawValue>>,
    /// The number of the round in its call; without a call, of the ask in its session. The first is 1.
    pub round: u32,
    /// The key of the ask; unique in its round.
    pub key: String,
    #[serde(skip)]
    pub(crate) progress: AskProgress,
}

/// Serializes arguments as raw JSON.
fn shared_text<S: Serializer>(text: &Option<Arc<RawValue>>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

impl AskContext {
    /// Reports the progress of this ask to the server: `progress` of `total`, in any unit, and a text. For callbacks that
    /// take long: a server may wait longer for an answer that makes progress.
    ///
    /// The report is sent in a session of 2025-11-25 and before, if the server asked for progress. On 2026-07-28 nothing
    /// can be sent while an ask is open, and this method does nothing. It never waits. Progress must increase: a report
    /// that does not is dropped. At most ten reports are sent in a second; a later one replaces an earlier one that still
    /// waits, and none is sent after the answer.
    ///
    /// > The receiver **MAY** then send progress notifications
    pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.progress.report(progress, total, message);
    }
}

/// The call, or the session, that asks belong to.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) server: ServerIdentity,
    pub(crate) method: Cow<'static, str>,
    pub(crate) target: String,
    pub(crate) arguments: Option<Arc<RawValue>>,
}

/// An ask of the person: a form or a URL; later revisions may add modes. The member `mode` of the serialized form distinguishes them.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAsk {
    /// A form to fill in.
    Form(FormAsk),
    /// A URL to open.
    Url(UrlAsk),
}

impl ElicitAsk {
    /// The origin of the ask.
    pub fn context(&self) -> &AskContext {
        match self {
            Self::Form(ask) => &ask.context,
            Self::Url(ask) => &ask.context,
        }
    }

    /// The text for the person.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(ask) => &ask.message,
            Self::Url(ask) => &ask.message,
        }
    }

    /// Reports the progress of this ask to the server. See [`AskContext::report_progress`].
    pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.context().report_progress(progress, total, message);
    }

    /// The form, if the ask is a form.
    pub fn form(&self) -> Option<&FormAsk> {
        match self {
            Self::Form(ask) => Some(ask),
            Self::Url(_) => None,
        }
    }

    /// The URL, if the ask is a URL.
    pub fn url(&self) -> Option<&UrlAsk> {
        match self {
            Self::Form(_) => None,
            Self::Url(ask) => Some(ask),
        }
    }
}

/// The same method for each of them.
macro_rules! reports_progress {
    ($($ask:ty),*) => {$(
        impl $ask {
            /// Reports the progress of this ask to the server. See [`AskContext::report_progress`].
            pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
                self.context.report_progress(progress, total, message);
            }
        }
    )*};
}

reports_progress!(FormAsk, UrlAsk, SampleAsk, RootsAsk);

/// A form for the person to fill in.
///
/// > For form mode, allow users to review and modify their responses before sending
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FormAsk {
    /// The origin of the ask.
    pub context: AskContext,
    /// The reason for the ask, for the person.
    pub message: String,
    /// The fields.
    pub schema: FormSchema,
    /// The suspicious features of the form, to be shown above its fields: for example, it asks for a password.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<consent::FormWarning>,
}

impl FormAsk {
    pub(crate) fn new(context: AskContext, message: String, schema: FormSchema) -> Self {
        let warnings = consent::form_warnings(&message, &schema);
        Self { context, message, schema, warnings }
    }

    /// Returns the answer with the filled-in form: an object. This method checks the form and fills in defaults.
    ///
    /// # Errors
    /// [`AnswerError`] names the fields and the rules they break: ask the person again, or pass it on with `?`.
    pub fn accept(&self, content: impl Serialize) -> Result<ElicitResult, AnswerError> {
        checked_form(&self.context.key, &self.schema, &content).map(ElicitResult::accept)
    }

    /// Returns the answer "decline": the person refused.
    pub fn decline(&self) -> ElicitResult {
        ElicitResult::decline()
    }

    /// Returns the answer "cancel": the person closed the question without a choice.
    pub fn cancel(&self) -> ElicitResult {
        ElicitResult::cancel()
    }
}

/// A URL for the person to open.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct UrlAsk {
    /// The origin of the ask.
    pub context: AskContext,
    /// The reason for the ask, for the person.
    pub message: String,
    /// The URL, exactly as the server wrote it.
    pub url: String,
}

impl UrlAsk {
    /// The parts of the URL to show before the person agrees. Other URLs than `http` and `https` come only to a client with
    /// [`any_url_scheme`](crate::ClientBuilder::any_url_scheme), and have a warning.
    ///
    /// # Errors
    /// [`consent::NotAUrl`] if the text is not a URL that can be opened.
    pub fn show(&self) -> Result<consent::UrlConsent, consent::NotAUrl> {
        consent::show_any_url(&self.url)
    }

    /// Returns the answer "accept": the person agreed to open the URL. The person need not have finished there.
    pub fn consent(&self) -> ElicitResult {
        ElicitResult::consent()
    }

    /// Returns the answer "decline": the person refused.
    pub fn decline(&self) -> ElicitResult {
        ElicitResult::decline()
    }

    /// Returns the answer "cancel": the person closed the question without a choice.
    pub fn cancel(&self) -> ElicitResult {
        ElicitResult::cancel()
    }
}

/// An ask of the client's model. Sampling is deprecated in 2026-07-28.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SampleAsk {
    /// The origin of the ask.
    pub context: AskContext,
    /// The conversation, and the settings for the next message.
    pub params: CreateMessageParams,
}

/// An ask for the client's root directories. Roots are deprecated in 2026-07-28.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RootsAsk {
    /// The origin of the ask.
    pub context: AskContext,
}

/// One round, before its callbacks run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Round {
    /// The server that asks.
    pub server: ServerIdentity,
    /// The method of the call.
    pub method: Cow<'static, str>,
    /// The tool's or prompt's name, or the resource's URI.
    pub target: String,
    /// The arguments of the call, as they were sent.
    pub arguments: Option<Arc<RawValue>>,
    /// The number of the round in its call. The first is 1.
    pub number: u32,
    /// The asks, in the server's order.
    pub asks: Arc<InputRequests>,
}

impl Round {
    /// Returns `true` if the round holds an ask of this kind.
    pub fn has(&self, kind: AskKind) -> bool {
        self.asks.iter().any(|(_, ask)| ask.kind() == kind)
    }

    /// The hosts of the round's URLs. URLs that cannot be parsed are left out.
    pub fn hosts(&self) -> Vec<String> {
        self.asks.iter().filter_map(|(_, ask)| host_of(ask).flatten()).collect()
    }
}

/// The host of an ask for a URL: none if it is another ask, `Some(None)` if the URL cannot be read.
fn host_of(ask: &InputRequest) -> Option<Option<String>> {
    match ask {
        InputRequest::Elicit(antiphon_wire::ElicitRequest::Url { url, .. }) => {
            Some(consent::show_any_url(url).ok().map(|shown| shown.host))
        }
        _ => None,
    }
}

/// The decision of [`on_round`](crate::ClientBuilder::on_round): continue, refuse, decline or wait.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RoundDecision {
    refused: Option<String>,
    kinds: Vec<AskKind>,
    hosts: Vec<String>,
    declined: Vec<String>,
    send_after: Duration,
}

/// The reason why `on_round` refused a round, and the ask that caused the refusal.
pub(crate) struct Refusal {
    pub(crate) key: Option<String>,
    pub(crate) reason: String,
}

impl RoundDecision {
    /// Runs the callbacks and continues the call.
    pub fn go() -> Self {
        Self::default()
    }

    /// Ends the call. The reason is part of the call's error and is never sent.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self { refused: Some(reason.into()), ..Self::default() }
    }

    /// Ends the call if the round holds an ask of this kind.
    pub fn refuse_kind(mut self, kind: AskKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Ends the call if the round asks for a URL at this host or a subdomain of it, or for one whose host cannot be parsed.
    pub fn refuse_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// Answers this form or URL with "decline" instead of running its callback.
    pub fn decline(mut self, key: impl Into<String>) -> Self {
        self.declined.push(key.into());
        self
    }

    /// Sends the answers after this time. Zero unless set.
    pub fn send_after(mut self, time: Duration) -> Self {
        self.send_after = time;
        self
    }

    pub(crate) fn delay(&self) -> Duration {
        self.send_after
    }

    pub(crate) fn declined(&self) -> &[String] {
        &self.declined
    }

    /// The reason to refuse these asks, if this decision has one.
    pub(crate) fn refusal(&self, asks: &InputRequests) -> Option<Refusal> {
        if let Some(reason) = &self.refused {
            return Some(Refusal { key: None, reason: reason.clone() });
        }
        asks.iter().find_map(|(key, ask)| {
            let refused = |reason: String| Some(Refusal { key: Some(key.to_owned()), reason });
            if self.kinds.contains(&ask.kind()) {
                return refused(format!("{} are refused here", plural(ask.kind())));
            }
            match host_of(ask)? {
                None if !self.hosts.is_empty() => refused("the URL cannot be read".into()),
                Some(host) if self.hosts.iter().any(|name| is_at_or_below(&host, name)) => {
                    refused(format!("the host {host} is refused here"))
                }
                _ => None,
            }
        })
    }
}

fn is_at_or_below(host: &str, name: &str) -> bool {
    let host = host.trim_end_matches('.');
    host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

// The identity of a server: its target and its name.

/// The identity of a server: the target of requests, and the name that the server gave itself.
///
/// The name is self-reported. A program that asks a person should show both, as `Display` does.
///
/// > Clients **MUST** provide clear indication of which server is requesting information
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerIdentity {
    /// The target of requests: a URL, a command.
    pub target: String,
    /// The title or name in the server's results, without control characters and invisible ones; absent until a result has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ServerIdentity {
    pub(crate) fn new(target: &str, info: Option<&Implementation>) -> Self {
        let name = info.map(|info| info.display_name().chars().filter(|c| !is_escaped(*c)).collect());
        Self { target: target.to_owned(), name }
    }

    /// The name, or else the target.
    pub fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.target)
    }
}

impl fmt::Display for ServerIdentity {
    /// Writes name and target, escaped and cut.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{} ({})", escaped(name), escaped(&self.target)),
            None => escaped(&self.target).fmt(f),
        }
    }
}
