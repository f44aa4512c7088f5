//! Tasks of a server on standard input and output: one process after the other continues a task, long before a lease would end.

use crate::support::{Scratch, command};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

/// Far more than it takes, and less than a lease.
const SOON: Duration = Duration::from_secs(15);

/// A `serve-demo --stdio`, and its client.
struct Server {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The input ends right behind the last request.
    EofAtOnce,
    /// The input ends after the reply.
    Eof,
    /// The signal comes after the reply, and the input stays open.
    Signal(&'static str),
}

impl Server {
    fn start(store: &Path, keys: &Path) -> Self {
        let mut command = command(["serve-demo", "--stdio", "--store"]);
        command.arg(store).arg("--key-file").arg(keys).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        Self { process, input, output }
    }

    fn send(&mut self, method: &str, params: Value) {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        writeln!(self.input.as_ref().unwrap(), "{request}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|fault| panic!("{line:?}: {fault}"))
    }

    /// Sends the last request of the process, and waits for its end. Returns the result.
    fn last(mut self, method: &str, params: Value, end: End) -> Value {
        self.send(method, params);
        if end == End::EofAtOnce {
            self.input = None;
        }
        let reply = self.receive();
        match end {
            End::Signal(name) => {
                let kill = format!("kill -{name} {}", self.process.id());
                assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
            }
            End::EofAtOnce | End::Eof => self.input = None,
        }
        assert!(self.process.wait().unwrap().success(), "{end:?}");
        assert!(reply["result"].is_object(), "{end:?}: {reply}");
        reply["result"].clone()
    }

    /// Ends the input, and waits for the end of the process. A process that is killed may keep the lease of a task.
    fn ends(mut self) {
        self.input = None;
        assert!(self.process.wait().unwrap().success());
    }

    /// Subscribes to a task, and waits until it has this status. Returns it.
    fn until(&mut self, task: &str, status: &str) -> Value {
        self.send("subscriptions/listen", json!({"notifications": {"taskIds": [task]}}));
        loop {
            let message = self.receive();
            let task = &message["params"];
            if message["method"] == "notifications/tasks" && task["status"] == status {
                return task.clone();
            }
            assert!(message["method"].is_string(), "{message}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Perhaps it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn each_process_continues_the_task_of_the_last_one() {
    for end in [End::EofAtOnce, End::Eof, End::Signal("TERM"), End::Signal("INT")] {
        let scratch = Scratch::new();
        let (store, keys) = (scratch.path().join("calls.db"), scratch.keys("keys"));
        let start = || Server::start(&store, &keys);
        let call = json!({"name": "confirm_delete", "arguments": {"filename": "q1.txt"}});
        let created = start().last("tools/call", call, end);
        let task = created["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
        let began = Instant::now();
        let mut second = start();
        let asked = second.until(task, "input_required");
        assert!(asked["inputRequests"]["confirm"].is_object(), "{asked}");
        let answers = json!({"confirm": {"action": "accept", "content": {"value": true}}});
        second.ends();
        start().last("tasks/update", json!({"taskId": task, "inputResponses": answers}), end);
        let done = start().until(task, "completed");
        assert_eq!(done["result"]["content"][0]["text"], "Deleted q1.txt.", "{done}");
        assert!(began.elapsed() < SOON, "{end:?}: {:?}", began.elapsed());
    }
}
