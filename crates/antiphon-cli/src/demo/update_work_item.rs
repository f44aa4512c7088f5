//! `update_work_item`: its second question depends on the first answer, which waits sealed in the state.

use antiphon::server::{Answer, Ask, Ctx, InputRequired, Reply, Tool};
use antiphon::wire::{FormField, FormSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UpdateWorkItem {
    /// The number of the bug.
    work_item_id: i64,
    /// The fields to set, such as `System.State`.
    fields: Map<String, Value>,
}

/// What the person fills in first; the state while the second question is out.
#[derive(Deserialize, Serialize)]
struct Resolved {
    resolution: String,
}

/// What the person fills in second.
#[derive(Deserialize)]
struct DuplicateOf {
    #[serde(rename = "duplicateOfId")]
    id: f64,
}

pub(super) fn tool() -> Tool {
    Tool::new("update_work_item", update_work_item).description("Updates a bug; asks how it was resolved.")
}

async fn update_work_item(ctx: &Ctx, args: UpdateWorkItem) -> antiphon::Result<Reply<String>> {
    let bug = format!("Bug #{}", args.work_item_id);
    let state = args.fields.get("System.State").and_then(Value::as_str);
    if state != Some("Resolved") {
        let set = state.map(|state| format!(" State set to {state}.")).unwrap_or_default();
        return Ok(Reply::Complete(format!("{bug} updated.{set}")));
    }
    let how = how_resolved(&bug);
    let resolved = match (ctx.state_as()?, ctx.form(&how)?) {
        (Some(kept), _) => kept,
        (None, None) => return Ok(how.into()),
        (None, Some(Answer::Accept(resolved))) => resolved,
        (None, Some(refused)) => return Ok(unchanged(&bug, &refused)),
    };
    let Resolved { resolution: kind } = &resolved;
    if kind != "Duplicate" {
        return Ok(Reply::Complete(format!("{bug} resolved as {kind}. State set to Resolved.")));
    }
    let original = which_original();
    Ok(match ctx.form(&original)? {
        None => InputRequired::ask(original).with_json_state(&resolved)?.into(),
        Some(Answer::Accept(DuplicateOf { id })) => Reply::Complete(format!(
            "{bug} resolved as Duplicate of Bug #{id}. State set to Resolved and duplicate link created."
        )),
        Some(refused) => unchanged(&bug, &refused),
    })
}

fn how_resolved(bug: &str) -> Ask {
    let resolution = FormField::one("resolution", ["Fixed", "Won't Fix", "Duplicate", "By Design"])
        .description("Resolution type for this bug");
    let message = format!("Resolving {bug} requires a resolution. How was this bug resolved?");
    Ask::form("resolution", message, FormSchema::new(vec![resolution]))
}

fn which_original() -> Ask {
    let id = FormField::number("duplicateOfId").description("Work item ID of the original bug");
    let form = FormSchema::new(vec![id]);
    Ask::form("duplicate_of", "Since this is a duplicate, which work item is the original?", form)
}

fn unchanged<T>(bug: &str, refused: &Answer<T>) -> Reply<String> {
    let what = if matches!(refused, Answer::Decline) { "declined" } else { "cancelled" };
    Reply::Complete(format!("{bug} was not changed: the question was {what}."))
}
