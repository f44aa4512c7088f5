//! Rolling upgrades: a task that one version of its tool began is continued by another one. Each version has a process of its own,
//! and a process that stopped is a runtime that nobody drives.

use crate::client::{TaskClient, accept, text_of};
use antiphon::{
    Form, Result,
    seal::{KeyRing, SecretKey},
    server::{Ctx, Server, ServerBuilder, State},
    store::{ManualStoreClock, MemoryStore, StoreClock, calls::Micros},
    tool,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{runtime::Runtime, sync::Semaphore};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// The effects of all processes, and a gate of each, which the step `slow` needs.
#[derive(Clone)]
struct Effects {
    done: Arc<Mutex<Vec<&'static str>>>,
    gate: Arc<Semaphore>,
}

impl Effects {
    async fn run(&self, step: &'static str) -> Result<String> {
        self.done.lock().unwrap().push(step);
        if step == "slow" {
            self.gate.acquire().await.unwrap().forget();
        }
        Ok(step.to_owned())
    }
}

/// Versions of the tool `deploy`: its attribute, the steps before its question, the steps behind it.
macro_rules! versions {
    ($($version:ident: ($($attribute:tt)*), [$($before:literal),*], $question:literal, [$($after:literal),*];)*) => { $(
        mod $version {
            use super::*;

            /// Deploys something.
            #[tool(task = "required", $($attribute)*)]
            pub(super) async fn deploy(ctx: &Ctx, effects: State<Effects>) -> Result<String> {
                let mut made: Vec<String> = Vec::new();
                $( made.push(ctx.step($before, async |_| effects.run($before).await).await?); )*
                let Name { name } = ctx.elicit($question).await?;
                made.push(name);
                $( made.push(ctx.step($after, async |_| effects.run($after).await).await?); )*
                Ok(made.join(" "))
            }
        }
    )* };
}

versions! {
    old: (version = 1), ["build", "check"], "Who?", ["publish"];
    same: (version = 2), ["build", "check"], "Who?", ["publish"];
    longer: (version = 2), ["build", "check"], "Who?", ["publish", "announce"];
    reworded: (version = 2), ["build", "check"], "Who is it?", ["publish"];
    rejects: (version = 2, on_version = "reject"), ["build", "check"], "Who?", ["publish"];
    restarts: (version = 2, on_version = "restart"), ["compile"], "Who?", ["publish"];
    diverges: (version = 2), ["compile"], "Who?", ["publish"];
    renames: (version = 2, rename("build", "compile"), forget("check")), ["compile"], "Who?", ["publish"];
    adds: (version = 2, added("audit")), ["audit", "build", "check"], "Who?", ["publish"];
    slow_old: (version = 1, rerun_after_crash), ["build", "slow"], "Who?", ["publish"];
    slow_new: (version = 2, rerun_after_crash), ["build", "slow"], "Who?", ["publish", "announce"];
    slow_once: (version = 2), ["build", "slow"], "Who?", ["publish"];
    slow_rejects: (version = 2, rerun_after_crash, on_version = "reject"), ["build", "slow"], "Who?", ["publish"];
}

/// A version that diverges in a set of futures, which keeps a waker. A task has no time limit for its handler.
mod diverges_in_a_set {
    use super::*;
    use futures_util::{StreamExt as _, stream::FuturesUnordered};

    /// Deploys something.
    #[tool(task = "required", version = 2)]
    pub(super) async fn deploy(ctx: &Ctx, effects: State<Effects>) -> Result<String> {
        let compile = ctx.step("compile", async |_| effects.run("compile").await);
        let made: Vec<_> = FuturesUnordered::from_iter([compile]).collect().await;
        Ok(made.into_iter().collect::<std::result::Result<Vec<_>, _>>()?.join(" "))
    }
}

/// Asks three people, each after a step. Both versions are the same but for their number.
macro_rules! relay {
    ($($version:ident: $number:literal;)*) => { $(
        mod $version {
            use super::*;

            /// Passes something on.
            #[tool(task = "required", version = $number)]
            pub(super) async fn relay(ctx: &Ctx, effects: State<Effects>) -> Result<String> {
                let mut names = Vec::new();
                for (at, step) in ["one", "two", "three"].into_iter().enumerate() {
                    ctx.step(step, async |_| effects.run(step).await).await?;
                    names.push(ctx.elicit::<Name>("Who?").nth(at as u64).await?.name);
                }
                Ok(names.join(" "))
            }
        }
    )* };
}

relay! {
    relay_1: 1;
    relay_2: 2;
}

pub(crate) struct Fleet {
    store: Arc<MemoryStore>,
    clock: ManualStoreClock,
    done: Arc<Mutex<Vec<&'static str>>>,
}

/// A process: a server, and the runtime that drives it.
pub(crate) struct Process {
    pub(crate) runtime: Runtime,
    pub(crate) client: TaskClient,
    effects: Effects,
}

impl Fleet {
    pub(crate) fn new() -> Self {
        let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
        Self { store: Arc::new(MemoryStore::new().clock(clock)), clock: hand, done: Arc::default() }
    }

    pub(crate) fn process(&self, build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Process {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap();
        let effects = Effects { done: Arc::clone(&self.done), gate: Arc::new(Semaphore::new(0)) };
        let entered = runtime.enter();
        let server = Server::builder("fleet", "1")
            .keys(KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap())
            .store(self.store.clone())
            .single_instance(true)
            .state(effects.clone());
        let server = build(server).build().unwrap();
        drop(entered);
        Process { client: TaskClient::of(server), runtime, effects }
    }

    fn done(&self) -> Vec<&'static str> {
        self.done.lock().unwrap().clone()
    }
}

impl Process {
    /// Drives the process until this question is open.
    fn asked(&self, id: &str, key: &str) {
        self.runtime.block_on(self.client.asked(id, &[key]));
    }

    fn answer(&self, id: &str, key: &str, name: &str) {
        self.runtime.block_on(self.client.update(id, json!({key: accept(json!({"name": name}))})));
    }

    fn status(&self, id: &str, status: &str) -> Value {
        self.runtime.block_on(self.client.status(id, status))
    }

    fn task(&self, tool: &str) -> String {
        self.runtime.block_on(self.client.task(tool, json!({})))
    }
}

/// The end of a task in the new process: its text, or the reason of its error.
fn end_of(process: &Process, id: &str) -> String {
    process.runtime.block_on(async {
        let task = process.client.until(id, |task| task["status"] != "working").await;
        match task["status"].as_str() {
            Some("completed") => text_of(&task).to_owned(),
            Some("failed") => format!("{} {}", task["error"]["data"]["reason"], task["statusMessage"]),
            _ => format!("asks {:?}", crate::client::keys_of(&task)),
        }
    })
}

#[test]
fn a_newer_version_continues_as_it_says() {
    macro_rules! check {
        ($($version:ident: $end:literal, $done:expr;)*) => { $(
            let fleet = Fleet::new();
            let (first, second) =
                (fleet.process(|server| server.tool(old::deploy)), fleet.process(|server| server.tool($version::deploy)));
            let id = first.task("deploy");
            first.asked(&id, "name");
            // From here on the old process stands still.
            second.answer(&id, "name", "Anna");
            let (end, expected) = (end_of(&second, &id), $end);
            assert!(end.contains(expected), "{}: {end}", stringify!($version));
            let done: &[&str] = &$done;
            assert_eq!(fleet.done(), done, "{}", stringify!($version));
        )* };
    }
    check! {
        same: "build check Anna publish", ["build", "check", "publish"];
        longer: "build check Anna publish announce", ["build", "check", "publish", "announce"];
        // The answer belongs to a question that is not asked any more: a new one has a new key.
        reworded: r#"asks ["name~2"]"#, ["build", "check"];
        rejects: "\"version\" \"This call began under another version of the tool. Completed before that: `build`, `check`. Do not send this again: look at what these steps did first; a new call repeats them.\"", ["build", "check"];
        restarts: r#"asks ["name~2"]"#, ["build", "check", "compile"];
        diverges: "\"flow_diverged\"", ["build", "check"];
        diverges_in_a_set: "\"flow_diverged\"", ["build", "check"];
        renames: "build Anna publish", ["build", "check", "publish"];
        adds: "audit build check Anna publish", ["build", "check", "audit", "publish"];
    }
}

#[test]
fn a_process_that_dies_in_a_step_leaves_it_to_the_newer_version() {
    macro_rules! check {
        ($($version:ident: $end:literal, $slow:literal;)*) => { $(
            let fleet = Fleet::new();
            let first = fleet.process(|server| server.tool(slow_old::deploy));
            let second = fleet.process(|server| server.tool($version::deploy));
            let id = first.task("deploy");
            first.runtime.block_on(first.client.until(&id, |_| fleet.done().contains(&"slow")));
            fleet.clock.advance(Duration::from_secs(31));
            second.effects.gate.add_permits(1);
            let end = end_of(&second, &id);
            assert!(end.contains($end), "{}: {end}", stringify!($version));
            let slow = fleet.done().into_iter().filter(|step| *step == "slow").count();
            assert_eq!((slow, fleet.done()[0]), ($slow, "build"), "{}", stringify!($version));
        )* };
    }
    check! {
        slow_new: "asks [\"name\"]", 2;
        slow_once: "outcome_unknown", 1;
        slow_rejects: "\"version\"", 1;
    }
}

#[test]
fn a_process_that_drains_hands_over_to_the_newer_version() {
    let fleet = Fleet::new();
    let first = fleet.process(|server| server.tool(slow_old::deploy));
    let second = fleet.process(|server| server.tool(slow_new::deploy));
    let id = first.task("deploy");
    first.runtime.block_on(first.client.until(&id, |_| fleet.done().contains(&"slow")));
    first.client.server.drain();
    first.effects.gate.add_permits(1);
    first.runtime.block_on(first.client.server.steps_ended());
    // No time has passed: the lease was given back.
    second.asked(&id, "name");
    second.answer(&id, "name", "Anna");
    assert_eq!(end_of(&second, &id), "build slow Anna publish announce");
    assert_eq!(fleet.done(), ["build", "slow", "publish", "announce"]);
}

#[test]
fn an_old_process_and_a_new_one_alternate() {
    let fleet = Fleet::new();
    let processes = [
        fleet.process(|server| server.tool(relay_1::relay)),
        fleet.process(|server| server.tool(relay_2::relay)),
    ];
    for first in 0..2 {
        let id = processes[first].task("relay");
        for (at, key) in ["name#0", "name#1", "name#2"].into_iter().enumerate() {
            processes[(first + at) % 2].asked(&id, key);
            processes[(first + at + 1) % 2].answer(&id, key, key);
        }
        let done = processes[(first + 1) % 2].status(&id, "completed");
        assert_eq!(text_of(&done), "name#0 name#1 name#2");
    }
    assert_eq!(fleet.done(), ["one", "two", "three", "one", "two", "three"]);
}

#[test]
fn a_task_moves_as_often_as_processes_stop() {
    let fleet = Fleet::new();
    let mut process = fleet.process(|server| server.tool(relay_1::relay).tool(slow_old::deploy));
    let id = process.task("deploy");
    process.runtime.block_on(process.client.until(&id, |_| fleet.done().contains(&"slow")));
    process.effects.gate.add_permits(1);
    for _ in 0..6 {
        process.client.server.drain();
        process.runtime.block_on(process.client.server.steps_ended());
        process = fleet.process(|server| server.tool(slow_old::deploy));
        process.asked(&id, "name");
    }
    process.answer(&id, "name", "Anna");
    assert_eq!(end_of(&process, &id), "build slow Anna publish");
    assert_eq!(fleet.done(), ["build", "slow", "publish"]);
}

#[test]
fn a_process_without_the_tool_leaves_the_task_to_others() {
    let fleet = Fleet::new();
    let first = fleet.process(|server| server.tool(relay_1::relay));
    let second = fleet.process(|server| server.tool(old::deploy));
    let id = first.task("relay");
    first.asked(&id, "name#0");
    // The second process takes the answer, and cannot continue.
    second.answer(&id, "name#0", "Anna");
    second.runtime.block_on(async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(second.client.get(&id).await["status"], "working");
    });
    fleet.clock.advance(Duration::from_secs(10));
    first.asked(&id, "name#1");
    assert_eq!(fleet.done(), ["one", "two"]);
}
