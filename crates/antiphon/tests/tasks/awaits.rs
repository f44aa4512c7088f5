//! The awaits of a handler in a task: the same rules as in a call.

use crate::client::{TaskClient, accept, client, keys_of, text_of};
use antiphon::{
    Clock, Error, Form, resolver,
    server::{
        Answer, Ask, AskError, Ctx, Reply, Server, State, StepError, asks::InputRequired, flow::Winner,
    },
    store::{MemoryStore, MemoryTasks, StoreClock, calls::Micros},
    tool,
    wire::sampling::SamplingMessage,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::sync::Semaphore;

#[derive(Clone, Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Size {
    /// Size
    size: u32,
}

/// The number of runs of a handler, and the gate of its step.
#[derive(Clone)]
struct Probe {
    runs: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

/// Takes the first of two answers.
#[tool(task = "required")]
async fn first_of_two(ctx: &Ctx) -> Result<String, Error> {
    let won = ctx.select("first", (ctx.elicit::<Name>("Who?"), ctx.elicit::<Size>("Which size?"))).await;
    let won = match won {
        Winner::A(name) => name?.name,
        Winner::B(size) => size?.size.to_string(),
    };
    let sure = ctx.confirm("Sure?").await?;
    Ok(format!("{won} {sure}"))
}

/// Works, unless somebody answers first.
#[tool(task = "required")]
async fn work_or_answer(ctx: &Ctx, probe: State<Probe>) -> Result<String, Error> {
    let work = ctx.step("work", async |_| {
        probe.gate.acquire().await.unwrap().forget();
        Ok("worked".to_owned())
    });
    let won = ctx.select("first", (ctx.elicit::<Name>("Who?"), work)).await;
    let won: String = match won {
        Winner::A(name) => name?.name,
        Winner::B(done) => done?,
    };
    let sure = ctx.confirm("Sure?").await?;
    Ok(format!("{won} {sure}"))
}

/// Passes checkpoints.
#[tool(task = "required")]
async fn checkpoints(ctx: &Ctx, probe: State<Probe>) -> Result<String, Error> {
    probe.runs.fetch_add(1, Ordering::SeqCst);
    ctx.step("before", async |_| Ok(())).await?;
    ctx.checkpoint().await;
    ctx.checkpoint().key("always").now().await;
    ctx.step("after", async |_| Ok(())).await?;
    Ok("passed".to_owned())
}

/// Asks each of two people, in scopes.
#[tool(task = "required")]
async fn everybody(ctx: &Ctx) -> Result<String, Error> {
    let ask = async |name: &str| {
        let scope = ctx.scope(name);
        let first: Name = scope.elicit("Whom?").nth(1).await?;
        let greeting: String =
            scope.step("greet", async |_| Ok(format!("{name} greets {}", first.name))).await?;
        Ok::<_, Error>(greeting)
    };
    let (anna, bert) = tokio::join!(ask("anna"), ask("bert"));
    Ok(format!("{}, {}", anna?, bert?))
}

/// Asks the model and the client.
#[tool(task = "required")]
async fn machine(ctx: &Ctx) -> Result<String, Error> {
    let message = ctx.sample([SamplingMessage::user("Say something.")], 100).await?;
    let roots = ctx.roots().await?;
    Ok(format!("{} {}", message.content.first_text().unwrap_or_default(), roots[0].uri))
}

/// Says what a person did.
#[tool(task = "required")]
async fn outcome(ctx: &Ctx) -> Result<String, Error> {
    Ok(match ctx.elicit::<Name>("Who?").outcome().await? {
        Answer::Accept(Name { name }) => name,
        Answer::Decline => "declined".to_owned(),
        Answer::Cancel => "dismissed".to_owned(),
    })
}

/// Asks one question after the other.
#[tool(task = "required")]
async fn many(ctx: &Ctx, number: u32) -> Result<String, Error> {
    let mut sum = 0;
    for at in 0..number {
        sum += ctx.elicit::<Size>("Which size?").nth(at).await?.size;
    }
    Ok(sum.to_string())
}

/// Returns its questions, one after the other.
#[tool(task = "required")]
async fn by_hand(ctx: &Ctx, number: u32) -> Result<Reply<String>, Error> {
    let at: u32 = ctx.by_hand().state_as()?.unwrap_or(0);
    let ask = |at: u32| Ask::form(format!("size-{at}"), "Which size?", Size::schema());
    let has_answer = ctx.by_hand().form::<Size>(&ask(at))?.is_some();
    let next = at + u32::from(has_answer);
    Ok(if next == number {
        Reply::Complete(format!("{number} answers"))
    } else {
        Reply::from(InputRequired::ask(ask(next)).with_state(next.to_string()))
    })
}

/// Asks for a folder.
#[resolver]
async fn folder(ctx: &Ctx, probe: State<Probe>) -> Result<Name, Error> {
    let name: Name = ctx.elicit("Which folder?").await?;
    ctx.step("look", async |_| {
        probe.runs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    })
    .await?;
    Ok(name)
}

/// Deletes a folder.
#[tool(task = "required")]
async fn delete_folder(ctx: &Ctx, #[resolve(folder)] folder: Name) -> Result<String, Error> {
    let sure = ctx.confirm(format!("Delete {}?", folder.name)).await?;
    Ok(format!("{} {sure}", folder.name))
}

/// Refuses in words of its own.
#[tool(task = "required")]
async fn or_refuse(ctx: &Ctx) -> Result<String, Error> {
    match ctx.elicit::<Name>("Who?").or_refuse("Ask in person.").await {
        Err(AskError::Unsupported { .. }) => Ok("unsupported".to_owned()),
        answer => Ok(answer?.name),
    }
}

/// Waits an hour for one of two answers.
#[tool(task = "required")]
async fn hurry(ctx: &Ctx) -> Result<String, Error> {
    let name = ctx.elicit::<Name>("Who?").timeout(Duration::from_secs(3600));
    let (name, size) = tokio::join!(name, ctx.elicit::<Size>("Which size?"));
    let name = match name {
        Err(AskError::Expired { .. }) => "nobody".to_owned(),
        answer => answer?.name,
    };
    Ok(format!("{name} {}", size?.size))
}

fn probe() -> Probe {
    Probe { runs: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
}

fn tools(probe: &Probe) -> TaskClient {
    client(|server| {
        server
            .state(probe.clone())
            .shed_when(|_| true)
            .tool(first_of_two)
            .tool(work_or_answer)
            .tool(checkpoints)
            .tool(everybody)
            .tool(machine)
            .tool(outcome)
            .tool(many)
            .tool(by_hand)
            .tool(delete_folder)
            .tool(or_refuse)
    })
}

fn name(name: &str) -> Value {
    accept(json!({"name": name}))
}

fn size(size: u32) -> Value {
    accept(json!({"size": size}))
}

fn yes() -> Value {
    accept(json!({"value": true}))
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_wins_and_the_other_question_is_withdrawn() {
    let client = tools(&probe());
    for (answers, late, expected) in [
        (vec![json!({"size": size(3)})], json!({"name": name("Anna")}), "3 true"),
        (vec![json!({"name": name("Anna")})], json!({"size": size(3)}), "Anna true"),
        // In one message, the first in source order wins; in two, the first message.
        (vec![json!({"size": size(3), "name": name("Anna")})], json!({}), "Anna true"),
        (vec![json!({"size": size(3)}), json!({"name": name("Anna")})], json!({}), "3 true"),
        // A declined question wins too, and its error ends the call: see below.
    ] {
        let id = client.task("first_of_two", json!({})).await;
        client.asked(&id, &["name", "size"]).await;
        for answer in answers {
            client.update(&id, answer).await;
        }
        client.asked(&id, &["confirm"]).await;
        client.update(&id, late).await;
        client.update(&id, json!({"confirm": yes()})).await;
        assert_eq!(text_of(&client.status(&id, "completed").await), expected);
    }
    let id = client.task("first_of_two", json!({})).await;
    client.asked(&id, &["name", "size"]).await;
    client.update(&id, json!({"size": {"action": "decline"}})).await;
    assert_eq!(client.status(&id, "completed").await["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_wins_withdraws_the_question_that_was_shown() {
    let probe = probe();
    let client = tools(&probe);
    for answers in [false, true] {
        let id = client.task("work_or_answer", json!({})).await;
        client.asked(&id, &["name"]).await;
        if answers {
            // The step runs on, and wins when it ends.
            client.update(&id, json!({"name": name("Anna")})).await;
        }
        probe.gate.add_permits(1);
        client.asked(&id, &["confirm"]).await;
        client.update(&id, json!({"name": name("Bert")})).await;
        client.update(&id, json!({"confirm": yes()})).await;
        assert_eq!(text_of(&client.status(&id, "completed").await), "worked true");
    }
}

#[tokio::test(start_paused = true)]
async fn checkpoints_are_passed() {
    let probe = probe();
    let client = tools(&probe);
    let id = client.task("checkpoints", json!({})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "passed");
    assert_eq!(probe.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn keys_have_scopes_and_numbers() {
    let client = tools(&probe());
    let id = client.task("everybody", json!({})).await;
    client.asked(&id, &["anna/name#1", "bert/name#1"]).await;
    client.update(&id, json!({"bert/name#1": name("Carl")})).await;
    client.asked(&id, &["anna/name#1"]).await;
    client.update(&id, json!({"anna/name#1": {"action": "accept", "content": {"name": 7}}})).await;
    client.asked(&id, &["anna/name#1~2"]).await;
    client.update(&id, json!({"anna/name#1~2": name("Dora")})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "anna greets Dora, bert greets Carl");
}

#[tokio::test(start_paused = true)]
async fn a_model_and_roots_are_asked_in_a_task() {
    let client = tools(&probe()).capable(json!({"sampling": {}, "roots": {}}));
    let id = client.task("machine", json!({})).await;
    let asked = client.asked(&id, &["sample"]).await;
    assert_eq!(asked["inputRequests"]["sample"]["method"], "sampling/createMessage");
    let message = json!({"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"});
    client.update(&id, json!({"sample": message})).await;
    client.asked(&id, &["roots"]).await;
    client.update(&id, json!({"roots": {"roots": [{"uri": "file:///a"}]}})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "Hello file:///a");
    // A question to a model has no answer that cancels it.
    let id = client.task("machine", json!({})).await;
    client.asked(&id, &["sample"]).await;
    client.cancel(&id).await;
    client.status(&id, "cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn a_person_declines_or_dismisses() {
    let client = tools(&probe());
    for (answer, expected) in [
        (name("Anna"), "Anna"),
        (json!({"action": "decline"}), "declined"),
        (json!({"action": "cancel"}), "dismissed"),
    ] {
        let id = client.task("outcome", json!({})).await;
        client.asked(&id, &["name"]).await;
        client.update(&id, json!({"name": answer})).await;
        assert_eq!(text_of(&client.status(&id, "completed").await), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_third_wrong_answer_fails_the_task() {
    let client = tools(&probe());
    let id = client.task("outcome", json!({})).await;
    for key in ["name", "name~2", "name~3"] {
        client.asked(&id, &[key]).await;
        client.update(&id, json!({key: accept(json!({"name": 7}))})).await;
    }
    let failed = client.status(&id, "failed").await;
    assert_eq!(failed["error"]["data"]["limit"], "times_asked", "{failed}");
    assert_eq!(failed["statusMessage"], failed["error"]["message"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_may_ask_more_often_than_a_call() {
    let client = tools(&probe());
    let id = client.task("many", json!({"number": 20})).await;
    for at in 0..20 {
        let key = format!("size#{at}");
        client.asked(&id, &[&key]).await;
        client.update(&id, json!({key: size(1)})).await;
    }
    assert_eq!(text_of(&client.status(&id, "completed").await), "20");
}

#[tokio::test(start_paused = true)]
async fn returned_questions_may_be_many_and_are_asked_again() {
    let client = tools(&probe());
    let id = client.task("by_hand", json!({"number": 20})).await;
    for at in 0..20 {
        let key = format!("size-{at}");
        client.asked(&id, &[&key]).await;
        client.update(&id, json!({key.clone(): accept(json!({"size": "big"}))})).await;
        let again = format!("{key}~2");
        client.asked(&id, &[&again]).await;
        client.update(&id, json!({again: size(1)})).await;
    }
    assert_eq!(text_of(&client.status(&id, "completed").await), "20 answers");
}

#[tokio::test(start_paused = true)]
async fn a_resolver_asks_and_its_step_runs_once() {
    let probe = probe();
    let client = tools(&probe);
    let id = client.task("delete_folder", json!({})).await;
    let asked = client.until(&id, |task| !keys_of(task).is_empty()).await;
    let key = keys_of(&asked)[0].to_owned();
    client.update(&id, json!({key: name("work")})).await;
    client.asked(&id, &["confirm"]).await;
    client.update(&id, json!({"confirm": accept(json!({"value": false}))})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "work false");
    assert_eq!(probe.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn the_capabilities_are_those_of_the_creating_request() {
    let client = tools(&probe());
    let mute = client.capable(json!({}));
    let id = mute.task("or_refuse", json!({})).await;
    // Another request with more capabilities changes nothing.
    assert_eq!(text_of(&client.status(&id, "completed").await), "unsupported");
    let id = client.task("or_refuse", json!({})).await;
    mute.asked(&id, &["name"]).await;
    mute.update(&id, json!({"name": name("Anna")})).await;
    assert_eq!(text_of(&mute.status(&id, "completed").await), "Anna");
}

#[test]
fn one_question_expires_and_the_other_keeps_its_key() {
    let (clock, hand) = Clock::manual(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let (store_clock, store_hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let store = MemoryStore::new().clock(store_clock);
        let server = Server::builder("a", "1").clock(clock).store(store).tool(hurry).build().unwrap();
        let client = TaskClient::of(server);
        let id = client.task("hurry", json!({})).await;
        client.asked(&id, &["name", "size"]).await;
        hand.advance(Duration::from_secs(3602));
        store_hand.advance(Duration::from_secs(3602));
        tokio::time::sleep(Duration::from_secs(5)).await;
        client.asked(&id, &["size"]).await;
        client.update(&id, json!({"name": name("Anna")})).await;
        client.update(&id, json!({"size": size(4)})).await;
        assert_eq!(text_of(&client.status(&id, "completed").await), "nobody 4");
    });
}

/// Asks often, then does something, and then fails once.
#[tool(task = "required")]
async fn fails_late(ctx: &Ctx, probe: State<Probe>) -> Result<String, Error> {
    for at in 0..20_u32 {
        ctx.confirm("Go on?").nth(at).await?;
    }
    let effects: usize =
        ctx.step("effect", async |_| Ok(probe.runs.fetch_add(1, Ordering::SeqCst) + 1)).await?;
    ctx.step("fails", async |_| match probe.gate.try_acquire() {
        Ok(permit) => {
            permit.forget();
            Ok(())
        }
        Err(_) => Err(StepError::retry("not now")),
    })
    .await?;
    Ok(effects.to_string())
}

/// The tasks have no store of calls: the record of the failed leg is all that says that the step has run.
#[tokio::test(start_paused = true)]
async fn a_late_failure_repeats_no_step() {
    let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let probe = probe();
    let server = Server::builder("a", "1")
        .task_store(Arc::new(MemoryTasks::new().clock(clock)))
        .state(probe.clone())
        .tool(fails_late);
    let client = TaskClient::of(server.build().unwrap());
    let id = client.task("fails_late", json!({})).await;
    for at in 0..20 {
        let key = format!("confirm#{at}");
        client.asked(&id, &[&key]).await;
        client.update(&id, json!({key: yes()})).await;
    }
    client.until(&id, |_| probe.runs.load(Ordering::SeqCst) == 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    probe.gate.add_permits(1);
    hand.advance(Duration::from_secs(16));
    assert_eq!(text_of(&client.status(&id, "completed").await), "1");
}
