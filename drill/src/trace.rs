//! The events of a server process, as lines of its output, which the driver reads.

use crate::clock::micros;
use std::{
    collections::{BTreeSet, HashMap},
    fmt::{self, Write as _},
    io::Write as _,
    time::{Duration, Instant},
};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// The messages that become lines, and the first word of each line. The second word is the call, and the third one the leg.
const LINES: [(&str, &str); 4] = [
    ("a round leaves", "round"),
    ("a handler runs", "runs"),
    ("a record moved to the store", "spilled"),
    ("a call of another version", "version"),
];

/// Prints the events of a process. With the variable `DRILL_LOG`, warnings and errors are printed to the standard error, and all
/// events if its value is `debug`.
#[derive(Debug)]
pub(crate) struct Printer {
    shows: Option<Level>,
}

impl Printer {
    pub(crate) fn new() -> Self {
        let shows = std::env::var("DRILL_LOG").ok();
        Self { shows: shows.map(|level| if level == "debug" { Level::DEBUG } else { Level::WARN }) }
    }
}

/// The fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    call: String,
    leg: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = match field.name() {
            "message" => &mut self.message,
            "call" => &mut self.call,
            "leg" => &mut self.leg,
            name => {
                let _ = write!(self.others, " {name}=");
                &mut self.others
            }
        };
        let _ = write!(text, "{value:?}");
    }
}

impl Subscriber for Printer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = ["antiphon", "dbos", "drill"].iter().any(|name| metadata.target().starts_with(name));
        metadata.is_event() && is_ours && *metadata.level() <= Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields { message, call, leg, others } = fields;
        if let Some((_, word)) = LINES.iter().find(|(text, _)| *text == message) {
            // One write, so that a killed process leaves no half of a line before another one.
            let _ = std::io::stdout().lock().write_all(format!("{word} {call} {leg}\n").as_bytes());
        }
        if self.shows.is_some_and(|shows| *event.metadata().level() <= shows) {
            let (process, level, at) = (std::process::id(), event.metadata().level(), micros());
            let line = format!("{at} {process} {level} {message} call={call} leg={leg}{others}\n");
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The legs that the fleet's log has for one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// The legs whose round left.
    pub(crate) rounds: BTreeSet<u32>,
    /// The legs in which the handler ran.
    pub(crate) runs: BTreeSet<u32>,
}

/// The log of the whole fleet.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    calls: HashMap<String, (Trace, Instant)>,
    /// The number of records that moved to the store.
    pub(crate) spilled: u64,
    /// The number of requests of calls that began under another version of their tool.
    pub(crate) versions: u64,
}

impl Traces {
    /// Reads a line.
    pub(crate) fn read(&mut self, line: &str) {
        let mut words = line.split(' ');
        let (kind, call, leg) = (words.next(), words.next().unwrap_or_default(), words.next());
        let leg: u32 = leg.and_then(|leg| leg.parse().ok()).unwrap_or_default();
        match kind {
            Some("round") => self.touch(call).rounds.extend(Some(leg)),
            Some("runs") => self.touch(call).runs.extend(Some(leg)),
            Some("spilled") => self.spilled += 1,
            Some("version") => self.versions += 1,
            _ => (),
        }
    }

    fn touch(&mut self, call: &str) -> &mut Trace {
        let now = Instant::now();
        let (trace, touched) = self.calls.entry(call.to_owned()).or_insert((Trace::default(), now));
        *touched = now;
        trace
    }

    /// Returns the legs of a call.
    pub(crate) fn of(&self, call: &str) -> Trace {
        self.calls.get(call).map(|(trace, _)| trace.clone()).unwrap_or_default()
    }

    /// Removes the calls without an event for this time. A first request that was sent twice begins a call that nobody goes
    /// on with.
    pub(crate) fn forget(&mut self, after: Duration) {
        self.calls.retain(|_, (_, touched)| touched.elapsed() < after);
    }
}
