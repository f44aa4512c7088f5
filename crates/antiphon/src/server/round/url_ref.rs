//! The reference in a URL: which question of which call it belongs to, and for whom it was made.

use crate::server::{Ctx, Server, limits::URL_REF_WITHIN};
use antiphon_engine::UrlReference;
use antiphon_seal::{Binding, CallId, Principal, Reason};
use std::fmt;

/// No request that may ask has this method, so a reference does not open as a `requestState`, nor the other way round.
const METHOD: &str = "antiphon/url";

/// What stands in a URL that a person is asked to open: a sealed text that names this question of this call, and the
/// person it was made for. [`Ctx::elicit_url`] makes it, once; it is the same on every leg and every instance.
///
/// It is letters, digits, `-`, `_` and `.` only, so it needs no escaping in a path or a query; about 220 characters. It
/// is good for 24 hours, or until the call's own deadline if that is sooner. A question that is asked again after that
/// has a new one.
///
/// It is not a password. It tells nothing by itself, and whoever has it still has to be the person it was made for: see
/// [`verify`](Self::verify). Only the reference is sealed: whatever else stands in the URL can be changed by anyone.
pub struct UrlRef {
    text: String,
    /// When the question was first asked, in Unix seconds.
    first: u64,
}

/// A reference that was made here, is in time, and belongs to the person who opened it. See [`UrlRef::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedUrlRef {
    key: String,
    call: CallId,
}

/// A reference does not count. It says nothing of why: whoever holds a bad one need not learn how bad. The log has the
/// reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlRefError;

impl UrlRef {
    /// The text for the URL. The same as `Display` gives.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// For the page behind the URL: whether this reference was made by this server (or another instance with the same
    /// keys and audience), is in time, and was made for `principal`, who has opened the page now.
    ///
    /// Anyone can send a URL to anyone: without this a person can be led to finish what somebody else began, and their
    /// account ends up in that somebody's hands. So call this before the page shows or takes anything, and again where it
    /// takes it: when a form is posted, when an authorization server redirects back.
    ///
    /// > The MCP Server **MUST** verify the identity of the user who opens the URL before accepting information.
    ///
    /// `principal` comes from the page's own login, such as its session cookie: never from the URL, and never from what
    /// the visitor says. Issuer and subject are compared. The client is not: the person opens the page with a browser,
    /// and called with something else. Only a principal without a subject is compared whole.
    ///
    /// Where calls are not authenticated there is nobody to compare: references are made for nobody then, and only `None`
    /// verifies. Such a reference is all that tells who opens the page. That may do on one's own machine.
    ///
    /// ```
    /// use antiphon::{seal::Principal, server::{Server, UrlRef, UrlRefError}};
    ///
    /// # struct Form(String);
    /// # struct Accounts;
    /// # impl Accounts { fn connect(&self, _call: String, _key: &str, _form: Form) {} }
    /// /// Behind `https://example.com/connect/{reference}`; `user` is who is logged in there.
    /// fn connect(
    ///     server: &Server,
    ///     accounts: &Accounts,
    ///     reference: &str,
    ///     user: &str,
    ///     form: Form,
    /// ) -> Result<(), UrlRefError> {
    ///     let user = Principal::user(user).with_issuer("https://login.example.com");
    ///     let asked = UrlRef::verify(server, reference, Some(&user))?;
    ///     accounts.connect(asked.call_id().to_string(), asked.key(), form);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// A reference verifies as often as it is opened while it is in time. What is to happen once is for the page to keep.
    ///
    /// # Errors
    /// [`UrlRefError`]: show the visitor its text, or a page not found, and take nothing from them.
    pub fn verify(
        server: &Server,
        text: &str,
        principal: Option<&Principal>,
    ) -> Result<VerifiedUrlRef, UrlRefError> {
        let person = principal.map(person);
        let inner = &server.0;
        let opened =
            inner.sealer.open(text, &binding(person.as_ref()), inner.clock.now()).map_err(|error| {
                if error.reason() == Reason::UnknownKey {
                    inner.tell_of_unknown_key();
                }
                if let Some(cause) = error.codec() {
                    tracing::error!(%cause, "the codec did not open a reference");
                }
                refused(error.reason().as_str(), error.call_id())
            })?;
        let call = opened.call.id();
        let key = String::from_utf8(opened.payload).map_err(|_| refused("payload", Some(call)))?;
        Ok(VerifiedUrlRef { key, call })
    }

    /// The reference of a question: the recorded one, or else a new one, which is recorded.
    ///
    /// # Errors
    /// Why none could be made.
    pub(super) fn of(ctx: &Ctx, path: &str) -> Result<Self, String> {
        let flow = ctx.flow();
        let inner = &flow.server().0;
        let (time, now) = (inner.clock.now(), flow.now());
        let (noted, has_answer) = flow.with(|leg| (leg.url_reference(path).cloned(), leg.has_answer(path)));
        let first = match noted {
            // An answer belongs to the URL it was given to.
            Some(noted) if has_answer || now.saturating_sub(noted.created) <= URL_REF_WITHIN.as_secs() => {
                return Ok(Self { text: noted.text.into(), first: noted.first_asked });
            }
            Some(noted) => noted.first_asked,
            None => now,
        };
        let person = ctx.principal().map(person);
        let sealed = flow.with_call(|call| {
            inner.sealer.seal(call, &binding(person.as_ref()), path.as_bytes(), URL_REF_WITHIN, time)
        });
        let text =
            sealed.ok_or("the call could not begin")?.map_err(|fault| format!("no reference: {fault}"))?;
        // A codec may give what it likes.
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) {
            let fault =
                "the codec gives text that cannot stand in a URL: let it be letters, digits and `-._~`";
            return Err(fault.to_owned());
        }
        let reference = UrlReference { first_asked: first, created: now, text: text.as_str().into() };
        flow.with(|leg| leg.note_url_reference(path, reference));
        Ok(Self { text, first })
    }

    /// When the question was first asked, in Unix seconds.
    pub(super) fn first(&self) -> u64 {
        self.first
    }
}

fn refused(reason: &str, call: Option<CallId>) -> UrlRefError {
    let call = call.map(|id| id.to_string());
    tracing::warn!(reason, call, "a reference in a URL was refused");
    UrlRefError
}

/// The question's key says which it is; the rest of the binding is the same for all.
fn binding(principal: Option<&Principal>) -> Binding<'_> {
    Binding { method: METHOD, target: "", arguments: None, principal, tool_version: 0 }
}

/// Who somebody is, whichever software they use.
fn person(principal: &Principal) -> Principal {
    let Some(subject) = principal.subject() else { return principal.clone() };
    let person = Principal::user(subject);
    match principal.issuer() {
        Some(issuer) => person.with_issuer(issuer),
        None => person,
    }
}

impl VerifiedUrlRef {
    /// The question's key, scopes included: `url`, or `alice/connect#2`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The call that asked: what the handler has as [`Ctx::call_id`] once the question was answered.
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
    /// Not the text: where nobody is authenticated, whoever has it counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UrlRef(..)")
    }
}

impl fmt::Display for UrlRefError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("This link is not valid, or no longer.")
    }
}

impl std::error::Error for UrlRefError {}
