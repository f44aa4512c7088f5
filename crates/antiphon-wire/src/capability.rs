//! The capabilities of client and server.

use crate::{lenient::capabilities, members::Object};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, IgnoredAny, value::MapAccessDeserializer},
};
use serde_json::{Map, Value, json};
use std::{fmt, marker::PhantomData};

/// The capabilities that a client declares with each request. Every member is kept, known or unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientCapabilities(pub Map<String, Value>);

impl ClientCapabilities {
    /// Returns the capabilities that declare exactly these kinds of input requests.
    pub fn for_asks(asks: AskSupport) -> Self {
        let mut members = Map::new();
        if asks.form || asks.url {
            let mut modes = Map::new();
            if asks.form {
                modes.insert("form".into(), json!({}));
            }
            if asks.url {
                modes.insert("url".into(), json!({}));
            }
            members.insert("elicitation".into(), modes.into());
        }
        if asks.sampling {
            let mut modes = Map::new();
            if asks.sampling_context {
                modes.insert("context".into(), json!({}));
            }
            if asks.sampling_tools {
                modes.insert("tools".into(), json!({}));
            }
            members.insert("sampling".into(), modes.into());
        }
        if asks.roots {
            members.insert("roots".into(), json!({}));
        }
        Self(members)
    }

    /// Declares an extension without settings.
    #[must_use]
    pub fn with_extension(self, name: &str) -> Self {
        self.with_extension_settings(name, Map::new())
    }

    /// Declares an extension with these settings.
    #[must_use]
    pub fn with_extension_settings(mut self, name: &str, settings: Map<String, Value>) -> Self {
        let extensions = self.0.entry("extensions").or_insert_with(|| json!({}));
        if let Value::Object(members) = extensions {
            members.insert(name.to_owned(), settings.into());
        }
        self
    }

    /// Returns true if this extension is declared.
    pub fn has_extension(&self, name: &str) -> bool {
        self.extension(name).is_some()
    }

    /// Returns the settings of this extension; `None` if it is not declared.
    pub fn extension(&self, name: &str) -> Option<&Map<String, Value>> {
        extension(&self.0, name)
    }

    /// Returns the kinds of input requests that these capabilities allow.
    pub fn asks(&self) -> AskSupport {
        // A capability of a wrong type declares nothing.
        AskSupport::deserialize(&Value::Object(self.0.clone())).unwrap_or_default()
    }
}

/// The kinds of input requests (asks) that a client can answer, sub-modes included. Read from the client's
/// capabilities; no other capability is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AskSupport {
    /// Forms.
    pub form: bool,
    /// URLs to open.
    pub url: bool,
    /// Messages of the client's model (`sampling`).
    pub sampling: bool,
    /// Tools for the model (`sampling.tools`): the request may give tools to the model.
    pub sampling_tools: bool,
    /// Context for the model (`sampling.context`): the request may give the context of servers to the model.
    pub sampling_context: bool,
    /// The client's root directories.
    pub roots: bool,
}

impl AskSupport {
    /// Every kind of input request.
    pub const ALL: Self = Self {
        form: true,
        url: true,
        sampling: true,
        sampling_tools: true,
        sampling_context: true,
        roots: true,
    };
    /// Forms only.
    pub const FORM: Self = Self { form: true, ..Self::NONE };
    /// URLs only.
    pub const URL: Self = Self { url: true, ..Self::NONE };
    /// Messages of the client's model only, without tools and without context.
    pub const SAMPLING: Self = Self { sampling: true, ..Self::NONE };
    /// The client's root directories only.
    pub const ROOTS: Self = Self { roots: true, ..Self::NONE };
    /// Forms and URLs: every kind of input request to a person.
    pub const ELICITATION: Self = Self { form: true, url: true, ..Self::NONE };
    /// No kind of input request.
    pub const NONE: Self = Self {
        form: false,
        url: false,
        sampling: false,
        sampling_tools: false,
        sampling_context: false,
        roots: false,
    };

    /// Returns true if `self` contains all of `needed`.
    pub fn covers(self, needed: Self) -> bool {
        self.missing(needed) == Self::NONE
    }

    /// Returns the part of `needed` that `self` does not contain.
    #[must_use]
    pub fn missing(self, needed: Self) -> Self {
        Self {
            form: needed.form && !self.form,
            url: needed.url && !self.url,
            sampling: needed.sampling && !self.sampling,
            sampling_tools: needed.sampling_tools && !self.sampling_tools,
            sampling_context: needed.sampling_context && !self.sampling_context,
            roots: needed.roots && !self.roots,
        }
    }

    /// Returns the union of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            form: self.form || other.form,
            url: self.url || other.url,
            sampling: self.sampling || other.sampling,
            sampling_tools: self.sampling_tools || other.sampling_tools,
            sampling_context: self.sampling_context || other.sampling_context,
            roots: self.roots || other.roots,
        }
    }

    /// Returns the support as a `ClientCapabilities` object, for `data.requiredCapabilities`.
    pub fn to_value(self) -> Value {
        let sampling = self.sampling || self.sampling_tools || self.sampling_context;
        Value::Object(ClientCapabilities::for_asks(Self { sampling, ..self }).0)
    }
}

/// Only an object declares an extension.
fn extension<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    members.get("extensions")?.get(name)?.as_object()
}

/// The part of a client's capabilities that a server uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeclaredCapabilities {
    pub(crate) asks: AskSupport,
    /// True if the client declares the extension for tasks.
    pub(crate) tasks: bool,
}

