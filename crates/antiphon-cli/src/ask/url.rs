//! A URL to open: shown, never opened or fetched from here.
//!
//! > **MUST** show the full URL to the user for examination before consent.
//! >
//! > **MUST NOT** open the URL without explicit consent from the user.

use super::{
    Decision,
    prompt::{self, Prompted},
};
use crate::{console, failure::Failure, show};
use antiphon::{
    client::consent::{UrlConsent, show_url},
    wire::Action,
};
use serde_json::Map;

/// Shows the URL, and asks for consent unless it was given on the command line.
pub(super) fn consent(key: &str, url: &str, agreed: bool) -> Result<Decision, Failure> {
    let shown =
        show_url(url).map_err(|fault| Failure::protocol("invalid_url", format!("`{key}`: {fault}")))?;
    console::note("  It wants you to open this page:");
    console::note(&format!("    {}", highlighted(&shown)));
    console::note(&format!("    Host: {}", show::line(&shown.host)));
    for warning in &shown.warnings {
        console::note(&format!("    Warning: {warning}"));
    }
    if agreed {
        console::note("  Agreed on the command line: open it in your browser.");
        return Ok(Decision::Accept(Map::new()));
    }
    let choices = ["Agree: I open it in my browser", "Decline: say no", "Cancel: decide nothing"];
    let help = Some("nothing is opened or fetched from here");
    match choose("Do you agree?", &choices, help)? {
        Some(0) => {}
        Some(1) => return Ok(Decision::Refuse(Action::Decline)),
        _ => return Ok(Decision::Refuse(Action::Cancel)),
    }
    console::note(&format!("  Open it in your browser: {}", show::line(&shown.full)));
    // > Clients **SHOULD** provide manual controls that let the user retry or cancel the original request
    match choose("When you are done there:", &["Go on", "Cancel: decide nothing"], None)? {
        Some(0) => Ok(Decision::Accept(Map::new())),
        _ => Ok(Decision::Refuse(Action::Cancel)),
    }
}

fn choose(message: &str, choices: &[&str], help: Option<&str>) -> Result<Option<usize>, Failure> {
    let choices = choices.iter().map(ToString::to_string).collect();
    Ok(match prompt::choose(message, choices, 0, help)? {
        Prompted::Value(index) => Some(index),
        Prompted::Left => None,
    })
}

/// > **SHOULD** highlight the domain of the URL to mitigate subdomain spoofing.
fn highlighted(shown: &UrlConsent) -> String {
    let full = show::line(&shown.full);
    match host_at(&full, &shown.host) {
        Some(at) => {
            let (before, rest) = full.split_at(at);
            let (host, after) = rest.split_at(shown.host.len());
            format!("{before}{}{after}", console::strong(host))
        }
        None => full,
    }
}

/// Where the host stands: in the authority, behind what may come before an `@`.
fn host_at(full: &str, host: &str) -> Option<usize> {
    let start = full.find("://")? + 3;
    let authority = full[start..].split(['/', '?', '#']).next()?;
    Some(start + authority.rfind(host)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_that_would_be_opened_is_the_one_that_is_highlighted() {
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
