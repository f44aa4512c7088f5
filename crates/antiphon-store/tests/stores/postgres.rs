//! The PostgreSQL store: the contract, its own clock, migrations, roles, TLS, and a database that goes away.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use antiphon_store::contract::{Subject, check_all, check_changes, check_random_orders};
use antiphon_store::{
    CallKey, CallStore, ChangeChannel, Claim, ClaimRequest, Fingerprint, Micros, Owner, PostgresOptions,
    PostgresStore, RunnerId, StepRecord, StoreClock, StoreErrorKind, StoreReach, Written,
};

use crate::postgres_server::Server;
use crate::programs::{find, run};

const START: Micros = Micros::new(1_800_000_000_000_000);

fn patient() -> PostgresOptions {
    PostgresOptions::default().timeout(Duration::from_secs(60))
}

fn request(call: u8, runner: u8) -> ClaimRequest {
    let (answers, owner) = (Fingerprint::from_bytes([1; 16]), Owner::from_bytes([1; 16]));
    ClaimRequest::new(CallKey::from_bytes([call; 16]), 1, answers, RunnerId::from_bytes([runner; 16]), owner)
}

#[tokio::test]
async fn the_contract() {
    let server = Server::start("postgres-contract");
    let (clock, hand) = StoreClock::manual(START);
    let options = patient().test_clock(clock);
    let first = Arc::new(server.store(options.clone()).await.unwrap());
    let second = Arc::new(server.store(options).await.unwrap());
    let subject = Subject::new(first.clone(), second, hand);
    check_all(&subject).await;
    check_random_orders(&subject, 1_000..1_050, 60).await;
    assert_eq!(first.reach(), StoreReach::Fleet);
}

/// Leases end on the database's clock if the test has none.
#[tokio::test]
async fn leases_end_on_the_clock_of_the_database() {
    let server = Server::start("postgres-clock");
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
    // The fence is a time of the database.
    let (client, connection) =
        tokio_postgres::connect(&server.url("postgres"), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let row = client
        .query_one("SELECT (extract(epoch FROM now()) * 1000000)::bigint - $1", &[&fence.number()])
        .await
        .unwrap();
    let since: i64 = row.get(0);
    assert!((0..600_000_000).contains(&since), "{since}");
    drop(client);
    connection.await.unwrap().unwrap();
}

/// Ten instances start at once on an empty database.
#[tokio::test]
async fn migrations_run_once_beside_the_tables_of_others() {
    let server = Server::start("postgres-migrate");
    server.execute("CREATE SCHEMA antiphon; CREATE TABLE antiphon.calls_of_others (id int)").await;
    let stores = futures_util::future::join_all((0..10).map(|_| server.store(patient()))).await;
    for store in &stores {
        store.as_ref().unwrap().claim(&request(1, 1)).await.unwrap();
    }
    // Two sets of tables in one schema do not see each other.
    let options = patient().schema("public").table_prefix("mcp_");
    let other = server.store(options).await.unwrap();
    assert!(matches!(other.claim(&request(1, 2)).await.unwrap(), Claim::Fresh(_)));

    server.execute("INSERT INTO antiphon.migrations (version) VALUES (2)").await;
    let later = server.store(patient()).await.unwrap_err();
    assert_eq!((later.kind(), later.written()), (StoreErrorKind::Version, Written::No), "{later:?}");
}

/// A role without any special right runs the store; one that may not create tables is told so.
#[tokio::test]
async fn a_role_needs_no_special_right() {
    let server = Server::start("postgres-role");
    server
        .execute(
            "CREATE ROLE owner LOGIN; CREATE ROLE runner LOGIN; CREATE SCHEMA antiphon AUTHORIZATION owner;",
        )
        .await;
    let check_only = patient().migrate(false);
    let forbidden = PostgresStore::connect(&server.url("runner"), check_only.clone()).await.unwrap_err();
    assert_eq!(forbidden.kind(), StoreErrorKind::Invalid, "{forbidden:?}");
    server.execute("GRANT USAGE ON SCHEMA antiphon TO runner").await;
    let missing = PostgresStore::connect(&server.url("runner"), check_only.clone()).await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::Version, "{missing:?}");
    let forbidden = PostgresStore::connect(&server.url("runner"), patient()).await.unwrap_err();
    assert_eq!(
        (forbidden.kind(), forbidden.written()),
        (StoreErrorKind::Invalid, Written::No),
        "{forbidden:?}"
    );
    PostgresStore::connect(&server.url("owner"), patient()).await.unwrap();
    server.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA antiphon TO runner").await;
    let store = PostgresStore::connect(&server.url("runner"), check_only).await.unwrap();
    let Claim::Fresh(fence) = store.claim(&request(1, 1)).await.unwrap() else { panic!("no claim") };
    store.append(&fence, &StepRecord::ended("pay", *b"paid")).await.unwrap();
    store.commit(&fence, b"outcome").await.unwrap();
    let digest = store.put(b"blob", Duration::from_secs(60), Owner::from_bytes([1; 16])).await.unwrap();
    assert_eq!(store.get(digest).await.unwrap(), Some(b"blob".to_vec()));
    store.sweep(10).await.unwrap();
    let nobody = PostgresStore::connect(&server.url("nobody"), patient()).await.unwrap_err();
    assert_eq!(nobody.kind(), StoreErrorKind::Invalid, "{nobody:?}");
}

