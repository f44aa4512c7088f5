//! The demo's tools whose calls become tasks, with the real client and real servers.

use crate::support::{Scratch, Server, command, run};
use antiphon_demo::backend::{ADDRESS_VARIABLE, Backend, ComputeHook, EffectCounts, Operation, serve};
use serde_json::json;
use std::{
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
};
use tokio::{net::TcpListener, sync::Semaphore};

/// A backend whose computations wait for a place, and report that they wait.
struct Nodes {
    address: SocketAddr,
    begun: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

impl Nodes {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, places) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (reports, waits) = (Arc::clone(&begun), Arc::clone(&places));
        let hook = ComputeHook::new(move |_| {
            let (reports, waits) = (Arc::clone(&reports), Arc::clone(&waits));
            async move {
                reports.add_permits(1);
                waits.acquire().await.unwrap().forget();
            }
        });
        tokio::spawn(serve(listener, hook, Arc::default()));
        Self { address, begun, places }
    }

    /// Waits until this number of further computations wait for their place.
    async fn begun(&self, number: u32) {
        self.begun.acquire_many(number).await.unwrap().forget();
    }

    fn server(&self, store: &Path, keys: &Path) -> Server {
        let listens = ["serve-demo", "--listen", "127.0.0.1:0", "--store"];
        let mut command = command(listens);
        command.arg(store).arg("--key-file").arg(keys).env(ADDRESS_VARIABLE, self.address.to_string());
        Server::start_with(&mut command)
    }

    async fn counts(&self) -> Vec<u32> {
        let counts: EffectCounts = Backend::at(self.address).send(Operation::Count).await.unwrap();
        counts.portions.into_values().collect()
    }
}

const ORDERS: &str = r#"{"name": "orders"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_server_hands_its_task_to_the_next_one() {
    let nodes = Nodes::start().await;
    let scratch = Scratch::new();
    let (store, keys) = (scratch.path().join("calls.db"), scratch.keys("keys"));
    let first = nodes.server(&store, &keys);
    let call =
        ["call", "provision_cluster", "--args", ORDERS, "--answer", "region.region=eu", "--detach", "--json"];
    let detached = run(call.iter().chain(&[first.url.as_str()]));
    assert_eq!(detached.json()["status"], "task", "{detached:?}");
    let handle = format!("@{}", scratch.file("task.json", &detached.stdout).display());
    nodes.places.add_permits(1);
    nodes.begun(2).await;

    // SIGTERM comes while the second node is built. The node is finished, and the task goes to the next process at once.
    let address = first.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let ended = tokio::task::spawn_blocking(move || first.terminate());
    while TcpStream::connect(&address).is_ok() {
        tokio::task::yield_now().await;
    }
    nodes.places.add_permits(1);
    let (status, said) = ended.await.unwrap();
    assert!(status.success(), "{said}");
    let rows = run(["tasks", "ls", "--json", "--store", store.to_str().unwrap()]).json();
    assert_eq!((&rows["tasks"][0]["state"], &rows["tasks"][1]), (&json!("due"), &json!(null)), "{rows}");

    let second = nodes.server(&store, &keys);
    nodes.places.add_permits(1);
    nodes.begun(1).await;
    run(["task", "watch", &handle, "--answer", "live.value=true", &second.url])
        .ends(0, "orders in eu is live.");
    assert_eq!(nodes.counts().await, [1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_a_task_is_answered_days_later_by_anybody_with_the_handle() {
    let nodes = Nodes::start().await;
    nodes.places.add_permits(6);
    let scratch = Scratch::new();
    let (store, keys) = (scratch.path().join("calls.db"), scratch.keys("keys"));
    let server = nodes.server(&store, &keys);
    // The client that began the call has no answer to the question in the task.
    let call = ["call", "provision_cluster", "--args", ORDERS, "--answer", "region.region=eu", "--json"];
    let left = run(call.iter().chain(&[server.url.as_str()]));
    assert_eq!((left.code, &left.json()["status"]), (3, &json!("task")), "{left:?}");
    let handle = format!("@{}", scratch.file("task.json", &left.stdout).display());
    let asked = run(["task", "get", &handle]);
    assert!(
        asked.stdout.starts_with("input_required") && asked.stdout.contains("asks live: orders runs in eu"),
        "{asked:?}"
    );
    server.kill();
    let server = nodes.server(&store, &keys);
    run(["task", "answer", &handle, "--answer", "live.value=false", &server.url]).ends(0, "answered live");
    run(["task", "watch", &handle, &server.url]).ends(0, "orders in eu is ready.");
    assert_eq!(nodes.counts().await, [1, 1, 1]);
}

#[test]
fn a_task_confirms_before_it_deletes() {
    let server = Server::start();
    let call = |answer: &str| {
        run([
            "call",
            "confirm_delete",
            "--args",
            r#"{"filename": "q1.txt"}"#,
            "--answer",
            answer,
            &server.url,
        ])
    };
    call("confirm=decline").ends(0, "Kept q1.txt.");
    call("confirm.value=true").ends(0, "Deleted q1.txt.");
    call("confirm.value=true").ends(0, "There is no q1.txt.");
    let detached =
        run(["call", "confirm_delete", "--args", r#"{"filename": "q2.txt"}"#, "--detach", &server.url]);
    assert_eq!(detached.code, 0, "{detached:?}");
    let id = detached.stdout.trim();
    run(["task", "cancel", id, &server.url]).ends(0, "");
    run(["task", "watch", id, &server.url]).ends(4, "");
}

/// The example of the draft before the extension, in both forms, and tools without tasks beside it.
#[test]
fn the_demo_has_the_example_of_the_draft() {
    let server = Server::with_arguments(&["--draft-tasks"]);
    for (flag, form) in [("--draft-tasks=only", "draft"), ("--draft-tasks", "extension")] {
        let answer = ["--answer", "echo_input.input=Hello World!"];
        run(["call", "echo", flag, answer[0], answer[1], &server.url]).ends(0, "Echo: Hello World!");
        let detached = run(["call", "echo", flag, "--detach", "--json", &server.url]).json();
        assert_eq!(detached["task"]["form"], form, "{detached}");
        run(["call", "get_weather", flag, "--args", r#"{"location": "Paris"}"#, &server.url])
            .fails(3, "no answer for");
    }
    // Without the flag, the demo has neither the draft nor its tool.
    let server = Server::start();
    let ordinary = ["call", "echo", "--args", r#"{"text": "a"}"#];
    for flag in ["--draft-tasks=only", "--draft-tasks"] {
        run(ordinary.iter().chain(&[flag, server.url.as_str()])).ends(0, "a");
    }
    run(["call", "echo", "--draft-tasks=never", "--args", "{}", &server.url]).fails(2, "possible values");
}
