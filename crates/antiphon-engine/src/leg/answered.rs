//! The questions whose answers the handler has received, for a receipt.

use super::Leg;
use crate::{
    answer::read_answer,
    record::{EntryBody, EntryKind},
};
use antiphon_wire::InputRequest;
use std::{borrow::Cow, sync::Arc};

/// An answered question of the call, as far as the handler has come.
#[derive(Clone, Debug)]
pub struct AnsweredQuestion<'l> {
    /// The scopes and the key.
    pub path: Arc<str>,
    /// The round in which the question was asked.
    pub round: u32,
    /// The question as JSON, as the handler renders it: the text of a question that is asked again follows it.
    pub question: Cow<'l, str>,
    /// The valid answer as JSON, or `None` if the person's time was over.
    pub answer: Option<Cow<'l, str>>,
    /// The time at which the answer came, in Unix seconds, if it was recorded.
    pub at: Option<u64>,
}

impl Leg {
    /// Returns the questions whose answers the handler has received, in the order in which it received them. Answers to
    /// questions that the handler returned are those of the last round. Each leg of the call begins with the same ones.
    pub fn answered_questions(&mut self) -> Vec<AnsweredQuestion<'_>> {
        let mut places = Vec::with_capacity(self.shown.len());
        for (at, (path, _)) in self.shown.iter().enumerate() {
            places.extend(self.history.find(EntryKind::Ask, path).map(|entry| (at, entry)));
        }
        let by_hand = self.inbox.iter().map(|incoming| &incoming.received).filter_map(|received| {
            let question = received.asked.question.as_deref()?;
            let request: InputRequest = serde_json::from_str(question).ok()?;
            let response = read_answer(&request, received.text.as_deref()?).ok()?;
            Some(AnsweredQuestion {
                path: received.asked.path.clone(),
                round: received.asked.round,
                question: Cow::Borrowed(question),
                answer: Some(Cow::Owned(response.to_text().ok()?)),
                at: received.at,
            })
        });
        let awaited = places.into_iter().filter_map(|(shown, entry)| {
            let (path, request): &(Arc<str>, InputRequest) = &self.shown[shown];
            let entry = self.history.entry(entry);
            let EntryBody::Answer { text, at, .. } = &entry.body else { return None };
            Some(AnsweredQuestion {
                path: path.clone(),
                round: entry.round,
                question: Cow::Owned(serde_json::to_string(request).ok()?),
                answer: text.as_deref().map(Cow::Borrowed),
                at: *at,
            })
        });
        awaited.chain(by_hand).collect()
    }
}
