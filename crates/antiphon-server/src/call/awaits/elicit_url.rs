//! URL questions that are asked with `await`.

use crate::{
    call::{
        awaits::{
            AskOutcome, PreparedAsk, RawAsk, setters,
            url_ref::{IntoDone, Until, UrlRef},
        },
        ctx::{Answer, Ctx},
    },
    errors::awaited::AskError,
};
use antiphon_wire::{Action, AskSupport, ElicitRequest, ElicitResult, InputRequest};
use std::{
    borrow::Cow,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The text for a person who agreed to open the URL, while the check does not hold.
const NOT_FINISHED: &str = "This is not finished yet. Finish it behind the link, then continue here.";

impl Ctx {
    /// Asks the person to open a URL: to log in, to pay, to enter a secret. The data they enter there does not pass
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
    ///         .until(async || Ok(payments::is_paid(ctx.call_id()).await?))
    ///         .await?;
    ///     Ok("The deposit is there.".to_owned())
    /// }
    /// ```
    ///
    /// A URL that exists already is moved in: a `String`, for example of `format!`, as it is, and a type such as `url::Url` with
    /// `into()`. Its page must know in another way who was asked.
    ///
    /// ```
    /// use antiphon::{Result, server::Ctx};
    ///
    /// async fn sign(ctx: &Ctx, contract: u64) -> Result<&'static str> {
    ///     let url = format!("https://sign.example.com/contracts/{contract}");
    ///     ctx.elicit_url("Please sign the contract.", move |_| url).await?;
    ///     Ok("The page has what was signed.")
    /// }
    /// ```
    ///
    /// A text that is no URL ends the call with an internal error; the log says why.
    ///
    /// The closure receives the [reference](UrlRef) of this question, which belongs in the URL: with
    /// [`UrlRef::verify`], the page checks that its visitor is the person who was asked. The closure is called at the
    /// first poll, on every leg, and must return the same URL for the same reference: a changed URL is a different
    /// question.
    ///
    /// `Ok` means that the person *agreed* to open the URL. It does not mean that they opened it, or that they have
    /// finished there. To wait until they have finished, add [`until`](ElicitUrl::until).
    ///
    /// > The response with `action: "accept"` indicates that the user has consented to the interaction. It does not
    /// > mean that the interaction is complete.
    ///
    /// If the person declines or dismisses the question, the result is an [`AskError`]; [`outcome`](ElicitUrl::outcome)
    /// returns both as values instead. The key is `url`; a second URL question needs a [`key`](ElicitUrl::key) of its
    /// own.
    ///
    /// # The page
    ///
    /// - The page calls [`UrlRef::verify`] with its own login before it shows or accepts anything, and again when it
    ///   accepts it.
    /// - The page is served over `https`. Plain `http` is refused here, except on the loopback interface.
    ///
    ///   > **SHOULD** use HTTPS URLs for non-development environments.
    /// - The URL holds no secret and nothing about the person: clients show it, and logs keep it.
    ///
    ///   > **MUST NOT** include sensitive information about the end-user, including credentials, personally
    ///   > identifiable information, etc., in the URL sent to the client
    /// - The URL opens nothing by itself. A link that logs in its holder, such as a provider's authorization URL,
    ///   belongs behind a page of yours that first verifies and then redirects.
    ///
    ///   > **MUST NOT** provide a URL which is pre-authenticated to access a protected resource, as the URL could be used
    ///   > to impersonate the user by a malicious client.
    /// - The page finds its task by [`call_id`](crate::VerifiedUrlRef::call_id) and
    ///   [`key`](crate::VerifiedUrlRef::key). Only the reference is sealed: anyone can change a name or an amount
    ///   beside it.
    /// - The page stores what it learns on the server, for that person. It never sends it back through the client.
    #[track_caller]
    pub fn elicit_url<'a, F>(&'a self, message: impl Into<Cow<'a, str>>, url: F) -> ElicitUrl<'a, F>
    where
        F: FnOnce(&UrlRef) -> String,
    {
        ElicitUrl {
            raw: RawAsk::new(self, "url"),
            asked: UrlAsk { message: message.into(), url: Some(url) },
            until: None,
            checking: None,
            first: 0,
        }
    }
}

type UrlOutcome = AskOutcome<Answer<()>>;

/// Decodes the answer to a URL question.
fn read(text: &str) -> Result<Answer<()>, String> {
    let answer: ElicitResult = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    Ok(match answer.action {
        Action::Accept => Answer::Accept(()),
        Action::Decline => Answer::Decline,
        Action::Cancel => Answer::Cancel,
    })
}

/// The future of a URL question, sent when the future is awaited. See [`Ctx::elicit_url`].
#[must_use = "a question is asked when it is awaited"]
pub struct ElicitUrl<'a, F> {
    raw: RawAsk<'a>,
    asked: UrlAsk<'a, F>,
    until: Option<Until<'a>>,
    /// `Some` while the check behind the URL runs; true if it is called once only.
    checking: Option<bool>,
    /// The time at which the question was first asked, in Unix seconds. Known after the question was rendered.
    first: u64,
}

