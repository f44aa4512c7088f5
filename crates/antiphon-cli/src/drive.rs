//! From leg to leg: sends, answers, sends again.

use crate::{
    answers::Answers,
    ask::{self, Unanswered},
    failure::Failure,
    report::Outcome,
};
use antiphon::client::{Call, CallProgress, Client, PendingCall};

/// How often a call is sent again with answers. Common clients stop at ten.
const MAX_ROUNDS: u32 = 10;

/// Where a call begins.
pub(crate) enum Start {
    New(Call),
    Resume(PendingCall),
}

/// Drives a call to its end, or with `once` over one leg.
pub(crate) async fn drive(client: &Client, start: Start, answers: &mut Answers, once: bool) -> Outcome {
    walk(client, start, answers, once).await.unwrap_or_else(Outcome::Failed)
}

async fn walk(client: &Client, start: Start, answers: &mut Answers, once: bool) -> Result<Outcome, Failure> {
    let (mut step, mut legs) = match start {
        Start::New(call) => (client.begin(call).await?, 1),
        Start::Resume(pending) => (CallProgress::Pending(pending), 0),
    };
    let mut answered = 0;
    loop {
        let mut pending = match step {
            CallProgress::Done(finished) => return Ok(Outcome::Done(finished)),
            CallProgress::Pending(pending) => pending,
            _ => {
                return Err(Failure::protocol(
                    "call",
                    "the call goes on in a way that is not supported here",
                ));
            }
        };
        if once && legs == 1 {
            return Ok(Outcome::Pending { pending: Box::new(pending), missing: None });
        }
        if answered == MAX_ROUNDS {
            let text = format!("{} still asks after {answered} answered rounds", pending.server());
            return Err(Failure::protocol("round_limit", text));
        }
        // A prompt waits for a person; other tasks go on elsewhere.
        match tokio::task::block_in_place(|| ask::answer_round(&mut pending, answers)) {
            Ok(()) => {}
            Err(Unanswered::Missing(missing)) => {
                return Ok(Outcome::Pending { pending: Box::new(pending), missing: Some(missing) });
            }
            Err(Unanswered::Failed(failure)) => return Err(failure),
        }
        answered += 1;
        legs += 1;
        step = client.resume(pending).await?;
    }
}
