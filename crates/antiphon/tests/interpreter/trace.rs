//! The log of a handler while it runs: in one request, and in all requests of a call.

use crate::{mortal::Process, stop::Stop, tree::Program, user::UserAnswer};
use antiphon::server::Ctx;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

/// More polls than any call needs: a call with more of them spins.
const MOST_POLLS: u64 = 10_000;

/// The winner of a race, or the error that ended a `try_join`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BranchResult {
    Winner(usize),
    Tried(Option<Stop>),
    /// A panic was caught, or none came.
    Unwound(bool),
}

/// One question that a branch has awaited: its words in this request, and the answer.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) text: String,
    pub(crate) said: UserAnswer,
    /// The questions that the branch had awaited before.
    pub(crate) before: Chain,
}

/// All questions that a branch has awaited so far, by their paths: what the next step rests on.
pub(crate) type Chain = Arc<BTreeMap<String, Link>>;

/// One run of the body of a step.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) path: String,
    /// The idempotency key.
    pub(crate) key: String,
    pub(crate) chain: Chain,
    pub(crate) end: RunEnd,
    pub(crate) crash: Crash,
}

/// What happens to a step that a crash has interrupted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Crash {
    /// It may have its effect again.
    Reruns,
    Reconciled,
    /// Its outcome is unknown.
    Unresolved,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RunEnd {
    /// The run goes on, or was dropped.
    None,
    /// The attempt failed, as the program says.
    NoOutcome,
    Outcome,
}

/// The whole call.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Violations of a rule.
    wrong: Mutex<Vec<String>>,
    /// The number of times that the body of each step was entered.
    attempts: Mutex<BTreeMap<String, u32>>,
    /// Places at which the handler has panicked.
    panics: Mutex<BTreeSet<String>>,
    polls: AtomicU64,
    /// With a store: the steps that had their effect, those that the handler has received, and what came first.
    effects: Mutex<BTreeSet<String>>,
    received: Mutex<BTreeSet<String>>,
    decided: Mutex<BTreeMap<String, BranchResult>>,
    /// Requests, and moves in a session.
    pub(crate) requests: AtomicU64,
    /// An answer was sent before its question was seen, and the task had just asked it.
    pub(crate) is_foretold: AtomicBool,
}

/// One request.
#[derive(Debug, Default)]
pub(crate) struct LegTrace {
    pub(crate) decided: Mutex<BTreeMap<String, BranchResult>>,
    /// The questions that were answered.
    pub(crate) answered: Mutex<BTreeMap<String, Link>>,
    pub(crate) runs: Mutex<Vec<Run>>,
    /// The version of the world that questions show.
    pub(crate) world: AtomicU8,
    /// The request was dropped or cancelled.
    pub(crate) gone: AtomicBool,
    pub(crate) panicked: AtomicBool,
    /// A copy of its request begins another call, which may decide its races in another way.
    pub(crate) begins_a_call: AtomicBool,
}

/// The version and the world that a handler reads when it begins.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) program: Arc<Program>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) leg: Arc<LegTrace>,
    /// A question says its path always: on a session nothing else does.
    pub(crate) says_path: bool,
    /// The process that runs it, if its calls are in a store.
    pub(crate) process: Option<Arc<Process>>,
    /// An interrupted step that is not reconciled runs again.
    pub(crate) reruns: bool,
}

impl Trace {
    pub(crate) fn wrong(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
    }

    /// Nothing was wrong so far.
    pub(crate) fn check(&self) -> Result<(), String> {
        let wrong = self.wrong.lock().unwrap();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }

    /// Counts an entry into the body of a step, from 1.
    pub(crate) fn attempt(&self, path: &str) -> u32 {
        let mut attempts = self.attempts.lock().unwrap();
        let times = attempts.entry(path.to_owned()).or_default();
        *times += 1;
        *times
    }

    /// Returns `true` if the handler comes to this place for the first time.
    pub(crate) fn panics_at(&self, path: String) -> bool {
        self.panics.lock().unwrap().insert(path)
    }

