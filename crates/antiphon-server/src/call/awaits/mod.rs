//! The futures that a handler awaits: questions, steps, selects, checkpoints; and what all questions share: the untyped part, which
//! is asked once and answered from the record, and the setters.

pub(crate) mod elicit;
pub(crate) mod elicit_url;
pub(crate) mod environment;
pub(crate) mod select;
pub(crate) mod step;
pub(crate) mod url_ref;

pub use elicit::{Elicit, ElicitOutcome};
pub use elicit::{Roots, Sample};
pub use elicit_url::{ElicitUrl, ElicitUrlOutcome};
pub use environment::Scope;
pub use environment::{Checkpoint, IntoTask};
pub use select::{Branches, JoinAll, Spawned, Winner};
pub use step::{Attempt, InTransaction, Retry, Step};
pub use url_ref::{IntoDone, UrlRef, UrlRefError, VerifiedUrlRef};

use crate::{
    call::{
        ctx::Ctx,
        leg_runtime::{LegRuntime, SlotHandle},
    },
    errors::awaited::AskError,
};
use antiphon_engine::{AskPoll, CallSite, Leg, Question, SlotId, key::path};
use antiphon_seal::Digest;
use antiphon_wire::{AskSupport, ElicitRequest, InputRequest};
use std::{
    borrow::Cow,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// A question before and while it is asked: the part of every asking future that is not generic.
pub(crate) struct RawAsk<'a> {
    ctx: &'a Ctx,
    pub(crate) key: Cow<'a, str>,
    pub(crate) number: Option<i128>,
    pub(crate) within: Option<Duration>,
    pub(crate) fallback: Fallback<'a>,
    /// The id of a URL question in a session, if the author set one.
    pub(crate) elicitation_id: Option<Cow<'a, str>>,
    site: CallSite,
    handle: SlotHandle<'a>,
    /// True after the question was answered.
    is_given: bool,
}

/// The substitute for an answer if the client does not support the question.
pub(crate) enum Fallback<'a> {
    /// No substitute: the call is refused before the round leaves.
    None,
    /// A value, held by the typed future.
    Value,
    /// An error with this text.
    Refuse(Cow<'a, str>),
}

/// A question with its path, ready to be sent.
pub(crate) struct PreparedAsk {
    pub(crate) request: InputRequest,
    /// The question as JSON, from which the digest is computed.
    pub(crate) text: String,
    /// The digest of the work behind the URL. If it is set, an accepted question waits until that work is finished.
    pub(crate) until: Option<Digest>,
}

impl PreparedAsk {
    pub(crate) fn of(request: InputRequest) -> Result<Self, String> {
        if let InputRequest::Elicit(elicit) = &request {
            check_elicit(elicit)?;
        }
        let text = request.to_json().map_err(|fault| fault.to_string())?;
        Ok(Self { request, text, until: None })
    }
}

/// The state of a question after a poll.
pub(crate) enum AskOutcome<A> {
    /// Its checked answer.
    Answer(A),
    /// The person agreed to open a URL, and the check behind it must be called now.
    Agreed {
        /// True if they agreed in an earlier leg, and the client came back without an answer.
        before: bool,
    },
}

impl<'a> RawAsk<'a> {
    #[track_caller]
    pub(crate) fn new(ctx: &'a Ctx, key: impl Into<Cow<'a, str>>) -> Self {
        Self {
            ctx,
            key: key.into(),
            number: None,
            within: None,
            fallback: Fallback::None,
            elicitation_id: None,
            site: crate::call::leg_runtime::call_site(),
            handle: SlotHandle::new(ctx.leg_runtime()),
            is_given: false,
        }
    }

