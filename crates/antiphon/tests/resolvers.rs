#![cfg(feature = "macros")]
use antiphon::{
    Form, Result, resolver,
    server::{Answer, Ctx},
    tool,
};

#[derive(Clone, serde::Deserialize, Form)]
struct Confirm {
    confirm: bool,
}

#[resolver]
async fn size(path: &str) -> Result<u64> {
    Ok(path.len() as u64)
}

#[resolver]
async fn confirm_delete(ctx: &Ctx, path: &str, #[resolve(size)] size: u64) -> Result<Answer<Confirm>> {
    if size == 0 {
        return Ok(Answer::Accept(Confirm { confirm: true }));
    }
    Ok(ctx.elicit(format!("Delete {path}?")).outcome().await?)
}

#[tool]
async fn delete_folder(path: String, #[resolve(confirm_delete)] confirm: Answer<Confirm>) -> Result<String> {
    Ok(format!("{path} {}", confirm.accepted().is_some_and(|c| c.confirm)))
}

#[tokio::test]
async fn first() {
    assert_eq!(delete_folder("a".into(), Answer::Decline).await.unwrap(), "a false");
    antiphon::server::Server::builder("a", "1").tool(delete_folder).build().unwrap();
}
