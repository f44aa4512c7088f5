//! The calls of the example tools, with the answers of a scripted user, and the results.

use serde_json::{Value, json};

use self::{
    Reaction::{Agree, Cancel, Decline, FillIn},
    Target::{Prompt, Resource, Tool},
};

/// A call, and its outcome. The user is asked each question once.
pub(super) struct Example {
    pub(super) target: Target,
    pub(super) arguments: Value,
    pub(super) user: User,
    /// A part of the result.
    pub(super) expected: &'static str,
    /// The effects on the backend.
    pub(super) done: [&'static [u32]; 4],
}

/// The target of a call.
#[derive(Clone, Copy)]
pub(super) enum Target {
    Tool(&'static str),
    Prompt(&'static str),
    Resource(&'static str),
}

/// The reactions of the scripted user, by a part of the message.
pub(super) type User = Vec<(&'static str, Reaction)>;

/// The reaction of the scripted user to a question.
#[derive(Clone)]
pub(super) enum Reaction {
    FillIn(Value),
    Agree,
    Decline,
    Cancel,
}

/// Returns the calls.
pub(super) fn examples() -> Vec<Example> {
    [forms(), folders(), effects(), together(), by_hand()].into_iter().flatten().collect()
}

/// A call without effects on the backend.
fn call(target: Target, arguments: Value, user: User, expected: &'static str) -> Example {
    Example { target, arguments, user, expected, done: [&[]; 4] }
}

fn forms() -> Vec<Example> {
    let orders = || json!({"name": "orders"});
    let region = ("region", FillIn(json!({"region": "eu-west-1"})));
    let item = json!({"workItemId": 4522, "fields": {"System.State": "Resolved"}});
    let duplicate =
        vec![("", FillIn(json!({"resolution": "Duplicate"}))), ("", FillIn(json!({"duplicateOfId": 4301})))];
    let table = |party: u32| json!({"date": "2025-12-25", "party_size": party});
    let date = |date: &str| FillIn(json!({"accept_alternative": true, "date": date}));
    let twice = vec![("2025-12-25", date("2025-12-31")), ("2025-12-31", date("2025-12-27"))];
    let by_default = vec![("", FillIn(json!({"accept_alternative": true})))];
    vec![
        call(Tool("echo"), json!({"text": "hello"}), vec![], "hello"),
        call(Tool("provision"), orders(), vec![region], "Provisioned"),
        call(Tool("provision"), orders(), vec![("region", Decline)], "declined"),
        call(Tool("update_work_item"), item, duplicate, "Duplicate of Bug #4301"),
        call(Tool("book_table"), table(2), vec![("another date", date("2025-12-27"))], "2025-12-27"),
        call(Tool("book_table"), table(4), twice, "for 4 on 2025-12-27"),
        call(Tool("book_table"), table(2), by_default, "2025-12-26"),
    ]
}

fn folders() -> Vec<Example> {
    let folder = || json!({"path": "work/full"});
    let confirmed = vec![("Delete it all?", FillIn(json!({"ok": true})))];
    let picked = || ("Which file", FillIn(json!({"file": "b.txt"})));
    let confirm = |value: bool| ("Delete b.txt from work/full?", FillIn(json!({ "value": value })));
    let deleted = |example| Example { done: [&[], &[], &[], &[1]], ..example };
    vec![
        deleted(call(Tool("delete_folder"), folder(), confirmed, "Deleted work/full.")),
        call(Tool("delete_folder"), folder(), vec![("", Cancel)], "Kept work/full"),
        deleted(call(
            Tool("pick_file"),
            folder(),
            vec![picked(), confirm(true)],
            "Deleted b.txt from work/full.",
        )),
        call(Tool("pick_file"), folder(), vec![picked(), confirm(false)], "Kept b.txt."),
        call(Tool("pick_file"), folder(), vec![picked(), ("Delete", Cancel)], "dismissed `confirm`"),
        call(Tool("pick_file"), folder(), vec![("", Decline)], "declined to answer `form`"),
    ]
}

fn effects() -> Vec<Example> {
    let booking = || json!({"booking_id": 8});
    let amount = || json!({"amount": 20});
    let charge = vec![
        ("Charge 20 EUR", FillIn(json!({"ok": true}))),
        ("receipt", FillIn(json!({"email": "ada@example.com"}))),
    ];
    let charged = call(Tool("charge_once"), amount(), charge, "Charged 20 EUR");
    let primes = call(Tool("load_shedding"), json!({"portions": 3}), vec![], "primes below 3000");
    vec![
        call(Tool("pay_deposit"), booking(), vec![("deposit", Agree)], "Complete the payment"),
        call(Tool("pay_deposit"), booking(), vec![("deposit", Decline)], "No deposit"),
        Example { done: [&[1], &[], &[], &[]], ..charged },
        call(Tool("charge_once"), amount(), vec![("Charge", Decline)], "declined to answer"),
        Example { done: [&[], &[1, 1, 1], &[], &[]], ..primes },
    ]
}

fn together() -> Vec<Example> {
    let logins =
        vec![("GitHub", FillIn(json!({"name": "octocat"}))), ("Microsoft", FillIn(json!({"name": "grace"})))];
    let reader = vec![("terms", Agree), ("read the answer", FillIn(json!({"reader": "Ada"})))];
    let question = json!({"question": "What is a replica?"});
    let told = "For Ada, who works in file:///work: Another process.";
    vec![
        call(Tool("rolling_upgrade"), json!({}), logins, "octocat (GitHub) and grace (Microsoft)"),
        call(Tool("ask_the_model"), question, reader, told),
    ]
}

fn by_hand() -> Vec<Example> {
    let login = vec![("GitHub", FillIn(json!({"name": "octocat"})))];
    let audience = || FillIn(json!({"audience": "the board"}));
    let (topic, asked) = (json!({"topic": "replicas"}), vec![("briefing", audience())]);
    let report = vec![("report 7", audience())];
    vec![
        call(Tool("get_weather"), json!({"location": "Oslo"}), login, "Conditions: Partly cloudy"),
        call(Prompt("briefing"), topic, asked, "on replicas for the board"),
        call(Resource("report://7"), json!({}), report, "for the board: all is well"),
    ]
}
