//! The output of the examples that use a fleet, of `access_tokens`, of `rate_limit`, of `kms_codec`, of `traced`, of `order_once`, of `render_video` and
//! of `expenses`.

use std::process::{Command, Stdio};

fn check(program: &str, expected: &[&str]) {
    let output = Command::new(program).stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout.lines().collect::<Vec<_>>(), expected, "{program}");
}

#[test]
fn rolling_upgrade_asks_the_common_question_once() {
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
fn load_shedding_computes_nothing_twice() {
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

#[test]
fn rate_limit_counts_the_requests_of_each_caller() {
    check(
        env!("CARGO_BIN_EXE_rate_limit"),
        &[
            "ada: 1 + 1 = 2",
            "ada: 2 + 1 = 3",
            "ada: status 429",
            "bob: 1 + 1 = 2",
            "bob: 2 + 1 = 3",
            "bob: status 429",
        ],
    );
}

#[test]
fn kms_codec_asks_once_and_loses_nothing() {
    check(
        env!("CARGO_BIN_EXE_kms_codec"),
        &[
            "100 calls with state, requests to the KMS: 1",
            "the KMS is down for 5 minutes: ordered in eu",
            "the KMS is down for an hour: tools/call `order` at orders (memory): the server answered with an error: \
             The server cannot seal states at present: send the same request again later (-32603)",
            "a refresh: 503 from the KMS",
            "the KMS is back, the same call: ordered in eu",
        ],
    );
}

#[test]
fn traced_prints_one_tree() {
    check(
        env!("CARGO_BIN_EXE_traced"),
        &[
            "orders runs on m-7",
            "",
            "tools/call deploy (client)",
            "    tools/call deploy (server, leg 1)",
            "        step reserve (internal)",
            "    antiphon.ask.wait (internal)",
            "    antiphon.ask.answer (internal)",
            "    tools/call deploy (server, leg 2)",
            "        step start (internal)",
            "",
            "legs at instance A: 1",
            "legs at instance B: 1",
        ],
    );
}

/// The error contains an address, which differs from run to run.
#[test]
fn access_tokens_bind_the_state_to_its_user() {
    let output = Command::new(env!("CARGO_BIN_EXE_access_tokens")).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = stdout.lines().collect();
    let [bob, alice, guest] = lines[..] else {
        panic!("{stdout}{}", String::from_utf8_lossy(&output.stderr))
    };
    assert!(bob.starts_with("bob: ") && bob.contains("Invalid or expired requestState (-32602)"), "{bob}");
    assert_eq!(alice, "alice: The basket of alice is empty.");
    assert!(guest.starts_with("guest: ") && guest.contains("the server answered 403 Forbidden"), "{guest}");
}

#[test]
fn pay_deposit_binds_the_link_to_its_user() {
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
fn charge_once_charges_once() {
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

/// Two processes die, one of them in the transaction.
#[cfg(feature = "sqlite")]
#[test]
fn order_once_orders_exactly_once() {
    check(
        env!("CARGO_BIN_EXE_order_once"),
        &[
            "killed before the commit: reply lost: true, orders: 0",
            "killed after the commit: reply lost: true, orders: 1",
            "Order 1: a mug.",
            "orders: 1",
        ],
    );
}

/// The process of a task dies in a step, and the next ones finish the task. A cancelled task undoes its steps.
#[cfg(feature = "sqlite")]
#[test]
fn render_video_is_rendered_by_the_next_process() {
    check(
        env!("CARGO_BIN_EXE_render_video"),
        &[
            "render 0, render 1, render 1, render 2",
            "Metropolis: published",
            "Ants: cancelled",
            "render 0, render 1, render 2, delete 0, delete 1, delete 2",
        ],
    );
}

/// One server, and a client of each revision.
#[cfg(all(feature = "auth", feature = "sqlite"))]
#[test]
fn expenses_are_paid_for_clients_of_both_revisions() {
    let shown = |era, number, sum, mine| {
        [
            format!("a client of {era}:"),
            "  asked: What have you spent?".to_owned(),
            format!("  Expense {number}: 300 cents for gemini, by phone."),
            "  asked: Pay 300 cents to ada?".to_owned(),
            format!("  Paid 300 cents to ada: payment {number}."),
            "  asked: Pay 300 cents to ada?".to_owned(),
            format!("  Expense {number} is paid already, or being paid."),
            format!("  asked: Apollo 0, Gemini {sum}: send the report?"),
            format!("  Apollo 0, Gemini {sum}: sent"),
            format!("  expenses of ada: {mine}"),
            "  bob sees 3 of 4 tools".to_owned(),
        ]
    };
    let mut expected = shown("2026-07-28", 1, 300, "1").to_vec();
    expected.extend(shown("2025-11-25", 2, 600, "1 2"));
    expected.push("audited: 4 lines of reads".to_owned());
    expected.push(r#"spans: {"request", "step"}"#.to_owned());
    expected.push("payments: 2".to_owned());
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(env!("CARGO_BIN_EXE_expenses"), &expected);
}
