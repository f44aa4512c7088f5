//! Completion: suggestions for an argument of a prompt or a variable of a resource template.

use crate::{
    Meta,
    members::{Object, object, optional_object, optional_whole},
    tag::Complete,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// The params of `completion/complete`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteParams {
    /// What the argument belongs to.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument, as far as it is typed.
    #[serde(deserialize_with = "object")]
    pub argument: CompletionArgument,
    /// What is known already.
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    /// Version, identity and capabilities of the client.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CompleteParams {
    /// Nothing else is known yet.
    pub fn new(reference: CompletionReference, argument: CompletionArgument, meta: Meta) -> Self {
        Self { reference, argument, context: None, meta }
    }
}

/// What an argument belongs to. Decided by `type`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompletionReference {
    /// `ref/prompt`: a prompt.
    Prompt {
        /// Its name.
        name: String,
        /// For people.
        title: Option<String>,
    },
    /// `ref/resource`: a resource template.
    Resource {
        /// Its URI template, as it is listed.
        uri: String,
    },
}

impl CompletionReference {
    /// The prompt of this name.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt { name: name.into(), title: None }
    }

    /// The resource template with this URI template.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource { uri: uri.into() }
    }
}

const REF_PROMPT: &str = "ref/prompt";
const REF_RESOURCE: &str = "ref/resource";

#[derive(Serialize, Deserialize)]
struct ReferenceOnWire<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    uri: Option<Cow<'a, str>>,
}

impl Serialize for CompletionReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, name, title, uri) = match self {
            Self::Prompt { name, title } => (REF_PROMPT, Some(name), title.as_ref(), None),
            Self::Resource { uri } => (REF_RESOURCE, None, None, Some(uri)),
        };
        let text = |text: Option<&'_ String>| text.map(|text| Cow::Owned(text.clone()));
        let (name, title, uri) = (text(name), text(title), text(uri));
        ReferenceOnWire { kind: kind.into(), name, title, uri }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CompletionReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(read) = <Object<ReferenceOnWire<'de>>>::deserialize(deserializer)?;
        match &*read.kind {
            REF_PROMPT => Ok(Self::Prompt {
                name: read.name.ok_or_else(|| de::Error::missing_field("name"))?.into_owned(),
                title: read.title.map(Cow::into_owned),
            }),
            REF_RESOURCE => Ok(Self::Resource {
                uri: read.uri.ok_or_else(|| de::Error::missing_field("uri"))?.into_owned(),
            }),
            other => Err(de::Error::custom(format_args!("unknown reference type `{other}`"))),
        }
    }
}

/// The argument to complete.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionArgument {
    /// Its name.
    pub name: String,
    /// What is typed of it.
    pub value: String,
}

impl CompletionArgument {
    /// This much of this argument is typed.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// What is known while an argument is typed.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionContext {
    /// The other arguments, as far as they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
}

impl CompletionContext {
    /// These arguments are known.
    pub fn new(arguments: BTreeMap<String, String>) -> Self {
        Self { arguments: Some(arguments) }
    }
}

/// The result of `completion/complete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// Always `complete`.
    #[serde(default)]
    pub result_type: Complete,
    /// The suggestions.
    pub completion: Completion,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CompleteResult {
    /// These suggestions.
    pub fn new(completion: Completion) -> Self {
        Self { result_type: Complete, completion, meta: None, extra: Map::new() }
    }
}

/// Suggestions for an argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// Best first; at most [`MAX_VALUES`](Self::MAX_VALUES).
    pub values: Vec<String>,
    /// How many there are in all.
    #[serde(default, deserialize_with = "optional_whole", skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Completion {
    /// > An array of completion values. Must not exceed 100 items.
    pub const MAX_VALUES: usize = 100;

    /// These values, without a word on how many more there are.
    pub fn new(values: Vec<String>) -> Self {
        Self { values, total: None, has_more: None, extra: Map::new() }
    }
}

impl fmt::Debug for CompleteParams {
    /// Neither values of arguments nor `_meta`: they do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompleteParams")
            .field("reference", &self.reference)
            .field("argument", &self.argument)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CompletionArgument {
    /// Not the value: arguments do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionArgument").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for CompletionContext {
    /// Names the arguments only: their values do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.arguments.iter().flatten().map(|(name, _)| name)).finish()
    }
}
