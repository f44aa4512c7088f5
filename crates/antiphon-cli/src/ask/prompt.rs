//! Prompts at the terminal. Every text is printed as one line, escaped; [`crate::sanitize`] cuts it before.

use crate::{console, failure::Failure};
use antiphon::{
    client::asks::consent::{UrlConsent, show_url},
    wire::ElicitResult,
};
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
    choices.iter().map(|choice| console::line(choice)).collect()
}

/// Prompts for one of these choices. Returns its index.
pub(super) fn choose(
    message: &str,
    choices: Vec<String>,
    start: usize,
    help: Option<&str>,
) -> Result<PromptResult<usize>, Failure> {
    let (message, help) = (console::line(message), help.map(console::line));
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
    let (message, help) = (console::line(message), help.map(console::line));
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
    broken_rule.map_or(Validation::Valid, |rule| Validation::Invalid(console::truncated(&rule, RULE).into()))
}

/// Prompts for a line of text with an initial value. `rule` returns the rule that the text breaks.
pub(super) fn text(
    message: &str,
    start: &str,
    help: Option<&str>,
    rule: impl Fn(&str) -> Option<String> + Clone + 'static,
) -> Result<PromptResult<String>, Failure> {
    let (message, help, start) = (console::line(message), help.map(console::line), console::line(start));
    let mut text = Text::new(&message).with_initial_value(&start);
    text.help_message = help.as_deref();
    let text = text.with_validator(move |given: &str| Ok(validation(rule(given))));
    to_result(text.prompt())
}

// A URL question. The program shows the URL, and never opens or fetches it.
//
// > **MUST** show the full URL to the user for examination before consent.
// >
// > **MUST NOT** open the URL without explicit consent from the user.

/// Reads the URL of a question.
pub(super) fn read(key: &str, url: &str) -> Result<UrlConsent, Failure> {
    show_url(url).map_err(|fault| Failure::protocol("invalid_url", format!("`{key}`: {fault}")))
}

/// Shows the URL.
pub(super) fn show(shown: &UrlConsent) {
    console::note("  The server asks you to open this page:");
    note_with_host(shown);
    console::note(&format!("    Host: {}", console::line(&shown.host)));
    for warning in &shown.warnings {
        console::note(&format!("    Warning: {warning}"));
    }
}

/// Asks for consent at the terminal.
pub(super) fn ask(shown: &UrlConsent) -> Result<ElicitResult, Failure> {
    let choices = ["Agree: I open it in my browser", "Decline: say no", "Cancel: decide nothing"];
    let help = Some("this program opens and fetches nothing");
    match choose_one("Do you agree?", &choices, help)? {
        Some(0) => {}
        Some(1) => return Ok(ElicitResult::decline()),
        _ => return Ok(ElicitResult::cancel()),
    }
    console::note(&format!("  Open it in your browser: {}", console::line(&shown.full)));
    // > Clients **SHOULD** provide manual controls that let the user retry or cancel the original request
    match choose_one("When you are done on the page:", &["Continue", "Cancel: decide nothing"], None)? {
        Some(0) => Ok(ElicitResult::consent()),
        _ => Ok(ElicitResult::cancel()),
    }
}

fn choose_one(message: &str, choices: &[&str], help: Option<&str>) -> Result<Option<usize>, Failure> {
    let choices = choices.iter().map(ToString::to_string).collect();
    Ok(match choose(message, choices, 0, help)? {
        PromptResult::Value(index) => Some(index),
        PromptResult::Escaped => None,
    })
}

/// Shows the URL with its host highlighted.
///
/// > **SHOULD** highlight the domain of the URL to mitigate subdomain spoofing.
fn note_with_host(shown: &UrlConsent) {
    let full = format!("    {}", console::line(&shown.full));
    match host_at(&full, &shown.host) {
        Some(at) => {
            let (before, rest) = full.split_at(at);
            let (host, after) = rest.split_at(shown.host.len());
            console::note_with_strong(before, host, after);
        }
        None => console::note(&full),
    }
}

/// Returns the position of the host: in the authority, after a user name and `@`.
fn host_at(full: &str, host: &str) -> Option<usize> {
    let start = full.find("://")? + 3;
    let authority = full[start..].split(['/', '?', '#']).next()?;
    Some(start + authority.rfind(host)?)
}

/// Prompts for yes or no. Esc is no.
#[cfg(feature = "oauth")]
pub(crate) fn agrees(message: &str) -> Result<bool, Failure> {
    let choices = ["Yes", "No"].map(str::to_owned).to_vec();
    Ok(matches!(choose(message, choices, 0, None)?, PromptResult::Value(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highlighted_host_is_the_real_host() {
        for (full, host, expected) in [
            ("https://pay.example/pay.example", "pay.example", Some(8)),
            ("https://pay.example@evil.example/", "evil.example", Some(20)),
            ("https://evil.example@evil.example:8443/", "evil.example", Some(21)),
            ("https://[::1]:80/", "[::1]", Some(8)),
        ] {
            assert_eq!(host_at(full, host), expected, "{full}");
        }
    }
}
