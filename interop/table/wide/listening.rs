//! Subscriptions: what they tell, and how they end.

use crate::{
    A_MOMENT, AnyError, Case, SOON,
    calls::asked,
    peer::{Peer, text},
    same,
};
use antiphon::{
    client::{Client, ReconnectPolicy, Subscription, SubscriptionEvent as Event},
    wire::{ResourceContents, SubscriptionFilter},
};
use serde_json::json;
use tokio::time::{sleep, timeout};

pub(crate) const CASES: &[Case] = &[
    ("listen: the tools changed", |peer| Box::pin(tools(peer))),
    ("listen: the prompts and the resources changed", |peer| Box::pin(lists(peer))),
    ("listen: a resource was updated", |peer| Box::pin(resource(peer))),
    ("listen: several at once, each told its own", |peer| Box::pin(several(peer))),
    ("listen: ended by the client; the others and the calls go on", |peer| Box::pin(dropped(peer))),
    ("listen: the server ends it, and says so", |peer| Box::pin(graceful(peer))),
    ("listen: broken, and opened again", |peer| Box::pin(broken(peer, true))),
    ("listen: broken for good", |peer| Box::pin(broken(peer, false))),
    ("cache: who listens asks again for what changed", |peer| Box::pin(forgotten(peer))),
    ("cache: a resource that may be kept is not read again before it changes", |peer| {
        Box::pin(read_again(peer))
    }),
];

const WATCHED: &str = "watched://one";

async fn next(subscription: &mut Subscription) -> Result<Option<Event>, AnyError> {
    let event = timeout(SOON, subscription.next()).await.map_err(|_| "nothing came of a subscription")?;
    Ok(event.transpose()?)
}

async fn told(subscription: &mut Subscription, wanted: Event) -> Result<(), AnyError> {
    same(next(subscription).await?, Some(wanted))
}

/// Opens a subscription of which the server promises everything.
async fn opened(client: &Client, filter: SubscriptionFilter) -> Result<Subscription, AnyError> {
    let mut subscription = client.listen(filter.clone());
    told(&mut subscription, Event::Acknowledged(filter)).await?;
    Ok(subscription)
}

async fn trigger(client: &Client, tool: &str) -> Result<(), AnyError> {
    text(client, tool, json!({})).await.map(drop)
}

fn updated() -> Event {
    Event::ResourceUpdated { uri: WATCHED.to_owned() }
}

async fn tools(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut subscription = opened(&client, SubscriptionFilter::new().tools()).await?;
    for _ in 0..2 {
        trigger(&client, "change_tools").await?;
        told(&mut subscription, Event::ToolsListChanged).await?;
    }
    Ok(())
}

async fn lists(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut subscription = opened(&client, SubscriptionFilter::new().prompts().resources()).await?;
    // Not asked for, so not told.
    trigger(&client, "change_tools").await?;
    trigger(&client, "change_prompts").await?;
    told(&mut subscription, Event::PromptsListChanged).await?;
    trigger(&client, "change_resources").await?;
    told(&mut subscription, Event::ResourcesListChanged).await
}

async fn resource(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let filter = SubscriptionFilter::new().resource(WATCHED).resource("watched://two");
    let mut subscription = opened(&client, filter).await?;
    trigger(&client, "update_resource").await?;
    told(&mut subscription, updated()).await
}

async fn several(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut tools = opened(&client, SubscriptionFilter::new().tools()).await?;
    let mut prompts = opened(&client, SubscriptionFilter::new().prompts()).await?;
    let mut both = opened(&client, SubscriptionFilter::new().tools().resource(WATCHED)).await?;
    trigger(&client, "change_tools").await?;
    told(&mut tools, Event::ToolsListChanged).await?;
    told(&mut both, Event::ToolsListChanged).await?;
    trigger(&client, "update_resource").await?;
    told(&mut both, updated()).await?;
    trigger(&client, "change_prompts").await?;
    told(&mut prompts, Event::PromptsListChanged).await
}

async fn dropped(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    until_open(&client, 0).await?;
    let mut stays = opened(&client, SubscriptionFilter::new().tools()).await?;
    let goes = opened(&client, SubscriptionFilter::new().tools()).await?;
    until_open(&client, 2).await?;
    drop(goes);
    until_open(&client, 1).await?;
    trigger(&client, "change_tools").await?;
    told(&mut stays, Event::ToolsListChanged).await
}

/// Waits until the server counts so many open subscriptions, unless it cannot tell.
async fn until_open(client: &Client, wanted: u32) -> Result<(), AnyError> {
    let mut found = String::new();
    let waited = timeout(SOON, async {
        loop {
            found = text(client, "open", json!({})).await?;
            if found == "unknown" || found == wanted.to_string() {
                return Ok::<_, AnyError>(());
            }
            sleep(A_MOMENT).await;
        }
    });
    match waited.await {
        Ok(ended) => ended,
        Err(_) => Err(format!("{found} subscriptions are open, wanted {wanted}").into()),
    }
}

async fn graceful(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.alone()?;
    let mut one = opened(&client, SubscriptionFilter::new().tools()).await?;
    let mut two = opened(&client, SubscriptionFilter::new().prompts()).await?;
    trigger(&client, "change_tools").await?;
    trigger(&client, "end_listening").await?;
    told(&mut one, Event::ToolsListChanged).await?;
    same(next(&mut one).await?, None)?;
    same(next(&mut two).await?, None)?;
    client.close().await;
    Ok(())
}

/// Over HTTP the connection is cut, over stdio the server dies.
async fn broken(peer: &Peer, again: bool) -> Result<(), AnyError> {
    let (client, relay) = match peer.behind_relay().await? {
        Some((client, relay)) => (client, Some(relay)),
        None => (peer.alone()?, None),
    };
    let policy =
        if again { ReconnectPolicy::default().min_interval(A_MOMENT) } else { ReconnectPolicy::never() };
    let filter = SubscriptionFilter::new().tools();
    let mut subscription = client.listen(filter.clone()).reconnect(policy);
    told(&mut subscription, Event::Acknowledged(filter.clone())).await?;
    match &relay {
        Some(relay) => relay.cut(),
        None => same(trigger(&client, "die").await.is_err(), true)?,
    }
    if again {
        told(&mut subscription, Event::Acknowledged(filter)).await?;
        trigger(&client, "change_tools").await?;
        told(&mut subscription, Event::ToolsListChanged).await?;
    } else {
        same(next(&mut subscription).await.is_err(), true)?;
        same(next(&mut subscription).await?, None)?;
    }
    client.close().await;
    Ok(())
}

async fn forgotten(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut subscription = opened(&client, SubscriptionFilter::new().tools()).await?;
    let before = asked(&client, "tools/list").await?;
    client.list_tools().await?;
    trigger(&client, "change_tools").await?;
    told(&mut subscription, Event::ToolsListChanged).await?;
    for _ in 0..2 {
        client.list_tools().await?;
    }
    same(asked(&client, "tools/list").await? - before, 2)
}

async fn read_again(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut subscription = opened(&client, SubscriptionFilter::new().resource(WATCHED)).await?;
    let before = read(&client).await?;
    same(read(&client).await?, before.clone())?;
    trigger(&client, "update_resource").await?;
    told(&mut subscription, updated()).await?;
    let after = read(&client).await?;
    same(after == before, false)?;
    same(read(&client).await?, after)
}

async fn read(client: &Client) -> Result<String, AnyError> {
    let result = client.read_resource(WATCHED).await?;
    let text = result.contents.first().and_then(ResourceContents::as_text);
    Ok(text.ok_or("there is no text in it")?.to_owned())
}
