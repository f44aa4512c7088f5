//! Properties of generated input.

use antiphon_wire::{
    AcknowledgedParams, CallToolResult, CancelledParams, Choice, CompleteParams, CompleteResult, Completion,
    CompletionArgument, CompletionContext, CompletionReference, ElicitRequest, FieldKind, FormField,
    FormSchema, Incoming, InputRequest, InputRequests, ListChangedParams, ListenParams, ListenResult,
    LogLevel, LogMessageParams, Meta, Outcome, ProgressParams, ProgressToken, RequestId,
    ResourceUpdatedParams, Role, SubscriptionFilter, TextFormat, header, write_request,
};
use proptest::collection::{btree_map, hash_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Number;
use std::fmt::Debug;

fn request_id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<i64>().prop_map(RequestId::from),
        any::<u64>().prop_map(RequestId::from),
        any::<String>().prop_map(|text| RequestId::from(&*text)),
    ]
}

fn number() -> impl Strategy<Value = Number> {
    let float = any::<f64>().prop_filter_map("finite", Number::from_f64);
    prop_oneof![any::<i64>().prop_map(Number::from), any::<u64>().prop_map(Number::from), float]
}

/// Values without titles, or with a title each: the protocol has no mixture.
fn choices() -> impl Strategy<Value = Vec<Choice>> {
    let plain = vec(any::<String>().prop_map(|value| Choice { value, title: None }), 0..4);
    let titled = any::<(String, String)>().prop_map(|(value, title)| Choice { value, title: Some(title) });
    prop_oneof![plain, vec(titled, 1..4)]
}

fn kind() -> impl Strategy<Value = FieldKind> {
    let format = prop::sample::select(vec![
        TextFormat::Email,
        TextFormat::Uri,
        TextFormat::Date,
        TextFormat::DateTime,
    ]);
    let text = (any::<Option<u64>>(), any::<Option<u64>>(), option::of(format), any::<Option<String>>());
    prop_oneof![
        text.prop_map(|(min_length, max_length, format, default)| FieldKind::Text {
            min_length,
            max_length,
            format,
            default
        }),
        (any::<bool>(), option::of(number()), option::of(number()), option::of(number())).prop_map(
            |(integer, minimum, maximum, default)| FieldKind::Number { integer, minimum, maximum, default }
        ),
        any::<Option<bool>>().prop_map(|default| FieldKind::Boolean { default }),
        (choices(), any::<Option<String>>())
            .prop_map(|(choices, default)| FieldKind::One { choices, default }),
        (choices(), any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<Vec<String>>>()).prop_map(
            |(choices, min_items, max_items, default)| FieldKind::Many {
                choices,
                min_items,
                max_items,
                default
            }
        ),
    ]
}

/// Fields of different names, in any order.
fn fields() -> impl Strategy<Value = Vec<FormField>> {
    let rest = (any::<Option<String>>(), any::<Option<String>>(), any::<bool>(), kind());
    let fields = btree_map(any::<String>(), rest, 0..5).prop_map(|fields| {
        let field = |(name, (title, description, required, kind)): (String, _)| {
            let mut field = FormField::boolean(name);
            (field.title, field.description, field.required, field.kind) =
                (title, description, required, kind);
            field
        };
        fields.into_iter().map(field).collect::<Vec<_>>()
    });
    fields.prop_shuffle()
}

fn filter() -> impl Strategy<Value = SubscriptionFilter> {
    let lists = any::<(Option<bool>, Option<bool>, Option<bool>)>();
    (lists, any::<Option<Vec<String>>>(), any::<Option<String>>()).prop_map(|(lists, resources, other)| {
        let mut filter = SubscriptionFilter::new();
        (filter.tools_list_changed, filter.prompts_list_changed, filter.resources_list_changed) = lists;
        filter.resource_subscriptions = resources;
        filter.other.extend(other.map(|text| (format!("x{text}"), text.into())));
        filter
    })
}

fn reference() -> impl Strategy<Value = CompletionReference> {
    prop_oneof![
        any::<(String, Option<String>)>()
            .prop_map(|(name, title)| CompletionReference::Prompt { name, title }),
        any::<String>().prop_map(CompletionReference::resource),
    ]
}

