//! Permissions of a token: the scopes of tools, prompts, resources and templates, on every leg.
#![cfg(feature = "auth")]

use crate::common;

use crate::auth_support::*;
use crate::common::{
    Over, answers,
    log::take_log,
    post::{HttpReply, correct, post},
    request, state_of, with,
};
use antiphon::{
    Clock, Error,
    client::{
        Call, Client,
        transport::{HttpTransport, Token, TokenRequest},
    },
    seal::Principal,
    serve::http::{HttpOptions, HttpService, auth::ResourceServerBuilder},
    server::{
        Answer, Ask, Bearer, Ctx, NoArguments, Prompt, Reply, Resource, ResourceTemplate, Server,
        ServerBuilder, Tool,
    },
    wire::{
        content::ResourceContents,
        forms::{FormField, FormSchema},
    },
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

fn region() -> Ask {
    Ask::form("region", "Which region?", FormSchema::new(vec![FormField::text("region")]))
}

/// Asks once, as a tool, a prompt, a resource and a template, each of which needs `write` and `orders`.
pub(crate) fn asking(runs: &Arc<AtomicUsize>) -> impl FnOnce(ServerBuilder) -> ServerBuilder {
    macro_rules! handler {
        ($args:ty, $result:ty, $made:expr) => {{
            let runs = Arc::clone(runs);
            move |ctx: &Ctx, _: $args| handler!(@body runs, ctx, $result, $made)
        }};
        ($result:ty, $made:expr) => {{
            let runs = Arc::clone(runs);
            move |ctx: &Ctx| handler!(@body runs, ctx, $result, $made)
        }};
        (@body $runs:ident, $ctx:ident, $result:ty, $made:expr) => {{
            $runs.fetch_add(1, Ordering::SeqCst);
            let answer = $ctx.by_hand().form::<common::Region>(&region());
            async move {
                Ok::<Reply<$result>, Error>(match answer? {
                    None => Reply::from(region()),
                    Some(Answer::Accept(_)) => Reply::Complete($made),
                    Some(_) => return Err(Error::user_facing("no")),
                })
            }
        }};
    }
    let scopes = ["write", "orders"];
    let contents = || ResourceContents::text("guarded://one", "text");
    let tool = Tool::new("guarded", handler!(NoArguments, String, "done".to_owned())).scopes(scopes);
    let prompt = Prompt::new("guarded", handler!(serde_json::Map<String, Value>, String, "done".to_owned()))
        .scopes(scopes);
    let resource =
        Resource::new("guarded://one", "one", handler!(ResourceContents, contents())).scopes(scopes);
    let template = ResourceTemplate::new(
        "guarded://many/{id}",
        "many",
        handler!(serde_json::Map<String, Value>, ResourceContents, contents()),
    )
    .scopes(scopes)
    .complete("id", async |_| ["1"]);
    |builder| builder.tool(tool).prompt(prompt).resource(resource).template(template).resource_updates(true)
}

pub(crate) fn guarded() -> [(&'static str, Value); 4] {
    [
        ("tools/call", json!({"name": "guarded"})),
        ("prompts/get", json!({"name": "guarded"})),
        ("resources/read", json!({"uri": "guarded://one"})),
        ("resources/read", json!({"uri": "guarded://many/1"})),
    ]
}

#[track_caller]
fn assert_short(what: &str, got: &HttpReply) {
    got.check(what, (403, -32600));
    let expected = expected_challenge("error=\"insufficient_scope\", scope=\"mcp write orders\"");
    assert_eq!(challenge(got), Some(&*expected), "{what}");
    let data = json!({"reason": "insufficient_scope", "scopes": ["write", "orders"]});
    assert_eq!(got.json()["error"]["data"], data, "{what}");
}

#[tokio::test]
async fn scopes_are_checked_on_every_leg() {
    let key = Key::new("one", "ES256");
    let auth = || trusting(&[&key]).required_scopes(["mcp"]).scope_implies("admin", ["write"]);
    let token = |scopes: &str| key.sign(&claims("alice@app", scopes));
    let short = ["mcp", "mcp write", "mcp orders", "mcp write:orders", "mcp Write orders", "mcp admin"];
    for (method, params) in guarded() {
        let runs = Arc::default();
        let (service, _) = behind(auth(), asking(&runs));
        let first = request(1, method, params.clone());
        for scopes in short {
            assert_short(scopes, &send(&service, &first, &token(scopes)).await);
        }
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        let got = send(&service, &first, &token("orders mcp write")).await;
        let retry =
            with(&params, json!({"requestState": state_of(&got.json()), "inputResponses": answers()}));
        // Before the state is looked at: nothing is learned of it.
        let forged = with(&retry, json!({"requestState": "r1.forged"}));
        for scopes in short {
            assert_short(scopes, &send(&service, &request(2, method, retry.clone()), &token(scopes)).await);
            assert_short(scopes, &send(&service, &request(2, method, forged.clone()), &token(scopes)).await);
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{method}");
        // A broader scope will do, and so will another token of hers.
        let got = send(&service, &request(2, method, retry), &token("mcp admin orders")).await;
        assert_eq!(got.json()["result"]["resultType"], "complete", "{method}: {:?}", got.body);
    }
}

/// Claims of a token that hold scopes.
#[tokio::test]
async fn scopes_by_all_their_names() {
    let key = Key::new("one", "ES256");
    for (what, name, value, status) in [
        ("a text", "scope", json!("mcp write orders"), 200),
        ("a text with more spaces", "scope", json!(" mcp  write orders "), 200),
        ("a list", "scope", json!(["mcp", "write", "orders"]), 200),
        ("a text by the short name", "scp", json!("mcp write orders"), 200),
        ("a list by the short name", "scp", json!(["mcp", "write", "orders"]), 200),
        ("one text in a list", "scp", json!(["mcp", "write orders"]), 403),
        ("commas", "scope", json!("mcp write,orders"), 403),
        ("none", "scope", Value::Null, 403),
    ] {
        let (service, _) = behind(trusting(&[&key]), asking(&Arc::default()));
        let mut claims = claims("alice@app", "");
        claims.as_object_mut().unwrap().remove("scope");
        claims[name] = value;
        let (method, params) = guarded()[0].clone();
        let got = send(&service, &request(1, method, params), &key.sign(&claims)).await;
        assert_eq!(got.status, status, "{what}: {:?}", got.body);
    }
}

/// Suggestions and news tell what is there, as reading does.
#[tokio::test]
async fn completion_and_subscriptions_need_what_reading_needs() {
    let key = Key::new("one", "ES256");
    let (service, _) = behind(trusting(&[&key]).required_scopes(["mcp"]), asking(&Arc::default()));
    let token = |scopes: &str| key.sign(&claims("alice@app", scopes));
    let suggest = json!({
        "ref": {"type": "ref/resource", "uri": "guarded://many/{id}"}, "argument": {"name": "id", "value": ""}
    });
    let suggest = request(1, "completion/complete", suggest);
    assert_short("completion", &send(&service, &suggest, &token("mcp")).await);
    let got = send(&service, &suggest, &token("mcp write orders")).await;
    assert_eq!(got.json()["result"]["completion"]["values"], json!(["1"]));
    for uri in ["guarded://one", "guarded://many/7"] {
        let listen = json!({"notifications": {"resourceSubscriptions": ["ask://one", uri]}});
        let listen = request(1, "subscriptions/listen", listen);
        assert_short(uri, &send(&service, &listen, &token("mcp write")).await);
    }
    // Lists name them to everybody.
    let got = send(&service, &request(1, "tools/list", json!({})), &token("mcp")).await;
    assert!(String::from_utf8_lossy(&got.body).contains("guarded"));
}

#[tokio::test]
async fn without_authentication_over_http_the_door_is_closed() {
    let runs = Arc::default();
    let fixture = common::fixture(asking(&runs));
    let open = HttpService::new(fixture.server.clone(), HttpOptions::default());
    for (method, params) in guarded() {
        let got = post(&open, correct(&request(1, method, params.clone()))).await;
        got.check(method, (403, -32600));
        assert_eq!(challenge(&got), Some("Bearer error=\"insufficient_scope\", scope=\"write orders\""));
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        // A layer of one's own in front may say what the caller may do.
        let mut request = correct(&request(1, method, params.clone()));
        let bearer = Bearer::new(Principal::user("alice")).with_scopes(["write", "orders"]);
        request.extensions_mut().insert(bearer.principal().clone());
        request.extensions_mut().insert(bearer);
        assert_eq!(post(&open, request).await.status, 200, "{method}");
        runs.store(0, Ordering::SeqCst);
    }
    // On stdio nobody is authenticated, and whoever owns the process may use it.
    let (method, params) = guarded()[0].clone();
    let (_, reply) = common::send(Over::Stdio, &fixture.server, &request(1, method, params), None).await;
    assert!(!state_of(&reply).is_empty());
}

#[test]
fn a_scope_that_no_header_can_hold_is_refused_when_the_server_is_built() {
    for scope in ["", "a b", "a\"", "a\\", "a\r\nx: y", "é"] {
        let tool = Tool::new("t", async |_: &Ctx, _: NoArguments| "").scopes([scope]);
        let error = Server::builder("s", "1").tool(tool).build().unwrap_err().to_string();
        assert!(error.contains("`t` needs the scope"), "{scope:?}: {error}");
    }
}

/// Our client over a real socket: the reply names the scopes, the client gets them, and the call goes on where it was; the
/// handler sees whose token it is.
#[tokio::test]
async fn a_client_steps_up_in_the_middle() {
    let key = Arc::new(Key::new("one", "RS256"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let who = {
        let seen = Arc::clone(&seen);
        Tool::new("who", move |ctx: &Ctx, _: NoArguments| {
            let bearer = ctx.bearer().unwrap();
            let scopes: Vec<&str> = bearer.scopes().collect();
            let (principal, tenant) = (ctx.principal().unwrap(), &bearer.claims()["tenant"]);
            let told = format!(
                "{} {} {} {tenant} {scopes:?}",
                principal.issuer().unwrap(),
                principal.subject().unwrap(),
                principal.client_id().unwrap()
            );
            seen.lock().unwrap().push(told.clone());
            async move { told }
        })
        .scopes(["write"])
    };
    let server = common::fixture(|builder| builder.tool(who)).server;
    let auth: ResourceServerBuilder = trusting(&[&key]).required_scopes(["mcp"]);
    let options = HttpOptions::default().authorize(auth.build().unwrap());
    let running = common::socket::serve_this(server, options).await;
    let challenges = Arc::new(Mutex::new(Vec::new()));
    let provider = {
        let (key, challenges) = (Arc::clone(&key), Arc::clone(&challenges));
        move |asked: TokenRequest| {
            let scopes = if asked.challenge.is_some() { "mcp write" } else { "mcp" };
            challenges.lock().unwrap().extend(asked.challenge);
            let mut claims = claims("alice@app", scopes);
            claims["tenant"] = json!("acme");
            let token = Token::from(key.sign(&claims));
            async move { Ok::<_, std::io::Error>(Some(token)) }
        }
    };
    let url = format!("http://{}/mcp", running.address);
    let transport = HttpTransport::builder(url).bearer_provider(provider).build().unwrap();
    let client = Client::builder("test", "1").connect(transport);
    client.call(Call::tool("who", json!({})).unwrap()).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [format!("{ISSUER} alice app \"acme\" [\"mcp\", \"write\"]")]);
    let expected = expected_challenge("error=\"insufficient_scope\", scope=\"mcp write\"");
    assert_eq!(*challenges.lock().unwrap(), [expected]);
}

/// A client with too few scopes can repeat its request as fast as it likes: the log has one warning a minute.
#[tokio::test]
async fn missing_scopes_do_not_fill_the_log() {
    let key = Key::new("one", "ES256");
    let auth = || trusting(&[&key]).required_scopes(["mcp"]);
    let warnings =
        || take_log().lines().filter(|line| line.starts_with("WARN")).map(str::to_owned).collect::<Vec<_>>();
    for (what, scopes, parts) in [
        ("of a tool", "mcp", [r#"needed=["write", "orders"]"#, "suppressed=0"]),
        ("of the server", "other", ["status=403", "about=\"needed scopes: mcp\""]),
    ] {
        let (clock, hand) = Clock::manual(SystemTime::UNIX_EPOCH + Duration::from_secs(now()));
        let (service, _) = behind(auth(), |builder| asking(&Arc::default())(builder).clock(clock));
        let token = key.sign(&claims("alice@app", scopes));
        let (method, params) = guarded()[0].clone();
        let refused = async || send(&service, &request(1, method, params.clone()), &token).await.status;
        take_log();
        for n in 0..50 {
            assert_eq!(refused().await, 403, "{what}");
            let (logged, expected) = (warnings(), usize::from(n == 0));
            assert_eq!(logged.len(), expected, "{what}, {n}: {logged:?}");
            assert!(logged.iter().all(|line| parts.iter().all(|part| line.contains(part))), "{logged:?}");
        }
        hand.advance(Duration::from_secs(60));
        assert_eq!(refused().await, 403, "{what}");
        let logged = warnings();
        assert!(logged.len() == 1 && logged[0].contains("suppressed=49"), "{what}: {logged:?}");
    }
}
