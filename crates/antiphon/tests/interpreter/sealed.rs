//! A client of 2026-07-28: each request goes to another instance, and brings a state.

use crate::{
    case::{Case, Move, MoveKind},
    checks::{Allowance, Consents, effects, ended},
    outcome::Facts,
    reference::{Leg, Plain},
    reply::{Reply, ShownAsk, answer, foreign, misfit, read_reply},
    shapes::{ServerKind, TIMES_ASKED, instance, tool_of},
    trace::{BranchResult, LegTrace, Scene, Trace, on_scene},
    user::in_words,
};
use antiphon::server::Caller;
use futures_util::future::join;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    task::Poll,
    time::Duration,
};

/// More requests than any call needs.
const MOST_REQUESTS: usize = 400;

/// The data of a client after a round.
#[derive(Clone)]
struct Position {
    state: Option<String>,
    asked: BTreeMap<String, ShownAsk>,
    /// The number of times that each question without an answer that fits was asked, or would be now.
    times: BTreeMap<String, u8>,
    plain: Plain,
    /// Questions that were answered badly, and how often.
    bad: BTreeMap<String, u8>,
    decided: BTreeMap<String, BranchResult>,
    consents: Consents,
    state_only: u8,
    /// A step has run, or a question was refused: the call may end where it diverges.
    has_record: bool,
}

struct Client<'a> {
    case: &'a Case,
    trace: Arc<Trace>,
    legs: Vec<Arc<LegTrace>>,
    sent: usize,
    allowance: Allowance,
    /// The world has changed.
    changed: bool,
    /// A request was cut at a poll that the plain interpreter does not know.
    cuts: bool,
    /// Steps that the plain interpreter ran.
    plainly: Vec<String>,
    /// All that was asked at any time.
    ever: BTreeSet<String>,
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CallEnd {
    Done,
    Diverged,
    /// A question was asked too often.
    TooOften,
    /// It is unknown if a step had its effect.
    Unknown,
    /// The client has cancelled the task.
    Cancelled,
    /// The task has failed, because its handler panicked.
    Failed,
}

/// Runs one case to its end.
pub(crate) async fn check(case: &Case, trace: Arc<Trace>) -> Result<CallEnd, String> {
    let mut client = Client {
        case,
        trace,
        legs: Vec::new(),
        sent: 0,
        allowance: Allowance { cuts: case.program.fails(), ..Allowance::default() },
        changed: false,
        cuts: false,
        plainly: Vec::new(),
        ever: BTreeSet::new(),
    };
    client.run().await
}

