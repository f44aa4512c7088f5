//! Questions: which answers count, which are asked again, and for how long.

use super::*;
use antiphon::{
    Clock,
    server::{Answer, AskError},
    wire::AskSupport,
};
use std::time::Duration;

#[derive(Debug, Deserialize, Form)]
struct Guests {
    #[form(title = "How many", min = 1, max = 9)]
    count: u8,
    name: Option<String>,
}

fn message(reply: &Value, key: &str) -> String {
    reply["result"]["inputRequests"][key]["params"]["message"].as_str().unwrap_or_default().to_owned()
}

fn guests() -> Tool {
    tool!(|ctx| {
        let (guests, place) = tokio::join!(ctx.elicit::<Guests>("Who comes?"), ctx.elicit::<Place>("Where?"));
        let guests = guests?;
        Ok(format!("{} {} {}", guests.count, guests.name.unwrap_or_default(), place?.region))
    })
}

#[tokio::test]
async fn a_bad_answer_is_asked_again_alone_with_the_reason_and_without_the_value() {
    let server = server(guests());
    for bad in [
        accept(json!({"count": 77, "name": "SECRET"})),
        accept(json!({"count": "SECRET"})),
        accept(json!({})),
        accept(json!("SECRET")),
        json!({"action": "SECRET"}),
        json!({"method": "elicitation/create", "result": {"action": "accept", "content": {"count": 1}}}),
        Value::Null,
    ] {
        let mut talk = ToolCall::new(json!({}));
        let both = json!({"guests": bad, "place": place("eu")});
        let reply = legs(&server, &mut talk, &[Value::Null, both]).await;
        assert_eq!(talk.rounds[1..], [["guests"]], "{bad}");
        let text = message(&reply, "guests");
        assert!(text.starts_with("Who comes?\n\n") && text.len() > 13, "{text:?}");
        assert!(!text.contains("SECRET") && !text.contains("77"), "{text}");
        let fixed = accept(json!({"count": 2, "more": 1}));
        assert_eq!(result_text(&talk.leg(&server, json!({"guests": fixed})).await), "2  eu", "{bad}");
    }
}

#[tokio::test]
async fn a_question_is_asked_three_times_for_answers_that_do_not_fit_and_for_legs_without_answers() {
    let server = server(guests());
    let bad = json!({"guests": accept(json!({"count": 0})), "place": place("eu")});
    let (place, none) = (json!({"place": place("eu")}), json!({}));
    let (rule, missing) = ("How many", "No answer to it came.");
    for (answers, why) in [
        ([bad.clone(), bad.clone(), bad.clone()].as_slice(), rule),
        (&[none.clone(), Value::Null, none.clone()], missing),
        (&[bad.clone(), Value::Null, none.clone()], missing),
        (&[Value::Null, none.clone(), bad.clone()], rule),
        // A client may answer one question at a time.
        (&[place.clone(), none.clone(), Value::Null, none.clone()], missing),
        (&[none.clone(), none.clone(), place, bad], rule),
    ] {
        let mut talk = ToolCall::new(json!({}));
        let (last, before) = answers.split_last().unwrap();
        let reply = legs(&server, &mut talk, &[&[Value::Null], before].concat()).await;
        assert_eq!(reply["result"]["resultType"], "input_required", "{answers:?}: {reply}");
        let mut reply = legs(&server, &mut talk, std::slice::from_ref(last)).await;
        if reply["result"]["inputRequests"] == json!({}) {
            // The answer to the other question is recorded, and leaves first.
            reply = legs(&server, &mut talk, &[Value::Null]).await;
        }
        assert_eq!(refused(&reply), (-32602, "limit"), "{answers:?}: {reply}");
        assert_eq!(reply["error"]["data"]["limit"], "times_asked");
        let text = reply["error"]["message"].as_str().unwrap();
        assert!(text.contains("`guests` was asked 3 times") && text.contains(why), "{answers:?}: {text}");
    }
}

