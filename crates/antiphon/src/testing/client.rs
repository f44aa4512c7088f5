//! The same call through a real client.

use super::{
    Bench, Done, Leg, Outcome, Says,
    person::{Asked, no_answer},
    world::World,
};
use crate::{
    client::{Call, CallbackError, Client, ClientBuilder, ClientError, ElicitAsk, Mode, transport::memory},
    serve::stdio::serve_streams,
};
use antiphon_wire::{AskKind, ElicitRequest, ElicitResult, InputRequest, ProtocolVersion};
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Who answers the client's callbacks, and what was asked of them.
struct Answering {
    bench: Bench,
    asked: Mutex<(Asked, Vec<(String, AskKind)>)>,
    hand: crate::ManualClock,
}

pub(super) async fn run(bench: &Bench, call: &Call) -> Done {
    let world = World::new(bench, call, false);
    let answering = Arc::new(Answering { bench: bench.clone(), asked: Mutex::default(), hand: world.hand() });
    let (transport, input, output) = memory::duplex();
    let serving = serve_streams(input, output, world.replica());
    let client = client_of(&answering).connect(transport);
    let called = async {
        let result = client.call(call.clone()).await;
        client.close().await;
        result
    };
    // The server ends when the client's side is closed.
    let (result, served) = futures_util::future::join(called, serving).await;
    let outcome = match (result, served) {
        (Ok(finished), Ok(())) => match serde_json::to_value(&finished) {
            Ok(result) => Outcome::Complete(result),
            Err(fault) => Outcome::Stopped(fault.to_string()),
        },
        (Ok(_), Err(fault)) => Outcome::Stopped(format!("the server's streams failed: {fault}")),
        (Err(error), _) => ended(&error),
    };
    let asked = answering.asked.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
    done(outcome, asked, &world)
}

/// The client asks in whatever order it likes, and tells no legs.
fn done(outcome: Outcome, asked: Vec<(String, AskKind)>, world: &World<'_>) -> Done {
    let legs = vec![Leg { asked, polls: 0 }];
    let (effects, causes) = (world.common.effects.clone(), world.common.causes.take());
    Done { outcome, legs, effects, causes, struck: true, begun: BTreeMap::new(), findings: Vec::new() }
}

fn ended(error: &ClientError) -> Outcome {
    match error.server_error().map(serde_json::to_value) {
        Some(Ok(told)) => Outcome::Error(told),
        _ => Outcome::Stopped(in_full(error)),
    }
}

/// An error with its causes.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// A client that declares what the person's client declares.
fn client_of(answering: &Arc<Answering>) -> ClientBuilder {
    let declared = answering.bench.person.declared();
    let modern = Mode::Pinned(ProtocolVersion::V2026_07_28);
    let mut client = Client::builder("antiphon-testing", env!("CARGO_PKG_VERSION")).mode(modern);
    if declared.form {
        let asked = answering.clone();
        client = client.on_elicit_form(move |ask| asked.clone().elicited(ElicitAsk::Form(ask)));
    }
    if declared.url {
        let asked = answering.clone();
        client = client.on_elicit_url(move |ask| asked.clone().elicited(ElicitAsk::Url(ask)));
    }
    if declared.sampling {
        let asked = answering.clone();
        client = client.on_sample(move |ask| {
            let request = InputRequest::CreateMessage(Box::new(ask.params));
            std::future::ready(asked.answer(&ask.context.key, &request))
        });
    }
    if declared.sampling_tools {
        client = client.sampling_tools();
    }
    if declared.sampling_context {
        client = client.sampling_context();
    }
    if declared.roots {
        let asked = answering.clone();
        client = client.on_roots(move |ask| {
            let request = InputRequest::ListRoots { meta: None };
            std::future::ready(asked.answer(&ask.context.key, &request))
        });
    }
    client
}

impl Answering {
    async fn elicited(self: Arc<Self>, ask: ElicitAsk) -> Result<ElicitResult, CallbackError> {
        let request = match &ask {
            ElicitAsk::Form(form) => {
                let requested_schema = form.schema.clone();
                ElicitRequest::Form { message: form.message.clone(), requested_schema }
            }
            ElicitAsk::Url(page) => {
                ElicitRequest::Url { message: page.message.clone(), url: page.url.clone() }
            }
        };
        self.answer(&ask.context().key, &InputRequest::Elicit(request))
    }

    fn answer<T: DeserializeOwned>(&self, key: &str, request: &InputRequest) -> Result<T, CallbackError> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.1.push((key.to_owned(), request.kind()));
        let Some(Says { answer, after }) = self.bench.person.answer(key, request, &mut asked.0) else {
            return Err(CallbackError::new(no_answer(key)));
        };
        self.hand.advance(after);
        let Some(answer) = answer else {
            return Err(CallbackError::new(format!(
                "the person leaves `{key}` open, which a client cannot send"
            )));
        };
        Ok(serde_json::from_value(answer)?)
    }
}
