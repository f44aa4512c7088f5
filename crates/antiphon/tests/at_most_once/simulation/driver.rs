//! The client of one random call, and the fleet that serves it.

use super::{
    super::*,
    handler::{FORGETFUL, Ledger, Level, plan, planned},
    process::{Fault, Process, ProcessStore},
    random::Random,
};
use antiphon::server::{Caller, ClaimOptions, TaskOptions};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The lease of a claim: the shortest for steps that may go on for five seconds.
const LEASE: Duration = Duration::from_secs(10);
/// The time for which the client waits for a reply: longer than a claim is waited for, and than the bounded waits of a leg.
const PATIENCE: Duration = Duration::from_secs(15);
/// The deliveries with faults. Those behind them show that the call can end.
const FAULTY: usize = 25;
/// The deliveries in which every call ends.
const MOST: usize = 120;

/// A reply that the client received, or could have received.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) state: Option<String>,
    pub(super) answers: Value,
    pub(super) reply: Value,
}

/// The end of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    /// The server says that the effect of a step is unknown.
    Unknown,
    /// The server says that the handler does not do what it did before.
    Diverged,
    /// The call did not end.
    None(String),
}

/// A server of the fleet.
struct Instance {
    process: Arc<Process>,
    server: Server,
}

/// The driver of one call.
pub(super) struct Driver {
    random: Random,
    pub(super) level: Level,
    pub(super) plan: String,
    pub(super) ledger: Ledger,
    pub(super) received: Vec<Received>,
    pub(super) end: End,
    /// True if a process died or paused, or the store's clock was changed.
    pub(super) had_fault: bool,
    without_store: bool,
    store: Arc<dyn CallStore>,
    hand: ManualStoreClock,
    fleet: Vec<Instance>,
    deliveries: usize,
}

impl Driver {
    pub(super) fn new(mut random: Random, without_store: bool) -> Self {
        // The store's clock goes with the runtime's, and the hand adds to it.
        let (begin, hand) = (Instant::now(), StoreClock::manual(Micros::new(0)).1);
        let added = hand.clone();
        let clock = StoreClock::from_fn(move || {
            Micros::new(1_800_000_000_000_000 + added.now().get()).after(begin.elapsed())
        });
        let level = random.one_of(&Level::ALL);
        let mut driver = Self {
            level,
            plan: plan(&mut random, level != Level::SingleUse && !without_store),
            random,
            ledger: Ledger::default(),
            received: Vec::new(),
            end: End::None("not begun".to_owned()),
            had_fault: false,
            without_store,
            store: Arc::new(MemoryStore::new().clock(clock)),
            hand,
            fleet: Vec::new(),
            deliveries: 0,
        };
        for _ in 0..3 {
            let instance = driver.start();
            driver.fleet.push(instance);
        }
        driver
    }

    /// Starts a process, which may have a fault later.
    fn start(&mut self) -> Instance {
        let fault = match self.random.below(10) {
            _ if self.deliveries >= FAULTY => Fault::None,
            0..4 => Fault::Dies,
            4..7 => Fault::Pauses(LEASE.mul_f64(0.3 + self.random.below(20) as f64 / 10.0)),
            _ => Fault::None,
        };
        let at = self.random.below(30);
        let process = Process::new(fault, at);
        let tool = planned(self.plan.clone(), self.level, self.ledger.clone(), Arc::clone(&process));
        let builder =
            Server::builder("shop", "1").replay_check(ReplayCheck::Off).tool(tool).keys(common::ring(7));
        let builder = if self.without_store {
            builder
        } else {
            let store = ProcessStore { process: Arc::clone(&process), store: Arc::clone(&self.store) };
            let builder = builder
                .claim_options(ClaimOptions::default().lease(LEASE).wait_timeout(Duration::from_secs(5)))
                .task_options(TaskOptions::default().lease(LEASE))
                .store(Arc::new(store));
            if self.level == Level::SingleUse { builder.single_use(true) } else { builder.write_ahead(true) }
        };
        Instance { process, server: builder.build().unwrap() }
    }

