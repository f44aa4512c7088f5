//! The time at which a token counts, and the caller for whom it does.

use std::time::Duration;

use crate::common::{NOW, TTL, at, binding, call, outcome, sealer, token};
use antiphon_seal::{Binding, Call, Principal, SealError, TextFault};

#[test]
fn a_token_counts_within_its_time() {
    let sealer = sealer(&[1]);
    // (seconds to live, deadline, opened so many seconds after sealing) -> (open, open_late)
    let check = |ttl: u64, deadline: Option<u64>, after: i64, expected: &str, late: &str| {
        let call = Call::begin(at(NOW), deadline.map(|seconds| at(NOW + seconds))).unwrap();
        let token = sealer.seal(&call, &binding(), b"", Duration::from_secs(ttl), at(NOW)).unwrap();
        let now = at(NOW.checked_add_signed(after).unwrap());
        let case = format!("{ttl} s, deadline {deadline:?}, {after} s later");
        assert_eq!(outcome(&sealer.open(&token, &binding(), now)), expected, "{case}");
        assert_eq!(outcome(&sealer.open_late(&token, &binding(), now)), late, "late, {case}");
    };
    check(600, None, 0, "ok", "ok");
    check(600, None, -60, "ok", "ok");
    check(600, None, -61, "future", "future");
    check(600, None, 600, "ok", "ok");
    check(600, None, 601, "expired", "expired");
    check(1, None, 1, "ok", "ok");
    check(1, None, 2, "expired", "expired");
    check(0, None, 0, "ok", "ok");
    check(0, None, 1, "expired", "expired");
    check(600, Some(86_400), 601, "expired", "ok");
    check(600, Some(86_400), 86_400, "expired", "ok");
    check(600, Some(86_400), 86_401, "deadline", "deadline");
    check(600, Some(100), 100, "ok", "ok");
    check(600, Some(100), 101, "deadline", "deadline");
    check(600, Some(100), -61, "future", "future");
    check(u64::MAX, None, i64::from(u32::MAX), "ok", "ok");
    check(u64::MAX, None, i64::from(u32::MAX) + 1, "expired", "expired");
    check(600, Some(0), 0, "ok", "ok");
}

#[test]
fn a_clock_before_1970_opens_nothing() {
    let sealer = sealer(&[1]);
    let before = std::time::UNIX_EPOCH - Duration::from_secs(5);
    assert_eq!(outcome(&sealer.open(&token(&sealer), &binding(), before)), "future");
}

#[test]
fn an_opened_token_has_its_remaining_time() {
    let sealer = sealer(&[1]);
    let until = |deadline: Option<u64>| {
        let call = Call::begin(at(NOW), deadline.map(|seconds| at(NOW + seconds))).unwrap();
        let token = sealer.seal(&call, &binding(), b"", TTL, at(NOW)).unwrap();
        let open = sealer.open(&token, &binding(), at(NOW)).unwrap();
        let late = sealer.open_late(&token, &binding(), at(NOW + 100)).unwrap();
        assert!(!open.expired && !late.expired);
        (open.accepted_until - NOW, late.accepted_until - NOW)
    };
    assert_eq!(until(None), (600, 600));
    assert_eq!(until(Some(100)), (100, 100));
    assert_eq!(until(Some(3600)), (600, 3600));

    let call = Call::begin(at(NOW), Some(at(NOW + 3600))).unwrap();
    let token = sealer.seal(&call, &binding(), b"", TTL, at(NOW)).unwrap();
    assert!(sealer.open_late(&token, &binding(), at(NOW + 601)).unwrap().expired);
}

