//! Steps: what is run, what is remembered, and under which key.

use super::*;
use antiphon::{
    Error,
    server::{Ask, Reply, Retry, StepError, asks::InputRequired, steps::Attempt},
};
use serde::Serialize;
use std::time::Duration;

/// Counts the runs of a step, and their keys.
#[derive(Default)]
struct Runs(Mutex<Vec<String>>);

impl Runs {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn note(&self, attempt: &Attempt) -> usize {
        let mut keys = self.0.lock().unwrap();
        keys.push(attempt.key().to_owned());
        keys.len()
    }

    /// Its runs, which were all under one key.
    fn count(&self) -> usize {
        let keys = self.0.lock().unwrap();
        assert!(keys.windows(2).all(|two| two[0] == two[1]), "{keys:?}");
        assert!(keys.iter().all(|key| key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit())));
        keys.len()
    }
}

#[tokio::test]
async fn a_pinned_step_counts_for_its_input_only() {
    static INPUT: AtomicUsize = AtomicUsize::new(1);
    let server = server(tool!(|ctx| {
        let id = ctx.step_with("make", &INPUT.load(SeqCst), async |_| ok("made").await).await?;
        ctx.elicit::<Confirm>("Sure?").await?;
        Ok(id)
    }));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&server, Value::Null).await;
    INPUT.store(2, SeqCst);
    take_log();
    let reply = talk.leg(&server, json!({"confirm": yes()})).await;
    assert_eq!(refused(&reply), (-32603, "flow_diverged"), "{reply}");
    assert!(take_log().contains("its input has changed"));
    INPUT.store(1, SeqCst);
    assert_eq!(result_text(&talk.leg(&server, json!({"confirm": yes()})).await), "made");
}

/// A `HashMap` gives its members in another order each time.
#[tokio::test]
async fn a_pinned_input_is_the_same_in_any_order() {
    let server = server(tool!(|ctx| {
        let rates: std::collections::HashMap<String, u8> = (0..32).map(|n| (format!("r{n}"), n)).collect();
        let sum: u32 = ctx.step_with("sum", &(rates, "x"), async |_| Ok((0..32).sum())).await?;
        ctx.elicit::<Confirm>("Sure?").await?;
        Ok(sum.to_string())
    }));
    let mut talk = ToolCall::new(json!({}));
    assert_eq!(result_text(&talk.through(&server, &json!({"confirm": yes()})).await), "496");
}

#[tokio::test]
async fn nothing_new_runs_while_a_recorded_step_is_not_met() {
    static OTHER: AtomicUsize = AtomicUsize::new(0);
    static NEW: Runs = Runs::new();
    let server = server(tool!(|ctx| {
        let key = if OTHER.load(SeqCst) == 0 { "create" } else { "create_db" };
        let caught = ctx.step(key, async |s| Ok(NEW.note(&s))).await;
        ctx.elicit::<Confirm>("Sure?").await?;
        Ok(format!("{}", caught.is_ok()))
    }));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&server, Value::Null).await;
    OTHER.store(1, SeqCst);
    let reply = talk.leg(&server, json!({"confirm": yes()})).await;
    assert_eq!((refused(&reply), NEW.count()), ((-32603, "flow_diverged"), 1));
    OTHER.store(0, SeqCst);
    assert_eq!(result_text(&talk.leg(&server, json!({"confirm": yes()})).await), "true");
}

#[tokio::test]
async fn a_failed_branch_and_a_step_that_was_done_beside_it_are_met_again() {
    static RUNS: Runs = Runs::new();
    let server = server(tool!(|ctx| {
        let fails = ctx.step("fails", async |_| {
            tokio::task::yield_now().await;
            Err::<(), Error>(Error::user_facing("no"))
        });
        let works = ctx.step("works", async |s| Ok(RUNS.note(&s)));
        let failed = tokio::try_join!(fails, works).unwrap_err();
        ctx.elicit::<Confirm>("Sure?").await?;
        let later: String = ctx.step("later", async |_| ok("later").await).await?;
        ctx.elicit::<Confirm>("Really?").key("really").await?;
        Ok(format!("{failed} {later}"))
    }));
    let mut talk = ToolCall::new(json!({}));
    assert_eq!(
        result_text(&talk.through(&server, &json!({"confirm": yes(), "really": yes()})).await),
        "no later"
    );
    assert_eq!(RUNS.count(), 1);
}