/// A database that goes away and comes back: refused meanwhile, and nothing that was confirmed is lost.
#[tokio::test]
async fn a_restart_of_the_database() {
    let server = Server::start("postgres-restart");
    let store = server.store(patient()).await.unwrap();
    let Claim::Fresh(fence) = store.claim(&request(1, 1)).await.unwrap() else { panic!("no claim") };
    server.stop();
    let error = store.commit(&fence, b"outcome").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error:?}");
    let error = store.claim(&request(2, 1)).await.unwrap_err();
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Unreachable, Written::No), "{error:?}");
    server.run(&[]);
    // The pool opens new connections.
    store.commit(&fence, b"outcome").await.unwrap();
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'postgres'").await;
    assert_eq!(store.claim(&request(1, 2)).await.unwrap(), Claim::Done(b"outcome".to_vec()));
}

/// A row that another transaction holds delays an operation for its time limit, not longer.
#[tokio::test]
async fn a_locked_row_is_a_timeout() {
    let server = Server::start("postgres-locked");
    let store = server.store(patient()).await.unwrap();
    // On a busy machine, this store may need several attempts to connect.
    let impatient = loop {
        match server.store(PostgresOptions::default().timeout(Duration::from_secs(1))).await {
            Ok(store) => break store,
            Err(error) => assert!(error.is_temporary(), "{error:?}"),
        }
    };
    let Claim::Fresh(fence) = store.claim(&request(1, 1)).await.unwrap() else { panic!("no claim") };
    let (client, connection) =
        tokio_postgres::connect(&server.url("postgres"), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute("BEGIN; SELECT * FROM antiphon.calls FOR UPDATE").await.unwrap();
    let error = impatient.commit(&fence, b"outcome").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error:?}");
    client.batch_execute("ROLLBACK").await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
    store.commit(&fence, b"outcome").await.unwrap();
}

/// TLS with an authority of the operator's own; the certificate must be for the host.
#[tokio::test]
async fn tls_verifies_the_certificate_of_the_database() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Server::create("postgres-tls", port);
    let (key, certificate) = (server.folder.path("data/server.key"), server.folder.path("data/server.crt"));
    certify(&key, &certificate);
    server.user.own(&key);
    server.user.own(&certificate);
    server.run(&["ssl=on", "listen_addresses=127.0.0.1"]);
    let url = |host: &str| {
        format!("host={host} hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=require")
    };
    let options = patient().root_certificates(std::fs::read(&certificate).unwrap());
    let store = PostgresStore::connect(&url("localhost"), options.clone()).await.unwrap();
    assert!(matches!(store.claim(&request(1, 1)).await.unwrap(), Claim::Fresh(_)));
    for (case, host, options) in
        [("another host", "db.example", options), ("the system's authorities", "localhost", patient())]
    {
        let error = PostgresStore::connect(&url(host), options).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{case}: {error:?}");
    }
    let empty =
        PostgresStore::connect(&url("localhost"), patient().root_certificates("no PEM")).await.unwrap_err();
    assert_eq!(empty.kind(), StoreErrorKind::Invalid);
}

/// Writes a key and a certificate for `localhost`, signed by itself.
fn certify(key: &Path, certificate: &Path) {
    run(Command::new(find("openssl", "openssl"))
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "30",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:false", "-keyout"])
        .arg(key)
        .arg("-out")
        .arg(certificate));
}

#[tokio::test]
async fn the_feed_of_changes() {
    let server = Server::start("postgres-changes");
    let (first, second) = (server.store(patient()).await.unwrap(), server.store(patient()).await.unwrap());
    let (one, other) = (first.change_feed().unwrap(), second.change_feed().unwrap());
    check_changes(&one, &other).await;
    // Another schema is another server, and a watch whose connection breaks fails.
    let channel = ChangeChannel::of("server");
    let foreign = server.store(patient().schema("other")).await.unwrap().change_feed().unwrap();
    let mut watch = one.watch(channel).await.unwrap();
    foreign.publish(channel, "foreign").await.unwrap();
    other.publish(channel, "own").await.unwrap();
    assert_eq!(watch.next().await.unwrap(), "own");
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'postgres'").await;
    assert_eq!(watch.next().await.map_err(|error| error.kind()), Err(StoreErrorKind::Unreachable));
    let mut again = one.watch(channel).await.unwrap();
    other.publish(channel, "again").await.unwrap();
    assert_eq!(again.next().await.unwrap(), "again");
}
