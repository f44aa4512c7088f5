//! Tools, prompts and resources without rmcp's macros.

use crate::asks::{HandlerResult, Leg, Reply, internal, page, roots, round, sample, text_form, uris};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode, InputRequests, InputRequiredResult},
};
use serde_json::{Value, json};

/// Characters of a JSON string that an incorrect implementation would change or lose.
const TRICKY: &str = " st.ate/with+special=chars \"quoted\" \\ \n\t \u{0} \u{2028} \u{1f600} ";
/// Length of a long state, in bytes.
const LONG: usize = 60_000;

/// The reply of a tool; `None` for an unknown tool.
pub(crate) fn tool(name: &str, leg: &Leg) -> Option<HandlerResult> {
    Some(match name {
        "fail" => fail(leg),
        "refuse" => Err(ErrorData::new(ErrorCode(-32050), "No tea here", Some(json!({"kind": "teapot"})))),
        "survey" => crate::forms::survey(leg),
        "old_choice" => crate::forms::old_choice(leg),
        "provision_stateless" => provision_stateless(leg),
        "pay" => pay(leg),
        "summarize" => summarize(leg),
        "list_my_roots" => list_my_roots(leg),
        "gather" => gather(leg),
        "book_table" => book_table(leg),
        "ladder" => ladder(leg),
        "shed" => shed(leg),
        "insist" => insist(leg),
        "empty_round" => Ok(Reply::Ask(InputRequiredResult::new(None, None))),
        "no_questions" => no_questions(leg),
        "tricky_state" => same_state(leg, TRICKY),
        "long_state" => same_state(leg, &"s".repeat(LONG)),
        "odd_keys" => odd_keys(leg),
        "route" => leg.text("region").map(|region| Reply::Text(format!("routed to {region}"))),
        _ => return None,
    })
}

/// The reply of a prompt; `None` for an unknown prompt.
pub(crate) fn prompt(name: &str, leg: &Leg) -> Option<HandlerResult> {
    Some(match name {
        "plain" => leg.text("topic").map(|topic| Reply::Text(format!("Write about {topic}."))),
        "briefing" => audience(leg, "Who is the briefing for?", |who| format!("Brief {who} on the release.")),
        "drafted" => summarize(leg),
        "agreed" => pay(leg),
        _ => return None,
    })
}

/// The reply of a resource; `None` for an unknown resource.
pub(crate) fn resource(uri: &str, leg: &Leg) -> Option<HandlerResult> {
    Some(match uri.split_once("://")? {
        ("readme", "all") => Ok(Reply::Text("Read me.".to_owned())),
        ("report", id) => {
            audience(leg, &format!("Who reads report {id}?"), |who| format!("Report {id} for {who}."))
        }
        ("tree", "mine") => list_my_roots(leg),
        ("slow", "one") => shed(leg),
        _ => return None,
    })
}

fn fail(leg: &Leg) -> HandlerResult {
    Ok(Reply::Tool(CallToolResult::error(vec![ContentBlock::text(leg.text("reason")?)])))
}

fn provision_stateless(leg: &Leg) -> HandlerResult {
    if let Some(state) = &leg.state {
        return Ok(Reply::Text(format!(
            "There was no state, and now there is one of {} bytes.",
            state.len()
        )));
    }
    let name = leg.text("name")?;
    Ok(match leg.filled("region", "region") {
        None => round([("region", text_form("Which region should the database live in?", "region")?)], None),
        Some(Ok(region)) => Reply::Text(format!("Provisioned {name} in {region}.")),
        Some(Err(action)) => Reply::Text(format!("Nothing was provisioned: {action}.")),
    })
}

fn pay(leg: &Leg) -> HandlerResult {
    let amount = leg.number("amount").or_else(|_| leg.text("amount")?.parse().map_err(internal))?;
    let Some(answer) = leg.answer("checkout") else {
        let url = format!("https://pay.example.com/?amount={amount}");
        return Ok(round([("checkout", page(&format!("Pay {amount} EUR on our page"), url))], Some("owes")));
    };
    Ok(Reply::Text(format!("Pay {amount} EUR: {}, with {}.", answer["action"], answer["content"])))
}

fn summarize(leg: &Leg) -> HandlerResult {
    let text = leg.text("text")?;
    let Some(answer) = leg.answer("summary") else {
        return Ok(round([("summary", sample(text))], Some("sampling")));
    };
    Ok(Reply::Text(format!("{} says: {}", answer["model"], answer["content"]["text"])))
}

fn list_my_roots(leg: &Leg) -> HandlerResult {
    Ok(match leg.answer("roots") {
        None => round([("roots", roots())], None),
        Some(answer) => Reply::Text(format!("Roots: {}", uris(answer))),
    })
}

