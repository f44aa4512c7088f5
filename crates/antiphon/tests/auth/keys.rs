//! The keys of an issuer on a real socket: fetched once for all, in time, and no more often than that.
#![cfg(feature = "auth")]

use crate::auth_support::{issuer_server::IssuerServer, *};
use crate::common::{Fixture, askable, post::Got, request, runs};
use antiphon::serve::http::{
    HttpService,
    auth::{Issuer, ResourceServer},
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// A service whose issuer publishes its keys at `/jwks` of a server.
struct World {
    issuer: IssuerServer,
    service: HttpService,
    fixture: Fixture,
}

async fn world(issuer: Issuer, server: IssuerServer) -> World {
    let (service, fixture) = behind(ResourceServer::builder(RESOURCE).issuer(issuer), |builder| builder);
    World { issuer: server, service, fixture }
}

async fn publishing(keys: &[&Key]) -> World {
    let server = IssuerServer::start().await;
    server.set("/jwks", 200, key_set(keys));
    world(Issuer::new(ISSUER).jwks_url(server.url("/jwks")), server).await
}

impl World {
    async fn send(&self, key: &Key) -> Got {
        let mut claims = claims("alice@app", "");
        claims["exp"] = json!(now() + 1_000_000);
        send(&self.service, &message(), &key.sign(&claims)).await
    }

    #[track_caller]
    fn check(&self, what: &str, got: &Got, status: u16, fetches: usize) {
        assert_eq!(got.status, status, "{what}: {:?}", got.body);
        assert_eq!(self.issuer.asked().len(), fetches, "{what}: {:?}", self.issuer.asked());
    }

    fn later(&self, seconds: u64) {
        self.fixture.clock.advance(Duration::from_secs(seconds));
    }
}

fn message() -> Value {
    let (method, params) = askable()[0].clone();
    request(1, method, params)
}

#[tokio::test]
async fn many_who_come_at_once_wait_for_one_fetch() {
    let key = Key::new("one", "ES256");
    let world = publishing(&[&key]).await;
    world.issuer.hold();
    let all = join_all((0..50).map(|_| world.send(&key)));
    let release = async {
        world.issuer.asked_again().await;
        world.issuer.release();
    };
    let (all, ()) = tokio::join!(all, release);
    for got in all {
        world.check("one of many", &got, 200, 1);
    }
    let got = world.send(&key).await;
    world.check("afterwards", &got, 200, 1);
}

#[tokio::test]
async fn keys_rotate() {
    let (old, new) = (Key::new("old", "RS256"), Key::new("new", "ES256"));
    let world = publishing(&[&old]).await;
    world.check("the old key", &world.send(&old).await, 200, 1);
    // Both are published; tokens of the new one come.
    world.issuer.set("/jwks", 200, key_set(&[&old, &new]));
    world.check("the new key, too early to ask again", &world.send(&new).await, 401, 1);
    world.later(30);
    world.check("the new key", &world.send(&new).await, 200, 2);
    world.check("the old key beside it", &world.send(&old).await, 200, 2);
    // The old one is taken out.
    world.issuer.set("/jwks", 200, key_set(&[&new]));
    world.later(299);
    world.check("the old key, while the set is fresh", &world.send(&old).await, 200, 2);
    world.later(301);
    world.check("the old key, ten minutes later", &world.send(&old).await, 401, 3);
    world.check("the new key still", &world.send(&new).await, 200, 3);
}

/// Fetched in advance: nobody waits, and what is there is used meanwhile.
#[tokio::test]
async fn a_set_that_ages_is_fetched_while_it_is_used() {
    let key = Key::new("one", "ES256");
    let world = publishing(&[&key]).await;
    world.check("first", &world.send(&key).await, 200, 1);
    world.issuer.asked_again().await;
    world.issuer.hold();
    world.later(300);
    assert_eq!(world.send(&key).await.status, 200);
    // The fetch is under way, and answers nobody yet.
    world.issuer.asked_again().await;
    world.check("meanwhile", &world.send(&key).await, 200, 2);
    world.issuer.release();
    world.later(300);
    world.check("ten minutes later", &world.send(&key).await, 200, 2);
}

#[tokio::test]
async fn a_flood_of_unknown_keys_asks_the_issuer_once() {
    let (key, stranger) = (Key::new("one", "ES256"), Key::new("invented", "ES256"));
    let world = publishing(&[&key]).await;
    world.check("first", &world.send(&key).await, 200, 1);
    world.later(30);
    for round in 0..3 {
        let all = join_all((0..100).map(|_| world.send(&stranger))).await;
        for got in &all {
            world.check("invented", got, 401, 2 + round);
        }
        world.check("who has a good one", &world.send(&key).await, 200, 2 + round);
        world.later(30);
    }
    assert_eq!(runs(&world.fixture.runs), 4);
}

/// A cancelled request does not cancel the fetch of the keys: otherwise one client could keep the keys from all others.
#[tokio::test]
async fn a_fetch_goes_on_without_who_began_it() {
    let key = Key::new("one", "ES256");
    let world = publishing(&[&key]).await;
    world.issuer.hold();
    tokio::select! {
        biased;
        got = world.send(&key) => panic!("answered: {:?}", got.body),
        () = world.issuer.asked_again() => {}
    }
    let waits = world.send(&key);
    world.issuer.release();
    world.check("who comes next", &waits.await, 200, 1);
}

#[tokio::test]
async fn an_issuer_that_is_down_closes_the_door() {
    let key = Key::new("one", "ES256");
    let good = key_set(&[&key]).to_string();
    for (what, status, body) in [
        ("an error", 500, good.clone()),
        ("nothing there", 404, good.clone()),
        ("a redirect", 302, good.clone()),
        ("no JSON", 200, "<html>".to_owned()),
        ("no set", 200, "{}".to_owned()),
        ("no keys", 200, r#"{"keys": []}"#.to_owned()),
        ("too many keys", 200, json!({"keys": vec![key.public(); 101]}).to_string()),
        ("too long", 200, format!("{good}{}", " ".repeat(256 * 1024))),
    ] {
        let world = publishing(&[]).await;
        world.issuer.set("/jwks", status, body);
        let got = world.send(&key).await;
        world.check(what, &got, 503, 1);
        // Another token would not help: nobody is told to get one.
        assert_eq!((challenge(&got), &got.headers["retry-after"]), (None, &"5".parse().unwrap()), "{what}");
        world.check(what, &world.send(&key).await, 503, 1);
        assert_eq!(runs(&world.fixture.runs), 0, "{what}");
        world.issuer.set("/jwks", 200, &good);
        world.later(5);
        world.check("back again", &world.send(&key).await, 200, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_says_nothing_is_waited_for_in_vain() {
    let key = Key::new("one", "ES256");
    let world = publishing(&[&key]).await;
    world.issuer.hold();
    assert_eq!(world.send(&key).await.status, 503);
}

#[tokio::test]
async fn keys_are_kept_for_an_hour_without_their_issuer() {
    let key = Key::new("one", "ES256");
    let world = publishing(&[&key]).await;
    world.check("first", &world.send(&key).await, 200, 1);
    world.issuer.set("/jwks", 500, "");
    world.later(3599);
    world.check("59 minutes later", &world.send(&key).await, 200, 2);
    world.check("and no more often", &world.send(&key).await, 200, 2);
    world.later(1);
    world.check("an hour later", &world.send(&key).await, 503, 2);
    world.issuer.set("/jwks", 200, key_set(&[&key]));
    world.later(30);
    world.check("back again", &world.send(&key).await, 200, 3);
}

#[tokio::test]
async fn keys_are_found_by_the_metadata_of_their_issuer() {
    let key = Key::new("one", "ES256");
    let [rfc8414, inserted, appended] = [
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
    ];
    for (what, place, issuer, keys_at, expected) in [
        ("by RFC 8414", rfc8414, "/tenant", "", 200),
        ("by OpenID Connect", inserted, "/tenant", "", 200),
        ("by OpenID Connect, at its end", appended, "/tenant", "", 200),
        ("of another issuer", rfc8414, "/other", "", 503),
        ("with a slash more", rfc8414, "/tenant/", "", 503),
        ("keys over plain http", rfc8414, "/tenant", "http://keys.example.com/jwks", 503),
        ("keys in a file", rfc8414, "/tenant", "file:///etc/passwd", 503),
    ] {
        let server = IssuerServer::start().await;
        let name = server.url("/tenant");
        let keys_at = if keys_at.is_empty() { server.url("/keys") } else { keys_at.to_owned() };
        server.set(place, 200, json!({"issuer": server.url(issuer), "jwks_uri": keys_at}));
        server.set("/keys", 200, key_set(&[&key]));
        let world = world(Issuer::new(&name), server).await;
        let mut claims = claims("alice@app", "");
        claims["iss"] = json!(name);
        let got = send(&world.service, &message(), &key.sign(&claims)).await;
        assert_eq!(got.status, expected, "{what}: {:?} {:?}", got.body, world.issuer.asked());
    }
}

/// Requests with an invented key, and an issuer that does not answer, do not delay requests whose key is known.
#[tokio::test]
async fn an_issuer_that_is_held_up_holds_up_strangers_alone() {
    let (key, stranger) = (Key::new("one", "ES256"), Key::new("invented", "ES256"));
    let world = publishing(&[&key]).await;
    world.check("first", &world.send(&key).await, 200, 1);
    world.issuer.asked_again().await;
    world.issuer.hold();
    world.later(30);
    let strangers = join_all((0..50).map(|_| world.send(&stranger)));
    let others = async {
        world.issuer.asked_again().await;
        // Nothing has answered, and nothing will before this is over.
        for _ in 0..3 {
            world.check("a known key", &world.send(&key).await, 200, 2);
            world.later(30);
        }
        world.issuer.release();
    };
    let (strangers, ()) = tokio::join!(strangers, others);
    for got in strangers {
        world.check("invented", &got, 401, 2);
    }
}

/// An aged set goes on when its issuer says nothing; once it is too old, the door is closed.
#[tokio::test(start_paused = true)]
async fn an_issuer_that_falls_silent_is_done_without_for_an_hour() {
    let key = Key::new("one", "ES256");
    let world = publishing(&[&key]).await;
    world.check("first", &world.send(&key).await, 200, 1);
    world.issuer.hold();
    for (what, later, status) in
        [("ten minutes later", 600, 200), ("59 minutes later", 2_999, 200), ("an hour later", 1, 503)]
    {
        world.later(later);
        assert_eq!(world.send(&key).await.status, status, "{what}");
    }
}

/// A peer between us and the issuer that sends without end.
async fn endless(head: &'static str, more: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/jwks", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    sent = stream.write_all(more.as_bytes()).await;
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let key = Key::new("one", "ES256");
    let ok = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    for (what, head, more) in [
        ("headers", ok, "x-more: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n"),
        ("one header", ok, "x"),
        ("chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "8\r\n{\"keys\":\r\n"),
        ("a body", "HTTP/1.1 200 OK\r\n\r\n", "{\"keys\":[           "),
        (
            "a body of a length",
            "HTTP/1.1 200 OK\r\ncontent-length: 9000000000\r\n\r\n",
            "{\"keys\":[           ",
        ),
        ("no HTTP", "", "SSH-2.0-x\r\n"),
        ("a status", "HTTP/1.1 200 ", "xxxxxxxxxxxxxxxx"),
    ] {
        let issuer = Issuer::new(ISSUER).jwks_url(endless(head, more).await);
        let (service, fixture) = behind(ResourceServer::builder(RESOURCE).issuer(issuer), |builder| builder);
        let got = send(&service, &message(), &key.sign(&claims("alice@app", ""))).await;
        assert_eq!((got.status, runs(&fixture.runs)), (503, 0), "{what}: {:?}", got.body);
    }
}
