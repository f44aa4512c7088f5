//! Content of logs, `Debug` output and errors: never a state, an answer, a principal or a key.

use crate::common::{log::take_log, *};
use antiphon::{
    seal::{Codec, CodecError, Principal},
    server::{
        Answer, Ask, Caller, Ctx, Limits, Reply, ServerBuilder, Tool,
        asks::InputRequired,
        offers::{HandlerOutcome, IntoOutcome as _},
    },
    wire::{
        CallToolResult,
        forms::{FormField, FormSchema},
    },
};
use serde_json::{Value, json};
use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

const STATE: &str = "STATE-7f3a";
const ANSWER: &str = "ANSWER-91cc";
const SUBJECT: &str = "subject-55d0";

/// A codec that hides nothing and seals anything, until it is broken.
#[derive(Clone, Default)]
struct Plain {
    broken: Arc<AtomicBool>,
}

impl Plain {
    fn works(&self) -> Result<(), CodecError> {
        match self.broken.load(Ordering::SeqCst) {
            true => Err(CodecError::new("the key service is down")),
            false => Ok(()),
        }
    }
}

impl Codec for Plain {
    fn seal(&self, plaintext: &[u8]) -> Result<String, CodecError> {
        self.works()?;
        Ok(plaintext.iter().map(|byte| format!("{byte:02x}")).collect())
    }
    fn open(&self, token: &str) -> Result<Vec<u8>, CodecError> {
        self.works()?;
        let digits = token.as_bytes().chunks(2);
        let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap_or("?"), 16));
        bytes.collect::<Result<_, _>>().map_err(CodecError::new)
    }
}

fn question() -> Ask {
    let fields = vec![FormField::text("region"), FormField::integer("n").optional()];
    Ask::form("region", "Which region?", FormSchema::new(fields))
}

#[derive(serde::Deserialize, Debug)]
#[allow(dead_code, reason = "only whether it decodes is of interest")]
enum Known {
    Eu,
}

#[derive(serde::Deserialize, Debug)]
#[allow(dead_code, reason = "only whether it decodes is of interest")]
struct Narrow {
    region: Known,
}

/// Asks with a state; what it does then, its argument says.
async fn ask_or_fail(ctx: &Ctx, args: Named) -> antiphon::Result<Reply<String>> {
    let Some(answer) = ctx.by_hand().form::<Region>(&question())? else {
        let state =
            if args.name == "large" { STATE.repeat(20_000) } else { format!("{{\"x\":\"{STATE}\"}}") };
        return Ok(InputRequired::ask(question()).with_state(state).into());
    };
    match &*args.name {
        "form" => ctx.by_hand().form::<Narrow>(&question()).map(drop)?,
        "state" => ctx.by_hand().state_as::<u32>().map(drop)?,
        "member" => ctx.by_hand().state_as::<std::collections::HashMap<String, bool>>().map(drop)?,
        "again" => return Ok(Ask::form("a b", ANSWER, FormSchema::new(Vec::new())).into()),
        "large" => return Ok(InputRequired::state_only(STATE.repeat(20_000)).into()),
        "panic" => panic!("at the disco"),
        _ => {}
    }
    Ok(Reply::Complete(match answer {
        Answer::Accept(_) => "accepted".to_owned(),
        Answer::Decline | Answer::Cancel => "no".to_owned(),
    }))
}

fn asking_server(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Fixture {
    fixture(|builder| {
        let bind = |caller: &Caller<'_>| {
            let user = caller.headers.and_then(|headers| headers.get("x-user"));
            match user.map(|user| user.to_str().unwrap()) {
                Some("?") => Err("the directory is down"),
                Some("app") => Ok(Some(Principal::client("app"))),
                Some(user) => Ok(Some(Principal::user(format!("{SUBJECT}-{user}")))),
                None => Ok(None),
            }
        };
        change(builder.bind_principal(bind).tool(Tool::new("ask_or_fail", ask_or_fail)))
    })
}

/// Runs a call of `ask_or_fail`; what it logged, and its last reply.
async fn log_of(
    fixture: &Fixture,
    name: &str,
    user: &str,
    spoil: impl FnOnce(&mut Value),
) -> (String, Value) {
    take_log();
    let params = json!({"name": "ask_or_fail", "arguments": {"name": name}});
    let (_, first) =
        send(Over::Http, &fixture.server, &request(1, "tools/call", params.clone()), Some("a")).await;
    let Some(state) = first["result"]["requestState"].as_str() else { return (take_log(), first) };
    let answers = json!({"region": {"action": "accept", "content": {"region": ANSWER}}});
    let mut retry =
        request(2, "tools/call", with(&params, json!({"requestState": state, "inputResponses": answers})));
    spoil(&mut retry);
    let (_, reply) = send(Over::Http, &fixture.server, &retry, Some(user)).await;
    let log = take_log();
    assert!(!log.contains(&state[4..]) && !log.contains(&state[state.len() - 40..]), "{name}: {log}");
    (log, reply)
}

