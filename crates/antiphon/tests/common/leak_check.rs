//! Checks that a peer leaves no tasks, sockets, handlers or subscriptions behind.

use super::gate::LONGEST;
use antiphon::server::Server;
use std::time::Instant;
use tokio::runtime::Handle;

/// The counts before the peer connects.
pub struct LeakCheck {
    server: Server,
    before: Count,
}

/// The tasks and sockets of this process, and the server's `Debug` output, which contains the numbers of handlers and
/// subscriptions.
#[derive(Debug, PartialEq)]
struct Count {
    tasks: usize,
    sockets: usize,
    server: String,
}

impl LeakCheck {
    pub fn of(server: &Server) -> Self {
        Self { server: server.clone(), before: Count::of(server) }
    }

    /// Returns true if the counts equal those at the start.
    pub fn is_back_now(&self) -> bool {
        Count::of(&self.server) == self.before
    }

    /// Waits until the counts equal those at the start.
    pub async fn is_back(&self, what: &str) {
        self.is_back_but(what, 0).await;
    }

    /// Waits until the counts equal those at the start, apart from `ours` sockets of the test.
    pub async fn is_back_but(&self, what: &str, ours: usize) {
        let began = Instant::now();
        loop {
            let mut now = Count::of(&self.server);
            now.sockets -= ours;
            if now == self.before {
                return;
            }
            assert!(began.elapsed() < LONGEST, "{what}: left over: {now:?}, before: {:?}", self.before);
            tokio::task::yield_now().await;
        }
    }
}

impl Count {
    fn of(server: &Server) -> Self {
        let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let sockets = entries.filter(|entry| {
            std::fs::read_link(entry.path()).is_ok_and(|link| link.to_string_lossy().starts_with("socket:"))
        });
        Self {
            tasks: Handle::current().metrics().num_alive_tasks(),
            sockets: sockets.count(),
            server: format!("{server:?}"),
        }
    }
}

/// Returns the numbers of the server's subscriptions and running handlers.
pub fn load(server: &Server) -> (usize, usize) {
    let text = format!("{server:?}");
    let number = |name: &str| {
        let (_, rest) = text.split_once(&format!("{name}: ")).unwrap_or_else(|| panic!("{name} in {text}"));
        rest.split(|next: char| !next.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    (number("subscriptions"), number("handlers"))
}