#[tokio::test]
async fn no_step_is_begun_while_an_answer_may_end_its_branch() {
    static RUNS: Runs = Runs::new();
    let server = server(tool!(|ctx| {
        let charges = async {
            ctx.elicit::<Place>("Where?").await?;
            Ok::<_, Error>(ctx.step("charge", async |s| Ok(RUNS.note(&s))).await?)
        };
        let ends = async {
            let (sure, looked) =
                tokio::join!(ctx.elicit::<Confirm>("Sure?"), ctx.step("look", async |_| ok("").await));
            looked?;
            if sure?.ok { Ok(()) } else { Err(Error::user_facing("not sure")) }
        };
        Ok(match futures_util::future::try_join(charges, ends).await {
            Ok(_) => "charged".to_owned(),
            Err(error) => error.to_string(),
        })
    }));
    let mut talk = ToolCall::new(json!({}));
    let answers = json!({"place": place("eu"), "confirm": accept(json!({"ok": false}))});
    assert_eq!(result_text(&legs(&server, &mut talk, &[Value::Null, answers]).await), "not sure");
    assert_eq!(RUNS.count(), 0);
}

#[tokio::test]
async fn a_step_that_was_dropped_while_it_ran_neither_runs_nor_ends_again() {
    static RUNS: Runs = Runs::new();
    let server = server(tool!(|ctx| {
        let hangs = ctx.step("hangs", async |s| {
            RUNS.note(&s);
            std::future::pending::<Result<()>>().await
        });
        let fails = ctx.step("fails", async |_| Err::<(), Error>(Error::user_facing("no")));
        let failed = tokio::try_join!(hangs, fails).unwrap_err();
        ctx.elicit::<Confirm>("Sure?").await?;
        ctx.step("later", async |_| ok("").await).await?;
        Ok(failed.to_string())
    }));
    take_log();
    assert_eq!(
        result_text(&ToolCall::new(json!({})).through(&server, &json!({"confirm": yes()})).await),
        "no"
    );
    assert_eq!(RUNS.count(), 1);
    let log = take_log();
    assert_eq!(log.matches("a step was dropped while it ran").count(), 1, "{log}");
    assert!(log.contains("path=\"hangs\""), "{log}");
}

#[tokio::test]
async fn a_step_of_a_cancelled_request_is_not_logged_as_dropped() {
    let never = tool!(|ctx| {
        ctx.step("hangs", async |_| std::future::pending::<Result<()>>().await).await?;
        ok("").await
    });
    let server = limited(never, |limits| limits.step_grace(Duration::ZERO));
    take_log();
    let message = request(1, "tools/call", json!({"name": "t"})).to_string();
    let caller = Caller::default();
    assert!(futures_util::poll!(Box::pin(server.respond(message.as_bytes(), &caller))).is_pending());
    while !take_log().contains("exceeded its time and was dropped") {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    assert!(!take_log().contains("a step was dropped"));
}

#[tokio::test]
async fn without_an_outcome_the_answer_leaves_first_and_the_step_runs_again_under_the_same_key() {
    static RETRIED: Runs = Runs::new();
    static PANICKED: Runs = Runs::new();
    let retried = tool!(|ctx| {
        ctx.elicit::<Confirm>("Sure?").await?;
        Ok(ctx
            .step("s", async |s| match RETRIED.note(&s) {
                1 => Err(StepError::retry(Error::user_facing("not now"))),
                n => Ok(format!("{n} {}", s.number())),
            })
            .await?)
    });
    let panicked = tool!(|ctx| {
        ctx.elicit::<Confirm>("Sure?").await?;
        Ok(ctx
            .step("s", async |s| {
                assert!(PANICKED.note(&s) > 1, "this test panics here, once");
                ok("2 1").await
            })
            .await?)
    });
    for (tool, runs) in [(retried, &RETRIED), (panicked, &PANICKED)] {
        let server = server(tool);
        let mut talk = ToolCall::new(json!({}));
        let given = json!({"confirm": yes()});
        let reply = legs(&server, &mut talk, &[Value::Null, given]).await;
        assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
        assert_eq!(result_text(&talk.leg(&server, Value::Null).await), "2 1");
        assert_eq!(runs.count(), 2);
    }
}

#[tokio::test]
async fn without_an_outcome_and_without_anything_recorded_the_same_request_is_sent_again() {
    static RUNS: Runs = Runs::new();
    let server = server(tool!(|ctx| {
        Ok(ctx
            .step("s", async |s| match RUNS.note(&s) {
                1 => Err(StepError::retry(Error::user_facing("not now"))),
                n => Ok(n.to_string()),
            })
            .await?)
    }));
    let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
    assert_eq!((refused(&reply), &reply["error"]["data"]["step"]), ((-32603, "step_failed"), &json!("s")));
    assert_eq!(result_text(&ToolCall::new(json!({})).leg(&server, Value::Null).await), "2");
}

#[tokio::test(start_paused = true)]
async fn a_step_is_tried_again_in_place() {
    static RUNS: Runs = Runs::new();
    static LAST: Runs = Runs::new();
    let server = server(tool!(|ctx| {
        let begun = tokio::time::Instant::now();
        let run = async |s: Attempt| match RUNS.note(&s) {
            1 => Err(StepError::retry(Error::user_facing("not now"))),
            2 => panic!("this test panics here, once"),
            _ => Ok(s.number()),
        };
        let retry = Retry::times(3).interval(Duration::from_secs(1));
        let number = ctx.step_retry("works", retry, run).await?;
        if ctx.leg() == 1 {
            assert_eq!(begun.elapsed(), Duration::from_secs(3));
        }
        let run = async |s: Attempt| {
            LAST.note(&s);
            Err::<(), _>(StepError::retry(Error::user_facing("never")))
        };
        ctx.step_retry("fails", Retry::times(2), run).await?;
        Ok(number.to_string())
    }));
    let mut talk = ToolCall::new(json!({}));
    // The step that worked leaves with its record before the other one's failure is told.
    let reply = talk.leg(&server, Value::Null).await;
    assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
    let reply = talk.leg(&server, Value::Null).await;
    assert_eq!(
        (refused(&reply), &reply["error"]["data"]["step"]),
        ((-32603, "step_failed"), &json!("fails"))
    );
    assert_eq!((RUNS.count(), LAST.count()), (3, 4));
}

/// Can be written, and not read again.
#[derive(Debug)]
struct OneWay;

impl Serialize for OneWay {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("SECRET")
    }
}

