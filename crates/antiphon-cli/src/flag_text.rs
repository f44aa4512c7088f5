//! The text of one `--answer`, read for one question. It stays a text until then, because keys and fields may contain dots.
//!
//! ```text
//! KEY.FIELD=VALUE    KEY=accept|decline|cancel    KEY=accept@HOST    FIELD=VALUE
//! ```
//!
//! KEY is the key of the question or its number. A whole number is always the number: a server that names a question `2` does
//! not get the answer to the second one.

use crate::{failure::Failure, field_value, sanitize};
use antiphon::{client::asks::consent::show_url, wire::forms::FormSchema};
use serde_json::Value;

/// A question, as the texts name it.
pub(crate) struct Asked<'a> {
    /// The number of the question in its call. The first is 1.
    pub(crate) number: u32,
    pub(crate) key: &'a str,
    /// The form; none if the question is a page.
    pub(crate) form: Option<&'a FormSchema>,
    /// The other questions of the round.
    pub(crate) others: &'a [&'a OpenQuestion],
}

/// The key of a question, and the names of its fields.
pub(crate) struct OpenQuestion {
    pub(crate) key: String,
    pub(crate) fields: Vec<String>,
}

/// The part of an answer that one text gives.
#[derive(Debug, PartialEq)]
pub(crate) enum FlagPart {
    Action(FlagAction),
    Field(String, Value),
}

/// An answer to a whole question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FlagAction {
    Accept,
    /// The person agrees to open a page of this host.
    AcceptAt(String),
    Decline,
    Cancel,
}

/// Returns the part of the answer to this question that the text gives; none if it is for another question.
pub(crate) fn read(text: &str, asked: &Asked<'_>) -> Option<Result<FlagPart, Failure>> {
    if let Some((number, rest)) = numbered(text) {
        if number == Some(asked.number)
            && let Some(part) = part(text, rest, asked.form)
        {
            return Some(part);
        }
        if rest.starts_with('=') {
            return None;
        }
    }
    let Some(rest) = after_key(text, asked.key) else { return bare(text, asked) };
    let is_closer =
        |other: &OpenQuestion| other.key.len() > asked.key.len() && after_key(text, &other.key).is_some();
    if asked.others.iter().any(|other| is_closer(other)) { None } else { part(text, rest, asked.form) }
}

/// Returns the text after the key: `=..` or `.FIELD=..`.
pub(crate) fn after_key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let is_number = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
    text.strip_prefix(key).filter(|rest| !is_number && rest.starts_with(['.', '=']))
}

/// Returns the number at the beginning and the text after it. A number that no question can have is none.
fn numbered(text: &str) -> Option<(Option<u32>, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    (digits > 0 && rest.starts_with(['.', '='])).then(|| (number.parse().ok(), rest))
}

/// Reads the text after the key. None if the form has no such field.
fn part(text: &str, rest: &str, form: Option<&FormSchema>) -> Option<Result<FlagPart, Failure>> {
    let name = &text[..text.len() - rest.len()];
    match rest.strip_prefix('=') {
        Some(word) => Some(action(name, word, form)),
        None => field(form?, &format!("{name}."), &rest[1..]),
    }
}

/// Reads `FIELD=VALUE`, if this is the only open question with such a field.
fn bare(text: &str, asked: &Asked<'_>) -> Option<Result<FlagPart, Failure>> {
    let (name, word) = text.split_once('=')?;
    // The word of a whole answer is never a value here: the answer is for a question that comes later.
    if name.contains('.') || matches!(word, "accept" | "decline" | "cancel") || word.starts_with("accept@") {
        return None;
    }
    let is_for = |other: &OpenQuestion| {
        let has_field =
            |field: &String| text.strip_prefix(field.as_str()).is_some_and(|rest| rest.starts_with('='));
        after_key(text, &other.key).is_some() || other.fields.iter().any(has_field)
    };
    if asked.others.iter().any(|other| is_for(other)) { None } else { field(asked.form?, "", text) }
}

