//! Cases of subscriptions: their events, and their ends.

use crate::{
    calls::request_count,
    case::{Case, EVENT_TIMEOUT, POLL_INTERVAL, expect_equal},
    error::AnyError,
    peer::{Peer, call_text},
};
use antiphon::{
    client::{
        Client, Subscription,
        events::{ReconnectPolicy, SubscriptionEvent as Event},
    },
    wire::{SubscriptionFilter, content::ResourceContents},
};
use serde_json::json;
use tokio::time::{sleep, timeout};

pub(crate) const CASES: &[Case] = &[
    ("listen: the tools changed", |peer| Box::pin(tools(peer))),
    ("listen: the prompts and the resources changed", |peer| Box::pin(lists(peer))),
    ("listen: a resource was updated", |peer| Box::pin(resource(peer))),
    ("listen: several at once, each with its own events", |peer| Box::pin(several(peer))),
    ("listen: ended by the client; other subscriptions and calls continue", |peer| {
        Box::pin(cancel_one(peer))
    }),
    ("listen: ended by the server, with a response", |peer| Box::pin(server_ends(peer))),
    ("listen: connection lost and opened again", |peer| Box::pin(connection_lost(peer, true))),
    ("listen: connection lost, without reconnect", |peer| Box::pin(connection_lost(peer, false))),
    ("cache: a change notification invalidates a list", |peer| Box::pin(invalidated_list(peer))),
    ("cache: a cacheable resource is read again only after a change", |peer| {
        Box::pin(invalidated_resource(peer))
    }),
];

const WATCHED: &str = "watched://one";

async fn next(subscription: &mut Subscription) -> Result<Option<Event>, AnyError> {
    let event = timeout(EVENT_TIMEOUT, subscription.next())
        .await
        .map_err(|_| "no event of the subscription in time")?;
    Ok(event.transpose()?)
}

async fn expect_event(subscription: &mut Subscription, wanted: Event) -> Result<(), AnyError> {
    expect_equal(next(subscription).await?, Some(wanted))
}

/// Opens a subscription and expects the server to accept the whole filter.
async fn open(client: &Client, filter: SubscriptionFilter) -> Result<Subscription, AnyError> {
    let mut subscription = client.listen(filter.clone());
    expect_event(&mut subscription, Event::Acknowledged(filter)).await?;
    Ok(subscription)
}

async fn trigger(client: &Client, tool: &str) -> Result<(), AnyError> {
    call_text(client, tool, json!({})).await.map(drop)
}

fn update_event() -> Event {
    Event::ResourceUpdated { uri: WATCHED.to_owned() }
}

async fn tools(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut subscription = open(&client, SubscriptionFilter::new().tools()).await?;
    for _ in 0..2 {
        trigger(&client, "change_tools").await?;
        expect_event(&mut subscription, Event::ToolsListChanged).await?;
    }
    Ok(())
}

async fn lists(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut subscription = open(&client, SubscriptionFilter::new().prompts().resources()).await?;
    // The filter does not include the tools.
    trigger(&client, "change_tools").await?;
    trigger(&client, "change_prompts").await?;
    expect_event(&mut subscription, Event::PromptsListChanged).await?;
    trigger(&client, "change_resources").await?;
    expect_event(&mut subscription, Event::ResourcesListChanged).await
}

async fn resource(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let filter = SubscriptionFilter::new().resource(WATCHED).resource("watched://two");
    let mut subscription = open(&client, filter).await?;
    trigger(&client, "update_resource").await?;
    expect_event(&mut subscription, update_event()).await
}

async fn several(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut tools = open(&client, SubscriptionFilter::new().tools()).await?;
    let mut prompts = open(&client, SubscriptionFilter::new().prompts()).await?;
    let mut both = open(&client, SubscriptionFilter::new().tools().resource(WATCHED)).await?;
    trigger(&client, "change_tools").await?;
    expect_event(&mut tools, Event::ToolsListChanged).await?;
    expect_event(&mut both, Event::ToolsListChanged).await?;
    trigger(&client, "update_resource").await?;
    expect_event(&mut both, update_event()).await?;
    trigger(&client, "change_prompts").await?;
    expect_event(&mut prompts, Event::PromptsListChanged).await
}

