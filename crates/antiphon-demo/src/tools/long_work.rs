//! Tools with long work: a call that moves to another server or to another build, and calls that are tasks.
//!
//! `echo` of the draft before the extension for tasks: every call is a task, which asks for the text. The example of SEP-2322.
//!
//! `rolling_upgrade`: two builds of one tool. Calls of the old build continue on the new one. Both builds ask for two logins: the first
//! login is the same, the second one differs. A call that begins on the old build and ends on the new one keeps the answer to the common
//! question, drops the answer that the new build does not use, and asks the missing question.

use crate::backend::{Backend, Operation};
use antiphon::{
    Form, Result,
    server::{Answer, Ctx, State},
    tool,
};
use serde::Deserialize;

/// Counts primes, a thousand numbers at a time.
#[tool]
pub(crate) async fn load_shedding(
    ctx: &Ctx,
    /// The number of thousands.
    #[arg(min = 1, max = 10)]
    portions: u32,
    State(backend): State<Backend>,
) -> Result<String> {
    let mut primes = 0;
    for portion in 0..portions {
        let number = u64::from(portion);
        let key = ("portion", number);
        primes += ctx
            .step(key, async |s| {
                backend.send::<u64>(Operation::Compute { portion, key: s.key().to_owned() }).await
            })
            .await?;
        ctx.report_progress(f64::from(portion + 1), Some(f64::from(portions)), None);
        // While this server drains, the request ends here with the results so far. The client sends the request again,
        // and another server continues with the next portion.
        ctx.checkpoint().nth(number).await;
    }
    Ok(format!("There are {primes} primes below {}.", portions * 1000))
}

// `confirm_delete`: every call is a task, which waits until a person confirms. The example of SEP-2663.

/// Deletes a file of the folder `reports`, when a person has confirmed it.
#[tool(task = "required", destructive)]
pub(crate) async fn confirm_delete(
    ctx: &Ctx,
    /// The name of the file.
    filename: String,
    State(backend): State<Backend>,
) -> Result<String> {
    let answer = ctx.confirm(format!("Delete {filename}?")).outcome().await?;
    if answer != Answer::Accept(true) {
        return Ok(format!("Kept {filename}."));
    }
    let file = || Operation::DeleteFile { path: "reports".to_owned(), file: filename.clone() };
    let existed = ctx.step("delete", async |_| backend.send::<bool>(file()).await).await?;
    Ok(if existed { format!("Deleted {filename}.") } else { format!("There is no {filename}.") })
}

// `provision_cluster`: a call that asks, becomes a task for its long work, and asks once more at its end, perhaps days later.

#[derive(Deserialize, Form)]
struct Region {
    region: String,
}

/// Provisions a cluster of three nodes, in a region that the person chooses. The person decides at the end if it goes live.
#[tool(task = "optional")]
pub(crate) async fn provision_cluster(
    ctx: &Ctx,
    /// The name of the cluster.
    name: String,
    State(backend): State<Backend>,
) -> Result<String> {
    let Region { region } = ctx.elicit("Which region should the cluster live in?").await?;
    // From here on nobody needs to be connected. For a client without tasks, this line does nothing.
    ctx.into_task().await?;
    for node in 0..3_u32 {
        ctx.report_progress(f64::from(node), Some(3.0), None);
        // Each node is built once, also if the process dies between two of them.
        ctx.step(("node", node), async |s| {
            backend.send::<u64>(Operation::Compute { portion: node, key: s.key().to_owned() }).await
        })
        .await?;
    }
    let live = ctx.confirm(format!("{name} runs in {region}. Does it go live?")).key("live").await?;
    Ok(format!("{name} in {region} is {}.", if live { "live" } else { "ready" }))
}

#[derive(Deserialize, Form)]
struct EchoInput {
    input: String,
}

/// Asks for a text, and returns it.
#[tool(task = "required")]
pub(crate) async fn echo(ctx: &Ctx) -> Result<String> {
    let EchoInput { input } = ctx.elicit("Please provide the input string to echo back").await?;
    Ok(format!("Echo: {input}"))
}

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
