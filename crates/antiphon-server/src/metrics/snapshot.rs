//! A snapshot of the metrics, and its text for Prometheus.

use super::{ANSWERS, Counter, ERRORS, Histogram, KINDS, METHODS, Meters, OPERATIONS, OUTCOMES, STEPS};
use crate::{errors::refusal::Refusal, task_registry::TaskMetrics};
use std::fmt::{self, Write as _};

/// The metrics of a server at one moment: [`Server::metrics`](crate::Server::metrics). Counts begin with the process, and are those of this
/// process only. The guide's chapter `operations` lists them.
///
/// `Display` writes the text format of Prometheus, version 0.0.4. It has neither arguments, answers, keys nor names of persons.
#[derive(Clone, Debug)]
pub struct Metrics {
    families: Vec<Family>,
}

/// All samples of one name.
#[derive(Clone, Debug)]
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

#[derive(Clone, Debug)]
struct Sample {
    /// The end of the name: that of a part of a histogram.
    suffix: &'static str,
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// The values that are read when a snapshot is made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) handlers: usize,
    pub(crate) sessions: usize,
    pub(crate) request_bytes: usize,
    pub(crate) subscriptions: usize,
    pub(crate) tasks: TaskMetrics,
}

impl Metrics {
    /// Returns the value of a sample; `None` if there is none with this name and exactly these labels. A histogram has the names
    /// `.._count`, `.._sum` and `.._bucket`. Labels with an empty value are left out.
    ///
    /// ```
    /// use antiphon::server::Server;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let metrics = Server::builder("orders", "1.0").build()?.metrics();
    /// assert_eq!(metrics.value("antiphon_calls_total", &[("outcome", "complete")]), Some(0.0));
    /// # Ok(()) }
    /// ```
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let samples =
            self.families.iter().filter_map(|family| Some((family, name.strip_prefix(family.name)?)));
        let mut found = samples
            .flat_map(|(family, suffix)| family.samples.iter().filter(move |sample| sample.suffix == suffix));
        let has = |sample: &Sample| {
            sample.labels.len() == labels.len()
                && labels
                    .iter()
                    .all(|(name, value)| sample.labels.iter().any(|(key, text)| key == name && text == value))
        };
        found.find(|sample| has(sample)).map(|sample| sample.value)
    }

    pub(crate) fn new(meters: &Meters, gauges: &Gauges) -> Self {
        let mut all = Self { families: Vec::new() };
        all.requests(meters);
        all.calls(meters);
        all.store(meters);
        all.gauges(gauges);
        all.tasks(&gauges.tasks);
        all
    }

    fn requests(&mut self, meters: &Meters) {
        let family = self.family(
            "mcp_server_operation_duration_seconds",
            "histogram",
            "Requests, from the message to its reply: mcp.server.operation.duration of OpenTelemetry.",
        );
        for (at, histogram) in meters.requests.iter().enumerate() {
            let (method, error) = (METHODS[at / ERRORS.len()], ERRORS[at % ERRORS.len()]);
            family.histogram(histogram, &[("mcp_method_name", method), ("error_type", error)]);
        }
    }

    fn calls(&mut self, meters: &Meters) {
        let calls = OUTCOMES.iter().map(|outcome| vec![("outcome", *outcome)]);
        self.counters("antiphon_calls_total", "Calls that ended.", calls, &meters.calls);
        let legs = std::slice::from_ref(&meters.legs);
        self.counters("antiphon_legs_total", "Requests of calls that were admitted.", [vec![]], legs);
        let kinds = KINDS.iter().map(|kind| vec![("kind", *kind)]);
        self.counters("antiphon_asks_total", "Asks that left.", kinds, &meters.asks);
        let answers = ANSWERS.iter().map(|(kind, outcome)| vec![("kind", *kind), ("outcome", *outcome)]);
        self.counters("antiphon_answers_total", "Answers that arrived.", answers, &meters.answers);
        let family = self.family(
            "antiphon_human_wait_seconds",
            "histogram",
            "The time between a round of asks and the request with its answers.",
        );
        family.histogram(&meters.human_wait, &[]);
        let steps = STEPS.iter().map(|end| vec![("outcome", *end)]);
        self.counters("antiphon_steps_total", "Steps that ended.", steps, &meters.steps);
        let refusals = Refusal::LABELS.iter().map(|reason| vec![("reason", *reason)]);
        self.counters("antiphon_refusals_total", "Requests that were refused.", refusals, &meters.refusals);
    }

    fn store(&mut self, meters: &Meters) {
        let family = self.family(
            "antiphon_store_duration_seconds",
            "histogram",
            "Operations of the store of calls, transactions apart.",
        );
        for (at, histogram) in meters.store.iter().enumerate() {
            let error = if at < OPERATIONS.len() { "" } else { "store" };
            let operation = OPERATIONS[at % OPERATIONS.len()];
            family.histogram(histogram, &[("operation", operation), ("error_type", error)]);
        }
    }

    fn gauges(&mut self, gauges: &Gauges) {
        for (name, help, value) in [
            ("antiphon_handlers", "Handlers that run now, outside of sessions.", gauges.handlers),
            ("antiphon_sessions", "Open sessions of earlier revisions.", gauges.sessions),
            (
                "antiphon_request_bytes",
                "Bytes of requests and messages that are reserved.",
                gauges.request_bytes,
            ),
            ("antiphon_subscriptions", "Open subscriptions.", gauges.subscriptions),
        ] {
            self.family(name, "gauge", help).push("", &[], value as f64);
        }
    }

    fn tasks(&mut self, tasks: &TaskMetrics) {
        let states = [
            ("created", tasks.created),
            ("completed", tasks.completed),
            ("failed", tasks.failed),
            ("cancelled", tasks.cancelled),
        ];
        let family =
            self.family("antiphon_tasks_total", "counter", "Tasks that reached a state in this process.");
        for (state, count) in states {
            family.push("", &[("state", state)], count as f64);
        }
        for (name, kind, help, count) in [
            ("antiphon_task_legs_running", "gauge", "Legs of tasks that run now.", tasks.running),
            ("antiphon_task_legs_total", "counter", "Legs of tasks that began.", tasks.legs),
            (
                "antiphon_task_legs_failed_total",
                "counter",
                "Legs of tasks that failed for now.",
                tasks.failed_legs,
            ),
            (
                "antiphon_task_claims_lost_total",
                "counter",
                "Legs of tasks that were stopped early.",
                tasks.lost_claims,
            ),
            (
                "antiphon_task_messages_total",
                "counter",
                "Answers and cancellations that were stored.",
                tasks.messages,
            ),
        ] {
            self.family(name, kind, help).push("", &[], count as f64);
        }
    }

    fn family(&mut self, name: &'static str, kind: &'static str, help: &'static str) -> &mut Family {
        self.families.push(Family { name, kind, help, samples: Vec::new() });
        let last = self.families.len() - 1;
        &mut self.families[last]
    }

    fn counters(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: impl IntoIterator<Item = Vec<(&'static str, &'static str)>>,
        counters: &[Counter],
    ) {
        let family = self.family(name, "counter", help);
        for (labels, counter) in labels.into_iter().zip(counters) {
            family.push("", &labels, counter.get() as f64);
        }
    }
}

