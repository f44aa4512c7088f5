//! Forms from types: what is asked, and what an answer decodes into.
#![cfg(feature = "macros")]
#![allow(dead_code, reason = "some types are only asked")]

use antiphon::{
    Form, FormChoice,
    client::{Client, asks::ElicitAsk, transport::memory},
    serve::stdio::serve_streams,
    server::{Answer, Ask, Ctx, NoArguments, Reply, Server, Tool},
    wire::forms::{FormField, FormSchema},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};

/// The place of the database; this comment is not sent.
#[derive(Debug, PartialEq, Deserialize, Form)]
struct Place {
    /// Close to
    /// your users.
    ///
    /// It cannot be changed later.
    #[form(title = "Region", default = "eu-west-1", min_length = 2, max_length = 20)]
    region: String,
    #[form(format = "email")]
    contact: Option<String>,
    #[form(min = 1, max = 5)]
    replicas: u8,
    size: Size,
    #[form(min_items = 1)]
    zones: Vec<Zone>,
    #[form(default = true)]
    backup: bool,
}

#[derive(Debug, PartialEq, Deserialize, Form)]
#[serde(rename_all = "kebab-case")]
enum Size {
    #[form(title = "Small, 5 EUR a month")]
    VerySmall,
    Large,
    #[serde(skip)]
    Unsold,
}

#[derive(Debug, PartialEq, Deserialize, Form)]
enum Zone {
    A,
    #[serde(rename = "b2")]
    B,
}

#[derive(Debug, PartialEq, Deserialize, Form)]
struct Texts {
    /// Not this.
    #[form(description = "But this.")]
    a: String,
    #[form(format = "uri", default = "https://a.example/")]
    b: String,
    #[form(format = "date", default = "2026-07-28")]
    c: String,
    #[form(format = "date-time", title = "When")]
    d: Option<String>,
    #[form(not_secret, title = "How many tokens")]
    token: u8,
}

#[derive(Debug, PartialEq, Deserialize, Form)]
struct Numbers {
    a: u8,
    b: i16,
    c: u32,
    d: i32,
    e: u64,
    f: i64,
    g: usize,
    #[form(min = -5, max = 5, default = -1)]
    h: isize,
    #[form(max = 18446744073709551615)]
    i: u64,
    #[form(min = 0.5, max = 2, default = 1.25)]
    j: f64,
    #[form(min = -0.5)]
    k: Option<f32>,
    l: i8,
    m: u16,
}

#[derive(Debug, PartialEq, Deserialize, Form)]
struct Choices {
    #[form(default = "very-small", title = "Size")]
    size: Size,
    #[form(min_items = 1, max_items = 2, default = ["A", "b2"])]
    zones: Vec<Zone>,
    /// Others.
    more: Option<Vec<Zone>>,
    again: Option<Size>,
    sure: bool,
    maybe: Option<bool>,
}

#[derive(Debug, PartialEq, Deserialize, Form)]
#[serde(rename_all = "camelCase")]
struct Renamed {
    first_name: String,
    #[serde(rename = "Last")]
    last_name: String,
    #[serde(rename(serialize = "out", deserialize = "in"))]
    other: String,
    r#type: String,
    #[serde(default)]
    nick_name: String,
    #[serde(default = "seven", alias = "lucky")]
    lucky_number: u8,
    #[serde(skip_deserializing)]
    known: std::collections::HashMap<String, String>,
}

fn seven() -> u8 {
    7
}

#[derive(Debug, PartialEq, Default, Deserialize, Form)]
#[serde(default, rename_all(deserialize = "SCREAMING-KEBAB-CASE"))]
struct AllDefaults {
    one_of: u8,
    two_of: String,
}

#[derive(Debug, PartialEq, Deserialize, Form)]
struct Confirm {}

#[derive(Debug, PartialEq)]
enum ByHand {
    Yes,
}