impl<'de> Deserialize<'de> for OneWay {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u8::deserialize(deserializer).map(|_| Self)
    }
}

#[tokio::test]
async fn what_cannot_be_recorded_is_an_error_and_not_done_again() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    macro_rules! unrecordable {
        ($value:expr) => {
            tool!(|ctx| {
                let run = async |_: Attempt| {
                    RUNS.fetch_add(1, SeqCst);
                    $value
                };
                let error = ctx.step("s", run).await.unwrap_err();
                ctx.elicit::<Confirm>("Sure?").await?;
                assert_eq!(error.code.as_deref(), Some(StepError::UNRECORDABLE));
                Ok(error.message)
            })
        };
    }
    for (tool, words) in [
        (unrecordable!(Ok(f64::NAN)), "cannot be read again"),
        (unrecordable!(Ok("x".repeat(16 * 1024))), "the limit is 16384"),
        (unrecordable!(Ok(OneWay)), "cannot be read again"),
        (unrecordable!(Ok(std::collections::BTreeMap::from([((1, 2), 3)]))), "key must be a string"),
        (unrecordable!(Err::<(), _>(Error::user_facing("x".repeat(20_000)))), "its error takes"),
    ] {
        RUNS.store(0, SeqCst);
        let said =
            result_text(&ToolCall::new(json!({})).through(&server(tool), &json!({"confirm": yes()})).await);
        assert!(said.contains(words) && !said.contains("SECRET"), "{said}");
        assert_eq!(RUNS.load(SeqCst), 1, "{words}");
    }
}

#[tokio::test]
async fn an_error_is_the_same_on_the_first_run_and_from_the_record() {
    static SEEN: Mutex<Vec<StepError>> = Mutex::new(Vec::new());
    let server = server(tool!(|ctx| {
        let told = ctx.step("told", async |_| Err::<(), _>(Error::user_facing("words"))).await.unwrap_err();
        let foreign = ctx.step_fn("foreign", async |_| "x".parse::<u8>()).await.unwrap_err();
        let own = StepError::new("declined").code("card").data(json!({"left": 1.5}));
        let own = ctx.step("own", async |_| Err::<(), _>(own.into())).await.unwrap_err();
        let path = if own.code.as_deref() == Some("card") { "card" } else { "other" };
        SEEN.lock().unwrap().extend([told, foreign, own]);
        ctx.elicit::<Confirm>("Sure?").await?;
        ok(path).await
    }));
    assert_eq!(
        result_text(&ToolCall::new(json!({})).through(&server, &json!({"confirm": yes()})).await),
        "card"
    );
    let seen = SEEN.lock().unwrap();
    assert_eq!(seen.len(), 6);
    assert_eq!(seen[..3], seen[3..]);
    assert_eq!(seen[1].message, "invalid digit found in string");
    assert_eq!(seen[2].data, Some(json!({"left": 1.5})));
}

