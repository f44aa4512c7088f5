//! Questions that a handler returns: entries of the same record, checked, asked again and limited as awaited ones are.
//!
//! The question itself is in the record, so an answer is checked against what was asked whichever version of the handler
//! runs now, and a question whose answer does not fit is asked again without its handler. An answer is there on each leg
//! until the handler returns questions or state again.

use super::{
    Incoming, Leg,
    leave::{Left, may_continue},
};
use crate::{
    answer::{Response, asked_too_often, check, read_answer, too_long, with_reason},
    key::check_key,
    limits::Limits,
    record::{AskRecord, Received, Record},
    stop::Stop,
};
use antiphon_seal::Call;
use antiphon_wire::{Action, InputRequest, InputRequests};
use serde::Deserialize;

/// A question that a handler returned, with its checked answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The key.
    pub key: String,
    /// The question as JSON, as it was when it was asked.
    pub question: String,
    /// The answer.
    pub response: Response,
}

impl Leg {
    /// The handler returned these questions, or none with state only: the round that leaves, or why none can, and what is
    /// kept for the next leg.
    pub fn ask_by_hand(
        &mut self,
        asks: Vec<(String, InputRequest)>,
        state: Option<String>,
    ) -> (Result<InputRequests, Stop>, Left) {
        let round = self.round_by_hand(asks);
        self.inbox.retain(|incoming| !incoming.is_by_hand());
        self.state = state;
        match round {
            Ok((requests, asked)) => {
                if requests.is_empty() {
                    self.state_only = self.state_only.saturating_add(1);
                }
                self.leave_with(requests, asked)
            }
            Err(stop) => (Err(stop), self.finish()),
        }
    }

    fn round_by_hand(
        &self,
        asks: Vec<(String, InputRequest)>,
    ) -> Result<(InputRequests, Vec<AskRecord>), Stop> {
        let limits = &self.setup.limits;
        if asks.len() > limits.asks {
            let text = format!("{} asks in one round; the limit is {}", asks.len(), limits.asks);
            return Err(Stop::Author(text));
        }
        let (mut requests, mut asked) = (InputRequests::new(), Vec::with_capacity(asks.len()));
        for (key, request) in asks {
            check_key(&key).map_err(Stop::Author)?;
            let text = serde_json::to_string(&request).map_err(|fault| Stop::Author(fault.to_string()))?;
            let Some(call) = &self.call else {
                return Err(Stop::Author("the call has not begun".to_owned()));
            };
            // One that was answered and not read was asked in other words, or not looked at.
            let before = self.incoming(&key).map(|at| &self.inbox[at]);
            let before = before.filter(|incoming| incoming.is_by_hand() && !incoming.was_read);
            let times = before.map_or(1, |incoming| incoming.received.asked.times.saturating_add(1));
            if let Some(stop) = asked_too_often(&key, times, None, limits) {
                return Err(stop);
            }
            asked.push(AskRecord {
                path: key.as_str().into(),
                digest: call.secret().pin(text.as_bytes()),
                times,
                round: self.round,
                deadline: None,
                agreed: None,
                question: Some(text.into()),
            });
            // > `inputRequests` keys are server assigned identifiers and **MUST** be unique within the scope of the
            // > request.
            if !requests.insert(&*key, request) {
                return Err(Stop::Author(format!("the key `{key}` is used twice in one round")));
            }
        }
        Ok((requests, asked))
    }

    /// The answers to the questions that the handler returned.
    pub fn answered_by_hand(&self) -> Vec<Answered> {
        let by_hand = self.inbox.iter().filter(|incoming| incoming.is_by_hand());
        by_hand.filter_map(|incoming| incoming.received.answered()).collect()
    }

    /// The handler reads the answer to a question that it returned. Whether the answer still counts.
    pub fn read_by_hand(&mut self, key: &str) -> bool {
        let Some(at) = self.incoming(key) else { return false };
        self.inbox[at].was_read = true;
        self.inbox[at].is_by_hand()
    }

