//! Legs that end while other code keeps a waker, as a lookup or a set of futures does. Each bounded wait of the driver is over at
//! once.

use crate::driver::{self, Client, Handler, both};
use antiphon_engine::{Delivery, Limits, Migration, Setup};
use antiphon_seal::Digest;
use std::{future::poll_fn, task::Poll};

/// The answers with which a leg begins, its handler, and its description.
type Leg<'a> = (&'a [(&'a str, &'a str)], Handler, &'a str);

/// Runs legs with these settings; the last one with other settings.
#[track_caller]
fn check(setup: &Setup, last: &Setup, legs: &[Leg<'_>]) {
    let mut client = Client::new(setup.clone());
    for (number, (answers, handler, expected)) in legs.iter().enumerate() {
        if number + 1 == legs.len() {
            client.setup.delivery = last.delivery;
        }
        assert_eq!(client.leg(answers, Migration::new(), *handler), *expected, "leg {}", number + 1);
    }
}

macro_rules! handler {
    ($ctx:ident, $body:expr) => {
        |$ctx| Box::pin(async move { $body })
    };
}

/// Keeps the waker of its poll, and never resolves.
async fn lookup() {
    let mut kept = None;
    poll_fn(|cx| {
        kept = Some(cx.waker().clone());
        Poll::Pending
    })
    .await
}

const TWO: Handler = handler!(ctx, {
    let (a, b) = both(ctx.ask("a", "A?"), ctx.ask("b", "B?")).await;
    let c = ctx.ask("c", "C?").await;
    Ok(format!("{a} {b} {c}"))
});

#[test]
fn a_new_step_beside_a_kept_waker_does_not_wait_for_ever() {
    let only_step: Handler = handler!(ctx, Ok(both(lookup(), ctx.step("s", "")).await.1));
    let refused = "diverges: a: it was refused and is not asked any more, and a new step is due";
    let asks = (&[] as &[_], TWO, "asks a: A?, b: B?");
    let this_leg = Setup { delivery: Delivery::ThisLeg, ..driver::setup() };
    for last in [driver::setup(), this_leg] {
        let check = |legs: &[Leg<'_>]| check(&driver::setup(), &last, legs);
        check(&[asks, (&[("a", "no")], only_step, refused)]);
        let both_answered: Leg<'_> = (&[("a", "no"), ("b", "2")], TWO, "asks c: C?");
        check(&[asks, both_answered, (&[("c", "3")], only_step, refused)]);
        let with_step: Handler = handler!(ctx, {
            ctx.step("t", "").await;
            Ok(ctx.ask("d", "D?").await)
        });
        check(&[
            (&[], with_step, "runs t; asks d: D?"),
            (&[("d", "4")], only_step, "diverges: t: it was not replayed, and a new step is due"),
        ]);
    }
}

#[test]
fn a_refusal_stops_no_step_if_a_question_that_was_open_beside_it_was_answered_later() {
    // The refused answer is not taken: the leg ends before that.
    let waits: Handler = handler!(ctx, Ok(both(ctx.ask("b", "B?"), lookup()).await.0));
    let other_text: Handler = handler!(ctx, Ok(both(ctx.ask("b", "Other B?"), lookup()).await.0));
    let only_b: Handler = handler!(ctx, {
        let b = ctx.ask("b", "B?").await;
        Ok(b + &ctx.step("s", "").await)
    });
    let only_other_b: Handler = handler!(ctx, {
        let b = ctx.ask("b", "Other B?").await;
        Ok(b + &ctx.step("s", "").await)
    });
    let refused = "diverges: a: it was refused and is not asked any more, and a new step is due";
    for (waits, asks, then, end) in [
        (waits, "asks b: B?", only_b, "runs s; returns 2s()"),
        // It was not open in the round of the refusal with this text.
        (other_text, "asks b: Other B?", only_other_b, &*format!("leaves; {refused}")),
    ] {
        let legs: [Leg<'_>; 4] = [
            (&[], TWO, "asks a: A?, b: B?"),
            (&[("a", "no")], waits, asks),
            (&[], waits, asks),
            (&[("b", "2")], then, end),
        ];
        check(&driver::setup(), &driver::setup(), &legs);
    }
}

/// Asks `b` and then `c`, and has not come to `a` when its leg ends.
const BEFORE_A: Handler = handler!(ctx, {
    let second = async {
        ctx.ask("b", "B?").await;
        ctx.ask("c", "C?").await
    };
    Ok(both(second, lookup()).await.0)
});

/// The same, and nothing but an answer continues it.
const WITHOUT_A: Handler = handler!(ctx, {
    ctx.ask("b", "B?").await;
    Ok(ctx.ask("c", "C?").await)
});

#[test]
fn a_leg_of_a_task_that_ends_early_keeps_the_questions_that_it_has_not_reached() {
    let task = Setup { in_task: true, ..driver::setup() };
    let call = driver::setup();
    let begin: Leg<'_> = (&[], TWO, "asks a: A?, b: B?");
    let (answer_a, answer_b): ([_; 1], [_; 1]) = ([("a", "1")], [("b", "2")]);
    for (setup, early, after_answer) in [
        (&task, BEFORE_A, "asks c: C?"),
        // At rest without it.
        (&task, WITHOUT_A, "asks a: A?"),
        // A client shows the questions of the last round only.
        (&call, BEFORE_A, "asks a: A?"),
    ] {
        let legs: [Leg<'_>; 3] = [begin, (&answer_b, early, "asks c: C?"), (&answer_a, TWO, after_answer)];
        check(setup, setup, &legs);
        // Several legs may end before the answer is taken.
        let legs: [Leg<'_>; 5] = [
            begin,
            (&answer_b, early, "asks c: C?"),
            (&[], early, "asks c: C?"),
            (&answer_a, early, "asks c: C?"),
            (&[("c", "3")], TWO, if after_answer == "asks c: C?" { "returns 1 2 3" } else { "asks a: A?" }),
        ];
        check(setup, setup, &legs);
    }
}

#[test]
fn a_leg_of_a_task_that_ends_at_a_checkpoint_keeps_the_questions_that_it_has_not_reached() {
    let task = Setup { in_task: true, ..driver::setup() };
    let checkpoint: Handler = handler!(ctx, {
        ctx.ask("b", "B?").await;
        ctx.step("s", "").await;
        ctx.checkpoint("p").await;
        Ok(ctx.ask("a", "A?").await)
    });
    check(
        &task,
        &task,
        &[
            (&[], TWO, "asks a: A?, b: B?"),
            (&[("b", "2")], checkpoint, "runs s; leaves with state only"),
            (&[("a", "1")], checkpoint, "returns 1"),
        ],
    );
}

const ONLY_A: Handler = handler!(ctx, Ok(ctx.ask("a", "A?").await));
/// Asks one more question beside the first one.
const A_AND_B: Handler = handler!(ctx, {
    let (a, b) = both(ctx.ask("a", "A?"), ctx.ask("b", "B?")).await;
    Ok(format!("{a} {b}"))
});
const A_THEN_C: Handler = handler!(ctx, {
    ctx.ask("a", "A?").await;
    Ok(ctx.ask("c", "C?").await)
});
const OTHER_A_AND_B: Handler = handler!(ctx, {
    let (a, b) = both(ctx.ask("a", "Other A?"), ctx.ask("b", "B?")).await;
    Ok(format!("{a} {b}"))
});

/// A question that an earlier run of the leg has shown has one place in the round, not two.
#[test]
fn a_question_that_an_earlier_run_has_shown_is_open_once() {
    let limits = Limits { asks: 2, ..Limits::default() };
    let begin: Leg<'_> = (&[], ONLY_A, "asks a: A?");
    let (not_valid, valid) = ([("a", r#"{"action": "accept", "content": {"x": 7}}"#)], [("a", "1")]);
    let cases: [&[Leg<'_>]; 2] = [
        // Its answer was not valid.
        &[begin, (&not_valid, A_AND_B, "asks a: A?  X must be text., b: B?")],
        // Its answer is recorded, and its text is another one now.
        &[begin, (&valid, A_THEN_C, "asks c: C?"), (&[("c", "3")], OTHER_A_AND_B, "asks a: Other A?, b: B?")],
    ];
    for legs in cases {
        let mut client = Client::new(Setup { in_task: true, limits, ..driver::setup() });
        for (number, (answers, handler, expected)) in legs.iter().enumerate() {
            if number + 1 == legs.len() {
                client.setup.shown = vec![("a".into(), Digest::from_bytes([7; 16]))];
            }
            assert_eq!(client.leg(answers, Migration::new(), *handler), *expected);
        }
    }
}