fn token() -> impl Strategy<Value = ProgressToken> {
    prop_oneof![number().prop_map(ProgressToken::from), any::<String>().prop_map(ProgressToken::from)]
}

/// Checks that the value is read as it was before it was written.
fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(value).unwrap();
    prop_assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{}", text);
    Ok(())
}

/// Text that is nearly a message.
fn nearly_a_message() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        " ",
        "null",
        "1",
        "-",
        "2.0",
        "\"2.0\"",
        "\"jsonrpc\"",
        "\"id\"",
        "\"method\"",
        "\"params\"",
        "\"result\"",
        "\"error\"",
        "\"jsonrpc\":\"2.0\"",
        "\"id\":1",
        "\"a\"",
        "\"error\":{\"code\":1,\"message\":\"\"}",
        "\"params\":{}",
        "\u{1d11e}",
        "\\u",
    ]);
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Checks that any bytes are read, or refused with one of two codes.
fn parse(bytes: &[u8]) -> Result<(), TestCaseError> {
    match Incoming::parse(bytes) {
        Ok(Incoming::Response(response)) => {
            if let Ok(result) = response.outcome {
                // It may say anything: it is enough that it does not panic.
                let _ = Outcome::<CallToolResult>::read(result);
            }
        }
        Ok(_) => prop_assert!(std::str::from_utf8(bytes).is_ok()),
        Err(unreadable) => prop_assert!([-32700, -32600].contains(&unreadable.error.code.0)),
    }
    Ok(())
}

