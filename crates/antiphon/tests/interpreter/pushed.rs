//! A client of 2025-11-25: what is awaited is sent on its session at once, and the handler waits.

use crate::{
    case::{Carrier, Case, Move, MoveKind},
    checks::{Allowance, Consents, effects, ended},
    outcome::Facts,
    reference::{Leg, Plain},
    reply::{ShownAsk, answer, misfit, shown},
    sealed::CallEnd,
    shapes::{instance, instance_with_store, tool_of},
    trace::{LegTrace, Scene, Trace, on_scene},
    tree::Program,
    user::in_words,
};
use antiphon::serve::stdio::serve_streams;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    task::JoinHandle,
    time::timeout,
};

/// More moves than any call needs.
const MOST_MOVES: usize = 400;
/// The time on the clock after which all that goes on by itself has come to rest.
const REST: Duration = Duration::from_secs(30);
/// The time without a question after which a handler that comes to nothing is stopped.
const HANDLER_TIME: Duration = Duration::from_secs(10 * 60);

/// The client's end of a session.
struct Session {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    serving: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Session {
    async fn open(case: &Case, number: usize, scene: Arc<Scene>) -> Result<Self, String> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let server = match case.carrier {
            Carrier::PushedMemory => instance_with_store(case.server),
            _ => instance(0, case.server).clone(),
        };
        let serving = tokio::spawn(async move {
            // What ends it is seen by the client.
            drop(on_scene(scene, serve_streams(input, output, server)).await);
        });
        let (read, writer) = tokio::io::split(ours);
        let mut session = Self { lines: BufReader::new(read).lines(), writer, serving };
        let client = json!({"name": number.to_string(), "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}},
            "clientInfo": client});
        session.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await?;
        session.next(REST).await?.ok_or("no answer to initialize")?;
        session.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(session)
    }

    async fn send(&mut self, message: Value) -> Result<(), String> {
        let line = format!("{message}\n");
        let sent = timeout(REST, self.writer.write_all(line.as_bytes())).await;
        sent.map_err(|_| "the server does not read")?.map_err(|error| error.to_string())
    }

    /// The next message; `None` if none comes for so long.
    async fn next(&mut self, within: Duration) -> Result<Option<Value>, String> {
        let Ok(line) = timeout(within, self.lines.next_line()).await else { return Ok(None) };
        let line = line.map_err(|error| error.to_string())?.ok_or("the session has ended")?;
        serde_json::from_str(&line).map(Some).map_err(|error| error.to_string())
    }
}

/// A question that waits for its answer.
struct OpenAsk {
    path: String,
    shown: ShownAsk,
}

struct Client<'a> {
    case: &'a Case,
    trace: Arc<Trace>,
    leg: Arc<LegTrace>,
    session: Session,
    /// The id of the call.
    call: u32,
    /// The open asks, by the ids of the server's requests.
    open: BTreeMap<u64, OpenAsk>,
    /// Something that was answered may be asked again, in other words.
    changed: bool,
    /// Questions that were answered, and how often badly.
    answered: BTreeSet<String>,
    bad: BTreeMap<String, u8>,
    plain: Plain,
    consents: Consents,
    allowance: Allowance,
}

/// The outcome of a call.
enum SessionReply {
    Done(String),
    Failed(Value),
}

/// Runs one case to its end.
pub(crate) async fn check(case: &Case, trace: Arc<Trace>) -> Result<CallEnd, String> {
    let leg = Arc::<LegTrace>::default();
    let (number, scene) = Scene::publish(Scene {
        program: Arc::clone(&case.program),
        trace: Arc::clone(&trace),
        leg: Arc::clone(&leg),
        says_path: true,
        process: None,
        reruns: false,
    });
    let session = Session::open(case, number, scene).await?;
    let mut client = Client {
        case,
        trace,
        leg,
        session,
        call: 1,
        open: BTreeMap::new(),
        answered: BTreeSet::new(),
        changed: false,
        bad: BTreeMap::new(),
        plain: Plain::new(case.seed),
        consents: Consents::default(),
        allowance: Allowance { calls: 1, repeats: 0, cuts: case.program.fails(), interruptions: None },
    };
    client.run().await
}

