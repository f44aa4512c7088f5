//! Changes across instances: a change that an instance has published must reach the subscribers of every instance.
//!
//! A changer changes a resource at one instance after the other, and a watcher of each instance subscribes to all resources. A change is
//! lost if its instance said that it was published, and a watcher was neither notified of it nor subscribed again since.

use crate::{
    error::Result,
    findings::{Findings, Rule},
    fleet::Fleet,
    random::Random,
    touch::{Touched, uri},
};
use antiphon::{
    client::{
        Client,
        events::{ReconnectPolicy, SubscriptionEvent},
        transport::HttpTransport,
    },
    wire::SubscriptionFilter,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time::sleep, time::timeout};

/// The number of resources: each has one change under way at most.
const RESOURCES: usize = 64;
/// The longest time between two changes, in milliseconds.
const BETWEEN: u64 = 200;
/// The time for the reply to a change. A paused process has more.
const REPLY: Duration = Duration::from_secs(10);
/// The time in which a change must arrive: longer than all faults, and than a feed takes to notice that its connection is dead.
const ARRIVES: Duration = Duration::from_secs(90);

/// The changes of a run.
#[derive(Debug)]
pub(crate) struct Changes {
    fleet: Arc<Fleet>,
    seed: u64,
    /// The moments at which the watcher of each place was notified of each resource last.
    notified: Vec<Mutex<Vec<Option<Instant>>>>,
    numbers: Numbers,
    lost: Mutex<Vec<String>>,
}

#[derive(Debug, Default)]
struct Numbers {
    published: AtomicU64,
    arrived: AtomicU64,
    subscriptions: AtomicU64,
}

/// The tasks of a run, which end with the value.
#[derive(Debug)]
pub(crate) struct Running {
    changes: Arc<Changes>,
    changer: tokio::task::JoinHandle<JoinSet<usize>>,
    ends: tokio::sync::watch::Sender<bool>,
    watchers: JoinSet<()>,
}

impl Changes {
    /// Starts the changer and the watchers.
    pub(crate) fn start(fleet: &Arc<Fleet>, seed: u64) -> Running {
        let notified = (0..fleet.size()).map(|_| Mutex::new(vec![None; RESOURCES])).collect();
        let fleet = Arc::clone(fleet);
        let changes =
            Arc::new(Self { fleet, seed, notified, numbers: Numbers::default(), lost: Mutex::default() });
        let mut watchers = JoinSet::new();
        for place in 0..changes.notified.len() {
            watchers.spawn(Arc::clone(&changes).watch(place));
        }
        let (ends, ended) = tokio::sync::watch::channel(false);
        let changer = tokio::spawn(Arc::clone(&changes).change(ended));
        Running { changes, changer, ends, watchers }
    }

    /// Changes one resource after the other, until the run ends. Returns the checks that go on.
    async fn change(self: Arc<Self>, ended: tokio::sync::watch::Receiver<bool>) -> JoinSet<usize> {
        let mut random = Random::new(self.seed, "changes", 0);
        // Those without a check under way, which the notification of a later change would pass.
        let mut free: VecDeque<_> = (0..RESOURCES).collect();
        let mut checks = JoinSet::new();
        while !*ended.borrow() {
            sleep(random.millis(BETWEEN)).await;
            while let Some(checked) = checks.try_join_next() {
                free.extend(checked);
            }
            let Some(resource) = free.pop_front() else { continue };
            let (since, place) =
                (Instant::now(), random.below(u64::try_from(self.fleet.size()).unwrap_or(1)));
            let place = usize::try_from(place).unwrap_or_default();
            if let Ok(Ok(process)) = timeout(REPLY, self.touch(place, resource)).await {
                self.numbers.published.fetch_add(1, Ordering::Relaxed);
                checks.spawn(Arc::clone(&self).check(resource, since, process));
            } else {
                free.push_back(resource);
            }
        }
        checks
    }

    async fn touch(&self, place: usize, resource: usize) -> Result<u32> {
        let (address, process) = self.fleet.address(place).ok_or("no process")?;
        let client =
            Client::builder("changer", "1").connect(HttpTransport::new(format!("http://{address}/mcp"))?);
        let result = client.call_tool("touch", Touched { resource }).await?;
        if result.first_text() == Some("published") { Ok(process) } else { Err("not published".into()) }
    }

    /// Waits until each watcher was notified. Returns the resource.
    async fn check(self: Arc<Self>, resource: usize, since: Instant, process: u32) -> usize {
        for (place, notified) in self.notified.iter().enumerate() {
            loop {
                if lock(notified)[resource].is_some_and(|moment| moment >= since) {
                    self.numbers.arrived.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                if since.elapsed() > ARRIVES {
                    let age = since.elapsed().as_secs();
                    lock(&self.lost).push(format!(
                        "{} changed at process {process} {age} s ago: the subscriber at place {place} was not notified",
                        uri(resource)
                    ));
                    break;
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
        resource
    }

    /// Subscribes at one place again and again.
    async fn watch(self: Arc<Self>, place: usize) {
        loop {
            let _ = self.subscribe(place).await;
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn subscribe(&self, place: usize) -> Result<()> {
        let (address, _) = self.fleet.address_at(place).ok_or("no process")?;
        let client =
            Client::builder("watcher", "1").connect(HttpTransport::new(format!("http://{address}/mcp"))?);
        let filter =
            (0..RESOURCES).fold(SubscriptionFilter::new(), |filter, number| filter.resource(uri(number)));
        let mut events = client.listen(filter).reconnect(ReconnectPolicy::never());
        while let Some(event) = events.next().await {
            match event? {
                // Whoever subscribes reads everything.
                SubscriptionEvent::Acknowledged(_) => {
                    self.numbers.subscriptions.fetch_add(1, Ordering::Relaxed);
                    lock(&self.notified[place]).fill(Some(Instant::now()));
                }
                SubscriptionEvent::ResourceUpdated { uri } => {
                    let resource = uri.strip_prefix("drill://").and_then(|number| number.parse().ok());
                    let mut notified = lock(&self.notified[place]);
                    if let Some(moment) = resource.and_then(|number: usize| notified.get_mut(number)) {
                        *moment = Some(Instant::now());
                    }
                }
                _ => (),
            }
        }
        Ok(())
    }
}

impl Running {
    /// Ends the changes, waits until all have arrived, and notes those that are lost.
    pub(crate) async fn conclude(mut self) -> Result<Concluded> {
        self.ends.send_replace(true);
        self.changer.await?.join_all().await;
        self.watchers.abort_all();
        let Numbers { published, arrived, subscriptions } = &self.changes.numbers;
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Ok(Concluded {
            published: count(published),
            arrived: count(arrived),
            subscriptions: count(subscriptions),
            lost: std::mem::take(&mut *lock(&self.changes.lost)),
        })
    }
}

/// The numbers of a run that is over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Concluded {
    published: u64,
    arrived: u64,
    subscriptions: u64,
    lost: Vec<String>,
}

impl Concluded {
    /// Notes what breaks the rule. A run without changes proves nothing.
    pub(crate) fn note(self, findings: &mut Findings) {
        self.lost.iter().for_each(|lost| findings.breaks(Rule::Changes, lost.clone()));
        if self.published == 0 || self.arrived == 0 {
            findings.breaks(Rule::Changes, "no change was published, or none arrived".to_owned());
        }
        findings.counts.changes = Some(format!(
            "{} changes were published, and arrived {} times: {} notifications lost, {} subscriptions",
            self.published,
            self.arrived,
            self.lost.len(),
            self.subscriptions
        ));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