/// Checks that the log names the cause, and that neither log nor reply holds a secret.
#[track_caller]
fn check(what: &str, expected: &str, (log, reply): &(String, Value)) {
    assert!(log.contains(expected), "{what}: {expected} in {log}");
    for secret in [STATE, ANSWER, SUBJECT, "BwcHBwcHBwc", "hunter2"] {
        assert!(!log.contains(secret), "{what}: the log holds {secret}: {log}");
        assert!(!reply.to_string().contains(secret), "{what}: the reply holds {secret}: {reply}");
    }
}

#[tokio::test]
async fn the_log_names_causes_and_holds_no_secret() {
    let same = |_: &mut Value| ();
    for (what, name, user, expected) in [
        ("done", "x", "a", "a round leaves"),
        ("a form that does not fit its type", "form", "a", "fits its form but not its type: expected `Eu`"),
        (
            "a state of another type",
            "state",
            "a",
            "state does not decode into the requested type: expected u32",
        ),
        ("a state with a member of another type", "member", "a", "expected a boolean"),
        ("an ask that cannot be", "again", "a", "1 to 64 visible ASCII"),
        ("a state that is too large", "large", "a", "largest=[(\"(the handler's state)\", 200000)"),
        ("a panic", "panic", "a", "panicked"),
        ("another caller", "x", "b", "reason=\"principal\""),
        ("a failing binder", "x", "?", "bind_principal failed: the directory is down"),
        ("a principal without a subject", "x", "app", "allow_client_principal()"),
    ] {
        check(what, expected, &log_of(&asking_server(|builder| builder), name, user, same).await);
    }
    let params = |retry: &mut Value, member: &str, value: Value| retry["params"][member] = value;
    let wrong = json!({"region": {"action": "accept", "content": {"region": "hunter2", "n": "hunter2"}}});
    let (_, reply) = log_of(&asking_server(|builder| builder), "x", "a", |retry| {
        params(retry, "inputResponses", wrong.clone());
    })
    .await;
    check("a wrong answer", "", &(String::new(), reply));
    for (what, spoil, expected) in [
        ("other arguments", json!({"arguments": {"name": "hunter2"}}), "reason=\"request\""),
        ("no token", json!({"requestState": "hunter2"}), "reason=\"malformed\""),
        ("no string", json!({"requestState": {"x": "hunter2"}}), "reason=\"not_a_string\""),
        ("an escape", json!({"requestState": "hunter2\n"}), "reason=\"malformed\""),
    ] {
        let spoil = |retry: &mut Value| retry["params"] = with(&retry["params"], spoil);
        check(what, expected, &log_of(&asking_server(|builder| builder), "x", "a", spoil).await);
    }
    let limits = |builder: ServerBuilder| {
        let limits = Limits::default().times_asked(1);
        builder.limits(limits)
    };
    let spoil = |retry: &mut Value| params(retry, "inputResponses", wrong);
    let (log, reply) = log_of(&asking_server(limits), "x", "a", spoil).await;
    check("asked too often", "", &(log, reply.clone()));
    assert_eq!(reply["error"]["data"]["limit"], "times_asked");
}

#[tokio::test]
async fn a_codec_that_fails_is_named_in_the_log_and_nowhere_else() {
    let codec = Plain::default();
    let broken = codec.broken.clone();
    let fixture = asking_server(|builder| builder.codec(Box::new(codec)));
    let open = log_of(&fixture, "x", "a", |_| broken.store(true, Ordering::SeqCst)).await;
    check("opening", "the key service is down", &open);
    assert_eq!(open.1["error"]["data"], json!({"reason": "invalid_request_state"}));
    let seal = log_of(&fixture, "x", "a", |_| ()).await;
    check("sealing", "the key service is down", &seal);
    assert_eq!(seal.1["error"], json!({"code": -32603, "message": "Internal error"}));
}

/// A codec opens what it likes: what it opens is verified all the same.
#[tokio::test]
async fn a_codec_is_not_trusted_with_claims() {
    let codec = Plain::default();
    let fixture = asking_server(|builder| builder.codec(Box::new(codec.clone())));
    let elsewhere = asking_server(|builder| builder.codec(Box::new(codec)).audience("elsewhere"));
    let params = json!({"name": "ask_or_fail", "arguments": {"name": "x"}});
    let (_, other) = send(Over::Http, &elsewhere.server, &request(1, "tools/call", params), Some("a")).await;
    for (what, forged, expected) in [
        ("another audience", state_of(&other), "reason=\"audience\""),
        ("nothing", String::new(), "reason=\"claims\""),
        ("zeros", "00".repeat(64), "reason=\"claims\""),
        ("another format", format!("8d03{}", "00".repeat(62)), "reason=\"format\""),
        ("an endless array", format!("9f01{}", "00".repeat(62)), "reason=\"claims\""),
        ("a long byte string", format!("8d02{}5affffffff", "00".repeat(4)), "reason=\"claims\""),
        ("no hexadecimal", "xyz".to_owned(), "the codec did not open a state"),
    ] {
        let spoil = |retry: &mut Value| retry["params"]["requestState"] = json!(forged);
        let got = log_of(&fixture, "x", "a", spoil).await;
        check(what, expected, &got);
        assert_eq!(got.1["error"]["data"], json!({"reason": "invalid_request_state"}), "{what}");
    }
}

