//! Tools that await their answers. In a session their questions are requests of the server, otherwise they are rounds.
//! The tools are the same.

use antiphon::{
    Form, Result,
    server::{Answer, Ctx, ServerBuilder},
    tool,
    wire::{forms::FormSchema, sampling::SamplingMessage},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize, Serialize, Form)]
struct Contact {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

/// A form with a default for each kind of field.
#[derive(Deserialize, Serialize, Form)]
struct FormWithDefaults {
    #[form(default = "John Doe")]
    name: String,
    #[form(default = 30)]
    age: i64,
    #[form(default = 95.5)]
    score: f64,
    #[form(default = "active")]
    status: Status,
    #[form(default = true)]
    verified: bool,
}

#[derive(Deserialize, Serialize, Form)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

/// A form with every kind of choice. `enumNames` is legacy and the derive macro does not write it, so the form is
/// written by hand.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Choices {
    untitled_single: String,
    titled_single: String,
    legacy_enum: String,
    untitled_multi: Vec<String>,
    titled_multi: Vec<String>,
}

impl Form for Choices {
    fn schema() -> FormSchema {
        let titled = json!([
            {"const": "value1", "title": "First Option"},
            {"const": "value2", "title": "Second Option"},
            {"const": "value3", "title": "Third Option"},
        ]);
        let schema = json!({
            "type": "object",
            "properties": {
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                "titledSingle": {"type": "string", "oneOf": titled},
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
                },
                "titledMulti": {"type": "array", "items": {"anyOf": titled}},
            },
            "required": ["untitledSingle", "titledSingle", "legacyEnum", "untitledMulti", "titledMulti"],
        });
        serde_json::from_value(schema).expect("the schema is a form")
    }
}

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(test_sampling)
        .tool(test_elicitation)
        .tool(test_elicitation_sep1034_defaults)
        .tool(test_elicitation_sep1330_enums)
}

/// Asks the client's model.
#[tool]
async fn test_sampling(ctx: &Ctx, prompt: String) -> Result<String> {
    let message = ctx.sample([SamplingMessage::user(prompt)], 100).await?;
    Ok(format!("LLM response: {}", message.content.first_text().unwrap_or("no text")))
}

/// Asks for a name and an address, with the message of the caller.
#[tool]
async fn test_elicitation(ctx: &Ctx, message: String) -> Result<String> {
    let answer = ctx.elicit::<Contact>(message).outcome().await?;
    Ok(format!("User response: {}", describe(&answer)?))
}

/// Asks with a form of default values.
#[tool]
async fn test_elicitation_sep1034_defaults(ctx: &Ctx) -> Result<String> {
    let answer = ctx.elicit::<FormWithDefaults>("Please review what is filled in").outcome().await?;
    Ok(format!("Elicitation completed: {}", describe(&answer)?))
}

/// Asks for choices of every kind.
#[tool]
async fn test_elicitation_sep1330_enums(ctx: &Ctx) -> Result<String> {
    let answer = ctx.elicit::<Choices>("Please choose").outcome().await?;
    Ok(format!("Elicitation completed: {}", describe(&answer)?))
}

fn describe<T: Serialize>(answer: &Answer<T>) -> Result<String> {
    Ok(match answer {
        Answer::Accept(content) => format!("action=accept, content={}", serde_json::to_string(content)?),
        Answer::Decline => "action=decline".to_owned(),
        Answer::Cancel => "action=cancel".to_owned(),
    })
}
