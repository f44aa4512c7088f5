//! One consent is for one page of one host, in every order of the ways in which questions come.

use super::*;
use antiphon::wire::Action;
use serde_json::{Value, json};

/// The way of a question to this program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// The error -32042 of a session.
    Error,
    /// A request of a session.
    Request,
    /// A round of a call that waits.
    Round,
    /// A question of a task.
    Task,
}

const WAYS: [Way; 4] = [Way::Error, Way::Request, Way::Round, Way::Task];
/// Two pages of one host, and one of another host.
const PAGES: [(&str, &str); 3] = [
    ("a.example", "https://a.example/1"),
    ("a.example", "https://a.example/2"),
    ("b.example", "https://b.example/1"),
];
/// Orders of pages: different ones, and one that is asked again.
const ORDERS: [[usize; 3]; 5] = [[0, 1, 2], [2, 0, 1], [0, 0, 2], [0, 2, 0], [0, 2, 1]];
/// The keys that a server gives its questions: the server may choose them so that they look like numbers of other questions.
const KEYS: [[&str; 3]; 2] = [["page", "page", "page"], ["2", "1", "page"]];
const FLAGS: [&[&str]; 10] = [
    &[],
    &["1=accept"],
    &["page=accept", "2=accept"],
    &["1=accept@a.example"],
    &["page=accept@a.example"],
    &["2=accept@b.example"],
    &["1=accept@a.example", "2=decline"],
    &["1=accept@a.example", "2=accept@b.example"],
    &["page=accept@a.example", "page=accept@b.example", "3=accept@b.example"],
    &["2=accept@a.example", "1=decline", "page=accept@a.example"],
];

/// A call that waits for the answer to this question.
fn pending(key: &str, url: &str, has_state: bool) -> PendingCall {
    let mut written = json!({
        "server": {"target": "test"},
        "call": {"method": "tools/call", "name": "t", "arguments": {}},
        "round": 1,
        "asks": {key: {"method": "elicitation/create", "params": {"mode": "url", "url": url, "message": "Open it."}}},
    });
    if has_state {
        written["state"] = Value::from("s");
    }
    serde_json::from_value(written).unwrap()
}

