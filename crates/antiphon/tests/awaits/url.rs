//! URLs asked with `await`: the reference in them, the page behind them, and the wait for what happens there.

use crate::common::tool_call::*;
use crate::common::{log::take_log, *};
use antiphon::{
    Clock, Form, Result,
    seal::{Codec, CodecError, Principal},
    server::{
        Answer, AskError, Ctx, NoArguments, Server, ServerBuilder, Tool,
        asks::{UrlRef, UrlRefError},
        operations::ReplayCheck,
    },
    wire::sampling::SamplingMessage,
};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

const LINE: &str = "This is not finished yet. Finish it behind the link, then continue here.";
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Deserialize, Form)]
struct Place {
    region: String,
}

/// A server with this tool, under the name `t`.
fn server(tool: Tool) -> Server {
    changed(tool, |builder| builder)
}

fn changed(tool: Tool, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    // The tests count how often a handler runs.
    let builder = Server::builder("await", "1").tool(tool).keys(ring(7)).replay_check(ReplayCheck::Off);
    change(builder).build().unwrap()
}

/// A tool named `t` that captures something.
fn tool<F>(run: F) -> Tool
where
    F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String, AskError>> + Send + Sync + 'static,
{
    Tool::new("t", run)
}

/// A tool that asks for consent, and nothing else.
fn consent() -> Tool {
    Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<&'static str> {
        ctx.elicit_url("Connect?", |r| format!("https://page.example/{r}")).await?;
        Ok("connected")
    })
}

/// The params of the question with this key.
fn asked<'v>(reply: &'v Value, key: &str) -> &'v Value {
    let params = &reply["result"]["inputRequests"][key]["params"];
    assert!(params.is_object(), "`{key}` is not asked: {reply}");
    params
}

/// The reference in the URL of the question with this key.
fn reference(reply: &Value, key: &str) -> String {
    let url = asked(reply, key)["url"].as_str().unwrap();
    url.strip_prefix("https://page.example/").unwrap().to_owned()
}

fn agreed() -> Value {
    json!({"url": {"action": "accept"}})
}

fn call() -> Value {
    json!({"name": "t", "arguments": {}})
}

#[tokio::test]
async fn the_url_is_the_same_on_every_leg_and_instance() {
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let make = || {
        let shown = Arc::clone(&shown);
        server(tool(move |ctx, _| {
            let shown = Arc::clone(&shown);
            Box::pin(async move {
                let alice = ctx.scope("alice");
                let url = |r: &UrlRef| {
                    shown.lock().unwrap().push(r.to_string());
                    format!("https://page.example/{r}")
                };
                alice.elicit_url("Connect?", url).nth(2).await?;
                Ok(ctx.elicit::<Place>("Where?").await?.region)
            })
        }))
    };
    let mut talk = ToolCall::new(json!({}));
    let first = talk.leg(&make(), Value::Null).await;
    let text = reference(&first, "alice/url#2");
    assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{text}");
    // Without an answer it is asked again.
    let again = talk.leg(&make(), Value::Null).await;
    assert_eq!(asked(&again, "alice/url#2"), asked(&first, "alice/url#2"));
    talk.leg(&make(), json!({"alice/url#2": {"action": "accept"}})).await;
    let place = json!({"place": accept(json!({"region": "eu"}))});
    assert_eq!(result_text(&talk.leg(&make(), place).await), "eu");
    assert_eq!(talk.rounds, [["alice/url#2"], ["alice/url#2"], ["place"]]);
    assert_eq!(*shown.lock().unwrap(), vec![text.clone(); 4]);
    // The page may be behind any instance.
    let seen = UrlRef::verify(&make(), &text, None).unwrap();
    assert_eq!(seen.key(), "alice/url#2");
}

#[tokio::test]
async fn the_url_has_the_id_of_its_call() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        // The closure is called once in a leg, so that it may move what it holds.
        let page = String::from("https://page.example/");
        ctx.elicit_url("Connect?", |r| page + r.as_str()).await?;
        Ok(ctx.call_id().expect("a second leg").to_string())
    }));
    let mut talk = ToolCall::new(json!({}));
    let first = talk.leg(&server, Value::Null).await;
    let seen = UrlRef::verify(&server, &reference(&first, "url"), None).unwrap();
    assert_eq!(result_text(&talk.leg(&server, agreed()).await), seen.call_id().to_string());
}

