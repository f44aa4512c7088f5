//! Attacks on states as a whole: which refusal is which, rotation, random edits of a good leg, many calls at once.

use crate::common::{gate::soon, *};
use antiphon::{
    Clock, ManualClock,
    seal::{KeyRing, SecretKey},
    serve::{
        http::{HttpOptions, HttpService},
        stdio::serve_streams,
    },
    server::{Ask, Caller, Ctx, Prompt, Reply, ResourceTemplate, Server, Tool},
    wire::{
        content::ResourceContents,
        forms::{FormField, FormSchema},
    },
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// Status, headers and body of a retry over HTTP.
async fn whole(fixture: &Fixture, retry: &Value, user: Option<&str>) -> String {
    let service = HttpService::new(fixture.server.clone(), HttpOptions::default());
    let mut request = post::correct(retry);
    if let Some(user) = user {
        request.headers_mut().insert("x-user", user.parse().unwrap());
    }
    let got = post::post(&service, request).await;
    let headers: BTreeMap<String, String> =
        got.headers.iter().map(|(name, value)| (name.to_string(), format!("{value:?}"))).collect();
    format!("{} {headers:?} {:?}", got.status, got.body)
}

#[tokio::test]
async fn every_cause_has_the_same_refusal() {
    let fixture =
        fixture(|builder| builder.bind_principal(by_header).call_timeout(Duration::from_secs(3000)));
    let params = json!({"name": "ask", "arguments": {"name": "orders"}});
    let (_, first) =
        send(Over::Http, &fixture.server, &request(1, "tools/call", params.clone()), Some("a@b")).await;
    let state = state_of(&first);
    let retry = |state: Value, more: Value| {
        let retry = with(&params, json!({"requestState": state, "inputResponses": answers()}));
        request(7, "tools/call", with(&retry, more))
    };
    let none = || json!({});
    let flipped = state.replace(&state[40..44], "AAAA");
    let mut seen = Vec::new();
    for (what, retry, user, seconds) in [
        ("malformed", retry(json!("x"), none()), Some("a@b"), 0),
        ("no string", retry(json!([1]), none()), Some("a@b"), 0),
        ("too long", retry(json!("x".repeat(300_000)), none()), Some("a@b"), 0),
        ("unknown key", retry(json!(state.replace("r1.", "r1.AAAAAAAA")), none()), Some("a@b"), 0),
        ("changed", retry(json!(flipped), none()), Some("a@b"), 0),
        ("another principal", retry(json!(state), none()), Some("c@b"), 0),
        ("no principal", retry(json!(state), none()), None, 0),
        ("no subject", retry(json!(state), none()), Some("b"), 0),
        ("a failing binder", retry(json!(state), none()), Some("?"), 0),
        ("other arguments", retry(json!(state), json!({"arguments": {"name": "x"}})), Some("a@b"), 0),
        ("another tool", retry(json!(state), json!({"name": "other"})), Some("a@b"), 0),
        ("one that does not ask", retry(json!(state), json!({"name": "echo"})), Some("a@b"), 0),
        ("bad answers beside", retry(json!("x"), json!({"inputResponses": 7})), Some("a@b"), 0),
        ("bad arguments beside", retry(json!("x"), json!({"arguments": {}})), Some("a@b"), 0),
        ("expired", retry(json!(state), none()), Some("a@b"), 700),
        ("after the deadline", retry(json!(state), none()), Some("a@b"), 3100),
    ] {
        fixture.clock.advance(Duration::from_secs(seconds));
        seen.push((what, whole(&fixture, &retry, user).await));
        fixture.clock.turn_back(Duration::from_secs(seconds));
    }
    for (what, answer) in &seen {
        assert!(
            answer.starts_with("400 ") && answer.contains("Invalid or expired requestState"),
            "{what}: {answer}"
        );
        assert_eq!(*answer, seen[0].1, "{what} is not {}", seen[0].0);
    }
    assert_eq!(runs(&fixture.runs), 1);
}

/// Two instances, always one step apart, through all three phases; calls that began before a step end after it.
#[tokio::test]
async fn keys_rotate_without_losing_a_call() {
    let (old, new): ([u8; 32], [u8; 32]) = ([1; 32], [2; 32]);
    let server = |keys: &[[u8; 32]]| {
        let keys = keys.iter().map(|key| SecretKey::from_bytes(*key)).collect();
        fixture(|builder| builder.keys(KeyRing::new(keys).unwrap()))
    };
    let params = json!({"name": "ask", "arguments": {"name": "orders"}});
    for (from, to, fits) in [
        (&[old][..], &[old, new][..], true),
        (&[old, new], &[old], true),
        (&[old, new], &[new, old], true),
        (&[new, old], &[old, new], true),
        (&[new, old], &[new], true),
        (&[new], &[new, old], true),
        // A phase left out, or ended before the longest lifetime has passed.
        (&[old], &[new], false),
        (&[new, old], &[old], false),
        (&[old, new], &[new], false),
    ] {
        let (first, second) = (server(from), server(to));
        let (_, reply) =
            send(Over::Http, &first.server, &request(1, "tools/call", params.clone()), None).await;
        let retry = with(&params, json!({"requestState": state_of(&reply), "inputResponses": answers()}));
        let (_, reply) = send(Over::Http, &second.server, &request(2, "tools/call", retry), None).await;
        assert_eq!(reply["result"]["content"][0]["text"] == "in eu", fits, "{from:?} {to:?}: {reply}");
        assert_eq!(runs(&second.runs), usize::from(fits));
    }
}

/// The input of each run of a handler: its argument, and the answer, if the handler received one.
type Record = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// A tool, a prompt and a template that record what they are run with.
fn recording() -> (Server, Record, ManualClock) {
    let (clock, hand) = Clock::manual(start());
    let record = Record::default();
    macro_rules! recorder {
        ($args:ty, $name:expr, $made:expr) => {{
            let record = record.clone();
            move |ctx: &Ctx, args: $args| {
                let answer =
                    ctx.by_hand().form::<Region>(&region()).unwrap().map(|answer| match answer.accepted() {
                        Some(form) => form.region,
                        None => "no".to_owned(),
                    });
                let name: String = $name(args);
                record.lock().unwrap().push((name.clone(), answer.clone()));
                async move {
                    match answer {
                        None => Reply::from(region()),
                        Some(answer) => Reply::Complete($made(format!("{name} in {answer}"))),
                    }
                }
            }
        }};
    }
    let of_map = |map: Map<String, Value>| map["id"].as_str().unwrap().to_owned();
    let contents = |text: String| ResourceContents::text("rec://x", text);
    let server = Server::builder("recorder", "1")
        .clock(clock)
        .keys(ring(3))
        .tool(Tool::new("rec", recorder!(Named, |named: Named| named.name, |text: String| text)))
        .prompt(Prompt::new("rec", recorder!(Named, |named: Named| named.name, |text: String| text)))
        .template(ResourceTemplate::new("rec://{id}", "rec", recorder!(Map<String, Value>, of_map, contents)))
        .build()
        .unwrap();
    (server, record, hand)
}

fn first_legs() -> [(&'static str, Value); 3] {
    [
        ("tools/call", json!({"name": "rec", "arguments": {"name": "orders"}})),
        ("prompts/get", json!({"name": "rec", "arguments": {"name": "orders"}})),
        ("resources/read", json!({"uri": "rec://orders"})),
    ]
}

/// Every place in a JSON value.
fn places(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            places(value, &format!("{here}/{name}"), found);
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| places(item, &format!("{here}/{at}"), found));
        }
        _ => {}
    }
}

