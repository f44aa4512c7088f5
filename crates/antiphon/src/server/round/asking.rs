//! One question, whatever its kind: asked once, and answered from the record.

use super::{
    flow::Flow,
    key::path,
    machine::{AskVerdict, Decodes, Hold, Place, Question, Stop},
};
use crate::server::{AskError, Ctx};
use antiphon_wire::{AskSupport, ElicitRequest, InputRequest};
use std::{
    borrow::Cow,
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
    /// What the person is told besides, outside of the pin.
    pub(super) line: Option<&'static str>,
    /// The id of a URL question in a session, where its author gave one.
    pub(super) elicitation_id: Option<Cow<'a, str>>,
    /// Which it is of all that are put in this leg: in a `join!`, source order.
    order: u64,
    place: Place,
    stage: Stage,
}

/// What stands for an answer where the client cannot be asked.
pub(super) enum Fallback<'a> {
    /// Nothing: the call is refused before the round leaves.
    None,
    /// A value, which the typed future holds.
    Value,
    /// An error in these words.
    Refuse(Cow<'a, str>),
}

enum Stage {
    New,
    Held(Hold, Box<Question>),
    Asked,
    Given,
    Over,
}

/// A question with its path, about to be put.
pub(super) struct Rendered {
    pub(super) request: InputRequest,
    /// What its digest is made of.
    pub(super) text: Vec<u8>,
    /// Whether an answer can be read as what the handler expects.
    pub(super) decodes: Option<Decodes>,
}

impl Rendered {
    pub(super) fn of(request: InputRequest) -> Result<Self, String> {
        if let InputRequest::Elicit(elicit) = &request {
            check_elicit(elicit)?;
        }
        let text = serde_json::to_vec(&request).map_err(|fault| fault.to_string())?;
        Ok(Self { request, text, decodes: None })
    }
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
            line: None,
            elicitation_id: None,
            order: 0,
            place: super::flow::here(),
            stage: Stage::New,
        }
    }

    pub(super) fn ctx(&self) -> &'a Ctx {
        self.ctx
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    fn flow(&self) -> &'a Flow {
        self.ctx.flow()
    }

    /// Scopes and key; the leg ends if they are none.
    pub(super) fn path(&self) -> Option<String> {
        path(self.ctx.scope_prefix(), &self.key, self.number)
            .map_err(|fault| self.flow().author_fault(self.place, fault))
            .ok()
    }

    /// The answer as JSON. `render` is called once, with the question's path.
    pub(super) fn poll(
        &mut self,
        cx: &Context<'_>,
        needs: AskSupport,
        render: impl FnOnce(&str) -> Result<Rendered, String>,
    ) -> Poll<Result<String, AskError>> {
        self.flow().check_thread();
        let question = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::New => match self.question(needs, render) {
                Ok(Some(question)) => Box::new(question),
                Ok(None) => return Poll::Pending,
                Err(unsupported) => return Poll::Ready(Err(unsupported)),
            },
            Stage::Held(hold, question) => {
                self.flow().machine().let_go(hold);
                question
            }
            Stage::Asked if !self.has_come() => {
                self.wait(cx);
                return Poll::Pending;
            }
            // The answer counts as one to the question as it is put now.
            Stage::Asked => match self.question(needs, render) {
                Ok(Some(question)) => Box::new(question),
                Ok(None) => return Poll::Pending,
                Err(unsupported) => return Poll::Ready(Err(unsupported)),
            },
            Stage::Given => {
                let fault = format!("`{}` is awaited once more: a question is awaited once", self.key);
                self.flow().author_fault(self.place, fault);
                return Poll::Pending;
            }
            Stage::Over => return Poll::Pending,
        };
        let path = question.path.clone();
        let mut machine = self.flow().machine();
        match machine.ask(*question, self.flow().limits()) {
            AskVerdict::Given(answer) => {
                self.stage = Stage::Given;
                Poll::Ready(Ok(answer))
            }
            AskVerdict::Expired => {
                machine.refused();
                self.stage = Stage::Given;
                Poll::Ready(Err(AskError::expired(&path)))
            }
            AskVerdict::Pending => {
                drop(machine);
                self.wait(cx);
                Poll::Pending
            }
            AskVerdict::Held(question) => {
                machine.hold(Hold::Recorded);
                drop(machine);
                self.stage = Stage::Held(Hold::Recorded, question);
                self.flow().wait_held(cx);
                Poll::Pending
            }
            AskVerdict::Never => Poll::Pending,
        }
    }

    /// Whether an answer has come while the handler waited: in a session it does.
    fn has_come(&self) -> bool {
        self.flow().push().is_some()
            && self.path().is_some_and(|path| self.flow().machine().has_answer(&path))
    }

    /// Waits for an answer: for the next request, or in a session to be woken.
    fn wait(&mut self, cx: &Context<'_>) {
        self.stage = Stage::Asked;
        if self.flow().push().is_some() {
            self.flow().wait_held(cx);
        }
    }

    fn question(
        &mut self,
        needs: AskSupport,
        render: impl FnOnce(&str) -> Result<Rendered, String>,
    ) -> Result<Option<Question>, AskError> {
        let Some(path) = self.path() else { return Ok(None) };
        if self.order == 0 {
            self.order = self.flow().machine().next_order();
        }
        let has_fallback = !matches!(self.fallback, Fallback::None);
        if has_fallback && self.ctx.can_ask().missing(needs) != AskSupport::NONE {
            return Err(self.unsupported(&path));
        }
        let fault = |fault| self.flow().author_fault(self.place, format!("`{path}`: {fault}"));
        let Ok(rendered) = render(&path).map_err(fault) else { return Ok(None) };
        let push = self.flow().push().filter(|_| has_fallback);
        if push.is_some_and(|push| push.session.missing(&rendered.request) != AskSupport::NONE) {
            return Err(self.unsupported(&path));
        }
        let Some(pin) = self.flow().pin(&rendered.text) else { return Ok(None) };
        Ok(Some(Question {
            path: path.into(),
            request: rendered.request,
            pin,
            decodes: rendered.decodes,
            within: self.within,
            line: self.line,
            elicitation_id: self.elicitation_id.as_deref().map(Into::into),
            order: self.order,
            place: self.place,
        }))
    }

    /// The fallback's error.
    fn unsupported(&self, path: &str) -> AskError {
        let words = match &self.fallback {
            Fallback::Refuse(words) => Some(words.to_string()),
            _ => None,
        };
        self.flow().machine().refused();
        AskError::unsupported(path, words)
    }

    /// Has the same question asked again, though it was answered: it keeps its place in the round.
    pub(super) fn again(&mut self, deadline: Option<u64>) {
        let Some(path) = self.path() else { return };
        let (mut machine, legs) = (self.flow().machine(), self.flow().limits().legs);
        // Elsewhere each time is a leg, and those are bounded.
        if self.flow().push().is_some() && machine.times_once_more() + 1 >= legs {
            let text = format!(
                "`{path}` was put {legs} times, as often as the limit `legs` allows, and what it waits for has not happened"
            );
            machine.stop(Stop::Limit { name: "legs", text });
            return;
        }
        machine.ask_once_more(&path, deadline);
        self.stage = Stage::New;
    }
}

impl Drop for RawAsk<'_> {
    fn drop(&mut self) {
        match &self.stage {
            Stage::New | Stage::Given | Stage::Over => {}
            Stage::Held(hold, _) => self.flow().machine().let_go(*hold),
            Stage::Asked => self.flow().machine().withdraw(self.order),
        }
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
