//! A client that is at work on a question says so, and has longer for it, up to a maximum.

use crate::common::{
    gate::soon,
    log::take_log,
    ring,
    session::{InSession, everything, plain},
};
use crate::legacy_http_support::{HttpReply, NEWEST, Session, call, post, send};
use antiphon::{
    Form, Result,
    serve::http::{HttpOptions, HttpService},
    server::{
        Answer, Ask, AskError, Ctx, Limits, NoArguments, Reply, Server, ServerBuilder, Tool,
        asks::InputRequired,
    },
    wire::{
        forms::{FormField, FormSchema},
        sampling::SamplingMessage,
    },
};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

#[derive(Deserialize, Form)]
struct Place {
    region: String,
}

const HOUR: u64 = 3600;

fn server(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    change(Server::builder("progress", "1").keys(ring(7))).build().unwrap()
}

/// A server whose tool `t` asks one question, with this time of its own.
fn asking(within: Option<u64>, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    server(|builder| change(builder).tool(Tool::new("t", lent(move |ctx, _| Box::pin(ask(ctx, within))))))
}

/// Returns the closure unchanged. The bound lets its future borrow the context.
fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, String>>(handler: F) -> F {
    handler
}

async fn ask(ctx: &Ctx, within: Option<u64>) -> String {
    let ask = ctx.elicit::<Place>("Where?");
    let ask = match within {
        Some(within) => ask.timeout(Duration::from_secs(within)),
        None => ask,
    };
    match ask.await {
        Ok(place) => place.region,
        Err(AskError::Expired { .. }) => "expired".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A client in a session that has called `t`. It has all the time of the paused clock.
enum ToolCall {
    Pipes(Box<InSession>),
    Http(Box<(Session, HttpReply)>),
}

impl ToolCall {
    async fn call(server: &Server, http: bool) -> Self {
        if http {
            let service = HttpService::new(server.clone(), HttpOptions::default());
            let session = Session::open(&service, NEWEST).await;
            let called = session.post(&call(1, "t", json!({}))).await;
            return Self::Http(Box::new((session, called)));
        }
        let mut session = InSession::newest(server).await;
        session.send(plain(1, "tools/call", json!({"name": "t"}))).await;
        Self::Pipes(Box::new(session))
    }

    async fn receive(&mut self) -> Value {
        match self {
            Self::Pipes(session) => {
                let line = session.peer.lines.next_line().await.unwrap().unwrap();
                serde_json::from_str(&line).unwrap()
            }
            Self::Http(http) => http.1.message().await,
        }
    }

    async fn send(&mut self, message: &str) {
        match self {
            Self::Pipes(session) => session.peer.send(message).await,
            Self::Http(http) => {
                let session = &http.0;
                assert_eq!(send(&session.service, session.own(post(message))).await.status, 202, "{message}");
            }
        }
    }

    async fn send_progress(&mut self, params: &str) {
        self.send(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#))
            .await;
    }

    async fn answers(&mut self, asked: &Value, region: &str) {
        let result = json!({"action": "accept", "content": {"region": region}});
        self.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string()).await;
    }
}

/// Each kind of question, in each version that has it.
#[tokio::test]
async fn every_question_carries_its_id_as_a_token() {
    let server = server(|builder| {
        builder
            .tool(Tool::new("forms", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
                let (place, url) = tokio::join!(
                    ctx.elicit::<Place>("Where?"),
                    ctx.elicit_url("Pay.", |r| format!("https://pay.example/{r}")),
                );
                url?;
                Ok(place?.region)
            }))
            .tool(Tool::new("old", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
                let (model, roots) =
                    tokio::join!(ctx.sample([SamplingMessage::user("Hello?")], 10), ctx.roots());
                Ok(format!("{} {}", model?.model, roots?.len()))
            }))
            .tool(Tool::new("form", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
                Ok(ctx.elicit::<Place>("Where?").await?.region)
            }))
    });
    for (version, tool, asks) in [
        ("2025-11-25", "forms", 2),
        ("2025-11-25", "old", 2),
        ("2025-06-18", "form", 1),
        ("2025-06-18", "old", 2),
        ("2025-03-26", "old", 2),
        ("2024-11-05", "old", 2),
    ] {
        let mut session = InSession::open(&server, version, everything()).await;
        let mut tokens = Vec::new();
        for id in 1..=2 {
            session.send(plain(id, "tools/call", json!({"name": tool}))).await;
            for _ in 0..asks {
                let asked = session.receive().await;
                assert_eq!(
                    asked["params"]["_meta"],
                    json!({"progressToken": asked["id"]}),
                    "{version}: {asked}"
                );
                tokens.push(asked["id"].as_u64().unwrap());
            }
        }
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), 2 * asks, "{version}: {tokens:?}");
    }
}

