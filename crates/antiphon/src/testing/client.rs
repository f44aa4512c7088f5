//! Runs a call through a real client.

use super::{
    CallRun, Leg, Outcome, UserAnswer,
    setup::Setup,
    simulation::Simulation,
    user::{AskCounts, no_answer},
};
use crate::{
    client::{
        Call, CallbackError, Client, ClientBuilder, ClientError, Mode, asks::ElicitAsk, transport::memory,
    },
    serve::stdio::serve_streams,
};
use antiphon_wire::{AskKind, ElicitRequest, ElicitResult, InputRequest, ProtocolVersion};
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The scripted user behind the client's callbacks, and a record of the asks.
struct Answering {
    setup: Setup,
    asked: Mutex<(AskCounts, Vec<(String, AskKind)>)>,
    manual_clock: crate::ManualClock,
}

pub(super) async fn run(setup: &Setup, call: &Call) -> CallRun {
    let simulation = Simulation::new(setup, call, false).await;
    let answering = Arc::new(Answering {
        setup: setup.clone(),
        asked: Mutex::default(),
        manual_clock: simulation.manual_clock(),
    });
    let (transport, input, output) = memory::duplex();
    // The client reads no replies after it has closed.
    let serving = serve_streams(input, output, simulation.replica()).drain_timeout(Duration::ZERO);
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
    done(outcome, asked, &simulation)
}

/// The client does not report legs, so the result has one leg with all asks.
fn done(outcome: Outcome, asked: Vec<(String, AskKind)>, simulation: &Simulation<'_>) -> CallRun {
    let legs = vec![Leg { asked, polls: 0 }];
    let (effects, causes) = (simulation.shared.effects.clone(), simulation.shared.causes.take());
    CallRun {
        outcome,
        is_unknown: false,
        has_sessions: false,
        called_again: None,
        legs,
        effects,
        causes,
        fault_occurred: true,
        begun: BTreeMap::new(),
        findings: Vec::new(),
    }
}

fn ended(error: &ClientError) -> Outcome {
    match error.server_error().map(serde_json::to_value) {
        Some(Ok(error)) => Outcome::Error(error),
        _ => Outcome::Stopped(in_full(error)),
    }
}

/// Returns the text of an error and of its sources.
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

/// Builds a client with the capabilities that the scripted user declares.
fn client_of(answering: &Arc<Answering>) -> ClientBuilder {
    let declared = answering.setup.user.declared();
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
        client = client.sampling_tools(true);
    }
    if declared.sampling_context {
        client = client.sampling_context(true);
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
            other => {
                let text = format!("the scripted user does not know this kind of ask: {other:?}");
                return Err(CallbackError::new(text));
            }
        };
        self.answer(&ask.context().key, &InputRequest::Elicit(request))
    }

    fn answer<T: DeserializeOwned>(&self, key: &str, request: &InputRequest) -> Result<T, CallbackError> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.1.push((key.to_owned(), request.kind()));
        let Some(UserAnswer { answer, after }) = self.setup.user.next_answer(key, request, &mut asked.0)
        else {
            return Err(CallbackError::new(no_answer(key)));
        };
        self.manual_clock.advance(after);
        let Some(answer) = answer else {
            return Err(CallbackError::new(format!(
                "the scripted user leaves `{key}` unanswered, which a client cannot send"
            )));
        };
        Ok(serde_json::from_value(answer)?)
    }
}