/// One random edit: at a place, what.
fn edit(message: &mut Value, place: usize, what: usize) {
    let mut found = Vec::new();
    places(message, "", &mut found);
    let path = &found[place % found.len()];
    let palette = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1.5e300),
        json!(""),
        json!("orders"),
        json!("\u{0}é"),
        json!([]),
        json!({}),
        json!({"action": "accept", "content": {"region": "us"}}),
        json!({"action": "decline"}),
        json!("r1."),
        json!([{}]),
        json!("tools/call"),
        json!("prompts/get"),
        json!("2025-11-25"),
        json!({"name": "orders"}),
        json!({"name": "other"}),
    ];
    let Some(value) = message.pointer_mut(path) else { return };
    match (what % (palette.len() + 4), &mut *value) {
        (0, Value::String(text)) => text.push('A'),
        (0, Value::Object(members)) => drop(members.insert("more".into(), json!(1))),
        (1, Value::String(text)) => drop(text.pop()),
        (1, Value::Object(members)) => members.clear(),
        (2, Value::Object(members)) => {
            if let Some(name) = members.keys().next().cloned() {
                let value = members.remove(&name).unwrap();
                members.insert(name.to_uppercase(), value);
            }
        }
        (3, _) => {
            if let Some((parent, name)) = path.rsplit_once('/')
                && let Some(Value::Object(members)) = message.pointer_mut(parent)
            {
                members.remove(&name.replace("~1", "/").replace("~0", "~"));
            }
        }
        (other, value) => *value = palette[other % palette.len()].clone(),
    }
}

