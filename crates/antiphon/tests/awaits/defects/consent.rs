//! Consent stays with what was shown: what a dropped answer makes of the answers, race winners and steps behind it.

use super::*;
use antiphon::server::flow::Winner;
use std::sync::atomic::AtomicU64;

/// A number that the test changes between legs, for the text of a question.
type Shared = std::sync::Arc<AtomicU64>;

fn text_of(list: &Shared) -> String {
    format!("Which database? (list {})", list.load(SeqCst))
}

/// Runs each leg with these answers; asserts that it asks exactly these keys, in whatever order.
async fn asks(talk: &mut ToolCall, server: &Server, answers: Value, expected: &[&str]) {
    let reply = settled(talk, server, answers).await;
    let mut keys = asked(&reply);
    keys.sort();
    assert_eq!(keys, expected, "{reply}");
}

#[tokio::test]
async fn a_confirmation_that_comes_with_a_changed_question_is_asked_again() {
    let (list, effects) = (Shared::default(), Effects::default());
    let server = server(tool({
        let (list, effects) = (list.clone(), effects.clone());
        move |ctx| {
            let (list, effects) = (list.clone(), effects.clone());
            async move {
                let Pick { name } = ctx.elicit(text_of(&list)).await?;
                if ctx.elicit::<Sure>("Really drop it?").await?.ok {
                    ctx.step("drop", async |s| Ok(effects.note(&*name, s.key()))).await?;
                }
                Ok(format!("dropped {name}"))
            }
            .boxed()
        }
    }));
    let mut talk = ToolCall::new(json!({}));
    asks(&mut talk, &server, Value::Null, &["pick"]).await;
    asks(&mut talk, &server, json!({"pick": pick("a")}), &["sure"]).await;
    list.store(1, SeqCst);
    asks(&mut talk, &server, json!({"sure": yes()}), &["pick"]).await;
    asks(&mut talk, &server, json!({"pick": pick("prod")}), &["sure"]).await;
    assert!(effects.all().is_empty(), "{effects:?}");
    let no = accept(json!({"ok": false}));
    assert_eq!(result_text(&settled(&mut talk, &server, json!({"sure": no})).await), "dropped prod");
    assert!(effects.all().is_empty(), "{effects:?}");
}

/// Pays whoever this question gives, after a confirmation that does not name them.
fn paying(question: &'static str, effects: &Effects) -> Server {
    let effects = effects.clone();
    server(tool(move |ctx| {
        let effects = effects.clone();
        async move {
            let Pick { name } = ctx.elicit(question).await?;
            ctx.elicit::<Sure>("Pay 100 EUR?").await?;
            ctx.elicit::<Sure>("Tell them?").key("tell").await?;
            ctx.step("pay", async |s| Ok(effects.note(&*name, s.key()))).await?;
            Ok(name)
        }
        .boxed()
    }))
}

#[tokio::test]
async fn a_version_that_words_a_question_anew_asks_all_later_questions_again() {
    let effects = Effects::default();
    let (old, new) = (paying("Pay whom?", &effects), paying("Pay whom? Give the full name.", &effects));
    let mut talk = ToolCall::new(json!({}));
    asks(&mut talk, &old, Value::Null, &["pick"]).await;
    asks(&mut talk, &old, json!({"pick": pick("ada")}), &["sure"]).await;
    // Recorded by the older version, and not only in the hand of the newer one.
    asks(&mut talk, &old, json!({"sure": yes()}), &["tell"]).await;
    asks(&mut talk, &new, json!({"tell": yes()}), &["pick"]).await;
    asks(&mut talk, &new, json!({"pick": pick("mallory")}), &["sure"]).await;
    asks(&mut talk, &new, json!({"sure": yes()}), &["tell"]).await;
    assert!(effects.all().is_empty(), "{effects:?}");
    assert_eq!(result_text(&settled(&mut talk, &new, json!({"tell": yes()})).await), "mallory");
    assert_eq!((effects.runs("mallory"), effects.all().len()), (1, 1));
}

#[tokio::test]
async fn answers_of_the_same_round_stay() {
    let list = Shared::default();
    let server = server(tool({
        let list = list.clone();
        move |ctx| {
            let list = list.clone();
            async move {
                let (pick, sure) = tokio::join!(
                    async { ctx.elicit::<Pick>(text_of(&list)).await },
                    ctx.elicit::<Sure>("Is this a test?")
                );
                let really: Sure = ctx.elicit("Really?").key("really").await?;
                Ok(format!("{} {} {}", pick?.name, sure?.ok, really.ok))
            }
            .boxed()
        }
    }));
    let mut talk = ToolCall::new(json!({}));
    asks(&mut talk, &server, Value::Null, &["pick", "sure"]).await;
    asks(&mut talk, &server, json!({"pick": pick("a"), "sure": yes()}), &["really"]).await;
    list.store(1, SeqCst);
    asks(&mut talk, &server, json!({"really": yes()}), &["pick"]).await;
    asks(&mut talk, &server, json!({"pick": pick("b")}), &["really"]).await;
    assert_eq!(result_text(&settled(&mut talk, &server, json!({"really": yes()})).await), "b true true");
}

