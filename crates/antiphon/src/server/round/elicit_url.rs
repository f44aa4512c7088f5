//! A URL for the person to open, asked with `await`.

use super::{
    asking::{Asked, RawAsk, Rendered},
    setters::setters,
    until::{IntoDone, Until},
    url_ref::UrlRef,
};
use crate::server::{Answer, AskError, Ctx};
use antiphon_wire::{Action, AskSupport, ElicitRequest, ElicitResult, InputRequest};
use std::{
    borrow::Cow,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// What a person is told who agreed, where the check does not hold yet.
const NOT_FINISHED: &str = "This is not finished yet. Finish it behind the link, then continue here.";

impl Ctx {
    /// Asks the person to open a URL: to log in somewhere, to pay, to enter a secret. What they do there does not pass
    /// through the client.
    ///
    /// ```
    /// use antiphon::{Result, server::Ctx};
    ///
    /// # mod payments {
    /// #     use antiphon::seal::CallId;
    /// #     pub async fn is_paid(_: Option<CallId>) -> std::io::Result<bool> { Ok(true) }
    /// # }
    /// async fn deposit(ctx: &Ctx) -> Result<String> {
    ///     ctx.elicit_url("Please pay the deposit.", |r| format!("https://example.com/pay/{r}"))
    ///         .until(async || payments::is_paid(ctx.call_id()).await)
    ///         .await?;
    ///     Ok("The deposit is there.".to_owned())
    /// }
    /// ```
    ///
    /// The closure is given the [reference](UrlRef) of this question, which belongs into the URL: with
    /// [`UrlRef::verify`] the page finds out whether whoever opens it is the person who was asked. It is called at the
    /// first poll, on every leg, and must give the same URL for the same reference: one that changes is another
    /// question.
    ///
    /// `Ok` means that the person *agreed* to open the URL, not that they are done there, nor that they opened it. To
    /// go on only once they are done, add [`until`](ElicitUrl::until).
    ///
    /// > The response with `action: "accept"` indicates that the user has consented to the interaction. It does not
    /// > mean that the interaction is complete.
    ///
    /// Someone who declines or goes away is an [`AskError`]; [`outcome`](ElicitUrl::outcome) gives it as a value instead.
    /// The key is `url`; a second one needs a [`key`](ElicitUrl::key) of its own.
    ///
    /// # The page
    ///
    /// - It calls [`UrlRef::verify`] with its own login before it shows or takes anything, and again where it takes it.
    /// - It stands behind `https`. Plain `http` is refused here, except on the loopback interface.
    ///
    ///   > **SHOULD** use HTTPS URLs for non-development environments.
    /// - The URL holds no secret and nothing about the person: clients show it, and logs keep it.
    ///
    ///   > **MUST NOT** include sensitive information about the end-user, including credentials, personally
    ///   > identifiable information, etc., in the URL sent to the client
    /// - The URL opens nothing by itself. A link that logs in whoever has it, such as a provider's own authorization
    ///   URL, stands behind a page of yours that verifies first and redirects then.
    ///
    ///   > **MUST NOT** provide a URL which is pre-authenticated to access a protected resource, as the URL could be used
    ///   > to impersonate the user by a malicious client.
    /// - What it is about is looked up by [`call_id`](crate::server::VerifiedUrlRef::call_id) and
    ///   [`key`](crate::server::VerifiedUrlRef::key). Nothing but the reference is sealed: a name or an amount beside it
    ///   can be changed by anyone.
    /// - What it learns stays with the server, kept for that person. It never goes back through the client.
    #[track_caller]
    pub fn elicit_url<'a, F>(&'a self, message: impl Into<Cow<'a, str>>, url: F) -> ElicitUrl<'a, F>
    where
        F: Fn(&UrlRef) -> String,
    {
        ElicitUrl {
            raw: RawAsk::new(self, "url"),
            asked: AskedUrl { message: message.into(), url },
            until: None,
            checking: None,
            first: 0,
        }
    }
}

/// A URL that is asked to be opened when this is awaited. See [`Ctx::elicit_url`].
#[must_use = "a question is asked when it is awaited"]
pub struct ElicitUrl<'a, F> {
    raw: RawAsk<'a>,
    asked: AskedUrl<'a, F>,
    until: Option<Until<'a>>,
    /// While what happens behind the URL is checked: whether once only.
    checking: Option<bool>,
    /// When it was first asked, in Unix seconds. Known once it was rendered.
    first: u64,
}