/// The person who opens the page must be the caller, with any client.
#[tokio::test]
async fn the_person_who_opens_it_is_the_one_who_was_asked() {
    let server = changed(consent(), |builder| builder.bind_principal(by_header).allow_client_principal(true));
    let issuer = "https://issuer.example";
    let user = |name: &str| Principal::user(name).with_issuer(issuer);
    let check = async |caller: Option<&str>, visitor: Option<Principal>, counts: bool| {
        let (_, reply) = send(Over::Http, &server, &request(1, "tools/call", call()), caller).await;
        let verified = UrlRef::verify(&server, &reference(&reply, "url"), visitor.as_ref());
        assert_eq!(verified.is_ok(), counts, "{caller:?} {visitor:?} {verified:?}");
    };
    check(Some("alice@app"), Some(user("alice")), true).await;
    check(Some("alice@app"), Some(user("alice").with_client_id("app")), true).await;
    check(Some("alice@app"), Some(user("alice").with_client_id("browser")), true).await;
    check(Some("alice@app"), Some(user("bob").with_client_id("app")), false).await;
    check(Some("alice@app"), Some(Principal::user("alice")), false).await;
    check(Some("alice@app"), Some(Principal::user("alice").with_issuer("https://other.example")), false)
        .await;
    check(Some("alice@app"), Some(Principal::client("app").with_issuer(issuer)), false).await;
    check(Some("alice@app"), None, false).await;
    check(Some("app"), Some(Principal::client("app")), true).await;
    check(Some("app"), Some(Principal::client("other")), false).await;
    check(Some("app"), Some(Principal::user("alice")), false).await;
    check(None, None, true).await;
    check(None, Some(user("alice")), false).await;
}

#[tokio::test]
async fn a_reference_of_elsewhere_or_a_changed_one_does_not_count() {
    let ours = server(consent());
    let text = reference(&ToolCall::new(json!({})).leg(&ours, Value::Null).await, "url");
    let refused = |server: &Server, text: &str, what: &str| {
        assert_eq!(UrlRef::verify(server, text, None), Err(UrlRefError), "{what}");
    };
    assert!(UrlRef::verify(&ours, &text, None).is_ok());
    refused(&changed(consent(), |builder| builder.keys(ring(8))), &text, "other keys");
    refused(&changed(consent(), |builder| builder.audience("another")), &text, "another audience");
    for at in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        refused(&ours, &String::from_utf8(changed).unwrap(), &format!("changed at {at}"));
        refused(&ours, &text[..at], &format!("cut at {at}"));
    }
    refused(&ours, &format!("{text}A"), "longer");
    assert_eq!(UrlRefError.to_string(), "This link is not valid or has expired.");
}

#[tokio::test]
async fn a_reference_ends_after_a_day_or_with_its_call() {
    let check = async |call_timeout: Option<Duration>, good_for: Duration| {
        let (clock, hand) = Clock::manual(start());
        let server = changed(consent(), |builder| match call_timeout {
            Some(time) => builder.clock(clock).call_timeout(time),
            None => builder.clock(clock),
        });
        let text = reference(&ToolCall::new(json!({})).leg(&server, Value::Null).await, "url");
        hand.advance(good_for);
        assert!(UrlRef::verify(&server, &text, None).is_ok(), "{call_timeout:?}");
        hand.advance(Duration::from_secs(1));
        assert_eq!(UrlRef::verify(&server, &text, None), Err(UrlRefError), "{call_timeout:?}");
    };
    check(None, DAY).await;
    check(Some(HOUR), HOUR).await;
    check(Some(2 * DAY), DAY).await;
}

