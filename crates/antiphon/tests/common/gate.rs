//! A tool that waits until the test opens its gate, and reports its start, end or drop.

use antiphon::server::{Ctx, Tool};
use futures_util::future::BoxFuture;
use std::{collections::BTreeSet, future::Future, task::Poll, time::Duration};
use tokio::sync::{mpsc, watch};

/// An event of a handler, with the `name` argument of its call.
#[derive(Debug, PartialEq)]
pub enum Event {
    Started(String),
    Ended(String),
    /// The handler was dropped before its end.
    Dropped(String),
}

/// The test's side of the tool `hold`.
pub struct Gate {
    events: mpsc::UnboundedReceiver<Event>,
    open: watch::Sender<BTreeSet<String>>,
}

/// The maximum time that a test waits for one event.
pub const LONGEST: Duration = Duration::from_secs(30);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct HoldArguments {
    name: String,
    #[serde(default)]
    how: HoldMode,
}

/// The behaviour of a handler while it waits.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum HoldMode {
    /// Waits silently.
    #[default]
    Waits,
    /// Reports progress once.
    Reports,
    /// Reports progress until the gate opens.
    Floods,
}

/// A guard that reports its drop.
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

/// Creates the tool `hold`, which waits for [`Gate::open`] with its name and returns the name. The argument `how` selects
/// the behaviour while it waits.
pub fn gate() -> (Tool, Gate) {
    let (sender, events) = mpsc::unbounded_channel();
    let (open, opened) = watch::channel(BTreeSet::new());
    let tool =
        Tool::new("hold", lent(move |ctx, held| Box::pin(run(ctx, held, sender.clone(), opened.clone()))));
    (tool, Gate { events, open })
}

/// Returns the closure unchanged. The bound lets its future borrow the context.
fn lent<F: for<'a> Fn(&'a Ctx, HoldArguments) -> BoxFuture<'a, String>>(handler: F) -> F {
    handler
}

async fn run(
    ctx: &Ctx,
    HoldArguments { name, how }: HoldArguments,
    events: mpsc::UnboundedSender<Event>,
    mut opened: watch::Receiver<BTreeSet<String>>,
) -> String {
    let _ = events.send(Event::Started(name.clone()));
    let mut guard = Guard { name: name.clone(), ended: false, events };
    if how == HoldMode::Reports {
        ctx.report_progress(1.0, None, None);
    }
    let mut reported = 0.0;
    while how == HoldMode::Floods && !opened.borrow().contains(&name) {
        reported += 1.0;
        ctx.report_progress(reported, None, Some("still at it"));
        yield_at_once().await;
    }
    if opened.wait_for(|open| open.contains(&name)).await.is_err() {
        // The test is over.
        std::future::pending::<()>().await;
    }
    guard.ended = true;
    name
}

/// Yields once and wakes itself at once; `tokio::task::yield_now` waits for a whole turn of the runtime.
async fn yield_at_once() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Gate {
    /// Returns the next event.
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

    /// Returns true if there is no further event.
    pub fn is_quiet(&mut self) -> bool {
        self.events.try_recv().is_err()
    }
}

/// Waits for `future`, at most [`LONGEST`].
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONGEST, future).await.expect("this happens before the deadline")
}
