//! The keys of an issuer on a real socket: fetched once for all, in time, and no more often than that.
#![cfg(feature = "auth")]

use crate::auth_support::{issuer_server::IssuerServer, *};
use crate::common::{Fixture, askable, post::HttpReply, request, runs};
use antiphon::serve::http::{
    HttpService,
    auth::{Issuer, ResourceServer},
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// A service whose issuer publishes its keys at `/jwks` of a server.
struct IssuerFixture {
    issuer: IssuerServer,
    service: HttpService,
    fixture: Fixture,
}

async fn keyed(issuer: Issuer, server: IssuerServer) -> IssuerFixture {
    let (service, fixture) = behind(ResourceServer::builder(RESOURCE).issuer(issuer), |builder| builder);
    IssuerFixture { issuer: server, service, fixture }
}

async fn publishing(keys: &[&Key]) -> IssuerFixture {
    let server = IssuerServer::start().await;
    server.set("/jwks", 200, key_set(keys));
    keyed(Issuer::new(ISSUER).jwks_url(server.url("/jwks")), server).await
}

impl IssuerFixture {
    async fn send(&self, key: &Key) -> HttpReply {
        let mut claims = claims("alice@app", "");
        claims["exp"] = json!(now() + 1_000_000);
        send(&self.service, &message(), &key.sign(&claims)).await
    }

    #[track_caller]
    fn check(&self, what: &str, got: &HttpReply, status: u16, fetches: usize) {
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
    let keyed = publishing(&[&key]).await;
    keyed.issuer.hold();
    let all = join_all((0..50).map(|_| keyed.send(&key)));
    let release = async {
        keyed.issuer.asked_again().await;
        keyed.issuer.release();
    };
    let (all, ()) = tokio::join!(all, release);
    for got in all {
        keyed.check("one of many", &got, 200, 1);
    }
    let got = keyed.send(&key).await;
    keyed.check("afterwards", &got, 200, 1);
}

#[tokio::test]
async fn keys_rotate() {
    let (old, new) = (Key::new("old", "RS256"), Key::new("new", "ES256"));
    let keyed = publishing(&[&old]).await;
    keyed.check("the old key", &keyed.send(&old).await, 200, 1);
    // Both are published; tokens of the new one come.
    keyed.issuer.set("/jwks", 200, key_set(&[&old, &new]));
    keyed.check("the new key, too early to ask again", &keyed.send(&new).await, 401, 1);
    keyed.later(30);
    keyed.check("the new key", &keyed.send(&new).await, 200, 2);
    keyed.check("the old key beside it", &keyed.send(&old).await, 200, 2);
    // The old one is taken out.
    keyed.issuer.set("/jwks", 200, key_set(&[&new]));
    keyed.later(299);
    keyed.check("the old key, while the set is fresh", &keyed.send(&old).await, 200, 2);
    keyed.later(301);
    keyed.check("the old key, ten minutes later", &keyed.send(&old).await, 401, 3);
    keyed.check("the new key still", &keyed.send(&new).await, 200, 3);
}

/// Fetched in advance: nobody waits, and what is there is used meanwhile.
#[tokio::test]
async fn a_set_that_ages_is_fetched_while_it_is_used() {
    let key = Key::new("one", "ES256");
    let keyed = publishing(&[&key]).await;
    keyed.check("first", &keyed.send(&key).await, 200, 1);
    keyed.issuer.asked_again().await;
    keyed.issuer.hold();
    keyed.later(300);
    assert_eq!(keyed.send(&key).await.status, 200);
    // The fetch is under way, and answers nobody yet.
    keyed.issuer.asked_again().await;
    keyed.check("meanwhile", &keyed.send(&key).await, 200, 2);
    keyed.issuer.release();
    keyed.later(300);
    keyed.check("ten minutes later", &keyed.send(&key).await, 200, 2);
}

#[tokio::test]
async fn a_flood_of_unknown_keys_asks_the_issuer_once() {
    let (key, stranger) = (Key::new("one", "ES256"), Key::new("invented", "ES256"));
    let keyed = publishing(&[&key]).await;
    keyed.check("first", &keyed.send(&key).await, 200, 1);
    keyed.later(30);
    for round in 0..3 {
        let all = join_all((0..100).map(|_| keyed.send(&stranger))).await;
        for got in &all {
            keyed.check("invented", got, 401, 2 + round);
        }
        keyed.check("who has a good one", &keyed.send(&key).await, 200, 2 + round);
        keyed.later(30);
    }
    assert_eq!(runs(&keyed.fixture.runs), 4);
}

/// A cancelled request does not cancel the fetch of the keys: otherwise one client could keep the keys from all others.
#[tokio::test]
async fn a_fetch_goes_on_without_who_began_it() {
    let key = Key::new("one", "ES256");
    let keyed = publishing(&[&key]).await;
    keyed.issuer.hold();
    tokio::select! {
        biased;
        got = keyed.send(&key) => panic!("answered: {:?}", got.body),
        () = keyed.issuer.asked_again() => {}
    }
    let waits = keyed.send(&key);
    keyed.issuer.release();
    keyed.check("who comes next", &waits.await, 200, 1);
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
        let keyed = publishing(&[]).await;
        keyed.issuer.set("/jwks", status, body);
        let got = keyed.send(&key).await;
        keyed.check(what, &got, 503, 1);
        // Another token would not help: nobody is told to get one.
        assert_eq!((challenge(&got), &got.headers["retry-after"]), (None, &"5".parse().unwrap()), "{what}");
        keyed.check(what, &keyed.send(&key).await, 503, 1);
        assert_eq!(runs(&keyed.fixture.runs), 0, "{what}");
        keyed.issuer.set("/jwks", 200, &good);
        keyed.later(5);
        keyed.check("back again", &keyed.send(&key).await, 200, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_does_not_reply_is_a_timeout() {
    let key = Key::new("one", "ES256");
    let keyed = publishing(&[&key]).await;
    keyed.issuer.hold();
    assert_eq!(keyed.send(&key).await.status, 503);
}

#[tokio::test]
async fn keys_are_kept_for_an_hour_without_their_issuer() {
    let key = Key::new("one", "ES256");
    let keyed = publishing(&[&key]).await;
    keyed.check("first", &keyed.send(&key).await, 200, 1);
    keyed.issuer.set("/jwks", 500, "");
    keyed.later(3599);
    keyed.check("59 minutes later", &keyed.send(&key).await, 200, 2);
    keyed.check("and no more often", &keyed.send(&key).await, 200, 2);
    keyed.later(1);
    keyed.check("an hour later", &keyed.send(&key).await, 503, 2);
    keyed.issuer.set("/jwks", 200, key_set(&[&key]));
    keyed.later(30);
    keyed.check("back again", &keyed.send(&key).await, 200, 3);
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
        let keyed = keyed(Issuer::new(&name), server).await;
        let mut claims = claims("alice@app", "");
        claims["iss"] = json!(name);
        let got = send(&keyed.service, &message(), &key.sign(&claims)).await;
        assert_eq!(got.status, expected, "{what}: {:?} {:?}", got.body, keyed.issuer.asked());
    }
}

/// Requests with an invented key, and an issuer that does not answer, do not delay requests whose key is known.
#[tokio::test]
async fn an_issuer_that_is_held_up_holds_up_strangers_alone() {
    let (key, stranger) = (Key::new("one", "ES256"), Key::new("invented", "ES256"));
    let keyed = publishing(&[&key]).await;
    keyed.check("first", &keyed.send(&key).await, 200, 1);
    keyed.issuer.asked_again().await;
    keyed.issuer.hold();
    keyed.later(30);
    let strangers = join_all((0..50).map(|_| keyed.send(&stranger)));
    let others = async {
        keyed.issuer.asked_again().await;
        // Nothing has answered, and nothing will before this is over.
        for _ in 0..3 {
            keyed.check("a known key", &keyed.send(&key).await, 200, 2);
            keyed.later(30);
        }
        keyed.issuer.release();
    };
    let (strangers, ()) = tokio::join!(strangers, others);
    for got in strangers {
        keyed.check("invented", &got, 401, 2);
    }
}

/// An aged set goes on when its issuer says nothing; once it is too old, the door is closed.
#[tokio::test(start_paused = true)]
async fn an_issuer_that_falls_silent_is_done_without_for_an_hour() {
    let key = Key::new("one", "ES256");
    let keyed = publishing(&[&key]).await;
    keyed.check("first", &keyed.send(&key).await, 200, 1);
    keyed.issuer.hold();
    for (what, later, status) in
        [("ten minutes later", 600, 200), ("59 minutes later", 2_999, 200), ("an hour later", 1, 503)]
    {
        keyed.later(later);
        assert_eq!(keyed.send(&key).await.status, status, "{what}");
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
