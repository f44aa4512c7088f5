//! `update_work_item`: a tool whose second question depends on the first answer.

use antiphon::{
    Form, Result,
    server::{Answer, Ctx},
    tool,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The first form.
#[derive(Deserialize, Form)]
struct Resolution {
    /// Resolution type for this bug
    resolution: Kind,
}

#[derive(Deserialize, Form)]
enum Kind {
    Fixed,
    #[serde(rename = "Won't Fix")]
    WontFix,
    Duplicate,
    #[serde(rename = "By Design")]
    ByDesign,
}

/// The second form.
#[derive(Deserialize, Form)]
struct DuplicateOf {
    /// Work item ID of the original bug
    #[serde(rename = "duplicateOfId")]
    id: f64,
}

/// Updates a bug; asks how it was resolved.
#[tool]
pub(crate) async fn update_work_item(
    ctx: &Ctx,
    /// The number of the bug.
    #[arg(name = "workItemId")]
    id: i64,
    /// The fields to set, such as `System.State`.
    fields: Map<String, Value>,
) -> Result<String> {
    let bug = format!("Bug #{id}");
    let state = fields.get("System.State").and_then(Value::as_str);
    if state != Some("Resolved") {
        let set = state.map(|state| format!(" State set to {state}.")).unwrap_or_default();
        return Ok(format!("{bug} updated.{set}"));
    }
    let question = format!("Resolving {bug} requires a resolution. How was this bug resolved?");
    let kind = match ctx.elicit::<Resolution>(question).outcome().await? {
        Answer::Accept(answer) => answer.resolution,
        refusal => return Ok(unchanged(&bug, &refusal)),
    };
    let name = match kind {
        Kind::Fixed => "Fixed",
        Kind::WontFix => "Won't Fix",
        Kind::ByDesign => "By Design",
        Kind::Duplicate => {
            let question = "Since this is a duplicate, which work item is the original?";
            return Ok(match ctx.elicit::<DuplicateOf>(question).outcome().await? {
                Answer::Accept(DuplicateOf { id }) => format!(
                    "{bug} resolved as Duplicate of Bug #{id}. State set to Resolved and duplicate link created."
                ),
                refusal => unchanged(&bug, &refusal),
            });
        }
    };
    Ok(format!("{bug} resolved as {name}. State set to Resolved."))
}

fn unchanged<T>(bug: &str, refusal: &Answer<T>) -> String {
    let outcome = if matches!(refusal, Answer::Decline) { "declined" } else { "cancelled" };
    format!("{bug} was not changed: the question was {outcome}.")
}
