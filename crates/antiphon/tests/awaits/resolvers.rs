//! Parameters that resolvers fill in: what is asked, how often what runs, and what ends a call.
#![cfg(feature = "macros")]

use crate::common::tool_call::{ToolCall, accept, keys, legs};
use crate::common::*;
use antiphon::{
    Error, Form, Result, prompt, resolver, resource,
    server::{Answer, Ask, Caller, Ctx, Json, Reply, Server, State, operations::ReplayCheck},
    tool,
    wire::content::ResourceContents,
};
use serde_json::{Value, json};
use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex},
};

#[derive(Clone, serde::Deserialize, Form)]
struct Confirm {
    ok: bool,
}

#[derive(Clone, serde::Deserialize, Form)]
struct Place {
    region: String,
}

/// The names of the functions that ran, on all instances.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }
}

/// Counts the files of a folder: as many as its name has letters, but none in `empty`.
#[resolver]
async fn size(State(log): State<Log>, path: &str) -> Result<u64> {
    log.note("size");
    Ok(if path == "empty" { 0 } else { path.len() as u64 })
}

/// Asks only when there is something to lose.
#[resolver]
async fn confirm_delete(ctx: &Ctx, path: &str, #[resolve(size)] size: u64) -> Result<Answer<Confirm>> {
    if size == 0 {
        return Ok(Answer::Accept(Confirm { ok: true }));
    }
    Ok(ctx.elicit(format!("Delete {path} with {size} files?")).outcome().await?)
}

/// Removes a folder.
#[tool]
async fn delete_folder(
    path: String,
    #[resolve(confirm_delete)] confirm: Answer<Confirm>,
) -> Result<String, Error> {
    Ok(match confirm {
        Answer::Accept(Confirm { ok: true }) => format!("{path} is gone."),
        _ => format!("{path} is kept."),
    })
}

/// Removes a folder, or fails.
#[tool(additional = "ignore")]
async fn delete_or_fail(path: String, #[resolve(confirm_delete)] confirm: Confirm) -> String {
    format!("{path} {}", confirm.ok)
}

/// Asks for a place. The question names the price.
#[resolver]
async fn place(ctx: &Ctx, log: State<Log>) -> Result<Place> {
    log.note("place");
    let rate: u64 = ctx
        .step("rate", async |_| {
            log.note("rate");
            Ok(40)
        })
        .await?;
    Ok(ctx.elicit::<Place>(format!("Where, at {rate}?")).await?)
}

/// A value that cannot be copied.
struct Plan(String);

#[resolver]
async fn plan(
    ctx: &Ctx,
    log: State<Log>,
    #[resolve(size)] files: Arc<u64>,
    #[resolve(place)] place: &Place,
) -> Result<Plan> {
    log.note("plan");
    let sure: Confirm = ctx.elicit("Sure?").await?;
    Ok(Plan(format!("{files} to {}, {}", place.region, sure.ok)))
}

/// Takes what others take too.
#[tool(needs(form))]
async fn move_folder(
    path: String,
    #[resolve(plan)] plan: &Plan,
    #[resolve(confirm_delete)] confirm: Confirm,
    #[resolve(size)] size: u64,
    #[resolve(plan)] again: Arc<Plan>,
) -> String {
    format!("{path}: {}, {}, {size}, {}", plan.0, confirm.ok, again.0.len())
}

/// Runs once others had their turn, and fails in its own words.
#[resolver]
async fn even(count: u32, skip: bool) -> Result<u32, OddCount> {
    tokio::task::yield_now().await;
    if count % 2 == 1 && !skip { Err(OddCount(count)) } else { Ok(count / 2) }
}

#[derive(Debug)]
struct OddCount(u32);

impl From<OddCount> for Error {
    fn from(OddCount(count): OddCount) -> Self {
        Self::user_facing(format!("{count} is odd"))
    }
}

#[tool]
async fn halve(count: u32, #[arg(default = false)] skip: bool, #[resolve(even)] half: u32) -> String {
    format!("{count} {skip} {half}")
}