    pub(crate) fn ctx(&self) -> &'a Ctx {
        self.ctx
    }

    fn leg_runtime(&self) -> &'a LegRuntime {
        self.ctx.leg_runtime()
    }

    /// Returns the path: scopes and key. An invalid key ends the leg.
    pub(crate) fn path(&self) -> Option<Arc<str>> {
        path(self.ctx.scope_prefix(), &self.key, self.number)
            .map_err(|fault| self.leg_runtime().author_fault(self.site, fault))
            .ok()
    }

    /// Polls for the answer. `render` is called at the first poll, with the question's path. `decode` decodes the answer,
    /// given as JSON, as the handler's type.
    pub(crate) fn poll<A>(
        &mut self,
        cx: &Context<'_>,
        needs: AskSupport,
        render: impl FnOnce(&str) -> Result<PreparedAsk, String>,
        decode: impl Fn(&str) -> Result<A, String>,
    ) -> Poll<Result<A, AskError>> {
        match std::task::ready!(self.poll_agreed(cx, needs, render, decode)) {
            Ok(AskOutcome::Answer(answer)) => Poll::Ready(Ok(answer)),
            // Only a question with a check can be in this state.
            Ok(AskOutcome::Agreed { .. }) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Polls for the answer of a question that also waits for a check.
    pub(crate) fn poll_agreed<A>(
        &mut self,
        cx: &Context<'_>,
        needs: AskSupport,
        render: impl FnOnce(&str) -> Result<PreparedAsk, String>,
        decode: impl Fn(&str) -> Result<A, String>,
    ) -> Poll<Result<AskOutcome<A>, AskError>> {
        self.leg_runtime().check_thread();
        if self.is_given {
            let fault = format!("`{}` is awaited again: a question can be awaited only once", self.key);
            self.leg_runtime().author_fault(self.site, fault);
            return Poll::Pending;
        }
        if self.handle.is_new()
            && let Err(unsupported) = self.begin(needs, render)
        {
            self.is_given = true;
            return Poll::Ready(Err(unsupported));
        }
        let Some(slot) = self.handle.slot(|| None) else { return Poll::Pending };
        let polled = self.leg_runtime().with(|leg| leg.poll_ask(slot, cx.waker(), decode));
        self.settle(polled)
    }

    fn settle<A>(&mut self, polled: AskPoll<A>) -> Poll<Result<AskOutcome<A>, AskError>> {
        match polled {
            AskPoll::Pending => Poll::Pending,
            AskPoll::Agreed { in_earlier_leg: before } => Poll::Ready(Ok(AskOutcome::Agreed { before })),
            AskPoll::Resolved(answer) => {
                self.end();
                Poll::Ready(Ok(AskOutcome::Answer(answer)))
            }
            AskPoll::Expired => {
                self.end();
                self.leg_runtime().with(Leg::note_refusal);
                Poll::Ready(Err(AskError::expired(self.path().as_deref().unwrap_or_default())))
            }
        }
    }

    fn end(&mut self) {
        self.handle.end();
        self.is_given = true;
    }

    /// Asks the question. Nothing is asked if the key is invalid or the client does not support the question.
    fn begin(
        &mut self,
        needs: AskSupport,
        render: impl FnOnce(&str) -> Result<PreparedAsk, String>,
    ) -> Result<(), AskError> {
        let question = self.question(needs, render)?;
        let runtime = self.leg_runtime();
        self.handle.slot(|| runtime.with(|leg| leg.ask(question?)));
        Ok(())
    }

    fn question(
        &self,
        needs: AskSupport,
        render: impl FnOnce(&str) -> Result<PreparedAsk, String>,
    ) -> Result<Option<Question>, AskError> {
        let Some(path) = self.path() else { return Ok(None) };
        let has_fallback = !matches!(self.fallback, Fallback::None);
        if has_fallback && self.ctx.can_ask().missing(needs) != AskSupport::NONE {
            return Err(self.unsupported(&path));
        }
        let fault = |fault| self.leg_runtime().author_fault(self.site, format!("`{path}`: {fault}"));
        let Ok(rendered) = render(&path).map_err(fault) else { return Ok(None) };
        if has_fallback && self.leg_runtime().carrier().lacks(&rendered.request) != AskSupport::NONE {
            return Err(self.unsupported(&path));
        }
        let Some(digest) = self.leg_runtime().digest(rendered.text.as_bytes()) else { return Ok(None) };
        Ok(Some(Question {
            path,
            request: rendered.request,
            text: Some(rendered.text),
            digest,
            within: self.within.map(|within| within.as_secs()),
            until: rendered.until,
            elicitation_id: self.elicitation_id.as_deref().map(Into::into),
            site: self.site,
        }))
    }

    /// Returns the error of the fallback.
    fn unsupported(&self, path: &str) -> AskError {
        let words = match &self.fallback {
            Fallback::Refuse(words) => Some(words.to_string()),
            _ => None,
        };
        self.leg_runtime().with(Leg::note_refusal);
        AskError::unsupported(path, words)
    }

    /// Returns the slot of a question that was asked.
    pub(crate) fn slot(&mut self) -> Option<SlotId> {
        self.handle.slot(|| None)
    }

    /// Resolves an agreed question: the work behind the URL is finished, or its time is over.
    pub(crate) fn resolve_agreed(&mut self, is_finished: bool) -> Poll<Result<AskOutcome<()>, AskError>> {
        let Some(slot) = self.slot() else { return Poll::Pending };
        let polled = self.leg_runtime().with(|leg| leg.resolve_agreed(slot, is_finished));
        self.settle(polled)
    }

    /// Asks the same question again with this line: the person agreed, but the work behind the URL is not finished.
    pub(crate) fn ask_again(&mut self, line: &'static str, deadline: Option<u64>) {
        let Some(slot) = self.slot() else { return };
        self.leg_runtime().with(|leg| leg.ask_again(slot, line, deadline));
    }
}

/// # Errors
/// Returns the reason for which the question cannot be asked.
pub(crate) fn check_elicit(request: &ElicitRequest) -> Result<(), String> {
    match request {
        ElicitRequest::Form { requested_schema, .. } => requested_schema.unaskable().map_or(Ok(()), Err),
        ElicitRequest::Url { url, .. } => check_url(url),
        // This crate creates no other kind.
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
        None => Err("not a URL: it does not begin with https://".to_owned()),
        Some(_) => Err("a URL must be https://, or http:// on the loopback interface".to_owned()),
    }
}

/// Writes the setters of a question, which has a field `raw`. `$cannot`: the missing ability of a client; `$within`:
/// the documentation of the time limit, for questions to a person.
macro_rules! setters {
    ($type:ident<'a $(, $of:ident)?>, cannot: $cannot:literal $(, within: $within:literal)?) => {
        impl<'a $(, $of)?> $type<'a $(, $of)?> {
            /// Sets the key: 1 to 64 visible ASCII characters without `#` and `/`. Clients and logs show it.
            pub fn key(mut self, key: impl Into<::std::borrow::Cow<'a, str>>) -> Self {
                self.raw.key = key.into();
                self
            }

            /// Numbers one of several questions with the same key. The number comes from the program, such as a loop
            /// counter or the id of a row.
            pub fn nth(mut self, number: impl $crate::IntoNumber) -> Self {
                self.raw.number = Some(number.into_number());
                self
            }

            $(
                #[doc = $within]
                /// The result after that time is [`AskError::Expired`](crate::AskError::Expired).
                pub fn timeout(mut self, time: ::std::time::Duration) -> Self {
                    self.raw.within = Some(time);
                    self
                }
            )?

            #[doc = concat!("Sets the error for a client that cannot ", $cannot, ":")]
            /// the result is [`AskError::Unsupported`](crate::AskError::Unsupported) with this text. Default: the call
            /// ends with the error for a missing capability.
            pub fn or_refuse(mut self, words: impl Into<::std::borrow::Cow<'a, str>>) -> Self {
                self.raw.fallback = $crate::call::awaits::Fallback::Refuse(words.into());
                self
            }
        }
    };
}
pub(crate) use setters;
