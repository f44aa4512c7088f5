//! A server writes only valid messages for any input: answers to requests of the input, and the messages of a session
//! if one began.

#![no_main]

use antiphon::{
    serve::stdio::serve_streams,
    server::{Ask, Ctx, NoArguments, Reply, Server, Tool},
    wire::{
        forms::{FormField, FormSchema},
        messages::Incoming,
    },
};
use antiphon_fuzz::{block_on, count_requests, messages, server};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use std::{collections::HashMap, sync::LazyLock};
use tokio::io::{AsyncReadExt as _, duplex};

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let echo = Tool::new("echo", async |ctx: &Ctx, arguments: Map<String, Value>| {
        ctx.report_progress(1.0, None, None);
        Value::from(arguments).to_string()
    });
    let ask = Tool::new("ask", async |ctx: &Ctx, _: NoArguments| {
        let form = Ask::form("region", "Which region?", FormSchema::new(vec![FormField::text("region")]));
        Ok::<_, antiphon::Error>(match ctx.by_hand().form::<Map<String, Value>>(&form)? {
            None => Reply::from(form),
            Some(answer) => Reply::Complete(Value::from(answer.accepted().unwrap_or_default()).to_string()),
        })
    });
    server().list_changed(true).tool(echo).tool(ask).build().expect("two tools")
});

fuzz_target!(|input: &[u8]| {
    let written = block_on(async {
        // Space for all replies, because the output is read at the end.
        let (output, mut reader) = duplex(16 << 20);
        serve_streams(input, output, SERVER.clone()).await.expect("streams that do not fail");
        let mut written = Vec::new();
        reader.read_to_end(&mut written).await.expect("streams that do not fail");
        written
    });
    let mut asked: HashMap<String, usize> = HashMap::new();
    for line in input.split(|byte| *byte == b'\n') {
        count_requests(line, &mut asked);
    }
    if written.is_empty() {
        return;
    }
    let lines = written.strip_suffix(b"\n").expect("the last line ends too");
    for line in lines.split(|byte| *byte == b'\n') {
        for message in messages(line) {
            match Incoming::parse(message).expect("only messages go out") {
                Incoming::Response(response) => {
                    let id = response.id.as_ref().map_or("null".to_owned(), ToString::to_string);
                    let left = asked.get_mut(&id).unwrap_or_else(|| panic!("there is no request {id}"));
                    *left = left.checked_sub(1).unwrap_or_else(|| panic!("{id} is answered twice"));
                }
                // The questions and notifications of a session, and the progress of requests.
                Incoming::Request(request) => assert_eq!(request.method, "elicitation/create"),
                Incoming::Notification(notification) => {
                    assert!(notification.method.starts_with("notifications/"))
                }
            }
        }
    }
});
