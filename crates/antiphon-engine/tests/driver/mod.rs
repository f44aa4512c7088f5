//! A driver without a runtime. It polls a handler until its leg ends, and passes the record to the next leg as bytes.

use antiphon_engine::{
    AskPoll, Delivery, Leg, LegOutput, Migration, NextAction, Question, Record, Setup, SlotId, StepOutcome,
    StepBegin, StepPoll, StopReason, WakeTracker,
};
use antiphon_seal::{Call, Digest};
use antiphon_wire::{ElicitRequest, FormField, FormSchema, InputRequest, InputRequests, InputResponses};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    future::poll_fn,
    panic::Location,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, Waker},
    time::{Duration, UNIX_EPOCH},
};

/// The time at which a call begins, in Unix seconds.
pub(crate) const NOW: u64 = 1_800_000_000;

/// The result of a handler: its text, or the text of its error.
pub(crate) type Outcome = Result<String, String>;

/// A handler of any version.
pub(crate) type Handler = fn(Ctx) -> Pin<Box<dyn Future<Output = Outcome>>>;

/// Returns a form with one field, `x`.
pub(crate) fn form(message: &str) -> InputRequest {
    InputRequest::Elicit(ElicitRequest::Form {
        message: message.to_owned(),
        requested_schema: FormSchema::new(vec![FormField::text("x")]),
    })
}

/// Returns the answer for a text: `no` declines, JSON is the answer itself, and any other text fills in the form.
pub(crate) fn answer(words: &str) -> Value {
    match words {
        "no" => json!({"action": "decline"}),
        json if json.starts_with('{') => serde_json::from_str(json).expect("an answer is JSON"),
        _ => json!({"action": "accept", "content": {"x": words}}),
    }
}

fn describe_answer(answer: Option<&str>) -> String {
    let Some(answer) = answer else { return "late".to_owned() };
    let answer: Value = serde_json::from_str(answer).expect("checked answers are JSON");
    answer["content"]["x"].as_str().unwrap_or("refused").to_owned()
}

/// Describes a round by its keys and messages.
pub(crate) fn describe_round(round: &InputRequests) -> String {
    let words = round.iter().map(|(key, request)| match request {
        InputRequest::Elicit(elicit) => format!("{key}: {}", elicit.message().replace('\n', " ")),
        _ => key.to_owned(),
    });
    format!("asks {}", words.collect::<Vec<_>>().join(", "))
}

/// The context of a handler.
#[derive(Clone)]
pub(crate) struct Ctx(Rc<Inner>);

struct Inner {
    leg: RefCell<Leg>,
    ran: RefCell<Vec<String>>,
}

/// Releases its slot when it is dropped.
struct SlotGuard<'c> {
    ctx: &'c Ctx,
    slot: Option<SlotId>,
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.ctx.with(|leg| leg.release(slot, false));
        }
    }
}