impl Client<'_> {
    async fn run(&mut self) -> Result<CallEnd, String> {
        self.begin().await?;
        let mut moves = self.case.moves.iter().copied();
        for _ in 0..MOST_MOVES {
            let came = self.listen(REST).await?;
            let came = match came {
                // A set of futures keeps a waker, so that it is a matter of time that a handler has come to another end.
                None if self.open.is_empty() && self.changed => self.listen(HANDLER_TIME).await?,
                came => came,
            };
            self.trace.check()?;
            self.consents.check(&self.leg)?;
            match came {
                Some(SessionReply::Done(text)) => return self.ended(&text),
                Some(SessionReply::Failed(error)) => {
                    if self.changed && error["data"]["reason"] == "flow_diverged" {
                        effects(&[Arc::clone(&self.leg)], self.allowance)?;
                        return Ok(CallEnd::Diverged);
                    }
                    let internal = error["code"] == -32603;
                    if !internal || !self.case.program.fails() {
                        return Err(format!("{error}"));
                    }
                    // What was done is done: the call is begun anew, as another one.
                    self.again().await?;
                    continue;
                }
                None => {}
            }
            if self.open.is_empty() {
                return Err("it hangs: nothing is asked, and nothing comes".to_owned());
            }
            self.look()?;
            let one = moves.next().unwrap_or(Move::all());
            self.trace.requests.fetch_add(1, Ordering::Relaxed);
            self.leg.world.store(one.world, Ordering::Relaxed);
            // What was asked before is rendered again only where the handler is entered again.
            self.changed |= one.world != 0 && matches!(*self.case.program, Program::ByHand(..));
            if matches!(one.what, MoveKind::Cuts { .. }) {
                self.cancel().await?;
                self.again().await?;
                continue;
            }
            if matches!(one.what, MoveKind::Loses) {
                tokio::time::sleep(Duration::from_secs(40)).await;
            }
            self.answer(one).await?;
        }
        Err(format!("it does not end in {MOST_MOVES} moves"))
    }

    async fn begin(&mut self) -> Result<(), String> {
        let params = json!({"name": tool_of(&self.case.program), "arguments": {}});
        self.session
            .send(json!({"jsonrpc": "2.0", "id": self.call, "method": "tools/call", "params": params}))
            .await
    }

    /// The same call once more, from its beginning.
    async fn again(&mut self) -> Result<(), String> {
        self.call += 1;
        self.allowance.calls += 1;
        self.allowance.repeats += 1;
        self.open.clear();
        self.answered.clear();
        self.plain.begin_anew();
        self.consents.begin_anew();
        self.leg.decided.lock().unwrap().clear();
        self.leg.answered.lock().unwrap().clear();
        self.begin().await
    }

    /// Cancels the call. Nothing comes of it any more, and no attempt of a step begins.
    async fn cancel(&mut self) -> Result<(), String> {
        let params = json!({"requestId": self.call});
        self.session
            .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
            .await?;
        self.allowance.cuts = true;
        // A question that left before may still come.
        while self.session.next(Duration::from_millis(1)).await?.is_some() {}
        self.leg.gone.store(true, Ordering::Relaxed);
        while let Some(message) = self.session.next(REST).await? {
            if message["method"] != "notifications/cancelled" {
                return Err(format!("after it was cancelled, {message}"));
            }
        }
        self.trace.check()?;
        self.leg.gone.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Reads until all is at rest; gives the end of the call.
    async fn listen(&mut self, within: Duration) -> Result<Option<SessionReply>, String> {
        let mut asked: BTreeMap<String, String> = BTreeMap::new();
        let came = loop {
            let Some(message) = self.session.next(within).await? else { break None };
            if message["id"] == self.call && message.get("method").is_none() {
                let text = message["result"]["content"][0]["text"].as_str();
                break Some(text.map_or_else(
                    || SessionReply::Failed(message["error"].clone()),
                    |text| SessionReply::Done(text.to_owned()),
                ));
            }
            match message["method"].as_str() {
                Some("elicitation/create") => {
                    let shown = shown(&message["params"]);
                    let path = shown.text.split(' ').next().unwrap_or_default().to_owned();
                    let id = message["id"].as_u64().ok_or("an id that is no number")?;
                    // An answer may be on its way when a failure takes its question back.
                    if self.answered.contains(&path) && !self.changed && !self.case.program.fails() {
                        return Err(format!("`{path}` is asked again, and was answered"));
                    }
                    if self.open.values().any(|open| open.path == path) {
                        return Err(format!("`{path}` is asked twice at once"));
                    }
                    asked.insert(path.clone(), shown.text.clone());
                    self.open.insert(id, OpenAsk { path, shown });
                }
                Some("notifications/cancelled") => {
                    let id = message["params"]["requestId"].as_u64().ok_or("an id that is no number")?;
                    let open = self.open.remove(&id).ok_or("what is taken back was not asked")?;
                    asked.remove(&open.path);
                }
                _ => return Err(format!("{message}")),
            }
        };
        self.consents.show(asked.iter());
        Ok(came)
    }

    /// Checks that the open questions at rest are those of the plain interpreter.
    fn look(&mut self) -> Result<(), String> {
        if !self.case.is_exact() || self.changed {
            return Ok(());
        }
        self.plain.tried = self.leg.decided.lock().unwrap().clone();
        let expected = self.plain.leg(&self.case.program);
        let mut asked: Vec<&str> = self.open.values().map(|open| open.path.as_str()).collect();
        asked.sort_unstable();
        match expected {
            Leg::Asks(expected) if asked.iter().copied().eq(expected.iter().map(String::as_str)) => Ok(()),
            other => Err(format!("asks {asked:?}, but should be {other:?}")),
        }
    }

    /// Answers some of what is asked; only one where the plain interpreter is to know what comes of it.
    async fn answer(&mut self, one: Move) -> Result<(), String> {
        let mut ids: Vec<u64> = self.open.keys().copied().collect();
        if one.reversed {
            ids.reverse();
        }
        let chosen = ids.iter().enumerate().filter(|(n, _)| one.answers & (1 << (n % 8)) != 0);
        let most = if self.case.is_exact() { 1 } else { usize::MAX };
        let chosen: Vec<(usize, u64)> = chosen.map(|(n, id)| (n, *id)).take(most).collect();
        if one.extra {
            self.respond(77_777, misfit(0)).await?;
        }
        for (n, id) in chosen {
            let Some(OpenAsk { path, shown }) = self.open.remove(&id) else { continue };
            let times = self.bad.entry(path.clone()).or_default();
            let is_bad = one.bad & (1 << (n % 8)) != 0 && *times < 2;
            *times += u8::from(is_bad);
            self.plain.answers.get_mut().insert(path.clone(), !is_bad);
            if is_bad {
                // Neither the old wrapping nor null is a result here: one that fits no form.
                self.respond(id, misfit(n % 2)).await?;
                continue;
            }
            let (said, value) = answer(self.case.seed, &path, &shown);
            self.answered.insert(path.clone());
            self.consents.answer(&path, said);
            self.respond(id, value.clone()).await?;
            if matches!(one.what, MoveKind::Returns(_) | MoveKind::Twice(_)) {
                self.respond(id, value).await?;
            }
        }
        Ok(())
    }

    async fn respond(&mut self, id: u64, result: Value) -> Result<(), String> {
        self.session.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await
    }

    fn ended(&mut self, text: &str) -> Result<CallEnd, String> {
        let expected = Facts::of(&self.leg).result(&self.case.program).map(in_words);
        if Some(text) != expected.as_deref() {
            let decided = self.leg.decided.lock().unwrap();
            return Err(format!("{text}, but should be {expected:?}, where {decided:?}"));
        }
        if !self.open.is_empty() {
            return Err("questions of a call that has ended were not taken back".to_owned());
        }
        let legs = [Arc::clone(&self.leg)];
        effects(&legs, self.allowance)?;
        if self.case.is_exact() && !self.allowance.cuts && !self.changed {
            self.plain.tried = self.leg.decided.lock().unwrap().clone();
            let done = self.plain.leg(&self.case.program);
            let mut plainly = self.plain.ran.take();
            plainly.sort_unstable();
            let ran = ended(&legs);
            if !matches!(done, Leg::Done(_)) || ran != plainly {
                return Err(format!("the steps {ran:?} ran, but should be {plainly:?}; {done:?}"));
            }
        }
        Ok(CallEnd::Done)
    }
}
