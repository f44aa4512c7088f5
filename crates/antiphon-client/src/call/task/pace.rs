//! The waits between polls of a task: their length, the faults after which a request is sent again, and the changes that end a wait.

use crate::{
    asks::questions::Origin,
    call::task_handle::TaskForm,
    request::fault::RequestFault,
    session::{
        Connection,
        legacy::Session,
        shared::Listener,
        task_stream::watch_task,
        task_watch::{TaskNews, TaskWatch},
    },
    transport::{IncomingNotification, TransportErrorKind as Kind},
};
use antiphon_wire::{ErrorCode, LegacyTask, Task, method};
use std::{
    future::pending,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// The time between two polls, if the server suggests none.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
const MIN_INTERVAL: Duration = Duration::from_millis(50);
const MAX_INTERVAL: Duration = Duration::from_secs(60);
/// The shortest time between two polls of a task whose changes the server reports.
const SAFETY_INTERVAL: Duration = Duration::from_secs(60);
/// The first wait after a failure. It doubles with each failure in a row.
const MIN_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// A longer time that a server names is cut to this one.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);
/// The number of internal errors in a row (-32603) after which the fault is taken as permanent.
const MAX_INTERNAL: u32 = 10;
/// The time after the TTL in which a server may still answer.
const TTL_GRACE: Duration = Duration::from_secs(60);

/// The time between two polls.
///
/// > Clients **SHOULD** respect the `pollIntervalMs` provided in responses
pub(crate) fn poll_interval(suggested: Option<Duration>) -> Duration {
    suggested.map_or(DEFAULT_INTERVAL, |wait| wait.clamp(MIN_INTERVAL, MAX_INTERVAL))
}

/// The time for which the client still tries to reach a server that does not answer: up to the end of the TTL, and a minute
/// more. `age` is the age of the task at the latest answer.
pub(crate) fn time_left(ttl: Option<Duration>, age: Duration) -> Option<Duration> {
    ttl.map(|ttl| ttl.saturating_sub(age).saturating_add(TTL_GRACE))
}

/// The failures in a row of one kind of request.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    in_a_row: u32,
    internal: u32,
}

impl Failures {
    /// Called when a request succeeded.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// The wait before the request is sent again; `None` if another attempt cannot help. Each wait is shortened by a random
    /// part of up to one half, but not below the time that the server names.
    pub(crate) fn next(&mut self, fault: &RequestFault, random: u64) -> Option<Duration> {
        let retry_after = match retry(fault)? {
            Retry::After(wait) => wait.min(MAX_RETRY_AFTER),
            Retry::Soon => Duration::ZERO,
            Retry::AFewTimes => {
                self.internal += 1;
                if self.internal > MAX_INTERNAL {
                    return None;
                }
                Duration::ZERO
            }
        };
        let wait = MIN_BACKOFF.saturating_mul(1 << self.in_a_row.min(10)).min(MAX_BACKOFF);
        self.in_a_row = self.in_a_row.saturating_add(1);
        let left_out = u32::try_from(random % 1024).unwrap_or_default();
        Some((wait - wait.mul_f64(f64::from(left_out) / 2048.0)).max(retry_after))
    }
}

#[derive(Debug, PartialEq)]
enum Retry {
    After(Duration),
    Soon,
    AFewTimes,
}

/// The way in which another attempt may succeed; `None` if none can.
fn retry(fault: &RequestFault) -> Option<Retry> {
    match fault {
        RequestFault::Timeout(_) => Some(Retry::Soon),
        RequestFault::Transport(error) if error.is_final() => None,
        RequestFault::Transport(error) => match error.kind() {
            Kind::Unreachable | Kind::Closed => Some(Retry::Soon),
            Kind::HttpStatus(408 | 429 | 500 | 502..=504 | 506..=599) => {
                Some(fault.retry_after().map_or(Retry::Soon, Retry::After))
            }
            _ => None,
        },
        RequestFault::Server(error) => match fault.retry_after() {
            Some(wait) => Some(Retry::After(wait)),
            None if error.reason() == Some("busy") => Some(Retry::Soon),
            // Reading a task changes nothing, and a server may be broken for a moment.
            None if error.code == ErrorCode::INTERNAL_ERROR => Some(Retry::AFewTimes),
            None => None,
        },
        _ => None,
    }
}

