//! `update_work_item`: its second question depends on the first answer.

use antiphon::{
    Form, Result,
    server::{Answer, Ctx},
    tool,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What the person fills in first.
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

/// What the person fills in second.
#[derive(Deserialize, Form)]
struct DuplicateOf {
    /// Work item ID of the original bug
    #[serde(rename = "duplicateOfId")]
    id: f64,
}

/// Updates a bug; asks how it was resolved.
#[tool]
pub(super) async fn update_work_item(
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
    let how = format!("Resolving {bug} requires a resolution. How was this bug resolved?");
    let kind = match ctx.elicit::<Resolution>(how).outcome().await? {
        Answer::Accept(answer) => answer.resolution,
        refused => return Ok(unchanged(&bug, &refused)),
    };
    let name = match kind {
        Kind::Fixed => "Fixed",
        Kind::WontFix => "Won't Fix",
        Kind::ByDesign => "By Design",
        Kind::Duplicate => {
            let which = "Since this is a duplicate, which work item is the original?";
            return Ok(match ctx.elicit::<DuplicateOf>(which).outcome().await? {
                Answer::Accept(DuplicateOf { id }) => format!(
                    "{bug} resolved as Duplicate of Bug #{id}. State set to Resolved and duplicate link created."
                ),
                refused => unchanged(&bug, &refused),
            });
        }
    };
    Ok(format!("{bug} resolved as {name}. State set to Resolved."))
}

fn unchanged<T>(bug: &str, refused: &Answer<T>) -> String {
    let what = if matches!(refused, Answer::Decline) { "declined" } else { "cancelled" };
    format!("{bug} was not changed: the question was {what}.")
}