#[test]
fn what_is_printed_for_debugging_holds_no_secret() {
    let required = || InputRequired::ask(region()).with_state(STATE);
    let outcome: HandlerOutcome<CallToolResult> = required().into_outcome();
    let reply: Reply<String> = required().into();
    let (mut headers, mut extensions) = (http::HeaderMap::new(), http::Extensions::new());
    headers.insert("authorization", format!("Bearer {STATE}").parse().unwrap());
    extensions.insert(Principal::user(SUBJECT));
    let caller = Caller::http(&headers, &extensions);
    for printed in
        [format!("{:?}", required()), format!("{outcome:?}"), format!("{reply:?}"), format!("{caller:?}")]
    {
        assert!(!printed.contains(STATE) && !printed.contains(SUBJECT), "{printed}");
    }
}

#[tokio::test]
async fn a_context_and_its_answers_print_no_secret() {
    let fixture = fixture(|builder| {
        builder.tool(Tool::new("print", async |ctx: &Ctx, _: Named| match ctx.leg() {
            1 => Reply::from(InputRequired::ask(region()).with_state(STATE)),
            _ => {
                Reply::Complete(format!("{ctx:?} {:?}", ctx.by_hand().input_responses().collect::<Vec<_>>()))
            }
        }))
    });
    let params = json!({"name": "print", "arguments": {"name": "x"}});
    let (_, first) = send(Over::Http, &fixture.server, &request(1, "tools/call", params.clone()), None).await;
    let answers =
        json!({"region": {"action": "accept", "content": {"region": ANSWER}, "_meta": {"x": ANSWER}}});
    let retry = with(&params, json!({"requestState": state_of(&first), "inputResponses": answers}));
    let (_, reply) = send(Over::Http, &fixture.server, &request(2, "tools/call", retry), None).await;
    let printed = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert!(printed.contains("region") && !printed.contains(STATE) && !printed.contains(ANSWER), "{printed}");
}

/// A panic in a handler's types, or in code that the author plugged in, costs this request and no other.
#[tokio::test]
async fn a_panic_anywhere_costs_one_request() {
    #[derive(schemars::JsonSchema)]
    struct Explosive {}
    impl<'de> serde::Deserialize<'de> for Explosive {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("while decoding")
        }
    }
    struct Exploding;
    impl Codec for Exploding {
        fn seal(&self, _: &[u8]) -> Result<String, CodecError> {
            panic!("while sealing")
        }
        fn open(&self, _: &str) -> Result<Vec<u8>, CodecError> {
            panic!("while opening")
        }
    }
    // Somebody listens: the span of a request looks for the trace in its state.
    take_log();
    let limits = Limits::default().handlers(1);
    let fixture = fixture(|builder| {
        let bind = |caller: &Caller<'_>| match caller.headers.is_some_and(|all| all.contains_key("x-user")) {
            true => panic!("while binding"),
            false => Ok::<_, String>(None),
        };
        let explosive = Tool::new("explosive", async |_: &Ctx, _: Explosive| "never");
        builder.limits(limits).bind_principal(bind).codec(Box::new(Exploding)).tool(explosive)
    });
    let named = |tool: &str| json!({"name": tool, "arguments": {"name": "x"}});
    for (what, params, user) in [
        ("decoding", named("explosive"), None),
        ("binding", named("echo"), Some("a")),
        ("sealing", named("ask"), None),
        ("opening", with(&named("ask"), json!({"requestState": "x"})), None),
    ] {
        let (status, reply) =
            send(Over::Http, &fixture.server, &request(1, "tools/call", params), user).await;
        assert_eq!((status, &reply["error"]["message"]), (200, &json!("Internal error")), "{what}: {reply}");
        let (_, reply) =
            send(Over::Http, &fixture.server, &request(1, "tools/call", named("echo")), None).await;
        assert_eq!(reply["result"]["content"][0]["text"], "x", "{what}: the place is free again");
    }
}

/// A caller whose identity failed is not anonymous, so that no handler takes them for it.
#[tokio::test]
async fn a_caller_whose_identity_failed_reaches_no_handler() {
    for user in ["?", "app"] {
        let fixture = asking_server(|builder| builder);
        let echo = json!({"name": "echo", "arguments": {"name": "x"}});
        let message = request(1, "tools/call", echo);
        let (status, reply) = send(Over::Http, &fixture.server, &message, Some(user)).await;
        assert_eq!((status, &reply["error"]["message"]), (200, &json!("Internal error")), "{user}: {reply}");
        assert_eq!(runs(&fixture.runs), 0, "{user}: the handler ran");
    }
    let fixture = asking_server(|builder| builder.allow_client_principal(true));
    let echo = json!({"name": "echo", "arguments": {"name": "x"}});
    let (_, reply) = send(Over::Http, &fixture.server, &request(1, "tools/call", echo), Some("app")).await;
    assert_eq!(reply["result"]["content"][0]["text"], "x");
}