fn action(name: &str, word: &str, form: Option<&FormSchema>) -> Result<FlagPart, Failure> {
    let action = match (word, word.strip_prefix("accept@")) {
        ("accept", _) => FlagAction::Accept,
        ("decline", _) => FlagAction::Decline,
        ("cancel", _) => FlagAction::Cancel,
        (_, Some(_)) if form.is_some() => {
            let text = format!("`--answer {name}=accept@..` agrees to a page, and the question is a form");
            return Err(Failure::usage(text));
        }
        (_, Some(text)) => FlagAction::AcceptAt(host(text).ok_or_else(|| {
            Failure::usage(format!(
                "`--answer {name}=accept@..` must end with the name of a host and nothing else"
            ))
        })?),
        _ => return Err(not_an_action(name, form)),
    };
    Ok(FlagPart::Action(action))
}

/// Returns the host as a page shows it: in ASCII and lower case.
fn host(text: &str) -> Option<String> {
    let shown = show_url(&format!("https://{text}/")).ok()?;
    (shown.full == format!("https://{}/", shown.host)).then_some(shown.host)
}

fn not_an_action(name: &str, form: Option<&FormSchema>) -> Failure {
    let words = match form {
        Some(form) => {
            let field = |name_of_field: &str| format!(", or {name}.{}=VALUE", sanitize::line(name_of_field));
            let fields: Vec<String> = form.fields().iter().map(|it| field(&it.name)).collect();
            format!("accept, decline or cancel{}", fields.concat())
        }
        None => "accept@HOST, decline or cancel".to_owned(),
    };
    Failure::usage(format!("`--answer {name}=..` must be {words}"))
}

