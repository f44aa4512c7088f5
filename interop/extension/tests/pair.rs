//! Both halves of the extension, in one process.

use antiphon::{client::Client, memory, server::Server};
use interop_extension::{BookmarkClient, ServeBookmarks as _, ServerSettings, declare};

#[tokio::test]
async fn both_halves_meet() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("library", "1.0").bookmarks(3).build()?;
    let client = memory::connect(server.clone(), declare(Client::builder("reader", "1.0"), 2)?);
    let bookmarks = BookmarkClient::new(&client);
    assert_eq!(bookmarks.settings().await?, Some(ServerSettings { kept: 3 }));
    for url in ["a://1", "b://1", "a://2"] {
        bookmarks.added(url).await?;
        // A notification has no reply.
        while bookmarks.list(url).await?.is_empty() {
            tokio::task::yield_now().await;
        }
    }
    bookmarks.added("a://3").await?;
    // The client shows two, and the server keeps three.
    assert_eq!(bookmarks.list("a").await?, ["a://1", "a://2"]);
    assert_eq!(bookmarks.list("").await?, ["a://1", "b://1"]);

    let other = memory::connect(server, Client::builder("other", "1.0"));
    assert!(BookmarkClient::new(&other).list("a").await.is_err(), "it does not declare the extension");
    Ok(())
}
