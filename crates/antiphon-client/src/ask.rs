//! What callbacks are given: one type for each kind of ask, with where it comes from.

use crate::{
    ServerIdentity,
    answer::{AnswerError, checked_form},
    ask_progress::AskProgress,
    consent,
};
use antiphon_wire::{AskKind, CreateMessageParams, ElicitResult, FormSchema, InputRequest, InputRequests};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};

/// Where an ask comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AskContext {
    /// Who asks.
    pub server: ServerIdentity,
    /// The method of the call: `tools/call`, `prompts/get` or `resources/read`.
    pub method: &'static str,
    /// The tool's or prompt's name, or the resource's URI.
    pub target: String,
    /// The arguments of the call, as they were sent.
    pub arguments: Option<Box<RawValue>>,
    /// Which round of the call this is; the first is 1.
    pub round: u32,
    /// The key of the ask; unique in its round.
    pub key: String,
    pub(crate) progress: AskProgress,
}

impl AskContext {
    /// Tells the server how far this ask has come: `progress` of `total`, in any unit, and in words. For callbacks that
    /// take long: a server may wait longer for an answer that somebody is at work on.
    ///
    /// It is sent in a session of 2025-11-25 and before, if the server wants to hear of it; on 2026-07-28 nothing can be
    /// sent while something is asked, and this does nothing. It never waits. Progress must increase: what does not is not
    /// sent. Nor is what a later one overtakes, for at most ten are sent in a second; nor what is left when the ask is
    /// answered.
    ///
    /// > The receiver **MAY** then send progress notifications
    pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.progress.report(progress, total, message);
    }
}

/// An ask of the person: a form or a URL.
#[derive(Clone, Debug)]
pub enum ElicitAsk {
    /// A form to fill in.
    Form(FormAsk),
    /// A URL to open.
    Url(UrlAsk),
}

impl ElicitAsk {
    /// Where it comes from.
    pub fn context(&self) -> &AskContext {
        match self {
            Self::Form(ask) => &ask.context,
            Self::Url(ask) => &ask.context,
        }
    }

    /// What the person reads.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(ask) => &ask.message,
            Self::Url(ask) => &ask.message,
        }
    }

    /// Tells the server how far this ask has come. See [`AskContext::report_progress`].
    pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.context().report_progress(progress, total, message);
    }

    /// The form, if it is one.
    pub fn form(&self) -> Option<&FormAsk> {
        match self {
            Self::Form(ask) => Some(ask),
            Self::Url(_) => None,
        }
    }

    /// The URL, if it is one.
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
            /// Tells the server how far this ask has come. See [`AskContext::report_progress`].
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
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FormAsk {
    /// Where it comes from.
    pub context: AskContext,
    /// Why, for the person.
    pub message: String,
    /// The fields.
    pub schema: FormSchema,
}

impl FormAsk {
    /// The person filled in the form: an object, checked here, defaults filled.
    ///
    /// # Errors
    /// [`AnswerError`] names the fields and the rules they break: ask the person again, or pass it on with `?`.
    pub fn accept(&self, content: impl Serialize) -> Result<ElicitResult, AnswerError> {
        checked_form(&self.context.key, &self.schema, &content).map(ElicitResult::accept)
    }

    /// The person said no. The server is told.
    pub fn decline(&self) -> ElicitResult {
        ElicitResult::decline()
    }

    /// The person went away without choosing. The server is told.
    pub fn cancel(&self) -> ElicitResult {
        ElicitResult::cancel()
    }
}

/// A URL for the person to open.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UrlAsk {
    /// Where it comes from.
    pub context: AskContext,
    /// Why, for the person.
    pub message: String,
    /// Where to, exactly as the server wrote it.
    pub url: String,
}

impl UrlAsk {
    /// What to show before the person agrees.
    ///
    /// # Errors
    /// [`consent::NotAUrl`] if it is no URL that could be opened.
    pub fn show(&self) -> Result<consent::UrlConsent, consent::NotAUrl> {
        consent::show_url(&self.url)
    }

