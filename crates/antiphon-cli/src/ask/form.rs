//! A form at the terminal.
//!
//! > For form mode, allow users to review and modify their responses before sending

use super::prompt::{self, PromptResult};
use crate::{console, failure::Failure, flag_text};
use antiphon::wire::{
    ElicitResult,
    forms::{Choice, FieldKind, FormField, FormSchema},
};
use serde_json::{Map, Value};

/// The maximum length of a label and of its description, in characters, because prompts are drawn again at every key.
const LABEL: usize = 200;
const HELP: usize = 1000;

/// The choice in the menu after the form, or after Esc.
enum MenuChoice {
    Send,
    Change,
    Refuse(ElicitResult),
}

/// Asks for every field without a value from the command line, then shows all values before they are sent.
pub(super) fn fill_in(schema: &FormSchema, mut content: Map<String, Value>) -> Result<ElicitResult, Failure> {
    let mut fields: Vec<&FormField> =
        schema.fields().iter().filter(|field| !content.contains_key(&field.name)).collect();
    console::note("  (Esc: decline or cancel)");
    loop {
        let complete = ask_fields(schema, &fields, &mut content)?;
        if complete {
            review(schema, &content);
        }
        match menu(complete)? {
            MenuChoice::Send => return Ok(ElicitResult::accept(content)),
            MenuChoice::Change => fields = schema.fields().iter().collect(),
            MenuChoice::Refuse(refusal) => return Ok(refusal),
        }
    }
}

/// Asks for the fields. Returns `false` if the person left the form.
fn ask_fields(
    schema: &FormSchema,
    fields: &[&FormField],
    content: &mut Map<String, Value>,
) -> Result<bool, Failure> {
    for field in fields {
        let before = content.get(&field.name).cloned().or_else(|| field.default_value());
        match ask_field(schema, field, before.as_ref())? {
            PromptResult::Value(Some(value)) => content.insert(field.name.clone(), value),
            PromptResult::Value(None) => content.remove(&field.name),
            PromptResult::Escaped => return Ok(false),
        };
    }
    Ok(true)
}

fn review(schema: &FormSchema, content: &Map<String, Value>) {
    console::note("  Your answers:");
    for field in schema.fields() {
        let shown = |value: &Value| flag_text::shown(&field.kind, value);
        let value = match (content.get(&field.name), field.default_value()) {
            (Some(value), _) => shown(value),
            // The server fills in the default of an empty field.
            (None, Some(default)) => format!("{} (the form's default)", shown(&default)),
            (None, None) => "(empty)".into(),
        };
        console::note(&format!(
            "    {} = {}",
            console::truncated(&field.label(), LABEL),
            console::line(&value)
        ));
    }
}

fn menu(complete: bool) -> Result<MenuChoice, Failure> {
    let mut choices = vec!["Change the answers", "Decline: say no", "Cancel: decide nothing"];
    if complete {
        choices.insert(0, "Send");
    } else {
        choices[0] = "Go back to the form";
    }
    let chosen = prompt::choose("And now?", choices.iter().map(ToString::to_string).collect(), 0, None)?;
    // Esc in the menu is "pressed Escape" of the protocol: the action `cancel`.
    let PromptResult::Value(index) = chosen else { return Ok(MenuChoice::Refuse(ElicitResult::cancel())) };
    Ok(match index + usize::from(!complete) {
        0 => MenuChoice::Send,
        1 => MenuChoice::Change,
        2 => MenuChoice::Refuse(ElicitResult::decline()),
        _ => MenuChoice::Refuse(ElicitResult::cancel()),
    })
}

/// Asks for one field. `None` is an empty field.
fn ask_field(
    schema: &FormSchema,
    field: &FormField,
    before: Option<&Value>,
) -> Result<PromptResult<Option<Value>>, Failure> {
    let message = format!(
        "{}{}:",
        console::truncated(&field.label(), LABEL),
        if field.required { "" } else { " (optional)" }
    );
    let help = field.description.as_deref().map(|text| console::truncated(text, HELP));
    let help = help.as_deref();
    match &field.kind {
        FieldKind::Boolean { .. } => {
            let choices = [("true", "yes"), ("false", "no")].map(Choice::from);
            let before = before.and_then(Value::as_bool).map(|value| Value::from(value.to_string()));
            let chosen = ask_one(field, &message, help, &choices, before.as_ref())?;
            Ok(map(chosen, |value| Value::from(value == "true")))
        }
        FieldKind::One { choices, .. } => {
            let chosen = ask_one(field, &message, help, choices, before)?;
            Ok(map(chosen, Value::from))
        }
        FieldKind::Many { choices, .. } => ask_many(field, &message, help, choices, before),
        _ => ask_text(schema, field, &message, help, before),
    }
}