#[tokio::test]
async fn a_question_that_is_asked_after_its_reference_ended_has_a_new_one() {
    let (clock, hand) = Clock::manual(start());
    let server = changed(consent(), |builder| builder.clock(clock).answer_timeout(3 * DAY));
    let mut talk = ToolCall::new(json!({}));
    let first = reference(&talk.leg(&server, Value::Null).await, "url");
    hand.advance(DAY);
    assert_eq!(reference(&talk.leg(&server, Value::Null).await, "url"), first);
    hand.advance(HOUR);
    let mut late = ToolCall::new(json!({}));
    late.state = talk.state.clone();
    let second = reference(&talk.leg(&server, Value::Null).await, "url");
    assert_eq!(UrlRef::verify(&server, &first, None), Err(UrlRefError));
    assert!(UrlRef::verify(&server, &second, None).is_ok());
    assert_eq!(result_text(&talk.leg(&server, agreed()).await), "connected");
    // An answer to the first belongs to it.
    assert_eq!(result_text(&late.leg(&server, agreed()).await), "connected");
}

#[tokio::test]
async fn a_reference_is_no_state_and_a_state_no_reference() {
    let server = server(consent());
    let first = ToolCall::new(json!({})).leg(&server, Value::Null).await;
    let forged = with(
        &call(),
        json!({"requestState": reference(&first, "url"), "inputResponses": {"url": {"action": "accept"}}}),
    );
    for over in [Over::Http, Over::Stdio] {
        let (_, reply) = send(over, &server, &request(1, "tools/call", forged.clone()), None).await;
        let frozen = json!({
            "code": -32602,
            "message": "Invalid or expired requestState",
            "data": {"reason": "invalid_request_state"},
        });
        assert_eq!(reply["error"], frozen);
    }
    assert_eq!(UrlRef::verify(&server, &state_of(&first), None), Err(UrlRefError));
}

/// A "key management service" that gives its plaintext, in this spelling.
struct TextCodec(fn(&[u8]) -> String, fn(&str) -> Vec<u8>);

impl Codec for TextCodec {
    fn seal(&self, plaintext: &[u8]) -> std::result::Result<String, CodecError> {
        Ok((self.0)(plaintext))
    }

    fn open(&self, token: &str) -> std::result::Result<Vec<u8>, CodecError> {
        Ok((self.1)(token))
    }
}

#[tokio::test]
async fn a_codec_must_give_what_can_stand_in_a_url() {
    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len() / 2)
            .filter_map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok())
            .collect()
    }
    let plain = changed(consent(), |builder| builder.codec(Box::new(TextCodec(hex, unhex))));
    let text = reference(&ToolCall::new(json!({})).leg(&plain, Value::Null).await, "url");
    assert!(UrlRef::verify(&plain, &text, None).is_ok());
    assert_eq!(UrlRef::verify(&plain, &text[2..], None), Err(UrlRefError));
    let slashed = TextCodec(|bytes| format!("a/{}", hex(bytes)), |text| unhex(&text[2..]));
    let slashed = changed(consent(), |builder| builder.codec(Box::new(slashed)));
    let reply = ToolCall::new(json!({})).leg(&slashed, Value::Null).await;
    assert_eq!(reply["error"]["code"], -32603, "{reply}");
}

/// A payment, and the number of times that it was looked up.
#[derive(Clone, Default)]
struct CashRegister(Arc<(AtomicBool, AtomicUsize)>);

impl CashRegister {
    fn pay(&self) {
        self.0.0.store(true, Ordering::Relaxed);
    }

    async fn is_paid(&self) -> bool {
        self.0.1.fetch_add(1, Ordering::Relaxed);
        self.0.0.load(Ordering::Relaxed)
    }

    /// Returns the number of look-ups since the last call of this function.
    fn looks(&self) -> usize {
        self.0.1.swap(0, Ordering::Relaxed)
    }
}

/// A tool that waits until it is paid, and then asks where.
fn paying(till: &CashRegister) -> Server {
    let till = till.clone();
    server(tool(move |ctx, _| {
        let till = till.clone();
        Box::pin(async move {
            ctx.elicit_url("Pay.", |r| format!("https://page.example/{r}")).until(|| till.is_paid()).await?;
            Ok(ctx.elicit::<Place>("Where?").await?.region)
        })
    }))
}

/// The number of looks in 20 seconds: at once, after 250 and 750 milliseconds, and then every second.
const LOOKS: usize = 22;

