//! One key, one use; what a key may be; and that nothing else tells entries apart.

use super::*;
use antiphon::server::{Ask, Reply, asks::InputRequired};
use std::collections::BTreeSet;
use std::pin::Pin;

static CHARGES: Mutex<Vec<(String, u8, String)>> = Mutex::new(Vec::new());

#[derive(Deserialize, Form)]
struct Amount {
    who: String,
    cents: u8,
}

/// Asks, charges, asks. `number` instead of a scope for each.
async fn branch(ctx: &Ctx, call: &str, who: &str, number: Option<u64>) -> Result<String> {
    let (mut amount, mut receipt) =
        (ctx.elicit::<Amount>("How much?"), ctx.elicit::<Amount>("Send the receipt?").key("receipt"));
    let mut key = antiphon::server::steps::StepKey::from("charge");
    if let Some(number) = number {
        (amount, receipt, key) = (amount.nth(number), receipt.nth(number), ("charge", number).into());
    }
    let amount = amount.await?;
    assert_eq!(amount.who, who, "the answer of another one");
    let charged: (String, u8) = ctx
        .step(key, async |s| {
            let id = format!("{call} {} {}", who, s.key());
            CHARGES.lock().unwrap().push((id, amount.cents, s.key().to_owned()));
            Ok((who.to_owned(), amount.cents))
        })
        .await?;
    assert_eq!(charged, (who.to_owned(), amount.cents), "the charge of another one");
    let receipt = receipt.await?;
    assert_eq!(receipt.who, who, "the answer of another one");
    Ok(format!("{who} {} {}", amount.cents, receipt.cents))
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Shape {
    scoped: bool,
    call: String,
}

async fn two(ctx: &Ctx, shape: Shape) -> Result<String> {
    let call = &shape.call;
    let (alice, bob) = if shape.scoped {
        let (a, b) = (ctx.scope("alice"), ctx.scope("bob"));
        tokio::join!(branch(&a, call, "alice", None), branch(&b, call, "bob", None))
    } else {
        tokio::join!(branch(ctx, call, "alice", Some(1)), branch(ctx, call, "bob", Some(2)))
    };
    Ok(format!("{}, {}", alice?, bob?))
}

fn answer_to(key: &str) -> Value {
    let who = if key.contains("alice") || key.ends_with("#1") { "alice" } else { "bob" };
    let cents = key.len() * usize::from(key.contains("amount"));
    accept(json!({"who": who, "cents": cents}))
}

type Walk<'a> = Pin<Box<dyn Future<Output = usize> + 'a>>;

/// Every way to answer what is asked, to the end. How many there are.
fn walk(scoped: bool, so_far: Vec<BTreeSet<String>>) -> Walk<'static> {
    Box::pin(async move {
        let call = format!("{scoped} {so_far:?}");
        let mut talk = ToolCall::new(json!({"scoped": scoped, "call": call}));
        let mut reply = talk.leg(&server(Tool::new("t", two)), Value::Null).await;
        for answered in &so_far {
            let answers = answered.iter().map(|key| (key.clone(), answer_to(key))).collect();
            reply = talk.leg(&server(Tool::new("t", two)), answers).await;
        }
        if reply["result"]["resultType"] == "complete" {
            let expected = if scoped { "alice 12 0, bob 10 0" } else { "alice 8 0, bob 8 0" };
            assert_eq!(result_text(&reply), expected, "{so_far:?}");
            let charges = CHARGES.lock().unwrap();
            let ours: Vec<_> = charges.iter().filter(|(id, ..)| id.starts_with(&call)).collect();
            assert_eq!(ours.len(), 2, "{so_far:?}: {ours:?}");
            assert_ne!(ours[0].2, ours[1].2);
            return 1;
        }
        let asked = talk.rounds.last().unwrap_or_else(|| panic!("{reply}")).clone();
        let mut ways = 0;
        for mask in 1..1_u32 << asked.len() {
            let chosen = (0..asked.len()).filter(|n| mask & (1 << n) != 0).map(|n| asked[n].clone());
            ways += walk(scoped, [so_far.clone(), vec![chosen.collect()]].concat()).await;
        }
        ways
    })
}

#[tokio::test]
async fn branches_never_get_each_others_answers_or_charges() {
    // Two chains of two answers each, in every order, alone and together.
    assert_eq!(walk(true, Vec::new()).await, 13);
    assert_eq!(walk(false, Vec::new()).await, 13);
}

#[tokio::test]
async fn any_integer_distinguishes_uses_of_a_key() {
    let server = server(tool!(|ctx| {
        let rows: [i64; 3] = [7, -7, i64::MIN];
        for (at, row) in rows.iter().enumerate() {
            ctx.elicit::<Confirm>("This row?").nth(*row).await?;
            ctx.elicit::<Confirm>("This place?").key("place").nth(at).await?;
            ctx.step(("charge", *row), async |_| ok("").await).await?;
        }
        ctx.elicit::<Confirm>("And the last?").nth(u64::MAX).await?;
        ctx.elicit::<Confirm>("And this?").nth(1).await?;
        ok("").await
    }));
    let mut talk = ToolCall::new(json!({}));
    for _ in 0..8 {
        let answers = talk.rounds.last().into_iter().flatten().map(|key| (key.clone(), yes())).collect();
        let reply = talk.leg(&server, answers).await;
        assert_eq!(reply["result"]["resultType"], "input_required", "{reply}");
    }
    let asked = [
        "confirm#7",
        "place#0",
        "confirm#-7",
        "place#1",
        "confirm#-9223372036854775808",
        "place#2",
        "confirm#18446744073709551615",
        "confirm#1",
    ];
    assert_eq!(talk.rounds.concat(), asked);
}