    /// Runs the call to its end.
    pub(super) async fn run(&mut self) {
        let (mut state, mut answers) = (None::<String>, Value::Null);
        while self.deliveries < MOST {
            self.deliveries += 1;
            self.change_clock();
            let reply = match self.random.below(100) {
                _ if self.deliveries >= FAULTY => self.deliver(&state, &answers).await,
                0..15 => self.deliver_twice(&state, &answers).await,
                15..25 => {
                    self.deliver_earlier().await;
                    self.deliver(&state, &answers).await
                }
                _ => self.deliver(&state, &answers).await,
            };
            self.replace_dead().await;
            let Some(reply) = reply else { continue };
            match Reaction::of(&reply) {
                Reaction::Asked => {
                    state = reply["result"]["requestState"].as_str().map(str::to_owned);
                    answers = if self.plan == FORGETFUL { declines(&reply) } else { answers_to(&reply, "a") };
                }
                Reaction::Task(id) => return self.end = self.follow(&id).await,
                Reaction::Complete => return self.end = End::Complete,
                Reaction::Unknown => return self.end = End::Unknown,
                Reaction::Diverged => return self.end = End::Diverged,
                Reaction::Again => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    self.end = End::None(reply.to_string());
                }
                // Somebody else answered first: the call goes on with those answers.
                Reaction::Used => answers = self.other_answers(&state, &answers),
                Reaction::Other => return self.end = End::None(reply.to_string()),
            }
        }
    }

    /// Follows a task to its end, and answers its questions.
    async fn follow(&mut self, id: &str) -> End {
        let mut last = Value::Null;
        for _ in 0..10 * MOST {
            self.deliveries += 1;
            self.change_clock();
            tokio::time::sleep(Duration::from_millis(300)).await;
            let Some(reply) = self.request("tasks/get", json!({ "taskId": id })).await else { continue };
            let task = &reply["result"];
            match (task["status"].as_str(), task["error"]["data"]["reason"].as_str()) {
                (Some("completed"), _) => return End::Complete,
                (_, Some("outcome_unknown")) => return End::Unknown,
                (_, Some("flow_diverged")) => return End::Diverged,
                (Some("failed"), _) => break,
                _ => {}
            }
            let answers = answers_to(&reply, "a");
            if answers.is_object() {
                self.request("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
            }
            last = reply;
        }
        End::None(last.to_string())
    }

    /// Sends another request to one instance. Returns `None` if no reply came in time.
    async fn request(&mut self, method: &str, params: Value) -> Option<Value> {
        let at = self.random.below(self.fleet.len());
        let reply = timeout(PATIENCE, send_request(&self.fleet[at].server, method, params)).await.ok();
        self.replace_dead().await;
        reply
    }

    /// Sends a leg to one instance. Returns `None` if no reply came in time.
    async fn deliver(&mut self, state: &Option<String>, answers: &Value) -> Option<Value> {
        let at = self.random.below(self.fleet.len());
        let reply = timeout(PATIENCE, send(&self.fleet[at].server, state, answers)).await.ok();
        self.note(state, answers, reply.as_ref());
        reply
    }

    /// Sends a leg to two instances at once, to one of them with other answers perhaps.
    async fn deliver_twice(&mut self, state: &Option<String>, answers: &Value) -> Option<Value> {
        let (one, two) = (self.random.below(self.fleet.len()), self.random.below(self.fleet.len()));
        let others = if self.random.percent(50) { other(answers) } else { answers.clone() };
        let (first, second) = tokio::join!(
            timeout(PATIENCE, send(&self.fleet[one].server, state, answers)),
            timeout(PATIENCE, send(&self.fleet[two].server, state, &others)),
        );
        let (first, second) = (first.ok(), second.ok());
        self.note(state, answers, first.as_ref());
        self.note(state, &others, second.as_ref());
        first
    }

    /// Sends an earlier leg again, as it was or with other answers. Its reply is for the rules alone.
    async fn deliver_earlier(&mut self) {
        if self.received.is_empty() {
            return;
        }
        let at = self.random.below(self.received.len());
        let Received { state, answers, .. } = self.received[at].clone();
        // A first request that is sent again begins another call.
        if state.is_some() {
            let answers = if self.random.percent(30) { other(&answers) } else { answers };
            self.deliver(&state, &answers).await;
        }
    }

    fn note(&mut self, state: &Option<String>, answers: &Value, reply: Option<&Value>) {
        if let Some(reply) = reply {
            self.received.push(Received {
                state: state.clone(),
                answers: answers.clone(),
                reply: reply.clone(),
            });
        }
    }

    /// Returns the answers that were accepted for this state instead of these, or these if nobody knows.
    fn other_answers(&self, state: &Option<String>, answers: &Value) -> Value {
        let known = self.received.iter().find(|received| {
            received.state == *state && received.reply["result"].is_object() && received.answers != *answers
        });
        known.map_or_else(|| other(answers), |received| received.answers.clone())
    }

    fn change_clock(&mut self) {
        if self.deliveries < FAULTY && self.random.percent(5) {
            self.had_fault = true;
            let by = Duration::from_secs(1 + self.random.below(20) as u64);
            if self.random.percent(50) { self.hand.advance(by) } else { self.hand.turn_back(by) }
        }
    }

    /// Starts a new process for each that died, and for all behind the deliveries with faults.
    async fn replace_dead(&mut self) {
        for at in 0..self.fleet.len() {
            let process = &self.fleet[at].process;
            self.had_fault |= process.had_fault();
            if process.is_dead() || self.deliveries == FAULTY {
                self.fleet[at] = self.start();
            }
        }
    }
}

