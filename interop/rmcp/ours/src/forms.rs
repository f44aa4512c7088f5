//! A tool whose form has every kind of field.

use antiphon::{
    Result,
    server::{Answer, Ask, Ctx, NoArguments, Reply, Tool},
    wire::forms::{FieldKind, FormField, FormSchema, TextFormat},
};
use serde_json::{Map, Value};

pub(super) fn survey() -> Tool {
    Tool::new("survey", asks).description("A form with a field of every kind.")
}

async fn asks(ctx: &Ctx, _: NoArguments) -> Result<Reply<String>> {
    let ask = Ask::form("survey", "A few questions", form());
    Ok(Reply::Complete(match ctx.by_hand().form::<Map<String, Value>>(&ask)? {
        None => return Ok(ask.into()),
        Some(Answer::Accept(filled)) => Value::Object(filled).to_string(),
        Some(_) => "No answers.".into(),
    }))
}

fn form() -> FormSchema {
    FormSchema::new(vec![
        with(FormField::text("name").title("Your name").description("As on the passport"), |kind| {
            if let FieldKind::Text { min_length, max_length, .. } = kind {
                (*min_length, *max_length) = (Some(2), Some(40));
            }
        }),
        formatted("email", TextFormat::Email),
        formatted("site", TextFormat::Uri),
        formatted("born", TextFormat::Date),
        formatted("met", TextFormat::DateTime),
        with(FormField::integer("age"), |kind| {
            if let FieldKind::Number { minimum, maximum, .. } = kind {
                (*minimum, *maximum) = (Some(0.into()), Some(150.into()));
            }
        }),
        FormField::number("height"),
        FormField::boolean("member"),
        FormField::one("colour", ["red", "green"]),
        with(FormField::one("size", [("S", "Small"), ("M", "Medium")]).optional(), |kind| {
            if let FieldKind::One { default, .. } = kind {
                *default = Some("M".into());
            }
        }),
        with(FormField::many("toppings", ["ham", "olives", "basil"]), |kind| {
            if let FieldKind::Many { min_items, max_items, .. } = kind {
                (*min_items, *max_items) = (Some(1), Some(2));
            }
        }),
        FormField::many("days", [("mo", "Monday"), ("tu", "Tuesday")]).optional(),
        FormField::text("nickname").optional(),
    ])
}

fn formatted(name: &str, wanted: TextFormat) -> FormField {
    with(FormField::text(name), |kind| {
        if let FieldKind::Text { format, .. } = kind {
            *format = Some(wanted);
        }
    })
}

fn with(mut field: FormField, change: impl FnOnce(&mut FieldKind)) -> FormField {
    change(&mut field.kind);
    field
}
