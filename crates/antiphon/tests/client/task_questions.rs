//! The questions of a task: asked once, answered in parts, dropped when they are superseded.

use crate::{client_support::*, task_server::*};
use antiphon::client::{
    CallbackError, ClientBuilder, ClientError, ClientErrorKind, FormAsk, RoundDecision, asks::AskFault,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep};

type Log = Arc<Mutex<Vec<String>>>;

/// Notes its end: a callback that is dropped ends too.
struct Asked(Log, Instant, String, bool);

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.3 {
            self.0.lock().unwrap().push(format!("{} {} dropped", self.1.elapsed().as_millis(), self.2));
        }
    }
}

/// A client whose callback takes this many seconds for each key: `a7` takes seven. It notes when it is asked.
fn slow_forms(log: &Log) -> ClientBuilder {
    let (log, started) = (Arc::clone(log), Instant::now());
    builder().on_elicit_form(move |ask: FormAsk| {
        let key = ask.context.key.clone();
        log.lock().unwrap().push(format!(
            "{} {key} round {}",
            started.elapsed().as_millis(),
            ask.context.round
        ));
        let mut asked = Asked(Arc::clone(&log), started, key.clone(), false);
        async move {
            sleep(Duration::from_secs(key[1..].parse().unwrap())).await;
            let asked = &mut asked;
            asked.3 = true;
            if key.starts_with('x') {
                return Err(CallbackError::new("the person left"));
            }
            Ok(ask.accept(json!({"region": "eu"}))?)
        }
    })
}

/// The callbacks, the requests, and the error, if there is one.
async fn check(
    polls: Vec<Reply>,
    set: impl Fn(ClientBuilder) -> ClientBuilder,
    asked: &[&str],
    updates: &[&str],
) -> Option<ClientError> {
    let server = TaskServer::new(Script::new(polls));
    let log = Log::default();
    let came = server.client(set(slow_forms(&log))).call_tool("slow", ()).await;
    assert_eq!(*log.lock().unwrap(), asked);
    let sent: Vec<String> = server.timed().into_iter().filter(|line| line.contains("update")).collect();
    assert_eq!(sent, updates);
    came.err()
}

fn repeat(poll: &Reply, times: usize) -> impl Iterator<Item = Reply> {
    std::iter::repeat_n(poll.clone(), times)
}

#[tokio::test(start_paused = true)]
async fn every_question_is_asked_once() {
    // The server is slow to see the answer; later it asks something else.
    let polls: Vec<Reply> = repeat(&forms_of(&["a0"]), 3)
        .chain([forms_of(&["a0", "b0"]), working(), completed("done")])
        .collect();
    let none = check(
        polls,
        |it| it,
        &["1000 a0 round 1", "4000 b0 round 2"],
        &["1000 tasks/update a0", "4000 tasks/update b0"],
    )
    .await;
    assert!(none.is_none());
}

#[tokio::test(start_paused = true)]
async fn answers_are_sent_as_they_come() {
    let polls: Vec<Reply> = repeat(&forms_of(&["a2", "b1", "c1"]), 4).chain([completed("done")]).collect();
    let asked = ["1000 a2 round 1", "1000 b1 round 1", "1000 c1 round 1"];
    check(polls.clone(), |it| it, &asked, &["2000 tasks/update b1,c1", "3000 tasks/update a2"]).await;
    let asked = ["1000 a2 round 1", "3000 b1 round 1", "4000 c1 round 1"];
    let updates = ["3000 tasks/update a2", "4000 tasks/update b1", "5000 tasks/update c1"];
    check(polls, |it| it.one_at_a_time(true), &asked, &updates).await;
}

