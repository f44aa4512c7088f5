//! Bad servers as child processes: small shell scripts.

use super::{CallEnd, GOOD, alive, alone, call, limit_of, settles};
use antiphon::client::transport::{
    ChildCommand, ChildStderr, ChildTransport, Transport, TransportErrorKind as Kind,
};
use std::{sync::Arc, time::Duration};

async fn check(name: &str, script: &str, expected: CallEnd) {
    for closes in [true, false] {
        let before = alive();
        let command = ChildCommand::new("sh").arg("-c").arg(script).stderr(ChildStderr::Log);
        let child = Arc::new(ChildTransport::spawn(command.grace(Duration::from_millis(100))).unwrap());
        let id = child.id();
        assert_eq!(
            call(Arc::clone(&child) as Arc<dyn Transport>, limit_of(expected)).await,
            expected,
            "{name}"
        );
        if closes {
            child.close().await;
            let gone = id.is_none_or(|id| !std::path::Path::new(&format!("/proc/{id}")).exists());
            assert!(gone, "{name}: the child is still there");
        }
        drop(child);
        settles(name, before).await;
    }
}

#[test]
fn whatever_the_child_does() {
    let (closed, malformed) = (CallEnd::Failed(Kind::Closed), CallEnd::Failed(Kind::Malformed));
    let forever = "while :; do sleep 0.01; done";
    let rows = [
        ("no reply", "cat > /dev/null".to_owned(), CallEnd::Timeout),
        ("no reply, and no end at SIGTERM", format!("trap '' TERM; {forever}"), CallEnd::Timeout),
        ("half a line", format!("read line; printf '{{\"jsonrpc'; {forever}"), CallEnd::Timeout),
        ("half a line, and an end", "read line; printf '{\"jsonrpc'; exit 3".to_owned(), closed),
        ("an end at once", "exit 3".to_owned(), closed),
        ("killed", "read line; kill -9 $$".to_owned(), closed),
        ("twice", format!("read line; echo '{GOOD}'; echo '{GOOD}'; cat > /dev/null"), CallEnd::Good),
        ("its log on the wrong stream", "read line; while echo log; do :; done".to_owned(), malformed),
        ("a flood of log", "while echo log >&2; do :; done".to_owned(), CallEnd::Timeout),
        (
            "a giant line",
            format!("read line; head -c 20971520 /dev/zero | tr '\\0' x; {forever}"),
            CallEnd::Failed(Kind::TooLarge),
        ),
        ("its output closed", format!("exec >&-; {forever}"), closed),
        ("a grandchild with its pipes", format!("sleep 5 & read line; echo '{GOOD}'"), CallEnd::Good),
    ];
    alone(false, async {
        for (name, script, expected) in rows {
            check(name, &script, expected).await;
        }
    });
}
