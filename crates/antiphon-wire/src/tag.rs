//! Constants on the wire, as types: members that have only one valid value.

/// Declares a unit type that is written as one fixed string, and read only from that string.
macro_rules! tag {
    ($(#[$doc:meta])* $vis:vis $name:ident = $text:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $name;

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($text)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                if text == $text {
                    Ok($name)
                } else {
                    Err(serde::de::Error::custom(format_args!(concat!("expected `", $text, "`, found `{}`"), text)))
                }
            }
        }
    };
}
pub(crate) use tag;

tag! {
    /// The constant `"resultType": "complete"`: the result holds the final content.
    pub Complete = "complete"
}
tag! {
    /// The constant `"jsonrpc": "2.0"`.
    pub(crate) JsonRpc = "2.0"
}
tag! {
    /// The constant `"type": "text"`.
    pub(crate) Text = "text"
}
tag! {
    /// The constant `"type": "image"`.
    pub(crate) Image = "image"
}
tag! {
    /// The constant `"type": "audio"`.
    pub(crate) Audio = "audio"
}
tag! {
    /// The constant `"type": "resource_link"`.
    pub(crate) Link = "resource_link"
}
tag! {
    /// The constant `"type": "resource"`.
    pub(crate) Embedded = "resource"
}
tag! {
    /// The constant `"type": "tool_use"`.
    pub(crate) ToolUse = "tool_use"
}
tag! {
    /// The constant `"type": "tool_result"`.
    pub(crate) ToolResult = "tool_result"
}