impl FormChoice for ByHand {
    const CHOICES: &'static [(&'static str, Option<&'static str>)] = &[("yes", None)];
}

#[derive(Form)]
struct HoldsByHand {
    #[form(default = "yes")]
    yes: ByHand,
}

fn schema<T: Form>(properties: Value, required: Value) {
    let schema = T::schema();
    assert_eq!(schema.beyond_subset(), None);
    let mut expected = json!({"type": "object", "properties": properties});
    if required != json!([]) {
        expected["required"] = required;
    }
    let written: Value = serde_json::from_str(schema.text()).unwrap();
    assert_eq!(written, expected);
    // A client reads every field as one of the subset.
    let read: FormSchema = serde_json::from_str(schema.text()).unwrap();
    assert_eq!((read.beyond_subset(), read.fields().len()), (None, schema.fields().len()));
}

#[test]
fn schemas() {
    let sizes = json!([{"const": "very-small", "title": "Small, 5 EUR a month"}, {"const": "large", "title": "large"}]);
    let zones = json!({"type": "string", "enum": ["A", "b2"]});
    schema::<Place>(
        json!({
            "region": {
                "type": "string", "title": "Region", "minLength": 2, "maxLength": 20, "default": "eu-west-1",
                "description": "Close to your users.\n\nIt cannot be changed later.",
            },
            "contact": {"type": "string", "title": "Contact", "format": "email"},
            "replicas": {"type": "integer", "title": "Replicas", "minimum": 1, "maximum": 5},
            "size": {"type": "string", "title": "Size", "oneOf": sizes},
            "zones": {"type": "array", "title": "Zones", "minItems": 1, "items": zones},
            "backup": {"type": "boolean", "title": "Backup", "default": true},
        }),
        json!(["replicas", "size", "zones"]),
    );
    schema::<Texts>(
        json!({
            "a": {"type": "string", "title": "A", "description": "But this."},
            "b": {"type": "string", "title": "B", "format": "uri", "default": "https://a.example/"},
            "c": {"type": "string", "title": "C", "format": "date", "default": "2026-07-28"},
            "d": {"type": "string", "title": "When", "format": "date-time"},
            "token": {"type": "integer", "title": "How many tokens", "minimum": 0, "maximum": 255},
        }),
        json!(["a", "token"]),
    );
    schema::<Numbers>(
        json!({
            "a": {"type": "integer", "title": "A", "minimum": 0, "maximum": 255},
            "b": {"type": "integer", "title": "B", "minimum": -32768, "maximum": 32767},
            "c": {"type": "integer", "title": "C", "minimum": 0, "maximum": 4_294_967_295_u32},
            "d": {"type": "integer", "title": "D", "minimum": -2_147_483_648, "maximum": 2_147_483_647},
            "e": {"type": "integer", "title": "E", "minimum": 0},
            "f": {"type": "integer", "title": "F"},
            "g": {"type": "integer", "title": "G", "minimum": 0},
            "h": {"type": "integer", "title": "H", "minimum": -5, "maximum": 5, "default": -1},
            "i": {"type": "integer", "title": "I", "minimum": 0, "maximum": u64::MAX},
            "j": {"type": "number", "title": "J", "minimum": 0.5, "maximum": 2, "default": 1.25},
            "k": {"type": "number", "title": "K", "minimum": -0.5},
            "l": {"type": "integer", "title": "L", "minimum": -128, "maximum": 127},
            "m": {"type": "integer", "title": "M", "minimum": 0, "maximum": 65535},
        }),
        json!(["a", "b", "c", "d", "e", "f", "g", "i", "l", "m"]),
    );
    schema::<Choices>(
        json!({
            "size": {"type": "string", "title": "Size", "oneOf": sizes, "default": "very-small"},
            "zones": {"type": "array", "title": "Zones", "minItems": 1, "maxItems": 2, "items": zones, "default": ["A", "b2"]},
            "more": {"type": "array", "title": "More", "description": "Others.", "items": zones},
            "again": {"type": "string", "title": "Again", "oneOf": sizes},
            "sure": {"type": "boolean", "title": "Sure"},
            "maybe": {"type": "boolean", "title": "Maybe"},
        }),
        json!(["sure"]),
    );
    schema::<Renamed>(
        json!({
            "firstName": {"type": "string", "title": "First name"},
            "Last": {"type": "string", "title": "Last"},
            "in": {"type": "string", "title": "In"},
            "type": {"type": "string", "title": "Type"},
            "nickName": {"type": "string", "title": "Nick name"},
            "luckyNumber": {"type": "integer", "title": "Lucky number", "minimum": 0, "maximum": 255},
        }),
        json!(["firstName", "Last", "in", "type"]),
    );
    schema::<AllDefaults>(
        json!({"ONE-OF": {"type": "integer", "title": "ONE OF", "minimum": 0, "maximum": 255}, "TWO-OF": {"type": "string", "title": "TWO OF"}}),
        json!([]),
    );
    schema::<Confirm>(json!({}), json!([]));
    schema::<HoldsByHand>(
        json!({"yes": {"type": "string", "title": "Yes", "enum": ["yes"], "default": "yes"}}),
        json!([]),
    );
}

