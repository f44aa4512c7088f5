//! Steps that are tried again, and a call that is cancelled: the attempt under way ends, and no other begins.

use super::*;
use antiphon::server::{Caller, Retry, StepError, steps::Attempt};
use std::sync::Arc;
use tokio::{sync::watch, time::sleep};

/// A call of a tool whose step fails at every attempt, and how often an attempt was begun and ended.
struct Rig {
    server: Server,
    begun: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    open: watch::Sender<bool>,
}

/// Each attempt waits until it may fail.
fn rig(retry: Retry) -> Rig {
    let (open, opened) = watch::channel(false);
    let (begun, ended) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let counted = (begun.clone(), ended.clone());
    let fails = tool(move |ctx| {
        let ((begun, ended), opened) = (counted.clone(), opened.clone());
        async move {
            let attempt = async |_: Attempt| {
                begun.fetch_add(1, SeqCst);
                opened.clone().wait_for(|open| *open).await?;
                ended.fetch_add(1, SeqCst);
                Err::<String, _>(StepError::retry(Error::user_facing("not now")))
            };
            Ok(ctx.step_retry("works", retry, attempt).await?)
        }
        .boxed()
    });
    // Longer than all attempts would take.
    let server = limited(fails, |limits| limits.step_grace(Duration::from_secs(60)));
    Rig { server, begun, ended, open }
}

impl Rig {
    /// Begins a call, drops it after `time`, and lets attempts fail from then on, or from the start. Gives how many began
    /// and ended.
    async fn cancelled(self, time: Duration, fails_from_the_start: bool) -> (usize, usize) {
        let open = |now: bool| now.then(|| self.open.send_replace(true));
        open(fails_from_the_start);
        let message = request(1, "tools/call", json!({"name": "t", "arguments": {}})).to_string();
        let caller = Caller::default();
        let call = self.server.respond(message.as_bytes(), &caller);
        assert!(tokio::time::timeout(time, call).await.is_err(), "the call is still going on");
        open(true);
        self.server.steps_ended().await;
        sleep(Duration::from_secs(600)).await;
        (self.begun.load(SeqCst), self.ended.load(SeqCst))
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_under_way_ends_after_cancellation_and_no_other_begins() {
    for retry in [Retry::times(5), Retry::times(5).interval(Duration::from_secs(1))] {
        assert_eq!(rig(retry).cancelled(ms(500), false).await, (1, 1), "{retry:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_attempt_begins_after_cancellation_in_the_pause_between_two() {
    let retry = Retry::times(5).interval(Duration::from_secs(1));
    // The second attempt fails after one second, and the third would begin after three.
    assert_eq!(rig(retry).cancelled(ms(1500), true).await, (2, 2));
}

#[tokio::test(start_paused = true)]
async fn attempts_go_on_as_long_as_somebody_waits() {
    let rig = rig(Retry::times(3).interval(Duration::from_secs(1)));
    rig.open.send_replace(true);
    let reply = ToolCall::new(json!({})).leg(&rig.server, Value::Null).await;
    assert_eq!(refused(&reply), (-32603, "step_failed"), "{reply}");
    assert_eq!((rig.begun.load(SeqCst), rig.ended.load(SeqCst)), (3, 3));
}
