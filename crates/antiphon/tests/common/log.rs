//! A capture of antiphon's log at every level, with the fields of events and spans.

use std::{
    cell::RefCell,
    fmt::{Debug, Write as _},
    sync::{Mutex, Once},
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

thread_local! {
    static LINES: RefCell<String> = const { RefCell::new(String::new()) };
}

static ALL_LINES: Mutex<String> = Mutex::new(String::new());

/// Returns the log of this thread since the last call. Each test has its own thread. Lines before the first call in the
/// process are lost.
pub fn take_log() -> String {
    install();
    LINES.take()
}

/// Returns the log of all threads, for a program with one test.
pub fn take_log_of_all_threads() -> String {
    install();
    std::mem::take(&mut *ALL_LINES.lock().unwrap())
}

/// Installs one subscriber for all tests, because `tracing` caches interest per callsite, not per thread.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| tracing::subscriber::set_global_default(Log).unwrap());
}

struct Log;

impl Log {
    fn add(text: &str) {
        LINES.with_borrow_mut(|lines| lines.push_str(text));
        ALL_LINES.lock().unwrap().push_str(text);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("antiphon")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut line = Line(String::new());
        attributes.record(&mut line);
        line.0.push('\n');
        Self::add(&line.0);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        line.0.push('\n');
        Self::add(&line.0);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        line.0.push('\n');
        Self::add(&line.0);
    }

    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