/// The future of a URL question that resolves to decline and cancel as values. See [`ElicitUrl::outcome`].
#[must_use = "a question is asked when it is awaited"]
pub struct ElicitUrlOutcome<'a, F>(ElicitUrl<'a, F>);

struct UrlAsk<'a, F> {
    message: Cow<'a, str>,
    /// `None` after the question was rendered.
    url: Option<F>,
}

// No field is pinned.
impl<F> Unpin for ElicitUrl<'_, F> {}
impl<F> Unpin for ElicitUrlOutcome<'_, F> {}

setters! {
    ElicitUrl<'a, F>,
    cannot: "open URLs",
    within: "Sets the time for the person to answer, in whole seconds, from the first time that the question is asked; with \
             [`until`](Self::until), the time to finish. Each round also has a limit: `answer_timeout` of the tool, or else \
             of the server, by default ten minutes."
}

impl<'a, F> ElicitUrl<'a, F> {
    /// Sets the `elicitationId` of the question for clients of 2025-11-25.
    /// [`elicitation_complete`](crate::Server::elicitation_complete) takes the same id. Default: a generated id. Other
    /// clients do not see it.
    pub fn id(mut self, id: impl Into<Cow<'a, str>>) -> Self {
        self.raw.elicitation_id = Some(id.into());
        self
    }

    /// Waits until this check holds: the person agreed, and has finished behind the URL.
    ///
    /// After the person agreed, the check is called at once, then every 250 milliseconds, later every second, while the
    /// request waits: for [`Limits::url_retry_interval`](crate::Limits::url_retry_interval), by default 20 seconds. If the check does not hold by
    /// then, the same URL is asked again, with a line that says it is not finished yet. Such a repetition does not
    /// count as an answer that does not fit, so only the limit of legs and [`timeout`](Self::timeout) bound it. When the
    /// check holds, that fact is recorded: later legs do not call the check.
    ///
    /// The check must only read. It must not ask or run a step, because it is called on some legs only. It returns a
    /// `bool` or an `antiphon::Result` of one, into which `?` takes every error; an error is logged and counts as "not yet".
    ///
    /// A check belongs to its question: a separate wait would have no question to ask when its time is over.
    pub fn until<C, Fut>(mut self, check: C) -> Self
    where
        C: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output: IntoDone> + Send + 'a,
    {
        self.until = Some(Until::new(check));
        self
    }

    /// Resolves to decline and cancel as values instead of errors.
    pub fn outcome(self) -> ElicitUrlOutcome<'a, F> {
        ElicitUrlOutcome(self)
    }
}

impl<F: FnOnce(&UrlRef) -> String> UrlAsk<'_, F> {
    /// Returns the question, and the time at which it was first asked. With `waits`, an accepted question waits for the
    /// work behind the URL.
    fn show(&mut self, ctx: &Ctx, path: &str, waits: bool) -> Result<(PreparedAsk, u64), String> {
        let reference = UrlRef::of(ctx, path)?;
        // A question is rendered once in a leg.
        let url = self.url.take().ok_or("the question was rendered before")?(&reference);
        let about = waits.then(|| format!("{}\n{}", url.replace(reference.as_str(), ""), self.message));
        let until = about.and_then(|about| ctx.leg_runtime().digest(about.as_bytes()));
        let request = ElicitRequest::Url { message: self.message.to_string(), url };
        Ok((PreparedAsk { until, ..PreparedAsk::of(InputRequest::Elicit(request))? }, reference.first()))
    }
}

