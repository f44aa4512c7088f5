//! A poll opens what it shows. The record, and for a poll without content the questions and the result, may be of any size, or not be
//! there at all.

use crate::{
    client::{TaskClient, client, keys_of, text_of},
    session_client::SessionClient,
};
use antiphon::{
    Error, Form,
    server::Ctx,
    store::{
        MemoryTasks, StoreFuture, TaskLimits, TaskStore,
        calls::{Owner, RunnerId, StoreReach},
        tasks::{
            NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskNext, TaskRow, TaskSent, TaskSummary,
            TaskUpdate,
        },
    },
    tool,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Asks for a name.
#[tool(task = "required")]
async fn ask(ctx: &Ctx, padding: String) -> Result<String, Error> {
    let _padding: usize = ctx.step("pad", async |_| Ok(padding.len())).await?;
    let Name { name } = ctx.elicit("Whose?").await?;
    Ok(name)
}

fn key_of(id: &str) -> TaskKey {
    let byte = |at: usize| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap();
    TaskKey::from_bytes(std::array::from_fn(byte))
}

/// The places of a snapshot's parts: what every poll opens, the content, the record.
#[derive(Clone, Copy, Debug)]
enum Part {
    Shown,
    Content,
    Record,
}

/// A task that waits, whose row has another byte at the end of this part.
async fn damaged(part: Part) -> (TaskClient, String) {
    let store = Arc::new(MemoryTasks::new());
    let client = client(|server| server.draft_tasks(true).task_store(store.clone()).tool(ask)).user("anna");
    let id = client.task("ask", json!({"padding": "x".repeat(1000)})).await;
    client.asked(&id, &["name"]).await;
    let runner = RunnerId::from_bytes([7; 16]);
    let TaskClaim::Fresh(fence, row) =
        store.claim(key_of(&id), runner, Duration::from_secs(10)).await.unwrap()
    else {
        panic!("the task runs");
    };
    let length = |at: usize| u32::from_be_bytes(row.snapshot[at..at + 4].try_into().unwrap()) as usize;
    let end = match part {
        Part::Shown => 8 + length(0),
        Part::Content => 8 + length(0) + length(4),
        Part::Record => row.snapshot.len(),
    };
    let mut snapshot = row.snapshot.to_vec();
    snapshot[end - 1] ^= 1;
    store.update(&fence, &TaskUpdate::new(snapshot, TaskNext::Waits(None))).await.unwrap();
    (client, id)
}

/// The status in `tasks/get` of the extension, of the draft and of a session, and in a list of the draft.
async fn statuses(client: &TaskClient, id: &str) -> [Value; 3] {
    let draft = client.without_extension();
    let of_list = draft.send("tasks/list", json!({})).await["result"]["tasks"][0]["status"].clone();
    let of_draft = draft.send("tasks/get", json!({"taskId": id})).await["result"]["status"].clone();
    let of_extension = client.send("tasks/get", json!({"taskId": id})).await["result"]["status"].clone();
    [of_extension, of_draft, of_list]
}

#[tokio::test(start_paused = true)]
async fn a_poll_does_not_open_the_record() {
    let (client, id) = damaged(Part::Record).await;
    let waits = json!("input_required");
    assert_eq!(statuses(&client, &id).await, [waits.clone(), waits.clone(), waits]);
    assert_eq!(keys_of(&client.get(&id).await), ["name"]);
    let asked = client.without_extension().send("tasks/result", json!({"taskId": id})).await;
    assert!(asked["result"]["inputRequests"]["name"].is_object(), "{asked}");
    // Keys that are not open are ignored without a look at the record either.
    client.update(&id, json!({"other": {}})).await;
    client.cancel(&id).await;
    assert_eq!(client.get(&id).await["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn a_poll_without_content_does_not_open_the_content() {
    let (client, id) = damaged(Part::Content).await;
    let waits = json!("input_required");
    assert_eq!(statuses(&client, &id).await, [Value::Null, waits.clone(), waits]);
    let error = client.send("tasks/get", json!({"taskId": id})).await["error"].clone();
    assert_eq!(error["code"], -32603, "{error}");
    client.cancel(&id).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_data_cannot_be_opened_is_unknown() {
    let (client, id) = damaged(Part::Shown).await;
    assert_eq!(statuses(&client, &id).await, [Value::Null, Value::Null, Value::Null]);
    let error = client.send("tasks/get", json!({"taskId": id})).await["error"].clone();
    assert_eq!(error["message"], "Task not found");
}

/// Content that was stored at another moment does not open with this row.
#[tokio::test(start_paused = true)]
async fn the_parts_of_two_moments_do_not_open_together() {
    let store = Arc::new(MemoryTasks::new());
    let client = client(|server| server.task_store(store.clone()).tool(ask));
    let id = client.task("ask", json!({"padding": ""})).await;
    client.asked(&id, &["name"]).await;
    let earlier = store.load(key_of(&id)).await.unwrap().unwrap().snapshot;
    // The same question, stored again.
    client.update(&id, json!({"name": {"action": "accept"}})).await;
    client.asked(&id, &["name~2"]).await;
    let runner = RunnerId::from_bytes([7; 16]);
    let claim = store.claim(key_of(&id), runner, Duration::from_secs(10)).await.unwrap();
    let TaskClaim::Fresh(fence, row) = claim else { panic!("the task runs") };
    let length = |row: &[u8], at: usize| u32::from_be_bytes(row[at..at + 4].try_into().unwrap()) as usize;
    let shown = &row.snapshot[8..8 + length(&row.snapshot, 0)];
    let rest = &earlier[8 + length(&earlier, 0)..];
    let mixed = [&row.snapshot[..4], &earlier[4..8], shown, rest].concat();
    store.update(&fence, &TaskUpdate::new(mixed, TaskNext::Waits(None))).await.unwrap();
    let error = client.send("tasks/get", json!({"taskId": id})).await["error"].clone();
    assert_eq!(error["code"], -32603, "{error}");
}

/// Large questions and results arrive as they were stored, in each form.
#[tokio::test(start_paused = true)]
async fn large_contents_arrive_as_they_are() {
    /// Asks with a large text, and returns it.
    #[tool(task = "required")]
    async fn repeat(ctx: &Ctx, text: String) -> Result<String, Error> {
        ctx.elicit::<Name>(text.clone()).await?;
        Ok(text)
    }
    let client = client(|server| server.draft_tasks(true).tool(repeat));
    let mut session = SessionClient::open(&client.server).await;
    for text in ["é\"\\\n\u{0}\u{2028}😀".repeat(10_000), String::new()] {
        let id = client.task("repeat", json!({"text": text})).await;
        let asked = client.asked(&id, &["name"]).await;
        let draft = client.without_extension().send("tasks/result", json!({"taskId": id})).await;
        for asked in [&asked["inputRequests"], &draft["result"]["inputRequests"]] {
            assert_eq!(asked["name"]["params"]["message"], text);
        }
        client.update(&id, json!({"name": {"action": "accept", "content": {"name": "a"}}})).await;
        assert_eq!(text_of(&client.status(&id, "completed").await), text);
        let draft = client.without_extension().send("tasks/result", json!({"taskId": id})).await;
        let in_session = session.send("tasks/result", json!({"taskId": id})).await;
        for done in [&draft, &in_session] {
            assert_eq!(done["result"]["content"][0]["text"], text);
        }
    }
}

/// A store that returns no more of a snapshot than it is asked for, and counts the bytes.
#[derive(Debug, Default)]
struct Heads {
    tasks: MemoryTasks,
    read: AtomicUsize,
}

impl TaskStore for Heads {
    fn create<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated> {
        self.tasks.create(task, limits)
    }
    fn load(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>> {
        self.load_head(task, usize::MAX)
    }
    fn load_head(&self, task: TaskKey, bytes: usize) -> StoreFuture<'_, Option<TaskRow>> {
        Box::pin(async move {
            let Some(mut row) = self.tasks.load(task).await? else { return Ok(None) };
            row.snapshot = row.snapshot[..row.snapshot.len().min(bytes)].into();
            self.read.fetch_add(row.snapshot.len(), Ordering::SeqCst);
            Ok(Some(row))
        })
    }
    fn send<'a>(
        &'a self,
        task: TaskKey,
        message: &'a [u8],
        limits: &'a TaskLimits,
    ) -> StoreFuture<'a, TaskSent> {
        self.tasks.send(task, message, limits)
    }
    fn claim(&self, task: TaskKey, runner: RunnerId, lease: Duration) -> StoreFuture<'_, TaskClaim> {
        self.tasks.claim(task, runner, lease)
    }
    fn renew<'a>(&'a self, fence: &'a TaskFence, lease: Duration) -> StoreFuture<'a, ()> {
        self.tasks.renew(fence, lease)
    }
    fn update<'a>(&'a self, fence: &'a TaskFence, update: &'a TaskUpdate) -> StoreFuture<'a, ()> {
        self.tasks.update(fence, update)
    }
    fn due(&self, limit: usize) -> StoreFuture<'_, Vec<TaskKey>> {
        self.tasks.due(limit)
    }
    fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>> {
        self.tasks.list(limit)
    }
    fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TaskKey>> {
        self.tasks.list_of_owner(owner, after, limit)
    }
    fn sweep(&self, limit: usize) -> StoreFuture<'_, usize> {
        self.tasks.sweep(limit)
    }
    fn reach(&self) -> StoreReach {
        self.tasks.reach()
    }
}

