//! The instances that all programs share. Each has a runtime of its own, and is killed with it: what it awaits is dropped.

use crate::{
    branch::Env,
    case::Case,
    handler::run as run_program,
    mortal::{Death, Process},
    postgres_server,
    trace::{LegTrace, Scene, Trace, counted},
    tree::Program,
    user::in_words,
};
use antiphon::{
    seal::{KeyRing, SecretKey},
    server::{
        Caller, ClaimOptions, Ctx, Limits, Server, TaskMode, TaskOptions, Tool, operations::ReplayCheck,
    },
    store::{PostgresOptions, PostgresStore},
    wire::AskSupport,
};
use antiphon_dbos::{DbosOptions, DbosTasks};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};
use tokio::{
    runtime::Runtime,
    task::JoinHandle,
    time::{sleep, timeout},
};

/// The lease of a call and of a task: longer than this machine stands still.
const LEASE: Duration = Duration::from_secs(4);
/// The time between two deaths.
const BETWEEN_DEATHS: Duration = Duration::from_secs(2);
/// The time in which each request has its reply.
const PATIENCE: Duration = Duration::from_secs(60);
const INSTANCES: usize = 3;

/// The processes that run now.
static SHARED: RwLock<Option<Arc<Shared>>> = RwLock::new(None);

struct Shared {
    postgres: postgres_server::Server,
    /// The instance in each place.
    places: Vec<Mutex<Option<Instance>>>,
    programs: Arc<Mutex<HashMap<u64, Running>>>,
    deaths: AtomicUsize,
    /// A program has asked for the death of the instance in this place.
    dies: Mutex<Option<usize>>,
}

struct Instance {
    process: Arc<Process>,
    server: Server,
    runtime: Runtime,
}

/// A program under way.
#[derive(Clone)]
struct Running {
    case: Case,
    trace: Arc<Trace>,
    legs: Arc<Mutex<Vec<Arc<LegTrace>>>>,
}

/// Runs what needs the fleet. Returns the number of instances that were killed meanwhile.
pub(crate) fn run(work: impl FnOnce()) -> usize {
    let shared = Arc::new(Shared {
        postgres: postgres_server::Server::start("dbos-programs"),
        places: (0..INSTANCES).map(|_| Mutex::default()).collect(),
        programs: Arc::default(),
        deaths: AtomicUsize::new(0),
        dies: Mutex::default(),
    });
    for place in &shared.places {
        *place.lock().unwrap() = Some(shared.start());
    }
    *SHARED.write().unwrap() = Some(Arc::clone(&shared));
    thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let shared = &shared;
        scope.spawn(move || shared.kills(&ended));
        work();
        drop(end);
    });
    *SHARED.write().unwrap() = None;
    for place in &shared.places {
        place.lock().unwrap().take().into_iter().for_each(Instance::die);
    }
    shared.deaths.load(Ordering::Relaxed)
}

impl Instance {
    /// Nothing of the instance runs any longer.
    fn die(self) {
        self.process.die();
        self.runtime.shutdown_background();
    }
}

/// A handler that may borrow its context.
fn lent<F: for<'a> Fn(&'a Ctx, serde_json::Map<String, Value>) -> BoxFuture<'a, String>>(handler: F) -> F {
    handler
}

impl Shared {
    fn start(&self) -> Instance {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let process = Process::new();
        let folder = self.postgres.folder.path("").display().to_string().replace('/', "%2F");
        let url = format!("postgres://postgres@{folder}:5432/postgres");
        let limits = Limits::default()
            .legs(1000)
            .state_only_legs(200)
            .times_asked(100)
            .step_grace(LEASE / 4)
            .handler_timeout(Duration::from_secs(300));
        let server = runtime.block_on(async {
            let settings = self.postgres.url("postgres");
            let store = PostgresStore::connect(&settings, PostgresOptions::default()).await.unwrap();
            let options = DbosOptions::default().lease(LEASE).running(1000).connections(20);
            let tasks = loop {
                // The tables of dbos are looked after while others use them: PostgreSQL may refuse that as a deadlock.
                match DbosTasks::connect(&url, options.clone()).await {
                    Ok(tasks) => break tasks,
                    Err(_) => sleep(Duration::from_millis(100)).await,
                }
            };
            Server::builder("programs", "1")
                .tool(self.tool(false, &process))
                .tool(self.tool(true, &process))
                .keys(KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap())
                .limits(limits)
                .replay_check(ReplayCheck::Off)
                .store(store)
                .claim_options(ClaimOptions::default().lease(LEASE).wait_timeout(Duration::from_secs(1)))
                .task_engine(Arc::new(tasks))
                .task_options(TaskOptions::default())
                .build()
                .unwrap()
        });
        Instance { process, server, runtime }
    }

    /// The tool that runs the program of the number in its arguments: each run of the handler has a log of its own.
    fn tool(&self, reruns: bool, process: &Arc<Process>) -> Tool {
        let (programs, process) = (Arc::clone(&self.programs), Arc::clone(process));
        let handler = lent(move |ctx, arguments| {
            let number = arguments["number"].as_u64().expect("a program has a number");
            let programs = programs.lock().unwrap_or_else(PoisonError::into_inner);
            let running = programs.get(&number).cloned();
            let process = Some(Arc::clone(&process));
            Box::pin(async move {
                // A program that has failed leaves its task behind.
                let Some(Running { case, trace, legs }) = running else {
                    return "a program is gone".to_owned();
                };
                let leg = Arc::<LegTrace>::default();
                legs.lock().unwrap().push(Arc::clone(&leg));
                let program = Arc::clone(&case.program);
                let scene = Arc::new(Scene { program, trace, leg, says_path: false, process, reruns });
                let Program::Awaits(node) = &*scene.program else { return "another tool's".to_owned() };
                let end = counted(&scene.trace, run_program(ctx, node, Env::new(scene.clone()), 0)).await;
                end.map_or_else(|| "it spins".to_owned(), |end| in_words(end.result))
            })
        });
        let schema = json!({"type": "object", "properties": {"number": {"type": "integer"}}});
        let tool = Tool::with_schema(name(reruns), schema, handler);
        tool.needs(AskSupport::FORM).write_ahead(true).rerun_after_crash(reruns).task(TaskMode::Required)
    }