#[test]
fn fields_stand_in_the_order_of_the_struct() {
    let names = |schema: FormSchema| -> Vec<String> {
        let schema: FormSchema = serde_json::from_str(schema.text()).unwrap();
        schema.fields().iter().map(|field: &FormField| field.name.clone()).collect()
    };
    assert_eq!(names(Place::schema()), ["region", "contact", "replicas", "size", "zones", "backup"]);
    assert_eq!(names(Renamed::schema()), ["firstName", "Last", "in", "type", "nickName", "luckyNumber"]);
}

/// Checks that a person's input decodes in the same way through the form and through serde.
fn decodes<T: Form + DeserializeOwned + Debug + PartialEq>(content: Value, expected: T) {
    let checked = T::schema().check(content.as_object().unwrap().clone());
    let checked = checked.unwrap_or_else(|faults| panic!("{content}: {faults:?}"));
    assert_eq!(serde_json::from_value::<T>(checked.into()).unwrap(), expected, "{content}");
}

#[test]
fn names_and_choices_are_those_that_serde_reads() {
    let place = |region: &str, backup| Place {
        region: region.into(),
        contact: None,
        replicas: 1,
        size: Size::VerySmall,
        zones: vec![Zone::B, Zone::A],
        backup,
    };
    decodes(json!({"replicas": 1, "size": "very-small", "zones": ["b2", "A"]}), place("eu-west-1", true));
    decodes(
        json!({"region": "us", "replicas": 1, "size": "very-small", "zones": ["b2", "A"], "backup": false, "contact": null}),
        place("us", false),
    );
    decodes(
        json!({"firstName": "A", "Last": "B", "in": "C", "type": "D"}),
        Renamed {
            first_name: "A".into(),
            last_name: "B".into(),
            other: "C".into(),
            r#type: "D".into(),
            nick_name: String::new(),
            lucky_number: 7,
            known: Default::default(),
        },
    );
    decodes(json!({"ONE-OF": 3, "TWO-OF": "x"}), AllDefaults { one_of: 3, two_of: "x".into() });
    decodes(json!({}), AllDefaults::default());
    decodes(
        json!({"sure": true}),
        Choices {
            size: Size::VerySmall,
            zones: vec![Zone::A, Zone::B],
            more: None,
            again: None,
            sure: true,
            maybe: None,
        },
    );
    decodes(json!({"anything": 1}), Confirm {});
}

