//! The cases of `interop/examples.json`, which the peers run too, with the `antiphon` program and two replicas behind a
//! proxy: once with one command per call, and once with one process per leg.

use antiphon_demo::{
    Backend,
    backend::{EffectCounts, Operation},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    /// The operations that prepare the backend.
    #[serde(default)]
    before: Vec<Operation>,
    /// The build before the call, and the build from one question on.
    deploy: Option<Deploy>,
    tool: String,
    arguments: Value,
    answers: Vec<String>,
    sample: Option<String>,
    #[serde(default)]
    roots: Vec<String>,
    /// The keys of the questions in each round.
    asked: Vec<BTreeSet<String>>,
    messages: Option<Vec<String>>,
    text: String,
    #[serde(default)]
    is_error: bool,
    /// The bearer token of the call.
    bearer: Option<String>,
    /// The visits of the page that the person was asked to open.
    #[serde(default)]
    page: Vec<Visit>,
    /// The numbers of effects by kind, one number for each idempotency key.
    #[serde(default)]
    effects: BTreeMap<String, Vec<u64>>,
    /// The number of replicas that were replaced.
    #[serde(default)]
    replaced: usize,
}

#[derive(Deserialize)]
struct Deploy {
    before: String,
    key: String,
    then: String,
}

#[derive(Deserialize)]
struct Visit {
    user: Option<String>,
    status: u16,
}

/// The program `fleet`.
struct Fleet {
    process: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
    url: String,
    backend: Backend,
}

impl Fleet {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_fleet"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = process.stdin.take();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let url = line(&mut lines).strip_prefix("listening on ").unwrap().to_owned();
        let backend = line(&mut lines);
        let backend = backend.strip_prefix("backend at http://").unwrap().trim_end_matches('/');
        Self { process, stdin, lines, url, backend: Backend::at(backend.parse().unwrap()) }
    }

    /// Sends a command. Returns the names of the replicas.
    fn command(&mut self, command: &str) -> BTreeSet<String> {
        writeln!(self.stdin.as_mut().unwrap(), "{command}").unwrap();
        line(&mut self.lines).split(' ').map(str::to_owned).collect()
    }

    async fn effects(&self) -> Value {
        let counts: EffectCounts = self.backend.send(Operation::Count).await.unwrap();
        serde_json::to_value(counts).unwrap()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.process.wait();
    }
}

