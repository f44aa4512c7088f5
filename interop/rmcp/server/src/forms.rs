//! A tool whose form has every kind of field that rmcp can build.

use crate::asks::{HandlerResult, Leg, Reply, form, internal, round};
use rmcp::{
    ErrorData,
    model::{ElicitationSchema, EnumSchema, StringFormat},
};
use serde_json::{Map, Value};

pub(crate) fn survey(leg: &Leg) -> HandlerResult {
    let Some(answer) = leg.answer("survey") else {
        return Ok(round([("survey", form("A few questions", schema()?))], Some("surveying")));
    };
    match answer["action"].as_str() {
        Some("accept") => Ok(Reply::Text(answer["content"].to_string())),
        other => Ok(Reply::Text(format!("No answers: {}.", other.unwrap_or("no action")))),
    }
}

fn schema() -> Result<ElicitationSchema, ErrorData> {
    let colours = EnumSchema::builder(words(["red", "green"])).build();
    let sizes =
        EnumSchema::builder(words(["S", "M"])).enum_titles(words(["Small", "Medium"])).map_err(internal)?;
    let toppings = EnumSchema::builder(words(["ham", "olives", "basil"])).multiselect();
    let toppings = toppings.min_items(1).and_then(|some| some.max_items(2)).map_err(internal)?;
    let days = EnumSchema::builder(words(["mo", "tu"])).multiselect();
    let days = days.enum_titles(words(["Monday", "Tuesday"])).map_err(internal)?;
    ElicitationSchema::builder()
        .required_string_property("name", |name| {
            name.title("Your name").description("As on the passport").min_length(2).max_length(40)
        })
        .required_email("email")
        .required_string_property("site", |site| site.format(StringFormat::Uri))
        .required_string_property("born", |born| born.format(StringFormat::Date))
        .required_string_property("met", |met| met.format(StringFormat::DateTime))
        .required_integer("age", 0, 150)
        .required_number("height", 0.5, 2.5)
        .required_bool("member")
        .optional_bool("newsletter", false)
        .required_enum_schema("colour", colours)
        .optional_enum_schema("size", sizes.with_default("M").map_err(internal)?.build())
        .required_enum_schema("toppings", toppings.build())
        .optional_enum_schema("days", days.build())
        .optional_string("nickname")
        .build()
        .map_err(internal)
}

/// A form as written by a peer of an older revision: a choice with `enumNames`.
pub(crate) fn old_choice(leg: &Leg) -> HandlerResult {
    let property = serde_json::json!({
        "type": "string", "enum": ["S", "M"], "enumNames": ["Small", "Medium"],
    });
    let mut properties = Map::new();
    properties.insert("size".to_owned(), property);
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), vec!["size"].into());
    match leg.filled("choice", "size") {
        None => {
            let schema = ElicitationSchema::from_json_schema(schema).map_err(internal)?;
            Ok(round([("choice", form("Which size?", schema))], None))
        }
        Some(Ok(size)) => Ok(Reply::Text(format!("Size {size}."))),
        Some(Err(action)) => Ok(Reply::Text(format!("No size: {action}."))),
    }
}

fn words<const N: usize>(of: [&str; N]) -> Vec<String> {
    of.map(str::to_owned).to_vec()
}