#[tokio::test(start_paused = true)]
async fn what_is_not_finished_is_asked_again_and_once_it_is_nobody_looks_again() {
    let till = CashRegister::default();
    let mut talk = ToolCall::new(json!({}));
    let first = talk.leg(&paying(&till), Value::Null).await;
    assert_eq!((till.looks(), asked(&first, "url")["message"].as_str()), (0, Some("Pay.")));
    // More often than a question is asked whose answers do not fit.
    for _ in 0..5 {
        let began = tokio::time::Instant::now();
        let again = talk.leg(&paying(&till), agreed()).await;
        assert_eq!((till.looks(), began.elapsed().as_secs()), (LOOKS, 20));
        assert_eq!(reference(&again, "url"), reference(&first, "url"));
        assert_eq!(asked(&again, "url")["message"], format!("Pay.\n\n{LINE}"));
    }
    till.pay();
    talk.leg(&paying(&till), agreed()).await;
    assert_eq!((talk.rounds.last().unwrap(), till.looks()), (&vec!["place".to_owned()], 1));
    let place = json!({"place": accept(json!({"region": "eu"}))});
    talk.leg(&paying(&till), Value::Null).await;
    assert_eq!(result_text(&talk.leg(&paying(&till), place).await), "eu");
    assert_eq!(till.looks(), 0);
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_as_soon_as_it_is_finished() {
    let till = CashRegister::default();
    let server = paying(&till);
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&server, Value::Null).await;
    let began = tokio::time::Instant::now();
    tokio::join!(talk.leg(&server, agreed()), async {
        tokio::time::sleep(Duration::from_millis(5100)).await;
        till.pay();
    });
    assert_eq!(talk.rounds, [["url"], ["place"]]);
    assert_eq!(began.elapsed().as_millis(), 5750);
}

/// > When the client retries the original request, the server determines [...] whether the out-of-band interaction has
/// > completed
#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_without_an_answer_is_looked_after_once() {
    let till = CashRegister::default();
    let server = paying(&till);
    let mut talk = ToolCall::new(json!({}));
    // Nobody has agreed yet: there is nothing to look at.
    for _ in 0..2 {
        talk.leg(&server, Value::Null).await;
        assert_eq!(till.looks(), 0);
    }
    talk.leg(&server, agreed()).await;
    assert_eq!(till.looks(), LOOKS);
    let began = tokio::time::Instant::now();
    let again = talk.leg(&server, Value::Null).await;
    assert_eq!((till.looks(), began.elapsed()), (1, Duration::ZERO));
    assert_eq!(asked(&again, "url")["message"], format!("Pay.\n\n{LINE}"));
    till.pay();
    talk.leg(&server, Value::Null).await;
    assert_eq!((talk.rounds.last().unwrap(), till.looks()), (&vec!["place".to_owned()], 1));
    let place = json!({"place": accept(json!({"region": "eu"}))});
    assert_eq!((result_text(&talk.leg(&server, place).await).as_str(), till.looks()), ("eu", 0));
}

#[tokio::test(start_paused = true)]
async fn asking_again_ends_with_the_legs_of_the_call() {
    let server = paying(&CashRegister::default());
    let mut talk = ToolCall::new(json!({}));
    let reply = talk.through(&server, &agreed()).await;
    assert_eq!(reply["error"]["data"], json!({"reason": "limit", "limit": "legs"}), "{reply}");
    assert_eq!(talk.rounds.len(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_counts_whenever_it_comes() {
    let till = CashRegister::default();
    let server = paying(&till);
    for (action, said_then) in [
        ("decline", "The user declined to answer `url`: Pay."),
        ("cancel", "The user dismissed `url` without an answer: Pay."),
    ] {
        for agreed_before in [false, true] {
            let mut talk = ToolCall::new(json!({}));
            talk.leg(&server, Value::Null).await;
            if agreed_before {
                talk.leg(&server, agreed()).await;
            }
            till.looks();
            let reply = talk.leg(&server, json!({"url": {"action": action}})).await;
            assert_eq!(
                (result_text(&reply).as_str(), &reply["result"]["isError"]),
                (said_then, &json!(true))
            );
            assert_eq!(till.looks(), 0);
        }
    }
}

#[tokio::test]
async fn a_refusal_can_be_had_as_a_value() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let inner = ctx.scope("inner");
        let answer = inner.elicit_url("Pay.", |r| format!("https://page.example/{r}")).outcome().await?;
        let again = inner.elicit_url("Pay?", |r| format!("https://page.example/{r}")).key("again").await;
        Ok(format!("{answer:?} {}", again.expect_err("declined").key()))
    }));
    for (action, answer) in
        [("accept", Answer::Accept(())), ("decline", Answer::Decline), ("cancel", Answer::Cancel)]
    {
        let answers = json!({"inner/url": {"action": action}, "inner/again": {"action": "decline"}});
        let reply = ToolCall::new(json!({})).through(&server, &answers).await;
        assert_eq!(result_text(&reply), format!("{answer:?} inner/again"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_fails_counts_as_not_yet() {
    static LOOKS: AtomicUsize = AtomicUsize::new(0);
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<&'static str> {
        let look = async || match LOOKS.fetch_add(1, Ordering::Relaxed) {
            0..3 => Err("the provider is down")?,
            looks => Ok(looks == 4),
        };
        ctx.elicit_url("Pay.", |r| format!("https://page.example/{r}")).until(look).await?;
        Ok("paid")
    }));
    assert_eq!(result_text(&ToolCall::new(json!({})).through(&server, &agreed()).await), "paid");
    assert_eq!(LOOKS.load(Ordering::Relaxed), 5);
}