/// Sends what became of a good second leg. Whatever it is: a defined reply, and no handler that sees an answer runs
/// with other arguments, or with an answer that is not in the message.
async fn check_spoiled(kind: usize, spoil: impl FnOnce(Value) -> Vec<u8>) {
    let (server, record, _clock) = recording();
    let (method, params) = first_legs()[kind % 3].clone();
    let caller = Caller::default();
    let first = request(1, method, params.clone()).to_string();
    let first: Value =
        serde_json::from_slice(&server.respond(first.as_bytes(), &caller).await.unwrap().body).unwrap();
    let retry = with(&params, json!({"requestState": state_of(&first), "inputResponses": answers()}));
    let message = spoil(request(2, method, retry));
    record.lock().unwrap().clear();
    let reply = server.respond(&message, &caller).await;
    let sent: Value = serde_json::from_slice(&message).unwrap_or_default();
    for (name, answer) in record.lock().unwrap().iter() {
        let Some(answer) = answer else { continue };
        let given = &sent["params"]["inputResponses"]["region"];
        let given = given["content"]["region"].as_str().unwrap_or("no");
        assert_eq!((name.as_str(), answer.as_str()), ("orders", given), "{sent}");
    }
    let Some(reply) = reply else {
        assert!(record.lock().unwrap().is_empty(), "a notification ran a handler: {sent}");
        return;
    };
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    match body["error"]["code"].as_i64() {
        None => assert!(body["result"]["resultType"].is_string(), "{body}"),
        Some(code) => {
            assert!([-32700, -32600, -32601, -32602, -32021, -32022].contains(&code), "{body} for {sent}");
            assert!(record.lock().unwrap().is_empty() || code == -32021, "a handler ran before {body}");
        }
    }
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_leg_that_was_edited_as_json(kind in 0..3_usize, edits in proptest::collection::vec((0..60_usize, 0..22_usize), 1..4)) {
        block_on(check_spoiled(kind, |mut message| {
            edits.iter().for_each(|(place, what)| edit(&mut message, *place, *what));
            message.to_string().into_bytes()
        }));
    }

    /// Bytes changed, cut out, and said twice: duplicate names among them.
    #[test]
    fn a_leg_that_was_edited_as_bytes(
        kind in 0..3_usize,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4_u8, any::<u8>()), 1..3),
    ) {
        block_on(check_spoiled(kind, |message| {
            let mut bytes = message.to_string().into_bytes();
            for (one, other, what, byte) in &edits {
                if bytes.is_empty() { break }
                let (a, b) = (one.index(bytes.len()), other.index(bytes.len()));
                let (from, to) = (a.min(b), a.max(b));
                match what {
                    0 => bytes[from] = *byte,
                    1 => drop(bytes.drain(from..to)),
                    2 => { let part = bytes[from..to].to_vec(); drop(bytes.splice(to..to, part)); }
                    _ => bytes.insert(from, *byte),
                }
            }
            bytes
        }));
    }
}

