//! The time behind a URL: its reference, which belongs to one question and one person, and the check that it is finished.

use crate::{
    call::ctx::Ctx,
    errors::{Error, refusal_log::log_refusal},
    options::limits::URL_REF_WITHIN,
    runtime::Runtime,
};
use antiphon_engine::UrlReference;
use antiphon_seal::{Binding, CallId, Principal, Reason};
use antiphon_wire::escaped;
use futures_util::FutureExt as _;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// The method that references are bound to. No request that may ask has this method, so a reference does not open as a
/// `requestState`, and a `requestState` does not open as a reference.
const METHOD: &str = "antiphon/url";

/// The reference in a URL that a person is asked to open: a sealed text that identifies this question of this call, and
/// the person it was made for. [`Ctx::elicit_url`] creates it once; the reference is the same on every leg and every
/// instance.
///
/// The text consists of letters, digits, `-`, `_` and `.`, so it needs no escaping in a path or a query. It is about
/// 220 characters long. A reference is valid for 24 hours, or until the call's own deadline if that is sooner; one that was
/// made in a task is valid as long as the task exists, if that is longer. A question that is asked again after that has a
/// new reference.
///
/// A reference is not a password. It contains no readable data, and its holder must still be the person it was made
/// for: see [`verify`](Self::verify). Only the reference is sealed: anyone can change the rest of the URL.
pub struct UrlRef {
    text: String,
    /// The time at which the question was first asked, in Unix seconds.
    first: u64,
}

/// A reference that this server made, that has not expired, and that belongs to the person who opened it. See
/// [`UrlRef::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedUrlRef {
    key: String,
    call: CallId,
}

/// The error of an invalid reference. It does not contain the reason, which a forger must not learn. The reason is in
/// the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlRefError;

impl UrlRef {
    /// Returns the text for the URL, the same as `Display`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Opens a reference, which must have been made for this person.
    pub(crate) fn open(
        runtime: &Runtime,
        text: &str,
        principal: Option<&Principal>,
    ) -> Result<VerifiedUrlRef, UrlRefError> {
        let person = principal.map(person);
        let opened =
            runtime.sealing.sealer().open(text, &binding(person.as_ref()), runtime.clock.now()).map_err(
                |error| {
                    if error.reason() == Reason::UnknownKey {
                        runtime.log_unknown_key();
                    }
                    if let Some(cause) = error.codec() {
                        tracing::error!(cause = %escaped(&cause), "the codec did not open a reference");
                    }
                    refused(runtime, error.reason().as_str(), error.call_id())
                },
            )?;
        let call = opened.call.id();
        let key = String::from_utf8(opened.payload).map_err(|_| refused(runtime, "payload", Some(call)))?;
        Ok(VerifiedUrlRef { key, call })
    }

    /// Returns the recorded reference of a question, or creates and records a new one.
    ///
    /// # Errors
    /// Returns the reason for which none could be created.
    pub(crate) fn of(ctx: &Ctx, path: &str) -> Result<Self, String> {
        let runtime = ctx.leg_runtime();
        let inner = runtime.server();
        let (time, now) = (inner.clock.now(), runtime.now());
        let person = ctx.principal().map(person);
        let (sealer, binding) = (inner.sealing.sealer(), binding(person.as_ref()));
        let (noted, has_answer) =
            runtime.with(|leg| (leg.url_reference(path).cloned(), leg.has_answer(path)));
        let is_valid = |noted: &UrlReference| {
            let is_young = now.saturating_sub(noted.created) <= URL_REF_WITHIN.as_secs();
            // One that was made in a task may be valid longer.
            is_young || sealer.open(&noted.text, &binding, time).is_ok()
        };
        let first = match noted {
            // An answer belongs to the URL with which it was given.
            Some(noted) if has_answer || is_valid(&noted) => {
                return Ok(Self { text: noted.text.into(), first: noted.first_asked });
            }
            Some(noted) => noted.first_asked,
            None => now,
        };
        let valid = runtime.carrier().url_ref_timeout();
        let sealed = runtime.with_call(|call| sealer.seal(call, &binding, path.as_bytes(), valid, time));
        let text =
            sealed.ok_or("the call could not begin")?.map_err(|fault| format!("no reference: {fault}"))?;
        // A custom codec may return any text.
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) {
            let fault =
                "the codec returned text that is not valid in a URL: use letters, digits and `-._~` only";
            return Err(fault.to_owned());
        }
        let reference = UrlReference { first_asked: first, created: now, text: text.as_str().into() };
        runtime.with(|leg| leg.note_url_reference(path, reference));
        Ok(Self { text, first })
    }

    /// Returns the time at which the question was first asked, in Unix seconds.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }
}