/// A form cannot say all that a type does: what the type does not take is asked again as well, and the author is told.
#[tokio::test]
async fn a_number_that_its_type_does_not_take_is_asked_again() {
    #[derive(Deserialize, Form)]
    struct Numbers {
        signed: i64,
        unsigned: u64,
        single: f32,
    }
    let server = server(tool!(|ctx| {
        let Numbers { signed, unsigned, single } = ctx.elicit("Which?").await?;
        Ok(format!("{signed} {unsigned} {single}"))
    }));
    for (content, reason) in [
        (json!({"signed": 1e30, "unsigned": 1, "single": 1}), "Signed must be at most 18446744073709551615."),
        (json!({"signed": 1, "unsigned": 1e19, "single": 1}), "Unsigned must be written in digits only."),
        (
            json!({"signed": -1e30, "unsigned": 1, "single": 1}),
            "Signed must be at least -9223372036854775808.",
        ),
        (json!({"signed": u64::MAX, "unsigned": 1, "single": 1}), "The answer could not be read."),
        (json!({"signed": 1, "unsigned": 1, "single": 1e39}), "The answer could not be read."),
    ] {
        take_log();
        let (mut talk, right) =
            (ToolCall::new(json!({})), json!({"signed": -1, "unsigned": u64::MAX, "single": 0.5}));
        let reply = legs(&server, &mut talk, &[Value::Null, json!({"numbers": accept(content)})]).await;
        let question = &reply["result"]["inputRequests"]["numbers"]["params"]["message"];
        assert_eq!(*question, format!("Which?\n\n{reason}"), "{reply}");
        let log = take_log();
        assert_eq!(log.contains("fits its form but not its type"), reason.starts_with("The answer"), "{log}");
        assert!(!log.contains("18446744073709551615") && !log.contains("1e39"), "{log}");
        let said = result_text(&talk.leg(&server, json!({"numbers": accept(right)})).await);
        assert_eq!(said, "-1 18446744073709551615 0.5");
    }
}

