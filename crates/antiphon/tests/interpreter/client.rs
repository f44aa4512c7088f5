//! A client that answers as it likes, and what is checked on the way.

use crate::{
    handler::{Decided, Env, LegSeen, Ran, Seen, run},
    plain::{Leg, Plain, result},
    tree::{At, Node, Said, Stop, said},
};
use antiphon::{
    seal::{KeyRing, SecretKey},
    server::{Caller, Ctx, Limits, Server, Tool},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, LazyLock, Mutex},
    task::Poll,
    time::Duration,
};

/// One handler, and one client's whims.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) tree: Node,
    pub(crate) waits: bool,
    pub(crate) seed: u64,
    /// What the client does at first; then it answers what it is asked.
    pub(crate) moves: Vec<Move>,
}

/// One request of the client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Move {
    /// Which of the questions are answered.
    pub(crate) answers: u8,
    /// Which of these in a way that does not fit.
    pub(crate) bad: u8,
    /// Answers to questions that were not asked now, or never.
    pub(crate) extra: bool,
    pub(crate) reversed: bool,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum What {
    #[default]
    Sends,
    /// Sends it, and never sees the reply.
    Loses,
    /// Goes away at this poll.
    Cuts { polls: u8, rests: bool },
    /// Goes on from an older token.
    Returns(u8),
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nseed {}, handler:\n{:?}client:", self.seed, self.tree)?;
        self.moves.iter().try_for_each(|it| writeln!(f, "  {it:?}"))
    }
}

pub(crate) fn case(waits: bool) -> impl Strategy<Value = Case> {
    let what = prop_oneof![
        8 => Just(What::Sends),
        1 => Just(What::Loses),
        if waits { 2 } else { 1 } => (0_u8..12, any::<bool>()).prop_map(|(polls, rests)| What::Cuts { polls, rests }),
        1 => (0_u8..4).prop_map(What::Returns),
    ];
    let bad = prop_oneof![3 => Just(0), 1 => any::<u8>()];
    let answers = prop_oneof![1 => Just(0xff), 2 => any::<u8>()];
    let one = (answers, bad, any::<bool>(), any::<bool>(), what)
        .prop_map(|(answers, bad, extra, reversed, what)| Move { answers, bad, extra, reversed, what });
    let honest = proptest::bool::weighted(0.3);
    (crate::tree::tree(waits), any::<u64>(), proptest::collection::vec(one, 0..8), honest).prop_map(
        move |(tree, seed, mut moves, honest)| {
            if honest {
                moves.iter_mut().for_each(|it| it.what = What::Sends);
            }
            Case { tree, waits, seed, moves }
        },
    )
}

/// What the handler of a call looks up: its tree, and where it writes down what it sees.
type Told = (Arc<Node>, Arc<Seen>, Arc<LegSeen>);

static CALLS: LazyLock<Mutex<BTreeMap<u64, Told>>> = LazyLock::new(Mutex::default);

/// Instances that share nothing but their keys.
static SERVERS: LazyLock<Vec<Server>> = LazyLock::new(|| (0..3).map(|_| server()).collect());

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    call: u64,
}

fn server() -> Server {
    let mut limits = Limits::default();
    limits.legs = 1000;
    let tool = Tool::new("t", async |ctx: &Ctx, Arguments { call }| {
        let (tree, seen, leg) = CALLS.lock().unwrap()[&call].clone();
        let env = Env { seen, leg, at: At::default() };
        match run(ctx, &tree, env, 0).await {
            Ok(value) => format!("came to {value:x}"),
            Err(stop) => stop.to_string(),
        }
    });
    let ring = KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap();
    Server::builder("interpreter", "1").tool(tool).keys(ring).limits(limits).build().unwrap()
}

/// What a client holds after a round.
#[derive(Clone)]
struct Held {
    state: Option<String>,
    /// The questions, with what their answers look like.
    asked: BTreeMap<String, Field>,
    plain: Plain,
    /// Questions that were answered badly, and how often.
    bad: BTreeMap<String, u8>,
    /// What came first so far.
    decided: BTreeMap<String, Decided>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Number,
    Yes,
    Text,
}

/// What became of one request.
enum Heard {
    Nothing,
    Again,
    Round { state: String, asked: BTreeMap<String, Field> },
    Done(String),
}

struct Client<'a> {
    case: &'a Case,
    call: u64,
    seen: Arc<Seen>,
    leg: Arc<LegSeen>,
    sent: usize,
    /// First requests: each begins a call of its own, under keys of its own.
    begun: usize,
    /// A request was sent twice, or an older one again.
    repeats: bool,
    /// A request was cut at a poll that the plain interpreter does not know.
    cuts: bool,
    /// Steps that the plain interpreter ran.
    plainly: Vec<String>,
    /// All that was asked at any time.
    ever: BTreeSet<String>,
}