#[test]
fn a_token_counts_for_its_request() {
    let sealer = sealer(&[1]);
    let token = token(&sealer);
    let check = |here: Binding<'_>, expected: &str| {
        assert_eq!(outcome(&sealer.open(&token, &here, at(NOW))), expected, "{here:?}");
    };
    check(binding(), "ok");
    check(Binding { arguments: Some(" {\"name\" : \"\\u0041da\"}"), ..binding() }, "ok");
    check(Binding { tool_version: 2, ..binding() }, "ok");
    check(Binding { method: "prompts/get", ..binding() }, "request");
    check(Binding { target: "greet2", ..binding() }, "request");
    check(Binding { arguments: Some(r#"{"name":"Bob"}"#), ..binding() }, "request");
    check(Binding { arguments: Some(r#"{"name":"Ada","loud":null}"#), ..binding() }, "request");
    check(Binding { arguments: None, ..binding() }, "request");
    // What is moved from one field to its neighbour is another request.
    check(Binding { method: "tools/callg", target: "reet", ..binding() }, "request");
    check(Binding { arguments: Some(r#"{"name":"Ada","name":"Ada"}"#), ..binding() }, "arguments");
    check(Binding { arguments: Some("{"), ..binding() }, "arguments");
}

#[test]
fn no_arguments_are_no_arguments() {
    let sealer = sealer(&[1]);
    let spellings = [None, Some("null"), Some("{}"), Some(" { } ")];
    for sealed in spellings {
        let made = Binding { arguments: sealed, ..binding() };
        let token = sealer.seal(&call(), &made, b"", TTL, at(NOW)).unwrap();
        for here in spellings {
            let here = Binding { arguments: here, ..binding() };
            assert_eq!(outcome(&sealer.open(&token, &here, at(NOW))), "ok");
        }
        for other in ["[]", "\"\"", "0", "{\"a\":null}"] {
            let here = Binding { arguments: Some(other), ..binding() };
            assert_eq!(outcome(&sealer.open(&token, &here, at(NOW))), "request");
        }
    }
}

#[test]
fn a_token_counts_for_its_principal() {
    let sealer = sealer(&[1]);
    let alice = Principal::user("alice").with_issuer("https://a.example").with_client_id("app");
    let others = [
        Principal::user("bob").with_issuer("https://a.example").with_client_id("app"),
        Principal::user("alice").with_issuer("https://b.example").with_client_id("app"),
        Principal::user("alice").with_issuer("https://a.example").with_client_id("other"),
        Principal::user("alice").with_issuer("https://a.example"),
        Principal::user("alice").with_client_id("app"),
        Principal::user("alice"),
        Principal::client("app").with_issuer("https://a.example"),
        Principal::client("alice"),
        Principal::user("app").with_issuer("https://a.example").with_client_id("alice"),
        Principal::user(""),
    ];
    let opened = |made: Option<&Principal>, here: Option<&Principal>| {
        let token =
            sealer.seal(&call(), &Binding { principal: made, ..binding() }, b"", TTL, at(NOW)).unwrap();
        outcome(&sealer.open(&token, &Binding { principal: here, ..binding() }, at(NOW)))
    };
    assert_eq!(opened(None, None), "ok");
    assert_eq!(opened(Some(&alice), Some(&alice.clone())), "ok");
    assert_eq!(opened(Some(&alice), None), "principal_vanished");
    assert_eq!(opened(None, Some(&alice)), "principal_appeared");
    for other in &others {
        assert_eq!(opened(Some(&alice), Some(other)), "principal", "{other:?}");
        assert_eq!(opened(Some(other), Some(&alice)), "principal", "{other:?}");
        assert_eq!(opened(Some(other), Some(other)), "ok", "{other:?}");
    }
    assert!(alice.has_subject() && !others[6].has_subject() && !others[9].has_subject());
    assert_eq!(
        (alice.issuer(), alice.client_id(), alice.subject()),
        (Some("https://a.example"), Some("app"), Some("alice"))
    );
}

#[test]
fn a_refusal_names_the_call_once_the_token_is_authentic() {
    let sealer = sealer(&[1]);
    let call = call();
    let token = sealer.seal(&call, &binding(), b"", TTL, at(NOW)).unwrap();
    let id = |token: &str, now: u64| sealer.open(token, &binding(), at(now)).unwrap_err().call_id();
    assert_eq!(id(&token, NOW + 601), Some(call.id()));
    assert_eq!(id("r1.", NOW), None);
    assert_eq!(id(&token[..token.len() - 4], NOW), None);
}

#[test]
fn a_call_goes_from_leg_to_leg() {
    let sealer = sealer(&[1]);
    let first = call();
    assert_eq!((first.leg(), first.born(), first.deadline()), (1, NOW, None));
    let id = first.id();
    let key = first.secret().idempotency_key("", "charge");
    let token = sealer.seal(&first, &binding(), b"one", TTL, at(NOW)).unwrap();
    let opened = sealer.open(&token, &binding(), at(NOW + 30)).unwrap();
    assert_eq!((opened.call.leg(), &*opened.payload), (1, &b"one"[..]));

    let second = opened.call.next_leg().unwrap();
    let token = sealer.seal(&second, &binding(), b"two", TTL, at(NOW + 30)).unwrap();
    let opened = sealer.open(&token, &binding(), at(NOW + 60)).unwrap();
    assert_eq!((opened.call.leg(), opened.call.born(), opened.call.id()), (2, NOW, id));
    assert_eq!(opened.call.secret().idempotency_key("", "charge"), key);
    assert_ne!(call().secret().idempotency_key("", "charge"), key);
    assert!(!format!("{:?}", opened.call).contains("34, 34"));
}

#[test]
fn a_request_without_canonical_arguments_is_not_sealed() {
    let here = Binding { arguments: Some(r#"{"a":1,"a":2}"#), ..binding() };
    let refused = sealer(&[1]).seal(&call(), &here, b"", TTL, at(NOW));
    assert!(matches!(refused, Err(SealError::Arguments(TextFault::DuplicateName(name))) if name == "a"));
}