/// The call ends with -32603, and the log says all of these.
async fn is_a_fault(tool: Tool, answers: Value, in_log: &[&str]) {
    take_log();
    let server = server(tool);
    let reply = ToolCall::new(json!({})).through(&server, &answers).await;
    assert_eq!(refused(&reply), (-32603, ""), "{in_log:?}: {reply}");
    let log = take_log();
    for words in in_log {
        assert!(log.contains(words), "{words:?} is not in {log}");
    }
}

fn line(add: u32, base: u32) -> String {
    format!("keys.rs:{}", base + add)
}

#[tokio::test]
async fn a_key_that_is_used_twice_ends_the_call_with_both_places() {
    let given = json!({"place": place("eu")});
    let base = line!();
    let sequential = tool!(|ctx| {
        let first: Place = ctx.elicit("Where?").await?;
        let second: Place = ctx.elicit("Where?").await?;
        Ok(first.region + &second.region)
    });
    let places = [line(2, base), line(3, base)];
    is_a_fault(sequential, given.clone(), &["The question `place`", &places[0], &places[1], ".nth(i)"]).await;
    let joined = tool!(|ctx| {
        let (first, second) = tokio::join!(ctx.elicit::<Place>("Where?"), ctx.elicit::<Place>("Whence?"));
        Ok(first?.region + &second?.region)
    });
    is_a_fault(joined, given.clone(), &["The question `place`"]).await;
    let kept = tool!(|ctx| {
        let mut place = ctx.elicit::<Place>("Where?");
        let first = (&mut place).await?;
        Ok(first.region + &place.await?.region)
    });
    is_a_fault(kept, given.clone(), &["`place` is awaited again"]).await;
    let steps = tool!(|ctx| {
        let first = ctx.step("s", async |_| ok("").await).await?;
        Ok(first + &ctx.step("s", async |_| ok("").await).await?)
    });
    is_a_fault(steps, given.clone(), &["The step `s`", r#"`step(("key", i), ..)`"#]).await;
    let at_once = tool!(|ctx| {
        let (first, second) =
            tokio::join!(ctx.step("s", async |_| ok("").await), ctx.step("s", async |_| ok("").await));
        Ok(first? + &second?)
    });
    is_a_fault(at_once, given.clone(), &["The step `s`"]).await;
    let one_scope = tool!(|ctx| {
        for _ in 0..2 {
            ctx.scope("a").step("s", async |_| ok("").await).await?;
        }
        ok("").await
    });
    is_a_fault(one_scope, given.clone(), &["The step `a/s`"]).await;
    let checkpoints = tool!(|ctx| {
        ctx.checkpoint().now().await;
        ctx.checkpoint().now().await;
        ok("").await
    });
    is_a_fault(checkpoints, given.clone(), &["The checkpoint `checkpoint`"]).await;
    let paused = tool!(|ctx| {
        tokio::join!(ctx.checkpoint().now(), ctx.checkpoint().now());
        ok("").await
    });
    is_a_fault(paused, given.clone(), &["The checkpoint `checkpoint`"]).await;
    let races = tool!(|ctx| {
        for _ in 0..2 {
            ctx.select("r", (async {}, async {})).await;
        }
        ok("").await
    });
    is_a_fault(races, given.clone(), &["The select `r`"]).await;
    let races_at_once = tool!(|ctx| {
        let slow = || async { tokio::task::yield_now().await };
        tokio::join!(ctx.select("r", (slow(), slow())), ctx.select("r", (slow(), slow())));
        ok("").await
    });
    is_a_fault(races_at_once, given, &["The select `r`"]).await;
}

#[tokio::test]
async fn the_same_key_may_name_a_question_and_a_step_and_stand_in_each_scope() {
    let server = server(tool!(|ctx| {
        let place: Place = ctx.elicit("Where?").key("a").await?;
        let step: String = ctx.step("a", async |_| ok("x").await).await?;
        let below: String = ctx.scope("a").step("a", async |_| ok("y").await).await?;
        let deeper: Place = ctx.scope("a").scope("a").elicit("Where?").key("a").nth(3).await?;
        Ok(place.region + &step + &below + &deeper.region)
    }));
    let mut talk = ToolCall::new(json!({}));
    let reply = talk.through(&server, &json!({"a": place("1"), "a/a/a#3": place("2")})).await;
    assert_eq!(result_text(&reply), "1xy2");
    assert_eq!(talk.rounds, [["a"], ["a/a/a#3"]]);
}

#[tokio::test]
async fn keys_are_visible_ascii_without_slash_and_number_sign() {
    const BAD: [&str; 7] = [
        "",
        "a/b",
        "a#b",
        "\u{e9}",
        "a b",
        "a\n",
        "0123456789012345678901234567890123456789012345678901234567890123x",
    ];
    static AT: AtomicUsize = AtomicUsize::new(0);
    fn bad() -> &'static str {
        BAD[AT.load(SeqCst)]
    }
    for at in 0..BAD.len() {
        AT.store(at, SeqCst);
        let words = ["is not 1 to 64 visible ASCII characters"];
        is_a_fault(
            tool!(|ctx| { Ok(ctx.elicit::<Place>("Where?").key(bad()).await?.region) }),
            Value::Null,
            &words,
        )
        .await;
        is_a_fault(tool!(|ctx| { Ok(ctx.step(bad(), async |_| ok("").await).await?) }), Value::Null, &words)
            .await;
        is_a_fault(
            tool!(|ctx| { Ok(ctx.scope(bad()).elicit::<Place>("Where?").await?.region) }),
            Value::Null,
            &words,
        )
        .await;
        is_a_fault(
            tool!(|ctx| {
                ctx.select(bad(), (async {}, async {})).await;
                ok("").await
            }),
            Value::Null,
            &words,
        )
        .await;
        is_a_fault(
            tool!(|ctx| {
                ctx.checkpoint().key(bad()).await;
                ok("").await
            }),
            Value::Null,
            &words,
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_call_stands_inside_of_a_step() {
    let words = |what: &'static str| [what, "inside of the step `outer`"];
    let ask = tool!(|ctx| {
        Ok(ctx.step("outer", async |_| Ok(ctx.elicit::<Place>("Where?").await?.region)).await?)
    });
    is_a_fault(ask, Value::Null, &words("The question `place`")).await;
    let step = tool!(|ctx| {
        Ok(ctx.step("outer", async |_| Ok(ctx.step("inner", async |_| ok("").await).await?)).await?)
    });
    is_a_fault(step, Value::Null, &words("The step `inner`")).await;
    let race = tool!(|ctx| {
        Ok(ctx
            .step("outer", async |_| {
                ctx.select("r", (async {}, async {})).await;
                ok("").await
            })
            .await?)
    });
    is_a_fault(race, Value::Null, &words("The select `r`")).await;
    let pause = tool!(|ctx| {
        Ok(ctx
            .step("outer", async |_| {
                ctx.checkpoint().await;
                ok("").await
            })
            .await?)
    });
    is_a_fault(pause, Value::Null, &words("The checkpoint `checkpoint`")).await;
}

#[tokio::test]
async fn a_call_may_await_questions_and_return_them() {
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<Reply<String>> {
        let place: Place = ctx.elicit("Where?").await?;
        let ask = Ask::of::<Confirm>("sure", format!("Sure of {}?", place.region));
        let Some(Answer::Accept(sure)) = ctx.by_hand().form::<Confirm>(&ask)? else {
            return Ok(InputRequired::ask(ask).with_state("asked").into());
        };
        // What was answered by hand, and the state, are there again when the handler awaits behind them.
        let next: Place = ctx.elicit("And then?").key("next").await?;
        Ok(Reply::Complete(format!(
            "{} {} {} {:?}",
            place.region,
            sure.ok,
            next.region,
            ctx.by_hand().state()
        )))
    }));
    let mut talk = ToolCall::new(json!({}));
    let answers = [
        Value::Null,
        json!({"place": place("eu")}),
        // It is checked, and asked again without the handler.
        json!({"sure": accept(json!({"ok": "yes"}))}),
        json!({"sure": yes()}),
        json!({"next": place("us")}),
    ];
    assert_eq!(result_text(&legs(&server, &mut talk, &answers).await), "eu true us Some(\"asked\")");
    assert_eq!(talk.rounds, [["place"], ["sure"], ["sure"], ["next"]]);
}

#[tokio::test]
async fn an_answer_to_a_returned_question_is_dropped_with_an_awaited_one_before_it() {
    static TEXT: AtomicUsize = AtomicUsize::new(0);
    let server = server(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<Reply<String>> {
        let text = format!("Which? ({})", TEXT.load(SeqCst));
        let place: Place = ctx.elicit(text).await?;
        let ask = Ask::of::<Confirm>("sure", "Really?");
        match ctx.by_hand().form::<Confirm>(&ask)? {
            Some(Answer::Accept(_)) => Ok(Reply::Complete(place.region)),
            _ => Ok(ask.into()),
        }
    }));
    let mut talk = ToolCall::new(json!({}));
    legs(&server, &mut talk, &[Value::Null, json!({"place": place("eu")})]).await;
    TEXT.store(1, SeqCst);
    let answers = [json!({"sure": yes()}), json!({"place": place("prod")}), json!({"sure": yes()})];
    assert_eq!(result_text(&legs(&server, &mut talk, &answers).await), "prod");
    assert_eq!(talk.rounds, [["place"], ["sure"], ["place"], ["sure"]]);
}
