//! A person with a task: creates the task, stores its handle, and comes back to answer or to cancel.

use super::{
    answers::{EARLY, key_before, path_of},
    history::TaskHistory,
    plan::{plan, questions},
    record::is_temporary,
    request::{Answer, Kind, TaskRequest},
};
use crate::tools::TaskTool;
use crate::{fleet::Fleet, history::person_of, proxy::Proxy, random::Random};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

/// The time after which a person ends a request without a reply, and sends it again.
const IMPATIENT: Duration = Duration::from_millis(2500);
/// The time between two polls, and the random part of it, in milliseconds.
const POLL: Duration = Duration::from_millis(60);
const POLL_MORE: u64 = 120;

/// The script of all people.
#[derive(Debug)]
pub(crate) struct TaskScript {
    pub(crate) seed: u64,
    pub(crate) proxy: Arc<Proxy<TaskRequest>>,
    pub(crate) history: Arc<TaskHistory>,
    pub(crate) fleet: Arc<Fleet>,
    /// The time after which a person gives a task up.
    pub(crate) limit: Duration,
    /// The longest time for which a person thinks about a question, in milliseconds.
    pub(crate) thinks: u64,
}

/// The handle of a task, which a person stores as text.
#[derive(Debug, Deserialize, Serialize)]
struct Handle {
    call: String,
    task: String,
}

/// The moment at which a person cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancels {
    Never,
    AtOnce,
    /// Cancels in the place of the answer to the question with this number.
    Question(usize),
    /// Cancels at some time, and answers all the same.
    Later,
}

/// A visit of a person to a task.
struct Visit<'a> {
    script: &'a TaskScript,
    handle: Handle,
    begin: Instant,
    random: Random,
    questions: Vec<String>,
    cancels: Cancels,
    /// The keys that need no answer any more.
    answered: BTreeSet<String>,
    has_cancelled: bool,
    is_early: bool,
}

impl TaskScript {
    /// Creates the task of this number, and goes on with it to its end.
    pub(crate) async fn task(&self, number: u64) {
        let mut random = Random::new(self.seed, "task", number);
        let tool = TaskTool::ALL[usize::try_from(number % 4).unwrap_or_default()];
        let plan = plan(&mut random, tool);
        let begin = Instant::now();
        let Some(handle) = self.create(number, tool, plan, begin, &mut random).await else { return };
        // All that is left of the task at its owner.
        let stored = serde_json::to_string(&handle).unwrap_or_default();
        if random.percent(15) {
            tokio::time::sleep(Duration::from_secs(1) + random.millis(4000)).await;
        }
        let Ok(handle) = serde_json::from_str(&stored) else { return };
        let cancels = match random.below(100) {
            0..5 => Cancels::AtOnce,
            5..10 => Cancels::Question(0),
            10..15 => Cancels::Question(1),
            15..20 => Cancels::Later,
            _ => Cancels::Never,
        };
        let questions = questions(plan);
        // Only these plans have one question after the other.
        let is_early = tool != TaskTool::Promoted && !plan.contains(['b', 'o']) && random.percent(15);
        let visit = Visit {
            script: self,
            handle,
            begin,
            random,
            questions,
            cancels,
            answered: BTreeSet::new(),
            has_cancelled: false,
            is_early,
        };
        visit.run().await;
    }

    /// Calls the tool until a task is there. Each attempt is another call, as no reply says whether there is a task.
    async fn create(
        &self,
        number: u64,
        tool: TaskTool,
        plan: &'static str,
        begin: Instant,
        random: &mut Random,
    ) -> Option<Handle> {
        for attempt in 0.. {
            let call = format!("t{number}.{attempt}");
            self.history.begin(&call, tool, plan);
            if let Some(task) = self.promoted(&call, tool, plan, begin, random).await {
                if random.percent(4) {
                    self.kill_acknowledging(&call);
                }
                return Some(Handle { call, task });
            }
            self.history.ended(&call, true);
            if begin.elapsed() > self.limit {
                return None;
            }
            pause(random).await;
        }
        None
    }

