//! Our client at the other end: the same call comes to the same in each form of tasks.

use antiphon::{
    Error, Form,
    client::{
        Call, CallProgress, Client, ClientBuilder, FormAsk, Mode,
        tasks::{TaskForm, TaskHandle},
        transport::memory,
    },
    serve::stdio::serve_streams,
    server::{Ctx, Server},
    tool,
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Place {
    region: String,
}

/// Asks, works, and asks again, in a task.
#[tool(task = "required")]
async fn film(ctx: &Ctx, title: String) -> Result<String, Error> {
    let Place { region } = ctx.elicit("Where?").key("where").await?;
    let file: String = ctx.step("cut", async |_| Ok(format!("{title}.mp4"))).await?;
    ctx.report_progress(1.0, Some(2.0), Some("cut"));
    let Place { region: second } = ctx.elicit("Where else?").key("else").await?;
    Ok(format!("{file} {region} {second}"))
}

/// Answers at once.
#[tool]
async fn plain() -> String {
    "plain".to_owned()
}

/// Becomes a task only where its author says so.
#[tool(task = "optional")]
async fn asks(ctx: &Ctx) -> Result<String, Error> {
    let Place { region } = ctx.elicit("Here?").key("here").await?;
    Ok(region)
}

/// Fails.
#[tool(task = "required")]
async fn broken() -> Result<String, Error> {
    Err(Error::user_facing("no film"))
}

/// A client whose person answers with the question, and a server, over a pair of streams.
fn over(builder: ClientBuilder, asked: &Arc<Mutex<Vec<String>>>) -> Client {
    let server = Server::builder("films", "1.0").draft_tasks(true).tool(film).tool(broken).build().unwrap();
    to(server, builder, asked)
}

/// The same, to this server.
fn to(server: Server, builder: ClientBuilder, asked: &Arc<Mutex<Vec<String>>>) -> Client {
    let (transport, input, output) = memory::duplex();
    tokio::spawn(async move {
        let _ = serve_streams(input, output, server).await;
    });
    let asked = Arc::clone(asked);
    let person = builder.on_elicit_form(move |ask: FormAsk| {
        let of = &ask.context;
        asked.lock().unwrap().push(format!("{} {} {}", of.method, of.target, ask.message));
        async move { Ok(ask.accept(json!({"region": ask.message.trim_end_matches('?')}))?) }
    });
    person.connect(transport)
}

fn builder() -> ClientBuilder {
    Client::builder("my-host", "1.0")
}

async fn check(builder: ClientBuilder, lists: bool, form: TaskForm) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let client = over(builder, &asked);
    if lists {
        client.list_tools().await.unwrap();
    }
    let film = || Call::tool("film", json!({"title": "ants"})).unwrap().task_ttl(Duration::from_secs(3600));
    let result = client.call(film()).await.unwrap().into_tool().unwrap();
    assert_eq!(result.first_text(), Some("ants.mp4 Where Where else"), "{form:?}");
    let questions = ["tools/call film Where?", "tools/call film Where else?"];
    assert_eq!(*asked.lock().unwrap(), questions, "{form:?}");
    let broken = client.call_tool("broken", ()).await.unwrap();
    assert!(broken.failed() && broken.first_text() == Some("no film"), "{form:?}: {broken:?}");
    // The handle is data, and another wait continues the task.
    let CallProgress::Task(handle) = client.begin(film()).await.unwrap() else { panic!("{form:?}: no task") };
    assert_eq!(handle.form(), form);
    let handle: TaskHandle = serde_json::from_str(&serde_json::to_string(&handle).unwrap()).unwrap();
    let result = client.task(handle.clone()).wait().await.unwrap();
    assert_eq!(result.first_text(), Some("ants.mp4 Where Where else"), "{form:?}");
    // To cancel a task that is over changes nothing.
    client.task(handle).cancel().await.unwrap();
    let CallProgress::Task(handle) = client.begin(film()).await.unwrap() else { panic!("{form:?}: no task") };
    client.task(handle.clone()).cancel().await.unwrap();
    let error = client.task(handle).wait().await.unwrap_err();
    assert!(error.is_cancelled(), "{form:?}: {error}");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_call_in_each_form() {
    check(builder(), false, TaskForm::Extension).await;
    check(builder().task_notifications(true), false, TaskForm::Extension).await;
    check(builder().tasks(false).draft_tasks(true), false, TaskForm::Draft).await;
    // A server that has both uses the extension.
    check(builder().draft_tasks(true), false, TaskForm::Extension).await;
    // In a session, the list of tools says it, or the refusal does.
    for lists in [true, false] {
        check(builder().mode(Mode::Legacy), lists, TaskForm::Session).await;
    }
}

/// The same task in two forms: the server has one store for both.
#[tokio::test(start_paused = true)]
async fn a_task_of_the_draft_is_followed_in_the_form_of_its_handle() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let client = over(builder().tasks(false).draft_tasks(true), &asked);
    let call = Call::tool("film", json!({"title": "ants"})).unwrap();
    let CallProgress::Task(handle) = client.begin(call).await.unwrap() else { panic!("no task") };
    let id = handle.task_id().to_owned();
    // An anonymous caller has no list of its own without a session.
    assert_eq!(client.list_tasks().await.unwrap().len(), 0);
    let mut task = client.attach(id);
    task.get().await.unwrap();
    assert_eq!(task.handle().form(), TaskForm::Draft);
    assert_eq!(task.wait().await.unwrap().first_text(), Some("ants.mp4 Where Where else"));
}

/// The draft is beside the rest: each tool of each server can be called, listed before or not.
#[tokio::test(start_paused = true)]
async fn the_draft_takes_nothing_away() {
    let needs_extension = "required extension";
    for (in_draft, tasks, film_result) in [
        (false, true, Ok("ants.mp4 Where Where else")),
        (true, true, Ok("ants.mp4 Where Where else")),
        (true, false, Ok("ants.mp4 Where Where else")),
        // Without the extension, as the setting says.
        (false, false, Err(needs_extension)),
    ] {
        for lists in [false, true] {
            let server = Server::builder("films", "1.0").draft_tasks(in_draft);
            let server = server.tool(film).tool(plain).tool(asks).build().unwrap();
            let client = to(server, builder().draft_tasks(true).tasks(tasks), &Arc::default());
            if lists {
                client.list_tools().await.unwrap();
            }
            let what = format!("{in_draft} {tasks} {lists}");
            for (tool, text) in [("plain", "plain"), ("asks", "Here")] {
                let result =
                    client.call_tool(tool, ()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(result.first_text(), Some(text), "{what}");
            }
            match (client.call_tool("film", json!({"title": "ants"})).await, film_result) {
                (Ok(result), Ok(text)) => assert_eq!(result.first_text(), Some(text), "{what}"),
                (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{what}: {error}"),
                (came, _) => panic!("{what}: {came:?}"),
            }
            client.close().await;
        }
    }
}
