//! The questions of a task that `tasks/result` sends in a session.

use super::{id, requests::Addressed};
use crate::{
    outbox::Outbox,
    session::{AnswerTimeout, AskEnd, OutboundRequest, Question, Session},
    task_registry::asked::{AskedQuestion, AskedQuestions},
};
use antiphon_store::TaskKey;
use antiphon_wire::{AskSupport, InputRequest, InputRequests, escaped};
use std::{sync::Arc, task::Context, task::Poll};

/// The questions of a task that one request sends.
pub(super) struct PushedQuestions<'a> {
    session: &'a Session,
    outbox: &'a Outbox,
    all: Arc<AskedQuestions>,
    task: TaskKey,
    scopes: Vec<String>,
    /// False if the tool does not accept an answer of this caller.
    may_answer: bool,
    wait: AnswerTimeout,
    at_most: usize,
    sent: Vec<SentQuestion>,
}

/// A question that was sent.
struct SentQuestion {
    /// Nothing after the answer has come, or was not given in time.
    outbound: Option<OutboundRequest>,
    /// Dropped after the request.
    asked: AskedQuestion,
}

/// The rules for the questions of one request.
pub(super) struct PushRules {
    pub(super) scopes: Vec<String>,
    pub(super) may_answer: bool,
    pub(super) wait: AnswerTimeout,
    /// The number of questions at once.
    pub(super) at_most: usize,
}

impl<'a> PushedQuestions<'a> {
    pub(super) fn new(
        session: &'a Session,
        outbox: &'a Outbox,
        addressed: &Addressed<'_>,
        rules: PushRules,
    ) -> Self {
        let all = Arc::clone(&addressed.tasks.asked);
        let PushRules { scopes, may_answer, wait, at_most } = rules;
        Self {
            session,
            outbox,
            all,
            task: addressed.key,
            scopes,
            may_answer,
            wait,
            at_most,
            sent: Vec::new(),
        }
    }

    /// Sends the open questions that nobody was sent, and withdraws those that are not open any more.
    /// `elicitation_id` returns the id that the author gave to a URL question.
    pub(super) fn send<'q>(
        &mut self,
        open: &InputRequests,
        elicitation_id: impl Fn(&str) -> Option<&'q str>,
    ) {
        self.sent.retain(|sent| open.get(sent.asked.key()).is_some());
        for (key, request) in open.iter() {
            if self.sent.len() >= self.at_most {
                return;
            }
            if self.is_for_client(request)
                && let Some(asked) = self.all.take(self.task, key)
            {
                self.send_one(request, asked, elicitation_id(key));
            }
        }
    }

    /// Returns true if one of these questions waits for a person who is not the caller: a task has one caller, so nobody can answer.
    pub(super) fn wait_for_others(&self, open: &InputRequests) -> bool {
        !self.may_answer && open.iter().any(|(_, request)| matches!(request, InputRequest::Elicit(_)))
    }

    fn is_for_client(&self, request: &InputRequest) -> bool {
        // > A server **MUST NOT** send requests for capabilities that were not negotiated.
        self.session.missing(request) == AskSupport::NONE
            && (self.may_answer || !matches!(request, InputRequest::Elicit(_)))
    }

    fn send_one(&mut self, request: &InputRequest, asked: AskedQuestion, given: Option<&str>) {
        let task = id::text(self.task);
        let is_url = matches!(request, InputRequest::Elicit(elicit) if elicit.is_url());
        let named = || given.map_or_else(|| format!("{task}.{}", asked.key()), ToOwned::to_owned);
        let elicitation_id = is_url.then(named);
        let (elicitation_id, related_task) = (elicitation_id.as_deref(), Some(task.as_str()));
        let question = Question { key: asked.key(), request, elicitation_id, related_task };
        match OutboundRequest::send(self.session, self.outbox, &self.scopes, &question, self.wait) {
            Ok(outbound) => self.sent.push(SentQuestion { outbound: Some(outbound), asked }),
            Err(fault) => {
                tracing::error!(task, fault = %escaped(&fault), "a question of a task cannot be written");
            }
        }
    }

    /// Polls for the end of a question that was sent. The question stays with this request until it is not open any more.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(String, AskEnd)> {
        for sent in &mut self.sent {
            if let Some(outbound) = &mut sent.outbound
                && let Poll::Ready(end) = outbound.poll(cx)
            {
                // Too late: the client gets a cancellation of the question.
                sent.outbound = None;
                return Poll::Ready((sent.asked.key().to_owned(), end));
            }
        }
        Poll::Pending
    }
}
