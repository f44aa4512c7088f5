//! Property: any bytes parse as a message or are refused with one of two codes; a parsed message is equal after writing and
//! parsing.

#![no_main]

use antiphon_wire::{
    CallToolParams, CallToolResult, Incoming, InputRequiredResult, Outcome, RequestMeta, write_error,
    write_notification, write_request, write_result,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Incoming::parse(bytes) {
        Ok(message) => {
            decode(&message);
            let again = write(&message);
            let read = Incoming::parse(&again).map_err(|fault| fault.error);
            assert_eq!(write(&read.expect("what was written is a message")), again);
        }
        Err(unreadable) => assert!([-32700, -32600].contains(&unreadable.error.code.0)),
    }
});

/// Decodes the content, as a server or client does. Any outcome is allowed.
fn decode(message: &Incoming<'_>) {
    match message {
        Incoming::Request(request) => {
            if let Some(params) = request.params {
                let _ = serde_json::from_str::<CallToolParams>(params.get());
                let _ = serde_json::from_str::<RequestMeta<'_>>(params.get());
            }
        }
        Incoming::Response(response) => {
            let Ok(result) = &response.outcome else { return };
            if let Ok(Outcome::InputRequired(result)) = Outcome::<CallToolResult>::read(result) {
                check_asks(&result);
            }
        }
        Incoming::Notification(_) => {}
    }
}

/// Asks that were read are the same asks when they are written and read again.
fn check_asks(result: &InputRequiredResult) {
    let text = serde_json::value::to_raw_value(result).expect("what was read can be written");
    let again = Outcome::<CallToolResult>::read(&text).expect("what was written can be read");
    let Outcome::InputRequired(again) = again else { panic!("asks stay asks") };
    assert_eq!(again.request_state(), result.request_state());
    let keys = |result: &InputRequiredResult| -> Vec<String> {
        result.input_requests().iter().map(|(key, ask)| format!("{key} {:?}", ask.kind())).collect()
    };
    assert_eq!(keys(&again), keys(result));
}

fn write(message: &Incoming<'_>) -> Vec<u8> {
    let written = match message {
        Incoming::Request(request) => write_request(&request.id, &request.method, &request.params),
        Incoming::Notification(message) => write_notification(&message.method, &message.params),
        Incoming::Response(response) => match (&response.id, &response.outcome) {
            (Some(id), Ok(result)) => write_result(id, result),
            (id, Err(error)) => Ok(write_error(id.as_ref(), error)),
            (None, Ok(_)) => panic!("a result without an id"),
        },
    };
    written.expect("what was read can be written")
}