    /// Counts a poll. Whether there were too many.
    fn spins(&self) -> bool {
        let spins = self.polls.fetch_add(1, Ordering::Relaxed) == MOST_POLLS;
        if spins {
            self.wrong(format!("it spins: {MOST_POLLS} polls"));
        }
        spins || self.polls.load(Ordering::Relaxed) > MOST_POLLS
    }

    /// Notes the effect of a step, or finds it.
    pub(crate) fn has_effect(&self, path: &str) {
        self.effects.lock().unwrap().insert(path.to_owned());
    }

    pub(crate) fn had_effect(&self, path: &str) -> bool {
        self.effects.lock().unwrap().contains(path)
    }

    /// Notes that the handler has the result of a step, or finds that it had it.
    pub(crate) fn receives(&self, path: &str) {
        self.received.lock().unwrap().insert(path.to_owned());
    }

    pub(crate) fn has_received(&self, path: &str) -> bool {
        self.received.lock().unwrap().contains(path)
    }

    /// Checks that the same came first in each run of a call with a store.
    pub(crate) fn decides(&self, path: &str, result: BranchResult) {
        let before = self.decided.lock().unwrap().insert(path.to_owned(), result);
        if let Some(before) = before.filter(|before| *before != result) {
            self.wrong(format!("`{path}` was decided as {before:?}, and now as {result:?}"));
        }
    }

    /// Returns the number of times that bodies of steps were entered.
    pub(crate) fn attempts(&self) -> u64 {
        self.attempts.lock().unwrap().values().copied().map(u64::from).sum()
    }

    pub(crate) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }
}

thread_local! {
    /// The request that this thread polls.
    static SCENE: RefCell<Option<Arc<Scene>>> = const { RefCell::new(None) };
    /// All requests of the call, by their numbers.
    static SCENES: RefCell<Vec<Arc<Scene>>> = const { RefCell::new(Vec::new()) };
}

impl Scene {
    /// Has handlers find the scene by its number, which is the name of the client.
    pub(crate) fn publish(self) -> (usize, Arc<Self>) {
        let scene = Arc::new(self);
        let number = SCENES.with_borrow_mut(|scenes| {
            scenes.push(Arc::clone(&scene));
            scenes.len() - 1
        });
        (number, scene)
    }

    /// Forgets those of the case before.
    pub(crate) fn forget_all() {
        SCENES.take();
    }

    /// The scene of a handler, or of a resolver, wherever it is polled.
    pub(crate) fn of(ctx: &Ctx) -> Arc<Self> {
        let client = ctx.client_info().expect("a client has a name");
        let number: usize = client.name.parse().expect("its name is a number");
        SCENES.with_borrow(|scenes| Arc::clone(&scenes[number]))
    }

    /// The scene of the request that this thread polls.
    pub(crate) fn here() -> Arc<Self> {
        SCENE.with_borrow(Clone::clone).expect("a request is polled on a scene")
    }
}

/// Polls a request on its scene; `None` if it spins.
pub(crate) async fn on_scene<F: Future>(scene: Arc<Scene>, request: F) -> Option<F::Output> {
    let mut request = pin!(request);
    std::future::poll_fn(|cx| poll_on_scene(&scene, request.as_mut(), cx)).await
}

fn poll_on_scene<F: Future>(
    scene: &Arc<Scene>,
    request: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Poll<Option<F::Output>> {
    if scene.trace.spins() {
        return Poll::Ready(None);
    }
    let outer = SCENE.replace(Some(Arc::clone(scene)));
    let polled = request.poll(cx);
    SCENE.set(outer);
    polled.map(Some)
}

/// Counts the polls of a handler; `None` if it spins.
pub(crate) async fn counted<F: Future>(trace: &Trace, handler: F) -> Option<F::Output> {
    let mut handler = pin!(handler);
    std::future::poll_fn(|cx| {
        if trace.spins() {
            return Poll::Ready(None);
        }
        handler.as_mut().poll(cx).map(Some)
    })
    .await
}
