//! How whoever sits at our client answers: as the case says.

use crate::{
    held::Person,
    table::{Answer, Case},
};
use antiphon::{
    client::{CallbackError, Client, ClientBuilder, ElicitAsk},
    wire::{CreateMessageResult, ElicitResult, FieldKind, ListRootsResult, Root},
};
use serde_json::{Map, Value};
use std::time::Duration;

/// No server of the tables says that a URL of the error -32042 is finished.
const ELICIT_WAIT: Duration = Duration::from_millis(100);

impl Person {
    /// A client with every callback.
    pub(crate) fn client(&self) -> ClientBuilder {
        let [elicit, sample, roots, progress, log, complete] = [(); 6].map(|()| self.clone());
        Client::builder("antiphon-interop-legacy", env!("CARGO_PKG_VERSION"))
            .on_elicit(move |ask| {
                let answer = elicit.answer(&ask);
                async move { answer }
            })
            .on_sample(move |_| {
                let text = sample.ask("sample").sample.unwrap_or_default();
                async move { Ok(CreateMessageResult::text("test-model", text)) }
            })
            .on_roots(move |_| {
                let roots = roots.ask("roots").roots.unwrap_or_default();
                async move { Ok(ListRootsResult::new(roots.into_iter().map(Root::new).collect())) }
            })
            .on_progress(move |_| progress.hear(|held| held.progress += 1))
            .on_log(move |_| log.hear(|held| held.logs += 1))
            .on_elicit_complete(move |told| complete.hear(|held| held.completed.push(told.elicitation_id)))
            .url_retry_interval(ELICIT_WAIT)
    }

    /// Whether what was asked is what the case says; of what comes together, in any order.
    pub(crate) fn asked(&self) -> Result<(), String> {
        let held = self.held();
        let (mut rest, wanted) = (held.asked.as_slice(), held.case.rounds());
        for keys in &wanted {
            let Some((round, later)) = rest.split_at_checked(keys.len()) else { break };
            if !keys.iter().all(|key| round.contains(key)) {
                break;
            }
            rest = later;
        }
        let as_many = held.asked.len() == wanted.iter().map(Vec::len).sum::<usize>();
        if rest.is_empty() && as_many {
            return Ok(());
        }
        Err(format!("asked {:?}, wanted {wanted:?}", held.asked))
    }

    fn answer(&self, ask: &ElicitAsk) -> Result<ElicitResult, CallbackError> {
        let mut held = self.held();
        let key = held.case.key_of(ask.message()).map(str::to_owned);
        let key = key.ok_or_else(|| CallbackError::new(format!("not expected: {}", ask.message())))?;
        held.asked.push(key.clone());
        match (held.case.answer(&key), ask) {
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
            (Answer::Content(_), _) => Err(CallbackError::new("no answer in the table")),
        }
    }

    fn ask(&self, kind: &str) -> Case {
        let mut held = self.held();
        held.asked.push(kind.to_owned());
        held.case.clone()
    }
}
