//! Prompts at the terminal. Every text of a server comes in here harmless: see [`crate::show`].

use crate::failure::Failure;
use inquire::{InquireError, MultiSelect, Select, Text, validator::Validation};

/// What came of a prompt.
pub(super) enum Prompted<T> {
    Value(T),
    /// Esc.
    Left,
}

fn prompted<T>(result: Result<T, InquireError>) -> Result<Prompted<T>, Failure> {
    match result {
        Ok(value) => Ok(Prompted::Value(value)),
        Err(InquireError::OperationCanceled) => Ok(Prompted::Left),
        Err(InquireError::OperationInterrupted) => Err(Failure::interrupted()),
        Err(fault) => Err(Failure::usage(format!("the terminal cannot be asked: {fault}"))),
    }
}

/// One of these, by its index.
pub(super) fn choose(
    message: &str,
    choices: Vec<String>,
    start: usize,
    help: Option<&str>,
) -> Result<Prompted<usize>, Failure> {
    let mut select = Select::new(message, choices).with_starting_cursor(start);
    select.help_message = help;
    prompted(select.raw_prompt().map(|chosen| chosen.index))
}

/// Some of these, by their indices; `rule` says what is wrong with a choice.
pub(super) fn choose_several(
    message: &str,
    choices: Vec<String>,
    start: &[usize],
    help: Option<&str>,
    rule: impl Fn(&[usize]) -> Option<String> + Clone + 'static,
) -> Result<Prompted<Vec<usize>>, Failure> {
    let mut select = MultiSelect::new(message, choices).with_default(start);
    if help.is_some() {
        select.help_message = help;
    }
    let select = select.with_validator(move |chosen: &[inquire::list_option::ListOption<&String>]| {
        let indices: Vec<usize> = chosen.iter().map(|option| option.index).collect();
        Ok(rule(&indices).map_or(Validation::Valid, |rule| Validation::Invalid(rule.into())))
    });
    prompted(select.raw_prompt().map(|chosen| chosen.into_iter().map(|option| option.index).collect()))
}

/// A line of text, filled in beforehand; `rule` says what is wrong with it.
pub(super) fn text(
    message: &str,
    start: &str,
    help: Option<&str>,
    rule: impl Fn(&str) -> Option<String> + Clone + 'static,
) -> Result<Prompted<String>, Failure> {
    let mut text = Text::new(message).with_initial_value(start);
    text.help_message = help;
    let text = text.with_validator(move |given: &str| {
        Ok(rule(given).map_or(Validation::Valid, |rule| Validation::Invalid(rule.into())))
    });
    prompted(text.prompt())
}