/// The same, with decline and cancel as values. See [`ElicitUrl::outcome`].
#[must_use = "a question is asked when it is awaited"]
pub struct ElicitUrlOutcome<'a, F>(ElicitUrl<'a, F>);

struct AskedUrl<'a, F> {
    message: Cow<'a, str>,
    url: F,
}

// Nothing in them is pinned.
impl<F> Unpin for ElicitUrl<'_, F> {}
impl<F> Unpin for ElicitUrlOutcome<'_, F> {}

setters! {
    ElicitUrl<'a, F>,
    cannot: "open URLs",
    within: "How long the person may take, in whole seconds, from the first time it is asked; with [`until`](Self::until), to \
             finish. Each round may take no longer than `answer_within` of the tool, or else of the server, ten minutes."
}

impl<'a, F> ElicitUrl<'a, F> {
    /// The `elicitationId` under which a client of 2025-11-25 is asked, and told by
    /// [`elicitation_complete`](crate::server::Server::elicitation_complete) that it is finished. Default: one that is made
    /// up. Other clients do not see it.
    pub fn id(mut self, id: impl Into<Cow<'a, str>>) -> Self {
        self.raw.elicitation_id = Some(id.into());
        self
    }

    /// Goes on only once this holds: the person agreed, and is done behind the URL.
    ///
    /// After they agreed the check is called, at once and then every 250 milliseconds, later every second, while the
    /// request waits: for [`Limits::until`](crate::server::Limits::until), 20 seconds. If it does not hold by then, the
    /// same URL is asked again, with a line that it is not finished yet; that is not an answer that does not fit, so only
    /// the limit of legs, and [`within`](Self::within), bound how often. Once it holds, that is recorded: later legs do
    /// not check.
    ///
    /// The check looks; it does not act. It asks nothing and runs no step, for it is called on some legs only. It gives a
    /// `bool`, or a `Result` of one, whose error is logged and counts as "not yet".
    ///
    /// It stands with its question, and nowhere else, because a wait on its own would have nothing to put to the person
    /// when its time is over.
    pub fn until<C, Fut>(mut self, check: C) -> Self
    where
        C: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output: IntoDone> + Send + 'a,
    {
        self.until = Some(Until::new(check));
        self
    }

    /// With decline and cancel as values.
    pub fn outcome(self) -> ElicitUrlOutcome<'a, F> {
        ElicitUrlOutcome(self)
    }
}

impl<F: Fn(&UrlRef) -> String> AskedUrl<'_, F> {
    /// The question, and when it was first asked. `waits`: accepted, it waits for what happens behind the URL.
    fn show(&self, ctx: &Ctx, path: &str, waits: bool) -> Result<(Rendered, u64), String> {
        let reference = UrlRef::of(ctx, path)?;
        let url = (self.url)(&reference);
        let about = waits.then(|| format!("{}\n{}", url.replace(reference.as_str(), ""), self.message));
        let until = about.and_then(|about| ctx.flow().digest(about.as_bytes()));
        let request = ElicitRequest::Url { message: self.message.to_string(), url };
        Ok((Rendered { until, ..Rendered::of(InputRequest::Elicit(request))? }, reference.first()))
    }
}

