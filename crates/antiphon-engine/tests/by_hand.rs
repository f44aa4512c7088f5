//! Questions that a handler returns: the answers that stay while other questions of the round are asked again.
use crate::driver::{answer, describe_round, form, setup};
#[allow(dead_code, reason = "no handler runs here")]
use antiphon_engine::{InputResponse, Leg, LegOutput, Limits, Record, StopReason};
use antiphon_seal::Call;
use antiphon_wire::InputRequests;
use std::{collections::HashMap, time::UNIX_EPOCH};

const KEYS: [&str; 3] = ["a", "b", "c"];

/// Ends a leg with these questions and this state.
fn end_by_hand(
    mut leg: Leg,
    asks: &[(&str, &str)],
    state: Option<&str>,
) -> (Result<InputRequests, StopReason>, Box<LegOutput>) {
    leg.call(|| Call::begin(UNIX_EPOCH, None).map_err(|fault| fault.to_string())).unwrap();
    let asks = asks.iter().map(|(key, message)| ((*key).to_owned(), form(message))).collect();
    leg.ask_by_hand(asks, state.map(ToOwned::to_owned))
}

fn asked(state: Option<&str>) -> Record {
    let (round, left) = end_by_hand(Leg::begin(setup()), &KEYS.map(|key| (key, key)), state);
    assert_eq!(describe_round(&round.unwrap()), "asks a: a, b: b, c: c");
    Record::decode(&left.record.encode().unwrap()).unwrap()
}

/// Receives these answers. Returns the keys of the questions that are asked again.
fn receive(
    record: &mut Record,
    answers: &[(&str, &str)],
    limits: &Limits,
) -> Result<Vec<String>, StopReason> {
    let answers: HashMap<&str, String> =
        answers.iter().map(|(key, words)| (*key, answer(words).to_string())).collect();
    let again = record.receive(None, |key| answers.get(key).map(String::as_str), limits)?;
    *record = Record::decode(&record.encode().unwrap()).unwrap();
    Ok(again.iter().map(|(key, _)| key.to_owned()).collect())
}