#[resolver]
async fn secret() -> Result<u32> {
    Ok("no number at db.internal".parse()?)
}

#[tool]
async fn leaks(#[resolve(secret)] secret: u32) -> String {
    secret.to_string()
}

/// Refuses by itself.
#[resolver(name = "policy")]
async fn night_rule() -> Result<Answer<Confirm>> {
    Ok(Answer::Decline)
}

#[tool]
async fn by_day(#[resolve(night_rule)] allowed: Confirm) -> String {
    allowed.ok.to_string()
}

/// One refusal, while the other would ask more.
#[resolver]
async fn endless(ctx: &Ctx) -> Result<u32> {
    for number in 0.. {
        let more: Confirm = ctx.elicit("More?").nth(number).await?;
        if !more.ok {
            break;
        }
    }
    Ok(1)
}

#[tool]
async fn impatient(
    path: String,
    #[resolve(endless)] more: u32,
    #[resolve(confirm_delete)] sure: Confirm,
) -> String {
    format!("{path} {more} {}", sure.ok)
}

#[prompt(needs(form))]
async fn describe(path: String, #[resolve(place)] place: Place) -> String {
    format!("Describe {path} in {}.", place.region)
}

#[resolver]
async fn existing(ctx: &Ctx, id: &str) -> Result<u32> {
    match id.parse() {
        Ok(0) => Ok(ctx.elicit::<Place>("Which?").await?.region.len() as u32),
        Ok(known) => Ok(known),
        Err(_) => Err(Error::resource_not_found()),
    }
}

#[resource("report://{id}")]
async fn report(id: String, #[resolve(existing)] number: u32) -> ResourceContents {
    ResourceContents::text(format!("report://{id}"), number.to_string())
}

mod deep {
    /// Names that the expansion uses itself.
    #[antiphon::resolver]
    pub(crate) async fn provided(
        round: Option<u8>,
        arguments: &str,
        r#type: &bool,
        ctx: String,
    ) -> antiphon::Result<String> {
        Ok(format!("{round:?} {arguments} {type} {ctx}"))
    }
}

#[tool]
async fn takes(
    round: Option<u8>,
    #[arg(name = "the-arguments")] arguments: &str,
    r#type: bool,
    ctx: String,
    #[resolve(deep::provided)] provided: String,
    #[resolve(deep::provided)] states: &str,
) -> String {
    assert_eq!(provided, states);
    format!("{provided}; {round:?} {arguments} {type} {ctx}")
}