impl<F: Fn(&UrlRef) -> String> ElicitUrl<'_, F> {
    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer<()>, AskError>> {
        loop {
            let asked = match self.checking {
                None => ready!(self.ask(cx)),
                Some(once) => ready!(self.check(cx, once)),
            };
            match asked {
                Ok(Some(Asked::Agreed { before })) => self.checking = Some(before),
                Ok(Some(Asked::Answer(text))) => return self.answered(&text),
                // It is asked again.
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn ask(&mut self, cx: &Context<'_>) -> Poll<Result<Option<Asked>, AskError>> {
        let Self { raw, asked, until, first, .. } = self;
        let (ctx, waits) = (raw.ctx(), until.is_some());
        let polled = raw.poll_agreed(cx, AskSupport::URL, |path| {
            let (rendered, shown_first) = asked.show(ctx, path, waits)?;
            *first = shown_first;
            Ok(rendered)
        });
        polled.map_ok(Some)
    }

    fn answered(&self, text: &str) -> Poll<Result<Answer<()>, AskError>> {
        let answer = match serde_json::from_str(text) {
            Ok(ElicitResult { action: Action::Accept, .. }) => Answer::Accept(()),
            Ok(ElicitResult { action: Action::Decline, .. }) => Answer::Decline,
            Ok(ElicitResult { action: Action::Cancel, .. }) => Answer::Cancel,
            Err(fault) => {
                let fault = format!("a recorded answer cannot be read: {fault}");
                self.raw.ctx().flow().author_fault(self.raw.site(), fault);
                return Poll::Pending;
            }
        };
        if let Some(refusal) = self.refusal(&answer) {
            self.raw.ctx().flow().note_refusal(refusal);
        }
        Poll::Ready(Ok(answer))
    }

    /// Who refused what, if they did.
    fn refusal(&self, answer: &Answer<()>) -> Option<AskError> {
        let refused = match answer {
            Answer::Accept(()) => return None,
            Answer::Decline => AskError::declined,
            Answer::Cancel => AskError::cancelled,
        };
        self.raw.path().map(|path| refused(&path, &self.asked.message))
    }

    /// Checks what happens behind the URL. `None`: it is not finished, and the URL is asked again.
    fn check(&mut self, cx: &mut Context<'_>, once: bool) -> Poll<Result<Option<Asked>, AskError>> {
        let flow = self.raw.ctx().flow();
        let (Some(until), Some(slot)) = (&mut self.until, self.raw.slot()) else { return Poll::Pending };
        let (is_over, rehearses) = flow.with(|leg| (leg.is_over(), leg.is_dry_run()));
        if is_over {
            return Poll::Pending;
        }
        let is_finished = match rehearses {
            // Whether it holds by now is nothing that the handler decides.
            true if once => false,
            true => return Poll::Pending,
            false => {
                let _scope = flow.scope(|leg| leg.in_check(slot));
                ready!(until.poll(cx, flow.carrier().until(flow.limits()), once))
            }
        };
        self.checking = None;
        if is_finished {
            return self.raw.resolve_agreed(true).map_ok(Some);
        }
        let deadline = self.raw.within.map(|within| self.first.saturating_add(within.as_secs()));
        if !once && deadline.is_some_and(|deadline| flow.now() > deadline) {
            return self.raw.resolve_agreed(false).map_ok(Some);
        }
        self.raw.ask_again(NOT_FINISHED, deadline);
        Poll::Ready(Ok(None))
    }
}

impl<F: Fn(&UrlRef) -> String> Future for ElicitUrlOutcome<'_, F> {
    type Output = Result<Answer<()>, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_outcome(cx)
    }
}

impl<F: Fn(&UrlRef) -> String> Future for ElicitUrl<'_, F> {
    type Output = Result<(), AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.poll_outcome(cx))?;
        match (self.refusal(&answer), answer) {
            (None, Answer::Accept(())) => Poll::Ready(Ok(())),
            (Some(refusal), _) => Poll::Ready(Err(refusal)),
            // The key is none: the leg ends.
            (None, _) => Poll::Pending,
        }
    }
}
