//! One question, whatever its kind: asked once, and answered from the record.

use super::flow::{Flow, Held};
use crate::server::{AskError, Ctx};
use antiphon_engine::{AskPoll, CallSite, DecodeCheck, Leg, Question, SlotId, key::path};
use antiphon_seal::Digest;
use antiphon_wire::{AskSupport, ElicitRequest, InputRequest};
use std::{
    borrow::Cow,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// A question before and while it is asked. The part of every asking future that is not generic.
pub(super) struct RawAsk<'a> {
    ctx: &'a Ctx,
    pub(super) key: Cow<'a, str>,
    pub(super) number: Option<i128>,
    pub(super) within: Option<Duration>,
    pub(super) fallback: Fallback<'a>,
    /// The id of a URL question in a session, where its author gave one.
    pub(super) elicitation_id: Option<Cow<'a, str>>,
    site: CallSite,
    held: Held<'a>,
    /// It was answered.
    is_given: bool,
}

/// The stand-in for an answer where the client cannot be asked.
pub(super) enum Fallback<'a> {
    /// Nothing: the call is refused before the round leaves.
    None,
    /// A value, which the typed future holds.
    Value,
    /// An error in these words.
    Refuse(Cow<'a, str>),
}

/// A question with its path, about to be put.
pub(super) struct Rendered {
    pub(super) request: InputRequest,
    /// The text of its digest.
    pub(super) text: Vec<u8>,
    /// Whether an answer can be read as what the handler expects.
    pub(super) decodes: Option<DecodeCheck>,
    /// Accepted, it waits until what happens behind its URL is finished: what that is about.
    pub(super) until: Option<Digest>,
}

impl Rendered {
    pub(super) fn of(request: InputRequest) -> Result<Self, String> {
        if let InputRequest::Elicit(elicit) = &request {
            check_elicit(elicit)?;
        }
        let text = serde_json::to_vec(&request).map_err(|fault| fault.to_string())?;
        Ok(Self { request, text, decodes: None, until: None })
    }
}

/// What a question has come to.
pub(super) enum Asked {
    /// Its checked answer, as JSON.
    Answer(String),
    /// The person agreed to open a URL, and what happens there is to be checked now.
    Agreed {
        /// They agreed in an earlier leg, and came back without an answer.
        before: bool,
    },
}

impl<'a> RawAsk<'a> {
    #[track_caller]
    pub(super) fn new(ctx: &'a Ctx, key: impl Into<Cow<'a, str>>) -> Self {
        Self {
            ctx,
            key: key.into(),
            number: None,
            within: None,
            fallback: Fallback::None,
            elicitation_id: None,
            site: super::flow::here(),
            held: Held::new(ctx.flow()),
            is_given: false,
        }
    }

