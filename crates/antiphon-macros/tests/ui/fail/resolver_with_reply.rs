//! Resolvers ask with `await`: their function does not ask by hand.
use antiphon::{
    Result, prompt, resolver, resource, server,
    server::{Ask, InputRequired, Reply},
    tool,
    wire::ResourceContents,
};

#[resolver]
async fn region() -> Result<String> {
    Ok("eu".to_owned())
}

#[tool]
async fn provision(#[resolve(region)] region: String) -> InputRequired {
    InputRequired::state_only(region)
}

#[prompt]
async fn review(#[resolve(region)] region: &str) -> Result<Reply<String>> {
    Ok(Reply::Complete(region.to_owned()))
}

#[resource("report://{year}")]
async fn report(year: String, #[resolve(region)] region: &str) -> Result<Result<Reply<ResourceContents>, String>> {
    Ok(Ok(Reply::Complete(ResourceContents::text(year, region))))
}

struct Office;

#[server]
impl Office {
    #[tool]
    async fn open(&self, #[resolve(region)] region: String) -> Reply<String> {
        Reply::Complete(region)
    }

    // Without one, it may.
    #[tool]
    async fn close(&self) -> Reply<String> {
        Ask::roots("roots").into()
    }
}

// One complaint, not another of the check.
#[tool]
async fn count(#[resolve(region)] region: String) -> usize {
    region.len()
}

fn main() {}