/// Parses `FIELD=VALUE`. If several fields match, the one with the longest name counts.
fn field(form: &FormSchema, prefix: &str, text: &str) -> Option<Result<FlagPart, Failure>> {
    let fits = form.fields().iter().filter_map(|field| {
        let value = text.strip_prefix(field.name.as_str())?.strip_prefix('=')?;
        Some((field, value))
    });
    let (field, text) = fits.max_by_key(|(field, _)| field.name.len())?;
    let value = field_value::parse(form, field, text).and_then(|value| {
        match field_value::broken_rule(field, &value) {
            None => Ok(value),
            Some(rule) => Err(rule),
        }
    });
    Some(match value {
        Ok(value) => Ok(FlagPart::Field(field.name.clone(), value)),
        Err(rule) => Err(Failure::usage(format!("the answer for {prefix}{} {rule}", field.name))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon::wire::forms::FormField;
    use serde_json::json;

    /// Reads a text for the second question of a call, whose form has the fields `f`, `f=g`, `n.m` and `who`.
    fn check(text: &str, key: &str, others: &[(&str, &[&str])], expected: Option<Result<FlagPart, &str>>) {
        let form = FormSchema::new(vec![
            FormField::text("f"),
            FormField::text("f=g"),
            FormField::integer("n.m"),
            FormField::text("who"),
        ]);
        let others: Vec<OpenQuestion> = others
            .iter()
            .map(|(key, fields)| OpenQuestion {
                key: (*key).to_owned(),
                fields: fields.iter().map(ToString::to_string).collect(),
            })
            .collect();
        let others: Vec<&OpenQuestion> = others.iter().collect();
        let found = read(text, &Asked { number: 2, key, form: Some(&form), others: &others });
        let found = found.map(|found| found.map_err(|failure| failure.message));
        assert_eq!(found, expected.map(|expected| expected.map_err(str::to_owned)), "{text} to {key}");
    }

    fn value(name: &str, value: Value) -> Option<Result<FlagPart, &'static str>> {
        Some(Ok(FlagPart::Field(name.to_owned(), value)))
    }

    fn whole(action: FlagAction) -> Option<Result<FlagPart, &'static str>> {
        Some(Ok(FlagPart::Action(action)))
    }

    #[test]
    fn the_key_or_the_number_comes_first() {
        let dotted: &[(&str, &[&str])] = &[("a.b", &[])];
        let resolver = "__main__:x.<locals>.y#1";
        for (text, key, others, expected) in [
            ("a.f=1=2.3", "a", dotted, value("f", json!("1=2.3"))),
            ("a.f=g=x", "a", dotted, value("f=g", json!("x"))),
            ("a.n.m=7", "a", dotted, value("n.m", json!(7))),
            ("a.b.f=x", "a", dotted, None),
            ("a.b.f=x", "a.b", &[("a", &[])], value("f", json!("x"))),
            ("__main__:x.<locals>.y#1.f=x", resolver, &[], value("f", json!("x"))),
            ("a=decline", "a", dotted, whole(FlagAction::Decline)),
            ("ab=decline", "a", &[], None),
            ("b=decline", "a", &[], None),
            ("a.x=1", "a", &[], None),
            ("a.n.m=x", "a", &[], Some(Err("the answer for a.n.m must be a whole number"))),
            ("2.f=x", "a", &[], value("f", json!("x"))),
            ("2.n.m=7", "7f3a:9c", &[], value("n.m", json!(7))),
            ("2=cancel", "a", &[], whole(FlagAction::Cancel)),
            ("1=decline", "a", &[], None),
            ("22=decline", "a", &[], None),
            ("99999999999=decline", "a", &[], None),
            ("2.n.m=x", "a", &[], Some(Err("the answer for 2.n.m must be a whole number"))),
            // A server cannot take the answer to another question by its key.
            ("1=accept", "1", &[], None),
            ("1.f=x", "1", &[], None),
            ("3=decline", "3", &[], None),
            ("2=decline", "3", &[], whole(FlagAction::Decline)),
            ("3.1.f=x", "3.1", &[], value("f", json!("x"))),
            // A whole word is for a page or a form.
            (
                "a=accept@h.example",
                "a",
                &[],
                Some(Err("`--answer a=accept@..` agrees to a page, and the question is a form")),
            ),
            (
                "a=eu",
                "a",
                &[],
                Some(Err(
                    "`--answer a=..` must be accept, decline or cancel, or a.f=VALUE, or a.f=g=VALUE, or a.n.m=VALUE, or a.who=VALUE",
                )),
            ),
        ] {
            check(text, key, others, expected);
        }
    }

    #[test]
    fn a_field_alone_is_enough_where_one_question_has_it() {
        for (text, key, others, expected) in [
            ("who=Ada", "a", &[][..], value("who", json!("Ada"))),
            ("who=Ada", "a", &[("b", &["other"][..])][..], value("who", json!("Ada"))),
            ("who=a=b", "a", &[], value("who", json!("a=b"))),
            // Two open questions have the field, or another question has the key.
            ("who=Ada", "a", &[("b", &["who"])], None),
            ("who=Ada", "a", &[("who", &[])], None),
            ("who=decline", "a", &[], None),
            ("who=accept@h.example", "a", &[], None),
            ("n.m=7", "a", &[], None),
            ("whom=Ada", "a", &[], None),
        ] {
            check(text, key, others, expected);
        }
    }

    #[test]
    fn a_page_is_agreed_to_with_its_host() {
        for (text, expected) in [
            ("1=accept@login.example", Ok(FlagAction::AcceptAt("login.example".to_owned()))),
            ("k=accept@Login.Example", Ok(FlagAction::AcceptAt("login.example".to_owned()))),
            ("1=accept@p\u{430}ypal.com", Ok(FlagAction::AcceptAt("xn--pypal-4ve.com".to_owned()))),
            ("1=accept@[::1]", Ok(FlagAction::AcceptAt("[::1]".to_owned()))),
            ("1=accept", Ok(FlagAction::Accept)),
            ("1=accept@", Err("must end with the name of a host")),
            ("1=accept@good.example/evil", Err("must end with the name of a host")),
            ("1=accept@good.example@evil.example", Err("must end with the name of a host")),
            ("1=accept@good.example:8443", Err("must end with the name of a host")),
            ("1=accept@good.example\\evil", Err("must end with the name of a host")),
            ("1=yes", Err("must be accept@HOST, decline or cancel")),
        ] {
            let found = read(text, &Asked { number: 1, key: "k", form: None, others: &[] }).unwrap();
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, FlagPart::Action(expected), "{text}"),
                (Err(failure), Err(says)) => assert!(failure.message.contains(says), "{text}: {failure:?}"),
                (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
            }
        }
    }
}