/// Runs one case to its end.
pub(crate) async fn check(case: &Case, call: u64) -> Result<(), TestCaseError> {
    let seen = Arc::new(Seen::default());
    let mut client = Client {
        case,
        call,
        seen,
        leg: Arc::default(),
        sent: 0,
        begun: 0,
        repeats: false,
        cuts: false,
        plainly: Vec::new(),
        ever: BTreeSet::new(),
    };
    let checked = client.go().await;
    CALLS.lock().unwrap().remove(&call);
    checked
}

impl Client<'_> {
    async fn go(&mut self) -> Result<(), TestCaseError> {
        let first = Held {
            state: None,
            asked: BTreeMap::new(),
            plain: Plain::new(self.case.seed),
            bad: BTreeMap::new(),
            decided: BTreeMap::new(),
        };
        let mut held = vec![first];
        let mut moves = self.case.moves.clone().into_iter();
        for _ in 0..400 {
            let one = moves.next().unwrap_or(Move { answers: 0xff, ..Move::default() });
            if let What::Returns(back) = one.what {
                self.repeats = true;
                held.truncate(held.len().saturating_sub(usize::from(back)).max(1));
            }
            let now = held.last().expect("the first is never gone").clone();
            let sent = self.send(&now, &one).await;
            self.look()?;
            let (heard, plain, bad) = sent?;
            match heard {
                Heard::Nothing => self.repeats = true,
                Heard::Again => {
                    prop_assert!(self.case.waits);
                    self.repeats = true;
                }
                Heard::Done(text) => return self.ended(&text, &now),
                Heard::Round { state, asked } => {
                    let decided = self.leg.decided.lock().unwrap().clone();
                    for (path, before) in &now.decided {
                        if let Some(again) = decided.get(path) {
                            prop_assert_eq!(before, again, "`{}` was decided otherwise before", path);
                        }
                    }
                    self.ever.extend(asked.keys().cloned());
                    held.push(Held { state: Some(state), asked, plain, bad, decided });
                }
            }
        }
        Err(TestCaseError::fail("it does not end"))
    }

    /// Sends one request, and has the plain interpreter do the same.
    async fn send(
        &mut self,
        now: &Held,
        one: &Move,
    ) -> Result<(Heard, Plain, BTreeMap<String, u8>), TestCaseError> {
        let (mut plain, mut bad) = (now.plain.clone(), now.bad.clone());
        let mut answers: Vec<(String, Value)> = Vec::new();
        for (n, (path, field)) in now.asked.iter().enumerate() {
            if one.answers & (1 << (n % 8)) == 0 {
                continue;
            }
            let times = bad.entry(path.clone()).or_default();
            let is_bad = one.bad & (1 << (n % 8)) != 0 && *times < 2;
            *times += u8::from(is_bad);
            plain.answers.get_mut().insert(path.clone(), !is_bad);
            let answer = if is_bad { misfit(n) } else { answer(self.case.seed, path, *field) };
            answers.push((path.clone(), answer));
        }
        if one.extra {
            let others = self.ever.iter().filter(|path| !now.asked.contains_key(*path)).cloned();
            let never = ["a", "pick", "a0/a", "b#100000", "nobody's"].map(str::to_owned);
            let never = never.into_iter().filter(|path| !now.asked.contains_key(path));
            for path in others.chain(never).collect::<BTreeSet<_>>() {
                answers
                    .push((path, accepted(json!({"id": "an older leg", "n": 0, "ok": true, "text": "no"}))));
            }
        }
        if one.reversed {
            answers.reverse();
        }
        let heard = self.request(now.state.as_deref(), &answers, one.what).await?;
        plain.tried = self.leg.decided.lock().unwrap().clone();
        let expected = (!self.case.waits).then(|| plain.leg(&self.case.tree));
        self.plainly.append(plain.ran.get_mut());
        match (&heard, expected) {
            (Heard::Round { asked, .. }, Some(Leg::Asks(expected))) => {
                prop_assert_eq!(asked.keys().cloned().collect::<BTreeSet<_>>(), expected);
            }
            (Heard::Round { asked, .. }, Some(done)) => {
                return Err(TestCaseError::fail(format!("asks {asked:?}, but should be {done:?}")));
            }
            (Heard::Done(text), Some(Leg::Asks(expected))) => {
                return Err(TestCaseError::fail(format!("{text}, but should ask {expected:?}")));
            }
            (Heard::Done(text), Some(Leg::Done(expected))) => prop_assert_eq!(text, &in_words(expected)),
            _ => {}
        }
        Ok((heard, plain, bad))
    }

    async fn request(
        &mut self,
        state: Option<&str>,
        answers: &[(String, Value)],
        what: What,
    ) -> Result<Heard, TestCaseError> {
        self.leg = Arc::default();
        let told = (Arc::new(self.case.tree.clone()), Arc::clone(&self.seen), Arc::clone(&self.leg));
        CALLS.lock().unwrap().insert(self.call, told);
        self.begun += usize::from(state.is_none());
        self.sent += 1;
        let server = &SERVERS[self.sent % SERVERS.len()];
        let answers: Vec<String> = answers
            .iter()
            .map(|(path, answer)| format!("{}: {answer}", Value::from(path.as_str())))
            .collect();
        let state = state.map_or(String::new(), |state| format!(r#","requestState":"{state}""#));
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"call":{}}},
            "inputResponses":{{{}}}{state},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}}}}}}}}}}"#,
            self.call,
            answers.join(",")
        );
        let caller = Caller::default();
        let answering = server.respond(message.as_bytes(), &caller);
        let reply = match what {
            What::Sends | What::Returns(_) => answering.await,
            What::Loses => {
                answering.await;
                return Ok(Heard::Nothing);
            }
            What::Cuts { polls, rests } => {
                self.cuts = true;
                cut(answering, polls).await;
                if rests {
                    tokio::time::sleep(Duration::from_secs(6)).await;
                }
                return Ok(Heard::Nothing);
            }
        };
        let reply = reply.expect("a request has a reply").body;
        heard(&serde_json::from_slice(&reply).expect("a reply is JSON"))
    }

    /// Nothing that was seen so far is wrong.
    fn look(&self) -> Result<(), TestCaseError> {
        let wrong = self.seen.wrong.lock().unwrap();
        prop_assert!(wrong.is_empty(), "{wrong:?}");
        Ok(())
    }

    fn ended(&self, text: &str, before: &Held) -> Result<(), TestCaseError> {
        let ran = self.seen.ran.lock().unwrap();
        let mut paths: BTreeMap<&str, &str> = BTreeMap::new();
        let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for Ran { path, key } in ran.iter() {
            prop_assert_eq!(*paths.entry(key).or_insert(path), path.as_str(), "one key, two steps");
            keys.entry(path).or_default().insert(key);
        }
        for (path, keys) in &keys {
            prop_assert!(
                keys.len() <= self.begun,
                "`{}` ran under {} keys in {} calls",
                path,
                keys.len(),
                self.begun
            );
        }
        if !self.repeats {
            prop_assert_eq!(paths.len(), ran.len(), "a step ran twice: {:?}", ran);
        }
        if !self.case.waits && !self.cuts {
            let mut ran: Vec<&str> = ran.iter().map(|ran| ran.path.as_str()).collect();
            let mut plainly: Vec<&str> = self.plainly.iter().map(String::as_str).collect();
            ran.sort_unstable();
            plainly.sort_unstable();
            prop_assert_eq!(ran, plainly);
        }
        let decided = self.leg.decided.lock().unwrap();
        for (path, before) in &before.decided {
            if let Some(again) = decided.get(path) {
                prop_assert_eq!(before, again, "`{}` was decided otherwise before", path);
            }
        }
        let expected = result(&self.case.tree, &At::default(), 0, self.case.seed, &decided);
        prop_assert_eq!(Some(text.to_owned()), expected.map(in_words), "given {:?}", decided);
        Ok(())
    }
}

