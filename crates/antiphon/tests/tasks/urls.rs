//! Questions in a task that send a person to a page.

use crate::client::{TaskClient, accept, client, text_of};
use antiphon::{
    Clock, Error, Form,
    server::{Ctx, State, TaskOptions, asks::UrlRef},
    tool,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// The page: if the person has finished there, and how often a task has looked.
#[derive(Clone, Default)]
struct Page {
    is_paid: Arc<AtomicBool>,
    looks: Arc<AtomicUsize>,
}

/// Waits until the deposit is paid.
#[tool(task = "required")]
async fn deposit(ctx: &Ctx, page: State<Page>) -> Result<String, Error> {
    let url = |reference: &UrlRef| format!("https://pay.example/{reference}");
    ctx.elicit_url("Please pay the deposit.", url)
        .until(async || {
            page.looks.fetch_add(1, Ordering::SeqCst);
            page.is_paid.load(Ordering::SeqCst)
        })
        .await?;
    let kept: bool = ctx.step("keep", async |_| Ok(true)).await?;
    Ok(format!("paid {kept}"))
}

fn tools(page: &Page) -> TaskClient {
    client(|server| server.state(page.clone()).tool(deposit))
}

fn url(task: &Value, key: &str) -> String {
    task["inputRequests"][key]["params"]["url"].as_str().unwrap().to_owned()
}

const AGREED: &str = r#"{"action": "accept"}"#;

fn agreed() -> Value {
    serde_json::from_str(AGREED).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_task_waits_until_the_person_has_finished() {
    let page = Page::default();
    let client = tools(&page);
    let id = client.task("deposit", json!({})).await;
    client.asked(&id, &["url"]).await;
    assert_eq!(page.looks.load(Ordering::SeqCst), 0);
    client.update(&id, json!({"url": agreed()})).await;
    // The person is at the page. Nobody is asked meanwhile.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(client.get(&id).await["status"], "working");
    assert!(page.looks.load(Ordering::SeqCst) > 10);
    page.is_paid.store(true, Ordering::SeqCst);
    assert_eq!(text_of(&client.status(&id, "completed").await), "paid true");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_not_finished_is_shown_again_under_a_new_key() {
    let page = Page::default();
    let client = tools(&page);
    let id = client.task("deposit", json!({})).await;
    let first = client.asked(&id, &["url"]).await;
    client.update(&id, json!({"url": agreed()})).await;
    tokio::time::sleep(Duration::from_secs(3700)).await;
    let second = client.asked(&id, &["url~2"]).await;
    assert_eq!(url(&second, "url~2"), url(&first, "url"));
    // The person finished meanwhile.
    page.is_paid.store(true, Ordering::SeqCst);
    client.update(&id, json!({"url~2": agreed()})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "paid true");
}

#[tokio::test(start_paused = true)]
async fn a_person_declines_and_a_client_cancels_at_the_page() {
    let page = Page::default();
    let client = tools(&page);
    let id = client.task("deposit", json!({})).await;
    client.asked(&id, &["url"]).await;
    client.update(&id, json!({"url": {"action": "decline"}})).await;
    assert_eq!(client.status(&id, "completed").await["result"]["isError"], true);
    let id = client.task("deposit", json!({})).await;
    client.asked(&id, &["url"]).await;
    client.update(&id, json!({"url": agreed()})).await;
    client.until(&id, |_| page.looks.load(Ordering::SeqCst) > 0).await;
    client.cancel(&id).await;
    client.status(&id, "cancelled").await;
}

/// A question of a task waits longer than a day, and so does its page.
#[tokio::test(start_paused = true)]
async fn a_reference_is_valid_as_long_as_the_task_exists() {
    const HOUR: u64 = 3600;
    for (ttl, hours, is_valid) in [(72, 70, true), (72, 80, false), (1, 20, true), (1, 30, false)] {
        let (clock, hand) = Clock::manual(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
        let options = TaskOptions::default().ttl(Duration::from_secs(ttl * HOUR));
        let client =
            client(|server| server.clock(clock).task_options(options).state(Page::default()).tool(deposit));
        let id = client.task("deposit", json!({})).await;
        let url = url(&client.asked(&id, &["url"]).await, "url");
        let reference = url.strip_prefix("https://pay.example/").unwrap();
        hand.advance(Duration::from_secs(hours * HOUR));
        let verified = UrlRef::verify(&client.server, reference, None);
        assert_eq!(verified.is_ok(), is_valid, "a task of {ttl} hours, after {hours}");
    }
}

/// Asks for a name, and to open a page.
#[tool(task = "required")]
async fn both(ctx: &Ctx) -> Result<String, Error> {
    let page = ctx.elicit_url("Please sign.", |reference| format!("https://sign.example/{reference}"));
    let (name, signed) = tokio::join!(ctx.elicit::<Name>("Who?"), page);
    signed?;
    Ok(name?.name)
}

/// The leg with another answer, days later, shows the same page under the same key.
#[tokio::test(start_paused = true)]
async fn a_page_stays_the_same_for_longer_than_a_day() {
    let (clock, hand) = Clock::manual(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let options = TaskOptions::default().ttl(Duration::from_secs(72 * 3600));
    let client = client(|server| server.clock(clock).task_options(options).tool(both));
    let id = client.task("both", json!({})).await;
    let first = client.asked(&id, &["name", "url"]).await;
    hand.advance(Duration::from_secs(48 * 3600));
    client.update(&id, json!({"name": accept(json!({"name": "Anna"}))})).await;
    let second = client.asked(&id, &["url"]).await;
    assert_eq!(url(&second, "url"), url(&first, "url"));
    client.update(&id, json!({"url": agreed()})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "Anna");
}

#[tokio::test(start_paused = true)]
async fn the_reference_in_the_url_is_that_of_the_caller() {
    let client = tools(&Page::default());
    let anna = client.user("anna");
    let id = anna.task("deposit", json!({})).await;
    let asked = anna.asked(&id, &["url"]).await;
    let url = url(&asked, "url");
    let reference = url.strip_prefix("https://pay.example/").unwrap();
    let of = antiphon::seal::Principal::user;
    assert_eq!(UrlRef::verify(&client.server, reference, Some(&of("anna"))).unwrap().key(), "url");
    for other in [Some(of("bert")), None] {
        assert!(UrlRef::verify(&client.server, reference, other.as_ref()).is_err());
    }
}