    /// Sends the legs of a call until it is a task. The first leg is sent once.
    async fn promoted(
        &self,
        call: &str,
        tool: TaskTool,
        plan: &'static str,
        begin: Instant,
        random: &mut Random,
    ) -> Option<String> {
        let (mut state, mut answers) = (None, Vec::new());
        loop {
            let is_first = state.is_none();
            let kind = Kind::Leg { tool, plan, state, answers };
            let request = self.request(call, kind, !is_first);
            let reply = if is_first {
                self.send(&request).await?
            } else {
                self.settle(&request, begin, random).await?
            };
            let result = reply.get("result")?;
            if let Some(task) = result["taskId"].as_str() {
                return Some(task.to_owned());
            }
            state = Some(result["requestState"].as_str()?.to_owned());
            let keys = result["inputRequests"].as_object().map(serde_json::Map::keys).into_iter().flatten();
            answers = keys.map(|key| Answer::of("first", key)).collect();
        }
    }

    fn request(&self, call: &str, kind: Kind, may_repeat: bool) -> TaskRequest {
        TaskRequest { call: call.to_owned(), person: person_of(call), kind, may_repeat }
    }

    /// Sends a request once.
    async fn send(&self, request: &TaskRequest) -> Option<Value> {
        tokio::time::timeout(IMPATIENT, self.proxy.send(request)).await.ok()?.ok()
    }

    /// Sends a request until it has a reply that is not temporary.
    async fn settle(&self, request: &TaskRequest, begin: Instant, random: &mut Random) -> Option<Value> {
        while begin.elapsed() < self.limit {
            match self.send(request).await {
                Some(reply) if !is_temporary(&reply) => return Some(reply),
                _ => pause(random).await,
            }
        }
        None
    }

    /// Kills the process that has acknowledged the last request: what it acknowledged is there all the same.
    fn kill_acknowledging(&self, call: &str) {
        let process = self.history.with(call, |record| record.acknowledged_by).flatten();
        let (Some(process), fleet) = (process, Arc::clone(&self.fleet)) else { return };
        tokio::spawn(async move { fleet.kill(process).await });
    }
}

