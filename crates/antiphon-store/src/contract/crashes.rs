//! A runner that dies between any two of its operations.

use super::subject::{LEASE, Subject, request};
use crate::claim::{Claim, Fence, Unknown};
use crate::step::{StepAttempt, StepRecord};
use crate::store::CallStore;

/// An operation of the runner that dies.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Renew,
    Start(&'static str, u32),
    End(&'static str),
    Commit,
}

/// The operations of a leg with two steps, the first of which needs two attempts.
const LEG: &[Operation] = &[
    Operation::Start("pay", 1),
    Operation::Renew,
    Operation::Start("pay", 2),
    Operation::End("pay"),
    Operation::Start("mail", 1),
    Operation::End("mail"),
    Operation::Commit,
];

/// The step that is interrupted after so many operations of [`LEG`].
const INTERRUPTED: &[Option<(&str, u32)>] =
    &[None, Some(("pay", 1)), Some(("pay", 1)), Some(("pay", 2)), None, Some(("mail", 1)), None];

/// Checks what another runner finds after a crash between any two operations, and that it can go on.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_crashes(subject: &Subject) {
    for done in 0..=LEG.len() {
        let first = subject.new_request();
        let call = first.call;
        let dead = subject.granted(&first).await;
        for operation in &LEG[..done] {
            run(&*subject.first, &dead, *operation).await;
        }
        subject.clock.advance(LEASE);
        let other = request(call, 1, 1, 2);
        let claim = subject.claimed(&other).await;
        if done == LEG.len() {
            assert_eq!(claim, Claim::Done(b"outcome".to_vec()), "after the commit");
            continue;
        }
        let step = INTERRUPTED[done].map(|(step, attempt)| StepAttempt { step: step.to_owned(), attempt });
        assert_eq!(claim, Claim::Unknown(Unknown { leg: 1, step }), "after {:?}", &LEG[..done]);
        assert_eq!(subject.claimed(&other).await, claim, "the information stays after {:?}", &LEG[..done]);

        let Claim::Fresh(fence) = subject.claimed(&other.clone().take_over(true)).await else {
            panic!("no takeover after {:?}", &LEG[..done])
        };
        let expected: Vec<_> = LEG[..done].iter().filter_map(|operation| record(*operation)).collect();
        let loaded = subject.second.load(call).await.unwrap_or_else(|error| panic!("load: {error:?}"));
        assert_eq!(loaded, expected, "the records of the dead runner");
        for operation in &LEG[done..] {
            run(&*subject.second, &fence, *operation).await;
        }
        assert_eq!(subject.claimed(&request(call, 1, 1, 3)).await, Claim::Done(b"outcome".to_vec()));
        let late = subject.first.commit(&dead, b"outcome").await;
        assert!(late.is_err_and(|error| error.is_fence_lost()), "the dead runner committed");
    }
}

async fn run(store: &dyn CallStore, fence: &Fence, operation: Operation) {
    let result = match operation {
        Operation::Renew => store.renew(fence, LEASE).await,
        Operation::Commit => store.commit(fence, b"outcome").await,
        Operation::Start(..) | Operation::End(_) => match record(operation) {
            Some(record) => store.append(fence, &record).await.map(drop),
            None => Ok(()),
        },
    };
    result.unwrap_or_else(|error| panic!("{operation:?}: {error:?}"));
}

fn record(operation: Operation) -> Option<StepRecord> {
    match operation {
        Operation::Start(step, attempt) => Some(StepRecord::started(step, attempt)),
        Operation::End(step) => Some(StepRecord::ended(step, format!("{step} done"))),
        Operation::Renew | Operation::Commit => None,
    }
}