fn refused(runtime: &Runtime, reason: &str, call: Option<CallId>) -> UrlRefError {
    let call = call.map(|id| id.to_string());
    let loudness = runtime.refused(&format!("reference {reason}"));
    log_refusal!(loudness, { reason, call }, "a reference in a URL was refused");
    UrlRefError
}

/// Returns the binding. The question's key is in the sealed payload; the binding is otherwise the same for all
/// references.
fn binding(principal: Option<&Principal>) -> Binding<'_> {
    Binding { method: METHOD, target: "", arguments: None, principal, tool_version: 0 }
}

/// Returns the principal without its client: the same for all software that the person uses.
fn person(principal: &Principal) -> Principal {
    let Some(subject) = principal.subject() else { return principal.clone() };
    let person = Principal::user(subject);
    match principal.issuer() {
        Some(issuer) => person.with_issuer(issuer),
        None => person,
    }
}

impl VerifiedUrlRef {
    /// Returns the question's key, scopes included: `url`, or `alice/connect#2`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the call that asked: the same as the handler's [`Ctx::call_id`] after the question was answered.
    /// The id is no capability: the client may be able to read most of it from its first token.
    pub fn call_id(&self) -> CallId {
        self.call
    }
}

impl fmt::Display for UrlRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for UrlRef {
    /// Omits the text: without authentication, it is the only proof of identity.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UrlRef(..)")
    }
}

impl fmt::Display for UrlRefError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("This link is not valid or has expired.")
    }
}

impl std::error::Error for UrlRefError {}

/// The pause between the first two calls of a check. The pause doubles each time, up to [`LAST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(1);

type Checking<'a> = Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'a>>;

/// A check, with the state of its calls.
pub(crate) struct Until<'a> {
    check: Box<dyn FnMut() -> Checking<'a> + Send + 'a>,
    running: Option<Checking<'a>>,
    pause: Option<Pin<Box<Sleep>>>,
    next_pause: Duration,
    end: Option<Pin<Box<Sleep>>>,
}

impl<'a> Until<'a> {
    pub(crate) fn new<C, Fut>(mut check: C) -> Self
    where
        C: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output: IntoDone> + Send + 'a,
    {
        Self {
            check: Box::new(move || Box::pin(check().map(IntoDone::into_done))),
            running: None,
            pause: None,
            next_pause: FIRST_PAUSE,
            end: None,
        }
    }

    /// Polls the check. Resolves to `false` after `within`, or after the first call if `once` is set.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, within: Duration, once: bool) -> Poll<bool> {
        let holds = loop {
            if let Some(pause) = &mut self.pause
                && pause.as_mut().poll(cx).is_pending()
            {
                break false;
            }
            self.pause = None;
            let running = self.running.get_or_insert_with(|| (self.check)());
            let Poll::Ready(said) = running.as_mut().poll(cx) else { break false };
            self.running = None;
            match said {
                Ok(true) => break true,
                Ok(false) => {}
                Err(cause) => {
                    tracing::warn!(cause = %escaped(&cause), "a check failed, and counts as not finished")
                }
            }
            if once {
                return self.ended(false);
            }
            self.pause = Some(Box::pin(sleep(self.next_pause)));
            self.next_pause = (self.next_pause * 2).min(LAST_PAUSE);
        };
        if !holds {
            let end = self.end.get_or_insert_with(|| Box::pin(sleep(within)));
            ready!(end.as_mut().poll(cx));
        }
        self.ended(holds)
    }

    /// Resets the check to its initial state.
    fn ended(&mut self, holds: bool) -> Poll<bool> {
        (self.running, self.pause, self.end) = (None, None, None);
        self.next_pause = FIRST_PAUSE;
        Poll::Ready(holds)
    }
}

/// The result of a check: `true` if the work is finished, or an `antiphon::Result` of that. An error is logged and counts as "not
/// yet". No other type implements this trait, so that the compiler infers the error of a closure that uses `?`.
#[diagnostic::on_unimplemented(
    message = "a check behind a URL cannot return `{Self}`",
    label = "neither `bool` nor `antiphon::Result<bool>`",
    note = "with another error, write `Ok(check().await?)`: `?` converts it"
)]
pub trait IntoDone: sealed::Sealed {
    #[doc(hidden)]
    fn into_done(self) -> Result<bool, String>;
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for bool {}
impl IntoDone for bool {
    fn into_done(self) -> Result<bool, String> {
        Ok(self)
    }
}

impl sealed::Sealed for Result<bool, Error> {}
impl IntoDone for Result<bool, Error> {
    fn into_done(self) -> Result<bool, String> {
        self.map_err(|error| error.to_string())
    }
}