impl Visit<'_> {
    async fn run(mut self) {
        if self.cancels == Cancels::AtOnce {
            self.cancel().await;
        }
        let cancels_at = Instant::now() + self.random.millis(1500);
        while self.begin.elapsed() < self.script.limit {
            if self.cancels == Cancels::Later && !self.has_cancelled && Instant::now() >= cancels_at {
                self.cancel().await;
            }
            let Some(task) = self.get().await else {
                pause(&mut self.random).await;
                continue;
            };
            if ["completed", "failed", "cancelled"].contains(&task["status"].as_str().unwrap_or_default()) {
                self.after_end().await;
                break;
            }
            if self.random.percent(3) {
                self.stranger();
            }
            let keys = task["inputRequests"].as_object().map(serde_json::Map::keys).into_iter().flatten();
            let open: Vec<String> = keys.filter(|key| !self.answered.contains(*key)).cloned().collect();
            self.answer(open).await;
            tokio::time::sleep(POLL + self.random.millis(POLL_MORE)).await;
        }
        self.script.history.ended(&self.handle.call, false);
    }

    fn request(&self, kind: Kind) -> TaskRequest {
        self.script.request(&self.handle.call, kind, true)
    }

    fn task(&self) -> String {
        self.handle.task.clone()
    }

    /// Polls the task at some instance.
    async fn get(&self) -> Option<Value> {
        let reply = self.script.send(&self.request(Kind::Get { task: self.task() })).await?;
        reply.get("result").cloned()
    }

    async fn cancel(&mut self) {
        self.has_cancelled = true;
        let request = self.request(Kind::Cancel { task: self.task() });
        self.script.settle(&request, self.begin, &mut self.random).await;
    }

    async fn update(&mut self, answers: Vec<Answer>) {
        let request = self.request(Kind::Update { task: self.task(), answers });
        self.script.settle(&request, self.begin, &mut self.random).await;
    }

    /// Two people answer at the same time.
    async fn update_at_once(&mut self, one: Answer, two: Answer) {
        let [one, two] =
            [one, two].map(|answer| self.request(Kind::Update { task: self.task(), answers: vec![answer] }));
        let mut more = self.random.clone();
        tokio::join!(
            self.script.settle(&one, self.begin, &mut self.random),
            self.script.settle(&two, self.begin, &mut more)
        );
    }

    /// Answers the open questions: all of them, by one request or by two, or the first one.
    async fn answer(&mut self, open: Vec<String>) {
        let Some(key) = open.first().cloned() else { return };
        let number = self.questions.iter().position(|path| path == path_of(&key));
        if let (Cancels::Question(at), Some(number)) = (self.cancels, number) {
            if at == number && !self.has_cancelled {
                self.cancel().await;
            }
            if self.has_cancelled {
                return;
            }
        }
        if std::mem::take(&mut self.is_early) && number == Some(0) {
            self.answer_early().await;
        }
        let thinks = self.random.millis(self.script.thinks);
        tokio::time::sleep(thinks).await;
        match (&*open, self.random.below(3)) {
            ([_, _, ..], 0) => {
                let answers = open.iter().map(|key| Answer::of("both", key)).collect();
                self.update(answers).await;
                return self.answered.extend(open);
            }
            ([one, two], 1) => {
                let (one, two) = (Answer::of("one", one), Answer::of("two", two));
                self.update_at_once(one, two).await;
                return self.answered.extend(open);
            }
            _ => (),
        }
        self.answer_one(&key).await;
        self.answered.insert(key);
    }

    async fn answer_one(&mut self, key: &str) {
        if let Some(before) = key_before(key) {
            // A key that was superseded.
            if self.random.percent(50) {
                self.update(vec![Answer::of("black", &before)]).await;
            }
        } else if self.random.percent(20) {
            return self.update(vec![Answer::invalid(key)]).await;
        }
        if self.random.percent(10) {
            self.update_at_once(Answer::of("red", key), Answer::of("blue", key)).await;
        } else {
            self.update(vec![Answer::of("red", key)]).await;
        }
        if self.random.percent(6) {
            self.script.kill_acknowledging(&self.handle.call);
        }
        if self.random.percent(15) {
            self.update(vec![Answer::of("green", key)]).await;
        }
    }

    /// Answers the second question while the first one is open: once, and the network delivers it once.
    async fn answer_early(&self) {
        let Some(key) = self.questions.get(1) else { return };
        let kind = Kind::Update { task: self.task(), answers: vec![Answer::of(EARLY, key)] };
        self.script.send(&self.script.request(&self.handle.call, kind, false)).await;
    }

    /// Sends a request as somebody else, now or later.
    fn stranger(&mut self) {
        let task = self.task();
        let kind = match self.random.below(4) {
            0 => Kind::Get { task },
            1 => Kind::Cancel { task },
            2 => {
                let answers = self.questions.iter().map(|key| Answer::of("stolen", key)).collect();
                Kind::Update { task, answers }
            }
            // There is no such task.
            _ => Kind::Get { task: task.chars().rev().collect() },
        };
        let request = TaskRequest { person: "somebody-else".to_owned(), ..self.request(kind) };
        self.script.proxy.later(request, self.random.millis(500));
    }

    /// Polls, answers and cancels a task that is over.
    async fn after_end(&mut self) {
        if self.random.percent(30) {
            let answers = self.questions.iter().map(|key| Answer::of("late", key)).collect();
            self.update(answers).await;
        }
        if self.random.percent(30) {
            let request = self.request(Kind::Cancel { task: self.task() });
            self.script.settle(&request, self.begin, &mut self.random).await;
        }
        for _ in 0..3 {
            self.get().await;
        }
        let request = self.request(Kind::Get { task: self.task() });
        self.script.proxy.later(request, self.random.millis(5000));
    }
}

async fn pause(random: &mut Random) {
    tokio::time::sleep(Duration::from_millis(50) + random.millis(200)).await;
}