/// The compiler infers the error of a check, as it infers that of a step, whatever `?` takes there.
#[tokio::test(start_paused = true)]
async fn the_error_of_a_check_is_inferred() {
    async fn text() -> std::result::Result<bool, String> {
        Ok(true)
    }
    async fn foreign() -> std::io::Result<Option<bool>> {
        Ok(None)
    }
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<&'static str> {
        let page =
            |key: &'static str| ctx.elicit_url("Pay.", |r| format!("https://page.example/{r}")).key(key);
        let by_match = page("match").until(async || match ctx.call_id() {
            Some(_) => Ok(foreign().await?.is_none()),
            None => Ok(false),
        });
        let by_text = page("text").until(async || Ok(text().await?));
        let by_parse = page("parse").until(async || Ok("7".parse::<u32>()? == 7));
        let by_value = page("value").until(async || true);
        tokio::try_join!(by_match, by_text, by_parse, by_value)?;
        Ok("paid")
    }));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&server, Value::Null).await;
    let accept = json!({"action": "accept"});
    let agreed = json!({"match": accept, "text": accept, "parse": accept, "value": accept});
    let end = talk.leg(&server, agreed).await;
    assert!(end.to_string().contains("paid"), "{end}");
}

/// A check that hangs ends with the leg's time limit, and a check that takes part in the call is the author's fault.
#[tokio::test(start_paused = true)]
async fn a_check_looks_and_does_nothing_else() {
    let hangs = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<&'static str> {
        let asked = ctx.elicit_url("Pay.", |r| format!("https://page.example/{r}"));
        asked.until(std::future::pending::<bool>).await?;
        Ok("paid")
    }));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&hangs, Value::Null).await;
    let again = talk.leg(&hangs, agreed()).await;
    assert_eq!(asked(&again, "url")["message"], format!("Pay.\n\n{LINE}"));

    let acts = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<&'static str> {
        let asked = ctx.elicit_url("Pay.", |r| format!("https://page.example/{r}"));
        asked.until(async || Ok(ctx.step("look", async |_| Ok(true)).await?)).await?;
        Ok("paid")
    }));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&acts, Value::Null).await;
    assert_eq!(talk.leg(&acts, agreed()).await["error"]["code"], -32603);
}

/// Other questions do not wait for a person who pays.
#[tokio::test(start_paused = true)]
async fn a_question_beside_the_wait_leaves_at_once() {
    let till = CashRegister::default();
    let server = {
        let till = till.clone();
        server(tool(move |ctx, _| {
            let till = till.clone();
            Box::pin(async move {
                let paid = ctx.elicit_url("Pay.", |r| format!("https://page.example/{r}"));
                let (paid, place) =
                    tokio::join!(paid.until(|| till.is_paid()), ctx.elicit::<Place>("Where?"));
                paid?;
                Ok(place?.region)
            })
        }))
    };
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&server, Value::Null).await;
    let began = tokio::time::Instant::now();
    talk.leg(&server, agreed()).await;
    assert_eq!((till.looks(), began.elapsed().as_millis()), (1, 50));
    let place = json!({"place": accept(json!({"region": "eu"}))});
    talk.leg(&server, place).await;
    assert_eq!(till.looks(), LOOKS);
    till.pay();
    assert_eq!(result_text(&talk.leg(&server, agreed()).await), "eu");
    assert_eq!(talk.rounds, [vec!["url", "place"], vec!["place"], vec!["url"]]);
}