/// Every `rename_all` that serde has: the name of the form's only field and of its only choice decode.
#[test]
fn every_casing_is_that_of_serde() {
    macro_rules! check {
        ($($casing:literal)*) => {$({
            #[derive(Debug, PartialEq, Deserialize, Form)]
            #[serde(rename_all = $casing)]
            enum Pick {
                SomeThingElse2,
            }
            #[derive(Debug, PartialEq, Deserialize, Form)]
            #[serde(rename_all = $casing)]
            struct Cased {
                some_thing_2_else: Pick,
            }
            let name = Cased::schema().fields()[0].name.clone();
            let expected = Cased { some_thing_2_else: Pick::SomeThingElse2 };
            decodes(json!({name: Pick::CHOICES[0].0}), expected);
        })*};
    }
    check!("lowercase" "UPPERCASE" "PascalCase" "camelCase" "snake_case" "SCREAMING_SNAKE_CASE" "kebab-case" "SCREAMING-KEBAB-CASE");
}

fn same_form<A: Form, B: Form>() {
    assert_eq!(A::schema().text(), B::schema().text());
    assert_eq!(A::schema().unaskable(), None);
}

/// A value without a struct is asked as the field of a struct is.
#[test]
fn an_answer_of_one_field_is_the_form_of_a_struct_with_that_field() {
    macro_rules! check {
        ($($type:ty)*) => {$({
            #[derive(Deserialize, Form)]
            struct One {
                #[allow(dead_code, reason = "only the schema is read")]
                value: $type,
            }
            same_form::<$type, One>();
        })*};
    }
    check!(String bool f64 i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
}

async fn provision(ctx: &Ctx, _: NoArguments) -> antiphon::Result<Reply<String>> {
    let ask = Ask::of::<Place>("place", "Where should the database live?");
    Ok(match ctx.by_hand().form::<Place>(&ask)? {
        None => ask.into(),
        Some(Answer::Accept(place)) => Reply::Complete(format!("{place:?}")),
        Some(Answer::Decline | Answer::Cancel) => Reply::Complete("nowhere".into()),
    })
}

/// Calls `provision` with a person who answers with `contents`, one after another; what was told, and how often asked.
async fn answered(contents: Vec<Value>) -> (String, usize) {
    let server = Server::builder("forms", "1.0").tool(Tool::new("provision", provision)).build().unwrap();
    let (transport, reader, writer) = memory::duplex();
    let serving = tokio::spawn(serve_streams(reader, writer, server));
    let left = Arc::new(Mutex::new(contents.into_iter()));
    let asked = Arc::clone(&left);
    let total = left.lock().unwrap().len();
    let client = Client::builder("person", "1.0")
        .on_elicit(move |ask| {
            let content = asked.lock().unwrap().next();
            async move {
                match (&ask, content) {
                    (ElicitAsk::Form(form), Some(content)) => Ok(form.accept(content)?),
                    (ask, _) => panic!("asked too often: {ask:?}"),
                }
            }
        })
        .connect(transport);
    let result = client.call_tool("provision", json!({})).await.unwrap();
    let text = result.first_text().unwrap().to_owned();
    drop(client);
    serving.await.unwrap().unwrap();
    let rest = left.lock().unwrap().len();
    (text, total - rest)
}

#[tokio::test]
async fn a_person_fills_it_in_and_the_handler_reads_its_type() {
    let (text, asked) = answered(vec![json!({"replicas": 3, "size": "large", "zones": ["b2"]})]).await;
    let expected = Place {
        region: "eu-west-1".into(),
        contact: None,
        replicas: 3,
        size: Size::Large,
        zones: vec![Zone::B],
        backup: true,
    };
    assert_eq!((text, asked), (format!("{expected:?}"), 1));
}

/// Clients whose language has one kind of number write 3 as 3.0.
#[tokio::test]
async fn a_whole_number_decodes_however_it_is_written() {
    let (text, asked) = answered(vec![json!({"replicas": 3.0, "size": "large", "zones": ["A"]})]).await;
    assert!(text.contains("replicas: 3,"), "{text}");
    assert_eq!(asked, 1);
}
