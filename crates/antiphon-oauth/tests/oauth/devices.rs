//! Sign-ins at another device.

use crate::support::{Clock, Folder, client, get, session};
use antiphon_oauth::{
    DeviceSignIn, Error, ErrorKind, OAuth, Session,
    store::FileStore,
    testing::{Attack, DeviceAnswer, TestAuthority},
};
use std::sync::{Arc, Mutex};

struct Test {
    authority: TestAuthority,
    clock: Clock,
    folder: Folder,
}

impl Test {
    async fn new() -> Self {
        Self { authority: TestAuthority::start().await.unwrap(), clock: Clock::new(), folder: Folder::new() }
    }

    /// A process of its own.
    fn process(&self) -> Arc<Session> {
        let now = self.clock.clone();
        let builder = OAuth::builder("test").store(FileStore::new(&self.folder.0)).scopes(["files", "mail"]);
        session(builder.clock(move || now.now()), &self.authority)
    }

    /// Asks in a new process, which has only what the last one wrote.
    async fn poll(&self, kept: &mut String) -> Result<bool, Error> {
        let mut begun: DeviceSignIn = serde_json::from_str(kept).unwrap();
        let outcome = self.process().poll_device(&mut begun).await;
        *kept = serde_json::to_string(&begun).unwrap();
        outcome
    }
}

#[tokio::test]
async fn the_interval_and_the_answer_of_the_server_count() {
    let test = Test::new().await;
    let begun = test.process().begin_device(None).await.unwrap();
    assert!(begun.to_string().starts_with("Sign in at 127.0.0.1 for http://127.0.0.1:"), "{begun}");
    assert!(begun.to_string().ends_with("/mcp, to allow: files mail"), "{begun}");
    let page = format!("{}/enter", test.authority.issuer());
    assert_eq!(begun.verification_uri(), page);
    assert_eq!(begun.verification_uri_complete().unwrap(), format!("{page}?code={}", begun.user_code()));
    assert_eq!(begun.interval().as_secs(), 5);
    assert_eq!(begun.expires_at().duration_since(test.clock.now()).unwrap().as_secs(), 599);
    let mut kept = serde_json::to_string(&begun).unwrap();
    // Seconds later, the answer of the server, requests so far, and the interval from now on.
    for (later, answer, requests, interval) in [
        (0, DeviceAnswer::Pending, 1, 5),
        (4, DeviceAnswer::Pending, 1, 5),
        (1, DeviceAnswer::Pending, 2, 5),
        (5, DeviceAnswer::SlowDown, 3, 10),
        (5, DeviceAnswer::Pending, 3, 10),
        (5, DeviceAnswer::SlowDown, 4, 15),
        (14, DeviceAnswer::Agrees, 4, 15),
    ] {
        test.clock.advance(later);
        test.authority.answer_devices(answer);
        assert!(!test.poll(&mut kept).await.unwrap(), "{later} {answer:?}");
        let begun: DeviceSignIn = serde_json::from_str(&kept).unwrap();
        assert_eq!((test.authority.count("/token"), begun.interval().as_secs()), (requests, interval));
    }
    test.clock.advance(1);
    assert!(test.poll(&mut kept).await.unwrap());
    let third = test.process();
    assert!(get(&third, &test.authority).await.unwrap().is_success());
    assert_eq!(third.signed_in().await.unwrap().unwrap().scopes, ["files", "mail"]);
    let seen = test.authority.seen();
    let form = seen.iter().find(|seen| seen.path == "/device").unwrap().form();
    assert_eq!((&*form["scope"], &*form["resource"]), ("files mail", &*test.authority.resource()));
    let registered = &seen.iter().find(|seen| seen.path == "/register").unwrap().body;
    assert!(registered.contains("urn:ietf:params:oauth:grant-type:device_code"), "{registered}");
}

#[tokio::test]
async fn sign_ins_that_fail() {
    for (answer, later, kind) in [
        (DeviceAnswer::Refuses, 0, ErrorKind::Denied),
        (DeviceAnswer::Expired, 0, ErrorKind::SignIn),
        (DeviceAnswer::Agrees, 600, ErrorKind::SignIn),
    ] {
        let test = Test::new().await;
        let begun = test.process().begin_device(None).await.unwrap();
        test.authority.answer_devices(answer);
        test.clock.advance(later);
        let fault = test.process().finish_device(begun).await.unwrap_err();
        assert_eq!(fault.kind(), kind, "{answer:?}");
        assert_eq!(test.authority.count("/token"), usize::from(later == 0));
    }
    for attack in [Attack::TerminalCode, Attack::ScriptPage] {
        let test = Test::new().await;
        test.authority.attack([attack]);
        let fault = test.process().begin_device(None).await.unwrap_err();
        let text = format!("{fault} {fault:?}");
        assert!(!text.contains('\u{1b}') && !text.contains("evil"), "{text}");
    }
    let test = Test::new().await;
    let mut begun = test.process().begin_device(None).await.unwrap();
    test.authority.attack([Attack::BadGateway]);
    let fault = test.process().poll_device(&mut begun).await.unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::Network, "the person may still agree: {fault}");
    let other = OAuth::builder("test").account("other");
    let fault = session(other, &test.authority).finish_device(begun).await.unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::Callback);
}

#[tokio::test]
async fn a_forgotten_client_registers_again() {
    let test = Test::new().await;
    let mut begun = test.process().begin_device(None).await.unwrap();
    test.authority.answer_devices(DeviceAnswer::Agrees);
    assert!(test.process().poll_device(&mut begun).await.unwrap());
    test.authority.forget_clients();
    let mut begun = test.process().begin_device(None).await.unwrap();
    assert!(test.process().poll_device(&mut begun).await.unwrap());
    assert_eq!((test.authority.count("/register"), test.authority.count("/device")), (2, 3));
}

#[tokio::test]
async fn a_request_signs_in_by_the_code_that_is_shown() {
    let authority = TestAuthority::start().await.unwrap();
    authority.answer_devices(DeviceAnswer::Agrees);
    let shown = Arc::new(Mutex::new(String::new()));
    let show = Arc::clone(&shown);
    // The handler is not used.
    let builder = client(&authority).scopes(["files"]).device(move |begun: DeviceSignIn| {
        *show.lock().unwrap() = format!("{begun} {}", begun.user_code());
        std::future::ready(Ok::<_, Error>(()))
    });
    let session = session(builder, &authority);
    assert!(get(&session, &authority).await.unwrap().is_success());
    assert!(shown.lock().unwrap().contains("to allow: files USER-"));
    assert_eq!((authority.count("/device"), authority.count("/authorize")), (1, 0));
}
