//! The journal of a call continues in the store. Each test runs one handler before a process that dies at each operation of its
//! store in turn, or a client that hangs up after each time, and says which effects may be there in the end.

/// A module of tests, one for each of these tools.
macro_rules! each_tool {
    ($(#[$doc:meta])* $name:ident: $run:expr; $($tool:ident)*) => {
        $(#[$doc])*
        mod $name {
            use super::*;

            $(
                #[tokio::test(start_paused = true)]
                async fn $tool() {
                    ($run)(stringify!($tool)).await;
                }
            )*
        }
    };
}

mod answers;
mod ended_steps;
mod limits;
mod losers;
mod promotion;
mod refusals;
mod retries;
mod schedules;
mod versions;
mod winners;

use super::Pick;
use crate::common::{
    mortal::{Death, MortalStore, Process, StoreTime},
    ring,
    tool_call::accept,
};
use antiphon::{
    Clock,
    server::{
        Caller, ClaimOptions, Limits, Server, ServerBuilder, TaskOptions, operations::ReplayCheck,
        steps::Attempt,
    },
    store::MemoryStore,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};
use tokio::time::{Instant, sleep, timeout};

pub(super) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The lease of a claim.
const LEASE: Duration = Duration::from_secs(3);
/// The time in which each reply comes. The time of a handler is longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The world outside of the store, as one process sees it.
#[derive(Clone, Debug)]
pub(super) struct World {
    process: Arc<Process>,
    effects: Arc<Mutex<Vec<(String, String)>>>,
    notes: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// Waits for something that is no step.
    pub(super) async fn waits(&self, time: u64) {
        sleep(millis(time)).await;
        self.process.alive().await;
    }

    /// Has an effect, in the body of a step.
    pub(super) async fn does(&self, what: &str, step: &Attempt) -> antiphon::Result<String> {
        self.process.alive().await;
        self.effects.lock().unwrap().push((what.to_owned(), step.key().to_owned()));
        Ok(what.to_owned())
    }

    /// Returns the result of an effect, if there is one.
    pub(super) async fn finds(&self, what: &str) -> antiphon::Result<Option<String>> {
        self.process.alive().await;
        self.notes(format!("reconcile {what}"));
        Ok(self.effects.lock().unwrap().iter().any(|(did, _)| did == what).then(|| what.to_owned()))
    }

    /// Notes an event of the handler. Returns the number of such events.
    pub(super) fn notes(&self, event: impl Into<String>) -> usize {
        let (event, mut notes) = (event.into(), self.notes.lock().unwrap());
        notes.push(event.clone());
        notes.iter().filter(|one| **one == event).count()
    }
}

/// The completion of a server.
pub(super) type Build = fn(ServerBuilder) -> ServerBuilder;

/// One call, with its client and its processes.
#[derive(Clone, Copy)]
pub(super) struct Play {
    pub(super) tool: &'static str,
    /// The server of the first process, and of those that follow.
    pub(super) first: Build,
    pub(super) then: Build,
    /// The answer to the question of this key.
    pub(super) answer: fn(&str) -> Value,
    /// The time until the next process receives the request.
    pub(super) gap: Duration,
    /// The time after which the client hangs up once; then it sends the same request again.
    pub(super) hangs_up: Option<Duration>,
    pub(super) death: Option<Death>,
    /// The operation that is confirmed late, and by how much.
    pub(super) late: Option<(usize, Duration)>,
    pub(super) promotes: bool,
}

impl Play {
    pub(super) fn of(tool: &'static str, build: Build) -> Self {
        Self {
            tool,
            first: build,
            then: build,
            answer: |_| accept(json!({"name": "Anna"})),
            gap: Duration::from_secs(5),
            hangs_up: None,
            death: None,
            late: None,
            promotes: false,
        }
    }

    /// Runs the call with a death before and behind each operation of the first process, and checks each end. The last run has
    /// no death.
    pub(super) async fn at_each_operation(self, check: impl Fn(&Ended)) {
        for takes_effect in [false, true] {
            for after in 0.. {
                assert!(after < 300, "the call does not end");
                let ended = Self { death: Some(Death { after, takes_effect }), ..self }.run().await;
                check(&ended);
                if !ended.died {
                    break;
                }
            }
        }
    }

    /// Runs the call with a client that hangs up after each time up to this one.
    pub(super) async fn at_each_time(self, most: Duration, check: impl Fn(&Ended)) {
        let mut time = millis(1);
        while time < most {
            check(&Self { hangs_up: Some(time), ..self }.run().await);
            time += millis(1);
        }
    }

    /// Runs the call to its end.
    pub(super) async fn run(self) -> Ended {
        let mut fleet = Fleet::new(self);
        let mut params = json!({"name": self.tool, "arguments": {}});
        let mut hangs_up = self.hangs_up;
        let mut rounds = 0;
        loop {
            let is_first = params.get("requestState").is_none();
            if let Some(time) = hangs_up.filter(|_| !is_first) {
                let begun = Instant::now();
                if timeout(time, fleet.request("tools/call", &params)).await.is_err() {
                    assert!(begun.elapsed() >= time);
                    hangs_up = None;
                }
            }
            let reply = fleet.settled("tools/call", &params).await;
            let result = &reply["result"];
            match result["resultType"].as_str() {
                Some("input_required") => {
                    rounds += 1;
                    assert!(rounds < 40, "the call does not end: {reply}");
                    let asked = result["inputRequests"].as_object().expect("a round");
                    let answers: serde_json::Map<String, Value> =
                        asked.keys().map(|key| (key.clone(), (self.answer)(key))).collect();
                    fleet.asked.extend(asked.keys().cloned());
                    params["requestState"] = result["requestState"].clone();
                    params["inputResponses"] = answers.into();
                }
                Some("task") => {
                    let id = result["taskId"].as_str().expect("an id").to_owned();
                    let reply = fleet.task(&id).await;
                    return fleet.ended(reply);
                }
                _ => {
                    if !is_first && reply["error"].is_null() {
                        assert_eq!(fleet.settled("tools/call", &params).await, reply, "sent again");
                    }
                    return fleet.ended(reply);
                }
            }
        }
    }
}

/// The processes of a call.
struct Fleet {
    play: Play,
    begun: Instant,
    time: StoreTime,
    store: Arc<MemoryStore>,
    world: World,
    server: Server,
    asked: Vec<String>,
    died: bool,
}

impl Fleet {
    fn new(play: Play) -> Self {
        let (time, process) = (StoreTime::begin(), Process::new());
        process.dies(play.death);
        if let Some((operation, by)) = play.late {
            process.is_late(operation, by);
        }
        let store = Arc::new(MemoryStore::new().clock(time.clock()));
        let world = World { process, effects: Arc::default(), notes: Arc::default() };
        let server = server(play.first, &world, &store, &time);
        Self { play, begun: Instant::now(), time, store, world, server, asked: Vec::new(), died: false }
    }

    /// Has the process die at an operation to come.
    fn dies(&mut self, death: Death) {
        self.play.death = Some(death);
        self.world.process.dies(Some(death));
    }

    /// Starts the next process if this one is dead.
    async fn lives(&mut self) {
        if self.world.process.is_dead() {
            sleep(self.play.gap).await;
            self.died = true;
            self.world.process = Process::new();
            self.server = server(self.play.then, &self.world, &self.store, &self.time);
        }
    }

    /// Sends a request. Returns `None` if the process dies.
    async fn request(&self, method: &str, params: &Value) -> Option<Value> {
        let mut params = params.clone();
        let given = params.as_object_mut().and_then(|params| params.remove("capabilities"));
        let mut capabilities = given.unwrap_or_else(|| json!({"elicitation": {"form": {}}}));
        if self.play.promotes {
            capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let caller = Caller::default();
        let reply = tokio::select! {
            reply = timeout(PATIENCE, self.server.respond(message.as_bytes(), &caller)) => reply,
            () = self.world.process.died() => return None,
        };
        let reply = reply.unwrap_or_else(|_| panic!("no reply in {PATIENCE:?}: {self}"));
        Some(serde_json::from_slice(&reply.expect("a request has a reply").body).expect("a reply is JSON"))
    }

    /// Sends the same request until it has a reply.
    async fn settled(&mut self, method: &str, params: &Value) -> Value {
        for _ in 0..40 {
            self.lives().await;
            match self.request(method, params).await {
                Some(reply) if goes_on(&reply) => sleep(Duration::from_secs(1)).await,
                Some(reply) => return reply,
                None => {}
            }
        }
        panic!("the request stays in flight: {self}")
    }

    /// Follows a task to its end. Returns its result or error.
    async fn task(&mut self, id: &str) -> Value {
        for _ in 0..200 {
            sleep(millis(500)).await;
            let task = self.settled("tasks/get", &json!({"taskId": id})).await["result"].clone();
            match task["status"].as_str() {
                Some("completed") => return json!({"result": task["result"]}),
                Some("failed" | "cancelled") => return json!({"error": task["error"]}),
                _ => {}
            }
            for key in task["inputRequests"].as_object().into_iter().flatten().map(|(key, _)| key) {
                self.asked.push(key.clone());
                let answers = json!({"taskId": id, "inputResponses": {key: (self.play.answer)(key)}});
                self.settled("tasks/update", &answers).await;
            }
        }
        panic!("the task does not end: {self}")
    }

    fn ended(self, reply: Value) -> Ended {
        let death = self.play.death.filter(|_| self.died);
        Ended {
            reply,
            effects: self.world.effects.lock().unwrap().clone(),
            notes: self.world.notes.lock().unwrap().clone(),
            asked: self.asked,
            died: self.died,
            schedule: format!("{death:?} {:?} {:?}", self.play.hangs_up, self.play.late),
            time: self.begun.elapsed(),
        }
    }
}

impl std::fmt::Display for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Play { death, hangs_up, late, .. } = self.play;
        write!(f, "{death:?} {hangs_up:?} {late:?}; effects {:?}", self.world.effects.lock().unwrap())
    }
}

/// Returns true if the same request may be sent again.
fn goes_on(reply: &Value) -> bool {
    matches!(reply["error"]["data"]["reason"].as_str(), Some("in_flight" | "step_failed"))
}

fn server(build: Build, world: &World, store: &Arc<MemoryStore>, time: &StoreTime) -> Server {
    let mortal = MortalStore {
        process: Arc::clone(&world.process),
        store: Arc::clone(store) as Arc<dyn antiphon::store::CallStore>,
        time: time.clone(),
    };
    let begun = time.begun();
    let clock = Clock::from_fn(move || UNIX_EPOCH + Duration::from_secs(1_800_000_000) + begun.elapsed());
    let builder = Server::builder("journal", "1")
        .keys(ring(7))
        .clock(clock)
        .replay_check(ReplayCheck::Off)
        .store(mortal)
        .single_instance(true)
        .state(world.clone())
        .limits(limits())
        .claim_options(ClaimOptions::default().lease(LEASE).wait_timeout(Duration::from_secs(1)))
        .task_options(TaskOptions::default().lease(LEASE));
    build(builder).build().unwrap()
}

pub(super) fn limits() -> Limits {
    Limits::default().step_grace(Duration::from_secs(1)).handler_timeout(Duration::from_secs(300))
}

/// The end of a call.
#[derive(Debug)]
#[allow(dead_code, reason = "a failed test prints all of it")]
pub(super) struct Ended {
    pub(super) reply: Value,
    /// What was done, under which key.
    pub(super) effects: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
    /// The questions, each time they were asked.
    pub(super) asked: Vec<String>,
    pub(super) died: bool,
    pub(super) schedule: String,
    pub(super) time: Duration,
}

impl Ended {
    pub(super) fn names(&self) -> Vec<&str> {
        self.effects.iter().map(|(what, _)| &**what).collect()
    }

    pub(super) fn text(&self) -> &str {
        self.reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no result: {self:#?}"))
    }

    pub(super) fn reason(&self) -> &str {
        self.reply["error"]["data"]["reason"].as_str().unwrap_or_default()
    }

    /// Exactly these effects are there, in any order.
    pub(super) fn did(&self, expected: &[&str]) {
        let (mut names, mut expected) = (self.names(), expected.to_vec());
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected, "{self:#?}");
    }

    /// Each effect is there once at most, and each step has one key.
    pub(super) fn did_nothing_twice(&self) {
        let names: BTreeSet<&str> = self.names().into_iter().collect();
        assert_eq!(names.len(), self.effects.len(), "an effect is there twice: {self:#?}");
    }

    /// The call has this result.
    pub(super) fn came_to(&self, text: &str) {
        assert_eq!(self.text(), text, "{self:#?}");
    }
}