/// The times of the polls of one task.
#[derive(Default)]
pub(crate) struct PollTimes {
    /// `true` while the server reports the changes of the task.
    pub(crate) is_reported: bool,
    /// The moment of the latest reply.
    last: Option<Instant>,
    /// `lastUpdatedAt` of the latest state.
    newest: String,
}

impl PollTimes {
    /// The wait before the next poll. A task whose changes are reported is polled rarely, in case a report is lost.
    pub(crate) fn interval(&self, suggested: Option<Duration>) -> Duration {
        let interval = poll_interval(suggested);
        if self.is_reported { interval.max(SAFETY_INTERVAL) } else { interval }
    }

    /// The wait before a poll after the server reported a change. Many reports do not cause many polls.
    pub(crate) fn after_change(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |last| MIN_INTERVAL.saturating_sub(last.elapsed()))
    }

    /// Stores the time of a reply.
    pub(crate) fn replied(&mut self, task: &Task) {
        self.last = Some(Instant::now());
        self.newest.clone_from(&task.last_updated_at);
    }

    /// Returns `true` if a reported state is older than one that was received already: it waited on another connection.
    pub(crate) fn is_outdated(&self, task: &Task) -> bool {
        !task.status.is_final() && is_earlier(&task.last_updated_at, &self.newest)
    }
}

/// Compares moments in ISO 8601. Two texts of different forms have no order here.
fn is_earlier(one: &str, other: &str) -> bool {
    let form = |text: &str| -> String {
        text.chars().map(|sign| if sign.is_ascii_digit() { '0' } else { sign }).collect()
    };
    form(one) == form(other) && one < other
}

/// The source of the changes of one task.
pub(crate) enum NewsSource {
    /// The task is polled only.
    None,
    /// The subscription of the client.
    Subscription(TaskWatch),
    /// The notifications of a session.
    Session(Arc<StatusListener>),
}

impl NewsSource {
    /// Subscribes to the changes of the task, as far as the client does that and the server is known.
    ///
    /// `call`: the call that the questions of the task belong to.
    pub(crate) fn new(
        connection: &Arc<Connection>,
        task_id: &str,
        form: TaskForm,
        call: &Arc<Origin>,
    ) -> Self {
        if let Some(session) = connection.current_session() {
            session.add_task_call(task_id, call);
            return Self::Session(StatusListener::new(&session, task_id));
        }
        if !connection.core.task_notifications || !connection.is_modern() || form == TaskForm::Draft {
            return Self::None;
        }
        watch_task(connection, task_id).map_or(Self::None, Self::Subscription)
    }

    /// Waits for the next change. Without a source, it waits without end.
    pub(crate) async fn next(&mut self) -> TaskNews {
        match self {
            Self::None => pending().await,
            Self::Subscription(watch) => watch.next().await,
            Self::Session(listener) => {
                listener.changed.notified().await;
                TaskNews::Changed
            }
        }
    }
}

/// Receives `notifications/tasks/status` of one task.
///
/// > Requestors **MUST NOT** rely on receiving this notification, as it is optional.
pub(crate) struct StatusListener {
    task_id: String,
    changed: Notify,
}

impl StatusListener {
    fn new(session: &Session, task_id: &str) -> Arc<Self> {
        let listener = Arc::new(Self { task_id: task_id.to_owned(), changed: Notify::new() });
        session.listen(Arc::downgrade(&listener) as Weak<dyn Listener>);
        listener
    }
}

