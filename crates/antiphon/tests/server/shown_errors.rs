//! Error texts on the wire: which of them the caller reads, and which go to the log only.

use crate::common::{
    log::take_log,
    one_tool::{built, tool},
    tool_call::ToolCall,
    *,
};
use antiphon::{
    Error, Result, ShowError,
    server::{Completing, Ctx, NoArguments, Prompt, Resource, ServerBuilder, StepError, Tool},
    wire::{ReadResourceResult, content::PromptArgument},
};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::{fmt, io};

/// A text that no caller may read.
const SECRET: &str = "/srv/secret/orders.db";

/// The text of a tool whose foreign error is hidden.
const HIDDEN: &str = "The tool t failed; the reason is in the server's log";

/// A foreign error with a cause.
#[derive(Debug)]
struct Foreign(io::Error);

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the orders cannot be read")
    }
}

impl std::error::Error for Foreign {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn foreign() -> Foreign {
    Foreign(io::Error::other(SECRET))
}

fn failed() -> Result<String, Foreign> {
    Err(foreign())
}

/// The chain of the foreign error, as it is logged.
fn chain() -> String {
    format!("the orders cannot be read: {SECRET}")
}

/// An error type of the author with a conversion of its own.
enum Own {
    NoSuchTown,
    Database,
}

impl From<Own> for Error {
    fn from(error: Own) -> Self {
        match error {
            Own::NoSuchTown => Self::user_facing("There is no such town."),
            Own::Database => foreign().into(),
        }
    }
}

/// A tool that returns this value.
macro_rules! returning {
    ($result:expr) => {
        || Tool::new("t", async |_: &Ctx, _: NoArguments| $result)
    };
}

/// Calls the tool once. Returns the text of the result, and the log.
async fn call(tool: Tool, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> (String, String) {
    take_log();
    let server = built(tool, change);
    let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
    assert_eq!(reply["result"]["isError"], json!(true), "{reply}");
    (reply["result"]["content"][0]["text"].as_str().expect("a text").to_owned(), take_log())
}

/// The foreign error is hidden and logged with its causes.
async fn check_hidden(what: &str, tool: fn() -> Tool) {
    let (text, log) = call(tool(), |builder| builder).await;
    assert_eq!(text, HIDDEN, "{what}");
    assert!(log.contains("a handler failed") && log.contains(SECRET), "{what}: {log}");

    let (text, log) = call(tool(), |builder| builder.show_errors(true)).await;
    assert!(text.contains(SECRET), "{what}: {text}");
    assert!(log.contains("WARN") && log.contains("for development only"), "{what}: {log}");
}

async fn check_shown(expected: &str, tool: fn() -> Tool) {
    let (text, log) = call(tool(), |builder| builder).await;
    assert_eq!(text, expected);
    assert!(!log.contains("ERROR"), "{expected}: {log}");
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn question_mark<E>(error: E) -> Result<String>
where
    Error: From<E>,
{
    Err(error)?
}

fn anyhow_error() -> anyhow::Error {
    anyhow::Error::from(foreign()).context("while listing")
}

#[tokio::test]
async fn foreign_errors_are_hidden_whatever_the_return_type() {
    check_hidden("antiphon::Result", returning!(question_mark(foreign()))).await;
    check_hidden("an error of std", returning!(Err::<String, _>(io::Error::other(SECRET)))).await;
    check_hidden("an error with a cause", returning!(Err::<String, _>(foreign()))).await;
    check_hidden("a box", returning!(Err::<String, BoxError>(Box::new(foreign())))).await;
    check_hidden("a text in a box", returning!(question_mark(BoxError::from(SECRET)))).await;
    check_hidden("anyhow, returned", returning!(Err::<String, _>(anyhow_error()))).await;
    check_hidden("anyhow, by ?", returning!(question_mark(anyhow_error()))).await;
    check_hidden("an own type with a foreign cause", returning!(Err::<String, _>(Own::Database))).await;
}

#[tokio::test]
async fn the_log_has_the_whole_chain() {
    let (_, log) = call(returning!(Err::<String, _>(foreign()))(), |builder| builder).await;
    assert!(log.contains(&chain()), "{log}");
    let (_, log) = call(returning!(question_mark(anyhow_error()))(), |builder| builder).await;
    assert!(log.contains(&format!("while listing: {}", chain())), "{log}");
}

#[tokio::test]
async fn texts_made_for_the_caller_are_shown() {
    check_shown("no", returning!(Err::<String, _>(Error::user_facing("no")))).await;
    check_shown("no", returning!(Err::<String, _>("no"))).await;
    check_shown("no", returning!(Err::<String, _>(String::from("no")))).await;
    check_shown("no", returning!(question_mark("no"))).await;
    check_shown("no", returning!(Err::<String, _>(StepError::new("no")))).await;
    check_shown("no", returning!(question_mark(anyhow::Error::from(StepError::new("no")).context("more"))))
        .await;
    check_shown("There is no such town.", returning!(Err::<String, _>(Own::NoSuchTown))).await;
}

#[tokio::test]
async fn show_makes_a_foreign_error_a_text_for_the_caller() {
    let shown = format!("the orders cannot be read: {SECRET}");
    check_shown(&shown, returning!(Err::<String, _>(foreign()).show())).await;
    check_shown(&shown, returning!(Ok::<String, Error>(Err(foreign()).show()?))).await;
    check_shown(&shown, returning!(failed().map_err(Error::show))).await;
    check_shown(&shown, returning!(Err::<String, _>(Error::from(foreign())).show())).await;
    check_shown(&format!("while listing: {shown}"), returning!(Err::<String, _>(anyhow_error()).show()))
        .await;
    // What is shown already keeps its text.
    check_shown("no", returning!(Err::<String, _>(Error::user_facing("no")).show())).await;
}

#[tokio::test]
async fn anyhow_context_reaches_the_log() {
    let tool = Tool::new("t", async |_: &Ctx, _: NoArguments| -> anyhow::Result<String> {
        Err(foreign()).context("while listing")
    });
    let (text, log) = call(tool, |builder| builder).await;
    assert_eq!(text, HIDDEN);
    assert!(log.contains(&format!("while listing: {}", chain())), "{log}");
}

/// The step's error is recorded, so the rule holds on later legs too.
#[tokio::test]
async fn an_error_of_a_step_follows_the_rule() {
    let hides = || tool!(|ctx| { Ok(ctx.step("read", async |_| Ok(failed()?)).await?) });
    let shows = || tool!(|ctx| { Ok(ctx.step("read", async |_| failed().show()).await?) });
    assert_eq!(call(hides(), |builder| builder).await.0, HIDDEN);
    assert_eq!(call(hides(), |builder| builder.show_errors(true)).await.0, chain());
    assert_eq!(call(shows(), |builder| builder).await.0, chain());
}

#[tokio::test]
async fn prompts_resources_and_completers_follow_the_rule() {
    fn all(builder: ServerBuilder) -> ServerBuilder {
        let prompt = Prompt::new("p", async |_: &Ctx, _: NoArguments| Err::<String, _>(foreign()))
            .argument(PromptArgument::optional("a"))
            .complete("a", |_: Completing| async { Err::<Vec<String>, _>(foreign()) });
        let read = async |_: &Ctx| Err::<ReadResourceResult, _>(foreign());
        builder.prompt(prompt).resource(Resource::new("file:///a", "a", read))
    }
    let requests = [
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "file:///a"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
        ),
    ];
    for (method, params) in requests {
        for (shows, expected) in [(false, "Internal error".to_owned()), (true, chain())] {
            let fixture = fixture(|builder| all(builder).show_errors(shows));
            let message = request(1, method, params.clone());
            let (_, reply) = send(Over::Http, &fixture.server, &message, None).await;
            assert_eq!(reply["error"]["message"], json!(expected), "{method}: {reply}");
        }
    }
}

#[tokio::test]
async fn panics_and_invalid_questions_are_shown_during_development_only() {
    let panics = || Tool::new("t", async |_: &Ctx, _: NoArguments| -> String { panic!("{SECRET}") });
    for (shows, expected) in
        [(false, "Internal error"), (true, "the handler panicked: /srv/secret/orders.db")]
    {
        let server = built(panics(), |builder| builder.show_errors(shows));
        let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
        assert_eq!(reply["error"]["message"], json!(expected), "{reply}");
    }
}
