//! Tools, prompts and resources by hand.

use crate::asks::{Leg, Step, Stepped, internal, page, roots, round, sample, text_form, uris};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode, InputRequests, InputRequiredResult},
};
use serde_json::{Value, json};

/// Everything that a JSON string can hold and a careless echo would lose.
const TRICKY: &str = " st.ate/with+special=chars \"quoted\" \\ \n\t \u{0} \u{2028} \u{1f600} ";
/// As long as a state may well get.
const LONG: usize = 60_000;

/// The step of a tool; `None` if there is no such tool here.
pub(crate) fn tool(name: &str, leg: &Leg) -> Option<Stepped> {
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
        "empty_round" => Ok(Step::Ask(InputRequiredResult::new(None, None))),
        "no_questions" => no_questions(leg),
        "tricky_state" => same_state(leg, TRICKY),
        "long_state" => same_state(leg, &"s".repeat(LONG)),
        "odd_keys" => odd_keys(leg),
        "route" => leg.text("region").map(|region| Step::Text(format!("routed to {region}"))),
        _ => return None,
    })
}

/// The step of a prompt.
pub(crate) fn prompt(name: &str, leg: &Leg) -> Option<Stepped> {
    Some(match name {
        "plain" => leg.text("topic").map(|topic| Step::Text(format!("Write about {topic}."))),
        "briefing" => audience(leg, "Who is the briefing for?", |who| format!("Brief {who} on the release.")),
        "drafted" => summarize(leg),
        "agreed" => pay(leg),
        _ => return None,
    })
}

/// The step of a resource.
pub(crate) fn resource(uri: &str, leg: &Leg) -> Option<Stepped> {
    Some(match uri.split_once("://")? {
        ("readme", "all") => Ok(Step::Text("Read me.".to_owned())),
        ("report", id) => {
            audience(leg, &format!("Who reads report {id}?"), |who| format!("Report {id} for {who}."))
        }
        ("tree", "mine") => list_my_roots(leg),
        ("slow", "one") => shed(leg),
        _ => return None,
    })
}

fn fail(leg: &Leg) -> Stepped {
    Ok(Step::Tool(CallToolResult::error(vec![ContentBlock::text(leg.text("reason")?)])))
}

fn provision_stateless(leg: &Leg) -> Stepped {
    if let Some(state) = &leg.state {
        return Ok(Step::Text(format!("There was no state, and now there is one of {} bytes.", state.len())));
    }
    let name = leg.text("name")?;
    Ok(match leg.filled("region", "region") {
        None => round([("region", text_form("Which region should the database live in?", "region")?)], None),
        Some(Ok(region)) => Step::Text(format!("Provisioned {name} in {region}.")),
        Some(Err(action)) => Step::Text(format!("Nothing was provisioned: {action}.")),
    })
}

fn pay(leg: &Leg) -> Stepped {
    let amount = leg.number("amount").or_else(|_| leg.text("amount")?.parse().map_err(internal))?;
    let Some(answer) = leg.answer("checkout") else {
        let url = format!("https://pay.example.com/?amount={amount}");
        return Ok(round([("checkout", page(&format!("Pay {amount} EUR on our page"), url))], Some("owes")));
    };
    Ok(Step::Text(format!("Pay {amount} EUR: {}, with {}.", answer["action"], answer["content"])))
}

fn summarize(leg: &Leg) -> Stepped {
    let text = leg.text("text")?;
    let Some(answer) = leg.answer("summary") else {
        return Ok(round([("summary", sample(text))], Some("sampling")));
    };
    Ok(Step::Text(format!("{} says: {}", answer["model"], answer["content"]["text"])))
}

fn list_my_roots(leg: &Leg) -> Stepped {
    Ok(match leg.answer("roots") {
        None => round([("roots", roots())], None),
        Some(answer) => Step::Text(format!("Roots: {}", uris(answer))),
    })
}

fn gather(leg: &Leg) -> Stepped {
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
    Ok(Step::Text(format!("{form}, {agreed}, {}, {}", model["content"]["text"], uris(found))))
}

fn book_table(leg: &Leg) -> Stepped {
    let (Some(day), Some(party)) = (leg.filled("day", "day"), leg.filled("party", "guests")) else {
        let asks =
            [("day", text_form("Which day?", "day")?), ("party", text_form("How many guests?", "guests")?)];
        return Ok(round(asks, None));
    };
    let said = |answer: Result<&Value, &str>| match answer {
        Ok(value) => value.to_string(),
        Err(action) => action.to_owned(),
    };
    Ok(Step::Text(format!("{} for {}", said(day), said(party))))
}

/// Three rounds; the state holds the words so far.
fn ladder(leg: &Leg) -> Stepped {
    let mut words: Vec<String> = match &leg.state {
        None => Vec::new(),
        Some(state) => serde_json::from_str(state).map_err(internal)?,
    };
    if leg.state.is_some() {
        match leg.filled(&format!("word{}", words.len() + 1), "word") {
            Some(Ok(word)) => words.push(word.as_str().unwrap_or_default().to_owned()),
            Some(Err(action)) => return Ok(Step::Text(format!("{}: {action}", words.join(" ")))),
            None => {}
        }
    }
    if words.len() == 3 {
        return Ok(Step::Text(words.join(" ")));
    }
    let (step, state) = (words.len() + 1, serde_json::to_string(&words).map_err(internal)?);
    let ask = text_form(&format!("Word {step} of 3"), "word")?;
    Ok(round([(format!("word{step}").as_str(), ask)], Some(&state)))
}

/// State alone, twice. Nothing but the state may come with a retry.
fn shed(leg: &Leg) -> Stepped {
    if leg.responses.is_some() {
        return Err(ErrorData::invalid_params("there are answers to no question", None));
    }
    Ok(match leg.state.as_deref() {
        None => Step::Ask(InputRequiredResult::from_request_state("one")),
        Some("one") => Step::Ask(InputRequiredResult::from_request_state("two")),
        Some(state) => Step::Text(format!("done after {state}")),
    })
}

fn insist(leg: &Leg) -> Stepped {
    let turn: u32 = leg.state.as_deref().and_then(|state| state.parse().ok()).unwrap_or_default();
    Ok(round([("more", text_form("One more time?", "more")?)], Some(&(turn + 1).to_string())))
}

/// An empty map of questions beside a state: a round of state alone, in other words.
fn no_questions(leg: &Leg) -> Stepped {
    Ok(match leg.state.as_deref() {
        None => Step::Ask(InputRequiredResult::new(Some(InputRequests::new()), Some("empty".to_owned()))),
        Some(state) => Step::Text(format!("done after {state}")),
    })
}

fn same_state(leg: &Leg, wanted: &str) -> Stepped {
    Ok(match &leg.state {
        None => round([("go", text_form("Go on?", "go")?)], Some(wanted)),
        Some(state) if state == wanted => Step::Text("the same state came back".to_owned()),
        Some(_) => Step::Text("another state came back".to_owned()),
    })
}

fn odd_keys(leg: &Leg) -> Stepped {
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
    Ok(Step::Text(words.join(" / ")))
}

fn audience(leg: &Leg, message: &str, end: impl FnOnce(&str) -> String) -> Stepped {
    Ok(match leg.filled("audience", "audience") {
        None => round([("audience", text_form(message, "audience")?)], Some(message)),
        Some(_) if leg.state.as_deref() != Some(message) => {
            return Err(ErrorData::invalid_params("another state came back", None));
        }
        Some(Ok(who)) => Step::Text(end(who.as_str().unwrap_or_default())),
        Some(Err(action)) => Step::Text(format!("Nobody reads it: {action}.")),
    })
}
