//! Input requests (asks): the entries of `inputRequests`.

use crate::{
    AskSupport, CreateMessageParams, FormSchema, Meta, UnknownAsk,
    members::{Object, name_used_twice},
    method,
    walk::{self, walked},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap as _};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// An input request (ask): the data that the server needs before it can continue. `method` selects the
/// variant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputRequest {
    /// `elicitation/create`: a request to the person at the client.
    Elicit(ElicitRequest),
    /// `sampling/createMessage`: a request to the client's model. Deprecated in 2026-07-28.
    CreateMessage(Box<CreateMessageParams>),
    /// `roots/list`: a request to the client itself. Deprecated in 2026-07-28.
    ListRoots {
        /// The request's `params._meta`, if present.
        meta: Option<Meta>,
    },
    /// A request that this version does not know or cannot read. A client that is driven by hand may refuse it.
    Unknown(UnknownAsk),
}

/// A request to the person at the client. `mode` selects the variant; without `mode`, it is a form.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ElicitRequest {
    /// A form to fill in. Not for secrets: secrets go through a URL.
    Form {
        /// The reason for the form, for the person.
        message: String,
        /// The schema of the form's fields.
        requested_schema: FormSchema,
    },
    /// A URL that the client opens after the person agreed.
    Url {
        /// The reason for the URL, for the person.
        message: String,
        /// The URL to open.
        url: String,
    },
}

impl ElicitRequest {
    /// Returns the message that is shown to the person.
    pub fn message(&self) -> &str {
        match self {
            Self::Form { message, .. } | Self::Url { message, .. } => message,
        }
    }

    /// Returns true if the request is a URL to open.
    pub fn is_url(&self) -> bool {
        matches!(self, Self::Url { .. })
    }

    /// Returns the same request with another message.
    #[must_use]
    pub fn with_message(self, message: String) -> Self {
        match self {
            Self::Form { requested_schema, .. } => Self::Form { message, requested_schema },
            Self::Url { url, .. } => Self::Url { message, url },
        }
    }
}

/// The kind of an input request. The kind decides how the answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AskKind {
    /// A form.
    Form,
    /// A URL.
    Url,
    /// A message of the client's model (`sampling/createMessage`).
    Sampling,
    /// The client's root directories.
    Roots,
    /// A kind that this version does not know.
    Unknown,
}

impl InputRequest {
    /// Returns the kind of the input request.
    pub fn kind(&self) -> AskKind {
        match self {
            Self::Elicit(ElicitRequest::Form { .. }) => AskKind::Form,
            Self::Elicit(ElicitRequest::Url { .. }) => AskKind::Url,
            Self::CreateMessage(_) => AskKind::Sampling,
            Self::ListRoots { .. } => AskKind::Roots,
            Self::Unknown(_) => AskKind::Unknown,
        }
    }

    /// Returns the method of the input request on the wire.
    pub fn method(&self) -> &str {
        match self {
            Self::Elicit(_) => method::ELICITATION_CREATE,
            Self::CreateMessage(_) => method::SAMPLING_CREATE_MESSAGE,
            Self::ListRoots { .. } => method::ROOTS_LIST,
            Self::Unknown(ask) => &ask.method,
        }
    }