fn gather(leg: &Leg) -> HandlerResult {
    let answers = [leg.answer("form"), leg.answer("page"), leg.answer("model"), leg.answer("roots")];
    let [Some(form), Some(agreed), Some(model), Some(found)] = answers else {
        let asks = [
            ("form", text_form("A word, please", "word")?),
            ("page", page("Agree to the terms", "https://example.com/terms".to_owned())),
            ("model", sample("everything")),
            ("roots", roots()),
        ];
        return Ok(round(asks, Some("gathering")));
    };
    let (form, agreed) = (&form["content"]["word"], &agreed["action"]);
    Ok(Reply::Text(format!("{form}, {agreed}, {}, {}", model["content"]["text"], uris(found))))
}

fn book_table(leg: &Leg) -> HandlerResult {
    let (Some(day), Some(party)) = (leg.filled("day", "day"), leg.filled("party", "guests")) else {
        let asks =
            [("day", text_form("Which day?", "day")?), ("party", text_form("How many guests?", "guests")?)];
        return Ok(round(asks, None));
    };
    let value_or_action = |answer: Result<&Value, &str>| match answer {
        Ok(value) => value.to_string(),
        Err(action) => action.to_owned(),
    };
    Ok(Reply::Text(format!("{} for {}", value_or_action(day), value_or_action(party))))
}

/// Asks for three words in three rounds. The state contains the words of earlier rounds.
fn ladder(leg: &Leg) -> HandlerResult {
    let mut words: Vec<String> = match &leg.state {
        None => Vec::new(),
        Some(state) => serde_json::from_str(state).map_err(internal)?,
    };
    if leg.state.is_some() {
        match leg.filled(&format!("word{}", words.len() + 1), "word") {
            Some(Ok(word)) => words.push(word.as_str().unwrap_or_default().to_owned()),
            Some(Err(action)) => return Ok(Reply::Text(format!("{}: {action}", words.join(" ")))),
            None => {}
        }
    }
    if words.len() == 3 {
        return Ok(Reply::Text(words.join(" ")));
    }
    let (step, state) = (words.len() + 1, serde_json::to_string(&words).map_err(internal)?);
    let ask = text_form(&format!("Word {step} of 3"), "word")?;
    Ok(round([(format!("word{step}").as_str(), ask)], Some(&state)))
}

/// Replies twice with state only. The retry must have no answers.
fn shed(leg: &Leg) -> HandlerResult {
    if leg.responses.is_some() {
        return Err(ErrorData::invalid_params("answers without a question", None));
    }
    Ok(match leg.state.as_deref() {
        None => Reply::Ask(InputRequiredResult::from_request_state("one")),
        Some("one") => Reply::Ask(InputRequiredResult::from_request_state("two")),
        Some(state) => Reply::Text(format!("done after {state}")),
    })
}

fn insist(leg: &Leg) -> HandlerResult {
    let count: u32 = leg.state.as_deref().and_then(|state| state.parse().ok()).unwrap_or_default();
    Ok(round([("more", text_form("One more time?", "more")?)], Some(&(count + 1).to_string())))
}

/// Replies with a state and an empty map of questions, which is the same as state only.
fn no_questions(leg: &Leg) -> HandlerResult {
    Ok(match leg.state.as_deref() {
        None => Reply::Ask(InputRequiredResult::new(Some(InputRequests::new()), Some("empty".to_owned()))),
        Some(state) => Reply::Text(format!("done after {state}")),
    })
}

fn same_state(leg: &Leg, wanted: &str) -> HandlerResult {
    Ok(match &leg.state {
        None => round([("go", text_form("Go on?", "go")?)], Some(wanted)),
        Some(state) if state == wanted => Reply::Text("the same state came back".to_owned()),
        Some(_) => Reply::Text("another state came back".to_owned()),
    })
}

fn odd_keys(leg: &Leg) -> HandlerResult {
    let keys = ["a.b<c>#1", "Grüße / 2", "__proto__"];
    if leg.responses.is_none() {
        let [one, two, three] = keys;
        let ask = |which: &str| text_form(which, "word");
        return Ok(round([(one, ask("One")?), (two, ask("Two")?), (three, ask("Three")?)], None));
    }
    let words = keys.map(|key| match leg.filled(key, "word") {
        Some(Ok(word)) => word.as_str().unwrap_or_default().to_owned(),
        Some(Err(action)) => action.to_owned(),
        None => "nothing".to_owned(),
    });
    Ok(Reply::Text(words.join(" / ")))
}

fn audience(leg: &Leg, message: &str, end: impl FnOnce(&str) -> String) -> HandlerResult {
    Ok(match leg.filled("audience", "audience") {
        None => round([("audience", text_form(message, "audience")?)], Some(message)),
        Some(_) if leg.state.as_deref() != Some(message) => {
            return Err(ErrorData::invalid_params("another state came back", None));
        }
        Some(Ok(who)) => Reply::Text(end(who.as_str().unwrap_or_default())),
        Some(Err(action)) => Reply::Text(format!("Nobody reads it: {action}.")),
    })
}