/// A hundred calls of two rounds each on one pair of streams, every leg of all under way at once, in changing order.
#[tokio::test]
async fn a_hundred_calls_on_one_stream_do_not_mix() {
    const CALLS: u64 = 100;
    let ask = |n: &str, round: &str| {
        Ask::form(round, format!("{n}?"), FormSchema::new(vec![FormField::text("region")]))
    };
    let tool = Tool::new("rounds", move |ctx: &Ctx, named: Named| {
        let (first, second) = (ask(&named.name, "one"), ask(&named.name, "two"));
        let found = (
            ctx.by_hand().form::<Region>(&first),
            ctx.by_hand().form::<Region>(&second),
            ctx.by_hand().state().map(str::to_owned),
        );
        async move {
            // Others go on meanwhile.
            tokio::task::yield_now().await;
            Ok::<_, antiphon::Error>(match (found.0?, found.1?, found.2) {
                (Some(answer), _, _) => {
                    let state = answer.accepted().map_or_else(String::new, |form| form.region);
                    antiphon::server::asks::InputRequired::ask(second).with_state(state).into()
                }
                (None, Some(answer), Some(state)) => {
                    let region = answer.accepted().map_or_else(String::new, |form| form.region);
                    Reply::Complete(format!("{} {state} {region}", named.name))
                }
                _ => Reply::from(first),
            })
        }
    });
    let fixture = fixture(|builder| builder.tool(tool));
    let (ours, theirs) = tokio::io::duplex(1 << 14);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(serve_streams(input, output, fixture.server));
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let mut states: BTreeMap<u64, Value> = BTreeMap::new();
    for round in 1..=3_u64 {
        let messages: Vec<String> = (0..CALLS)
            .map(|n| (n * 37 + round) % CALLS)
            .map(|n| {
                let mut params = json!({"name": "rounds", "arguments": {"name": format!("call-{n}")}});
                if let Some(state) = states.get(&n) {
                    let key = if round == 2 { "one" } else { "two" };
                    let answer = json!({"action": "accept", "content": {"region": format!("{key}-{n}")}});
                    params = with(&params, json!({"requestState": state, "inputResponses": {key: answer}}));
                }
                request(u32::try_from(round * 1000 + n).unwrap(), "tools/call", params).to_string() + "\n"
            })
            .collect();
        let sending = async {
            for message in &messages {
                write.write_all(message.as_bytes()).await.unwrap();
            }
        };
        let receiving = async {
            for _ in 0..CALLS {
                let line = lines.next_line().await.unwrap().unwrap();
                let reply: Value = serde_json::from_str(&line).unwrap();
                let n = reply["id"].as_u64().unwrap() - round * 1000;
                if round < 3 {
                    let asked = &reply["result"]["inputRequests"][if round == 1 { "one" } else { "two" }];
                    assert_eq!(asked["params"]["message"], format!("call-{n}?"), "{reply}");
                    states.insert(n, reply["result"]["requestState"].clone());
                } else {
                    let expected = format!("call-{n} one-{n} two-{n}");
                    assert_eq!(reply["result"]["content"][0]["text"], expected, "{reply}");
                }
            }
        };
        soon(async { tokio::join!(sending, receiving) }).await;
    }
    // The state of one call is no other's.
    let params = json!({"name": "rounds", "arguments": {"name": "call-1"}, "requestState": states[&2]});
    write.write_all((request(1, "tools/call", params).to_string() + "\n").as_bytes()).await.unwrap();
    let reply = soon(lines.next_line()).await.unwrap().unwrap();
    assert!(reply.contains("invalid_request_state"), "{reply}");
    serving.abort();
}