proptest! {
    #[test]
    fn an_id_comes_back_as_it_was(id in request_id(), method in any::<String>()) {
        let text = serde_json::to_string(&id).unwrap();
        prop_assert_eq!(&serde_json::from_str::<RequestId>(&text).unwrap(), &id);
        let message = write_request(&id, &method, &serde_json::json!({})).unwrap();
        let Ok(Incoming::Request(request)) = Incoming::parse(&message) else { panic!("a request") };
        prop_assert_eq!((request.id, &*request.method), (id, &*method));
    }

    #[test]
    fn equal_numbers_are_equal_ids(number in any::<i64>()) {
        if let Ok(unsigned) = u64::try_from(number) {
            prop_assert_eq!(RequestId::from(number), RequestId::from(unsigned));
        }
        prop_assert_ne!(RequestId::from(number), RequestId::from(&*number.to_string()));
    }

    #[test]
    fn a_header_value_comes_back_as_it_was(value in any::<String>()) {
        let encoded = header::encode(&value);
        prop_assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')));
        prop_assert_eq!(encoded.trim(), &*encoded);
        prop_assert!(!encoded.is_empty());
        let decoded = header::decode(&encoded);
        prop_assert_eq!(decoded.as_deref(), Some(&*value));
    }

    #[test]
    fn a_header_value_near_the_sentinel_comes_back_too(
        value in r"=?\??(base64|BASE64)?\??[A-Za-z0-9+/ \t=]{0,9}\??=?",
    ) {
        let encoded = header::encode(&value);
        let decoded = header::decode(&encoded);
        prop_assert_eq!(decoded.as_deref(), Some(&*value));
    }

    #[test]
    fn reading_a_header_does_not_panic(header in r"(=\?base64\?)?\PC{0,20}(\?=)?") {
        header::decode(&header);
    }

    #[test]
    fn a_form_comes_back_as_it_was_built(fields in fields()) {
        let built = FormSchema::new(fields);
        let read: FormSchema = serde_json::from_str(built.text()).unwrap();
        prop_assert_eq!(read.fields(), built.fields());
        prop_assert_eq!(read.beyond_subset(), built.beyond_subset());
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), built.text());
    }

    #[test]
    fn an_ask_as_json_is_its_serialization(message in any::<String>(), fields in fields()) {
        let requested_schema = FormSchema::new(fields);
        let url = "https://bank.example/pay".to_owned();
        for ask in [
            InputRequest::Elicit(ElicitRequest::Url { message: message.clone(), url }),
            InputRequest::Elicit(ElicitRequest::Form { message, requested_schema }),
            InputRequest::ListRoots { meta: None },
        ] {
            prop_assert_eq!(ask.to_json().unwrap(), serde_json::to_string(&ask).unwrap());
        }
    }

    #[test]
    fn asks_keep_their_order(keys in hash_set(any::<String>(), 0..20)) {
        let mut asks = InputRequests::new();
        for key in &keys {
            let new = asks.insert(key, InputRequest::ListRoots { meta: None });
            let again = asks.insert(key, InputRequest::ListRoots { meta: None });
            prop_assert!(new && !again);
        }
        let read: InputRequests = serde_json::from_str(&serde_json::to_string(&asks).unwrap()).unwrap();
        let order: Vec<&str> = read.iter().map(|(key, _)| key).collect();
        prop_assert_eq!(order, keys.iter().collect::<Vec<_>>());
    }

    #[test]
    fn floats_come_back_to_the_last_bit(number in any::<f64>().prop_filter("finite", |number| number.is_finite())) {
        let text = format!(r#"{{"resultType":"complete","content":[],"structuredContent":{number:?}}}"#);
        let read: CallToolResult = serde_json::from_str(&text).unwrap();
        let read = read.structured_content.unwrap().as_f64().unwrap();
        prop_assert_eq!(read.to_bits(), number.to_bits());
    }

    #[test]
    fn a_subscription_comes_back_as_it_was(id in request_id(), filter in filter(), uri in any::<String>()) {
        let acknowledged = AcknowledgedParams::new(&id, filter.clone());
        comes_back(&acknowledged)?;
        comes_back(&ListenParams::new(filter, acknowledged.meta))?;
        comes_back(&ListChangedParams::new(&id))?;
        comes_back(&ListenResult::new(&id))?;
        let updated = ResourceUpdatedParams::new(&id, uri);
        comes_back(&updated)?;
        prop_assert_eq!(updated.meta.subscription_id(), Some(id));
    }

    #[test]
    fn a_completion_comes_back_as_it_was(
        reference in reference(),
        (name, value) in any::<(String, String)>(),
        known in option::of(btree_map(any::<String>(), any::<String>(), 0..4)),
        (values, total, has_more) in any::<(Vec<String>, Option<u64>, Option<bool>)>(),
    ) {
        let argument = CompletionArgument::new(name, value);
        let mut params = CompleteParams::new(reference, argument, Meta::default());
        params.context = known.map(CompletionContext::new);
        comes_back(&params)?;
        let mut completion = Completion::new(values);
        (completion.total, completion.has_more) = (total, has_more);
        comes_back(&CompleteResult::new(completion))?;
    }

    #[test]
    fn the_metadata_of_a_request_comes_back_as_it_was(
        (id, token) in (request_id(), token()),
        (progress, total, data) in (number(), option::of(number()), number()),
        (message, logger, role) in any::<(Option<String>, Option<String>, String)>(),
    ) {
        let mut params = ProgressParams::new(token, progress);
        (params.total, params.message) = (total, message.clone());
        comes_back(&params)?;
        let mut params = LogMessageParams::new(LogLevel::Notice, data);
        params.logger = logger;
        comes_back(&params)?;
        let mut params = CancelledParams::new(id);
        params.reason = message;
        comes_back(&params)?;
        comes_back(&Role::from(role))?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        parse(&bytes)?;
    }

    #[test]
    fn any_text_near_a_message_is_read_or_refused(inside in nearly_a_message()) {
        parse(inside.as_bytes())?;
        parse(format!(r#"{{"jsonrpc":"2.0",{inside}}}"#).as_bytes())?;
    }
}

#[test]
fn a_form_that_could_not_be_read_again_is_an_error() {
    let twice = FormSchema::new(vec![FormField::text("a"), FormField::number("a")]);
    assert_eq!(twice.beyond_subset(), Some("two fields have the name `a`"));
    let mut other = FormField::text("a");
    other.kind = FieldKind::Other;
    let built = FormSchema::new(vec![other]);
    let read: FormSchema = serde_json::from_str(built.text()).unwrap();
    assert!(built.beyond_subset().is_some());
    assert_eq!(built.beyond_subset(), read.beyond_subset());
}
