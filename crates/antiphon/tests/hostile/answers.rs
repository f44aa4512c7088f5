//! Attacks on answers: unasked, of another leg, of another kind, one by one, under a reworded question.

use crate::common::*;
use antiphon::{
    server::{Ask, Ctx, Reply, Tool, asks::InputRequired},
    wire::{
        forms::{FormField, FormSchema},
        sampling::{CreateMessageParams, SamplingMessage},
    },
};
use serde_json::{Map, Value, json};

/// One ask of each kind, under keys whose order is neither that of the alphabet nor that of the kinds.
fn everything() -> [Ask; 4] {
    let question = CreateMessageParams::new(vec![SamplingMessage::user("Capital of France?")], 9);
    [
        Ask::url("z", "Open it?", "https://pay.example/1"),
        region(),
        Ask::sample("a", question),
        Ask::roots("m"),
    ]
}

/// The answers to [`everything`], in its order.
fn all_answers() -> [(&'static str, Value); 4] {
    let text = json!({"type": "text", "text": "Paris"});
    [
        ("z", json!({"action": "accept"})),
        ("region", json!({"action": "accept", "content": {"region": "eu"}})),
        ("a", json!({"role": "assistant", "content": text, "model": "m1"})),
        ("m", json!({"roots": [{"uri": "file:///here"}]})),
    ]
}

/// `all` asks [`everything`] at once; `each` asks six forms at once.
fn asking() -> Fixture {
    fixture(|builder| {
        let all = Tool::new("all", async |ctx: &Ctx, _: Named| {
            let [url, form, sample, roots] = everything();
            let found = (
                ctx.by_hand().url(&url),
                ctx.by_hand().form::<Region>(&form)?,
                ctx.by_hand().sampled(&sample),
                ctx.by_hand().listed_roots(&roots),
            );
            Ok::<_, antiphon::Error>(match found {
                (Some(url), Some(form), Some(sampled), Some(roots)) => Reply::Complete(format!(
                    "{} {} {} {}",
                    url.accepted().is_some(),
                    form.accepted().map_or("-".to_owned(), |form| form.region),
                    sampled.content.first_text().unwrap_or("-"),
                    roots.roots.len()
                )),
                _ => InputRequired::ask(url).and(form).and(sample).and(roots).into(),
            })
        });
        let each = Tool::new("each", async |ctx: &Ctx, _: Named| {
            let asks = six();
            let regions: Vec<String> = (asks.iter())
                .filter_map(|ask| ctx.by_hand().form::<Region>(ask).ok()??.accepted().map(|form| form.region))
                .collect();
            let mut asks = asks.into_iter();
            match asks.next().filter(|_| regions.is_empty()) {
                Some(first) => Reply::from(asks.fold(InputRequired::ask(first), InputRequired::and)),
                None => Reply::Complete(regions.join(",")),
            }
        });
        builder.tool(all).tool(each)
    })
}

fn six() -> Vec<Ask> {
    let schema = || FormSchema::new(vec![FormField::text("region")]);
    (1..=6).map(|n| Ask::form(format!("q{n}"), format!("Question {n}?"), schema())).collect()
}

/// Sends a leg of a tool: with the state of the reply before, if any, and with these answers.
async fn leg(fixture: &Fixture, tool: &str, before: Option<&Value>, answers: Value) -> Value {
    let mut params = json!({"name": tool, "arguments": {"name": "orders"}});
    if let Some(before) = before {
        params = with(&params, json!({"requestState": state_of(before), "inputResponses": answers}));
    }
    send(Over::Http, &fixture.server, &request(1, "tools/call", params), None).await.1
}

fn keys(reply: &Value) -> Vec<String> {
    reply["result"]["inputRequests"].as_object().unwrap().keys().cloned().collect()
}

#[tokio::test]
async fn a_round_leaves_in_the_order_of_the_handler() {
    let server = asking().server;
    let message = request(1, "tools/call", json!({"name": "all", "arguments": {"name": "x"}})).to_string();
    let reply = server.respond(message.as_bytes(), &Default::default()).await.unwrap();
    let text = String::from_utf8(reply.body).unwrap();
    let places: Vec<usize> = ["\"z\":{", "\"region\":{\"method", "\"a\":{", "\"m\":{"]
        .map(|key| text.find(key).unwrap_or_else(|| panic!("{key} in {text}")))
        .into();
    assert!(places.is_sorted(), "{places:?} in {text}");
}

/// Every subset of the answers first, then the rest, while those already given come again, changed.
#[tokio::test]
async fn what_is_missing_is_asked_again_and_what_was_given_stays() {
    let fixture = asking();
    for subset in 0..15_u8 {
        let of = |wanted: bool| -> Map<String, Value> {
            let chosen = all_answers().into_iter().enumerate();
            let chosen = chosen.filter(|(bit, _)| (subset >> bit & 1 == 1) == wanted);
            chosen.map(|(_, (key, answer))| (key.to_owned(), answer)).collect()
        };
        let reply = leg(&fixture, "all", None, json!(null)).await;
        let reply = leg(&fixture, "all", Some(&reply), of(true).into()).await;
        let mut missing: Vec<String> = of(false).keys().cloned().collect();
        missing.sort();
        assert_eq!(keys(&reply), missing, "{subset:04b}");
        let mut rest = of(false);
        for key in of(true).keys() {
            rest.insert(key.clone(), json!({"action": "decline", "roots": []}));
        }
        let reply = leg(&fixture, "all", Some(&reply), rest.into()).await;
        assert_eq!(reply["result"]["content"][0]["text"], "true eu Paris 1", "{subset:04b}: {reply}");
    }
}

#[tokio::test]
async fn one_declined_is_an_answer_beside_the_others() {
    let fixture = asking();
    for (key, expected) in [("z", "false eu Paris 1"), ("region", "true - Paris 1")] {
        let reply = leg(&fixture, "all", None, json!(null)).await;
        let mut answers: Map<String, Value> =
            all_answers().into_iter().map(|(key, answer)| (key.to_owned(), answer)).collect();
        answers.insert(key.to_owned(), json!({"action": "decline", "content": {"region": "forced"}}));
        let reply = leg(&fixture, "all", Some(&reply), answers.into()).await;
        assert_eq!(reply["result"]["content"][0]["text"], expected, "{key}: {reply}");
    }
}

#[tokio::test]
async fn the_answer_of_another_kind_never_counts() {
    let fixture = asking();
    for (place, (key, _)) in all_answers().into_iter().enumerate() {
        for (other, (_, wrong)) in all_answers().into_iter().enumerate() {
            // A form's answer fits a URL: its content is dropped. And an empty accept is a URL's alone.
            if place == other || (place, other) == (0, 1) {
                continue;
            }
            let reply = leg(&fixture, "all", None, json!(null)).await;
            let mut answers: Map<String, Value> =
                all_answers().into_iter().map(|(key, answer)| (key.to_owned(), answer)).collect();
            answers.insert(key.to_owned(), wrong);
            let reply = leg(&fixture, "all", Some(&reply), answers.into()).await;
            assert_eq!(keys(&reply), [key], "{place} {other}");
        }
    }
}

/// > the server **SHOULD** respond with a new `InputRequiredResult` requesting the missing information again, rather
/// > than returning an error.
#[tokio::test]
async fn questions_may_be_answered_one_a_leg() {
    let fixture = asking();
    let mut reply = leg(&fixture, "each", None, json!(null)).await;
    for n in 1..=6 {
        assert_eq!(keys(&reply).len(), 7 - n, "{reply}");
        let key = format!("q{n}");
        let answers = json!({key: {"action": "accept", "content": {"region": format!("r{n}")}}});
        reply = leg(&fixture, "each", Some(&reply), answers).await;
    }
    assert_eq!(reply["result"]["content"][0]["text"], "r1,r2,r3,r4,r5,r6");
}

/// A tool of two rounds whose questions have one key, and which tells what it saw.
fn two_rounds() -> Fixture {
    fixture(|builder| {
        builder.tool(Tool::new("two", async |ctx: &Ctx, _: Named| {
            let schema = || FormSchema::new(vec![FormField::text("region")]);
            let (first, second) = (Ask::form("q", "First?", schema()), Ask::form("q", "Second?", schema()));
            assert!(
                ctx.leg() == 1 || ctx.by_hand().unverified_responses().is_none(),
                "unasked answers on a later leg"
            );
            if let Some(answer) = ctx.by_hand().form::<Region>(&first)? {
                let state = answer.accepted().map_or_else(|| "none".to_owned(), |form| form.region);
                return Ok(Reply::from(InputRequired::ask(second).with_state(state)));
            }
            let seen: Vec<String> = ctx.by_hand().input_responses().map(|(key, _)| key.to_owned()).collect();
            Ok::<_, antiphon::Error>(match ctx.by_hand().form::<Region>(&second)? {
                Some(answer) => Reply::Complete(format!(
                    "{} {} {}",
                    ctx.by_hand().state().unwrap_or("-"),
                    answer.accepted().map_or_else(|| "none".to_owned(), |form| form.region),
                    seen.join(",")
                )),
                None => first.into(),
            })
        }))
    })
}

#[tokio::test]
async fn an_older_state_only_ever_brings_back_its_own_questions() {
    let fixture = two_rounds();
    let say =
        |region: &str| json!({"q": {"action": "accept", "content": {"region": region}}, "x": {"roots": []}});
    let first = leg(&fixture, "two", None, json!(null)).await;
    let second = leg(&fixture, "two", Some(&first), say("a")).await;
    let message = |reply: &Value| reply["result"]["inputRequests"]["q"]["params"]["message"].clone();
    assert_eq!((message(&first), message(&second)), (json!("First?"), json!("Second?")));
    // The answer meant for the second question, under the first one's state, answers the first one.
    let replayed = leg(&fixture, "two", Some(&first), say("b")).await;
    assert_eq!(message(&replayed), "Second?");
    for (state, expected) in [(&second, "a c q"), (&replayed, "b c q"), (&second, "a c q")] {
        let reply = leg(&fixture, "two", Some(state), say("c")).await;
        assert_eq!(reply["result"]["content"][0]["text"], expected);
    }
}

#[tokio::test]
async fn unverified_answers_are_met_on_first_legs_only_and_by_name_only() {
    let fixture = fixture(|builder| {
        builder.tool(Tool::new("tell", async |ctx: &Ctx, _: Named| {
            let unverified = ctx.by_hand().unverified_responses().map(|all| {
                assert_eq!(format!("{all:?}"), "Unverified(..)");
                all.trust_without_verification().len()
            });
            let verified = ctx.by_hand().input_responses().len();
            let text = format!(
                "{} {verified} {unverified:?} {}",
                ctx.leg(),
                ctx.by_hand().form::<Region>(&region())?.is_some()
            );
            Ok::<_, antiphon::Error>(match ctx.leg() {
                1 if unverified.is_none() => Reply::from(InputRequired::state_only(text)),
                _ => Reply::Complete(text),
            })
        }))
    });
    let params = json!({"name": "tell", "arguments": {"name": "orders"}});
    for (responses, state, expected) in [
        (answers(), json!(null), "1 0 Some(1) false"),
        (json!({"region": null}), json!(null), "1 0 Some(1) false"),
    ] {
        let params = with(&params, json!({"inputResponses": responses, "requestState": state}));
        let (_, reply) = send(Over::Http, &fixture.server, &request(1, "tools/call", params), None).await;
        assert_eq!(reply["result"]["content"][0]["text"], expected);
    }
    for nothing in [json!({}), json!(null)] {
        let first = with(&params, json!({"inputResponses": nothing}));
        let (_, reply) = send(Over::Http, &fixture.server, &request(1, "tools/call", first), None).await;
        let reply = leg(&fixture, "tell", Some(&reply), answers()).await;
        assert_eq!(reply["result"]["content"][0]["text"], "2 0 None false");
    }
}

/// Two versions of a tool behind one key: the new one words the question differently, and charges once it is agreed.
#[tokio::test]
async fn a_reworded_question_is_asked_again_and_nothing_is_done_on_the_old_answer() {
    let version = |number: u32, message: &'static str| {
        let charged = Runs::default();
        let counted = charged.clone();
        let tool = Tool::new("pay", move |ctx: &Ctx, _: Named| {
            let ask = Ask::form("ok", message, FormSchema::new(vec![FormField::boolean("ok")]));
            let answer = ctx.by_hand().form::<Map<String, Value>>(&ask);
            if matches!(answer, Ok(Some(_))) {
                counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
            async move {
                Ok::<_, antiphon::Error>(match answer? {
                    None => Reply::from(ask),
                    Some(_) => Reply::Complete("paid"),
                })
            }
        });
        (fixture(|builder| builder.tool(tool.version(number))), charged)
    };
    let ((old, _), (new, charged)) = (version(1, "Pay 5 EUR?"), version(2, "Pay 50 EUR?"));
    let yes = json!({"ok": {"action": "accept", "content": {"ok": true}}});
    let asked = leg(&old, "pay", None, json!(null)).await;
    let again = leg(&new, "pay", Some(&asked), yes.clone()).await;
    assert_eq!(again["result"]["inputRequests"]["ok"]["params"]["message"], "Pay 50 EUR?");
    assert_eq!(runs(&charged), 0);
    let paid = leg(&new, "pay", Some(&again), yes).await;
    assert_eq!((paid["result"]["content"][0]["text"].as_str(), runs(&charged)), (Some("paid"), 1));
}

#[tokio::test]
async fn what_cannot_be_asked_is_an_internal_error_and_no_round() {
    let form = |key: &str| Ask::form(key, "?", FormSchema::new(vec![FormField::text("region")]));
    let twice = FormSchema::new(vec![FormField::text("a"), FormField::text("a")]);
    for (what, asks) in [
        ("one key twice", vec![form("k"), Ask::roots("k")]),
        ("no key", vec![form("")]),
        ("a long key", vec![form(&"k".repeat(65))]),
        ("a slash", vec![form("a/b")]),
        ("a number sign", vec![form("a#1")]),
        ("a space", vec![form("a b")]),
        ("not ASCII", vec![form("é")]),
        ("one field twice", vec![Ask::form("k", "?", twice)]),
        ("plain http", vec![Ask::url("k", "?", "http://pay.example/")]),
        ("no host", vec![Ask::url("k", "?", "https:///x")]),
        ("a script", vec![Ask::url("k", "?", "javascript:alert(1)")]),
        ("a file", vec![Ask::url("k", "?", "file:///etc/passwd")]),
        ("65 asks", (0..65).map(|n| form(&format!("k{n}"))).collect()),
    ] {
        let fixture = fixture(|builder| {
            builder.tool(Tool::new("bad", move |_: &Ctx, _: Named| {
                let mut asks = asks.clone().into_iter();
                let first = InputRequired::ask(asks.next().unwrap());
                let all = asks.fold(first, InputRequired::and);
                async move { Reply::<String>::from(all) }
            }))
        });
        let reply = leg(&fixture, "bad", None, json!(null)).await;
        assert_eq!(reply["error"], json!({"code": -32603, "message": "Internal error"}), "{what}: {reply}");
    }
}
