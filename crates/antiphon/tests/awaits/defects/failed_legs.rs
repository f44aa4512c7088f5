//! A leg that fails after it did something leaves with its record first: nobody is told to repeat what was done.

use super::*;
use antiphon::{
    client::Call,
    server::{Prompt, StepError},
    testing::{Bench, ScriptedUser},
};
use std::sync::Arc;

/// A way in which the handler fails behind its steps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum FaultPoint {
    StepRetries,
    StepPanics,
    HandlerPanics,
    OutOfTime,
}

const ALL: [FaultPoint; 4] =
    [FaultPoint::StepRetries, FaultPoint::StepPanics, FaultPoint::HandlerPanics, FaultPoint::OutOfTime];

/// Charges, then mails, which fails so many times.
fn charging(fails: FaultPoint, times: usize, effects: &Effects) -> Tool {
    let (effects, left) = (effects.clone(), Arc::new(AtomicUsize::new(times)));
    tool(move |ctx| {
        let (effects, left) = (effects.clone(), left.clone());
        async move {
            ctx.step("charge", async |s| Ok(effects.note("charge", s.key()))).await?;
            let fails_now = async |at: FaultPoint| {
                let now = at == fails && left.load(SeqCst) > 0;
                if now {
                    left.fetch_sub(1, SeqCst);
                }
                now
            };
            if fails_now(FaultPoint::HandlerPanics).await {
                panic!("a test's own panic");
            }
            if fails_now(FaultPoint::OutOfTime).await {
                std::future::pending::<()>().await;
            }
            ctx.step("mail", async |s| {
                effects.note("mail", s.key());
                if fails_now(FaultPoint::StepRetries).await {
                    return Err(StepError::retry(Error::user_facing("not now")));
                }
                if fails_now(FaultPoint::StepPanics).await {
                    panic!("a test's own panic");
                }
                Ok(())
            })
            .await?;
            ok("mailed").await
        }
        .boxed()
    })
}

/// Checks that the error names `charge`, which has run, and says that the first request would repeat it.
fn names_what_was_done(reply: &Value, what: impl std::fmt::Debug) {
    let text = reply["error"]["message"].as_str().unwrap_or_else(|| panic!("{what:?}: no error: {reply}"));
    assert!(text.contains("charge") && text.contains("again"), "{what:?}: {reply}");
    assert_eq!(reply["error"]["data"]["done"], json!(["charge"]), "{what:?}: {reply}");
}