    /// The handler's own state.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl Incoming {
    fn is_by_hand(&self) -> bool {
        self.received.asked.question.is_some()
    }

    /// Whether the person declined or went away.
    pub(super) fn is_refusal(&self) -> bool {
        #[derive(Deserialize)]
        struct Head {
            action: Action,
        }
        let head = self.received.text.as_deref().and_then(|text| serde_json::from_str::<Head>(text).ok());
        head.is_some_and(|head| head.action != Action::Accept)
    }
}

impl Received {
    fn answered(&self) -> Option<Answered> {
        let (question, text) = (self.asked.question.as_deref()?, self.text.as_deref()?);
        let request: InputRequest = serde_json::from_str(question).ok()?;
        let response = read_answer(&request, text).ok()?;
        Some(Answered { key: self.asked.path.to_string(), question: question.to_owned(), response })
    }
}

impl Record {
    /// Receives the answers to questions that a handler returned; `answer` gives the text that came under a key. The
    /// questions to be asked again, those alone: empty once each has an answer that counts.
    ///
    /// > If the client fails to send all the information requested in a previous `InputRequests` [...] the server **SHOULD**
    /// > respond with a new `InputRequiredResult` requesting the missing information again, rather than returning an error.
    ///
    /// # Errors
    /// If a question was asked as often as it may be, or the call has had as many legs as it may.
    pub fn receive<'t>(
        &mut self,
        call: Option<&Call>,
        answer: impl Fn(&str) -> Option<&'t str>,
        limits: &Limits,
    ) -> Result<InputRequests, Stop> {
        let mut again = InputRequests::new();
        for path in self.paths_by_hand() {
            if let Some(request) = self.receive_one(&path, answer(&path), limits)? {
                // Keys were unique when the round left.
                let _ = again.insert(&*path, request);
            }
        }
        if !again.is_empty() {
            may_continue(call, limits.legs, &again)?;
            self.round = self.round.saturating_add(1);
            let round = self.round;
            self.asked.iter_mut().for_each(|asked| asked.round = round);
        }
        Ok(again)
    }

    /// Receives what came for one question that a handler returned: `None` if nothing did. The question, if it is to be
    /// asked again.
    ///
    /// # Errors
    /// If it was asked as often as it may be.
    pub fn receive_one(
        &mut self,
        path: &str,
        text: Option<&str>,
        limits: &Limits,
    ) -> Result<Option<InputRequest>, Stop> {
        let mut room = limits.state.saturating_sub(self.size());
        let Some(at) = self.asked.iter().position(|asked| *asked.path == *path) else { return Ok(None) };
        let asked = &mut self.asked[at];
        let question = asked.question.as_deref().unwrap_or_default();
        let Ok(request) = serde_json::from_str::<InputRequest>(question) else {
            // It was written here, and the seal held.
            return Err(Stop::Author(format!("the question `{path}` cannot be read again")));
        };
        // A client may answer question by question: only the bound on legs ends that.
        let Some(text) = text else { return Ok(Some(request)) };
        match accept(&request, text, &mut room, limits) {
            Ok(text) => {
                let asked = self.asked.remove(at);
                self.received.push(Received { asked, text: Some(text) });
                Ok(None)
            }
            Err(reason) => {
                asked.times = asked.times.saturating_add(1);
                match asked_too_often(path, asked.times, Some(&reason), limits) {
                    Some(stop) => Err(stop),
                    None => Ok(Some(with_reason(request, Some(&reason)))),
                }
            }
        }
    }

    /// The keys of the questions of the last round that a handler returned.
    fn paths_by_hand(&self) -> Vec<Box<str>> {
        let by_hand = self.asked.iter().filter(|asked| asked.question.is_some());
        by_hand.map(|asked| asked.path.clone()).collect()
    }
}

fn accept(request: &InputRequest, text: &str, room: &mut usize, limits: &Limits) -> Result<String, String> {
    let text = check(request, text, limits)?.to_text()?;
    *room = room.checked_sub(text.len()).ok_or_else(|| too_long(*room))?;
    Ok(text)
}
