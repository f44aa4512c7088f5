//! Prompts at the terminal. Every text is printed as one line, escaped; [`crate::sanitize`] cuts it before.

use crate::{failure::Failure, sanitize};
use inquire::{InquireError, MultiSelect, Select, Text, validator::Validation};

/// The result of a prompt.
pub(super) enum PromptResult<T> {
    Value(T),
    /// The person pressed Esc.
    Escaped,
}

fn to_result<T>(result: Result<T, InquireError>) -> Result<PromptResult<T>, Failure> {
    match result {
        Ok(value) => Ok(PromptResult::Value(value)),
        Err(InquireError::OperationCanceled) => Ok(PromptResult::Escaped),
        Err(InquireError::OperationInterrupted) => Err(Failure::interrupted()),
        Err(fault) => Err(Failure::usage(format!("the terminal cannot show a prompt: {fault}"))),
    }
}

fn lines(choices: Vec<String>) -> Vec<String> {
    choices.iter().map(|choice| sanitize::line(choice)).collect()
}

/// Prompts for one of these choices. Returns its index.
pub(super) fn choose(
    message: &str,
    choices: Vec<String>,
    start: usize,
    help: Option<&str>,
) -> Result<PromptResult<usize>, Failure> {
    let (message, help) = (sanitize::line(message), help.map(sanitize::line));
    let mut select = Select::new(&message, lines(choices)).with_starting_cursor(start);
    select.help_message = help.as_deref();
    to_result(select.raw_prompt().map(|chosen| chosen.index))
}

/// Prompts for some of these choices. Returns their indices. `rule` returns the rule that a selection breaks.
pub(super) fn choose_several(
    message: &str,
    choices: Vec<String>,
    start: &[usize],
    help: Option<&str>,
    rule: impl Fn(&[usize]) -> Option<String> + Clone + 'static,
) -> Result<PromptResult<Vec<usize>>, Failure> {
    let (message, help) = (sanitize::line(message), help.map(sanitize::line));
    let mut select = MultiSelect::new(&message, lines(choices)).with_default(start);
    if help.is_some() {
        select.help_message = help.as_deref();
    }
    let select = select.with_validator(move |chosen: &[inquire::list_option::ListOption<&String>]| {
        let indices: Vec<usize> = chosen.iter().map(|option| option.index).collect();
        Ok(validation(rule(&indices)))
    });
    to_result(select.raw_prompt().map(|chosen| chosen.into_iter().map(|option| option.index).collect()))
}

/// The maximum length of a broken rule, in characters.
const RULE: usize = 500;

/// Returns the result of a validation. A rule may quote the labels of the server's choices.
fn validation(broken_rule: Option<String>) -> Validation {
    broken_rule.map_or(Validation::Valid, |rule| Validation::Invalid(sanitize::truncated(&rule, RULE).into()))
}

/// Prompts for a line of text with an initial value. `rule` returns the rule that the text breaks.
pub(super) fn text(
    message: &str,
    start: &str,
    help: Option<&str>,
    rule: impl Fn(&str) -> Option<String> + Clone + 'static,
) -> Result<PromptResult<String>, Failure> {
    let (message, help, start) = (sanitize::line(message), help.map(sanitize::line), sanitize::line(start));
    let mut text = Text::new(&message).with_initial_value(&start);
    text.help_message = help.as_deref();
    let text = text.with_validator(move |given: &str| Ok(validation(rule(given))));
    to_result(text.prompt())
}
