//! Tests of a build without the validator.

#![cfg(not(feature = "schema"))]

use crate::{call::ctx::Ctx, offer::tool::Tool, server::Server};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

#[derive(serde::Deserialize, JsonSchema)]
struct Plain {
    #[schemars(length(min = 1, max = 3))]
    code: String,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Patterned {
    #[schemars(extend("pattern" = "^[a-z]+$"))]
    code: String,
}

fn fault(tool: Tool) -> Option<String> {
    Server::builder("s", "1").tool(tool).build().err().map(|error| error.to_string())
}

/// A server without the validator refuses what it could not check, and names the keyword and the feature.
#[test]
fn a_tool_that_needs_the_validator_does_not_build() {
    let plain = Tool::new("plain", async |_: &Ctx, plain: Plain| plain.code);
    assert_eq!(fault(plain), None);

    let patterned = Tool::new("patterned", async |_: &Ctx, patterned: Patterned| patterned.code);
    let text = fault(patterned).unwrap_or_default();
    for part in ["`patterned`", "`pattern`", "code", "feature `schema`"] {
        assert!(text.contains(part), "{part} in {text:?}");
    }

    let by_hand = async |_: &Ctx, _: Map<String, Value>| "";
    let text = fault(Tool::with_schema("by_hand", json!({"type": "object"}), by_hand)).unwrap_or_default();
    assert!(text.contains("written by hand") && text.contains("feature `schema`"), "{text:?}");
}
