//! The processes that serve a case with a store: each may die at an operation of the store, and another one takes its place.

use crate::{
    branch::Env,
    case::{Carrier, Case},
    handler::run,
    mortal::{Death, MortalStore, Process, StoreTime, block_on},
    trace::{LegTrace, Scene, Trace, counted},
    tree::Program,
    user::in_words,
};
use antiphon::{
    seal::{KeyRing, SecretKey},
    server::{
        Caller, ClaimOptions, Ctx, Limits, NoArguments, Server, TaskMode, TaskOptions, Tool,
        operations::ReplayCheck,
    },
    store::{CallStore, MemoryStore, SqliteOptions, SqliteStore},
    wire::AskSupport,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;

/// The lease of a claim. A step without its client has a second.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// The time in which each request has its reply. The time of a handler is much longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A handler that may borrow its context.
fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, String>>(handler: F) -> F {
    handler
}

/// A process, and what it serves.
struct Instance {
    process: Arc<Process>,
    server: Server,
}

/// The processes, their store, and all runs of the handler.
pub(crate) struct Fleet {
    case: Case,
    pub(crate) trace: Arc<Trace>,
    /// The runs of the handler, in the order in which they began.
    pub(crate) legs: Arc<Mutex<Vec<Arc<LegTrace>>>>,
    store: Arc<dyn CallStore>,
    time: StoreTime,
    instances: Vec<Instance>,
    /// Processes that have died: nothing of theirs is dropped before the end.
    dead: Vec<Instance>,
    sent: usize,
    pub(crate) deaths: usize,
    _folder: Option<Folder>,
}

/// The folder of a file, which is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("antiphon-programs-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Fleet {
    pub(crate) fn new(case: &Case, trace: Arc<Trace>) -> Self {
        let time = StoreTime::begin();
        let folder = matches!(case.carrier, Carrier::Sqlite | Carrier::TaskSqlite).then(Folder::new);
        let store: Arc<dyn CallStore> = match &folder {
            None => Arc::new(MemoryStore::new().clock(time.clock())),
            Some(folder) => {
                let options = SqliteOptions::default().clock(time.clock());
                Arc::new(block_on(SqliteStore::open(folder.0.join("calls.db"), options)).unwrap())
            }
        };
        let mut fleet = Self {
            case: case.clone(),
            trace,
            legs: Arc::default(),
            store,
            time,
            instances: Vec::new(),
            dead: Vec::new(),
            sent: 0,
            deaths: 0,
            _folder: folder,
        };
        for _ in 0..2 {
            let instance = fleet.start();
            fleet.instances.push(instance);
        }
        fleet
    }

    fn start(&self) -> Instance {
        let process = Process::new();
        process.pauses(self.case.seed.wrapping_add(self.dead.len() as u64));
        let store = MortalStore {
            process: Arc::clone(&process),
            store: Arc::clone(&self.store),
            time: self.time.clone(),
        };
        let limits = Limits::default()
            .legs(1000)
            .state_only_legs(200)
            .times_asked(100)
            .step_grace(Duration::from_secs(1))
            .handler_timeout(Duration::from_secs(300));
        let server = Server::builder("programs", "1")
            .tool(self.tool(&process))
            .keys(KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap())
            .limits(limits)
            .replay_check(ReplayCheck::Off)
            .store(store)
            .single_instance(true)
            .claim_options(ClaimOptions::default().lease(LEASE).wait_timeout(Duration::from_secs(1)))
            .task_options(TaskOptions::default().lease(LEASE))
            .build()
            .unwrap();
        Instance { process, server }
    }

    /// The tool `awaits` in a process: each run of the handler has a log of its own.
    fn tool(&self, process: &Arc<Process>) -> Tool {
        let (program, trace, legs) =
            (Arc::clone(&self.case.program), Arc::clone(&self.trace), Arc::clone(&self.legs));
        let (process, reruns) = (Arc::clone(process), self.case.reruns);
        let is_task = self.case.carrier.is_task();
        let handler = lent(move |ctx, _| {
            let leg = Arc::<LegTrace>::default();
            leg.begins_a_call.store(ctx.leg() == 1 && !is_task, Ordering::Relaxed);
            legs.lock().unwrap().push(Arc::clone(&leg));
            let (program, trace) = (Arc::clone(&program), Arc::clone(&trace));
            let process = Some(Arc::clone(&process));
            Box::pin(async move {
                let scene = Arc::new(Scene { program, trace, leg, says_path: false, process, reruns });
                let Program::Awaits(node) = &*scene.program else { return "another tool's".to_owned() };
                let end = counted(&scene.trace, run(ctx, node, Env::new(scene.clone()), 0)).await;
                end.map_or_else(|| "it spins".to_owned(), |end| in_words(end.result))
            })
        });
        let tool = Tool::new("awaits", handler);
        let mode = match self.case.carrier {
            Carrier::TaskMemory | Carrier::TaskSqlite => TaskMode::Required,
            _ => TaskMode::Optional,
        };
        tool.needs(AskSupport::FORM).write_ahead(true).rerun_after_crash(self.case.reruns).task(mode)
    }

    /// Has the process that receives the next request die at an operation.
    pub(crate) fn dies(&self, death: Death) {
        self.next().process.dies(Some(death));
    }

    fn next(&self) -> &Instance {
        &self.instances[self.sent % self.instances.len()]
    }

    /// Puts a new process in the place of each one that is dead.
    fn replace(&mut self) {
        for at in 0..self.instances.len() {
            if self.instances[at].process.is_dead() {
                self.deaths += 1;
                let instance = self.start();
                let dead = std::mem::replace(&mut self.instances[at], instance);
                self.dead.push(dead);
            }
        }
    }

    /// Sends a request to the next process. The future is `None` if the process dies, and an error if no reply comes.
    pub(crate) fn request(
        &mut self,
        method: &'static str,
        params: &Value,
    ) -> impl Future<Output = Option<Result<Value, String>>> + use<> {
        self.replace();
        self.trace.requests.fetch_add(1, Ordering::Relaxed);
        let Instance { process, server } = self.next();
        let (process, server) = (Arc::clone(process), server.clone());
        self.sent += 1;
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        async move {
            let caller = Caller::default();
            tokio::select! {
                biased;
                () = process.died() => None,
                reply = timeout(PATIENCE, server.respond(message.as_bytes(), &caller)) => Some(match reply {
                    Err(_) => Err(format!("`{method}` has no reply in {PATIENCE:?}: {message}")),
                    Ok(reply) => {
                        let body = reply.expect("a request has a reply").body;
                        Ok(serde_json::from_slice(&body).expect("a reply is JSON"))
                    }
                }),
            }
        }
    }

    /// Sends a request until it has a reply: not while another run is in flight, and not if a step fails for now.
    pub(crate) async fn settled(&mut self, method: &'static str, params: &Value) -> Result<Value, String> {
        for _ in 0..60 {
            let Some(reply) = self.request(method, params).await else {
                // Some of the next requests find the lease of the dead process, some do not.
                tokio::time::sleep(LEASE.mul_f64((self.sent % 5) as f64 / 3.0)).await;
                continue;
            };
            let reply = reply?;
            self.trace.check()?;
            let error = &reply["error"];
            let message = error["message"].as_str().unwrap_or_default();
            match error["data"]["reason"].as_str() {
                Some("in_flight") => {}
                Some("step_failed") if self.case.program.retries() => {}
                None if message.starts_with("Internal error") && self.case.program.fails() => {}
                _ => return Ok(reply),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Err("the request stays in flight".to_owned())
    }
}