impl Family {
    fn push(&mut self, suffix: &'static str, labels: &[(&'static str, &str)], value: f64) {
        let labels = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels = labels.map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.samples.push(Sample { suffix, labels, value });
    }

    /// Adds a histogram, unless it is empty: most methods have few errors.
    fn histogram(&mut self, histogram: &Histogram, labels: &[(&'static str, &str)]) {
        if histogram.is_empty() {
            return;
        }
        let (buckets, count, sum) = histogram.read();
        let bounds = buckets.into_iter().map(|(bound, count)| (bound.to_string(), count));
        for (bound, count) in bounds.chain([("+Inf".to_owned(), count)]) {
            let labels: Vec<_> = labels.iter().copied().chain([("le", &*bound)]).collect();
            self.push("_bucket", &labels, count as f64);
        }
        self.push("_sum", labels, sum);
        self.push("_count", labels, count as f64);
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Family { name, kind, help, samples } in &self.families {
            writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
            for Sample { suffix, labels, value } in samples {
                write!(f, "{name}{suffix}")?;
                for (at, (label, text)) in labels.iter().enumerate() {
                    f.write_char(if at == 0 { '{' } else { ',' })?;
                    write!(f, "{label}=\"{text}\"")?;
                }
                f.write_str(if labels.is_empty() { " " } else { "} " })?;
                writeln!(f, "{value}")?;
            }
        }
        Ok(())
    }
}
