//! `provision_cluster`: a call that asks, becomes a task for its long work, and asks once more at its end, perhaps days later.

use crate::backend::{Backend, Operation};
use antiphon::{
    Form, Result,
    server::{Ctx, State},
    tool,
};
use serde::Deserialize;

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
