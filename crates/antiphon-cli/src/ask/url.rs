//! A URL question. The program shows the URL, and never opens or fetches it.
//!
//! > **MUST** show the full URL to the user for examination before consent.
//! >
//! > **MUST NOT** open the URL without explicit consent from the user.

use super::prompt::{self, PromptResult};
use crate::{console, failure::Failure, sanitize};
use antiphon::{
    client::asks::consent::{UrlConsent, show_url},
    wire::ElicitResult,
};

/// Reads the URL of a question.
pub(super) fn read(key: &str, url: &str) -> Result<UrlConsent, Failure> {
    show_url(url).map_err(|fault| Failure::protocol("invalid_url", format!("`{key}`: {fault}")))
}

/// Shows the URL.
pub(super) fn show(shown: &UrlConsent) {
    console::note("  The server asks you to open this page:");
    note_with_host(shown);
    console::note(&format!("    Host: {}", sanitize::line(&shown.host)));
    for warning in &shown.warnings {
        console::note(&format!("    Warning: {warning}"));
    }
}

/// Asks for consent at the terminal.
pub(super) fn ask(shown: &UrlConsent) -> Result<ElicitResult, Failure> {
    let choices = ["Agree: I open it in my browser", "Decline: say no", "Cancel: decide nothing"];
    let help = Some("this program opens and fetches nothing");
    match choose("Do you agree?", &choices, help)? {
        Some(0) => {}
        Some(1) => return Ok(ElicitResult::decline()),
        _ => return Ok(ElicitResult::cancel()),
    }
    console::note(&format!("  Open it in your browser: {}", sanitize::line(&shown.full)));
    // > Clients **SHOULD** provide manual controls that let the user retry or cancel the original request
    match choose("When you are done on the page:", &["Continue", "Cancel: decide nothing"], None)? {
        Some(0) => Ok(ElicitResult::consent()),
        _ => Ok(ElicitResult::cancel()),
    }
}

fn choose(message: &str, choices: &[&str], help: Option<&str>) -> Result<Option<usize>, Failure> {
    let choices = choices.iter().map(ToString::to_string).collect();
    Ok(match prompt::choose(message, choices, 0, help)? {
        PromptResult::Value(index) => Some(index),
        PromptResult::Escaped => None,
    })
}

/// Shows the URL with its host highlighted.
///
/// > **SHOULD** highlight the domain of the URL to mitigate subdomain spoofing.
fn note_with_host(shown: &UrlConsent) {
    let full = format!("    {}", sanitize::line(&shown.full));
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