    /// The person agreed to open it. It does not say that they are done there.
    pub fn consent(&self) -> ElicitResult {
        ElicitResult::consent()
    }

    /// The person said no. The server is told.
    pub fn decline(&self) -> ElicitResult {
        ElicitResult::decline()
    }

    /// The person went away without choosing. The server is told.
    pub fn cancel(&self) -> ElicitResult {
        ElicitResult::cancel()
    }
}

/// An ask of the client's model. Sampling is deprecated in 2026-07-28.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SampleAsk {
    /// Where it comes from.
    pub context: AskContext,
    /// The conversation, and how to go on with it.
    pub params: CreateMessageParams,
}

/// An ask for the client's root directories. Roots are deprecated in 2026-07-28.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RootsAsk {
    /// Where it comes from.
    pub context: AskContext,
}

/// One round, before its callbacks run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Round {
    /// Who asks.
    pub server: ServerIdentity,
    /// The method of the call.
    pub method: &'static str,
    /// The tool's or prompt's name, or the resource's URI.
    pub target: String,
    /// The arguments of the call, as they were sent.
    pub arguments: Option<Box<RawValue>>,
    /// Which round of the call this is; the first is 1.
    pub number: u32,
    /// The asks, in the server's order.
    pub asks: Arc<InputRequests>,
}

impl Round {
    /// Whether it holds an ask of this kind.
    pub fn has(&self, kind: AskKind) -> bool {
        self.asks.iter().any(|(_, ask)| ask.kind() == kind)
    }

    /// The hosts of its URLs; those that cannot be read are left out.
    pub fn hosts(&self) -> Vec<String> {
        self.asks.iter().filter_map(|(_, ask)| host_of(ask).flatten()).collect()
    }
}

/// The host of an ask for a URL: none if it is another ask, `Some(None)` if the URL cannot be read.
fn host_of(ask: &InputRequest) -> Option<Option<String>> {
    match ask {
        InputRequest::Elicit(antiphon_wire::ElicitRequest::Url { url, .. }) => {
            Some(consent::show_url(url).ok().map(|shown| shown.host))
        }
        _ => None,
    }
}

/// What to do with a round.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RoundDecision {
    refused: Option<String>,
    kinds: Vec<AskKind>,
    hosts: Vec<String>,
    declined: Vec<String>,
    wait: Duration,
}

/// Why a round was refused here, and the ask it was refused for.
pub(crate) struct Refusal {
    pub(crate) key: Option<String>,
    pub(crate) reason: String,
}

impl RoundDecision {
    /// Run the callbacks and go on.
    pub fn go() -> Self {
        Self::default()
    }

    /// End the call; the reason is for its error, and never sent.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self { refused: Some(reason.into()), ..Self::default() }
    }

    /// End the call if the round holds an ask of this kind.
    pub fn refuse_kind(mut self, kind: AskKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// End the call if the round asks for a URL at this host or below it, or for one whose host cannot be read.
    pub fn refuse_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// Answer this form or URL with "decline" instead of running its callback.
    pub fn decline(mut self, key: impl Into<String>) -> Self {
        self.declined.push(key.into());
        self
    }

    /// Wait this long, once the answers are there, before they are sent.
    pub fn wait(mut self, time: Duration) -> Self {
        self.wait = time;
        self
    }

    pub(crate) fn wait_time(&self) -> Duration {
        self.wait
    }

    pub(crate) fn declined(&self) -> &[String] {
        &self.declined
    }

    /// Whether this decision refuses these asks.
    pub(crate) fn refusal(&self, asks: &InputRequests) -> Option<Refusal> {
        if let Some(reason) = &self.refused {
            return Some(Refusal { key: None, reason: reason.clone() });
        }
        asks.iter().find_map(|(key, ask)| {
            let refused = |reason: String| Some(Refusal { key: Some(key.to_owned()), reason });
            if self.kinds.contains(&ask.kind()) {
                return refused(format!("{} are refused here", crate::answer::plural(ask.kind())));
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