/// Describes the answers that the handler receives, in their order.
fn answered(leg: &mut Leg) -> String {
    let words = leg.answered_by_hand().into_iter().map(|answered| match answered.response {
        InputResponse::Elicit(result) => {
            let text = result.content.as_ref().and_then(|content| content["x"].as_str());
            format!("{}={}", answered.key, text.unwrap_or("refused"))
        }
        _ => answered.key.to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The answers of a round, and the keys that are asked again.
type Round<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

const BAD: &str = r#"{"action":"accept"}"#;

/// Checks the questions that are asked again after each set of answers, and the answers that the handler then receives.
#[track_caller]
fn check(rounds: &[Round<'_>], found: &str) {
    let mut record = asked(Some("state"));
    for (answers, again) in rounds {
        assert_eq!(receive(&mut record, answers, &Limits::default()).unwrap(), *again, "{answers:?}");
    }
    let call = Call::begin(UNIX_EPOCH, None).unwrap();
    let mut leg = *Leg::resume(call, record, None, setup());
    assert_eq!((answered(&mut leg).as_str(), leg.state()), (found, Some("state")));
}

#[test]
fn answers_are_kept_in_the_order_of_their_questions() {
    let all = "a=1 b=2 c=3";
    check(&[(&[("c", "3"), ("a", "1"), ("b", "2")], &[])], all);
    check(&[(&[], &["a", "b", "c"]), (&[("a", "1"), ("b", "2"), ("c", "3")], &[])], all);
    check(&[(&[("c", "3")], &["a", "b"]), (&[("b", "2")], &["a"]), (&[("a", "1")], &[])], all);
    check(&[(&[("a", BAD), ("b", "2"), ("c", "3")], &["a"]), (&[("a", "1")], &[])], all);
    // A second answer to an answered question and an answer without a question are ignored.
    check(&[(&[("a", "1")], &["b", "c"]), (&[("a", "9"), ("b", "2"), ("c", "3"), ("d", "4")], &[])], all);
    check(&[(&[("a", "no"), ("b", "2"), ("c", "3")], &[])], "a=refused b=2 c=3");
    // The handler receives no answer while one is missing.
    check(&[(&[("a", "1"), ("b", "2")], &["c"])], "");
}

#[test]
fn missing_and_invalid_answers_are_limited() {
    let check = |rounds: [&[(&str, &str)]; 3], expected: &str| {
        let mut record = asked(None);
        for answers in &rounds[..2] {
            assert_eq!(receive(&mut record, answers, &Limits::default()).unwrap(), KEYS);
        }
        let stop = receive(&mut record, rounds[2], &Limits::default()).unwrap_err();
        let StopReason::Limit { name: "times_asked", text } = stop else { panic!("{stop:?}") };
        assert!(text.starts_with(expected), "{text}");
    };
    let bad = &[("a", BAD)] as &[_];
    check([bad, bad, bad], "`a` was asked 3 times without an answer that fits.");
    check([&[]; 3], "`a` was asked 3 times without an answer that fits. No answer to it came.");
    check([&[], &[], &[("b", BAD)]], "`b` was asked 3 times without an answer that fits.");
    check([bad, &[], &[]], "`a` was asked 3 times without an answer that fits. No answer to it came.");
    let mut record = asked(None);
    let one = Limits { legs: 1, ..Limits::default() };
    let stop = receive(&mut record, &[], &one).unwrap_err();
    assert!(matches!(stop, StopReason::Limit { name: "legs", .. }), "{stop:?}");
}

#[test]
fn answers_may_come_one_at_a_time() {
    let mut record = asked(None);
    let limits = Limits::default();
    let good = answer("1").to_string();
    assert!(record.receive_one("d", Some(&good), &limits).unwrap().is_none());
    assert!(record.receive_one("b", None, &limits).unwrap().is_some());
    assert!(record.receive_one("b", Some(BAD), &limits).unwrap().is_some());
    for key in ["c", "b", "a"] {
        assert!(record.receive_one(key, Some(&good), &limits).unwrap().is_none());
    }
    let mut leg = *Leg::resume(Call::begin(UNIX_EPOCH, None).unwrap(), record, None, setup());
    assert_eq!(answered(&mut leg), "a=1 b=1 c=1");
}

#[test]
fn invalid_rounds_by_hand_are_rejected() {
    let name = |stop: StopReason| match stop {
        StopReason::Author(text) => text,
        StopReason::Limit { name, .. } => name.to_owned(),
        stop => stop.describe(),
    };
    let check = |asks: &[(&str, &str)], limits: Limits, expected: &str| {
        let mut setup = setup();
        setup.limits = limits;
        let (round, left) = end_by_hand(Leg::begin(setup), asks, Some("kept"));
        let words = name(round.unwrap_err());
        assert!(words.contains(expected), "{words}");
        left.record.encode().unwrap();
    };
    check(&[("a", "A"), ("a", "B")], Limits::default(), "`a` is used twice in one round");
    check(&[("a/b", "A")], Limits::default(), "the key \"a/b\"");
    check(&[("", "A")], Limits::default(), "the key \"\"");
    check(&[("a", "A"), ("b", "B")], Limits { asks: 1, ..Limits::default() }, "2 questions in one round");
    check(&[("a", "A")], Limits { legs: 1, ..Limits::default() }, "legs");
    check(&[], Limits { legs: 1, ..Limits::default() }, "legs");
}

#[test]
fn legs_with_state_only_are_counted() {
    let mut record = Record::default();
    for leg in 1..4 {
        let call = Call::begin(UNIX_EPOCH, None).unwrap();
        let resumed = *Leg::resume(call, record, None, setup());
        let (round, mut left) = end_by_hand(resumed, &[], Some(&format!("state {leg}")));
        assert!(round.unwrap().is_empty());
        record = left.record.clone();
        // The limit is two, and the leg recorded no step.
        left.has_new_entries = true;
        assert!(!left.suspend_before_error(&Limits::default()));
    }
}

/// The limit applies to a question whose text changes each time, unless the handler has read its answer.
#[test]
fn changed_questions_are_limited() {
    for (reads, expected) in [(false, 3), (true, 8)] {
        let (mut leg, mut asked) = (Leg::begin(setup()), 0);
        loop {
            let (round, left) = end_by_hand(leg, &[("a", &format!("A{asked}?"))], None);
            match round {
                Ok(_) => asked += 1,
                Err(stop) => {
                    assert!(matches!(stop, StopReason::Limit { name: "times_asked", .. }), "{stop:?}");
                    break;
                }
            }
            if asked == 8 {
                break;
            }
            let mut record = left.record;
            assert!(receive(&mut record, &[("a", "1")], &Limits::default()).unwrap().is_empty());
            leg = *Leg::resume(left.call.unwrap().next_leg().unwrap(), record, None, setup());
            assert_eq!(answered(&mut leg), "a=1");
            if reads {
                assert!(leg.read_by_hand("a"));
            }
            assert!(!leg.read_by_hand("b"));
        }
        assert_eq!(asked, expected, "the answer is read: {reads}");
    }
}