/// Asks for a page. Returns `true` if the answer is a consent.
fn agrees(way: Way, key: &str, url: &str, answers: &AnswerFlags) -> bool {
    match way {
        Way::Error | Way::Round => {
            let mut pending = pending(key, url, way == Way::Round);
            let _ = answer_round(&mut pending, answers);
            pending.answers().get(key).is_some_and(|answer| answer.get().contains(r#""accept""#))
        }
        Way::Request | Way::Task => {
            let content = Content::Page(url);
            let question =
                Question { key, has_keys: way == Way::Task, header: "", message: "Open it.", content };
            answer_one(&question, answers).is_ok_and(|answer| answer.action == Action::Accept)
        }
    }
}

fn flags(texts: &[&str]) -> AnswerFlags {
    AnswerFlags::new(texts.iter().map(ToString::to_string).collect()).unwrap().without_terminal()
}

/// All sequences of three members of `all`.
fn triples<T: Copy>(all: &[T]) -> impl Iterator<Item = [T; 3]> {
    let pairs = all.iter().flat_map(|first| all.iter().map(|second| [*first, *second]));
    pairs
        .flat_map(|[first, second]| all.iter().map(move |third| [first, second, *third]))
        .collect::<Vec<_>>()
        .into_iter()
}

#[test]
fn no_order_of_questions_gives_one_consent_to_two_pages() {
    for (texts, keys) in FLAGS.iter().flat_map(|texts| KEYS.iter().map(move |keys| (texts, keys))) {
        for (ways, pages) in triples(&WAYS).flat_map(|ways| ORDERS.map(move |pages| (ways, pages))) {
            let answers = flags(texts);
            let mut agreed: Vec<(&str, &str)> = Vec::new();
            for ((way, page), key) in ways.into_iter().zip(pages).zip(keys) {
                let (host, url) = PAGES[page];
                // A page that is asked again is the same question.
                if agrees(way, key, url, &answers) && !agreed.contains(&(host, url)) {
                    agreed.push((host, url));
                }
            }
            for host in ["a.example", "b.example"] {
                let pages = agreed.iter().filter(|(of, _)| *of == host).count();
                let consents = texts.iter().filter(|text| text.ends_with(&format!("=accept@{host}"))).count();
                assert!(pages <= consents, "{agreed:?}: {texts:?} {keys:?} {ways:?}");
            }
        }
    }
}

/// Checks which of the questions, each of another page, are agreed to.
fn check(texts: &[&str], asked: &[(Way, usize)], expected: &[bool]) {
    let answers = flags(texts);
    let found: Vec<bool> =
        asked.iter().map(|(way, page)| agrees(*way, "k", PAGES[*page].1, &answers)).collect();
    assert_eq!(found, expected, "{texts:?} to {asked:?}");
}

#[test]
fn a_question_has_one_number_whatever_way_it_comes() {
    for first in WAYS {
        for second in WAYS {
            check(&["1=accept@a.example"], &[(first, 0), (second, 1)], &[true, false]);
            check(&["2=accept@a.example"], &[(first, 0), (second, 1)], &[false, true]);
            check(&["1=accept@a.example", "2=accept@b.example"], &[(first, 0), (second, 2)], &[true, true]);
            check(&["1=accept@b.example", "2=accept@b.example"], &[(first, 0), (second, 2)], &[false, true]);
            check(&["k=accept@a.example"], &[(first, 0), (second, 1)], &[true, false]);
            check(&["k=accept@a.example"], &[(first, 2), (second, 0)], &[false, false]);
            // The same page again needs no second consent, and has no second number.
            check(
                &["1=accept@a.example", "2=accept@b.example"],
                &[(first, 0), (second, 0), (first, 2)],
                &[true, true, true],
            );
            check(&["1=accept", "2=accept"], &[(first, 0), (second, 0)], &[false, false]);
        }
    }
}

/// A round of a form and two pages, one of which is answered already.
#[test]
fn the_numbers_of_a_round_are_those_of_its_open_questions() {
    let form = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": {
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]
    }}});
    let page = |url| json!({"method": "elicitation/create", "params": {"mode": "url", "url": url, "message": "Open it."}});
    for (texts, missing) in [
        (&["1.name=Ada", "2=accept@b.example"][..], None),
        (&["name=Ada", "2=accept@b.example"], None),
        (&["who.name=Ada", "z=accept@b.example"], None),
        (&["1.name=Ada"], Some("no answer for z and no terminal to ask: pass --answer z=accept@b.example")),
        (&["2=decline"], Some("no answer for who.name and no terminal to ask: pass --answer who.name=..")),
        // An answer in the call is replaced by its key.
        (&["a=decline", "name=Ada", "3=accept@b.example"], None),
    ] {
        let written = json!({
            "server": {"target": "test"},
            "call": {"method": "tools/call", "name": "t", "arguments": {}},
            "round": 1,
            "asks": {"a": page("https://a.example/1"), "who": form, "z": page("https://b.example/1")},
            "answers": {"a": {"action": "accept"}},
            "state": "s",
        });
        let mut pending: PendingCall = serde_json::from_value(written).unwrap();
        let found = match answer_round(&mut pending, &flags(texts)) {
            Ok(()) => None,
            Err(RoundError::Missing(text)) => Some(text),
            Err(RoundError::Failed(failure)) => panic!("{texts:?}: {failure:?}"),
        };
        assert_eq!(found.as_deref(), missing, "{texts:?}");
        let replaced = pending.answers().get("a").unwrap().get().contains("decline");
        assert_eq!(replaced, texts.contains(&"a=decline"), "{texts:?}");
    }
}

/// The others of its round are answered, and the call waits for the word to decline it.
#[test]
fn a_question_that_cannot_be_read_costs_no_others() {
    let elicit = |params: Value| json!({"method": "elicitation/create", "params": params});
    let form = elicit(
        json!({"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}),
    );
    for bad in [
        elicit(json!({"message": "m"})),
        elicit(json!([])),
        elicit(json!({"message": "m", "mode": "url", "url": 3})),
        elicit(json!({"message": "m", "mode": "voice"})),
    ] {
        let written = json!({
            "server": {"target": "test"},
            "call": {"method": "tools/call", "name": "t", "arguments": {}},
            "round": 1,
            "asks": {"q": form, "w": bad, "z": form},
            "state": "s",
        });
        let answered = |texts: &[&str]| {
            let mut pending: PendingCall = serde_json::from_value(written.clone()).unwrap();
            let answers = flags(texts);
            let missing = match answer_round(&mut pending, &answers) {
                Ok(()) => None,
                Err(RoundError::Missing(missing)) => Some(missing),
                Err(RoundError::Failed(failure)) => panic!("{bad}: {}", failure.message),
            };
            (pending.missing(), missing)
        };
        let (open, missing) = answered(&["q.a=1", "z.a=2"]);
        assert_eq!(open, ["w"], "{bad}");
        assert!(missing.unwrap().ends_with("pass --answer w=decline"), "{bad}");
        for word in ["w=decline", "w=cancel"] {
            assert_eq!(answered(&["q.a=1", word, "z.a=2"]), (Vec::new(), None), "{bad} {word}");
        }
    }
}
