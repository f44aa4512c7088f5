//! `rolling_upgrade`: two builds of one tool, which share their calls while one takes the place of the other.
//!
//! The old build asks for two logins, and so does the new one, but for another second one. A call that begins at the old
//! build and ends at the new one keeps the answer that both want, drops the one that nobody wants any more, and asks for
//! the one that is missing.

use antiphon::{Form, Result, server::Ctx, tool};
use serde::Deserialize;

#[derive(Deserialize, Form)]
struct GithubLogin {
    name: String,
}

#[derive(Deserialize, Form)]
struct GoogleLogin {
    name: String,
}

#[derive(Deserialize, Form)]
struct MicrosoftLogin {
    name: String,
}

/// Which build it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Build {
    /// Asks for GitHub and Google.
    Old,
    /// Asks for GitHub and Microsoft.
    #[default]
    New,
}

/// Links two accounts.
// The version is sealed. By default, a call of another version keeps every answer that still fits.
#[tool(name = "rolling_upgrade", version = 1)]
pub(super) async fn old(ctx: &Ctx) -> Result<String> {
    let github = ctx.elicit::<GithubLogin>("Please provide your GitHub username");
    let google = ctx.elicit::<GoogleLogin>("Please provide your Google account");
    let (github, google) = tokio::try_join!(github, google)?;
    Ok(format!("Linked {} (GitHub) and {} (Google).", github.name, google.name))
}

/// Links two accounts.
#[tool(name = "rolling_upgrade", version = 2)]
pub(super) async fn new(ctx: &Ctx) -> Result<String> {
    let github = ctx.elicit::<GithubLogin>("Please provide your GitHub username");
    let microsoft = ctx.elicit::<MicrosoftLogin>("Please provide your Microsoft account");
    let (github, microsoft) = tokio::try_join!(github, microsoft)?;
    Ok(format!("Linked {} (GitHub) and {} (Microsoft).", github.name, microsoft.name))
}