    /// Kills an instance from time to time, one that a program asked for if there is one, and starts another one in its place, until
    /// the work has ended.
    fn kills(&self, ended: &mpsc::Receiver<()>) {
        for turn in 0.. {
            if ended.recv_timeout(BETWEEN_DEATHS) != Err(mpsc::RecvTimeoutError::Timeout) {
                return;
            }
            let place = self.dies.lock().unwrap().take().unwrap_or(turn % INSTANCES);
            if let Some(instance) = self.places[place].lock().unwrap().take() {
                // A step that runs again finds the death counted.
                self.deaths.fetch_add(1, Ordering::Relaxed);
                instance.die();
            }
            let instance = self.start();
            *self.places[place].lock().unwrap() = Some(instance);
        }
    }

    /// Sends a request to the instance in this place, or in the next one that has an instance.
    fn send(&self, place: usize, message: String) -> JoinHandle<Vec<u8>> {
        for place in place.. {
            let place = self.places[place % INSTANCES].lock().unwrap();
            if let Some(Instance { server, runtime, .. }) = &*place {
                let server = server.clone();
                return runtime.spawn(async move {
                    let reply = server.respond(message.as_bytes(), &Caller::default()).await;
                    reply.expect("a request has a reply").body
                });
            }
        }
        unreachable!("one instance at a time is dead")
    }
}

fn name(reruns: bool) -> &'static str {
    if reruns { "awaits_again" } else { "awaits" }
}

/// The fleet as one program sees it.
pub(crate) struct Fleet {
    shared: Arc<Shared>,
    number: u64,
    case: Case,
    pub(crate) trace: Arc<Trace>,
    pub(crate) legs: Arc<Mutex<Vec<Arc<LegTrace>>>>,
    sent: usize,
    /// The deaths since the begin of the program.
    pub(crate) deaths: usize,
    deaths_before: usize,
}

/// A request of a client that hangs up when the value is dropped.
struct Request(JoinHandle<Vec<u8>>);

impl Drop for Request {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Fleet {
    pub(crate) fn new(case: &Case, trace: Arc<Trace>) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let shared = SHARED.read().unwrap().clone().expect("the fleet runs");
        let running = Running { case: case.clone(), trace: Arc::clone(&trace), legs: Arc::default() };
        let legs = Arc::clone(&running.legs);
        shared.programs.lock().unwrap().insert(number as u64, running);
        let deaths_before = shared.deaths.load(Ordering::Relaxed);
        let (number, sent) = (number as u64, number);
        Self { shared, number, case: case.clone(), trace, legs, sent, deaths: 0, deaths_before }
    }

    /// Has the instance that receives the next request die soon.
    pub(crate) fn dies(&self, _: Death) {
        *self.shared.dies.lock().unwrap() = Some(self.sent % INSTANCES);
    }

    /// Sends a request to the next instance. The future is `None` if the instance dies, and an error if no reply comes.
    pub(crate) fn request(
        &mut self,
        method: &'static str,
        params: &Value,
    ) -> impl Future<Output = Option<Result<Value, String>>> + use<> {
        self.deaths = self.shared.deaths.load(Ordering::Relaxed) - self.deaths_before;
        self.trace.requests.fetch_add(1, Ordering::Relaxed);
        self.sent += 1;
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        if method == "tools/call" {
            params["name"] = name(self.case.reruns).into();
            params["arguments"] = json!({"number": self.number});
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let (shared, place) = (Arc::clone(&self.shared), self.sent);
        async move {
            let mut request = Request(shared.send(place, message));
            match timeout(PATIENCE, &mut request.0).await {
                Err(_) => Some(Err(format!("`{method}` has no reply in {PATIENCE:?}"))),
                Ok(Ok(reply)) => Some(Ok(serde_json::from_slice(&reply).expect("a reply is JSON"))),
                Ok(Err(end)) if end.is_cancelled() => None,
                Ok(Err(end)) => Some(Err(format!("a request panics: {end}"))),
            }
        }
    }

    /// Sends a request until it has a reply: not while another run is in flight, nor while the database is too busy, nor if a step fails
    /// for now.
    pub(crate) async fn settled(&mut self, method: &'static str, params: &Value) -> Result<Value, String> {
        for _ in 0..60 {
            let reply = self.request(method, params).await;
            self.deaths = self.shared.deaths.load(Ordering::Relaxed) - self.deaths_before;
            let Some(reply) = reply else {
                // Some of the next requests find the lease of the dead instance, some do not.
                sleep(LEASE.mul_f64((self.sent % 5) as f64 / 3.0)).await;
                continue;
            };
            let reply = reply?;
            self.trace.check()?;
            let error = &reply["error"];
            match error["data"]["reason"].as_str() {
                Some("in_flight" | "store") => {}
                Some("step_failed") if self.case.program.retries() => {}
                _ => return Ok(reply),
            }
            sleep(Duration::from_secs(1)).await;
        }
        Err("the request stays in flight".to_owned())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.shared.programs.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}