impl Ctx {
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Leg) -> R) -> R {
        let mut leg = self.0.leg.borrow_mut();
        let result = act(&mut leg);
        let deferred = leg.take_deferred_work().unwrap_or_default();
        drop(leg);
        deferred.wakes.into_iter().for_each(Waker::wake);
        result
    }

    fn pin(&self, text: &str) -> Option<Digest> {
        let begin =
            || Call::begin(UNIX_EPOCH + Duration::from_secs(NOW), None).map_err(|fault| fault.to_string());
        self.with(|leg| Some(leg.call(begin)?.secret().pin(text.as_bytes())))
    }

    /// Asks a question, and returns the description of the answer.
    #[track_caller]
    pub(crate) fn ask(&self, key: &str, message: &str) -> impl Future<Output = String> {
        let (ctx, key, message, site) =
            (self.clone(), key.to_owned(), message.to_owned(), Location::caller());
        async move {
            let mut guard = None;
            poll_fn(|cx| {
                let guard = guard.get_or_insert_with(|| {
                    let slot = ctx.pin(&message).and_then(|digest| {
                        let request = form(&message);
                        let path = key.as_str().into();
                        let (within, until, elicitation_id) = (Some(60), None, None);
                        let question = Question {
                            path,
                            request,
                            text: None,
                            digest,
                            within,
                            until,
                            elicitation_id,
                            site,
                        };
                        ctx.with(|leg| leg.ask(question))
                    });
                    SlotGuard { ctx: &ctx, slot }
                });
                let Some(slot) = guard.slot else { return Poll::Pending };
                match ctx.with(|leg| leg.poll_ask(slot, cx.waker(), |text| Ok(text.to_owned()))) {
                    AskPoll::Resolved(text) => {
                        guard.slot = None;
                        Poll::Ready(describe_answer(Some(&text)))
                    }
                    AskPoll::Expired => {
                        guard.slot = None;
                        Poll::Ready(describe_answer(None))
                    }
                    AskPoll::Pending | AskPoll::Agreed { .. } => Poll::Pending,
                }
            })
            .await
        }
    }

    /// Runs a step that returns its own key and this input.
    #[track_caller]
    pub(crate) fn step(&self, key: &str, input: &str) -> impl Future<Output = String> {
        let result = format!("{key}({input})");
        self.step_of(key, input, async move { result })
    }

    /// Runs a step with this body.
    #[track_caller]
    pub(crate) fn step_of(
        &self,
        key: &str,
        input: &str,
        body: impl Future<Output = String> + 'static,
    ) -> impl Future<Output = String> {
        let (ctx, key, input, site) = (self.clone(), key.to_owned(), input.to_owned(), Location::caller());
        let body = Box::pin(body);
        async move {
            let (mut body, mut guard, mut wake) = (body, None, None);
            poll_fn(|cx| {
                let guard = guard.get_or_insert_with(|| {
                    let pinned = ctx.pin(&input).filter(|_| !input.is_empty());
                    SlotGuard { ctx: &ctx, slot: ctx.with(|leg| leg.step(key.as_str().into(), pinned, site)) }
                });
                let Some(slot) = guard.slot else { return Poll::Pending };
                if wake.is_none() {
                    match ctx.with(|leg| leg.poll_step(slot, cx.waker(), false)) {
                        StepPoll::Pending => return Poll::Pending,
                        StepPoll::Recorded(StepOutcome::Done(text)) => {
                            guard.slot = None;
                            return Poll::Ready(text.to_string());
                        }
                        StepPoll::Recorded(_) => return Poll::Ready("failed".to_owned()),
                        StepPoll::Run(StepBegin { wake: run, .. }) => {
                            ctx.0.ran.borrow_mut().push(key.clone());
                            wake = Some(run);
                        }
                    }
                }
                ctx.with(|leg| leg.note_step_poll(slot, cx.waker()));
                let Some(wake) = wake.as_ref().filter(|wake| wake.begin_poll(cx.waker())) else {
                    return Poll::Pending;
                };
                let inside = Waker::from(wake.clone());
                let before = ctx.with(|leg| {
                    let scope = leg.in_step(slot);
                    leg.enter(scope)
                });
                let polled = body.as_mut().poll(&mut Context::from_waker(&inside));
                ctx.with(|leg| leg.enter(before));
                let Poll::Ready(text) = polled else { return Poll::Pending };
                guard.slot = None;
                match ctx.with(|leg| leg.end_step(slot, StepOutcome::Done(text.as_str().into()))) {
                    true => Poll::Ready(text),
                    false => Poll::Pending,
                }
            })
            .await
        }
    }

    /// Awaits a checkpoint that ends the leg if it may.
    #[track_caller]
    pub(crate) fn checkpoint(&self, key: &str) -> impl Future<Output = ()> {
        let (ctx, key, site) = (self.clone(), key.to_owned(), Location::caller());
        async move {
            let mut guard = None;
            poll_fn(|cx| {
                let guard = match &mut guard {
                    Some(guard) => guard,
                    new => match ctx.with(|leg| leg.checkpoint(key.as_str().into(), true, site)) {
                        Ok(()) => return Poll::Ready(()),
                        Err(slot) => new.insert(SlotGuard { ctx: &ctx, slot }),
                    },
                };
                match guard.slot.is_some_and(|slot| ctx.with(|leg| leg.poll_checkpoint(slot, cx.waker()))) {
                    true => {
                        guard.slot = None;
                        Poll::Ready(())
                    }
                    false => Poll::Pending,
                }
            })
            .await
        }
    }
}

