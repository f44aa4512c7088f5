//! `rolling_upgrade`: two builds of one tool. Calls of the old build continue on the new one.
//!
//! Both builds ask for two logins: the first login is the same, the second one differs. A call that begins on the old
//! build and ends on the new one keeps the answer to the common question, drops the answer that the new build does not
//! use, and asks the missing question.

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

/// A build of the tool `rolling_upgrade`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Build {
    /// Asks for GitHub and Google.
    Old,
    /// Asks for GitHub and Microsoft.
    #[default]
    New,
}

/// Links two accounts.
// The version is part of the sealed state. By default, a call of another version keeps every answer that is still valid.
#[tool(name = "rolling_upgrade", version = 1)]
pub(crate) async fn old(ctx: &Ctx) -> Result<String> {
    let github = ctx.elicit::<GithubLogin>("Please provide your GitHub username");
    let google = ctx.elicit::<GoogleLogin>("Please provide your Google account");
    let (github, google) = tokio::try_join!(github, google)?;
    Ok(format!("Linked {} (GitHub) and {} (Google).", github.name, google.name))
}

/// Links two accounts.
#[tool(name = "rolling_upgrade", version = 2)]
pub(crate) async fn new(ctx: &Ctx) -> Result<String> {
    let github = ctx.elicit::<GithubLogin>("Please provide your GitHub username");
    let microsoft = ctx.elicit::<MicrosoftLogin>("Please provide your Microsoft account");
    let (github, microsoft) = tokio::try_join!(github, microsoft)?;
    Ok(format!("Linked {} (GitHub) and {} (Microsoft).", github.name, microsoft.name))
}
