//! Keys that change while the server runs: under load, on two servers at different moments, from a file.

use crate::common::*;
use antiphon::{
    seal::{Codec, CodecError, KeyFile, KeyRing, SecretKey},
    server::Server,
};
use serde_json::{Value, json};
use std::{
    error::Error as _,
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// A key file in a folder of its own, replaced by a rename. Dropping the value removes the folder.
struct KeyFileOnDisk(PathBuf);

impl KeyFileOnDisk {
    fn new(text: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("antiphon-keys-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let file = Self(folder);
        file.write(text);
        file
    }

    fn path(&self) -> PathBuf {
        self.0.join("keys")
    }

    fn write(&self, text: &str) {
        let new = self.0.join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path()).unwrap();
    }

    fn edit(&self, edit: impl FnOnce(&mut KeyFile)) {
        let mut file = KeyFile::parse(&fs::read_to_string(self.path()).unwrap()).unwrap();
        edit(&mut file);
        self.write(&file.to_text());
    }
}

impl Drop for KeyFileOnDisk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text_of(byte: u8) -> String {
    SecretKey::from_bytes([byte; 32]).to_base64url().to_string()
}

fn first_leg() -> Value {
    json!({"name": "ask", "arguments": {"name": "orders"}})
}

async fn asked(server: &Server) -> Value {
    let (_, reply) = send(Over::Http, server, &request(1, "tools/call", first_leg()), None).await;
    with(&first_leg(), json!({"requestState": state_of(&reply), "inputResponses": answers()}))
}

async fn answered(server: &Server, retry: &Value) -> Value {
    send(Over::Http, server, &request(2, "tools/call", retry.clone()), None).await.1
}

fn is_done(reply: &Value) -> bool {
    reply["result"]["content"][0]["text"] == "in eu"
}

const WORKERS: usize = 8;

/// Workers that call without a pause: each call begins on one server and ends on the other.
struct Load {
    finished: Arc<[AtomicUsize; WORKERS]>,
    refused: Arc<Mutex<Vec<Value>>>,
    ends: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn begin(servers: [Server; 2]) -> Self {
        let finished: Arc<[AtomicUsize; WORKERS]> = Arc::default();
        let refused: Arc<Mutex<Vec<Value>>> = Arc::default();
        let ends = Arc::new(AtomicBool::new(false));
        let tasks = (0..WORKERS).map(|worker| {
            let (finished, refused, ends) = (Arc::clone(&finished), Arc::clone(&refused), Arc::clone(&ends));
            let servers = servers.clone();
            tokio::spawn(async move {
                for call in worker.. {
                    if ends.load(Ordering::SeqCst) {
                        return;
                    }
                    let retry = asked(&servers[call % 2]).await;
                    let reply = answered(&servers[(call + 1) % 2], &retry).await;
                    if !is_done(&reply) {
                        refused.lock().unwrap().push(reply);
                    }
                    finished[worker].fetch_add(1, Ordering::SeqCst);
                    // Nothing else in the loop waits, and other workers share the thread.
                    tokio::task::yield_now().await;
                }
            })
        });
        let tasks = tasks.collect();
        Self { finished, refused, ends, tasks }
    }

    /// Waits until each worker has begun and finished two more calls.
    async fn goes_on(&self) {
        let before: Vec<usize> = self.finished.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        for (count, before) in self.finished.iter().zip(before) {
            // The call that runs now began before.
            while count.load(Ordering::SeqCst) < before + 3 {
                assert!(self.tasks.iter().all(|task| !task.is_finished()), "a worker has failed");
                tokio::task::yield_now().await;
            }
        }
    }

    async fn end(self) -> Vec<Value> {
        self.ends.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.unwrap();
        }
        std::mem::take(&mut *self.refused.lock().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_go_on_while_keys_rotate() {
    let file = KeyFileOnDisk::new(&text_of(1));
    let ring = || KeyRing::parse_file(&fs::read_to_string(file.path()).unwrap()).unwrap();
    let fixtures = [0, 1].map(|_| fixture(|builder| builder.keys(ring())));
    let [first, second] = fixtures.each_ref().map(|fixture| fixture.server.clone());
    let mut watches = [&first, &second].map(|server| server.watch_keys(file.path()));
    let old_state = asked(&first).await;
    let load = Load::begin([first.clone(), second.clone()]);
    load.goes_on().await;
    for round in 0..3_u64 {
        let now = 1_800_000_000 + round * 100_000;
        for phase in 0..3 {
            file.edit(|file| match phase {
                0 => assert_eq!(file.add(SecretKey::random().unwrap(), now), Ok(false)),
                1 => file.promote(now + 60).unwrap(),
                // Every call that began before has ended.
                _ => assert_eq!(file.retire(Duration::from_secs(86_400), now + 86_461), Ok(1)),
            });
            for watch in &mut watches {
                watch.load().await.unwrap();
                load.goes_on().await;
            }
        }
    }
    let refused = load.end().await;
    assert!(refused.is_empty(), "{} refused: {}", refused.len(), refused[0]);
    // The keys did change.
    let reply = answered(&first, &old_state).await;
    assert_eq!(reply["error"]["data"]["reason"], "invalid_request_state", "{reply}");
}

/// The load is one that notices a phase that is left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_that_seals_before_it_opens_everywhere_is_noticed() {
    let fixtures = [0, 1].map(|_| fixture(|builder| builder));
    let [first, second] = fixtures.each_ref().map(|fixture| fixture.server.clone());
    let load = Load::begin([first.clone(), second]);
    load.goes_on().await;
    let keys = [9, 7].map(|byte| SecretKey::from_bytes([byte; 32])).into();
    first.set_keys(&KeyRing::new(keys).unwrap()).unwrap();
    load.goes_on().await;
    assert!(!load.end().await.is_empty());
}

#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing() {
    let file = KeyFileOnDisk::new(&text_of(7));
    let fixture = fixture(|builder| builder);
    let mut watch = fixture.server.watch_keys(file.path());
    watch.load().await.unwrap();
    let retry = asked(&fixture.server).await;
    for (text, text_of_error, text_of_cause) in [
        ("", "the keys are not valid", "no key given"),
        ("# nothing\n", "the keys are not valid", "no key given"),
        ("not a key\n", "the keys are not valid", "line 1: not a key"),
        (&*format!("{} min_iat=2040-01-01T00:00:00Z", text_of(7)), "the sealing key opens tokens", ""),
    ] {
        file.write(text);
        let error = watch.load().await.unwrap_err();
        assert!(error.to_string().starts_with(text_of_error), "{error}");
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        assert!(cause.starts_with(text_of_cause), "{cause}");
    }
    fs::remove_file(file.path()).unwrap();
    assert_eq!(watch.load().await.unwrap_err().to_string(), "the key file cannot be read");
    assert!(is_done(&answered(&fixture.server, &retry).await));
}

/// Nothing else is read: a pipe has no end, and to open it is to wait for its writer.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn only_a_regular_file_of_a_megabyte_is_read() {
    let not_regular = "not a regular file";
    for (what, cause) in [
        ("a pipe", not_regular),
        ("a link to a pipe", not_regular),
        ("a folder", not_regular),
        ("a device", not_regular),
        ("a socket", not_regular),
        ("1 MiB and a byte", "the file is longer than 1 MiB"),
        ("300 MiB", "the file is longer than 1 MiB"),
        ("1 MiB", ""),
    ] {
        let file = KeyFileOnDisk::new(&text_of(7));
        let fixture = fixture(|builder| builder);
        let retry = asked(&fixture.server).await;
        let mut watch = fixture.server.watch_keys(file.path());
        watch.load().await.unwrap();
        let (path, beside) = (&file.path(), file.path().with_extension("pipe"));
        let pipe = |path: &std::path::Path| {
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        };
        let padded = |length: usize| text_of(9) + "\n#" + &"x".repeat(length - text_of(9).len() - 2);
        fs::remove_file(path).unwrap();
        match what {
            "a pipe" => pipe(path),
            "a link to a pipe" => {
                pipe(&beside);
                std::os::unix::fs::symlink(&beside, path).unwrap();
            }
            "a folder" => fs::create_dir(path).unwrap(),
            "a device" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
            "a socket" => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
            "300 MiB" => fs::File::create(path).unwrap().set_len(300 << 20).unwrap(),
            "1 MiB" => fs::write(path, padded(1 << 20)).unwrap(),
            _ => fs::write(path, padded((1 << 20) + 1)).unwrap(),
        }
        for by_signal in [false, true] {
            let loaded = match by_signal {
                false => watch.changed().await.unwrap(),
                true => watch.load().await,
            };
            let error = loaded.err().map(|error| error.source().map(ToString::to_string));
            assert_eq!(error.flatten().unwrap_or_default(), cause, "{what}");
        }
        // The keys stay as they were, unless there are new ones.
        assert_eq!(is_done(&answered(&fixture.server, &retry).await), !cause.is_empty(), "{what}");
        let _ = fs::remove_file(&beside);
        let _ = fs::remove_dir(path);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_finds_each_change() {
    let file = KeyFileOnDisk::new(&text_of(1));
    let fixture = fixture(|builder| builder);
    let mut watch = fixture.server.watch_keys(file.path()).interval(Duration::from_secs(30));
    let begin = tokio::time::Instant::now();
    watch.changed().await.unwrap().unwrap();
    assert_eq!(begin.elapsed(), Duration::ZERO);
    let retry = asked(&fixture.server).await;

    file.write(&format!("{}\n{}\n", text_of(2), text_of(1)));
    watch.changed().await.unwrap().unwrap();
    assert!(begin.elapsed() <= Duration::from_secs(31), "{:?}", begin.elapsed());
    assert!(is_done(&answered(&fixture.server, &retry).await));

    file.write("not a key");
    assert!(watch.changed().await.unwrap().is_err());
    // The same fault is reported once.
    let again = tokio::time::timeout(Duration::from_secs(300), watch.changed()).await;
    assert!(again.is_err());
    assert!(is_done(&answered(&fixture.server, &retry).await));
    file.write(&text_of(2));
    watch.changed().await.unwrap().unwrap();
    assert!(!is_done(&answered(&fixture.server, &retry).await));

    drop(fixture);
    assert!(watch.changed().await.is_none());
}

#[tokio::test]
async fn states_before_the_first_moment_of_their_key_are_refused() {
    let fixture = fixture(|builder| builder);
    let retry = asked(&fixture.server).await;
    fixture.clock.advance(Duration::from_secs(10));
    let later = asked(&fixture.server).await;
    let key = || SecretKey::from_bytes([7; 32]).with_min_issued_at(1_800_000_005);
    fixture.server.set_keys(&KeyRing::new(vec![key()]).unwrap()).unwrap();
    let reply = answered(&fixture.server, &retry).await;
    assert_eq!(reply["error"]["message"], "Invalid or expired requestState", "{reply}");
    assert_eq!(reply["error"]["data"], json!({"reason": "invalid_request_state"}));
    assert!(is_done(&answered(&fixture.server, &later).await));
    // A server is not built with a key whose states it would refuse.
    let ring = KeyRing::new(vec![SecretKey::from_bytes([7; 32]).with_min_issued_at(4_000_000_000)]).unwrap();
    let error = Server::builder("later", "1").keys(ring).build().unwrap_err().to_string();
    assert!(error.contains("from 2096-10-02T07:06:40Z on only"), "{error}");
}

/// A codec of another service, which may be down.
struct Remote(Arc<AtomicBool>);

impl Remote {
    fn answers(&self) -> Result<(), CodecError> {
        if self.0.load(Ordering::SeqCst) {
            Err(CodecError::unavailable("connection refused"))
        } else {
            Ok(())
        }
    }
}

impl Codec for Remote {
    fn seal(&self, plaintext: &[u8]) -> Result<String, CodecError> {
        self.answers()?;
        Ok(plaintext.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn open(&self, token: &str) -> Result<Vec<u8>, CodecError> {
        self.answers()?;
        let byte = |at: usize| u8::from_str_radix(token.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..token.len()).step_by(2).map(byte).collect();
        bytes.ok_or_else(|| CodecError::new("not hexadecimal"))
    }
}

#[tokio::test]
async fn while_a_codec_is_unavailable_nothing_is_lost() {
    let down = Arc::new(AtomicBool::new(false));
    let codec = Box::new(Remote(Arc::clone(&down)));
    let fixture = fixture(|builder| builder.codec(codec));
    let retry = asked(&fixture.server).await;
    down.store(true, Ordering::SeqCst);
    // A forged state gets the same answer as an authentic one.
    let forged = with(&retry, json!({"requestState": "x"}));
    for params in [&retry, &forged, &first_leg()] {
        let reply = answered(&fixture.server, params).await;
        assert_eq!(
            reply["error"],
            json!({
                "code": -32603,
                "message": "The server cannot seal states at present: send the same request again later",
                "data": {"reason": "codec", "retryAfterMs": 1000},
            }),
        );
    }
    down.store(false, Ordering::SeqCst);
    assert!(is_done(&answered(&fixture.server, &retry).await));
    let reply = answered(&fixture.server, &forged).await;
    assert_eq!(reply["error"]["data"]["reason"], "invalid_request_state");
    let error = fixture.server.set_keys(&ring(7)).unwrap_err().to_string();
    assert_eq!(error, "this server seals with a codec, which has keys of its own");
}