/// Polls two futures in one task until both have resolved.
pub(crate) async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(|cx| {
        if first.is_none()
            && let Poll::Ready(value) = one.as_mut().poll(cx)
        {
            first = Some(value);
        }
        if second.is_none()
            && let Poll::Ready(value) = other.as_mut().poll(cx)
        {
            second = Some(value);
        }
        match (first.take(), second.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

/// The client of one call.
pub(crate) struct Client {
    pub(crate) setup: Setup,
    state: Option<(Call, Vec<u8>)>,
}

impl Client {
    pub(crate) fn new(setup: Setup) -> Self {
        Self { setup: Setup { now: NOW, ..setup }, state: None }
    }

    /// Runs the handler in one leg. Returns a description of the leg: the steps that ran, and the end.
    pub(crate) fn leg(&mut self, answers: &[(&str, &str)], migration: Migration, handler: Handler) -> String {
        let setup = Setup { migration: migration.clone(), ..self.setup.clone() };
        let leg = match self.state.take() {
            None => Leg::begin(setup),
            Some((call, record)) => {
                let mut responses = InputResponses::new();
                for (key, words) in answers {
                    responses.insert(*key, &answer(words)).expect("answers are JSON");
                }
                let mut record = Record::decode(&record).expect("encoded bytes decode");
                record.migrate(&migration);
                *Leg::resume(call, record, (!answers.is_empty()).then_some(&responses), setup)
            }
        };
        let ctx = Ctx(Rc::new(Inner { leg: RefCell::new(leg), ran: RefCell::default() }));
        let (end, left) = self.drive(&ctx, handler);
        let record = left.record.encode().expect("a record encodes");
        self.state = left.call.and_then(Call::next_leg).map(|call| (call, record));
        let ran: String = ctx.0.ran.borrow().iter().map(|key| format!("runs {key}; ")).collect();
        ran + &end
    }

    fn drive(&self, ctx: &Ctx, handler: Handler) -> (String, Box<LegOutput>) {
        let parent = Waker::noop();
        let mut future = handler(ctx.clone());
        for _ in 0..1000 {
            let mut tracker = WakeTracker::new(parent);
            let waker = tracker.waker();
            ctx.with(|leg| leg.begin_poll(&waker, parent));
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            ctx.with(Leg::end_poll);
            drop(waker);
            if let Poll::Ready(outcome) = polled {
                return self.returned(ctx, outcome);
            }
            let mut next = ctx.with(|leg| leg.after_poll(Some(&mut tracker), None));
            if let NextAction::WaitAtMost(limit) = next {
                next = ctx.with(|leg| leg.after_poll(Some(&mut tracker), Some(limit)));
            }
            match next {
                NextAction::PollAgain | NextAction::PollTracked | NextAction::Yield => {}
                NextAction::Suspend => {
                    let (round, left) = ctx.with(Leg::suspend);
                    return match round {
                        Ok(round) if round.is_empty() => ("leaves with state only".to_owned(), left),
                        Ok(round) => (describe_round(&round), left),
                        Err(stop) => (describe_stop(&stop), left),
                    };
                }
                NextAction::End | NextAction::EndAfterSteps | NextAction::Cancelled => {
                    let stop = ctx.with(|leg| leg.stop_reason().cloned());
                    let words = stop.as_ref().map_or("is over".to_owned(), describe_stop);
                    return self.error(ctx, &words);
                }
                NextAction::Wait | NextAction::WaitAtMost(_) => return self.error(ctx, "waits"),
            }
        }
        panic!("the driver never stops polling");
    }

    fn returned(&self, ctx: &Ctx, outcome: Outcome) -> (String, Box<LegOutput>) {
        let stop = ctx.with(|leg| leg.stop_reason().cloned());
        match (stop, outcome) {
            (Some(stop), _) => self.error(ctx, &describe_stop(&stop)),
            (None, Ok(words)) => (format!("returns {words}"), ctx.with(Leg::finish)),
            (None, Err(words)) => self.error(ctx, &format!("fails {words}")),
        }
    }

    fn error(&self, ctx: &Ctx, words: &str) -> (String, Box<LegOutput>) {
        let mut left = ctx.with(Leg::finish);
        let leaves = left.suspend_before_error(&self.setup.limits);
        (if leaves { format!("leaves; {words}") } else { words.to_owned() }, left)
    }
}

fn describe_stop(stop: &StopReason) -> String {
    match stop {
        StopReason::Author(text) if text.contains("is used twice") => "stops: used twice".to_owned(),
        StopReason::Author(text) if text.contains("is inside of") => "stops: inside of a step".to_owned(),
        StopReason::Author(text) => format!("stops: {text}"),
        StopReason::Diverged { path, reason, .. } => format!("diverges: {path}: {reason}"),
        StopReason::Limit { name, .. } => format!("limit {name}"),
        stop => format!("stops: {stop:?}"),
    }
}

/// Returns settings in which answers come with the next leg.
pub(crate) fn setup() -> Setup {
    Setup { delivery: Delivery::NextLeg, now: NOW, ..Setup::default() }
}