    /// Returns the input request as JSON, with the same text as its serialization.
    ///
    /// # Errors
    /// An error if a part cannot be written as JSON. A form can always be written.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let Self::Elicit(ElicitRequest::Form { message, requested_schema }) = self else {
            return serde_json::to_string(self);
        };
        // serde_json writes each byte of each name by itself, and a server writes a form on every leg of a call.
        const BEGIN: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"#;
        const SCHEMA: &str = r#","requestedSchema":"#;
        let schema = requested_schema.text();
        let quotes_and_braces = 4;
        let length = BEGIN.len() + message.len() + SCHEMA.len() + schema.len() + quotes_and_braces;
        let mut json = String::with_capacity(length);
        json.push_str(BEGIN);
        walk::push_text(&mut json, message);
        json.push_str(SCHEMA);
        json.push_str(schema);
        json.push_str("}}");
        Ok(json)
    }

    /// Returns the support that a client must have declared to receive this input request; none for an
    /// unknown kind.
    pub fn needs(&self) -> AskSupport {
        let mut needs = AskSupport::NONE;
        match self {
            Self::Elicit(ElicitRequest::Form { .. }) => needs.form = true,
            Self::Elicit(ElicitRequest::Url { .. }) => needs.url = true,
            Self::CreateMessage(params) => {
                needs.sampling = true;
                needs.sampling_tools = params.tools.is_some() || params.tool_choice.is_some();
                needs.sampling_context = params.include_context.as_deref().is_some_and(|what| what != "none");
            }
            Self::ListRoots { .. } => needs.roots = true,
            Self::Unknown(_) => {}
        }
        needs
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FormOut<'a> {
    mode: &'static str,
    message: &'a str,
    requested_schema: &'a FormSchema,
}

#[derive(Serialize)]
struct UrlOut<'a> {
    mode: &'static str,
    message: &'a str,
    url: &'a str,
}

impl Serialize for ElicitRequest {
    /// Writes the params of `elicitation/create`; `mode` is always written.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Form { message, requested_schema } => {
                FormOut { mode: "form", message, requested_schema }.serialize(serializer)
            }
            Self::Url { message, url } => UrlOut { mode: "url", message, url }.serialize(serializer),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ElicitIn {
    #[serde(default)]
    mode: Option<String>,
    message: String,
    #[serde(default)]
    requested_schema: Option<FormSchema>,
    #[serde(default)]
    url: Option<String>,
}

impl<'de> Deserialize<'de> for ElicitRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(params) = <Object<ElicitIn>>::deserialize(deserializer)?;
        // > Clients **MUST** treat requests without a `mode` field as form mode.
        match params.mode.as_deref() {
            None | Some("form") => Ok(Self::Form {
                message: params.message,
                requested_schema: params
                    .requested_schema
                    .ok_or_else(|| de::Error::missing_field("requestedSchema"))?,
            }),
            Some("url") => Ok(Self::Url {
                message: params.message,
                url: params.url.ok_or_else(|| de::Error::missing_field("url"))?,
            }),
            Some(other) => Err(de::Error::custom(format_args!("unknown elicitation mode `{other}`"))),
        }
    }
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Unknown(ask) = self
            && let Some(text) = ask.unreadable_text()
        {
            return text.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("method", self.method())?;
        match self {
            Self::Elicit(params) => map.serialize_entry("params", params)?,
            Self::CreateMessage(params) => map.serialize_entry("params", params)?,
            Self::ListRoots { meta: None } => {}
            Self::ListRoots { meta: Some(meta) } => {
                map.serialize_entry("params", &RootsParams { meta: Some(meta) })?
            }
            Self::Unknown(ask) => {
                if let Some(params) = &ask.params {
                    map.serialize_entry("params", params)?;
                }
            }
        }
        map.end()
    }
}

#[derive(Serialize)]
struct RootsParams<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Meta>,
}

#[derive(Deserialize)]
struct RootsParamsIn {
    #[serde(rename = "_meta", default)]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct RequestIn<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Read from text, since the params are decoded only once the method is known.
        let text = <Cow<'de, RawValue>>::deserialize(deserializer)?;
        Self::from_text(text.get()).map_err(de::Error::custom)
    }
}

impl InputRequest {
    /// Reads an input request that came as a request of its own.
    ///
    /// # Errors
    /// An error if the method is not the method of an input request, or the params do not fit the method.
    pub fn read(method: &str, params: Option<&RawValue>) -> Result<Self, serde_json::Error> {
        use de::Error as _;
        let params = || params.map_or("null", RawValue::get);
        match method {
            method::ELICITATION_CREATE => Ok(Self::Elicit(serde_json::from_str(params())?)),
            method::SAMPLING_CREATE_MESSAGE => Ok(Self::CreateMessage(serde_json::from_str(params())?)),
            method::ROOTS_LIST => Ok(Self::ListRoots {
                meta: serde_json::from_str::<Option<Object<RootsParamsIn>>>(params())?
                    .and_then(|Object(params)| params.meta),
            }),
            other => Err(serde_json::Error::custom(format_args!("unknown ask method `{other}`"))),
        }
    }