struct Files(&'static str);

#[antiphon::server]
impl Files {
    /// Counts.
    #[tool]
    async fn count(&self, path: String, #[resolve(size)] size: u64) -> String {
        format!("{}{path} {size}", self.0)
    }

    /// Removes.
    #[tool]
    async fn remove(ctx: &Ctx, path: String, #[resolve(confirm_delete)] confirm: Confirm) -> String {
        format!("{path} {} {}", confirm.ok, ctx.leg())
    }
}

/// A type with a parameter.
struct Shelf<T>(T);

#[antiphon::server]
impl<T: fmt::Display> Shelf<T> {
    /// Finds.
    #[tool]
    async fn find(&self, path: &str, #[resolve(size)] size: u64) -> Result<String, Missing<T>> {
        match size {
            0 => Err(Missing(PhantomData)),
            size => Ok(format!("{}{path} {size}", self.0)),
        }
    }
}

/// The error of a value that is no book.
struct Missing<T>(PhantomData<T>);

impl<T> From<Missing<T>> for Error {
    fn from(_: Missing<T>) -> Self {
        Self::user_facing("It is no book.")
    }
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Book {
    pages: u64,
}

#[antiphon::server]
impl Book {
    /// Returns another book.
    #[tool]
    async fn copy(&self, path: &str, #[resolve(size)] size: u64) -> Json<Self> {
        Json(Self { pages: self.pages + size + path.len() as u64 })
    }
}

/// One of the instances.
fn server(log: &Log) -> Server {
    let builder = Server::builder("resolvers", "1").keys(ring(7)).state(log.clone()).with(Files("/"));
    let builder = builder.with(Shelf("Shelf ")).with(Book { pages: 100 });
    // Each round is replayed before it leaves: resolvers run the same way again.
    let builder = builder.replay_check(ReplayCheck::Always).on_replay_fault(|fault| panic!("{fault}"));
    let builder = builder.tool(delete_folder).tool(delete_or_fail).tool(move_folder).tool(halve).tool(leaks);
    let builder = builder.tool(takes).tool(by_day).tool(impatient);
    builder.prompt(describe).template(report).build().unwrap()
}

/// The rounds, the functions that ran, and the result of a call.
struct CallTrace {
    /// The keys of each round.
    rounds: Vec<Vec<String>>,
    /// The functions that ran, on all legs.
    ran: Vec<&'static str>,
    result: Value,
}

impl CallTrace {
    /// The text of the result, of whatever method; or of the error.
    fn text(&self) -> String {
        let result = &self.result["result"];
        let places = ["/content/0/text", "/messages/0/content/text", "/contents/0/text"];
        let text =
            places.iter().find_map(|place| result.pointer(place)).unwrap_or(&self.result["error"]["message"]);
        text.as_str().unwrap_or_else(|| panic!("{}", self.result)).to_owned()
    }
}

/// Calls, each leg on an instance of its own, and answers each question by its key.
async fn call(method: &str, params: Value, answers: &Value) -> CallTrace {
    let log = Log::default();
    let (mut rounds, mut more) = (Vec::new(), json!({}));
    let result = loop {
        let message = request(1, method, with(&params, more)).to_string();
        let began = tokio::time::Instant::now();
        let reply = server(&log).respond(message.as_bytes(), &Caller::default()).await.unwrap();
        // The clock stands, unless somebody waits for the grace to be over.
        assert_eq!(began.elapsed(), std::time::Duration::ZERO, "a waker was kept");
        let round = keys(&reply.body);
        let reply: Value = serde_json::from_slice(&reply.body).unwrap();
        if reply["result"]["resultType"] != "input_required" {
            break reply;
        }
        let given: Value = round.iter().map(|key| (key.clone(), answers[key].clone())).collect();
        more = json!({"requestState": state_of(&reply), "inputResponses": given});
        rounds.push(round);
    };
    CallTrace { rounds, ran: std::mem::take(&mut *log.0.lock().unwrap()), result }
}

fn yes() -> Value {
    accept(json!({"ok": true}))
}

fn tool_call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// A call, its answers, the rounds that it takes and what it says then.
async fn check(method: &str, params: Value, answers: Value, rounds: &[&[&str]], said: &str) -> CallTrace {
    let came = call(method, params.clone(), &answers).await;
    assert_eq!((came.text().as_str(), &came.rounds), (said, &owned(rounds)), "{params}, {answers}");
    came
}

fn owned(rounds: &[&[&str]]) -> Vec<Vec<String>> {
    rounds.iter().map(|round| round.iter().map(ToString::to_string).collect()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_folder_is_asked_about_only_if_it_is_not_empty() {
    const ASKED: &[&[&str]] = &[&["confirm_delete/confirm"]];
    for (path, answer, rounds, said) in [
        ("empty", Value::Null, &[] as &[&[&str]], "empty is gone."),
        ("full", yes(), ASKED, "full is gone."),
        ("full", accept(json!({"ok": false})), ASKED, "full is kept."),
        ("full", json!({"action": "decline"}), ASKED, "full is kept."),
    ] {
        let params = tool_call("delete_folder", json!({"path": path}));
        check("tools/call", params, json!({"confirm_delete/confirm": answer}), rounds, said).await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_runs_once_a_leg_and_together_with_the_others() {
    let answers = json!({
        "place/place": accept(json!({"region": "eu"})), "confirm_delete/confirm": yes(), "plan/confirm": yes(),
    });
    let params = tool_call("move_folder", json!({"path": "full"}));
    // In the order in which they are asked: one of them first waits for `size`.
    let rounds: &[&[&str]] = &[&["place/place", "confirm_delete/confirm"], &["plan/confirm"]];
    let came = check("tools/call", params, answers, rounds, "full: 4 to eu, true, true, 4, 13").await;
    let times = |what| came.ran.iter().filter(|ran| **ran == what).count();
    // Three legs, and two rounds that are replayed once; a step runs once.
    assert_eq!([times("size"), times("place"), times("plan"), times("rate")], [5, 5, 3, 1], "{:?}", came.ran);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_question_and_the_action() {
    let decline = json!({"action": "decline"});
    let cancel = json!({"action": "cancel"});
    let asked: &[&[&str]] = &[&["confirm_delete/confirm"]];
    let full = json!({"path": "full"});
    for (name, arguments, key, answer, rounds, said) in [
        (
            "delete_or_fail",
            &full,
            "confirm_delete/confirm",
            &decline,
            asked,
            "The user declined to answer `confirm_delete/confirm`: Delete full with 4 files?",
        ),
        (
            "delete_or_fail",
            &full,
            "confirm_delete/confirm",
            &cancel,
            asked,
            "The user dismissed `confirm_delete/confirm` without an answer: Delete full with 4 files?",
        ),
        ("by_day", &json!({}), "", &Value::Null, &[], "The user declined to answer `policy`"),
    ] {
        let came =
            check("tools/call", tool_call(name, arguments.clone()), json!({key: answer}), rounds, said).await;
        assert_eq!(came.result["result"]["isError"], true);
    }
    // By the resolver itself, which unwraps; for a prompt it is an error of the protocol.
    let params = json!({"name": "describe", "arguments": {"path": "a"}});
    let said = "The user declined to answer `place/place`: Where, at 40? Completed before that: `place/rate`. Do not send this again: look \
                at what these steps did first; a new call repeats them.";
    let came = check("prompts/get", params, json!({"place/place": decline}), &[&["place/place"]], said).await;
    assert!(came.result["error"].is_object());
    // One who refuses is not asked what else there would be.
    let params = tool_call("impatient", json!({"path": "full"}));
    let answers = json!({"endless/confirm#0": yes(), "confirm_delete/confirm": cancel});
    let said = "The user dismissed `confirm_delete/confirm` without an answer: Delete full with 4 files?";
    let rounds: &[&[&str]] = &[&["endless/confirm#0", "confirm_delete/confirm"]];
    check("tools/call", params, answers, rounds, said).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_gives_for_it_is_not_read() {
    for value in [json!({"ok": true}), json!({"Accept": {"ok": true}}), json!("accept")] {
        let params =
            tool_call("delete_or_fail", json!({"path": "full", "confirm": value, "confirm_delete": value}));
        let answers = json!({"confirm_delete/confirm": accept(json!({"ok": false}))});
        check("tools/call", params, answers, &[&["confirm_delete/confirm"]], "full false").await;
    }
    // Without `additional`, it is refused by name.
    let params = tool_call("delete_folder", json!({"path": "full", "confirm": {"ok": true}}));
    let said = "Invalid arguments for tool delete_folder: has no member `confirm`";
    check("tools/call", params, Value::Null, &[], said).await;
    let tools = call("tools/list", json!({}), &Value::Null).await.result;
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    for (name, arguments) in
        [("delete_folder", json!(["path"])), ("leaks", json!([])), ("count", json!(["path"]))]
    {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let properties = tool["inputSchema"]["properties"].as_object();
        let names: Vec<&String> = properties.into_iter().flat_map(|properties| properties.keys()).collect();
        assert_eq!(json!(names), arguments, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_ends_the_call_as_the_handlers_own_would() {
    for (name, arguments, said) in [
        ("takes", json!({"the-arguments": "a", "type": true, "ctx": "c"}), "None a true c; None a true c"),
        ("halve", json!({"count": 4}), "4 false 2"),
        ("halve", json!({"count": 3}), "3 is odd"),
        ("halve", json!({"count": 3, "skip": true}), "3 true 1"),
    ] {
        check("tools/call", tool_call(name, arguments), Value::Null, &[], said).await;
    }
    // A library's text is for the log.
    let came = call("tools/call", tool_call("leaks", json!({})), &Value::Null).await;
    assert_eq!(came.result["result"]["isError"], true);
    assert!(!came.result.to_string().contains("digit"), "{}", came.result);
    let came = call("resources/read", json!({"uri": "report://x"}), &Value::Null).await;
    assert_eq!(came.text(), "Resource not found");
}

#[tokio::test(start_paused = true)]
async fn prompts_templates_and_methods_have_them_too() {
    let place = accept(json!({"region": "eu"}));
    for (method, params, answers, rounds, said) in [
        (
            "prompts/get",
            json!({"name": "describe", "arguments": {"path": "a"}}),
            json!({"place/place": place}),
            &[&["place/place"] as &[&str]] as &[&[&str]],
            "Describe a in eu.",
        ),
        ("resources/read", json!({"uri": "report://7"}), Value::Null, &[], "7"),
        (
            "resources/read",
            json!({"uri": "report://0"}),
            json!({"existing/place": place}),
            &[&["existing/place"]],
            "2",
        ),
        ("tools/call", tool_call("count", json!({"path": "abc"})), Value::Null, &[], "/abc 3"),
        ("tools/call", tool_call("find", json!({"path": "abc"})), Value::Null, &[], "Shelf abc 3"),
        ("tools/call", tool_call("find", json!({"path": "empty"})), Value::Null, &[], "It is no book."),
        ("tools/call", tool_call("copy", json!({"path": "abc"})), Value::Null, &[], r#"{"pages":106}"#),
        (
            "tools/call",
            tool_call("remove", json!({"path": "full"})),
            json!({"confirm_delete/confirm": yes()}),
            &[&["confirm_delete/confirm"]],
            "full true 2",
        ),
    ] {
        check(method, params, answers, rounds, said).await;
    }
}

#[tokio::test]
async fn functions_stay_functions() {
    let log = Log::default();
    assert_eq!(size(State::new(log), "empty").await.unwrap(), 0);
    assert_eq!(delete_folder("a".to_owned(), Answer::Decline).await.unwrap(), "a is kept.");
    assert_eq!(even(4, false).await.unwrap(), 2);
    assert_eq!(Files("").count("a".to_owned(), 5).await, "a 5");
}

#[test]
fn a_state_that_only_a_resolver_takes_is_missed_when_the_server_is_built() {
    let fault = Server::builder("resolvers", "1").tool(delete_folder).build().unwrap_err().to_string();
    assert!(fault.contains("the resolver `size` takes the state `") && fault.contains("Log`"), "{fault}");
}

/// Asks for a place, and returns a question of its own behind that.
#[tool]
async fn reserve(ctx: &Ctx, #[resolve(place)] place: Place) -> Result<Reply<String>> {
    let ask = Ask::of::<Confirm>("sure", format!("Really in {}?", place.region));
    Ok(match ctx.by_hand().form::<Confirm>(&ask)? {
        Some(answer) => Reply::Complete(format!("{} {:?}", place.region, answer.accepted().map(|it| it.ok))),
        None => ask.into(),
    })
}

#[tokio::test]
async fn a_tool_with_resolvers_may_return_a_question() {
    let server = Server::builder("reserve", "1").state(Log::default()).tool(reserve).keys(ring(7));
    let server = server.build().unwrap();
    let mut talk = ToolCall::named("reserve");
    let answers = [
        Value::Null,
        json!({"place/place": accept(json!({"region": "eu"}))}),
        json!({"sure": accept(json!({"ok": true}))}),
    ];
    let reply = legs(&server, &mut talk, &answers).await;
    assert_eq!(reply["result"]["content"][0]["text"], "eu Some(true)", "{reply}");
    assert_eq!(talk.rounds, [["place/place"], ["sure"]]);
}
