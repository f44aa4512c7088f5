//! Secrets in logs and errors: each one of whole flows is searched in everything that is logged or shown.

use crate::support::{Clock, client, get, session};
use antiphon_oauth::{
    ByHand, Consent, Credentials, DeviceSignIn, Error, Grant, OAuth, OAuthBuilder, PendingSignIn,
    testing::{Attack, DeviceAnswer, TestAuthority},
};
use std::{
    collections::BTreeSet,
    fmt::{Debug, Write as _},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber,
};

/// Writes down every event and span of every level, with all fields.
#[derive(Clone, Default)]
struct Log {
    text: Arc<Mutex<String>>,
    spans: Arc<AtomicU64>,
}

struct Writer<'a>(&'a mut String);

impl Visit for Writer<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Log {
    fn write(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Writer<'_>)) {
        let mut text = self.text.lock().unwrap();
        let _ = write!(text, "\n{} {}", metadata.level(), metadata.target());
        record(&mut Writer(&mut text));
    }

    fn note(&self, shown: &str) {
        self.text.lock().unwrap().push_str(shown);
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.write(span.metadata(), |writer| span.record(writer));
        Id::from_u64(1 + self.spans.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Writer(&mut self.text.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.write(event.metadata(), |writer| event.record(writer));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Text and debugging form of an error and of all its causes.
fn shown(fault: &Error) -> String {
    let mut text = format!("\nerror: {fault} {fault:?}");
    let mut cause = std::error::Error::source(fault);
    while let Some(one) = cause {
        let _ = write!(text, ": {one} {one:?}");
        cause = one.source();
    }
    text
}

fn shown_of(outcome: Result<(), Error>) -> String {
    outcome.err().as_ref().map(shown).unwrap_or_default()
}

/// The secrets in the requests that the servers saw.
fn secrets(authority: &TestAuthority) -> BTreeSet<String> {
    const NAMES: [&str; 9] = [
        "code",
        "code_verifier",
        "state",
        "refresh_token",
        "token",
        "client_secret",
        "client_assertion",
        "device_code",
        "assertion",
    ];
    let mut found = BTreeSet::new();
    for seen in authority.seen() {
        let form = seen.form();
        let named = NAMES.iter().flat_map(|name| [seen.query.get(*name), form.get(*name)]).flatten();
        found.extend(named.cloned());
        let sent = seen.headers.get("authorization").and_then(|value| value.split_once(' '));
        found.extend(sent.map(|(_, token)| token.to_owned()));
        found.extend(seen.headers.get("dpop").cloned());
    }
    found.retain(|secret| !secret.is_empty());
    found
}

/// Goes through whole flows of one client. Errors and public values are noted.
async fn flows(log: &Log, authority: &TestAuthority, builder: impl Fn() -> OAuthBuilder) {
    let clock = Clock::new();
    let now = clock.clone();
    let builder = builder().clock(move || now.now());
    log.note(&format!("{builder:?}"));
    let client = builder.build().unwrap();
    let session = client.session(&authority.resource()).unwrap();
    for round in 0..4 {
        // A sign-in, a refresh because of the time, one because of a refusal, and one that the server does not accept any more.
        let status = get(&session, authority).await;
        log.note(&match &status {
            Ok(status) => status.to_string(),
            Err(fault) => shown(fault),
        });
        match round {
            1 => authority.revoke_all(),
            2 => {
                clock.advance(3600);
                authority.forget_clients();
            }
            _ => clock.advance(3600),
        }
    }
    let mut attempt = session.attempt();
    let _ = attempt.headers("GET", &authority.resource()).await;
    let token = session.token().await;
    log.note(&format!("{client:?} {session:?} {attempt:?} {token:?} {:?}", session.signed_in().await));
    log.note(&shown_of(session.logout().await.map(drop)));
}

/// A web host, and a device.
async fn data(log: &Log, authority: &TestAuthority) {
    let seen = log.clone();
    let consents = ByHand::new("http://127.0.0.1/callback", move |consent: Consent| {
        seen.note(&format!("{consent} {consent:?}"));
        std::future::ready(Err::<String, _>("nobody is there"))
    });
    let failing = session(OAuth::builder("test").handler(consents), authority);
    log.note(&shown_of(failing.login().await));
    let session = session(client(authority), authority);
    let begun = session.begin("https://host.example/callback", None).await.unwrap();
    log.note(&format!("{begun:?}"));
    let returned = authority.visit(begun.url()).await.unwrap();
    let kept: PendingSignIn = serde_json::from_str(&serde_json::to_string(&begun).unwrap()).unwrap();
    session.finish(kept, &returned).await.unwrap();
    for wrong in [returned.clone(), returned.replace("state=", "state=x"), returned.replace("code=", "no=")] {
        let fault = session.finish(begun.clone(), &wrong).await.unwrap_err();
        log.note(&shown(&fault));
    }
    let mut begun: DeviceSignIn = session.begin_device(None).await.unwrap();
    log.note(&format!("{begun} {begun:?}"));
    for answer in [DeviceAnswer::Refuses, DeviceAnswer::Expired] {
        authority.answer_devices(answer);
        let fault = session.finish_device(begun.clone()).await.unwrap_err();
        log.note(&shown(&fault));
    }
    authority.answer_devices(DeviceAnswer::Agrees);
    assert!(session.poll_device(&mut begun).await.unwrap());
}

#[tokio::test]
async fn no_secret_is_seen_anywhere() {
    let log = Log::default();
    let _guard = subscriber::set_default(log.clone());
    tracing::trace!(marked = "the log is on");
    let attacks = [
        None,
        Some(Attack::ForgedError),
        Some(Attack::OtherState),
        Some(Attack::NoIssuerInAnswer),
        Some(Attack::RedirectedToken),
        Some(Attack::TokenWithNewline),
        Some(Attack::UnknownTokenType),
        Some(Attack::CloudEndpoint),
        Some(Attack::RefusesAll),
        Some(Attack::EndlessScopes),
    ];
    let mut all = BTreeSet::new();
    for attack in attacks {
        for bound in [false, true] {
            let authority = TestAuthority::start().await.unwrap();
            authority.attack(attack);
            authority.expire(3600);
            authority.issue_secrets();
            authority.add_client("machine", "secret-of-machine");
            if bound {
                authority.bind_tokens();
            }
            flows(&log, &authority, || client(&authority)).await;
            let machine = Credentials::secret("machine", "secret-of-machine");
            let grant = || OAuth::builder("m").credentials(machine.clone()).grant(Grant::ClientCredentials);
            log.note(&format!("{machine:?} {:?}", Grant::ClientCredentials));
            flows(&log, &authority, grant).await;
            if attack.is_none() {
                data(&log, &authority).await;
            }
            all.extend(secrets(&authority));
            log.note(&format!("{authority:?}"));
        }
    }
    // The search has something to find, of each kind.
    for kind in ["code-", "token-", "refresh-", "device-"] {
        assert!(all.iter().any(|secret| secret.starts_with(kind)), "{kind}");
    }
    let seen = log.text.lock().unwrap();
    for event in ["the log is on", "INFO antiphon_oauth"] {
        assert!(seen.contains(event), "{event}: {seen}");
    }
    all.insert("secret-of-".to_owned());
    for secret in all {
        if let Some(at) = seen.find(&*secret) {
            panic!("{secret} is in: {}", seen[..at + secret.len()].lines().next_back().unwrap());
        }
    }
}