#[tokio::test]
async fn a_race_behind_a_dropped_answer_is_decided_again() {
    let list = Shared::default();
    let server = server(tool({
        let list = list.clone();
        move |ctx| {
            let list = list.clone();
            async move {
                let Pick { name } = ctx.elicit(text_of(&list)).await?;
                let keep = ctx.elicit::<Sure>("Keep it?").key("keep");
                let drop = ctx.elicit::<Sure>("Drop it?").key("drop");
                let what = match ctx.select("what", (keep, drop)).await {
                    Winner::A(_) => "keep",
                    Winner::B(_) => "drop",
                };
                ctx.elicit::<Sure>("Go on?").await?;
                Ok(format!("{what} {name}"))
            }
            .boxed()
        }
    }));
    let mut talk = ToolCall::new(json!({}));
    asks(&mut talk, &server, Value::Null, &["pick"]).await;
    asks(&mut talk, &server, json!({"pick": pick("a")}), &["drop", "keep"]).await;
    asks(&mut talk, &server, json!({"drop": yes()}), &["sure"]).await;
    list.store(1, SeqCst);
    asks(&mut talk, &server, json!({"sure": yes()}), &["pick"]).await;
    asks(&mut talk, &server, json!({"pick": pick("prod")}), &["drop", "keep"]).await;
    asks(&mut talk, &server, json!({"keep": yes()}), &["sure"]).await;
    assert_eq!(result_text(&settled(&mut talk, &server, json!({"sure": yes()})).await), "keep prod");
}

/// `prepare` stands before the question, `quote` rests on its answer, with this input.
fn quoting(question: &'static str, input: u32, effects: &Effects) -> Server {
    let effects = effects.clone();
    server(tool(move |ctx| {
        let effects = effects.clone();
        async move {
            ctx.step("prepare", async |s| Ok(effects.note("prepare", s.key()))).await?;
            let Pick { name } = ctx.elicit(question).await?;
            ctx.step_with("quote", &input, async |s| Ok(effects.note("quote", s.key()))).await?;
            ctx.elicit::<Sure>("Buy it?").await?;
            Ok(name)
        }
        .boxed()
    }))
}

#[tokio::test]
async fn a_step_of_a_later_round_counts_only_with_the_input_that_it_had() {
    for (input, expected) in [(1, "b"), (2, "flow_diverged")] {
        let effects = Effects::default();
        let (old, new) = (quoting("What?", 1, &effects), quoting("Which article?", input, &effects));
        let mut talk = ToolCall::new(json!({}));
        asks(&mut talk, &old, Value::Null, &["pick"]).await;
        asks(&mut talk, &old, json!({"pick": pick("a")}), &["sure"]).await;
        // The step before the question stays, whatever becomes of the answer.
        asks(&mut talk, &new, json!({"sure": yes()}), &["pick"]).await;
        let mut reply = settled(&mut talk, &new, json!({"pick": pick("b")})).await;
        if input == 1 {
            assert_eq!(asked(&reply), ["sure"], "{reply}");
            reply = settled(&mut talk, &new, json!({"sure": yes()})).await;
        } else {
            assert_eq!(refused(&reply).0, -32603, "{reply}");
        }
        assert!(result_text(&reply).contains(expected), "{reply}");
        assert_eq!((effects.runs("prepare"), effects.runs("quote")), (1, 1));
    }
}

#[tokio::test]
async fn a_step_of_a_later_round_without_a_pinned_input_is_divergence() {
    let (list, effects) = (Shared::default(), Effects::default());
    let server = server(tool({
        let (list, effects) = (list.clone(), effects.clone());
        move |ctx| {
            let (list, effects) = (list.clone(), effects.clone());
            async move {
                let Pick { name } = ctx.elicit(text_of(&list)).await?;
                // Beside the answer that is dropped, and not behind it in the program.
                let (sure, _) = tokio::join!(
                    ctx.elicit::<Sure>("Sure?"),
                    ctx.step("look", async |s| { Ok(effects.note("look", s.key())) })
                );
                sure?;
                Ok(name)
            }
            .boxed()
        }
    }));
    let mut talk = ToolCall::new(json!({}));
    asks(&mut talk, &server, Value::Null, &["pick"]).await;
    asks(&mut talk, &server, json!({"pick": pick("a")}), &["sure"]).await;
    list.store(1, SeqCst);
    asks(&mut talk, &server, json!({"sure": yes()}), &["pick"]).await;
    let reply = settled(&mut talk, &server, json!({"pick": pick("b")})).await;
    assert_eq!((refused(&reply), effects.runs("look")), ((-32603, "flow_diverged"), 1), "{reply}");
}

/// A race of two questions behind another one. The new version asks that one beside the race, in other words.
fn racing(is_new: bool) -> Server {
    server(tool(move |ctx| {
        async move {
            let race = async {
                let a = ctx.elicit::<Sure>("A?").key("a");
                match ctx.select("first", (a, ctx.elicit::<Sure>("B?").key("b"))).await {
                    Winner::A(_) => "a",
                    Winner::B(_) => "b",
                }
            };
            let first = match is_new {
                true => tokio::join!(race, ctx.elicit::<Pick>("Whom, by the full name?")).0,
                false => {
                    ctx.elicit::<Pick>("Whom?").await?;
                    race.await
                }
            };
            ctx.elicit::<Sure>("Tell?").key("tell").await?;
            Ok(first.to_owned())
        }
        .boxed()
    }))
}

/// The winner was chosen by somebody who knew a question that has changed since: the loser is asked again too, in the same leg.
#[tokio::test(start_paused = true)]
async fn the_loser_of_a_race_is_asked_again_if_a_question_before_it_has_changed() {
    let (old, new) = (racing(false), racing(true));
    let mut talk = ToolCall::new(json!({}));
    asks(&mut talk, &old, Value::Null, &["pick"]).await;
    asks(&mut talk, &old, json!({"pick": pick("ada")}), &["a", "b"]).await;
    asks(&mut talk, &old, json!({"a": yes()}), &["tell"]).await;
    asks(&mut talk, &new, json!({"tell": yes()}), &["a", "b", "pick"]).await;
    asks(&mut talk, &new, json!({"b": yes(), "pick": pick("ada l.")}), &["tell"]).await;
    assert_eq!(result_text(&settled(&mut talk, &new, json!({"tell": yes()})).await), "b");
}
