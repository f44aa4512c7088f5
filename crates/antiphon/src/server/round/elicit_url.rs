//! A URL for the person to open, asked with `await`.

use super::{
    asking::{RawAsk, Rendered},
    machine::{Place, seconds},
    setters::setters,
    until::{IntoDone, Until, Waited},
    url_ref::UrlRef,
};
use crate::server::{Answer, AskError, Ctx};
use antiphon_seal::Digest;
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
            stage: Stage::New,
            about: None,
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
    stage: Stage,
    /// What the check is about: the question without its reference. Known once it was rendered.
    about: Option<Digest>,
    /// When it was first asked, in Unix seconds. Known then, too.
    first: u64,
}

/// The same, with decline and cancel as values. See [`ElicitUrl::outcome`].
#[must_use = "a question is asked when it is awaited"]
pub struct ElicitUrlOutcome<'a, F>(ElicitUrl<'a, F>);

struct AskedUrl<'a, F> {
    message: Cow<'a, str>,
    url: F,
}

#[derive(Clone, Copy)]
enum Stage {
    New,
    Asking,
    /// They agreed; `once`: they had agreed before, and the question is about to be put again.
    Checking {
        once: bool,
    },
    Finished,
    TooLong,
    /// It does not resolve.
    Never,
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

/// A question as it is put.
struct Shown {
    rendered: Rendered,
    about: Option<Digest>,
    first: u64,
}

impl<F: Fn(&UrlRef) -> String> AskedUrl<'_, F> {
    fn show(&self, ctx: &Ctx, path: &str, place: Place) -> Result<Shown, String> {
        let reference = UrlRef::of(ctx, path, place)?;
        let url = (self.url)(&reference);
        let about = format!("{}\n{}", url.replace(reference.as_str(), ""), self.message);
        let request = ElicitRequest::Url { message: self.message.to_string(), url };
        Ok(Shown {
            rendered: Rendered::of(InputRequest::Elicit(request))?,
            about: ctx.flow().pin(about.as_bytes()),
            first: reference.first(),
        })
    }
}

impl<F: Fn(&UrlRef) -> String> ElicitUrl<'_, F> {
    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer<()>, AskError>> {
        self.raw.ctx().flow().check_thread();
        let Some(path) = self.raw.path() else { return Poll::Pending };
        loop {
            self.stage = match self.stage {
                Stage::New => match self.begin(&path) {
                    Ok(stage) => stage,
                    Err(fault) => {
                        let place = self.raw.place();
                        self.raw.ctx().flow().author_fault(place, format!("`{path}`: {fault}"));
                        return Poll::Pending;
                    }
                },
                Stage::Asking => match ready!(self.ask(cx)) {
                    Ok(Answer::Accept(())) if self.until.is_some() => self.agreed(&path),
                    outcome => {
                        if let Some(refusal) = outcome.as_ref().ok().and_then(|answer| self.refusal(answer)) {
                            self.raw.ctx().flow().note_refusal(refusal);
                        }
                        return Poll::Ready(outcome);
                    }
                },
                Stage::Checking { once } => {
                    let holds = ready!(self.check(cx, &path, once));
                    self.checked(&path, holds, once)
                }
                Stage::Finished => return Poll::Ready(Ok(Answer::Accept(()))),
                Stage::TooLong => return Poll::Ready(Err(AskError::expired(&path))),
                Stage::Never => return Poll::Pending,
            };
        }
    }

    /// Where an earlier leg has waited already, a client that comes back without an answer need not be asked again.
    fn begin(&mut self, path: &str) -> Result<Stage, String> {
        let ctx = self.raw.ctx();
        if self.until.is_none() || !Waited::is_noted(&ctx.flow().machine(), path) {
            return Ok(Stage::Asking);
        }
        let shown = self.asked.show(ctx, path, self.raw.place())?;
        (self.about, self.first) = (shown.about, shown.first);
        let is_answered = ctx.flow().machine().has_answer(path);
        let waited = self.waited(path);
        if !is_answered {
            let mut machine = ctx.flow().machine();
            match waited {
                None => Waited::drop_other(&mut machine, path),
                Some(_) if !Waited::use_once(&mut machine, path, self.raw.place()) => {
                    return Ok(Stage::Never);
                }
                Some(_) => {}
            }
        }
        Ok(match (waited, is_answered) {
            (Some(Waited::Finished), false) => Stage::Finished,
            (Some(Waited::TooLong), false) => Stage::TooLong,
            (Some(Waited::InVain), _) => {
                self.raw.line = Some(NOT_FINISHED);
                if is_answered { Stage::Asking } else { Stage::Checking { once: true } }
            }
            _ => Stage::Asking,
        })
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

    fn waited(&self, path: &str) -> Option<Waited> {
        Waited::noted(&self.raw.ctx().flow().machine(), path, self.about.as_ref()?)
    }

    fn note(&self, path: &str, waited: Waited) {
        if let Some(about) = &self.about {
            waited.note(&mut self.raw.ctx().flow().machine(), path, about, self.raw.place());
        }
    }

    fn ask(&mut self, cx: &Context<'_>) -> Poll<Result<Answer<()>, AskError>> {
        let Self { raw, asked, about, first, .. } = self;
        let (ctx, place) = (raw.ctx(), raw.place());
        let given = raw.poll(cx, AskSupport::URL, |path| {
            let shown = asked.show(ctx, path, place)?;
            (*about, *first) = (shown.about, shown.first);
            Ok(shown.rendered)
        });
        let text = match ready!(given) {
            Ok(text) => text,
            Err(error) => return Poll::Ready(Err(error)),
        };
        match serde_json::from_str(&text) {
            Ok(ElicitResult { action, .. }) => Poll::Ready(Ok(match action {
                Action::Accept => Answer::Accept(()),
                Action::Decline => Answer::Decline,
                Action::Cancel => Answer::Cancel,
            })),
            Err(fault) => {
                ctx.flow().author_fault(place, format!("a recorded answer cannot be read: {fault}"));
                Poll::Pending
            }
        }
    }

    fn agreed(&self, path: &str) -> Stage {
        match self.waited(path) {
            Some(Waited::Finished) => Stage::Finished,
            Some(Waited::TooLong) => Stage::TooLong,
            Some(Waited::InVain) | None => Stage::Checking { once: false },
        }
    }

    fn check(&mut self, cx: &mut Context<'_>, path: &str, once: bool) -> Poll<bool> {
        let flow = self.raw.ctx().flow();
        let Some(until) = &mut self.until else { return Poll::Ready(true) };
        {
            let mut machine = flow.machine();
            if machine.is_over() {
                return Poll::Pending;
            }
            // Whether it holds by now is nothing that the handler decides.
            if machine.rehearses() {
                return if once { Poll::Ready(false) } else { Poll::Pending };
            }
            machine.enter_check(path);
        }
        let polled = until.poll(cx, flow.until(), once);
        flow.machine().leave_step();
        polled
    }

    fn checked(&mut self, path: &str, holds: bool, once: bool) -> Stage {
        if holds {
            self.note(path, Waited::Finished);
            return Stage::Finished;
        }
        if once {
            return Stage::Asking;
        }
        let deadline = self.raw.within.map(|within| self.first.saturating_add(within.as_secs()));
        let now = seconds(self.raw.ctx().flow().server().0.clock.now());
        if deadline.is_some_and(|deadline| now > deadline) {
            self.note(path, Waited::TooLong);
            return Stage::TooLong;
        }
        self.note(path, Waited::InVain);
        self.raw.line = Some(NOT_FINISHED);
        self.raw.again(deadline);
        Stage::Asking
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