async fn cancel_one(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    wait_for_open_count(&client, 0).await?;
    let mut kept = open(&client, SubscriptionFilter::new().tools()).await?;
    let ended = open(&client, SubscriptionFilter::new().tools()).await?;
    wait_for_open_count(&client, 2).await?;
    drop(ended);
    wait_for_open_count(&client, 1).await?;
    trigger(&client, "change_tools").await?;
    expect_event(&mut kept, Event::ToolsListChanged).await
}

/// Waits until the server counts this many open subscriptions. A server that cannot count them replies `unknown`.
async fn wait_for_open_count(client: &Client, wanted: u32) -> Result<(), AnyError> {
    let mut found = String::new();
    let result = timeout(EVENT_TIMEOUT, async {
        loop {
            found = call_text(client, "open", json!({})).await?;
            if found == "unknown" || found == wanted.to_string() {
                return Ok::<_, AnyError>(());
            }
            sleep(POLL_INTERVAL).await;
        }
    });
    match result.await {
        Ok(ended) => ended,
        Err(_) => Err(format!("{found} subscriptions are open, wanted {wanted}").into()),
    }
}

async fn server_ends(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.separate_client()?;
    let (tools, prompts) = (SubscriptionFilter::new().tools(), SubscriptionFilter::new().prompts());
    // One of them comes back, the other one does not.
    let again = ReconnectPolicy::default().min_interval(POLL_INTERVAL);
    let mut one = client.listen(tools.clone()).reconnect(again);
    let mut two = client.listen(prompts.clone()).reconnect(ReconnectPolicy::never());
    expect_event(&mut one, Event::Acknowledged(tools.clone())).await?;
    expect_event(&mut two, Event::Acknowledged(prompts)).await?;
    trigger(&client, "change_tools").await?;
    trigger(&client, "end_listening").await?;
    expect_event(&mut one, Event::ToolsListChanged).await?;
    expect_event(&mut one, Event::Closed).await?;
    expect_event(&mut one, Event::Acknowledged(tools)).await?;
    expect_equal(next(&mut two).await?, None)?;
    client.close().await;
    Ok(())
}

/// Loses the connection of a subscription: over HTTP the relay cuts it, over stdio the server exits.
async fn connection_lost(peer: &Peer, again: bool) -> Result<(), AnyError> {
    let (client, relay) = match peer.relayed_client().await? {
        Some((client, relay)) => (client, Some(relay)),
        None => (peer.separate_client()?, None),
    };
    let policy =
        if again { ReconnectPolicy::default().min_interval(POLL_INTERVAL) } else { ReconnectPolicy::never() };
    let filter = SubscriptionFilter::new().tools();
    let mut subscription = client.listen(filter.clone()).reconnect(policy);
    expect_event(&mut subscription, Event::Acknowledged(filter.clone())).await?;
    match &relay {
        Some(relay) => relay.cut(),
        None => expect_equal(trigger(&client, "die").await.is_err(), true)?,
    }
    if again {
        expect_event(&mut subscription, Event::Acknowledged(filter)).await?;
        trigger(&client, "change_tools").await?;
        expect_event(&mut subscription, Event::ToolsListChanged).await?;
    } else {
        expect_equal(next(&mut subscription).await.is_err(), true)?;
        expect_equal(next(&mut subscription).await?, None)?;
    }
    client.close().await;
    Ok(())
}

async fn invalidated_list(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut subscription = open(&client, SubscriptionFilter::new().tools()).await?;
    let before = request_count(&client, "tools/list").await?;
    client.list_tools().await?;
    trigger(&client, "change_tools").await?;
    expect_event(&mut subscription, Event::ToolsListChanged).await?;
    for _ in 0..2 {
        client.list_tools().await?;
    }
    expect_equal(request_count(&client, "tools/list").await? - before, 2)
}

async fn invalidated_resource(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut subscription = open(&client, SubscriptionFilter::new().resource(WATCHED)).await?;
    let before = read(&client).await?;
    expect_equal(read(&client).await?, before.clone())?;
    trigger(&client, "update_resource").await?;
    expect_event(&mut subscription, update_event()).await?;
    let after = read(&client).await?;
    expect_equal(after == before, false)?;
    expect_equal(read(&client).await?, after)
}

async fn read(client: &Client) -> Result<String, AnyError> {
    let result = client.read_resource(WATCHED).await?;
    let text = result.contents.first().and_then(ResourceContents::as_text);
    Ok(text.ok_or("the resource has no text")?.to_owned())
}
