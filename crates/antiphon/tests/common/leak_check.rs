//! What is there before a peer comes must be all that is there after it.

use super::gate::LONGEST;
use antiphon::server::Server;
use std::time::Instant;
use tokio::runtime::Handle;

/// What was there at first.
pub struct LeakCheck {
    server: Server,
    before: Count,
}

/// Tasks and sockets of this process, and what runs in the server: its `Debug` says how many handlers and
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

    /// Whether nothing more is there than at first.
    pub fn is_back_now(&self) -> bool {
        Count::of(&self.server) == self.before
    }

    /// Waits until nothing more is there than at first.
    pub async fn is_back(&self, what: &str) {
        self.is_back_but(what, 0).await;
    }

    /// Waits until nothing more is there than at first and this many sockets of the test.
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

/// How many subscriptions the server has, and how many handlers it runs.
pub fn load(server: &Server) -> (usize, usize) {
    let text = format!("{server:?}");
    let number = |name: &str| {
        let (_, rest) = text.split_once(&format!("{name}: ")).unwrap_or_else(|| panic!("{name} in {text}"));
        rest.split(|next: char| !next.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    (number("subscriptions"), number("handlers"))
}
