//! A task that survives its process: the server is killed while it renders, another process continues, and a third one takes the
//! answer to its question. A second task is cancelled, and undoes what it did.
//!
//! Try it: `cargo run -p antiphon-examples --bin render_video`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::{
    Form,
    client::{
        Call, CallProgress, Client,
        tasks::{ClientTask, TaskHandle},
        transport::{ChildCommand, ChildTransport},
    },
    seal::{KeyRing, SecretKey},
    serve::stdio::serve_stdio,
    server::{Answer, ClaimOptions, Ctx, Limits, Server, State, TaskOptions},
    store::{SqliteOptions, SqliteStore},
    tool,
    wire::AskSupport,
};
use antiphon_examples::Result;
use serde_json::json;
use std::{
    env,
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    process::abort,
    time::Duration,
};

/// The variable with the key of all processes.
const KEYS: &str = "ANTIPHON_KEYS";

#[derive(PartialEq, serde::Serialize, serde::Deserialize, Form)]
struct Publish {
    /// Publish the film?
    publish: bool,
}

/// The folder of the parts, and the part in which this process dies.
#[derive(Clone)]
struct Studio {
    parts: PathBuf,
    dies_in: Option<u32>,
}

/// Renders a video in three parts, and asks if it is to be published. The parts are deleted if the task is cancelled.
#[tool(task = "required", rerun_after_crash)]
async fn render_video(ctx: &Ctx, studio: State<Studio>, title: String) -> antiphon::Result<String> {
    for part in 0..3_u32 {
        ctx.report_progress(f64::from(part), Some(3.0), None);
        let rendered = ctx.step(("render", part), async |_| studio.render(part)).await;
        if let Err(stopped) = rendered {
            delete_parts(ctx, &studio, part).await?;
            return Err(stopped.into());
        }
    }
    let answer = ctx.elicit::<Publish>(format!("{title} is rendered. Publish it?")).outcome().await?;
    if answer == Answer::Cancel {
        delete_parts(ctx, &studio, 3).await?;
        return Ok(format!("{title}: deleted"));
    }
    let publishes = answer.accepted().is_some_and(|answer| answer.publish);
    Ok(format!("{title}: {}", if publishes { "published" } else { "kept" }))
}

/// Deletes the parts before this one. Steps that undo run although the task was cancelled.
async fn delete_parts(ctx: &Ctx, studio: &Studio, before: u32) -> antiphon::Result<()> {
    for part in 0..before {
        ctx.step(("delete", part), async |_| studio.delete(part)).await?;
    }
    Ok(())
}

impl Studio {
    fn render(&self, part: u32) -> antiphon::Result<()> {
        let mut log = OpenOptions::new().create(true).append(true).open(&self.parts)?;
        writeln!(log, "render {part}")?;
        if self.dies_in == Some(part) {
            abort();
        }
        Ok(())
    }

    fn delete(&self, part: u32) -> antiphon::Result<()> {
        let mut log = OpenOptions::new().append(true).open(&self.parts)?;
        Ok(writeln!(log, "delete {part}")?)
    }
}

/// Serves the tool on the standard streams, with the tasks of one file.
async fn serve(folder: &Path, dies_in: Option<u32>) -> Result<()> {
    let store = SqliteStore::open(folder.join("tasks.db"), SqliteOptions::default()).await?;
    // Short leases: the next process takes over soon.
    let lease = Duration::from_millis(400);
    let server = Server::builder("studio", "1.0")
        .keys(KeyRing::parse_list(&env::var(KEYS)?)?)
        .store(store)
        .claim_options(ClaimOptions::default().lease(lease))
        .task_options(TaskOptions::default().lease(lease).poll_interval(Duration::from_millis(100)))
        .limits(Limits::default().step_grace(Duration::from_millis(100)))
        .state(Studio { parts: folder.join("parts"), dies_in })
        .tool(render_video)
        .build()?;
    Ok(serve_stdio(server).await?)
}

/// Starts a server as a child, and a client of it.
fn client(folder: &Path, key: &str, dies_in: &str) -> Result<Client> {
    let server = ChildCommand::new(env::current_exe()?).arg(folder).arg(dies_in).env(KEYS, key).restarts(0);
    let client = Client::builder("render-video", "1.0").declare(AskSupport::ELICITATION);
    Ok(client.connect(ChildTransport::spawn(server)?))
}

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [folder, dies_in] = &words[..] {
        return serve(Path::new(folder), dies_in.parse().ok()).await;
    }
    let folder = env::temp_dir().join(format!("antiphon-render-video-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let shown = show(&folder).await;
    std::fs::remove_dir_all(&folder)?;
    shown
}

async fn show(folder: &Path) -> Result<()> {
    let key = SecretKey::random()?.to_base64url();
    let first = client(folder, &key, "1")?;
    let CallProgress::Task(handle) =
        first.begin(Call::tool("render_video", json!({"title": "Metropolis"}))?).await?
    else {
        return Err("the call did not become a task".into());
    };
    // The client keeps the task as text, for example in a file.
    let kept = serde_json::to_string(&handle)?;
    // Its process dies in the second part.
    while first.task(handle.clone()).get().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(first);

    // A second process continues the task, and shows its question.
    let second = client(folder, &key, "never")?;
    let mut task = second.task(serde_json::from_str::<TaskHandle>(&kept)?);
    let asked = question(&mut task).await?;
    println!("{}", std::fs::read_to_string(folder.join("parts"))?.trim().replace('\n', ", "));
    drop(second);

    // A third one takes the answer, perhaps days later.
    let third = client(folder, &key, "never")?;
    let mut task = third.task(serde_json::from_str::<TaskHandle>(&kept)?);
    task.answer(&asked, &json!({"action": "accept", "content": {"publish": true}})).await?;
    let result = task.wait().await?;
    println!("{}", result.first_text().unwrap_or_default());

    // Another film is cancelled at its question.
    let parts = std::fs::read_to_string(folder.join("parts"))?.len();
    let CallProgress::Task(handle) =
        third.begin(Call::tool("render_video", json!({"title": "Ants"}))?).await?
    else {
        return Err("the call did not become a task".into());
    };
    let mut task = third.task(handle);
    question(&mut task).await?;
    task.cancel().await?;
    let ends = if task.wait().await.is_err() { "cancelled" } else { "rendered" };
    println!("Ants: {ends}");
    println!("{}", std::fs::read_to_string(folder.join("parts"))?[parts..].trim().replace('\n', ", "));
    Ok(())
}

/// Waits for the question of a task, and returns its key.
async fn question(task: &mut ClientTask) -> Result<String> {
    loop {
        task.get().await?;
        if let Some((key, _)) = task.questions().next() {
            return Ok(key.to_owned());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
