//! What the examples say that have more to show than a tool.

use std::process::{Command, Stdio};

fn check(program: &str, says: &[&str]) {
    let output = Command::new(program).stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout.lines().collect::<Vec<_>>(), says, "{program}");
}

#[test]
fn an_answer_that_both_builds_want_is_asked_for_once() {
    check(
        env!("CARGO_BIN_EXE_rolling_upgrade"),
        &[
            "rolling_upgrade, leg 1: replica A",
            "asked: Please provide your GitHub username",
            "asked: Please provide your Google account",
            "deployed: the new build",
            "rolling_upgrade, leg 2: replica D",
            "asked: Please provide your Microsoft account",
            "rolling_upgrade, leg 3: replica C",
            "Linked octocat (GitHub) and octocat (Microsoft).",
        ],
    );
}

#[test]
fn what_was_computed_before_the_drain_is_not_computed_again() {
    check(
        env!("CARGO_BIN_EXE_load_shedding"),
        &[
            "load_shedding, leg 1: replica A",
            "load_shedding, leg 2: replica C",
            "There are 669 primes below 5000.",
            "portions: 5, computed: 5",
        ],
    );
}

/// Addresses differ from run to run.
#[test]
fn a_state_is_worth_nothing_to_another_user() {
    let output = Command::new(env!("CARGO_BIN_EXE_who_is_calling")).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = stdout.lines().collect();
    let [bob, alice, guest] = lines[..] else {
        panic!("{stdout}{}", String::from_utf8_lossy(&output.stderr))
    };
    assert!(bob.starts_with("bob: ") && bob.contains("Invalid or expired requestState (-32602)"), "{bob}");
    assert_eq!(alice, "alice: The basket of alice is empty.");
    assert!(guest.starts_with("guest: the server answered 403 Forbidden"), "{guest}");
}

#[test]
fn a_link_is_worth_nothing_to_anybody_else() {
    check(
        env!("CARGO_BIN_EXE_pay_deposit"),
        &[
            "pay_deposit, leg 1: replica A",
            "asked: Please pay the deposit.",
            "pay_deposit, leg 2: replica B",
            "Complete the payment in your browser.",
            "deposit_status, leg 1: replica A",
            "The deposit for booking 7 has not been paid.",
            "eve opens the link, and pays: 403 Forbidden",
            "ada opens the link, and pays: 200 OK",
            "deposit_status, leg 1: replica B",
            "The deposit for booking 7 was paid by ada.",
        ],
    );
}

#[test]
fn a_request_that_comes_twice_is_charged_once() {
    check(
        env!("CARGO_BIN_EXE_charge_once"),
        &[
            "charge_once, leg 1: replica A",
            "charge_once, leg 2: replica B",
            "charge_once, leg 3: replica A",
            "charge_once, leg 4: replica B",
            "charge_once, leg 5: replica A",
            "Charged 20 EUR. The receipt goes to ada@example.com.",
            "one idempotency key, 2 requests, one charge",
        ],
    );
}
