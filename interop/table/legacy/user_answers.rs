//! The callbacks of the client, which answer as the case says.

use crate::{
    scripted_user::ScriptedUser,
    table::{Answer, Case},
};
use antiphon::{
    client::{CallbackError, Client, ClientBuilder, asks::ElicitAsk},
    wire::{
        ElicitResult,
        forms::FieldKind,
        sampling::{CreateMessageResult, ListRootsResult, Root},
    },
};
use serde_json::{Map, Value};
use std::time::Duration;

/// Time that the client waits for `notifications/elicitation/complete`. No server of the tables sends it for a URL of
/// the error -32042.
const ELICIT_WAIT: Duration = Duration::from_millis(100);

impl ScriptedUser {
    /// A client with every callback set.
    pub(crate) fn client(&self) -> ClientBuilder {
        let [elicit, sample, roots, progress, log, complete] = [(); 6].map(|()| self.clone());
        Client::builder("antiphon-interop-legacy", env!("CARGO_PKG_VERSION"))
            .on_elicit(move |ask| {
                let answer = elicit.answer(&ask);
                async move { answer }
            })
            .on_sample(move |_| {
                let text = sample.record("sample").sample.unwrap_or_default();
                async move { Ok(CreateMessageResult::text("test-model", text)) }
            })
            .on_roots(move |_| {
                let roots = roots.record("roots").roots.unwrap_or_default();
                async move { Ok(ListRootsResult::new(roots.into_iter().map(Root::new).collect())) }
            })
            .on_progress(move |_| progress.update(|state| state.progress += 1))
            .on_log(move |_| log.update(|state| state.logs += 1))
            .on_elicit_complete(move |event| {
                complete.update(|state| state.completed.push(event.elicitation_id))
            })
            .url_retry_interval(ELICIT_WAIT)
    }

    /// Compares the questions received with those of the case. Questions of one round may arrive in any order.
    pub(crate) fn check_questions(&self) -> Result<(), String> {
        let state = self.state();
        let (mut rest, wanted) = (state.asked.as_slice(), state.case.rounds());
        for keys in &wanted {
            let Some((round, later)) = rest.split_at_checked(keys.len()) else { break };
            if !keys.iter().all(|key| round.contains(key)) {
                break;
            }
            rest = later;
        }
        let same_count = state.asked.len() == wanted.iter().map(Vec::len).sum::<usize>();
        if rest.is_empty() && same_count {
            return Ok(());
        }
        Err(format!("asked {:?}, wanted {wanted:?}", state.asked))
    }

    fn answer(&self, ask: &ElicitAsk) -> Result<ElicitResult, CallbackError> {
        let mut state = self.state();
        let key = state.case.key_of(ask.message()).map(str::to_owned);
        let key = key.ok_or_else(|| CallbackError::new(format!("unexpected question: {}", ask.message())))?;
        state.asked.push(key.clone());
        match (state.case.answer(&key), ask) {
            (Answer::Action("accept"), _) => Ok(ElicitResult::consent()),
            (Answer::Action("decline"), _) => Ok(ElicitResult::decline()),
            (Answer::Action(_), _) => Ok(ElicitResult::cancel()),
            (Answer::Content(written), ElicitAsk::Form(form)) => {
                let is_text = |name: &str| {
                    let field = form.schema.fields().iter().find(|field| field.name == name);
                    field.is_none_or(|field| {
                        matches!(field.kind, FieldKind::Text { .. } | FieldKind::One { .. })
                    })
                };
                let typed = |(name, text): (String, String)| {
                    let value = match is_text(&name) {
                        true => Value::from(text),
                        false => serde_json::from_str(&text).unwrap_or_default(),
                    };
                    (name, value)
                };
                Ok(form.accept(written.into_iter().map(typed).collect::<Map<_, _>>())?)
            }
            (Answer::Content(_), _) => Err(CallbackError::new("the table has no answer")),
        }
    }

    fn record(&self, kind: &str) -> Case {
        let mut state = self.state();
        state.asked.push(kind.to_owned());
        state.case.clone()
    }
}