/// Tells this at these seconds, on pipes and over HTTP, and sees when the question is over and what is said then.
/// `TOKEN` stands for the token.
async fn check(what: &str, server: &Server, tells: &[(u64, &str)], lasts: u64, wanted: &str) {
    for http in [false, true] {
        let mut talk = ToolCall::call(server, http).await;
        let asked = soon(talk.receive()).await;
        let (began, token) = (Instant::now(), asked["params"]["_meta"]["progressToken"].to_string());
        for (at, params) in tells.iter().take_while(|(at, _)| *at < lasts) {
            sleep_until(began + Duration::from_secs(*at)).await;
            talk.send_progress(&params.replace("TOKEN", &token)).await;
        }
        let cancelled = talk.receive().await;
        let name = format!("{what}, over HTTP: {http}");
        assert_eq!(cancelled["params"]["requestId"], asked["id"], "{name}: {cancelled}");
        let lasted = began.elapsed().as_secs();
        assert!((lasts..=lasts + 2).contains(&lasted), "{name}: {lasted}");
        let reply = talk.receive().await;
        assert!(reply["id"] == 1 && reply.to_string().contains(wanted), "{name}: {reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_gives_more_time_up_to_a_maximum() {
    let done = |number: &str| format!(r#"{{"progressToken": TOKEN, "progress": {number}}}"#);
    let (one, two, three) = (done("1"), done("2.5"), done("3"));
    let often: Vec<String> = (1..=8).map(|number| done(&number.to_string())).collect();
    let often: Vec<(u64, &str)> = (1..).map(|at| 400 * at).zip(often.iter().map(String::as_str)).collect();
    let ten_minutes = "`place` was not answered within 600 seconds";
    let plain = asking(None, |builder| builder);
    for (what, tells, lasts) in [
        ("nothing", &[][..], 600),
        ("once", &[(500, &*one)], 1100),
        ("more than once", &[(500, &one), (1000, &two), (1500, &three)], 2100),
        ("from below nothing", &[(100, &done("-3")), (500, &done("0"))], 1100),
        ("the same again", &[(100, &one), (500, &one)], 700),
        ("less", &[(100, &two), (500, &one)], 700),
        ("more, after less", &[(100, &two), (200, &one), (500, &three)], 1100),
    ] {
        check(what, &plain, tells, lasts, ten_minutes).await;
    }
    check("on and on", &plain, &often, HOUR, "was not answered within 3600 seconds").await;
    let at_most = |time: Duration| {
        move |builder: ServerBuilder| {
            let limits = Limits::default().max_answer_timeout(time);
            builder.limits(limits)
        }
    };
    let short = asking(None, at_most(Duration::from_secs(1500)));
    check("another maximum", &short, &often, 1500, "within 1500 seconds").await;
    let none = asking(None, at_most(Duration::ZERO));
    check("no more than without", &none, &often[..1], 600, ten_minutes).await;
    let endless = asking(None, at_most(Duration::MAX));
    check("no maximum", &endless, &often, 8 * 400 + 600, ten_minutes).await;
    let long = asking(None, |builder| builder.answer_timeout(Duration::from_secs(2 * HOUR)));
    check("longer than the maximum", &long, &often, 2 * HOUR, "within 7200 seconds").await;
    for within in [30, 1000, 2 * HOUR] {
        let own = asking(Some(within), |builder| builder);
        check("the author's own time", &own, &[(within - 10, &one)], within, "expired").await;
    }
}

/// Notifications that are no progress of the question change nothing.
#[tokio::test(start_paused = true)]
async fn what_is_no_progress_of_a_question() {
    let server = asking(None, |builder| builder);
    for params in [
        r#"{"progressToken": 99, "progress": 1}"#,
        r#"{"progressToken": 0, "progress": 1}"#,
        r#"{"progressToken": -1, "progress": 1}"#,
        r#"{"progressToken": 18446744073709551616, "progress": 1}"#,
        r#"{"progressToken": "TOKEN", "progress": 1}"#,
        r#"{"progressToken": null, "progress": 1}"#,
        r#"{"progressToken": [TOKEN], "progress": 1}"#,
        r#"{"progress": 1}"#,
        r#"{"progressToken": TOKEN}"#,
        r#"{"progressToken": TOKEN, "progress": "1"}"#,
        r#"{"progressToken": TOKEN, "progress": null}"#,
        r#"{"progressToken": TOKEN, "progress": 1e999}"#,
        r#"{"progressToken": TOKEN, "progress": 1, "message": 7}"#,
        r#"{"progressToken": TOKEN, "progressToken": TOKEN, "progress": 1}"#,
        "{}",
    ] {
        check(params, &server, &[(500, params)], 600, "within 600 seconds").await;
    }
    let flood: Vec<String> =
        (1..5000).map(|number| format!(r#"{{"progressToken": TOKEN, "progress": {number}}}"#)).collect();
    let flood: Vec<(u64, &str)> = flood.iter().map(|params| (500, params.as_str())).collect();
    check("a flood", &server, &flood, 1100, "within 600 seconds").await;
}

/// A dropped answer is one line for debugging, without the words of a person, also if many are dropped.
#[tokio::test(start_paused = true)]
async fn words_of_people_are_not_logged() {
    take_log();
    let server = asking(None, |builder| builder);
    let said = r#"{"progressToken": TOKEN, "progress": 4242, "message": "they live in Lisbon"}"#;
    let other = r#"{"progressToken": "they live in Lisbon", "progress": "they live in Lisbon"}"#;
    check("logged", &server, &[(1, said), (1, said), (1, other)], 601, "within 600 seconds").await;
    let log = take_log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("progress")).collect();
    assert!(lines.iter().any(|line| line.contains("4242")), "{log}");
    assert!(lines.iter().all(|line| line.starts_with("DEBUG")), "{log}");
    assert!(!log.contains("Lisbon"), "{log}");
}

/// Progress of a question that was answered is nobody's, and that of one session is not another's.
#[tokio::test(start_paused = true)]
async fn tokens_of_others() {
    let tool = Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        ctx.elicit::<Place>("Where?").key("first").await?;
        Ok(ctx.elicit::<Place>("And then?").key("second").await?.region)
    });
    let server = server(|builder| builder.tool(tool));
    for http in [false, true] {
        let (mut talk, mut other) =
            (ToolCall::call(&server, http).await, ToolCall::call(&server, http).await);
        let (first, theirs) = (talk.receive().await, other.receive().await);
        assert_eq!(first["id"], theirs["id"], "each session counts for itself");
        talk.answers(&first, "eu").await;
        let second = talk.receive().await;
        let began = Instant::now();
        sleep_until(began + Duration::from_secs(500)).await;
        talk.send_progress(&format!(r#"{{"progressToken": {}, "progress": 1}}"#, first["id"])).await;
        other.send_progress(&format!(r#"{{"progressToken": {}, "progress": 1}}"#, theirs["id"])).await;
        assert_eq!(talk.receive().await["params"]["requestId"], second["id"]);
        assert!((600..=602).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        assert_eq!(other.receive().await["params"]["requestId"], theirs["id"]);
        assert!((1100..=1102).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    }
}

/// An answer that comes in the time that progress gave counts; and what is asked by hand is waited for by the same
/// rules, each question for itself.
#[tokio::test(start_paused = true)]
async fn answers_that_took_longer() {
    fn ask(key: &str) -> Ask {
        Ask::form(key, format!("{key}?"), FormSchema::new(vec![FormField::text("region")]))
    }
    let by_hand = Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<Reply<String>> {
        let (a, b) = (ctx.by_hand().form::<Place>(&ask("a"))?, ctx.by_hand().form::<Place>(&ask("b"))?);
        Ok(match (a, b) {
            (Some(Answer::Accept(a)), Some(Answer::Accept(b))) => {
                Reply::Complete(format!("{} {}", a.region, b.region))
            }
            _ => InputRequired::ask(ask("a")).and(ask("b")).into(),
        })
    });
    let awaited = Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let (a, b) = tokio::join!(ctx.elicit::<Place>("a?").key("a"), ctx.elicit::<Place>("b?").key("b"));
        Ok(format!("{} {}", a?.region, b?.region))
    });
    for tool in [by_hand, awaited] {
        let server = server(|builder| builder.tool(tool));
        for (http, both) in [(false, true), (false, false), (true, true), (true, false)] {
            let mut talk = ToolCall::call(&server, http).await;
            let asked = [talk.receive().await, talk.receive().await];
            let began = Instant::now();
            sleep_until(began + Duration::from_secs(500)).await;
            for one in &asked[..if both { 2 } else { 1 }] {
                talk.send_progress(&format!(
                    r#"{{"progressToken": {}, "progress": 0.5, "total": 1}}"#,
                    one["id"]
                ))
                .await;
            }
            if both {
                sleep_until(began + Duration::from_secs(1000)).await;
                for (one, region) in asked.iter().zip(["eu", "us"]) {
                    talk.answers(one, region).await;
                }
                let reply = talk.receive().await;
                assert_eq!(reply["result"]["content"][0]["text"], "eu us", "{reply}");
                continue;
            }
            // Both are taken back, the one that was late and the other with the call.
            let mut over =
                [talk.receive().await, talk.receive().await].map(|told| told["params"]["requestId"].clone());
            over.sort_by_key(Value::as_u64);
            assert_eq!(over, asked.map(|one| one["id"].clone()));
            let reply = talk.receive().await;
            let text = reply["error"]["message"].as_str().unwrap_or_else(|| panic!("{reply}"));
            assert!(text.contains("`b` was not answered within 600 seconds"), "{text}");
            assert!((600..=602).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        }
    }
}