fn in_words(result: Result<u64, Stop>) -> String {
    match result {
        Ok(value) => format!("came to {value:x}"),
        Err(stop) => stop.to_string(),
    }
}

/// Polls so often, then drops it.
async fn cut(answering: impl Future, polls: u8) {
    let mut answering = pin!(answering);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        answering.as_mut().poll(cx).map(drop)
    })
    .await;
}

fn heard(reply: &Value) -> Result<Heard, TestCaseError> {
    if reply["error"]["data"]["reason"] == "step_failed" {
        return Ok(Heard::Again);
    }
    let result = &reply["result"];
    match (result["resultType"].as_str(), result["inputRequests"].as_object()) {
        (Some("complete"), _) => {
            Ok(Heard::Done(result["content"][0]["text"].as_str().unwrap_or_default().to_owned()))
        }
        (Some("input_required"), Some(requests)) if !requests.is_empty() => {
            let field = |request: &Value| {
                let fields = &request["params"]["requestedSchema"]["properties"];
                match () {
                    () if fields.get("n").is_some() => Field::Number,
                    () if fields.get("ok").is_some() => Field::Yes,
                    () => Field::Text,
                }
            };
            let asked = requests.iter().map(|(path, request)| (path.clone(), field(request))).collect();
            let state = result["requestState"].as_str().unwrap_or_default().to_owned();
            Ok(Heard::Round { state, asked })
        }
        _ => Err(TestCaseError::fail(format!("{reply}"))),
    }
}

fn accepted(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn answer(seed: u64, path: &str, field: Field) -> Value {
    match said(seed, path) {
        Said::Decline => json!({"action": "decline"}),
        Said::Cancel => json!({"action": "cancel"}),
        Said::Accept(n) => accepted(match field {
            Field::Number => json!({"id": path, "n": n, "more": 1}),
            Field::Yes => json!({"id": path, "ok": n % 2 == 1}),
            Field::Text if n == 0 => json!({"id": path}),
            Field::Text => {
                json!({"id": path, "text": "x".repeat(usize::try_from(n).expect("a small number"))})
            }
        }),
    }
}

/// Fits no form.
fn misfit(n: usize) -> Value {
    match n % 4 {
        0 => accepted(json!({"id": 7})),
        1 => accepted(json!({})),
        2 => json!({"method": "elicitation/create", "result": {"action": "accept"}}),
        _ => Value::Null,
    }
}
