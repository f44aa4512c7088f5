//! A tool that waits until the test lets it go on, and tells what becomes of it.

use antiphon::server::{Ctx, Tool};
use std::{collections::BTreeSet, future::Future, time::Duration};
use tokio::sync::{mpsc, watch};

/// What became of a handler, by the `name` it was called with.
#[derive(Debug, PartialEq)]
pub enum Event {
    Started(String),
    Ended(String),
    /// It was dropped before it ended.
    Dropped(String),
}

/// The test's side of the tool `hold`.
pub struct Gate {
    events: mpsc::UnboundedReceiver<Event>,
    open: watch::Sender<BTreeSet<String>>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Held {
    name: String,
}

/// Tells when it is dropped.
struct Guard {
    name: String,
    ended: bool,
    events: mpsc::UnboundedSender<Event>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let name = self.name.clone();
        let _ = self.events.send(if self.ended { Event::Ended(name) } else { Event::Dropped(name) });
    }
}

/// The tool `hold`: it starts, waits for [`Gate::open`] with its name, and gives the name back.
pub fn gate() -> (Tool, Gate) {
    let (sender, events) = mpsc::unbounded_channel();
    let (open, opened) = watch::channel(BTreeSet::new());
    let tool = Tool::new("hold", move |_: &Ctx, Held { name }: Held| {
        let (events, mut opened) = (sender.clone(), opened.clone());
        async move {
            let _ = events.send(Event::Started(name.clone()));
            let mut guard = Guard { name: name.clone(), ended: false, events };
            if opened.wait_for(|open| open.contains(&name)).await.is_err() {
                // The test is over.
                std::future::pending::<()>().await;
            }
            guard.ended = true;
            name
        }
    });
    (tool, Gate { events, open })
}

impl Gate {
    /// What happened next.
    pub async fn event(&mut self) -> Event {
        soon(self.events.recv()).await.unwrap()
    }

    /// Waits until the handler of this name has started.
    pub async fn started(&mut self, name: &str) {
        assert_eq!(self.event().await, Event::Started(name.to_owned()));
    }

    /// Waits until the handler of this name was dropped before its end.
    pub async fn dropped(&mut self, name: &str) {
        assert_eq!(self.event().await, Event::Dropped(name.to_owned()));
    }

    /// Waits until the handler of this name has ended.
    pub async fn ended(&mut self, name: &str) {
        assert_eq!(self.event().await, Event::Ended(name.to_owned()));
    }

    /// Lets the handler of this name end.
    pub fn open(&self, name: &str) {
        self.open.send_modify(|open| {
            open.insert(name.to_owned());
        });
    }

    /// Whether nothing has happened since.
    pub fn is_quiet(&mut self) -> bool {
        self.events.try_recv().is_err()
    }
}

/// Waits for `future`, but not forever.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("this happens before the deadline")
}