/// Of a long row, a poll reads the beginning: what it shows. The record is not read, and without content neither is the content.
#[tokio::test(start_paused = true)]
async fn a_poll_reads_what_it_shows() {
    /// Asks with a text of this length, and returns one.
    #[tool(task = "required")]
    async fn long(ctx: &Ctx, record: usize, text: usize) -> Result<String, Error> {
        for part in 0..record / 10_000 {
            let _: String = ctx.step(("part", part), async |_| Ok("x".repeat(10_000))).await?;
        }
        ctx.elicit::<Name>("q".repeat(text)).await?;
        Ok("r".repeat(text))
    }
    let waits = json!("input_required");
    for (record, text) in [(0, 10), (300_000, 10), (0, 100_000), (300_000, 100_000)] {
        let store = Arc::new(Heads::default());
        let client =
            client(|server| server.draft_tasks(true).task_store(store.clone()).tool(long)).user("anna");
        let draft = client.without_extension();
        let read = || store.read.swap(0, Ordering::SeqCst);
        let id = client.task("long", json!({"record": record, "text": text})).await;
        client.asked(&id, &["name"]).await;
        let case = format!("a record of {record} bytes and a text of {text}");
        read();

        assert_eq!(draft.send("tasks/get", json!({"taskId": id})).await["result"]["status"], waits, "{case}");
        assert!(read() <= 4_096, "{case}: a poll of the draft");
        draft.send("tasks/list", json!({})).await;
        assert!(read() <= 4_096, "{case}: a list");
        client.update(&id, json!({"other": {}})).await;
        assert!(read() <= 4_096, "{case}: no answer to an open question");
        let task = client.get(&id).await;
        assert_eq!(task["inputRequests"]["name"]["params"]["message"], "q".repeat(text), "{case}");
        assert!(read() <= 10_000 + 2 * text, "{case}: a poll with questions");
        let asked = draft.send("tasks/result", json!({"taskId": id})).await;
        assert_eq!(asked["result"]["inputRequests"]["name"]["params"]["message"], "q".repeat(text), "{case}");

        client.update(&id, json!({"name": {"action": "accept", "content": {"name": "Ada"}}})).await;
        let done = client.status(&id, "completed").await;
        assert_eq!(text_of(&done), "r".repeat(text), "{case}");
        read();
        assert_eq!(text_of(&client.get(&id).await), "r".repeat(text), "{case}");
        assert!(read() <= 10_000 + 2 * text, "{case}: a poll with a result");
        draft.send("tasks/get", json!({"taskId": id})).await;
        assert!(read() <= 4_096, "{case}: a poll of the draft at the end");
    }
}
