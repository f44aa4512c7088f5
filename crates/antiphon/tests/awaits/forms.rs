//! Forms that the program makes at run time, and answers of one field: over the sealed state and in a session.
#![cfg(feature = "macros")]

use crate::common::one_tool::*;
use crate::common::session::{InSession, plain};
use crate::common::tool_call::*;
use crate::common::{log::take_log, *};
use antiphon::{
    OneField, Result,
    server::{
        Answer, Ask, Caller, Ctx, NoArguments, Reply, Server, State, Tool, asks::InputRequired,
        offers::with_state,
    },
    testing::{Bench, Effects, Guarantee, ScriptedUser},
    tool,
    wire::forms::{FormField, FormSchema},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{
    fmt::Debug,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};

#[derive(Deserialize)]
struct FileChoice {
    file: String,
    copies: u8,
    note: Option<String>,
}

/// The questions and the result of a call.
#[derive(Debug, PartialEq)]
struct CallTrace {
    /// The message and the schema of each question, in order.
    asked: Vec<(String, Value)>,
    said: String,
}

impl CallTrace {
    fn messages(&self) -> Vec<&str> {
        self.asked.iter().map(|(message, _)| message.as_str()).collect()
    }
}

fn question(params: &Value) -> (String, Value) {
    assert_eq!(params["mode"], "form");
    (params["message"].as_str().unwrap().to_owned(), params["requestedSchema"].clone())
}

/// A call over the sealed state, one question in each round.
async fn sealed(server: &Server, answers: &[Value]) -> (CallTrace, Vec<String>) {
    let (mut talk, mut answers, mut asked) = (ToolCall::new(json!({})), answers.iter(), Vec::new());
    let mut given = Value::Null;
    loop {
        let reply = talk.leg(server, given).await;
        if reply["result"]["resultType"] != "input_required" {
            return (CallTrace { asked, said: result_text(&reply) }, talk.rounds.concat());
        }
        let [key] = &talk.rounds.last().unwrap()[..] else { panic!("{reply}") };
        asked.push(question(&reply["result"]["inputRequests"][key]["params"]));
        given = json!({ key: answers.next().unwrap_or_else(|| panic!("no answer to {reply}")) });
    }
}

/// The same call in a session.
async fn pushed(server: &Server, answers: &[Value]) -> CallTrace {
    let (mut answers, mut asked) = (answers.iter(), Vec::new());
    let mut session = InSession::newest(server).await;
    let mut message = session.asks(1, "tools/call", json!({"name": "t"})).await;
    while message["method"] == "elicitation/create" {
        asked.push(question(&message["params"]));
        let answer = answers.next().unwrap_or_else(|| panic!("no answer to {message}"));
        session.answers(&message, answer.clone()).await;
        message = session.receive().await;
    }
    CallTrace { asked, said: result_text(&message) }
}

/// The call over both carriers, which come to the same. Gives the keys too.
async fn both(tool: impl Fn() -> Tool, answers: &[Value]) -> (CallTrace, Vec<String>) {
    let server = server(tool());
    let (came, keys) = sealed(&server, answers).await;
    assert_eq!(pushed(&server, answers).await, came);
    (came, keys)
}

fn files(names: &[&str]) -> FormSchema {
    FormSchema::new(vec![FormField::one("file", names).title("File")])
}

/// A file of these, copies with a default, and a note that may be left out.
fn picking() -> FormSchema {
    serde_json::from_value(json!({"type": "object", "properties": {
        "file": {"type": "string", "title": "File", "enum": ["a.txt", "b.txt"]},
        "copies": {"type": "integer", "minimum": 1, "default": 2},
        "note": {"type": "string"},
    }, "required": ["file"]}))
    .unwrap()
}

#[tokio::test]
async fn the_answer_is_a_type() {
    let tool = || {
        tool!(|ctx| {
            let picked: FileChoice = ctx.elicit_with("Which file?", picking()).await?;
            Ok(format!("{} {} {:?}", picked.file, picked.copies, picked.note))
        })
    };
    let content = json!({"file": "b.txt", "other": "dropped"});
    let (came, keys) = both(tool, &[accept(content)]).await;
    assert_eq!((came.said.as_str(), keys), ("b.txt 2 None", vec!["form".to_owned()]));
    assert_eq!(came.asked, [("Which file?".to_owned(), serde_json::to_value(picking()).unwrap())]);
}

#[tokio::test]
async fn the_answer_is_a_checked_map() {
    let tool = || {
        tool!(|ctx| {
            let fields: Map<String, Value> =
                ctx.elicit_with("Which file?", picking()).key("file").nth(7).await?;
            Ok(Value::Object(fields).to_string())
        })
    };
    let content = json!({"file": "b.txt", "copies": 3.0, "note": null, "other": "dropped"});
    let (came, keys) = both(tool, &[accept(content)]).await;
    assert_eq!(serde_json::from_str::<Value>(&came.said).unwrap(), json!({"copies": 3, "file": "b.txt"}));
    assert_eq!(keys, ["file#7"]);
    let (came, _) = both(tool, &[accept(json!({"file": "a.txt"}))]).await;
    assert_eq!(serde_json::from_str::<Value>(&came.said).unwrap(), json!({"copies": 2, "file": "a.txt"}));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_again_with_the_reason() {
    let tool = || {
        tool!(|ctx| {
            let picked: FileChoice = ctx.elicit_with("Which file?", picking()).await?;
            Ok(picked.file)
        })
    };
    let answers =
        [json!({"file": "SECRET.txt"}), json!({"copies": 0, "file": "a.txt"}), json!({"file": "a.txt"})];
    let (came, _) = both(tool, &answers.map(accept)).await;
    assert_eq!(came.said, "a.txt");
    assert_eq!(
        came.messages(),
        [
            "Which file?",
            "Which file?\n\nFile must be one of: a.txt, b.txt.",
            "Which file?\n\nCopies must be at least 1."
        ]
    );
}

#[tokio::test]
async fn declined_and_cancelled() {
    let form = || {
        tool!(|ctx| {
            let picked: FileChoice = ctx.elicit_with("Which file?", picking()).await?;
            Ok(picked.file)
        })
    };
    let confirm = || tool!(|ctx| { Ok(ctx.confirm("Delete 3 files?").await?.to_string()) });
    let outcome = || {
        tool!(|ctx| {
            let answer: Answer<bool> = ctx.confirm("Delete 3 files?").outcome().await?;
            Ok(format!("{answer:?}"))
        })
    };
    let (decline, cancel) = (json!({"action": "decline"}), json!({"action": "cancel"}));
    for (answer, words, as_value) in
        [(&decline, "The user declined to answer", "Decline"), (&cancel, "The user dismissed", "Cancel")]
    {
        let (came, _) = both(form, std::slice::from_ref(answer)).await;
        assert!(came.said.starts_with(&format!("{words} `form`")), "{came:?}");
        assert!(came.said.ends_with(": Which file?"), "{came:?}");
        let (came, _) = both(confirm, std::slice::from_ref(answer)).await;
        assert!(came.said.starts_with(&format!("{words} `confirm`")), "{came:?}");
        assert_eq!(both(outcome, std::slice::from_ref(answer)).await.0.said, as_value);
    }
    assert_eq!(both(outcome, &[accept(json!({"value": false}))]).await.0.said, "Accept(false)");
}

#[tokio::test]
async fn a_confirmation_is_one_field_with_a_title() {
    let tool = || tool!(|ctx| { Ok(ctx.confirm("Delete 3 files?").await?.to_string()) });
    let (came, keys) = both(tool, &[accept(json!({})), accept(json!({"value": true}))]).await;
    let schema = json!({"type": "object", "properties": {"value": {"type": "boolean", "title": "Confirm"}}, "required": ["value"]});
    assert_eq!((came.said.as_str(), &came.asked[0].1), ("true", &schema));
    assert_eq!(came.messages()[1], "Delete 3 files?\n\nConfirm must be filled in.");
    assert_eq!(keys, ["confirm", "confirm"]);
    let tool = || tool!(|ctx| { Ok(ctx.confirm("Delete 3 files?").title("Delete").await?.to_string()) });
    let (came, _) = both(tool, &[accept(json!({"value": false}))]).await;
    assert_eq!(
        (came.said.as_str(), &came.asked[0].1["properties"]["value"]["title"]),
        ("false", &json!("Delete"))
    );
}

#[tokio::test]
async fn choices_that_change_are_another_question() {
    static TIMES: AtomicUsize = AtomicUsize::new(0);
    let server = server(tool!(|ctx| {
        // Between the first leg and the second, `b.txt` was deleted.
        let names = if TIMES.fetch_add(1, SeqCst) == 0 { ["a.txt", "b.txt"] } else { ["a.txt", "c.txt"] };
        let picked: Map<String, Value> = ctx.elicit_with("Which file?", files(&names)).await?;
        Ok(picked["file"].to_string())
    }));
    // The first answer is dropped, though it would fit: the person chose among others.
    let answers = [json!({"file": "a.txt"}), json!({"file": "c.txt"})];
    let (came, _) = sealed(&server, &answers.map(accept)).await;
    assert_eq!(came.said, "\"c.txt\"");
    let choices = |(_, schema): &(String, Value)| schema["properties"]["file"]["enum"].clone();
    assert_eq!(
        came.asked.iter().map(choices).collect::<Vec<_>>(),
        [json!(["a.txt", "b.txt"]), json!(["a.txt", "c.txt"])]
    );
}

/// A call with answers of this type, under its default key.
async fn one<T>(contents: &[Value]) -> (CallTrace, Vec<String>)
where
    T: OneField + DeserializeOwned + Debug + Send + 'static,
{
    let tool = || tool!(|ctx| { Ok(format!("{:?}", ctx.elicit::<T>("What?").await?)) });
    both(tool, &contents.iter().cloned().map(accept).collect::<Vec<_>>()).await
}

#[tokio::test]
async fn a_text_a_yes_or_no_and_numbers_are_answers() {
    let value = |value: Value| [json!({ "value": value })];
    let result = |(came, keys): (CallTrace, Vec<String>)| (came.said, keys.concat());
    let is = |text: &str, key: &str| (text.to_owned(), key.to_owned());
    assert_eq!(result(one::<String>(&value(json!("orders"))).await), is("\"orders\"", "text"));
    assert_eq!(result(one::<bool>(&value(json!(true))).await), is("true", "yes_no"));
    assert_eq!(result(one::<f64>(&value(json!(2))).await), is("2.0", "number"));
    assert_eq!(result(one::<f64>(&value(json!(2.5))).await), is("2.5", "number"));
    assert_eq!(result(one::<u8>(&value(json!(255))).await), is("255", "number"));
    assert_eq!(result(one::<i16>(&value(json!(-7.0))).await), is("-7", "number"));
    assert_eq!(result(one::<i64>(&value(json!(i64::MIN))).await), is(&i64::MIN.to_string(), "number"));
    assert_eq!(result(one::<u64>(&value(json!(u64::MAX))).await), is(&u64::MAX.to_string(), "number"));
}

#[tokio::test]
async fn an_integer_out_of_range_is_asked_again() {
    let values = |values: [Value; 3]| values.map(|value| json!({ "value": value }));
    let (came, _) = one::<u8>(&values([json!(256), json!(-1), json!(7)])).await;
    let again = ["What?", "What?\n\nValue must be at most 255.", "What?\n\nValue must be at least 0."];
    assert_eq!((came.said.as_str(), came.messages()), ("7", again.to_vec()));
    let (came, _) = one::<i32>(&values([json!("7"), json!(7.5), json!(-7)])).await;
    let whole = "What?\n\nValue must be a whole number.";
    assert_eq!((came.said.as_str(), came.messages()), ("-7", vec!["What?", whole, whole]));
    // What the form cannot say to a client that rounds, the type says.
    let beyond = json!(i64::MAX as u64 + 1);
    let (came, _) = one::<i64>(&values([beyond, json!(1e300), json!(7)])).await;
    let again = [
        "What?",
        "What?\n\nThe answer could not be read.",
        "What?\n\nValue must be at most 18446744073709551615.",
    ];
    assert_eq!((came.said.as_str(), came.messages()), ("7", again.to_vec()));
}

#[tokio::test]
async fn the_field_has_a_title() {
    let tool = || {
        tool!(|ctx| {
            let name: String = ctx.elicit("What is the database called?").title("Name").key("name").await?;
            Ok(name)
        })
    };
    let (came, keys) = both(tool, &[accept(json!({"value": 7})), accept(json!({"value": "orders"}))]).await;
    assert_eq!((came.said.as_str(), keys), ("orders", vec!["name".to_owned(), "name".to_owned()]));
    let schema = json!({"type": "object", "properties": {"value": {"type": "string", "title": "Name"}}, "required": ["value"]});
    assert_eq!(came.asked[0].1, schema);
    assert_eq!(came.messages()[1], "What is the database called?\n\nName must be text.");
}

#[tokio::test]
async fn a_plain_answer_to_a_form_made_at_run_time_is_its_field_value() {
    let tool = || {
        tool!(|ctx| {
            let form =
                FormSchema::new(vec![FormField::one("value", ["a", "b"]), FormField::text("x").optional()]);
            let picked: String = ctx.elicit_with("Which?", form).title("Letter").await?;
            Ok(picked)
        })
    };
    let (came, _) = both(tool, &[accept(json!({"value": "b", "x": "y"}))]).await;
    assert_eq!(
        (came.said.as_str(), &came.asked[0].1["properties"]["value"]["title"]),
        ("b", &json!("Letter"))
    );
}

/// Nothing is sent, and the log has these words.
async fn is_refused(tool: impl Fn() -> Tool, words: &str) {
    let server = server(tool());
    take_log();
    let (came, _) = sealed(&server, &[]).await;
    let log = take_log();
    assert!(came.said.contains("-32603") && log.contains(words), "{came:?} {log}");
    let came = pushed(&server, &[]).await;
    assert!(came.said.contains("-32603"), "{came:?}");
}

/// A tool that asks this form.
macro_rules! asking {
    ($form:expr) => {
        || {
            tool!(|ctx| {
                let fields: Map<String, Value> =
                    ctx.elicit_with("Which?", $form).or_default(Map::new()).await?;
                Ok(Value::from(fields).to_string())
            })
        }
    };
}

/// A form with one field, whose schema a program wrote.
fn written(name: &str, property: Value) -> FormSchema {
    serde_json::from_value(json!({"type": "object", "properties": {name: property}})).unwrap()
}

#[tokio::test]
async fn a_form_that_cannot_be_asked_is_refused_in_words() {
    is_refused(asking!(files(&[])), "`form`: field `file` has no choices").await;
    is_refused(asking!(files(&["a", "b", "a"])), "`form`: field `file` has the choice `a` twice").await;
    let twice = asking!(FormSchema::new(vec![FormField::text("a"), FormField::text("a")]));
    is_refused(twice, "`form`: two fields have the name `a`").await;
    let nested = asking!(written("to", json!({"type": "object"})));
    is_refused(nested, "`form`: field `to` is not a string, number").await;
    // A title does not hide what the schema says besides.
    let titled = || {
        tool!(|ctx| {
            let form = written("value", json!({"type": "string", "pattern": "x"}));
            Ok(ctx.elicit_with::<String>("Which?", form).title("Which").await?)
        })
    };
    is_refused(titled, "field `value` has the keyword `pattern`").await;
    let titled =
        || tool!(|ctx| { Ok(ctx.elicit_with::<String>("Which?", files(&["a"])).title("Which").await?) });
    is_refused(titled, "the form has no field `value`").await;
}

/// > Servers **MUST NOT** use form mode elicitation to request sensitive information such as passwords, API keys,
/// > access tokens, or payment credentials
#[tokio::test]
async fn secrets_are_not_asked_with_a_form_of_the_program() {
    for name in ["password", "apiKey", "card-number"] {
        let fault = format!("field `{name}`: a secret must not pass through the client");
        let awaited = move || {
            let ask = async |name: &'static str, ctx: &Ctx, _: NoArguments| -> Result<String> {
                let form = FormSchema::new(vec![FormField::text("kind"), FormField::text(name)]);
                let fields: Map<String, Value> = ctx.elicit_with("Which?", form).await?;
                Ok(Value::from(fields).to_string())
            };
            Tool::new("t", with_state(name, ask))
        };
        is_refused(awaited, &format!("`form`: {fault}")).await;
        let by_hand = move || {
            Tool::new("t", move |_: &Ctx, _: NoArguments| {
                let form = FormSchema::new(vec![FormField::text(name)]);
                std::future::ready(Reply::<String>::from(Ask::form("by_hand", "Which?", form)))
            })
        };
        is_refused(by_hand, &format!("`by_hand`: {fault}")).await;
    }
    let permitted = || {
        tool!(|ctx| {
            let form = FormSchema::new(vec![FormField::text("password")]).not_secret("password");
            let fields: Map<String, Value> = ctx.elicit_with("Which kind of password?", form).await?;
            Ok(fields.len().to_string())
        })
    };
    assert_eq!(both(permitted, &[accept(json!({"password": "short"}))]).await.0.said, "1");
}

#[tokio::test]
async fn what_stands_for_an_answer_where_there_are_no_forms() {
    let server = server(tool!(|ctx| {
        let keep = ctx.confirm("Keep?").or_default(true).await?;
        let form: Result<FileChoice, _> =
            ctx.elicit_with("Which?", picking()).or_refuse("No forms, no file.").await;
        let name: String = ctx.elicit("Name?").or_default("none".to_owned()).await?;
        Ok(format!("{keep} {name} {}", form.err().unwrap()))
    }));
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let message = request(1, "tools/call", json!({"name": "t", "_meta": meta})).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    assert_eq!(result_text(&serde_json::from_slice(&reply.body).unwrap()), "true none No forms, no file.");
}

/// Deletes a file.
#[tool(needs(form))]
async fn delete_a_file(ctx: &Ctx, State(effects): State<Effects>) -> Result<String> {
    let FileChoice { file, .. } = ctx.elicit_with("Which file?", picking()).await?;
    if !ctx.confirm(format!("Delete {file}?")).await? {
        return Ok("kept".to_owned());
    }
    let times: usize = ctx.step("delete", async |s| Ok(effects.perform("delete", s.key()).await)).await?;
    Ok(format!("{file} {times}"))
}

/// Under every fault that the bench knows, the file is deleted under one key.
#[tokio::test(start_paused = true)]
async fn on_the_bench() {
    let bench = Bench::new(|effects: &Effects| {
        Server::builder("files", "1").state(effects.clone()).tool(delete_a_file)
    });
    let person = ScriptedUser::new()
        .accept("form", json!({"file": "a.txt"}))
        .accept("confirm", json!({"value": true}));
    let bench = bench.user(person);
    bench.call("delete_a_file", ()).await.expect_text("a.txt 1").expect_asked(&["form", "confirm"]);
    bench
        .run_all_faults("delete_a_file", ())
        .await
        .expect_same_result()
        .expect_effects(Guarantee::OneKeyEach);
}

/// The same questions by hand.
#[tokio::test]
async fn by_hand() {
    let tool = || {
        Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<Reply<String>> {
            let asks = [
                Ask::of::<String>("name", "Name?"),
                Ask::of::<u8>("copies", "How many?"),
                Ask::form("file", "Which?", files(&["a", "b"])),
            ];
            let answers = (
                ctx.by_hand().form::<String>(&asks[0])?,
                ctx.by_hand().form::<u8>(&asks[1])?,
                ctx.by_hand().form::<Map<String, Value>>(&asks[2])?,
            );
            Ok(match answers {
                (Some(name), Some(copies), Some(Answer::Accept(file))) => {
                    Reply::Complete(format!("{name:?} {copies:?} {}", file["file"]))
                }
                _ => {
                    let [name, copies, file] = asks;
                    InputRequired::ask(name).and(copies).and(file).into()
                }
            })
        })
    };
    let server = server(tool());
    let answers = json!({
        "name": accept(json!({"value": "orders"})),
        "copies": accept(json!({"value": 3})),
        "file": accept(json!({"file": "b"})),
    });
    let reply = ToolCall::new(json!({})).through(&server, &answers).await;
    assert_eq!(result_text(&reply), "Accept(\"orders\") Accept(3) \"b\"");
    let mut session = InSession::newest(&server).await;
    session.send(plain(1, "tools/call", json!({"name": "t"}))).await;
    for _ in 0..3 {
        let ask = session.receive().await;
        let key = match ask["params"]["message"].as_str().unwrap() {
            "Name?" => "name",
            "How many?" => "copies",
            _ => "file",
        };
        session.answers(&ask, answers[key].clone()).await;
    }
    assert_eq!(result_text(&session.receive().await), "Accept(\"orders\") Accept(3) \"b\"");
}
