//! A client that answers as the table says.

use crate::table::Case;
use antiphon::{
    client::{CallbackError, Client, ElicitAsk, FormAsk, RoundDecision, transport::Transport},
    wire::{CreateMessageResult, ElicitResult, FieldKind, FormField, ListRootsResult, Root},
};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// The keys of each round, as they came.
#[derive(Clone, Default)]
pub(crate) struct Rounds(Arc<Mutex<Vec<Vec<String>>>>);

impl Rounds {
    pub(crate) fn seen(&self) -> Vec<Vec<String>> {
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

/// `KEY=accept|decline|cancel` or all of `KEY.FIELD=VALUE`.
fn answer(ask: &ElicitAsk, answers: &[String]) -> Result<ElicitResult, CallbackError> {
    let key = &ask.context().key;
    let of_key: Vec<&str> = answers.iter().filter_map(|answer| answer.strip_prefix(key.as_str())).collect();
    match of_key.iter().find_map(|rest| rest.strip_prefix('=')) {
        Some("accept") => return Ok(ElicitResult::consent()),
        Some("decline") => return Ok(ElicitResult::decline()),
        Some("cancel") => return Ok(ElicitResult::cancel()),
        _ => {}
    }
    let ElicitAsk::Form(form) = ask else { return Err(CallbackError::new("no answer in the table")) };
    let content = content(form, &of_key);
    if content.is_empty() {
        return Err(CallbackError::new("no answer in the table"));
    }
    Ok(form.accept(content)?)
}

fn content(form: &FormAsk, of_key: &[&str]) -> Map<String, Value> {
    let value_of = |field: &FormField| {
        let prefix = format!(".{}=", field.name);
        let text = of_key.iter().find_map(|rest| rest.strip_prefix(prefix.as_str()))?;
        Some((field.name.clone(), typed(field, text)))
    };
    form.schema.fields().iter().filter_map(value_of).collect()
}

/// Texts and choices as they are, the rest as JSON.
fn typed(field: &FormField, text: &str) -> Value {
    match field.kind {
        FieldKind::Text { .. } | FieldKind::One { .. } => text.into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}
