//! Completion: suggestions for an argument of a prompt or a variable of a resource template.

use crate::{
    Meta,
    lenient::{flag, list, or_default, shown_number},
    members::{Object, object, optional_object},
    tag::Complete,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// The params of `completion/complete`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteParams {
    /// The prompt or resource template that the argument belongs to.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument, as far as it is typed.
    #[serde(deserialize_with = "object")]
    pub argument: CompletionArgument,
    /// The values that are already set.
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    /// The version, identity and capabilities of the client.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CompleteParams {
    /// Returns params without `context`: no other values are set yet.
    pub fn new(reference: CompletionReference, argument: CompletionArgument, meta: Meta) -> Self {
        Self { reference, argument, context: None, meta }
    }
}

/// The prompt or resource template that an argument belongs to. `type` selects the variant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompletionReference {
    /// A prompt (`ref/prompt`).
    Prompt {
        /// The prompt's name.
        name: String,
        /// The title to display to people.
        title: Option<String>,
    },
    /// A resource template (`ref/resource`).
    Resource {
        /// The template's URI template, as it is listed.
        uri: String,
    },
}

impl CompletionReference {
    /// Returns a reference to the prompt with this name.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt { name: name.into(), title: None }
    }

    /// Returns a reference to the resource template with this URI template.
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
    /// The argument's name.
    pub name: String,
    /// The part of the value that is already typed.
    pub value: String,
}

impl CompletionArgument {
    /// Returns an argument with its name and the part of the value that is already typed.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// The values that are already set while an argument is typed.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionContext {
    /// The other arguments, as far as they are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
}

impl CompletionContext {
    /// Returns a context in which these arguments are set.
    pub fn new(arguments: BTreeMap<String, String>) -> Self {
        Self { arguments: Some(arguments) }
    }
}

/// The result of `completion/complete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// The result type: always `complete`.
    #[serde(default, deserialize_with = "or_default")]
    pub result_type: Complete,
    /// The suggestions.
    pub completion: Completion,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CompleteResult {
    /// Returns a result with these suggestions.
    pub fn new(completion: Completion) -> Self {
        Self { result_type: Complete, completion, meta: None, extra: Map::new() }
    }
}

/// Suggestions for an argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The suggested values, best first; at most [`MAX_VALUES`](Self::MAX_VALUES).
    #[serde(deserialize_with = "list")]
    pub values: Vec<String>,
    /// The total number of suggestions.
    #[serde(default, deserialize_with = "shown_number", skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// True if there are more suggestions than these.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Completion {
    /// The maximum number of values in a completion.
    ///
    /// > An array of completion values. Must not exceed 100 items.
    pub const MAX_VALUES: usize = 100;

    /// Returns a completion with these values, without `total` and `hasMore`.
    pub fn new(values: Vec<String>) -> Self {
        Self { values, total: None, has_more: None, extra: Map::new() }
    }
}

impl fmt::Debug for CompleteParams {
    /// Writes neither the values of arguments nor `_meta`: they do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompleteParams")
            .field("reference", &self.reference)
            .field("argument", &self.argument)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CompletionArgument {
    /// Writes the name without the value: values of arguments do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionArgument").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for CompletionContext {
    /// Writes the names of the arguments only: their values do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.arguments.iter().flatten().map(|(name, _)| name)).finish()
    }
}