impl<F: FnOnce(&UrlRef) -> String> ElicitUrl<'_, F> {
    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer<()>, AskError>> {
        loop {
            let asked = match self.checking {
                None => ready!(self.ask(cx)),
                Some(once) => ready!(self.check(cx, once)),
            };
            match asked {
                Ok(Some(AskOutcome::Agreed { before })) => self.checking = Some(before),
                Ok(Some(AskOutcome::Answer(answer))) => return self.answered(answer),
                // The question is asked again.
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn ask(&mut self, cx: &Context<'_>) -> Poll<Result<Option<UrlOutcome>, AskError>> {
        let Self { raw, asked, until, first, .. } = self;
        let (ctx, waits) = (raw.ctx(), until.is_some());
        let render = |path: &str| {
            let (rendered, shown_first) = asked.show(ctx, path, waits)?;
            *first = shown_first;
            Ok(rendered)
        };
        raw.poll_agreed(cx, AskSupport::URL, render, read).map_ok(Some)
    }

    fn answered(&self, answer: Answer<()>) -> Poll<Result<Answer<()>, AskError>> {
        if let Some(refusal) = self.refusal(&answer) {
            self.raw.ctx().leg_runtime().note_refusal(refusal);
        }
        Poll::Ready(Ok(answer))
    }

    /// Returns the error for a declined or dismissed question; `None` for an accepted one.
    fn refusal(&self, answer: &Answer<()>) -> Option<AskError> {
        let refused = match answer {
            Answer::Accept(()) => return None,
            Answer::Decline => AskError::declined,
            Answer::Cancel => AskError::cancelled,
        };
        self.raw.path().map(|path| refused(&path, &self.asked.message))
    }

    /// Calls the check. `None` means that the check does not hold, and the URL is asked again.
    fn check(&mut self, cx: &mut Context<'_>, once: bool) -> Poll<Result<Option<UrlOutcome>, AskError>> {
        let runtime = self.raw.ctx().leg_runtime();
        let (Some(until), Some(slot)) = (&mut self.until, self.raw.slot()) else { return Poll::Pending };
        let (is_over, rehearses) = runtime.with(|leg| (leg.is_over(), leg.is_dry_run()));
        if is_over {
            return Poll::Pending;
        }
        let is_finished = match rehearses {
            // The check's present value does not depend on the handler.
            true if once => false,
            true => return Poll::Pending,
            false => {
                let _scope = runtime.scope(|leg| leg.in_check(slot));
                ready!(until.poll(cx, runtime.carrier().until(runtime.limits(), runtime.timeout()), once))
            }
        };
        self.checking = None;
        if is_finished {
            return self.resolve_agreed(true);
        }
        let deadline = self.raw.within.map(|within| self.first.saturating_add(within.as_secs()));
        if !once && deadline.is_some_and(|deadline| runtime.now() > deadline) {
            return self.resolve_agreed(false);
        }
        self.raw.ask_again(NOT_FINISHED, deadline);
        Poll::Ready(Ok(None))
    }

    fn resolve_agreed(&mut self, is_finished: bool) -> Poll<Result<Option<UrlOutcome>, AskError>> {
        self.raw.resolve_agreed(is_finished).map_ok(|asked| {
            Some(match asked {
                AskOutcome::Answer(()) => AskOutcome::Answer(Answer::Accept(())),
                AskOutcome::Agreed { before } => AskOutcome::Agreed { before },
            })
        })
    }
}

impl<F: FnOnce(&UrlRef) -> String> Future for ElicitUrlOutcome<'_, F> {
    type Output = Result<Answer<()>, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_outcome(cx)
    }
}

impl<F: FnOnce(&UrlRef) -> String> Future for ElicitUrl<'_, F> {
    type Output = Result<(), AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.poll_outcome(cx))?;
        match (self.refusal(&answer), answer) {
            (None, Answer::Accept(())) => Poll::Ready(Ok(())),
            (Some(refusal), _) => Poll::Ready(Err(refusal)),
            // The key is not valid: the leg ends.
            (None, _) => Poll::Pending,
        }
    }
}
