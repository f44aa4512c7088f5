//! Calls over several legs, without a runtime: the steps that run, the questions that are asked, and the end of each
//! leg.
use crate::driver::{self, Client, Handler, both};
use antiphon_engine::{Leg, Limits, Migration, Setup, UrlReference};
use std::{
    cell::Cell,
    future::{pending, poll_fn},
    pin::pin,
    rc::Rc,
    task::Poll,
};

/// One expected leg: the answers with which it begins, the handler, and the description of the leg.
type ExpectedLeg<'a> = (&'a [(&'a str, &'a str)], Handler, &'a str);

#[track_caller]
fn check(setup: Setup, legs: &[ExpectedLeg<'_>]) {
    check_migrated(setup, &Migration::new(), legs);
}

/// Checks legs as [`check`] does, with a migration for each leg after the first.
#[track_caller]
fn check_migrated(setup: Setup, migration: &Migration, legs: &[ExpectedLeg<'_>]) {
    let mut client = Client::new(setup);
    for (number, (answers, handler, expected)) in legs.iter().enumerate() {
        let migration = if number == 0 { Migration::new() } else { migration.clone() };
        assert_eq!(client.leg(answers, migration, *handler), *expected, "leg {}", number + 1);
    }
}

fn limits(limits: Limits) -> Setup {
    Setup { limits, ..driver::setup() }
}

macro_rules! handler {
    ($ctx:ident, $body:expr) => {
        |$ctx| Box::pin(async move { $body })
    };
}

#[test]
fn a_call_continues_from_its_record() {
    let book: Handler = handler!(ctx, {
        let who = ctx.ask("who", "Who?").await;
        let booked = ctx.step("book", &who).await;
        let sure = ctx.ask("sure", &format!("Keep {booked}?")).await;
        Ok(format!("{booked} {sure}"))
    });
    check(
        driver::setup(),
        &[
            (&[], book, "asks who: Who?"),
            (&[], book, "asks who: Who?"),
            (&[("who", "ann"), ("sure", "unasked")], book, "runs book; asks sure: Keep book(ann)?"),
            (&[("sure", "yes")], book, "returns book(ann) yes"),
        ],
    );
    check(
        driver::setup(),
        &[
            (&[], book, "asks who: Who?"),
            (&[("who", "no")], book, "runs book; asks sure: Keep book(refused)?"),
            (&[("sure", "no")], book, "returns book(refused) refused"),
        ],
    );
    let none: Handler = handler!(ctx, Ok(ctx.step("s", "").await));
    check(driver::setup(), &[(&[], none, "runs s; returns s()")]);
}

#[test]
fn invalid_answers_are_asked_again() {
    let one: Handler = handler!(ctx, Ok(ctx.ask("a", "A?").await));
    let bad = &[("a", r#"{"action":"accept"}"#)] as &[_];
    let mut client = Client::new(driver::setup());
    assert_eq!(client.leg(&[], Migration::new(), one), "asks a: A?");
    for _ in 0..2 {
        let again = client.leg(bad, Migration::new(), one);
        assert!(again.starts_with("asks a: A?  "), "with a reason: {again}");
    }
    assert_eq!(client.leg(bad, Migration::new(), one), "limit times_asked");
}

#[test]
fn missing_answers_are_limited() {
    const BAD: (&str, &str) = ("b", r#"{"action":"accept"}"#);
    let two: Handler = handler!(ctx, {
        let (a, b) = both(ctx.ask("a", "A?"), ctx.ask("b", "B?")).await;
        Ok(format!("{a} {b}"))
    });
    let again = "asks a: A?, b: B?";
    check(
        driver::setup(),
        &[(&[], two, again), (&[], two, again), (&[], two, again), (&[], two, "limit times_asked")],
    );
    // A client may answer one question at a time, and an invalid answer counts as a leg without answers.
    check(
        driver::setup(),
        &[
            (&[], two, again),
            (&[], two, again),
            (&[], two, again),
            (&[("a", "1")], two, "asks b: B?"),
            (&[], two, "limit times_asked"),
        ],
    );
    check(
        driver::setup(),
        &[
            (&[], two, again),
            (&[("a", "1")], two, "asks b: B?"),
            (&[], two, "asks b: B?"),
            (&[BAD], two, "asks b: B?  X must be filled in."),
            (&[("b", "2")], two, "returns 1 2"),
        ],
    );
}

/// The handler returns with the answer to `b`, and drops `a`.
const FIRST_OF_TWO: Handler = handler!(ctx, {
    let (mut a, mut b) = (pin!(ctx.ask("a", "A?")), pin!(ctx.ask("b", "B?")));
    let b = poll_fn(|cx| match a.as_mut().poll(cx) {
        Poll::Ready(a) => Poll::Ready(a),
        Poll::Pending => b.as_mut().poll(cx),
    });
    Ok(b.await)
});

#[test]
fn only_questions_that_leave_are_counted() {
    let again = "asks a: A?, b: B?";
    // `a` has no answer for the third time, but is not asked again.
    check(
        driver::setup(),
        &[
            (&[], FIRST_OF_TWO, again),
            (&[], FIRST_OF_TWO, again),
            (&[], FIRST_OF_TWO, again),
            (&[("b", "2")], FIRST_OF_TWO, "returns 2"),
        ],
    );
    // The client never got the question of a leg that failed.
    let fails: Handler = handler!(ctx, {
        let twice = async { ctx.step("s", "").await + &ctx.step("s", "").await };
        let (a, s) = both(ctx.ask("a", "A?"), twice).await;
        Ok(format!("{a} {s}"))
    });
    let then: Handler = handler!(ctx, {
        let (a, s) = both(ctx.ask("a", "A?"), ctx.step("s", "")).await;
        Ok(format!("{a} {s}"))
    });
    check(
        driver::setup(),
        &[
            (&[], then, "runs s; asks a: A?"),
            (&[], then, "asks a: A?"),
            (&[], fails, "stops: used twice"),
            (&[], then, "asks a: A?"),
            (&[], then, "limit times_asked"),
        ],
    );
    // Of two questions, one leaves with each round.
    let one = limits(Limits { asks: 1, ..Limits::default() });
    let two: Handler = handler!(ctx, {
        let (a, b) = both(ctx.ask("a", "A?"), ctx.ask("b", "B?")).await;
        Ok(format!("{a} {b}"))
    });
    check(
        one,
        &[
            (&[], two, "asks a: A?"),
            (&[], two, "asks a: A?"),
            (&[], two, "asks a: A?"),
            (&[("a", "1")], two, "asks b: B?"),
            (&[], two, "asks b: B?"),
            (&[("b", "2")], two, "returns 1 2"),
        ],
    );
}

#[test]
fn answers_have_a_deadline() {
    let one: Handler = handler!(ctx, Ok(ctx.ask("a", "A?").await));
    for (later, expected) in [(60, "returns yes"), (61, "returns late")] {
        let mut client = Client::new(driver::setup());
        client.leg(&[], Migration::new(), one);
        client.setup.now += later;
        assert_eq!(client.leg(&[("a", "yes")], Migration::new(), one), expected);
    }
}

/// Asks `a` and `b` in one round, then `c`, then `d`.
macro_rules! rounds {
    ($a:literal) => {
        handler!(ctx, {
            let (a, b) = both(ctx.ask("a", $a), ctx.ask("b", "B?")).await;
            let c = ctx.ask("c", "C?").await;
            let d = ctx.ask("d", "D?").await;
            Ok(format!("{a} {b} {c} {d}"))
        })
    };
}

#[test]
fn a_changed_question_makes_later_rounds_stale() {
    let (old, new): (Handler, Handler) = (rounds!("A?"), rounds!("Really A?"));
    check(
        driver::setup(),
        &[
            (&[], old, "asks a: A?, b: B?"),
            (&[("a", "1"), ("b", "2")], old, "asks c: C?"),
            (&[("c", "3")], old, "asks d: D?"),
            (&[("d", "4")], new, "asks a: Really A?"),
            // The answer to `b` was given without knowledge of `a`; those to `c` and `d` were not.
            (&[("a", "5")], new, "asks c: C?"),
            (&[("c", "6")], new, "asks d: D?"),
            (&[("d", "7")], new, "returns 5 2 6 7"),
        ],
    );
}

#[test]
fn steps_after_a_changed_question_are_stale() {
    let old: Handler = handler!(ctx, {
        let a = ctx.ask("a", "A?").await;
        let s = ctx.step("s", "").await;
        let b = ctx.ask("b", "B?").await;
        Ok(format!("{a} {s} {b}"))
    });
    let new: Handler = handler!(ctx, {
        let a = ctx.ask("a", "Really A?").await;
        let s = ctx.step("s", "").await;
        Ok(format!("{a} {s}"))
    });
    let stale = "leaves; diverges: s: it depends on an answer that has changed";
    let legs = |end| -> [ExpectedLeg<'_>; 4] {
        [
            (&[], old, "asks a: A?"),
            (&[("a", "1")], old, "runs s; asks b: B?"),
            (&[("b", "2")], new, "asks a: Really A?"),
            (&[("a", "3")], new, end),
        ]
    };
    check(driver::setup(), &legs(stale));
    check_migrated(driver::setup(), &Migration::new().keep_stale("s"), &legs("returns 3 s()"));
}

#[test]
fn a_changed_input_diverges() {
    let with_one: Handler = handler!(ctx, {
        let s = ctx.step("s", "1").await;
        Ok(s + &ctx.ask("a", "A?").await)
    });
    let with_two: Handler = handler!(ctx, Ok(ctx.step("s", "2").await));
    let without: Handler = handler!(ctx, Ok(ctx.step("s", "").await));
    let changed = "diverges: s: its input has changed";
    for (then, end) in [(with_one, "returns s(1)x"), (with_two, changed), (without, changed)] {
        check(driver::setup(), &[(&[], with_one, "runs s; asks a: A?"), (&[("a", "x")], then, end)]);
    }
}

#[test]
fn an_unreplayed_refusal_blocks_new_steps() {
    let old: Handler = handler!(ctx, {
        let (a, b) = both(ctx.ask("a", "A?"), ctx.ask("b", "B?")).await;
        let c = ctx.ask("c", "C?").await;
        Ok(format!("{a} {b} {c}"))
    });
    let only_b: Handler = handler!(ctx, {
        let b = ctx.ask("b", "B?").await;
        Ok(b + &ctx.step("s", "").await)
    });
    let only_step: Handler = handler!(ctx, Ok(ctx.step("s", "").await));
    let only_question: Handler = handler!(ctx, Ok(ctx.ask("d", "D?").await));
    let diverges = "diverges: a: it was refused and is not asked any more, and a new step is due";
    for (then, end) in
        [(only_b, "runs s; returns 2s()"), (only_step, diverges), (only_question, "asks d: D?")]
    {
        check(
            driver::setup(),
            &[
                (&[], old, "asks a: A?, b: B?"),
                (&[("a", "no"), ("b", "2")], old, "asks c: C?"),
                (&[("c", "3")], then, end),
            ],
        );
    }
    // The refusal has just come.
    check(
        driver::setup(),
        &[(&[], old, "asks a: A?, b: B?"), (&[("a", "no"), ("b", "2")], only_step, diverges)],
    );
    // No answer is a refusal.
    check(
        driver::setup(),
        &[(&[], old, "asks a: A?, b: B?"), (&[("a", "1"), ("b", "2")], only_step, "runs s; returns s()")],
    );
    check_migrated(
        driver::setup(),
        &Migration::new().forget("a"),
        &[(&[], old, "asks a: A?, b: B?"), (&[("a", "no"), ("b", "2")], only_step, "runs s; returns s()")],
    );
}

#[test]
fn recorded_steps_are_replayed_before_new_steps() {
    let old: Handler = handler!(ctx, {
        let s = ctx.step("s", "").await;
        Ok(s + &ctx.ask("a", "A?").await)
    });
    let new: Handler = handler!(ctx, {
        let t = ctx.step("t", "").await;
        let s = ctx.step("s", "").await;
        Ok(t + &s)
    });
    let without: Handler = handler!(ctx, Ok(ctx.step("t", "").await));
    let diverges = "diverges: s: it was not replayed, and a new step is due";
    let (first, lenient) =
        ((&[] as &[_], old, "runs s; asks a: A?"), Setup { lenient: true, ..driver::setup() });
    check(driver::setup(), &[first, (&[], new, diverges)]);
    check(driver::setup(), &[first, (&[], without, diverges)]);
    check(lenient, &[first, (&[], without, "runs t; returns t()")]);
    let added = Migration::new().added("t");
    check_migrated(driver::setup(), &added, &[first, (&[], new, "runs t; returns t()s()")]);
    let forgotten = Migration::new().forget("s");
    check_migrated(driver::setup(), &forgotten, &[first, (&[], without, "runs t; returns t()")]);
    let renamed = Migration::new().rename("s", "t");
    check_migrated(driver::setup(), &renamed, &[first, (&[], without, "returns s()")]);
}

#[test]
fn new_entries_leave_before_an_error() {
    let step_1: Handler = handler!(ctx, Err(ctx.step("s", "").await));
    let step_2: Handler = handler!(ctx, {
        let s = ctx.step("s", "").await;
        Err(s + &ctx.step("t", "").await)
    });
    let step_3: Handler = handler!(ctx, {
        let s = ctx.step("s", "").await;
        let t = ctx.step("t", "").await;
        Err(s + &t + &ctx.step("u", "").await)
    });
    check(
        driver::setup(),
        &[
            (&[], step_1, "runs s; leaves; fails s()"),
            // The leg records nothing.
            (&[], step_1, "fails s()"),
            (&[], step_2, "runs t; leaves; fails s()t()"),
            // The limit of legs with state only is reached.
            (&[], step_3, "runs u; fails s()t()u()"),
        ],
    );
    let asks: Handler = handler!(ctx, {
        let s = ctx.step("s", "").await;
        Err(s + &ctx.ask("a", "A?").await)
    });
    let asks_first: Handler = handler!(ctx, Err(ctx.ask("a", "A?").await));
    // The first of two results with state only may be used for an answer; the last one is reserved for a step.
    check(
        driver::setup(),
        &[(&[], asks_first, "asks a: A?"), (&[("a", "1")], asks_first, "leaves; fails 1")],
    );
    let (early, late): (Handler, Handler) = (step_1, asks);
    check(
        driver::setup(),
        &[
            (&[], early, "runs s; leaves; fails s()"),
            (&[], late, "asks a: A?"),
            (&[("a", "1")], late, "fails s()1"),
        ],
    );
    let few = |state_only_legs| limits(Limits { state_only_legs, ..Limits::default() });
    check(few(0), &[(&[], step_1, "runs s; fails s()")]);
    check(few(1), &[(&[], step_1, "runs s; leaves; fails s()")]);
    check(few(1), &[(&[], asks_first, "asks a: A?"), (&[("a", "1")], asks_first, "fails 1")]);
    check(limits(Limits { legs: 1, ..Limits::default() }), &[(&[], step_1, "runs s; fails s()")]);
}

#[test]
fn legs_are_limited() {
    let two: Handler = handler!(ctx, {
        let a = ctx.ask("a", "A?").await;
        Ok(a + &ctx.ask("b", "B?").await)
    });
    let legs = |legs| limits(Limits { legs, ..Limits::default() });
    check(legs(1), &[(&[], two, "limit legs")]);
    check(legs(2), &[(&[], two, "asks a: A?"), (&[("a", "1")], two, "limit legs")]);
    check(
        legs(3),
        &[(&[], two, "asks a: A?"), (&[("a", "1")], two, "asks b: B?"), (&[("b", "2")], two, "returns 12")],
    );
}

#[test]
fn questions_in_a_round_are_limited() {
    let three: Handler = handler!(ctx, {
        let (a, (b, c)) = both(ctx.ask("a", "A?"), both(ctx.ask("b", "B?"), ctx.ask("c", "C?"))).await;
        Ok(a + &b + &c)
    });
    check(
        limits(Limits { asks: 2, ..Limits::default() }),
        &[
            (&[], three, "asks a: A?, b: B?"),
            (&[("a", "1"), ("b", "2")], three, "asks c: C?"),
            (&[("c", "3")], three, "returns 123"),
        ],
    );
}

#[test]
fn a_full_record_stops_before_a_step() {
    let many: Handler = handler!(ctx, {
        let s = ctx.step("s", &"x".repeat(600)).await;
        Ok(s + &ctx.step("t", "").await)
    });
    let small = limits(Limits { state: 1600, step_result: 700, ..Limits::default() });
    check(small, &[(&[], many, "runs s; leaves; limit state")]);
}

#[test]
fn keys_are_used_once() {
    let twice: &[Handler] = &[
        handler!(ctx, Ok(both(ctx.ask("k", "A?"), ctx.ask("k", "B?")).await.0)),
        handler!(ctx, {
            both(ctx.checkpoint("k"), ctx.checkpoint("k")).await;
            Ok(String::new())
        }),
    ];
    for handler in twice {
        check(driver::setup(), &[(&[], *handler, "stops: used twice")]);
    }
    let at_once: Handler = handler!(ctx, Ok(both(ctx.step("k", ""), ctx.step("k", "")).await.0));
    check(driver::setup(), &[(&[], at_once, "runs k; leaves; stops: used twice")]);
    let in_turn: Handler = handler!(ctx, {
        let one = ctx.step("k", "").await;
        Ok(one + &ctx.step("k", "").await)
    });
    check(
        driver::setup(),
        &[(&[], in_turn, "runs k; leaves; stops: used twice"), (&[], in_turn, "stops: used twice")],
    );
    // Each kind has keys of its own.
    let kinds: Handler = handler!(ctx, {
        let s = ctx.step("k", "").await;
        ctx.checkpoint("k").await;
        Ok(s + &ctx.ask("k", "A?").await)
    });
    check(
        driver::setup(),
        &[
            (&[], kinds, "runs k; leaves with state only"),
            (&[], kinds, "asks k: A?"),
            (&[("k", "1")], kinds, "returns k()1"),
        ],
    );
    let inside: Handler = handler!(ctx, {
        let inner = ctx.clone();
        Ok(ctx.step_of("s", "", async move { inner.ask("a", "A?").await }).await)
    });
    // The step has not ended, so the leg has nothing to record.
    check(driver::setup(), &[(&[], inside, "runs s; stops: inside of a step")]);
}

#[test]
fn checkpoints_with_state_only_are_limited() {
    let begun: Handler = handler!(ctx, {
        let s = ctx.step("s", "").await;
        ctx.checkpoint("one").await;
        ctx.checkpoint("two").await;
        ctx.checkpoint("three").await;
        Ok(s)
    });
    let left = "leaves with state only";
    check(
        driver::setup(),
        &[(&[], begun, &format!("runs s; {left}")), (&[], begun, left), (&[], begun, "returns s()")],
    );
}

/// Drops a step after its body was polled once.
async fn abort_step(ctx: &driver::Ctx, key: &str) {
    let begun = Rc::new(Cell::new(false));
    let inside = Rc::clone(&begun);
    let step = ctx.step_of(key, "", async move {
        inside.set(true);
        pending().await
    });
    let mut step = pin!(step);
    poll_fn(|cx| {
        let _ = step.as_mut().poll(cx);
        if begun.get() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn an_aborted_step_never_resolves() {
    let drops: Handler = handler!(ctx, {
        abort_step(&ctx, "s").await;
        Ok(ctx.ask("a", "A?").await)
    });
    let waits: Handler = handler!(ctx, Ok(ctx.step("s", "").await));
    let both_of: Handler = handler!(ctx, {
        let (s, a) = both(ctx.step("s", ""), ctx.ask("a", "A?")).await;
        Ok(s + &a)
    });
    let other: Handler = handler!(ctx, Ok(ctx.step("t", "").await));
    let never = "diverges: (an abandoned step): the handler waits for it, and it never ends";
    let first = (&[] as &[_], drops, "runs s; asks a: A?");
    check(driver::setup(), &[first, (&[("a", "1")], waits, never)]);
    check(
        driver::setup(),
        &[first, (&[], both_of, "asks a: A?"), (&[("a", "1")], both_of, &format!("leaves; {never}"))],
    );
    // The handler need not reach it.
    check(driver::setup(), &[first, (&[("a", "1")], other, "runs t; returns t()")]);
}

#[test]
fn a_step_that_is_not_polled_stops_the_leg() {
    let forgets: Handler = handler!(ctx, {
        let begun = Rc::new(Cell::new(false));
        let inside = Rc::clone(&begun);
        let step = ctx.step_of("s", "", async move {
            inside.set(true);
            pending().await
        });
        let mut step = Box::pin(step);
        poll_fn(|cx| {
            let _ = step.as_mut().poll(cx);
            if begun.get() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let answer = ctx.ask("a", "A?").await;
        drop(step);
        Ok(answer)
    });
    let mut client = Client::new(driver::setup());
    let words = client.leg(&[], Migration::new(), forgets);
    assert!(words.starts_with("runs s; stops: the step `s` at "), "{words}");
}

#[test]
fn a_leg_that_waits_for_people_began_before() {
    let mut leg = Leg::begin(Setup { now: 5, ..Setup::default() });
    leg.set_now(9);
    assert_eq!(leg.began(), 5);
}

#[test]
fn a_reference_that_replaces_a_stored_one_is_stored_too() {
    let mut leg = Leg::begin(Setup { writes_ahead: true, ..Setup::default() });
    let reference = |created| UrlReference { first_asked: 1, created, text: "sealed".into() };
    leg.note_url_reference("other", reference(1));
    leg.note_url_reference("page", reference(1));
    let text = leg.write_ahead().expect("two notes are new");
    leg.written(&text);
    assert!(leg.write_ahead().is_none(), "the store has both");
    leg.note_url_reference("page", reference(2));
    let text = leg.write_ahead().expect("the reference is new");
    // While a text is on its way, a further reference takes the place of another one.
    leg.note_url_reference("other", reference(3));
    leg.written(&text);
    let text = leg.write_ahead().expect("the last reference is in no text");
    leg.written(&text);
    assert!(leg.write_ahead().is_none(), "the store has all");
}