    pub(super) fn ctx(&self) -> &'a Ctx {
        self.ctx
    }

    pub(super) fn site(&self) -> CallSite {
        self.site
    }

    fn flow(&self) -> &'a Flow {
        self.ctx.flow()
    }

    /// Scopes and key; the leg ends if they are none.
    pub(super) fn path(&self) -> Option<Arc<str>> {
        path(self.ctx.scope_prefix(), &self.key, self.number)
            .map_err(|fault| self.flow().author_fault(self.site, fault))
            .ok()
    }

    /// The answer as JSON. `render` is called at the first poll, with the question's path.
    pub(super) fn poll(
        &mut self,
        cx: &Context<'_>,
        needs: AskSupport,
        render: impl FnOnce(&str) -> Result<Rendered, String>,
    ) -> Poll<Result<String, AskError>> {
        self.poll_agreed(cx, needs, render).map_ok(|asked| match asked {
            Asked::Answer(text) => text,
            // Only a question with a check is agreed to.
            Asked::Agreed { .. } => String::new(),
        })
    }

    /// The same for a question that waits for more than an answer.
    pub(super) fn poll_agreed(
        &mut self,
        cx: &Context<'_>,
        needs: AskSupport,
        render: impl FnOnce(&str) -> Result<Rendered, String>,
    ) -> Poll<Result<Asked, AskError>> {
        self.flow().check_thread();
        if self.is_given {
            let fault = format!("`{}` is awaited once more: a question is awaited once", self.key);
            self.flow().author_fault(self.site, fault);
            return Poll::Pending;
        }
        if self.held.is_new()
            && let Err(unsupported) = self.begin(needs, render)
        {
            self.is_given = true;
            return Poll::Ready(Err(unsupported));
        }
        let Some(slot) = self.held.slot(|| None) else { return Poll::Pending };
        let polled = self.flow().with(|leg| leg.poll_ask(slot, cx.waker()));
        self.settle(polled)
    }

    fn settle(&mut self, polled: AskPoll) -> Poll<Result<Asked, AskError>> {
        match polled {
            AskPoll::Pending => Poll::Pending,
            AskPoll::Agreed { in_earlier_leg: before } => Poll::Ready(Ok(Asked::Agreed { before })),
            AskPoll::Resolved(answer) => {
                self.held.end();
                self.is_given = true;
                Poll::Ready(answer.map(Asked::Answer).ok_or_else(|| {
                    self.flow().with(Leg::note_refusal);
                    AskError::expired(self.path().as_deref().unwrap_or_default())
                }))
            }
        }
    }

    /// Puts the question; nothing is put where it has no key, or cannot be asked at all.
    fn begin(
        &mut self,
        needs: AskSupport,
        render: impl FnOnce(&str) -> Result<Rendered, String>,
    ) -> Result<(), AskError> {
        let question = self.question(needs, render)?;
        let flow = self.flow();
        self.held.slot(|| flow.with(|leg| leg.ask(question?)));
        Ok(())
    }

    fn question(
        &self,
        needs: AskSupport,
        render: impl FnOnce(&str) -> Result<Rendered, String>,
    ) -> Result<Option<Question>, AskError> {
        let Some(path) = self.path() else { return Ok(None) };
        let has_fallback = !matches!(self.fallback, Fallback::None);
        if has_fallback && self.ctx.can_ask().missing(needs) != AskSupport::NONE {
            return Err(self.unsupported(&path));
        }
        let fault = |fault| self.flow().author_fault(self.site, format!("`{path}`: {fault}"));
        let Ok(rendered) = render(&path).map_err(fault) else { return Ok(None) };
        if has_fallback && self.flow().carrier().lacks(&rendered.request) != AskSupport::NONE {
            return Err(self.unsupported(&path));
        }
        let Some(digest) = self.flow().digest(&rendered.text) else { return Ok(None) };
        Ok(Some(Question {
            path,
            request: rendered.request,
            digest,
            decode_check: rendered.decodes,
            within: self.within.map(|within| within.as_secs()),
            until: rendered.until,
            elicitation_id: self.elicitation_id.as_deref().map(Into::into),
            site: self.site,
        }))
    }

    /// The fallback's error.
    fn unsupported(&self, path: &str) -> AskError {
        let words = match &self.fallback {
            Fallback::Refuse(words) => Some(words.to_string()),
            _ => None,
        };
        self.flow().with(Leg::note_refusal);
        AskError::unsupported(path, words)
    }

    /// The place of a question that is put.
    pub(super) fn slot(&mut self) -> Option<SlotId> {
        self.held.slot(|| None)
    }

    /// The person agreed, and what happens behind the URL is finished, or its time is over.
    pub(super) fn resolve_agreed(&mut self, is_finished: bool) -> Poll<Result<Asked, AskError>> {
        let Some(slot) = self.slot() else { return Poll::Pending };
        let polled = self.flow().with(|leg| leg.resolve_agreed(slot, is_finished));
        self.settle(polled)
    }

    /// The person agreed, and what happens behind the URL is not finished: the same question is asked again, with this line.
    pub(super) fn ask_again(&mut self, line: &'static str, deadline: Option<u64>) {
        let Some(slot) = self.slot() else { return };
        self.flow().with(|leg| leg.ask_again(slot, line, deadline));
    }
}

/// # Errors
/// Why this cannot be asked.
pub(crate) fn check_elicit(request: &ElicitRequest) -> Result<(), String> {
    match request {
        ElicitRequest::Form { requested_schema, .. } => requested_schema.unaskable().map_or(Ok(()), Err),
        ElicitRequest::Url { url, .. } => check_url(url),
        // No other can be made here.
        _ => Ok(()),
    }
}

/// > **SHOULD** use HTTPS URLs for non-development environments.
fn check_url(url: &str) -> Result<(), String> {
    let parsed: http::Uri = url.parse().map_err(|fault| format!("not a URL: {fault}"))?;
    // > **MUST NOT** include sensitive information about the end-user, including credentials, personally identifiable
    // > information, etc., in the URL
    if parsed.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("a URL must not hold a user name or a password".to_owned());
    }
    let host = parsed.host().unwrap_or_default();
    match parsed.scheme_str() {
        Some("https") if !host.is_empty() => Ok(()),
        Some("http") if matches!(host, "localhost" | "127.0.0.1" | "[::1]") => Ok(()),
        _ => Err("a URL must be https://, or http:// on the loopback interface".to_owned()),
    }
}