#[tokio::test]
async fn a_question_whose_text_changes_on_each_leg_ends_the_call() {
    static TIMES: AtomicUsize = AtomicUsize::new(0);
    let server = server(tool!(|ctx| {
        Ok(ctx.elicit::<Place>(format!("Where, at {}?", TIMES.fetch_add(1, SeqCst))).await?.region)
    }));
    let mut talk = ToolCall::new(json!({}));
    let given = json!({"place": place("eu")});
    let reply = legs(&server, &mut talk, &[Value::Null, given.clone(), given.clone()]).await;
    assert_eq!(reply["result"]["resultType"], "input_required", "{reply}");
    let reply = talk.leg(&server, given).await;
    assert_eq!(refused(&reply), (-32602, "limit"), "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("changes each time"), "{reply}");
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_never_asked_again() {
    for (action, told) in [("decline", "declined"), ("cancel", "cancelled")] {
        let server = server(tool!(|ctx| {
            let value = match ctx.elicit::<Place>("Where?").outcome().await? {
                Answer::Accept(place) => place.region,
                Answer::Decline => "declined".to_owned(),
                Answer::Cancel => "cancelled".to_owned(),
            };
            let error = ctx.elicit::<Place>("Where else?").key("else").await.unwrap_err();
            assert_eq!(error.key(), "else");
            assert!(matches!(error, AskError::Declined { .. } | AskError::Cancelled { .. }));
            let last: Confirm = ctx.elicit("Sure?").await?;
            Ok(format!("{value} {}", last.ok))
        }));
        let mut talk = ToolCall::new(json!({}));
        let refusal = json!({"action": action, "content": {"region": 1}});
        let answers = json!({"place": refusal, "else": refusal, "confirm": yes()});
        assert_eq!(result_text(&talk.through(&server, &answers).await), format!("{told} true"));
        assert_eq!(talk.rounds, [["place"], ["else"], ["confirm"]]);
    }
}

#[tokio::test]
async fn answers_nobody_asked_for_are_ignored() {
    let server = server(tool!(|ctx| {
        let place: Place = ctx.elicit("Where?").await?;
        let sure: Confirm = ctx.elicit("Sure?").await?;
        Ok(format!("{} {}", place.region, sure.ok))
    }));
    let mut talk = ToolCall::new(json!({}));
    let early = json!({"place": place("early"), "confirm": yes(), "other": 1});
    legs(&server, &mut talk, &[early.clone(), json!({"place": place("eu"), "confirm": yes()})]).await;
    // What was answered stays as it was answered.
    let no = json!({"confirm": accept(json!({"ok": false})), "place": place("late")});
    assert_eq!(result_text(&talk.leg(&server, no).await), "eu false");
    assert_eq!(talk.rounds, [["place"], ["confirm"]]);
}

#[tokio::test]
async fn an_answer_counts_within_its_time_from_the_first_asking() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    for (waits, answer, expected) in [
        (vec![1, 2], place("eu"), "eu"),
        (vec![6], place("eu"), "too late"),
        // Neither a missing answer nor a bad one gives more time.
        (vec![3, 3], place("eu"), "too late"),
    ] {
        for between in [json!({}), json!({"place": accept(json!({"region": 1}))})] {
            let (clock, hand) = Clock::manual(start());
            let tool = tool!(|ctx| {
                let place = ctx.elicit::<Place>("Where?").timeout(Duration::from_secs(300)).await;
                let said = match place {
                    Err(AskError::Expired { key, .. }) => {
                        assert_eq!(key, "place");
                        "too late".to_owned()
                    }
                    place => place?.region,
                };
                // It stays so.
                ctx.elicit::<Confirm>("Sure?").await?;
                Ok(said)
            });
            let server = built(tool, |builder| builder.clock(clock));
            let mut talk = ToolCall::new(json!({}));
            talk.leg(&server, Value::Null).await;
            let (last, first) = waits.split_last().unwrap();
            for wait in first {
                hand.advance(minutes(*wait));
                talk.leg(&server, between.clone()).await;
            }
            hand.advance(minutes(*last));
            talk.leg(&server, json!({"place": answer})).await;
            assert_eq!(
                result_text(&talk.leg(&server, json!({"confirm": yes()})).await),
                expected,
                "{waits:?} {between}"
            );
        }
    }
}

#[tokio::test]
async fn a_fallback_stands_for_a_missing_capability_only() {
    let server = server(tool!(|ctx| {
        let other = Place { region: "default".to_owned() };
        let place = ctx.elicit::<Place>("Where?").or_default(other).await;
        let sure = ctx.elicit::<Confirm>("Sure?").or_refuse("Somebody must say so.").await;
        match (place, sure) {
            (Ok(place), Ok(sure)) => Ok(format!("{} {}", place.region, sure.ok)),
            (Ok(place), Err(refused)) => Ok(format!("{} {refused}", place.region)),
            (Err(refused), _) => Ok(refused.to_string()),
        }
    }));
    let none = declaring(&server, json!({}), None, json!({})).await;
    assert_eq!(result_text(&none), "default Somebody must say so.");
    let declined = json!({"action": "decline"});
    for (answers, expected) in [
        (json!({"place": place("eu"), "confirm": yes()}), "eu true"),
        (
            json!({"place": place("eu"), "confirm": declined}),
            "eu The user declined to answer `confirm`: Sure?",
        ),
        (json!({"place": declined, "confirm": yes()}), "The user declined to answer `place`: Where?"),
    ] {
        assert_eq!(result_text(&ToolCall::new(json!({})).through(&server, &answers).await), expected);
    }
}

#[tokio::test]
async fn what_the_client_can_is_as_it_was_at_first_and_gated_later() {
    let server = server(tool!(|ctx| {
        let first = ctx.can_elicit();
        ctx.checkpoint().now().await;
        let place = ctx.elicit::<Place>("Where?").or_default(Place { region: "default".to_owned() }).await?;
        Ok(format!("{first} {} {}", ctx.can_elicit(), place.region))
    }));
    let (can, cannot) = (json!({"elicitation": {"form": {}}}), json!({}));
    let state = |reply: &Value| state_of(reply);
    // Could not at first: the fallback stays.
    let first = declaring(&server, cannot.clone(), None, json!({})).await;
    let reply = declaring(&server, can.clone(), Some(&state(&first)), json!({})).await;
    assert_eq!(result_text(&reply), "false false default");
    // Could at first: refused later, not sent another way; and the state stays good.
    let first = declaring(&server, can.clone(), None, json!({})).await;
    let reply = declaring(&server, cannot, Some(&state(&first)), json!({})).await;
    assert_eq!(refused(&reply).0, -32021, "{reply}");
    assert_eq!(
        reply["error"]["data"]["requiredCapabilities"],
        json!({"elicitation": {"form": {}}}),
        "{reply}"
    );
    let second = declaring(&server, can.clone(), Some(&state(&first)), json!({})).await;
    let reply = declaring(&server, can, Some(&state(&second)), json!({"place": place("eu")})).await;
    assert_eq!(result_text(&reply), "true true eu");
}

#[tokio::test]
async fn what_a_tool_needs_is_looked_at_before_its_first_line() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let needs = tool!(|ctx| {
        ctx.step("s", async |_| Ok(RUNS.fetch_add(1, SeqCst))).await?;
        Ok(ctx.elicit::<Place>("Where?").await?.region)
    });
    let server = server(needs.needs(AskSupport::FORM));
    assert_eq!(refused(&declaring(&server, json!({"roots": {}}), None, json!({})).await).0, -32021);
    assert_eq!(RUNS.load(SeqCst), 0);
}

#[tokio::test]
async fn seventy_questions_take_two_rounds() {
    let server = server(tool!(|ctx| {
        let asks = (0..70).map(|n| ctx.elicit::<Place>("Where?").nth(n));
        let places: Vec<String> =
            ctx.join_all(asks).await.into_iter().map(|place| Ok(place?.region)).collect::<Result<_>>()?;
        Ok(places.join(","))
    }));
    let key = |n: &usize| format!("place#{n}");
    let all: Vec<String> = (0..70).map(|n| key(&n)).collect();
    let answers: Value = all.iter().map(|key| (key.clone(), place(&key[6..]))).collect();
    let mut talk = ToolCall::new(json!({}));
    let expected: Vec<String> = (0..70).map(|n| n.to_string()).collect();
    assert_eq!(result_text(&talk.through(&server, &answers).await), expected.join(","));
    assert_eq!(talk.rounds, [&all[..64], &all[64..]]);
}