fn map(chosen: PromptResult<Option<String>>, make: impl Fn(String) -> Value) -> PromptResult<Option<Value>> {
    match chosen {
        PromptResult::Value(value) => PromptResult::Value(value.map(make)),
        PromptResult::Escaped => PromptResult::Escaped,
    }
}

fn ask_one(
    field: &FormField,
    message: &str,
    help: Option<&str>,
    choices: &[Choice],
    before: Option<&Value>,
) -> Result<PromptResult<Option<String>>, Failure> {
    let mut labels: Vec<String> =
        choices.iter().map(|choice| console::truncated(choice.label(), LABEL)).collect();
    if !field.required {
        labels.push("(leave empty)".into());
    }
    if labels.is_empty() {
        return Err(Failure::protocol(
            "invalid_result",
            format!("`{}` has nothing to choose from", field.name),
        ));
    }
    // In an optional field, Enter alone leaves the field empty.
    let nothing = if field.required { 0 } else { choices.len() };
    let start =
        before.and_then(|value| choices.iter().position(|choice| *value == *choice.value)).unwrap_or(nothing);
    Ok(match prompt::choose(message, labels, start, help)? {
        PromptResult::Value(index) => {
            PromptResult::Value(choices.get(index).map(|choice| choice.value.clone()))
        }
        PromptResult::Escaped => PromptResult::Escaped,
    })
}

fn ask_many(
    field: &FormField,
    message: &str,
    help: Option<&str>,
    choices: &[Choice],
    before: Option<&Value>,
) -> Result<PromptResult<Option<Value>>, Failure> {
    let labels: Vec<String> =
        choices.iter().map(|choice| console::truncated(choice.label(), LABEL)).collect();
    let before: Vec<&Value> = before.and_then(Value::as_array).into_iter().flatten().collect();
    let start: Vec<usize> = (0..choices.len())
        .filter(|index| before.iter().any(|value| **value == *choices[*index].value))
        .collect();
    let values = choices.iter().map(|choice| choice.value.clone()).collect::<Vec<_>>();
    let pick = move |indices: &[usize]| Value::from_iter(indices.iter().map(|index| values[*index].clone()));
    let rule = {
        let (pick, field) = (pick.clone(), field.clone());
        move |indices: &[usize]| {
            if indices.is_empty() && !field.required {
                None
            } else {
                flag_text::broken_rule(&field, &pick(indices))
            }
        }
    };
    Ok(match prompt::choose_several(message, labels, &start, help, rule)? {
        PromptResult::Value(indices) if indices.is_empty() && !field.required => PromptResult::Value(None),
        PromptResult::Value(indices) => PromptResult::Value(Some(pick(&indices))),
        PromptResult::Escaped => PromptResult::Escaped,
    })
}

/// Asks for a text, a number, or a field that the protocol does not define.
fn ask_text(
    schema: &FormSchema,
    field: &FormField,
    message: &str,
    help: Option<&str>,
    before: Option<&Value>,
) -> Result<PromptResult<Option<Value>>, Failure> {
    let start = before.map(|value| console::line(&flag_text::shown(&field.kind, value))).unwrap_or_default();
    let read = {
        let (schema, field) = (schema.clone(), field.clone());
        move |text: &str| match text {
            "" if !field.required => Ok(None),
            "" => Err("must be filled in".to_owned()),
            text => {
                let value = flag_text::parse(&schema, &field, text)?;
                flag_text::broken_rule(&field, &value).map_or(Ok(Some(value)), Err)
            }
        }
    };
    let rule = {
        let read = read.clone();
        move |text: &str| read(text).err()
    };
    Ok(match prompt::text(message, &start, help, rule)? {
        PromptResult::Value(text) => PromptResult::Value(read(&text).ok().flatten()),
        PromptResult::Escaped => PromptResult::Escaped,
    })
}