    /// Reads an input request from its whole text.
    ///
    /// # Errors
    /// As [`read`](Self::read); also if the text is not JSON.
    pub fn from_text(text: &str) -> Result<Self, serde_json::Error> {
        let Object(request) = serde_json::from_str::<Object<RequestIn<'_>>>(text)?;
        Self::read(&request.method, request.params)
            .or_else(|fault| UnknownAsk::of(&request.method, request.params).map(Self::Unknown).ok_or(fault))
    }
}

/// The input requests of one round by their keys, in the server's order. An input request that cannot be read is an
/// [`UnknownAsk`], so that the others of its round can be answered.
#[derive(Clone, Debug, Default)]
pub struct InputRequests(Vec<KeyedRequest>);

#[derive(Clone, Debug)]
struct KeyedRequest {
    key: String,
    request: InputRequest,
    /// The request as JSON, if it was written before.
    text: Option<String>,
}

impl InputRequests {
    /// Returns an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input request. Returns false, and adds nothing, if the key is already present.
    ///
    /// > `inputRequests` keys are server assigned identifiers and **MUST** be unique within the scope of the
    /// > request.
    #[must_use]
    pub fn insert(&mut self, key: impl Into<String>, request: InputRequest) -> bool {
        self.insert_with_text(key, request, None)
    }

    /// Adds an input request that was written before: `text` is what serializing `request` writes. Returns false, and adds
    /// nothing, if the key is already present.
    #[must_use]
    pub fn insert_with_text(
        &mut self,
        key: impl Into<String>,
        request: InputRequest,
        text: Option<String>,
    ) -> bool {
        let key = key.into();
        let new = self.get(&key).is_none();
        if new {
            self.0.push(KeyedRequest { key, request, text });
        }
        new
    }

    /// Returns the input request with this key.
    pub fn get(&self, key: &str) -> Option<&InputRequest> {
        self.0.iter().find(|known| known.key == key).map(|known| &known.request)
    }

    /// Returns the input requests in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &InputRequest)> {
        self.0.iter().map(|KeyedRequest { key, request, .. }| (key.as_str(), request))
    }

    /// Returns the number of input requests.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no input requests.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for InputRequests {
    type Item = (String, InputRequest);
    type IntoIter = IntoInputRequests;
    fn into_iter(self) -> IntoInputRequests {
        IntoInputRequests(self.0.into_iter())
    }
}

/// The iterator of [`InputRequests`], in their order.
#[derive(Debug)]
pub struct IntoInputRequests(std::vec::IntoIter<KeyedRequest>);

impl Iterator for IntoInputRequests {
    type Item = (String, InputRequest);
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|KeyedRequest { key, request, .. }| (key, request))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for IntoInputRequests {}

impl Serialize for InputRequests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for KeyedRequest { key, request, text } in &self.0 {
            match text.as_deref().and_then(walked) {
                Some(text) => map.serialize_entry(key, text)?,
                None => map.serialize_entry(key, request)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for InputRequests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor;
        impl<'de> de::Visitor<'de> for MapVisitor {
            type Value = InputRequests;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of asks")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<InputRequests, A::Error> {
                let mut requests = InputRequests::new();
                while let Some(key) = map.next_key::<String>()? {
                    let text = map.next_value::<Cow<'de, RawValue>>()?;
                    let request = InputRequest::from_text(text.get()).unwrap_or_else(|fault| {
                        InputRequest::Unknown(UnknownAsk::of_unreadable(&text, &fault))
                    });
                    requests.0.push(KeyedRequest { key, request, text: None });
                }
                match name_used_twice(requests.iter().map(|(key, _)| key)) {
                    Some(key) => Err(de::Error::custom(format_args!("two asks have the key `{key}`"))),
                    None => Ok(requests),
                }
            }
        }
        deserializer.deserialize_map(MapVisitor)
    }
}