impl Client<'_> {
    async fn run(&mut self) -> Result<CallEnd, String> {
        let first = Position {
            state: None,
            asked: BTreeMap::new(),
            times: BTreeMap::new(),
            plain: Plain::new(self.case.seed),
            bad: BTreeMap::new(),
            decided: BTreeMap::new(),
            consents: Consents::default(),
            state_only: 0,
            has_record: false,
        };
        let mut positions = vec![first];
        let mut moves = self.case.moves.iter().copied();
        let mut world = 0;
        for _ in 0..MOST_REQUESTS {
            let one = moves.next().unwrap_or(Move { world, ..Move::all() });
            world = one.world;
            self.changed |= world != 0;
            if let MoveKind::Returns(back) = one.what {
                self.allowance.repeats += 1;
                positions.truncate(positions.len().saturating_sub(usize::from(back)).max(1));
            }
            let mut now = positions.last().expect("the first is never gone").clone();
            let answers = self.answer(&mut now, one);
            let Some((reply, leg)) = self.send(&now, &answers, one).await? else {
                self.allowance.repeats += 1;
                continue;
            };
            if let Some(end) = self.check_reply(reply, &leg, now, &mut positions)? {
                return self.ended(end);
            }
        }
        Err(format!("it does not end in {MOST_REQUESTS} requests"))
    }

    /// The answers of one request, as they are sent, and what they mean to the plain interpreter and the person.
    fn answer(&self, now: &mut Position, one: Move) -> Vec<(String, Value)> {
        let mut answers: Vec<(String, Value)> = Vec::new();
        let mut badly: BTreeSet<String> = BTreeSet::new();
        for (n, (path, shown)) in now.asked.iter().enumerate() {
            if one.answers & (1 << (n % 8)) == 0 {
                continue;
            }
            let times = now.bad.entry(path.clone()).or_default();
            let is_bad = one.bad & (1 << (n % 8)) != 0 && *times < 2;
            *times += u8::from(is_bad);
            now.plain.answers.get_mut().insert(path.clone(), !is_bad);
            if is_bad {
                answers.push((path.clone(), misfit(n)));
                badly.insert(path.clone());
                continue;
            }
            now.times.remove(path);
            let (said, text) = answer(self.case.seed, path, shown);
            now.has_record |= !matches!(said, crate::user::UserAnswer::Accept(_));
            now.consents.answer(path, said);
            answers.push((path.clone(), text));
        }
        // Who answers some of a round may leave the others for later.
        let answers_none = answers.is_empty();
        for path in now.asked.keys().filter(|path| answers_none || badly.contains(*path)) {
            *now.times.entry(path.clone()).or_default() += 1;
        }
        if one.extra {
            let others = self.ever.iter().map(String::as_str);
            let others = others.chain(["a", "pick", "a0/a", "b#100000", "h0q0", "nobody's"]);
            let others: BTreeSet<&str> = others.filter(|path| !now.asked.contains_key(*path)).collect();
            answers.extend(others.into_iter().map(|path| (path.to_owned(), foreign())));
        }
        if one.reversed {
            answers.reverse();
        }
        answers
    }

    /// Sends a request, perhaps two at once; `None` if the client sees no reply.
    async fn send(
        &mut self,
        now: &Position,
        answers: &[(String, Value)],
        one: Move,
    ) -> Result<Option<(Reply, Arc<LegTrace>)>, String> {
        let (first, leg) = self.request(answers, now, one.world);
        match one.what {
            // The rest is for clients of a store.
            MoveKind::Sends
            | MoveKind::Returns(_)
            | MoveKind::HangsUp(_)
            | MoveKind::Dies { .. }
            | MoveKind::Cancels => {
                let reply = first.await.ok_or("it spins")?;
                self.look(&reply, &leg, now)?;
                Ok(Some((reply, leg)))
            }
            MoveKind::Loses => {
                let reply = first.await.ok_or("it spins")?;
                self.look(&reply, &leg, now)?;
                Ok(None)
            }
            MoveKind::Twice(takes_second) => {
                self.allowance.repeats += 1;
                // The world does not change everywhere at once.
                let world = one.world + u8::from(self.changed);
                let (second, other_leg) = self.request(answers, now, world);
                let (first, second) = join(first, second).await;
                let both = [(first.ok_or("it spins")?, leg), (second.ok_or("it spins")?, other_leg)];
                for (reply, leg) in &both {
                    self.look(reply, leg, now)?;
                }
                let [first, second] = both;
                Ok(Some(if takes_second { second } else { first }))
            }
            MoveKind::Cuts { polls, rests } => {
                self.cuts = true;
                self.allowance.cuts = true;
                cut(first, polls, &leg.gone).await;
                if rests {
                    tokio::time::sleep(Duration::from_secs(6)).await;
                }
                self.trace.check()?;
                now.consents.check(&leg)?;
                Ok(None)
            }
        }
    }

    fn message(&self, number: usize, state: Option<&str>, answers: &[(String, Value)]) -> String {
        let answers: Vec<String> = answers
            .iter()
            .map(|(path, answer)| format!("{}: {answer}", Value::from(path.as_str())))
            .collect();
        let state = state.map_or(String::new(), |state| format!(r#","requestState":"{state}""#));
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{}","arguments":{{}},
            "inputResponses":{{{}}}{state},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientInfo":{{"name":"{number}","version":"1"}},
            "io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}}}}}}}}}}"#,
            tool_of(&self.case.program),
            answers.join(",")
        )
    }

    /// One request to the next instance. The future is `None` if it spins.
    fn request(
        &mut self,
        answers: &[(String, Value)],
        now: &Position,
        world: u8,
    ) -> (impl Future<Output = Option<Reply>> + use<>, Arc<LegTrace>) {
        self.sent += 1;
        self.trace.requests.fetch_add(1, Ordering::Relaxed);
        self.allowance.calls += usize::from(now.state.is_none());
        let leg = Arc::new(LegTrace { world: AtomicU8::new(world), ..LegTrace::default() });
        self.legs.push(Arc::clone(&leg));
        let (number, scene) = Scene::publish(Scene {
            program: Arc::clone(&self.case.program),
            trace: Arc::clone(&self.trace),
            leg: Arc::clone(&leg),
            says_path: false,
            process: None,
            reruns: false,
        });
        let server = instance(self.sent, self.case.server);
        let message = self.message(number, now.state.as_deref(), answers).into_bytes();
        let sent = async move {
            let caller = Caller::default();
            let reply = on_scene(scene, server.respond(&message, &caller)).await?;
            let reply = reply.expect("a request has a reply").body;
            Some(read_reply(&serde_json::from_slice(&reply).expect("a reply is JSON")))
        };
        (sent, leg)
    }

    /// Checks one reply, also if the client does not see it.
    fn look(&mut self, reply: &Reply, leg: &LegTrace, now: &Position) -> Result<(), String> {
        self.trace.check()?;
        now.consents.check(leg)?;
        let decided = leg.decided.lock().unwrap().clone();
        if !self.changed {
            for (path, before) in &now.decided {
                if decided.get(path).is_some_and(|again| again != before) {
                    return Err(format!("`{path}` was decided otherwise before"));
                }
            }
        }
        if let Reply::Done(text) = reply {
            let expected = Facts::of(leg).result(&self.case.program).map(in_words);
            if Some(text) != expected.as_ref() {
                return Err(format!("{text}, but should be {expected:?}, where {decided:?}"));
            }
        }
        self.look_at_times(reply, now)?;
        if !self.case.is_exact() || self.changed {
            return Ok(());
        }
        let mut plain = now.plain.tried(decided);
        let expected = plain.leg(&self.case.program);
        self.plainly.append(plain.ran.get_mut());
        match (reply, expected) {
            (reply, Leg::Asks(expected)) if expected.iter().any(|path| self.is_spent(path, now)) => {
                match reply {
                    Reply::TooOften(path) if expected.contains(path) => Ok(()),
                    // What was recorded leaves before that is told.
                    Reply::Round { asked, .. } if asked.is_empty() => Ok(()),
                    _ => Err(format!("{reply:?}, though {expected:?} were asked {:?} times", now.times)),
                }
            }
            (Reply::Round { asked, .. }, Leg::Asks(expected)) if asked.keys().eq(expected.iter()) => Ok(()),
            (Reply::Done(text), Leg::Done(expected)) if *text == in_words(expected) => Ok(()),
            (reply, expected) => Err(format!("{reply:?}, but should be {expected:?}")),
        }
    }

    /// Returns `true` if this question may not be asked once more.
    fn is_spent(&self, path: &str, now: &Position) -> bool {
        self.case.server == ServerKind::Strict
            && now.times.get(path).is_some_and(|times| *times > TIMES_ASKED)
    }

    /// Checks that a question without an answer that fits is asked as often as the limit allows, and not more often.
    fn look_at_times(&self, reply: &Reply, now: &Position) -> Result<(), String> {
        let spent = |path: &&String| self.is_spent(path, now);
        let too_often = match reply {
            Reply::TooOften(path) => {
                return match spent(&path) {
                    true => Ok(()),
                    false => {
                        Err(format!("`{path}` is not asked again, after {:?} times", now.times.get(path)))
                    }
                };
            }
            // A leg that fails may not come to a question, which then begins anew.
            Reply::Round { asked, .. } if !self.case.program.fails() => asked.keys().find(spent),
            _ => None,
        };
        too_often.map_or(Ok(()), |path| Err(format!("`{path}` is asked more often than the limit allows")))
    }

    /// Goes on from a reply; gives the end of the call, if that is it.
    fn check_reply(
        &mut self,
        reply: Reply,
        leg: &LegTrace,
        now: Position,
        positions: &mut Vec<Position>,
    ) -> Result<Option<CallEnd>, String> {
        let panicked = leg.panicked.load(Ordering::Relaxed);
        let has_ended = !ended_in(leg).is_empty();
        let budget = if self.case.server == ServerKind::Small { 2 } else { u8::MAX };
        match reply {
            Reply::Done(_) => Ok(Some(CallEnd::Done)),
            Reply::Round { state, asked } => {
                let fails = self.case.program.fails();
                // What was recorded leaves before a divergence is told, too.
                let is_spent = now.times.keys().any(|path| self.is_spent(path, &now));
                let may = fails || self.changed || is_spent || self.case.program.pauses();
                if asked.is_empty() && !may {
                    return Err("a state-only result of a program that neither fails nor pauses".to_owned());
                }
                let state_only = now.state_only.saturating_add(u8::from(asked.is_empty()));
                if state_only > budget {
                    return Err(format!("{state_only} state-only results in one call"));
                }
                let mut plain = now.plain.tried(leg.decided.lock().unwrap().clone());
                if self.case.is_exact() && !self.changed {
                    plain.leg(&self.case.program);
                    plain.ran.get_mut().clear();
                }
                if let Some(path) = now.consents.asked_again(asked.keys()).filter(|_| !self.changed) {
                    return Err(format!("`{path}` is asked again, and was answered"));
                }
                let mut consents = now.consents;
                consents.show(asked.iter().map(|(path, shown)| (path, &shown.text)));
                self.ever.extend(asked.keys().cloned());
                let mut times = now.times;
                if !asked.is_empty() {
                    times.retain(|path, _| asked.contains_key(path));
                    for path in asked.keys() {
                        times.entry(path.clone()).or_insert(1);
                    }
                }
                let decided = leg.decided.lock().unwrap().clone();
                let has_record = now.has_record || has_ended;
                positions.push(Position {
                    state: Some(state),
                    asked,
                    times,
                    plain,
                    decided,
                    consents,
                    state_only,
                    has_record,
                    ..now
                });
                Ok(None)
            }
            Reply::StepFailed | Reply::Internal if !self.case.program.fails() => {
                Err(format!("{reply:?}, of a program in which nothing fails"))
            }
            Reply::Internal if !panicked => {
                Err("an internal error, though the handler did not panic".to_owned())
            }
            Reply::StepFailed | Reply::Internal => {
                // What was done must not be lost: it leaves first, unless the client has had enough of that.
                if has_ended && now.state_only < budget {
                    return Err(format!("{reply:?}, and {:?} are lost", ended_in(leg)));
                }
                self.allowance.repeats += usize::from(has_ended);
                Ok(None)
            }
            Reply::TooOften(_) => Ok(Some(CallEnd::TooOften)),
            Reply::Diverged if self.changed && now.has_record => Ok(Some(CallEnd::Diverged)),
            Reply::Diverged => {
                Err("it diverges, and nothing has changed that a step or a refusal is behind".to_owned())
            }
            Reply::Other(text) => Err(text),
        }
    }

    /// The effects of the whole call.
    fn ended(&self, end: CallEnd) -> Result<CallEnd, String> {
        effects(&self.legs, self.allowance)?;
        if self.case.is_exact() && !self.cuts && !self.changed {
            let mut plainly = self.plainly.clone();
            plainly.sort_unstable();
            let ran = ended(&self.legs);
            if ran != plainly {
                return Err(format!("the steps {ran:?} ran, but should be {plainly:?}"));
            }
        }
        Ok(end)
    }
}

fn ended_in(leg: &LegTrace) -> Vec<String> {
    let runs = leg.runs.lock().unwrap();
    runs.iter().filter(|run| run.end == crate::trace::RunEnd::Outcome).map(|run| run.path.clone()).collect()
}

/// Polls so often, then drops it.
async fn cut(request: impl Future, polls: u8, gone: &AtomicBool) {
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
    gone.store(true, Ordering::Relaxed);
}
