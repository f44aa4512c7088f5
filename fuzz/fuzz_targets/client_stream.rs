//! A client writes only valid messages to any server, of any revision: requests with unique ids, and at most one answer
//! to each request of the server. Each call ends.

#![no_main]

use antiphon::{
    client::{Client, Mode, transport::StreamTransport},
    wire::{ProtocolVersion, RequestId, SubscriptionFilter, messages::Incoming, sampling::ListRootsResult},
};
use antiphon_fuzz::{block_on, messages};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, json};
use std::{collections::HashMap, time::Duration};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};

/// The lines of the server.
struct Script<'a> {
    lines: std::slice::Split<'a, u8, fn(&u8) -> bool>,
    /// The id of the client's last request, as JSON.
    id: String,
    /// The ids of the client's requests.
    seen: Vec<RequestId>,
    /// The number of answers that each request of the server may still receive.
    asked: HashMap<RequestId, usize>,
}

fuzz_target!(|input: (u8, &[u8])| {
    let (mode, lines) = input;
    block_on(async {
        let (reader, to_client) = duplex(64 * 1024);
        let (writer, from_client) = duplex(64 * 1024);
        let transport = StreamTransport::new(reader, writer, "scripted");
        let modes = [Mode::Auto, Mode::Pinned(ProtocolVersion::V2026_07_28), Mode::Legacy];
        let mode = modes[usize::from(mode % 3)].clone();
        let client = Client::builder("fuzzer", "1")
            .mode(mode)
            .on_elicit_form(async |ask| {
                let filled = ask.schema.fields().iter().map(|field| (field.name.clone(), json!("text")));
                Ok(ask.accept(Map::from_iter(filled)).unwrap_or_else(|_| ask.decline()))
            })
            .on_elicit_url(async |ask| Ok(ask.consent()))
            .on_roots(async |_| Ok(ListRootsResult::new(Vec::new())))
            .on_progress(|_| ())
            .on_log(|_| ())
            .connect(transport);
        let lines = lines.split((|byte| *byte == b'\n') as fn(&u8) -> bool);
        let script = Script { lines, id: "1".to_owned(), seen: Vec::new(), asked: HashMap::new() };
        let calls = async {
            let _ = client.list_tools().await;
            let _ = client.call_tool("echo", json!({"text": "x"})).await;
            let _ = client.read_resource("test://resource").await;
            let mut subscription = client.listen(SubscriptionFilter::new().tools());
            let _ = tokio::time::timeout(Duration::from_secs(5), subscription.next()).await;
            client.close().await;
        };
        // Every wait of the client has a time limit.
        let calls = tokio::time::timeout(Duration::from_secs(60 * 60), calls);
        let (ended, ()) = tokio::join!(calls, script.run(from_client, to_client));
        ended.expect("a call ends");
    });
});

impl Script<'_> {
    async fn run(mut self, from_client: DuplexStream, mut to_client: DuplexStream) {
        let mut from_client = BufReader::new(from_client).lines();
        while let Some(line) = from_client.next_line().await.expect("a client writes UTF-8") {
            self.check_message(line.as_bytes());
            // A line that ends with `+` is followed by the next line at once.
            while let Some(line) = self.lines.next() {
                let (line, more) = line.strip_suffix(b"+").map_or((line, false), |line| (line, true));
                let id = self.id.as_bytes();
                let line: Vec<u8> = line
                    .iter()
                    .flat_map(|byte| if *byte == b'@' { id.to_vec() } else { vec![*byte] })
                    .collect();
                for message in messages(&line) {
                    if let Ok(Incoming::Request(request)) = Incoming::parse(message) {
                        *self.asked.entry(request.id).or_default() += 1;
                    }
                }
                // The client may have closed the stream.
                let _ = to_client.write_all(&[&line[..], b"\n"].concat()).await;
                if !more {
                    break;
                }
            }
        }
    }

    fn check_message(&mut self, line: &[u8]) {
        match Incoming::parse(line).expect("a client writes only messages") {
            Incoming::Request(request) => {
                assert!(!self.seen.contains(&request.id), "the id {} is used twice", request.id);
                self.id = serde_json::to_string(&request.id).expect("an id is JSON");
                self.seen.push(request.id);
            }
            Incoming::Response(response) => {
                let id = response.id.expect("an answer has an id");
                let left = self.asked.get_mut(&id).unwrap_or_else(|| panic!("there is no request {id}"));
                *left = left.checked_sub(1).unwrap_or_else(|| panic!("{id} is answered twice"));
            }
            Incoming::Notification(notification) => {
                assert!(notification.method.starts_with("notifications/"))
            }
        }
    }
}
