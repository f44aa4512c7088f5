//! Tools that ask: no question, one, two in order, a confirmation, one in a loop, and every kind at once.

use crate::backend::{Backend, Operation};
use antiphon::{
    Error, Form, Result,
    server::{Answer, Ctx, State},
    tool,
    wire::{
        forms::{FormField, FormSchema},
        sampling::SamplingMessage,
    },
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Returns the text.
#[tool]
pub(crate) async fn echo(
    /// The text to return.
    text: String,
) -> String {
    text
}

// `provision`: a tool with one question.

/// The form for the person. The name of the type in snake case, `region`, is the key of the question.
#[derive(Deserialize, Form)]
struct Region {
    region: String,
}

/// Provisions a database, in a region that the person chooses.
#[tool]
pub(crate) async fn provision(
    ctx: &Ctx,
    /// The name of the database.
    name: String,
) -> Result<String> {
    let answer = ctx.elicit::<Region>("Which region should the database live in?").outcome().await?;
    Ok(match answer {
        Answer::Accept(Region { region }) => format!("Provisioned \"{name}\" in {region}."),
        Answer::Decline => "Nothing was provisioned: the question was declined.".into(),
        Answer::Cancel => "Nothing was provisioned: the question was cancelled.".into(),
    })
}

// `update_work_item`: a tool whose second question depends on the first answer.

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

// `pick_file`: a form with choices that are known at run time, then a confirmation.

#[derive(Deserialize)]
struct FileChoice {
    file: String,
}

/// Deletes one file of a folder. The person picks the file.
#[tool(destructive)]
pub(crate) async fn pick_file(
    ctx: &Ctx,
    /// The folder, such as `reports`.
    path: String,
    State(backend): State<Backend>,
) -> Result<String> {
    let names: Option<Vec<String>> = backend.send(Operation::List { path: path.clone() }).await?;
    let names = names.ok_or_else(|| Error::user_facing(format!("There is no folder {path}.")))?;
    if names.is_empty() {
        return Ok(format!("{path} is empty."));
    }

    // Every leg of the call lists the folder. If the files have changed, the question has changed, and the person is asked
    // again.
    let form = FormSchema::new(vec![FormField::one("file", names).title("File")]);
    let FileChoice { file } = ctx.elicit_with("Which file should be deleted?", form).await?;
    if !ctx.confirm(format!("Delete {file} from {path}?")).await? {
        return Ok(format!("Kept {file}."));
    }

    let delete = Operation::DeleteFile { path: path.clone(), file: file.clone() };
    ctx.step("delete", async |_| backend.send::<bool>(delete).await).await?;
    Ok(format!("Deleted {file} from {path}."))
}

// `book_table`: a tool that asks only when the date is full, and repeats the question until a date is free.

/// The dates without a free table.
const FULL: [&str; 2] = ["2025-12-25", "2025-12-31"];

#[derive(Deserialize, Form)]
struct AlternativeDate {
    /// Try another date?
    #[form(title = "Accept Alternative")]
    accept_alternative: bool,
    /// Alternative date (YYYY-MM-DD)
    #[form(title = "Date", format = "date", default = "2025-12-26")]
    date: String,
}

/// Books a table; asks for another date when all are taken.
#[tool]
pub(crate) async fn book_table(
    ctx: &Ctx,
    /// The day, as in 2025-12-24.
    mut date: String,
    /// The number of people.
    #[arg(min = 1, max = 20)]
    party_size: u8,
) -> Result<String> {
    // The alternative date can be full too.
    let mut asked = 0;
    while FULL.contains(&date.as_str()) {
        let question = format!("No tables for {party_size} on {date}. Would you like to try another date?");
        let ask = ctx.elicit::<AlternativeDate>(question);
        // A call uses each key once: the second question is `alternative_date#1`.
        let ask = if asked == 0 { ask } else { ask.nth(asked) };
        match ask.outcome().await? {
            Answer::Accept(answer) if answer.accept_alternative => date = answer.date,
            Answer::Accept(_) | Answer::Decline | Answer::Cancel => return Ok("No booking made.".into()),
        }
        asked += 1;
    }
    Ok(format!("Booked a table for {party_size} on {date}."))
}

// `ask_the_model`: every kind of question in one round: a sample of the client's model, roots, a URL and a form.
//
// Sampling and roots are deprecated in 2026-07-28: new tools call a model provider themselves, and take directories as arguments.

/// The form for the person.
#[derive(Deserialize, Form)]
struct Reader {
    reader: String,
}

/// Asks the client's model a question, while the person says who will read the answer.
#[tool]
pub(crate) async fn ask_the_model(
    ctx: &Ctx,
    /// The question for the model.
    question: String,
) -> Result<String> {
    // No branch can continue without its answer, so all four questions leave in one round.
    let (answer, roots, (), reader) = tokio::try_join!(
        ctx.sample([SamplingMessage::user(question)], 200).system_prompt("Answer in one sentence."),
        ctx.roots(),
        ctx.elicit_url("Please read the terms of use.", |_| "https://example.com/terms".into()).key("terms"),
        ctx.elicit::<Reader>("Who will read the answer?"),
    )?;
    let text = answer.content.first_text().unwrap_or("(no text)");
    let roots: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
    Ok(format!("For {}, who works in {}: {text}", reader.reader, roots.join(" and ")))
}