#[tokio::test(start_paused = true)]
async fn a_superseded_question_cancels_its_callback() {
    let polls = vec![
        forms_of(&["a9", "b9"]),
        forms_of(&["b9"]),
        forms_of(&["b9", "c1"]),
        working(),
        completed("done"),
    ];
    let asked =
        ["1000 a9 round 1", "1000 b9 round 1", "2000 a9 dropped", "3000 c1 round 2", "4000 b9 dropped"];
    // The answer to `c1` came in the moment of the poll that has it no more.
    check(polls, |it| it, &asked, &["4000 tasks/update c1"]).await;
    // A question that comes back without an answer is asked again, and the end of the task drops it.
    let polls = vec![forms_of(&["a9"]), working(), forms_of(&["a9"]), completed("done")];
    let asked = ["1000 a9 round 1", "2000 a9 dropped", "3000 a9 round 2", "4000 a9 dropped"];
    check(polls, |it| it, &asked, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn on_round_decides_on_the_questions_of_a_task() {
    let polls = || -> Vec<Reply> { repeat(&forms_of(&["a0", "b0"]), 4).chain([completed("done")]).collect() };
    let declines = |it: ClientBuilder| {
        it.on_round(async |round| {
            assert_eq!((round.number, round.target.as_str(), round.asks.len()), (1, "slow", 2));
            RoundDecision::go().decline("b0").send_after(Duration::from_secs(2))
        })
    };
    check(polls(), declines, &["1000 a0 round 1"], &["3000 tasks/update a0,b0"]).await;
    let refuses = |it: ClientBuilder| it.on_round(async |_| RoundDecision::refuse("not today"));
    let error = check(polls(), refuses, &[], &[]).await.unwrap();
    assert!(
        chain(&error).ends_with("the round was refused here: not today") && error.task().is_some(),
        "{error}"
    );
}

/// The checks of rounds are those of tasks.
#[tokio::test(start_paused = true)]
async fn a_question_that_may_not_be_asked_ends_the_call() {
    let ends = async |poll: Reply, set: fn(ClientBuilder) -> ClientBuilder, text: &str| {
        let error = check(vec![poll], set, &[], &[]).await.unwrap();
        assert!(chain(&error).contains(text), "{error}");
        assert!(error.task().is_some(), "{error}");
    };
    ends(input(json!({"m": sampling()})), |it| it, "Sampling not supported").await;
    ends(
        input(json!({"u": url("javascript:alert(1)")})),
        |it| it.on_elicit_url(async |ask| Ok(ask.consent())),
        "not a valid http or https URL",
    )
    .await;
    ends(input(json!({"x": {"method": "what/ever"}})), |it| it, "which is unknown here").await;
    ends(forms_of(&["a0", "b0", "c0"]), |it| it.max_asks(2), "`max_asks`").await;
    ends(forms_of(&["a0"]), |it| it.max_rounds(0), "`max_rounds`").await;
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_fails_leaves_the_task_and_the_answers() {
    for cancels in [false, true] {
        // The reply to the update is lost: the answer is not acknowledged yet.
        let mut script = Script::new([forms_of(&["a0", "x2", "b1"])]);
        script.updates = vec![Reply::Result(json!({})), Reply::Hang];
        let server = TaskServer::new(script);
        let log = Log::default();
        let call = antiphon::client::Call::tool("slow", ()).unwrap().cancel_on_error(cancels);
        let error = server.client(slow_forms(&log)).call(call).await.unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::Ask(AskFault::Callback { key, .. }) if key == "x2"),
            "{error}"
        );
        let handle = error.task().unwrap();
        assert_eq!(handle.answered().collect::<Vec<_>>(), ["a0"]);
        assert_eq!(handle.unsent().iter().map(|(key, _)| key).collect::<Vec<_>>(), ["b1"]);
        assert_eq!(server.methods().contains(&"tasks/cancel".to_owned()), cancels);

        // Another process sends the answer that was not acknowledged, and asks the rest only.
        let handle = serde_json::from_str(&serde_json::to_string(handle).unwrap()).unwrap();
        let polls = [forms_of(&["a0", "b1", "x2"]), completed("done")];
        let server = TaskServer::new(Script::new(polls));
        let client = builder().on_elicit_form(async |ask| {
            assert_eq!((ask.context.key.as_str(), ask.context.round), ("x2", 2));
            Ok(ask.decline())
        });
        server.client(client).task(handle).wait().await.unwrap();
        assert_eq!(server.methods(), ["tasks/get", "tasks/update b1", "tasks/update x2", "tasks/get"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_is_sent_again_until_it_is_acknowledged() {
    let mut script = Script::new([
        forms_of(&["a0"]),
        forms_of(&["a0"]),
        forms_of(&["a0"]),
        forms_of(&["a0"]),
        completed("done"),
    ]);
    script.updates =
        vec![Reply::Broken, Reply::Error(-32603, json!({"reason": "busy"})), Reply::Result(json!({}))];
    let server = TaskServer::new(script);
    server.client(slow_forms(&Log::default())).call_tool("slow", ()).await.unwrap();
    let sent = server.methods().iter().filter(|line| *line == "tasks/update a0").count();
    assert_eq!(sent, 3, "{:?}", server.timed());
}

/// The code of an unknown task is also that of an answer that the server refuses.
#[tokio::test(start_paused = true)]
async fn a_refused_update_differs_from_an_unknown_task() {
    let refused = || Reply::Refused(-32602, "no", Value::Null);
    for (second, is_gone) in [(forms_of(&["a0"]), false), (refused(), true)] {
        let mut script = Script::new([forms_of(&["a0"]), second]);
        script.updates = vec![refused()];
        let server = TaskServer::new(script);
        let error = server.client(slow_forms(&Log::default())).call_tool("slow", ()).await.unwrap_err();
        assert_eq!((error.is_not_found(), error.task().is_none()), (is_gone, is_gone), "{error}");
    }
}

/// Answers of another process are checked before they are sent.
#[tokio::test(start_paused = true)]
async fn stored_answers_are_checked_against_their_questions() {
    let stored = |answer: Value| json!({"server": {"target": "fake:server"}, "task_id": ID, "unsent": {"a0": answer, "gone": {}}});
    let script = || Script::new([forms_of(&["a0"]), completed("done")]);
    for (answer, expected) in [
        (json!({"action": "accept", "content": {"region": "eu"}}), Ok(())),
        (json!({"action": "accept", "content": {}}), Err("does not fit its form")),
        (json!(7), Err("the answer to `a0` must be")),
    ] {
        let server = TaskServer::new(script());
        let handle = serde_json::from_value(stored(answer)).unwrap();
        let came = server.client(slow_forms(&Log::default())).task(handle).wait().await;
        match (came, expected) {
            (Ok(_), Ok(())) => assert_eq!(server.methods(), ["tasks/get", "tasks/update a0", "tasks/get"]),
            (Err(error), Err(text)) => {
                assert!(chain(&error).contains(text), "{error}");
                assert_eq!(server.methods(), ["tasks/get"]);
            }
            (came, _) => panic!("{came:?}"),
        }
    }
}