fn line(lines: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// Returns the status of a page, for a browser with this user's cookie.
fn status(method: &str, url: &str, user: Option<&str>) -> u16 {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let cookie = user.map(|user| format!("cookie: user={user}\r\n")).unwrap_or_default();
    write!(stream, "{method} /{path} HTTP/1.1\r\nhost: {host}\r\n{cookie}content-length: 0\r\n\r\n").unwrap();
    let mut head = String::new();
    BufReader::new(stream).read_line(&mut head).unwrap();
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Returns the URL that the program has shown.
fn shown_url(stderr: &str) -> Option<String> {
    stderr.lines().map(str::trim).find(|line| line.starts_with("http://")).map(str::to_owned)
}

/// Runs the program with this standard input. Returns the JSON object that it prints, and the URL that it has shown.
fn antiphon(arguments: &[String], input: &Value) -> (Value, Option<String>) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_cli"))
        .args(arguments)
        .env_remove("MCP_BEARER")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    write!(process.stdin.take().unwrap(), "{input}").unwrap();
    let output = process.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let output = serde_json::from_slice(&output.stdout).unwrap_or_else(|fault| panic!("{fault}: {stderr}"));
    (output, shown_url(&stderr))
}

/// The hosts of the pages. The command line agrees to a page with its host.
const HOSTS: [(&str, &str); 2] = [("deposit#7=accept", "127.0.0.1"), ("terms=accept", "example.com")];

impl Case {
    /// Returns the arguments of `call`, and those that every leg needs.
    fn arguments(&self, fleet: &Fleet, leg_by_leg: bool) -> (Vec<String>, Vec<String>) {
        let mut shared_arguments = vec!["--json".to_owned()];
        if leg_by_leg {
            shared_arguments.push("--once".to_owned());
        }
        let flags = [("--answer", &self.answers), ("--root", &self.roots)];
        for (flag, values) in flags {
            let with_host = |value: &String| match HOSTS.iter().find(|(known, _)| known == value) {
                Some((_, host)) => format!("{value}@{host}"),
                None => value.clone(),
            };
            shared_arguments.extend(values.iter().flat_map(|value| [flag.to_owned(), with_host(value)]));
        }
        if let Some(text) = &self.sample {
            shared_arguments.extend(["--sample".to_owned(), text.clone()]);
        }
        if let Some(token) = &self.bearer {
            shared_arguments.extend(["--bearer".to_owned(), token.clone()]);
        }
        shared_arguments.push(fleet.url.clone());
        let mut call =
            vec!["call".to_owned(), self.tool.clone(), "--args".to_owned(), self.arguments.to_string()];
        call.extend(shared_arguments.iter().cloned());
        (call, shared_arguments)
    }

    /// Runs a process for each leg. Checks the questions, and returns the last object and the URL.
    fn leg_by_leg(&self, fleet: &mut Fleet) -> (Value, Option<String>) {
        let (call, shared_arguments) = self.arguments(fleet, true);
        let resume: Vec<String> =
            ["resume", "-"].map(String::from).into_iter().chain(shared_arguments).collect();
        let (mut rounds, mut messages) = (Vec::new(), Vec::new());
        let (mut output, mut page) = antiphon(&call, &Value::Null);
        while output["status"] == "pending" {
            let asks = output["pending"]["asks"].as_object().unwrap().clone();
            let keys: BTreeSet<String> = asks.keys().cloned().collect();
            messages
                .extend(asks.values().filter_map(|ask| ask["params"]["message"].as_str()).map(String::from));
            if let Some(deploy) = &self.deploy
                && keys.contains(&deploy.key)
            {
                fleet.command(&format!("deploy {}", deploy.then));
            }
            if !keys.is_empty() {
                rounds.push(keys);
            }
            let (then, shown) = antiphon(&resume, &output);
            (output, page) = (then, page.or(shown));
        }
        assert_eq!(rounds, self.asked, "{}", self.case);
        assert_eq!(self.messages.as_ref().unwrap_or(&messages), &messages, "{}", self.case);
        (output, page)
    }

    async fn check(&self, fleet: &mut Fleet, leg_by_leg: bool) {
        if let Some(deploy) = &self.deploy {
            fleet.command(&format!("deploy {}", deploy.before));
        }
        for operation in &self.before {
            fleet.backend.send::<Value>(operation.clone()).await.unwrap();
        }
        let (before, replicas) = (fleet.effects().await, fleet.command("replicas"));
        let (output, page) = if leg_by_leg {
            self.leg_by_leg(fleet)
        } else {
            antiphon(&self.arguments(fleet, false).0, &Value::Null)
        };
        for Visit { user, status: expected } in &self.page {
            for method in ["GET", "POST"] {
                let found = status(method, page.as_deref().unwrap(), user.as_deref());
                assert_eq!(found, *expected, "{}: {method} as {user:?}", self.case);
            }
        }
        let result = &output["result"];
        assert_eq!(
            (&result["content"][0]["text"], result["isError"].as_bool().unwrap_or_default()),
            (&json!(self.text), self.is_error),
            "{}: {output}",
            self.case
        );
        assert_eq!(increase(&before, &fleet.effects().await), self.effects, "{}", self.case);
        let left = fleet.command("replicas");
        assert_eq!(replicas.difference(&left).count(), self.replaced, "{}", self.case);
    }
}

/// Returns the increase of each count, by kind.
fn increase(before: &Value, after: &Value) -> BTreeMap<String, Vec<u64>> {
    let grown = |(kind, counts): (&String, &Value)| {
        let grown = counts.as_object().unwrap().iter().map(|(key, count)| {
            count.as_u64().unwrap() - before[kind.as_str()][key].as_u64().unwrap_or_default()
        });
        let some: Vec<u64> = grown.filter(|count| *count > 0).collect();
        (!some.is_empty()).then(|| (kind.clone(), some))
    };
    after.as_object().unwrap().iter().filter_map(grown).collect()
}

async fn check_all(leg_by_leg: bool) {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../interop/examples.json")).unwrap();
    let mut fleet = Fleet::start();
    for case in &cases {
        // One command cannot wait for a deployment.
        if leg_by_leg || case.deploy.is_none() {
            case.check(&mut fleet, leg_by_leg).await;
        }
    }
}

#[tokio::test]
async fn one_command_per_call() {
    check_all(false).await;
}

#[tokio::test]
async fn one_process_per_leg() {
    check_all(true).await;
}