#[tokio::test]
async fn steps_may_stand_beside_questions_by_hand() {
    static RUNS: Runs = Runs::new();
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<Reply<String>> {
        let id: usize = ctx.step("make", async |s| Ok(RUNS.note(&s))).await?;
        let sure = Ask::of::<Confirm>("sure", "Sure?");
        Ok(match ctx.by_hand().form::<Confirm>(&sure)?.and_then(Answer::accepted) {
            None => InputRequired::ask(sure).into(),
            Some(Confirm { ok }) => Reply::Complete(format!("{id} {ok}")),
        })
    }));
    let mut talk = ToolCall::new(json!({}));
    let reply = legs(&server, &mut talk, &[Value::Null, json!({}), json!({"sure": yes()})]).await;
    assert_eq!((result_text(&reply).as_str(), RUNS.count()), ("1 true", 1));
}

#[tokio::test]
async fn a_record_that_is_full_is_noticed_before_the_effect() {
    static ROOM: AtomicUsize = AtomicUsize::new(0);
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    const DEEP: &str = "a-scope-with-a-name-as-long-as-such-a-name-may-ever-be-in-a-call";
    let server = limited(
        tool!(|ctx| {
            let fill = ROOM.load(SeqCst);
            ctx.step("fill", async |_| ok(&"x".repeat(fill)).await).await?;
            ctx.elicit::<Confirm>("Go?").await?;
            let deep = ctx.scope(DEEP);
            let deep = deep.scope(DEEP);
            deep.step("effect", async |_| {
                RUNS.fetch_add(1, SeqCst);
                ok(&"x".repeat(998)).await
            })
            .await?;
            let asks = (0..20).map(|n| deep.elicit::<Confirm>("Sure?").key(DEEP).nth(n));
            let all = ctx.join_all(asks).await;
            Ok(all.len().to_string())
        }),
        |limits| limits.state(2400).step_result(1000),
    );
    let (mut refusals, mut ends) = (0, 0);
    for room in (0..1000).step_by(7) {
        ROOM.store(room, SeqCst);
        RUNS.store(0, SeqCst);
        let mut talk = ToolCall::new(json!({}));
        let mut reply = talk.leg(&server, Value::Null).await;
        let mut legs = 0;
        while reply["result"]["resultType"] == "input_required" && legs < 12 {
            let round = talk.rounds.last().unwrap();
            let answers = round.iter().map(|key| (key.clone(), yes())).collect();
            reply = talk.leg(&server, answers).await;
            legs += 1;
            if RUNS.load(SeqCst) == 1 && legs == 1 {
                // Its record has left.
                assert_eq!(reply["result"]["resultType"], "input_required", "{room}: {reply}");
                ends += 1;
                break;
            }
        }
        if RUNS.load(SeqCst) == 0 {
            assert_eq!(refused(&reply), (-32602, "limit"), "{room}: {reply}");
            refusals += 1;
        }
    }
    assert!(refusals > 10 && ends > 10, "{refusals} {ends}");
}

#[tokio::test]
async fn where_a_full_record_may_not_leave_alone_it_leaves_with_a_question_or_the_call_ends() {
    macro_rules! three_of_four {
        ($asks:expr) => {
            limited(
                tool!(|ctx| {
                    ctx.elicit::<Confirm>("Sure?").await?;
                    let rows = (0..4).map(|row| ctx.step(("row", row), async |_| ok(&"x".repeat(900)).await));
                    let asks = async {
                        if $asks {
                            ctx.elicit::<Confirm>("Really?").key("really").await?;
                        }
                        Ok::<_, Error>(())
                    };
                    let (_, asked) = tokio::join!(ctx.join_all(rows), asks);
                    asked?;
                    ok("").await
                }),
                |limits| limits.state(3600).step_result(1000).state_only_legs(0),
            )
        };
    }
    let mut talk = ToolCall::new(json!({}));
    let alone = legs(&three_of_four!(false), &mut talk, &[Value::Null, json!({"confirm": yes()})]).await;
    assert_eq!((refused(&alone), &alone["error"]["data"]["limit"]), ((-32602, "limit"), &json!("state")));
    let mut talk = ToolCall::new(json!({}));
    legs(&three_of_four!(true), &mut talk, &[Value::Null, json!({"confirm": yes()})]).await;
    assert_eq!(talk.rounds, [["confirm"], ["really"]]);
}
