//! Random programs before random clients, against a plain interpreter of the same programs, on both carriers.
//!
//! A program is a tree of questions, steps, joins, sets of futures, races, scopes, loops and branches; some return questions
//! by hand, some take resolvers. Its steps fail, are retried and panic, and it waits for other things than questions. A client
//! answers in any split over the rounds, badly at first, with answers nobody asked for; it goes away, loses replies, sends
//! requests twice at once and comes back with older states; each request meets another instance. Questions change meanwhile.
//!
//! [`harness`] says how to run more programs, or other ones. A program that failed once is kept in [`regressions`].
#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap fails the test")]

mod branch;
mod case;
mod checks;
mod fleet;
mod generate;
mod handler;
mod harness;
mod leaves;
mod outcome;
mod pushed;
mod reference;
mod regressions;
mod reply;
mod rules;
mod sealed;
mod shapes;
mod stop;
mod stored;
mod tasked;
mod trace;
mod tree;
mod user;

#[path = "../common/mortal.rs"]
mod mortal;

use case::Carrier::{Memory, Pushed, PushedMemory, Sealed, Sqlite, TaskMemory, TaskSqlite};
use generate::{Family, Shape};
use harness::programs;

const ASKS: Family = Family {
    shape: Shape::Awaits,
    carriers: &[Sealed],
    waits: false,
    fails: false,
    changes: false,
    store: false,
};
const WAITS: Family = Family { waits: true, ..ASKS };
const FAILS: Family = Family { fails: true, ..WAITS };

/// With a store: all programs wait, die and come back.
const STORED: Family = Family { store: true, carriers: &[Memory], ..WAITS };

/// A test for each family, with its percentage of all programs.
macro_rules! family {
    ($($name:ident: $percent:literal, $family:expr;)*) => {
        $(
            #[test]
            fn $name() {
                programs(stringify!($name), $percent, $family);
            }
        )*
    };
}

family! {
    asks_and_steps: 20, ASKS;
    other_waiting: 10, WAITS;
    failures: 10, FAILS;
    questions_that_change: 10, Family { changes: true, ..ASKS };
    questions_that_change_beside_other_waiting: 5, Family { changes: true, ..WAITS };
    questions_that_change_with_failures: 5, Family { changes: true, ..FAILS };
    sessions: 10, Family { carriers: &[Pushed], ..ASKS };
    sessions_with_other_waiting: 5, Family { carriers: &[Pushed], ..WAITS };
    sessions_with_failures: 5, Family { carriers: &[Pushed], ..FAILS };
    sessions_with_a_store: 10, Family { carriers: &[PushedMemory], ..FAILS };
    by_hand: 5, Family { shape: Shape::ByHand, carriers: &[Sealed, Pushed], ..ASKS };
    by_hand_in_sessions_with_a_store: 5, Family { shape: Shape::ByHand, carriers: &[PushedMemory], ..FAILS };
    by_hand_with_changes_and_failures: 5, Family { shape: Shape::ByHand, carriers: &[Sealed, Pushed], changes: true, ..FAILS };
    resolvers: 5, Family { shape: Shape::Resolved, carriers: &[Sealed, Pushed], ..ASKS };
    stored: 20, STORED;
    stored_without_other_waiting: 10, Family { waits: false, ..STORED };
    stored_with_failures: 10, Family { fails: true, ..STORED };
    stored_on_sqlite: 1, Family { carriers: &[Sqlite], ..STORED };
    tasks: 20, Family { carriers: &[TaskMemory], ..STORED };
    tasks_without_other_waiting: 10, Family { carriers: &[TaskMemory], waits: false, ..STORED };
    tasks_on_sqlite: 1, Family { carriers: &[TaskSqlite], ..STORED };
    resolvers_with_changes_and_failures: 5, Family { shape: Shape::Resolved, carriers: &[Sealed, Pushed], changes: true, ..FAILS };
}
