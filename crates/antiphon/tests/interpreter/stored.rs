//! A client of a call with a store: it sends each request until it has a reply, over lost replies, hang-ups and deaths.

use crate::{
    case::{Case, Move, MoveKind, PAUSES},
    checks::Consents,
    fleet::Fleet,
    mortal::Death,
    reply::{Reply, ShownAsk, answer, foreign, misfit, read_reply},
    rules,
    sealed::CallEnd,
    trace::Trace,
};
use futures_util::future::join;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// More rounds than any call needs.
const MOST_ROUNDS: usize = 400;

/// A client, with the answers of its person.
pub(crate) struct Client<'a> {
    pub(crate) case: &'a Case,
    pub(crate) fleet: Fleet,
    pub(crate) consents: Consents,
    /// Questions that were answered badly, and how often.
    bad: BTreeMap<String, u8>,
    /// All that was asked at any time.
    pub(crate) ever: BTreeSet<String>,
    /// Requests whose steps may have been dropped.
    pub(crate) interruptions: usize,
    /// The task is cancelled, and so are its questions.
    pub(crate) is_cancelled: bool,
    /// Requests that had a reply.
    history: Vec<(Value, Value)>,
}

/// Runs one case to its end.
pub(crate) async fn check(case: &Case, trace: Arc<Trace>) -> Result<CallEnd, String> {
    let mut client = Client {
        case,
        fleet: Fleet::new(case, trace),
        consents: Consents::default(),
        bad: BTreeMap::new(),
        ever: BTreeSet::new(),
        interruptions: 0,
        is_cancelled: false,
        history: Vec::new(),
    };
    let end = client.run().await;
    let end = end.map_err(|why| format!("{why}\n    after {} deaths", client.fleet.deaths))?;
    // What goes on by itself comes to rest, and does no harm.
    sleep(Duration::from_secs(10)).await;
    client.look()?;
    Ok(end)
}

