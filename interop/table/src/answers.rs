//! A client that answers as the table says.

use crate::table::Case;
use antiphon::{
    client::{CallbackError, Client, FormAsk, RoundDecision, asks::ElicitAsk, transport::Transport},
    wire::{
        ElicitResult,
        forms::{FieldKind, FormField},
        sampling::{CreateMessageResult, ListRootsResult, Root},
    },
};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// Keys of the questions, one list per round.
#[derive(Clone, Default)]
pub(crate) struct Rounds(Arc<Mutex<Vec<Vec<String>>>>);

impl Rounds {
    pub(crate) fn keys(&self) -> Vec<Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, keys: Vec<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(keys);
    }
}

pub(crate) fn client(case: &Case, rounds: &Rounds, transport: Arc<dyn Transport>) -> Client {
    let (rounds, answers) = (rounds.clone(), Arc::new(case.answers.clone()));
    let (sample, roots) = (case.sample.clone().unwrap_or_default(), case.roots.clone());
    Client::builder("antiphon-interop-table", env!("CARGO_PKG_VERSION"))
        .on_round(move |round| {
            rounds.add(round.asks.iter().map(|(key, _)| key.to_owned()).collect());
            async { RoundDecision::go() }
        })
        .on_elicit(move |ask| {
            let answers = Arc::clone(&answers);
            async move { answer(&ask, &answers) }
        })
        .on_sample(move |_| {
            let text = sample.clone();
            async move { Ok(CreateMessageResult::text("test-model", text)) }
        })
        .on_roots(move |_| {
            let roots = roots.iter().map(Root::new).collect();
            async move { Ok(ListRootsResult::new(roots)) }
        })
        .connect(transport)
}

/// The answer to a question: `KEY=accept|decline|cancel`, or every `KEY.FIELD=VALUE`.
fn answer(ask: &ElicitAsk, answers: &[String]) -> Result<ElicitResult, CallbackError> {
    let key = &ask.context().key;
    let values: Vec<&str> = answers.iter().filter_map(|answer| answer.strip_prefix(key.as_str())).collect();
    match values.iter().find_map(|rest| rest.strip_prefix('=')) {
        Some("accept") => return Ok(ElicitResult::consent()),
        Some("decline") => return Ok(ElicitResult::decline()),
        Some("cancel") => return Ok(ElicitResult::cancel()),
        _ => {}
    }
    let ElicitAsk::Form(form) = ask else { return Err(CallbackError::new("the table has no answer")) };
    let content = content(form, &values);
    if content.is_empty() {
        return Err(CallbackError::new("the table has no answer"));
    }
    Ok(form.accept(content)?)
}

fn content(form: &FormAsk, values: &[&str]) -> Map<String, Value> {
    let value_of = |field: &FormField| {
        let prefix = format!(".{}=", field.name);
        let text = values.iter().find_map(|rest| rest.strip_prefix(prefix.as_str()))?;
        Some((field.name.clone(), field_value(field, text)))
    };
    form.schema.fields().iter().filter_map(value_of).collect()
}

/// A string for texts and choices, parsed JSON for other fields.
fn field_value(field: &FormField, text: &str) -> Value {
    match field.kind {
        FieldKind::Text { .. } | FieldKind::One { .. } => text.into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}