/// Sends a leg.
async fn send(server: &Server, state: &Option<String>, answers: &Value) -> Value {
    let mut params = json!({"name": "t", "arguments": {}});
    if let Some(state) = state {
        params["requestState"] = state.as_str().into();
    }
    if !answers.is_null() {
        params["inputResponses"] = answers.clone();
    }
    send_request(server, "tools/call", params).await
}

/// Sends a request of a client that follows tasks.
async fn send_request(server: &Server, method: &str, mut params: Value) -> Value {
    let capabilities =
        json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    params["_meta"] =
        common::with(&common::meta(), json!({"io.modelcontextprotocol/clientCapabilities": capabilities}));
    let message = common::request(1, method, params).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.expect("a request has a reply");
    serde_json::from_slice(&reply.body).expect("a reply is JSON")
}

/// Returns an accepted answer to each question of a round.
fn answers_to(reply: &Value, name: &str) -> Value {
    let asked = reply["result"]["inputRequests"].as_object();
    let answers: serde_json::Map<String, Value> = asked
        .into_iter()
        .flatten()
        .map(|(key, _)| (key.clone(), accept(json!({ "name": format!("{name}({key})") }))))
        .collect();
    if answers.is_empty() { Value::Null } else { answers.into() }
}

/// Declines each question of a round.
fn declines(reply: &Value) -> Value {
    let mut answers = answers_to(reply, "a");
    for answer in answers.as_object_mut().into_iter().flat_map(|answers| answers.values_mut()) {
        *answer = json!({ "action": "decline" });
    }
    answers
}

/// Returns other answers to the same questions, or the same if there is no question.
fn other(answers: &Value) -> Value {
    let mut changed = answers.clone();
    for answer in changed.as_object_mut().into_iter().flat_map(|answers| answers.values_mut()) {
        let Some(name) = answer["content"]["name"].as_str() else { continue };
        let name = match name.strip_prefix("other ") {
            Some(name) => name.to_owned(),
            None => format!("other {name}"),
        };
        answer["content"]["name"] = name.into();
    }
    changed
}

/// The client's next action after a reply.
enum Reaction {
    Asked,
    Complete,
    Task(String),
    Unknown,
    Diverged,
    Used,
    Again,
    Other,
}

impl Reaction {
    fn of(reply: &Value) -> Self {
        match (reply["result"]["resultType"].as_str(), reason(reply)) {
            (Some("input_required"), _) => Self::Asked,
            (Some("complete"), _) if reply["result"]["isError"] != true => Self::Complete,
            (Some("task"), _) => {
                Self::Task(reply["result"]["taskId"].as_str().unwrap_or_default().to_owned())
            }
            (_, "outcome_unknown") => Self::Unknown,
            (_, "flow_diverged") => Self::Diverged,
            (_, "used") => Self::Used,
            (_, "in_flight") => Self::Again,
            _ => Self::Other,
        }
    }
}