#[tokio::test(start_paused = true)]
async fn who_takes_too_long_is_too_late_on_every_leg() {
    for comes_late in [false, true] {
        too_late(comes_late).await;
    }
}

/// Later than the deadline the answer comes, or else the end of the wait.
async fn too_late(comes_late: bool) {
    let looks = Runs::default();
    let (clock, hand) = Clock::manual(start());
    let tool = {
        let (looks, moved) = (Arc::clone(&looks), hand.clone());
        tool(move |ctx, _| {
            let (looks, hand) = (Arc::clone(&looks), moved.clone());
            Box::pin(async move {
                let look = async || {
                    // Time goes on while somebody looks; and later on it would be finished.
                    hand.advance(Duration::from_secs(60));
                    looks.fetch_add(1, Ordering::SeqCst) > 100
                };
                let asked = ctx.elicit_url("Pay.", |r| format!("https://page.example/{r}"));
                let error = asked.timeout(HOUR).until(look).await.expect_err("nobody pays");
                ctx.elicit::<Place>("Where?").await?;
                Ok(error.to_string())
            })
        })
    };
    let server = changed(tool, |builder| builder.clock(clock).answer_timeout(DAY));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&server, Value::Null).await;
    // 22 minutes each: the hour counts from the first time it was asked.
    for _ in 0..2 {
        talk.leg(&server, agreed()).await;
    }
    if comes_late {
        hand.advance(Duration::from_secs(17 * 60));
    }
    talk.leg(&server, agreed()).await;
    assert_eq!(talk.rounds, [["url"], ["url"], ["url"], ["place"]]);
    let looked = runs(&looks);
    assert_eq!(looked, if comes_late { 2 * LOOKS } else { 3 * LOOKS });
    let place = json!({"place": accept(json!({"region": "eu"}))});
    assert_eq!(result_text(&talk.leg(&server, place).await), "The user did not answer `url` in time");
    assert_eq!(runs(&looks), looked);
}

/// A finished payment does not answer a question about another payment.
#[tokio::test(start_paused = true)]
async fn what_is_asked_about_something_else_is_looked_at_anew() {
    static PAYMENT: AtomicUsize = AtomicUsize::new(1);
    let till = CashRegister::default();
    let server = {
        let till = till.clone();
        server(tool(move |ctx, _| {
            let till = till.clone();
            Box::pin(async move {
                let payment = PAYMENT.load(Ordering::Relaxed);
                let asked = ctx.elicit_url("Pay.", |r| format!("https://page.example/{r}?payment={payment}"));
                asked.until(|| till.is_paid()).await?;
                Ok(ctx.elicit::<Place>("Where?").await?.region)
            })
        }))
    };
    till.pay();
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&server, Value::Null).await;
    talk.leg(&server, agreed()).await;
    assert_eq!(till.looks(), 1);
    PAYMENT.store(2, Ordering::Relaxed);
    talk.leg(&server, Value::Null).await;
    talk.leg(&server, agreed()).await;
    assert_eq!(till.looks(), 1);
    assert_eq!(talk.rounds, [["url"], ["place"], ["url"], ["place"]]);
}

#[tokio::test]
async fn only_https_and_the_loopback_interface() {
    let check = async |url: &'static str, fault: &str| {
        let server = server(tool(move |ctx, _| {
            Box::pin(async move {
                // A finished text.
                let url = format!("{url}{}", "");
                ctx.elicit_url("Pay.", move |_| url).await?;
                Ok("paid".to_owned())
            })
        }));
        take_log();
        let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
        if fault.is_empty() {
            assert_eq!(asked(&reply, "url"), &json!({"mode": "url", "message": "Pay.", "url": url}));
        } else {
            assert_eq!(reply["error"], json!({"code": -32603, "message": "Internal error"}), "{url}");
            let log = take_log();
            assert!(log.contains(fault), "{url}: {log}");
        }
    };
    check("https://page.example/pay", "").await;
    check("http://localhost:8000/pay", "").await;
    check("http://127.0.0.1/pay", "").await;
    check("http://[::1]:80/pay", "").await;
    for scheme in ["http://page.example/pay", "http://localhost.page.example/pay", "ftp://page.example/pay"] {
        check(scheme, "https://, or http:// on the loopback interface").await;
    }
    for text in [
        "javascript:alert(1)",
        "https:///pay",
        "/pay",
        "pay",
        "page.example/pay",
        "",
        "https://page.example/pay here",
    ] {
        check(text, "not a URL").await;
    }
    for secret in ["https://ann:secret@page.example/pay", "http://localhost@page.example/pay"] {
        check(secret, "must not hold a user name or a password").await;
    }
}