impl Client<'_> {
    async fn run(&mut self) -> Result<CallEnd, String> {
        let mut moves = self.case.moves.iter().copied();
        let mut params = json!({"name": "awaits", "arguments": {}});
        let mut asked: BTreeMap<String, ShownAsk> = BTreeMap::new();
        for _ in 0..MOST_ROUNDS {
            let one = moves.next().unwrap_or_else(Move::all);
            let answers = self.answers(&asked, one);
            params["inputResponses"] = answers.into();
            sleep(Duration::from_millis(PAUSES[usize::from(one.pause % 8)])).await;
            let reply = self.deliver(&params, one).await?;
            self.look()?;
            if reply["result"]["resultType"] == "task" {
                let id = reply["result"]["taskId"].as_str().ok_or("no id")?.to_owned();
                return self.task(&id, moves).await;
            }
            if reply["error"]["data"]["reason"] == "outcome_unknown" {
                return rules::unknown(self.case, &self.fleet, self.interruptions, &reply["error"])
                    .map(|()| CallEnd::Unknown);
            }
            match read_reply(&reply) {
                Reply::Done(text) => {
                    return rules::result(self.case, &self.fleet, &text).map(|()| CallEnd::Done);
                }
                Reply::Round { state, asked: next } => {
                    let paths = next.keys().cloned().collect();
                    let is_first = params.get("requestState").is_none();
                    rules::asks(self.case, &self.fleet, &paths, is_first, self.interruptions)?;
                    self.shows(&next)?;
                    params["requestState"] = state.into();
                    asked = next;
                }
                other => return Err(format!("{other:?} {reply}")),
            }
        }
        Err(format!("it does not end in {MOST_ROUNDS} rounds"))
    }

    /// Checks what was done so far.
    pub(crate) fn look(&self) -> Result<(), String> {
        rules::runs(&self.fleet, (!self.is_cancelled).then_some(&self.consents), self.interruptions)
    }

    /// The person is shown a round, or the open questions of a task.
    pub(crate) fn shows(&mut self, asked: &BTreeMap<String, ShownAsk>) -> Result<(), String> {
        if let Some(path) = self.consents.asked_again(asked.keys()) {
            return Err(format!("`{path}` is asked again, and was answered"));
        }
        self.consents.show(asked.iter().map(|(path, shown)| (path, &shown.text)));
        self.ever.extend(asked.keys().cloned());
        Ok(())
    }

    /// The answers to some of these questions, by their keys.
    pub(crate) fn answers(
        &mut self,
        asked: &BTreeMap<String, ShownAsk>,
        one: Move,
    ) -> serde_json::Map<String, Value> {
        let mut answers = serde_json::Map::new();
        for (n, (path, shown)) in asked.iter().enumerate() {
            if one.answers & (1 << (n % 8)) == 0 {
                continue;
            }
            let times = self.bad.entry(path.clone()).or_default();
            if one.bad & (1 << (n % 8)) != 0 && *times < 2 {
                *times += 1;
                answers.insert(path.clone(), misfit(n));
                continue;
            }
            let (said, text) = answer(self.case.seed, path, shown);
            self.consents.answer(path, said);
            answers.insert(path.clone(), text);
        }
        if one.extra {
            let others = self.ever.iter().map(String::as_str).chain(["a", "pick", "a~2", "a0/a", "nobody's"]);
            let others = others.filter(|path| !asked.contains_key(*path));
            answers.extend(others.map(|path| (path.to_owned(), foreign())));
        }
        answers
    }

    /// Sends a request as this move says, and then until it has a reply.
    async fn deliver(&mut self, params: &Value, one: Move) -> Result<Value, String> {
        let is_first = params.get("requestState").is_none();
        // A first request that becomes a task is not repeated: that begins a second one.
        let becomes_task = self.case.carrier.is_task() || self.case.program.promotes();
        let is_once = is_first && becomes_task;
        match one.what {
            _ if is_once => {}
            MoveKind::Loses => drop(self.fleet.settled("tools/call", params).await?),
            MoveKind::Cuts { polls, rests } => {
                let request = self.fleet.request("tools/call", params);
                cut(request, polls).await;
                self.interruptions += 1;
                sleep(Duration::from_secs(if rests { 6 } else { 0 })).await;
            }
            MoveKind::HangsUp(millis) => {
                let request = self.fleet.request("tools/call", params);
                if timeout(Duration::from_millis(millis.into()), request).await.is_err() {
                    self.interruptions += 1;
                }
            }
            MoveKind::Twice(_) => {
                let first = self.fleet.request("tools/call", params);
                let second = self.fleet.request("tools/call", params);
                let (first, second) = join(first, second).await;
                if let (Some(first), Some(second)) = (first, second) {
                    self.same(&first?, &second?, is_first)?;
                }
            }
            MoveKind::Dies { after, takes_effect } => {
                self.fleet.dies(Death { after: after.into(), takes_effect });
            }
            MoveKind::Returns(back) => {
                let at = self.history.len().checked_sub(1 + usize::from(back));
                if let Some((params, reply)) = at.map(|at| self.history[at].clone()) {
                    let again = self.fleet.settled("tools/call", &params).await?;
                    self.same(&reply, &again, false)?;
                }
            }
            MoveKind::Sends | MoveKind::Cancels => {}
        }
        let reply = self.fleet.settled("tools/call", params).await?;
        if !is_first {
            self.history.push((params.clone(), reply.clone()));
        }
        Ok(reply)
    }

    /// Two replies to one request are the same, if both have a result. A first request begins another call each time.
    fn same(&self, one: &Value, two: &Value, is_first: bool) -> Result<(), String> {
        let task = |reply: &Value| reply["result"]["taskId"].as_str().map(str::to_owned);
        let is_same = match (task(one), task(two)) {
            (Some(one), Some(two)) => one == two,
            _ => one == two,
        };
        if is_same || is_first || !one["result"].is_object() || !two["result"].is_object() {
            return Ok(());
        }
        Err(format!("one request has two replies:\n    {one}\n    {two}"))
    }
}

/// Polls so often, then drops it.
pub(crate) async fn cut(request: impl Future, polls: u8) {
    let mut request = pin!(request);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        request.as_mut().poll(cx).map(drop)
    })
    .await;
}
