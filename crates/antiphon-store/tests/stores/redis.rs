//! The Redis store: the contract, its own clock, and a server that is full, removes keys, or goes away.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use antiphon_store::contract::{Subject, check_all, check_changes, check_random_orders};
use antiphon_store::{
    CallKey, CallStore, ChangeChannel, Claim, ClaimRequest, Fingerprint, Micros, Owner, RedisOptions,
    RedisStore, RunnerId, StepRecord, StoreClock, StoreErrorKind, StoreReach, Written,
};

use crate::folder::Folder;
use crate::programs::find;

const START: Micros = Micros::new(1_800_000_000_000_000);

/// A server of a test, without TCP.
struct Server {
    folder: Folder,
    process: Option<Child>,
}

impl Server {
    fn start(name: &str, settings: &[&str]) -> Self {
        let mut server = Self { folder: Folder::new(name), process: None };
        server.run(settings);
        server
    }

    /// Starts the server, and waits for its word that it accepts connections.
    fn run(&mut self, settings: &[&str]) {
        let mut command = Command::new(find("redis-server", "redis-server"));
        command.args([
            "--port",
            "0",
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--dir",
        ]);
        command.arg(self.folder.path("")).arg("--unixsocket").arg(self.folder.path("socket")).args(settings);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        self.process = Some(process);
        let mut lines = output.lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("eady to accept connections")), "redis-server did not start");
        // The server writes further lines: they are read, so that its pipe does not break.
        std::thread::spawn(move || lines.for_each(drop));
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.kill());
            drop(process.wait());
        }
    }

    fn url(&self) -> String {
        format!("redis+unix://{}", self.folder.path("socket").display())
    }

    async fn store(&self, options: RedisOptions) -> Result<RedisStore, antiphon_store::StoreError> {
        RedisStore::connect(&self.url(), options).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn patient() -> RedisOptions {
    RedisOptions::default().timeout(Duration::from_secs(60))
}

fn request(call: u8, runner: u8) -> ClaimRequest {
    let (answers, owner) = (Fingerprint::from_bytes([1; 16]), Owner::from_bytes([1; 16]));
    ClaimRequest::new(CallKey::from_bytes([call; 16]), 1, answers, RunnerId::from_bytes([runner; 16]), owner)
}

#[tokio::test]
async fn the_contract() {
    let server = Server::start("redis-contract", &[]);
    let (clock, hand) = StoreClock::manual(START);
    let options = patient().test_clock(clock);
    let first = Arc::new(server.store(options.clone()).await.unwrap());
    let second = Arc::new(server.store(options).await.unwrap());
    let subject = Subject::new(first.clone(), second, hand);
    check_all(&subject).await;
    check_random_orders(&subject, 1_000..1_100, 60).await;
    assert_eq!(first.reach(), StoreReach::Fleet);
}

/// Leases end on the server's clock if the test has none, and two prefixes do not see each other.
#[tokio::test]
async fn leases_end_on_the_clock_of_the_server() {
    let server = Server::start("redis-clock", &[]);
    let store = server.store(patient()).await.unwrap();
    let long = Duration::from_secs(3_600);
    let Claim::Fresh(fence) = store.claim(&request(1, 1).lease(long)).await.unwrap() else {
        panic!("no claim")
    };
    let Claim::InFlight { retry_after } = store.claim(&request(1, 2)).await.unwrap() else {
        panic!("no lease")
    };
    assert!(retry_after <= long && retry_after > long - Duration::from_secs(600), "{retry_after:?}");
    store.renew(&fence, Duration::from_millis(1)).await.unwrap();
    // The claim is repeated until the lease is over, however long that takes.
    loop {
        match store.claim(&request(1, 2)).await.unwrap() {
            Claim::InFlight { .. } => tokio::task::yield_now().await,
            Claim::Unknown(_) => break,
            other => panic!("{other:?}"),
        }
    }
    let other = server.store(patient().key_prefix("other:")).await.unwrap();
    assert!(matches!(other.claim(&request(1, 2)).await.unwrap(), Claim::Fresh(_)));
    // Every key has an end.
    let client = ::redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let keys: Vec<String> = ::redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in keys {
        let rest: i64 = ::redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
        assert!(rest > 0 && rest <= 3_660_000, "{key} has {rest} ms left");
    }
}

#[tokio::test]
async fn a_server_that_removes_keys_is_refused() {
    let server = Server::start("redis-evict", &["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    let error = server.store(patient()).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Invalid, Written::No), "{error:?}");
    server.store(patient().allow_eviction(true)).await.unwrap();
    let missing =
        RedisStore::connect("redis+unix:///no/such/socket", RedisOptions::default()).await.unwrap_err();
    assert_eq!(
        (missing.kind(), missing.written()),
        (StoreErrorKind::Unreachable, Written::No),
        "{missing:?}"
    );
    let wrong = RedisStore::connect("http://host", RedisOptions::default()).await.unwrap_err();
    assert_eq!(wrong.kind(), StoreErrorKind::Invalid, "{wrong:?}");
}

#[tokio::test]
async fn a_full_server_refuses_and_loses_nothing() {
    let server = Server::start("redis-full", &["--maxmemory", "4mb", "--maxmemory-policy", "noeviction"]);
    let store = server.store(patient()).await.unwrap();
    let Claim::Fresh(fence) = store.claim(&request(1, 1)).await.unwrap() else { panic!("no claim") };
    store.append(&fence, &StepRecord::ended("pay", *b"paid")).await.unwrap();
    let owner = Owner::from_bytes([1; 16]);
    let mut refused = None;
    for number in 0..100_u8 {
        refused = store.put(&vec![number; 500_000], Duration::from_secs(600), owner).await.err();
        if refused.is_some() {
            break;
        }
    }
    let error = refused.expect("50 MB do not fit in 4 MB");
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Full, Written::No), "{error:?}");
    assert_eq!(store.load(fence.call()).await.unwrap(), [StepRecord::ended("pay", *b"paid")]);
}

/// A server that is killed and comes back: refused meanwhile. With `appendfsync always`, nothing that was confirmed is lost.
#[tokio::test]
async fn a_restart_of_the_server() {
    let mut server = Server::start("redis-restart", &[]);
    let store = server.store(patient()).await.unwrap();
    let Claim::Fresh(fence) = store.claim(&request(1, 1)).await.unwrap() else { panic!("no claim") };
    server.kill();
    let error = store.commit(&fence, b"outcome").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error:?}");
    server.run(&[]);
    // The connection is opened again.
    while let Err(error) = store.commit(&fence, b"outcome").await {
        assert!(error.is_temporary(), "{error:?}");
    }
    assert_eq!(store.claim(&request(1, 2)).await.unwrap(), Claim::Done(b"outcome".to_vec()));
}

#[tokio::test]
async fn the_feed_of_changes() {
    let mut server = Server::start("redis-changes", &[]);
    let (first, second) = (server.store(patient()).await.unwrap(), server.store(patient()).await.unwrap());
    let (one, other) = (first.change_feed().unwrap(), second.change_feed().unwrap());
    check_changes(&one, &other).await;
    // Another prefix is another server, and a watch whose connection breaks fails.
    let channel = ChangeChannel::of("server");
    let foreign = server.store(patient().key_prefix("other:")).await.unwrap().change_feed().unwrap();
    let mut watch = one.watch(channel).await.unwrap();
    foreign.publish(channel, "foreign").await.unwrap();
    other.publish(channel, "own").await.unwrap();
    assert_eq!(watch.next().await.unwrap(), "own");
    server.kill();
    assert_eq!(watch.next().await.map_err(|error| error.kind()), Err(StoreErrorKind::Unreachable));
    assert!(other.publish(channel, "lost").await.is_err());
    server.run(&[]);
    let mut again = one.watch(channel).await.unwrap();
    while let Err(error) = other.publish(channel, "again").await {
        assert!(error.is_temporary(), "{error:?}");
    }
    assert_eq!(again.next().await.unwrap(), "again");
}