#[tokio::test]
async fn a_client_that_opens_no_urls_is_not_asked() {
    let ask = async |tool: Tool, declared: Value| {
        let mut meta = meta();
        meta["io.modelcontextprotocol/clientCapabilities"] = declared;
        let message = request(1, "tools/call", with(&call(), json!({"_meta": meta})));
        send(Over::Http, &server(tool), &message, None).await
    };
    for declared in [json!({"elicitation": {"form": {}}}), json!({"elicitation": {}}), json!({})] {
        let (status, reply) = ask(consent(), declared.clone()).await;
        assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32021)), "{reply}");
        let required = json!({"requiredCapabilities": {"elicitation": {"url": {}}}});
        assert_eq!(reply["error"]["data"], required, "{declared}");
        let gives_up = Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<&'static str> {
            let asked = ctx.elicit_url("Pay.", |_| unreachable!("nobody can be asked"));
            asked.or_refuse("Pay in the shop.").until(async || true).await?;
            Ok("paid")
        });
        let (status, reply) = ask(gives_up, declared).await;
        assert_eq!((status, result_text(&reply).as_str()), (200, "Pay in the shop."));
    }
    let (_, reply) = ask(consent(), json!({"elicitation": {"url": {}}})).await;
    reference(&reply, "url");
}

#[tokio::test(start_paused = true)]
async fn four_kinds_leave_in_one_round_in_source_order() {
    let till = CashRegister::default();
    let server = {
        let till = till.clone();
        server(tool(move |ctx, _| {
            let till = till.clone();
            Box::pin(async move {
                let (place, paid, message, roots) = tokio::join!(
                    ctx.elicit::<Place>("Where?"),
                    ctx.elicit_url("Pay.", |_| "https://page.example/pay".to_owned())
                        .until(|| till.is_paid()),
                    ctx.sample([SamplingMessage::user("Hello.")], 5),
                    ctx.roots(),
                );
                paid?;
                Ok(format!("{} {} {}", place?.region, message?.model, roots?.len()))
            })
        }))
    };
    let message = request(1, "tools/call", call()).to_string();
    let reply = server.respond(message.as_bytes(), &Default::default()).await.unwrap();
    let reply = String::from_utf8(reply.body).unwrap();
    let round = concat!(
        r#""inputRequests":{"#,
        r#""place":{"method":"elicitation/create","params":{"mode":"form","message":"Where?","requestedSchema":"#,
        r#"{"type":"object","properties":{"region":{"type":"string","title":"Region"}},"required":["region"]}}},"#,
        r#""url":{"method":"elicitation/create","params":{"mode":"url","message":"Pay.","url":"https://page.example/pay"}},"#,
        r#""sample":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":"#,
        r#"{"type":"text","text":"Hello."}}],"maxTokens":5}},"#,
        r#""roots":{"method":"roots/list"}}"#,
    );
    assert!(reply.contains(round), "{reply}");

    let answers = json!({
        "place": accept(json!({"region": "eu"})),
        "url": {"action": "accept"},
        "sample": {"role": "assistant", "content": {"type": "text", "text": "Hi."}, "model": "m"},
        "roots": {"roots": []},
    });
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&server, Value::Null).await;
    // The others are kept while it is not paid.
    talk.leg(&server, answers.clone()).await;
    till.pay();
    assert_eq!(result_text(&talk.leg(&server, agreed()).await), "eu m 0");
    assert_eq!(talk.rounds, [vec!["place", "url", "sample", "roots"], vec!["url"]]);
}