#[derive(Deserialize)]
struct Declared {
    #[serde(default)]
    elicitation: Given<Elicitation>,
    #[serde(default)]
    sampling: Given<Sampling>,
    #[serde(default)]
    roots: Given<IgnoredAny>,
    #[serde(default)]
    extensions: Given<Extensions>,
}

#[derive(Deserialize)]
struct Extensions {
    #[serde(rename = "io.modelcontextprotocol/tasks", default)]
    tasks: Given<IgnoredAny>,
}

#[derive(Deserialize)]
struct Elicitation {
    #[serde(default)]
    form: Given<IgnoredAny>,
    #[serde(default)]
    url: Given<IgnoredAny>,
}

#[derive(Deserialize)]
struct Sampling {
    #[serde(default)]
    context: Given<IgnoredAny>,
    #[serde(default)]
    tools: Given<IgnoredAny>,
}

/// A capability. An object declares the capability; any other value does not.
struct Given<T>(Option<T>);

impl<T> Default for Given<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct GivenVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for GivenVisitor<T> {
            type Value = Given<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a capability")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Given<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|given| Given(Some(given)))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Given<T>, A::Error> {
                IgnoredAny.visit_seq(seq).map(|_| Given(None))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Given<T>, E> {
                Ok(Given(None))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Given<T>, E> {
                Ok(Given(None))
            }
            fn visit_u64<E>(self, _: u64) -> Result<Given<T>, E> {
                Ok(Given(None))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Given<T>, E> {
                Ok(Given(None))
            }
            fn visit_str<E>(self, _: &str) -> Result<Given<T>, E> {
                Ok(Given(None))
            }
            fn visit_unit<E>(self) -> Result<Given<T>, E> {
                Ok(Given(None))
            }
        }
        deserializer.deserialize_any(GivenVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for AskSupport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DeclaredCapabilities::deserialize(deserializer).map(|declared| declared.asks)
    }
}

impl<'de> Deserialize<'de> for DeclaredCapabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(declared) = <Object<Declared>>::deserialize(deserializer)?;
        let (form, url) = match &declared.elicitation.0 {
            None => (false, false),
            // > an empty capabilities object is equivalent to declaring support for `form` mode only
            Some(modes) => (modes.form.0.is_some() || modes.url.0.is_none(), modes.url.0.is_some()),
        };
        let sampling = declared.sampling.0.as_ref();
        let asks = AskSupport {
            form,
            url,
            sampling: sampling.is_some(),
            sampling_tools: sampling.is_some_and(|modes| modes.tools.0.is_some()),
            sampling_context: sampling.is_some_and(|modes| modes.context.0.is_some()),
            roots: declared.roots.0.is_some(),
        };
        let tasks = declared.extensions.0.is_some_and(|extensions| extensions.tasks.0.is_some());
        Ok(Self { asks, tasks })
    }
}

/// The capabilities that a server declares in `server/discover`. Every member is kept, known or unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerCapabilities(#[serde(deserialize_with = "capabilities")] pub Map<String, Value>);

impl ServerCapabilities {
    /// Declares a capability without settings: `tools`, `prompts`, `resources` ...
    #[must_use]
    pub fn with(mut self, name: &str) -> Self {
        self.0.insert(name.to_owned(), json!({}));
        self
    }

    /// Declares an extension without settings.
    #[must_use]
    pub fn with_extension(self, name: &str) -> Self {
        self.with_extension_settings(name, Map::new())
    }

    /// Declares an extension with these settings.
    #[must_use]
    pub fn with_extension_settings(self, name: &str, settings: Map<String, Value>) -> Self {
        Self(ClientCapabilities(self.0).with_extension_settings(name, settings).0)
    }

    /// Returns true if this extension is declared.
    pub fn has_extension(&self, name: &str) -> bool {
        self.extension(name).is_some()
    }

    /// Returns the settings of this extension; `None` if it is not declared.
    pub fn extension(&self, name: &str) -> Option<&Map<String, Value>> {
        extension(&self.0, name)
    }

    /// Returns true if the capability is declared.
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(Value::is_object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_capabilities_declare() {
        let none = AskSupport::NONE;
        for (text, expected) in [
            (r#"{}"#, none),
            (r#"{"elicitation":{}}"#, AskSupport { form: true, ..none }),
            (r#"{"elicitation":{"form":{}}}"#, AskSupport { form: true, ..none }),
            (r#"{"elicitation":{"url":{}}}"#, AskSupport { url: true, ..none }),
            (r#"{"elicitation":{"form":{},"url":{}},"x":1}"#, AskSupport { form: true, url: true, ..none }),
            (r#"{"elicitation":null}"#, none),
            (r#"{"sampling":{}}"#, AskSupport { sampling: true, ..none }),
            (r#"{"sampling":{"tools":{}}}"#, AskSupport { sampling: true, sampling_tools: true, ..none }),
            (r#"{"roots":{"listChanged":true}}"#, AskSupport { roots: true, ..none }),
        ] {
            assert_eq!(serde_json::from_str::<AskSupport>(text).unwrap(), expected, "{text}");
        }
        assert!(serde_json::from_str::<AskSupport>("3").is_err());
        let all = ClientCapabilities::for_asks(AskSupport::ALL);
        assert_eq!(all.asks(), AskSupport::ALL);
        assert_eq!(
            AskSupport { sampling_tools: true, ..none }.to_value(),
            json!({"sampling": {"tools": {}}})
        );
    }
}