impl Listener for StatusListener {
    fn on_change(&self, notification: &IncomingNotification) {
        if notification.method != method::TASKS_STATUS {
            return;
        }
        let params = notification.params.as_deref().map_or("{}", |params| params.get());
        if let Ok(LegacyTask { task, .. }) = serde_json::from_str(params)
            && task.task_id == self.task_id
        {
            self.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::TransportError;
    use antiphon_wire::ErrorObject;
    use serde_json::{Value, json};

    #[test]
    fn the_suggested_interval_is_bounded() {
        for (suggested, expected) in
            [(None, 1000), (Some(0), 50), (Some(49), 50), (Some(700), 700), (Some(u64::MAX), 60_000)]
        {
            let wait = poll_interval(suggested.map(Duration::from_millis));
            assert_eq!(wait, Duration::from_millis(expected), "{suggested:?}");
        }
    }

    #[test]
    fn the_time_left_ends_a_minute_after_the_ttl() {
        for (ttl, age, expected) in
            [(None, 5, None), (Some(10), 4, Some(66)), (Some(10), 11, Some(60)), (Some(0), 0, Some(60))]
        {
            let seconds = Duration::from_secs;
            assert_eq!(time_left(ttl.map(seconds), seconds(age)), expected.map(seconds), "{ttl:?} {age}");
        }
        assert_eq!(time_left(Some(Duration::MAX), Duration::ZERO), Some(Duration::MAX));
    }

    fn transport(kind: Kind) -> RequestFault {
        RequestFault::Transport(TransportError::new(kind, "the cause"))
    }

    fn server(code: ErrorCode, data: Value) -> RequestFault {
        RequestFault::Server(ErrorObject::new(code, "no").with_data(data))
    }

    #[test]
    fn transient_faults_are_those_of_the_moment() {
        let soon = Some(Retry::Soon);
        for (fault, expected) in [
            (RequestFault::Timeout(Duration::from_secs(1)), soon),
            (transport(Kind::Unreachable), Some(Retry::Soon)),
            (transport(Kind::Closed), Some(Retry::Soon)),
            (transport(Kind::HttpStatus(503)), Some(Retry::Soon)),
            (transport(Kind::HttpStatus(500)), Some(Retry::Soon)),
            (transport(Kind::HttpStatus(501)), None),
            (transport(Kind::HttpStatus(401)), None),
            (transport(Kind::HttpStatus(404)), None),
            (transport(Kind::Malformed), None),
            (RequestFault::Transport(TransportError::new(Kind::Closed, "ended").for_good()), None),
            (server(ErrorCode::INTERNAL_ERROR, json!({"reason": "busy"})), Some(Retry::Soon)),
            (
                server(ErrorCode::INTERNAL_ERROR, json!({"reason": "codec", "retryAfterMs": 1500})),
                Some(Retry::After(Duration::from_millis(1500))),
            ),
            (server(ErrorCode::INTERNAL_ERROR, Value::Null), Some(Retry::AFewTimes)),
            (server(ErrorCode::METHOD_NOT_FOUND, Value::Null), None),
            (RequestFault::UnknownTask(ErrorObject::invalid_params("gone")), None),
        ] {
            assert_eq!(retry(&fault), expected, "{fault}");
        }
    }

    #[test]
    fn waits_double_and_begin_anew_after_a_success() {
        let (closed, internal) = (transport(Kind::Closed), server(ErrorCode::INTERNAL_ERROR, Value::Null));
        let mut failures = Failures::default();
        let waits: Vec<u128> =
            (0..8).filter_map(|_| failures.next(&closed, 0)).map(|wait| wait.as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        failures.reset();
        let shortened = failures.next(&closed, 1023).unwrap();
        assert!(
            shortened > Duration::from_millis(250) && shortened < Duration::from_millis(251),
            "{shortened:?}"
        );
        failures.reset();
        let busy = server(ErrorCode::INTERNAL_ERROR, json!({"retryAfterMs": 7000}));
        assert_eq!(failures.next(&busy, 5), Some(Duration::from_secs(7)));
        assert_eq!((0..20).filter_map(|_| failures.next(&internal, 0)).count(), 10);
    }

    #[test]
    fn moments_of_one_form_have_an_order() {
        for (one, other, expected) in [
            ("2026-08-20T10:30:00Z", "2026-08-20T10:30:01Z", true),
            ("2026-08-20T10:30:00.100Z", "2026-08-20T10:30:00.200Z", true),
            ("2026-08-20T10:30:00Z", "2026-08-20T10:30:00Z", false),
            ("2026-08-20T10:30:01Z", "2026-08-20T10:30:00Z", false),
            ("2026-08-20T10:30:00Z", "2026-08-20T10:30:00.5Z", false),
            ("2026-08-20T10:30:00+02:00", "2026-08-20T10:30:01Z", false),
            ("", "2026-08-20T10:30:01Z", false),
        ] {
            assert_eq!(is_earlier(one, other), expected, "{one} {other}");
        }
    }
}