#[tokio::test(start_paused = true)]
async fn a_leg_that_fails_once_behind_a_step_goes_on_with_its_record() {
    for fails in ALL {
        let effects = Effects::default();
        let server = impatient(charging(fails, 1, &effects));
        let mut talk = ToolCall::new(json!({}));
        let reply = talk.leg(&server, Value::Null).await;
        assert!(is_state_only(&reply), "{fails:?}: {reply}");
        assert_eq!(result_text(&settled(&mut talk, &server, Value::Null).await), "mailed", "{fails:?}");
        let runs = (effects.runs("charge"), effects.distinct_keys("charge"), effects.distinct_keys("mail"));
        assert_eq!(runs, (1, 1, 1), "{fails:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_remains_is_returned_by_the_next_leg_and_the_state_stays_valid() {
    for fails in ALL {
        let effects = Effects::default();
        let server = impatient(charging(fails, 2, &effects));
        let mut talk = ToolCall::new(json!({}));
        assert!(is_state_only(&talk.leg(&server, Value::Null).await), "{fails:?}");
        let reply = talk.leg(&server, Value::Null).await;
        assert_eq!(refused(&reply).0, -32603, "{fails:?}: {reply}");
        if fails == FaultPoint::StepRetries {
            assert_eq!(refused(&reply).1, "step_failed", "{reply}");
            assert_eq!(reply["error"]["data"]["step"], "mail", "{reply}");
        }
        // The request that failed, sent again.
        assert_eq!(result_text(&talk.leg(&server, Value::Null).await), "mailed", "{fails:?}");
        assert_eq!(effects.runs("charge"), 1, "{fails:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_no_state_may_leave_alone_the_error_names_what_was_done() {
    for fails in ALL {
        let effects = Effects::default();
        let server = limited(charging(fails, 1, &effects), |limits| {
            limits.state_only_legs(0).handler_timeout(Duration::from_secs(10))
        });
        let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
        assert_eq!(refused(&reply).0, -32603, "{fails:?}: {reply}");
        names_what_was_done(&reply, fails);
        if fails == FaultPoint::StepRetries {
            assert_eq!(refused(&reply).1, "step_failed", "{reply}");
        }
    }
}

/// claude.ai does not continue after a result that holds state only: the built-in table has its name.
#[tokio::test(start_paused = true)]
async fn claude_ai_gets_the_error_at_once_and_other_clients_the_state() {
    for (name, at_once) in [("Anthropic/ClaudeAI", true), ("claude-code", false), ("mcp-inspector", false)] {
        let server = server(charging(FaultPoint::StepRetries, 1, &Effects::default()));
        let client = json!({"io.modelcontextprotocol/clientInfo": {"name": name, "version": "1.0.0"}});
        let params = json!({"name": "t", "arguments": {}, "_meta": with(&meta(), client)});
        let message = request(1, "tools/call", params).to_string();
        let reply = server.respond(message.as_bytes(), &antiphon::server::Caller::default()).await.unwrap();
        let reply: Value = serde_json::from_slice(&reply.body).unwrap();
        if at_once {
            names_what_was_done(&reply, name);
        } else {
            assert!(is_state_only(&reply), "{name}: {reply}");
        }
    }
}

#[tokio::test]
async fn a_leg_without_new_entries_fails_at_once() {
    let server = server(tool(|ctx| {
        async {
            ctx.step("mail", async |_| Err::<(), _>(StepError::retry(Error::user_facing("not now")))).await?;
            ok("mailed").await
        }
        .boxed()
    }));
    let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
    assert_eq!(refused(&reply), (-32603, "step_failed"), "{reply}");
    assert_eq!(reply["error"]["data"].get("done").unwrap_or(&json!([])), &json!([]), "{reply}");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_runs_beside_the_failure_is_recorded_as_well() {
    let effects = Effects::default();
    let once = Arc::new(AtomicUsize::new(1));
    let server = server(tool({
        let effects = effects.clone();
        move |ctx| {
            let (effects, once) = (effects.clone(), once.clone());
            async move {
                let charge = ctx.step("charge", async |s| {
                    tokio::time::sleep(ms(10)).await;
                    Ok(effects.note("charge", s.key()))
                });
                let mail = ctx.step("mail", async |_| match once.swap(0, SeqCst) {
                    0 => Ok(()),
                    _ => Err(StepError::retry(Error::user_facing("not now"))),
                });
                let (charged, mailed) = tokio::join!(charge, mail);
                mailed?;
                Ok(charged?.to_string())
            }
            .boxed()
        }
    }));
    let mut talk = ToolCall::new(json!({}));
    assert!(is_state_only(&talk.leg(&server, Value::Null).await));
    assert_eq!(result_text(&settled(&mut talk, &server, Value::Null).await), "1");
    assert_eq!(effects.runs("charge"), 1);
}

/// Asks, then mails, which fails `FAILS` times; with a charge in between if it `charges`.
fn asking_first(charges: bool, state_only: u8, effects: &Effects) -> Server {
    let effects = effects.clone();
    let asks = tool(move |ctx| {
        let effects = effects.clone();
        async move {
            ctx.elicit::<Sure>("Sure?").await?;
            if charges {
                ctx.step("charge", async |s| Ok(effects.note("charge", s.key()))).await?;
            }
            ctx.step("mail", async |s| match effects.note("mail", s.key()) {
                _ if effects.runs("mail") > 1 => Ok(()),
                _ => Err(StepError::retry(Error::user_facing("not now"))),
            })
            .await?;
            ok("mailed").await
        }
        .boxed()
    });
    limited(asks, |limits| limits.state_only_legs(state_only))
}

#[tokio::test]
async fn an_answer_leaves_with_the_record_and_the_last_such_leg_is_kept_for_steps() {
    for (charges, state_only, leaves) in
        [(false, 2, true), (false, 1, false), (true, 1, true), (true, 0, false)]
    {
        let what = format!("charges: {charges}, budget: {state_only}");
        let effects = Effects::default();
        let server = asking_first(charges, state_only, &effects);
        let mut talk = ToolCall::new(json!({}));
        talk.leg(&server, Value::Null).await;
        let reply = talk.leg(&server, json!({"sure": yes()})).await;
        if leaves {
            assert!(is_state_only(&reply), "{what}: {reply}");
            assert_eq!(result_text(&settled(&mut talk, &server, Value::Null).await), "mailed", "{what}");
            assert_eq!(effects.runs("charge"), usize::from(charges), "{what}");
        } else {
            assert_eq!(refused(&reply), (-32603, "step_failed"), "{what}: {reply}");
            if charges {
                names_what_was_done(&reply, what);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_session_the_handler_is_entered_again_with_its_record() {
    for fails in ALL {
        let effects = Effects::default();
        let reply = in_session(&impatient(charging(fails, 1, &effects)), &json!({})).await;
        assert_eq!(result_text(&reply), "mailed", "{fails:?}");
        let runs = (effects.runs("charge"), effects.distinct_keys("mail"));
        assert_eq!(runs, (1, 1), "{fails:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_in_a_session_does_not_request_a_repetition() {
    for fails in ALL {
        let effects = Effects::default();
        let reply = in_session(&impatient(charging(fails, usize::MAX, &effects)), &json!({})).await;
        assert_eq!((refused(&reply).0, effects.runs("charge")), (-32603, 1), "{fails:?}: {reply}");
        let text = reply["error"]["message"].as_str().unwrap();
        assert!(text.contains("charge"), "{fails:?}: {reply}");
        assert!(!text.contains("send the same request again"), "{fails:?}: {reply}");
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Shape {
    shape: String,
}

async fn charge_and_ask(ctx: &Ctx, Shape { shape }: Shape) -> Result<String> {
    if shape != "asks" {
        ctx.step("charge", async |_| Ok(())).await?;
    }
    match ctx.confirm("Mail?").await {
        Err(_) if shape == "has its own text" => Err(Error::user_facing("Nobody said yes.")),
        answer => Ok(answer.map(|_| "mailed".to_owned())?),
    }
}

/// A person declines, or does not answer, behind a step: the error says what was done. A text of the author's own stays as it is.
#[tokio::test(start_paused = true)]
async fn a_refusal_behind_a_step_says_what_was_done() {
    const DONE: &str = "Completed before that: `charge`. Do not send this again: look at what these steps did first; a new call \
                        repeats them.";
    for (shape, expected) in
        [("charges and asks", DONE), ("asks", ": Mail?"), ("has its own text", "Nobody said yes.")]
    {
        for user in [ScriptedUser::new().decline("confirm"), ScriptedUser::new().cancel("confirm")] {
            let bench = Bench::new(|_| {
                let prompt = Prompt::new("p", charge_and_ask);
                Server::builder("s", "1").tool(Tool::new("t", charge_and_ask)).prompt(prompt)
            });
            let bench = bench.user(user);
            let tool = bench.call("t", json!({"shape": shape})).await;
            let prompt = bench.run(&Call::prompt("p", json!({"shape": shape})).unwrap(), None).await;
            for run in [tool, prompt] {
                run.expect_failure(expected);
                assert_eq!(format!("{:?}", run.outcome()).contains(DONE), expected == DONE);
            }
        }
    }
}

/// A step that its handler does not receive, and the steps that are done then.
const NOT_RECEIVED: [(&str, &[&str]); 3] = [
    ("ends in a branch that lost", &["look", "charge"]),
    ("fails in a branch that lost", &["look"]),
    ("is dropped while it runs", &["look"]),
];

/// `look` is first, and `charge` ends later, or not at all. Then the call ends with an error, after a question if it `asks`.
fn losing(shape: &'static str, asks: bool) -> Tool {
    tool(move |ctx| {
        async move {
            let look = ctx.step("look", async |_| {
                tokio::time::sleep(ms(5)).await;
                Ok(())
            });
            let charge = ctx.step("charge", async |_| {
                tokio::time::sleep(ms(20)).await;
                match shape.starts_with("fails") {
                    true => Err(Error::user_facing("no money")),
                    false => Ok(()),
                }
            });
            if shape.starts_with("is dropped") {
                tokio::select! { _ = look => {}, _ = charge => {} }
            } else {
                ctx.select("first", (look, charge)).await;
            }
            if asks {
                ctx.elicit::<Sure>("Sure?").await?;
            }
            ctx.step("mail", async |_| Err::<(), _>(StepError::retry(Error::user_facing("not now")))).await?;
            ok("mailed").await
        }
        .boxed()
    })
}

/// A step that ended in a branch that lost has had its effect: it may have paid.
#[tokio::test(start_paused = true)]
async fn a_step_that_ended_in_a_branch_that_lost_is_done() {
    for (shape, done) in NOT_RECEIVED {
        for (asks, declines) in [(false, false), (true, false), (true, true)] {
            let server = limited(losing(shape, asks), |limits| limits.state_only_legs(0));
            let mut talk = ToolCall::new(json!({}));
            let mut reply = talk.leg(&server, Value::Null).await;
            if asks {
                let answer = if declines { json!({"action": "decline"}) } else { yes() };
                reply = talk.leg(&server, json!({ "sure": answer })).await;
            }
            let text = match declines {
                true => result_text(&reply),
                false => {
                    assert_eq!(reply["error"]["data"]["done"], json!(done), "{shape} {asks}: {reply}");
                    reply["error"]["message"].as_str().unwrap().to_owned()
                }
            };
            let expected = format!("Completed before that: `{}`.", done.join("`, `"));
            assert!(text.contains(&expected), "{shape} {asks}: {reply}");
        }
    }
}
