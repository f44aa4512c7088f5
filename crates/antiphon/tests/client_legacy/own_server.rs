//! Our own server at the other end: the same call comes to the same, whatever is spoken and however it travels.

use crate::scripted_server::{builder, soon};
use antiphon::{
    Form, Result,
    client::{
        Client, ClientBuilder, Era, Mode,
        events::SubscriptionEvent,
        transport::{HttpTransport, memory},
    },
    serve::{
        http::{HttpOptions, serve_http},
        stdio::serve_streams,
    },
    server::{Ctx, NoArguments, Server, Tool},
    wire::{
        ProtocolVersion, SubscriptionFilter,
        sampling::{CreateMessageResult, ListRootsResult, Root, SamplingMessage},
    },
};
use serde::Deserialize;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::{net::TcpListener, task::JoinHandle};

#[derive(Deserialize, Form)]
struct Place {
    region: String,
    #[form(default = 3)]
    count: i64,
}

async fn order(ctx: &Ctx, _: NoArguments) -> Result<String> {
    ctx.report_progress(1.0, Some(2.0), Some("asking"));
    let (here, there): (Result<Place, _>, Result<Place, _>) =
        tokio::join!(ctx.elicit("Here?").key("here"), ctx.elicit("There?").key("there"));
    let (here, there) = (here?, there?);
    let model = ctx.sample([SamplingMessage::user("Name?")], 9).await?;
    let roots = ctx.roots().await?;
    let id: String = ctx.step("order", async |_| Ok("db-1".to_owned())).await?;
    Ok(format!("{id} {} {} {} {} {}", here.region, here.count, there.region, model.model, roots.len()))
}

fn server() -> Server {
    Server::builder("ours", "1.0").tool(Tool::new("order", order)).list_changed(true).build().unwrap()
}

fn person(heard: &Arc<Mutex<Vec<f64>>>) -> ClientBuilder {
    let heard = Arc::clone(heard);
    builder()
        .on_elicit_form(async |ask| Ok(ask.accept(json!({"region": ask.message.trim_end_matches('?')}))?))
        .on_sample(async |_| Ok(CreateMessageResult::text("model-1", "Paris")))
        .on_roots(async |_| Ok(ListRootsResult::new(vec![Root::new("file:///work")])))
        .on_progress(move |event| heard.lock().unwrap().push(event.progress))
}

async fn over(http: bool, server: &Server, builder: ClientBuilder) -> (Client, JoinHandle<()>) {
    let server = server.clone();
    if http {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let _ = serve_http(listener, server, HttpOptions::default()).await;
        });
        return (builder.connect(HttpTransport::new(url).unwrap()), serving);
    }
    let (transport, input, output) = memory::duplex();
    let serving = tokio::spawn(async move {
        let _ = serve_streams(input, output, server).await;
    });
    (builder.connect(transport), serving)
}

#[tokio::test]
async fn the_same_call_on_both_eras_and_over_each_transport() {
    let pinned = |version| (Mode::Pinned(ProtocolVersion::new(version)), Era::Legacy, version);
    let rows = [
        (Mode::Auto, Era::Modern, "2026-07-28"),
        (Mode::Legacy, Era::Legacy, "2025-11-25"),
        pinned("2025-11-25"),
        pinned("2025-06-18"),
    ];
    for http in [false, true] {
        for (mode, era, version) in rows.clone() {
            let name = format!("{mode:?}, over HTTP: {http}");
            let heard = Arc::default();
            let server = server();
            let (client, serving) = over(http, &server, person(&heard).mode(mode.clone())).await;
            let result =
                soon(client.call_tool("order", ())).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_eq!(result.first_text(), Some("db-1 Here 3 There model-1 1"), "{name}");
            assert_eq!(
                (
                    client.era(),
                    client.protocol_version().as_str(),
                    client.server_info().unwrap().name.as_str()
                ),
                (Some(era), version, "ours"),
                "{name}"
            );
            assert!(!heard.lock().unwrap().is_empty(), "{name}");
            assert_eq!(client.list_tools().await.unwrap().len(), 1, "{name}");
            let mut subscription = client.listen(SubscriptionFilter::new().tools());
            let first = soon(subscription.next()).await.unwrap().unwrap();
            assert_eq!(first, SubscriptionEvent::Acknowledged(SubscriptionFilter::new().tools()), "{name}");
            assert!(server.remove_tool("order"));
            let event = soon(subscription.next()).await.unwrap().unwrap();
            assert_eq!(event, SubscriptionEvent::ToolsListChanged, "{name}");
            drop(subscription);
            client.close().await;
            serving.abort();
        }
    }
}

/// A server that will not have sessions says which versions it speaks.
#[tokio::test]
async fn a_server_of_the_modern_era_alone() {
    let server =
        Server::builder("ours", "1.0").modern_only(true).tool(Tool::new("order", order)).build().unwrap();
    for http in [false, true] {
        let (client, serving) = over(http, &server, builder().mode(Mode::Legacy)).await;
        let error = soon(client.list_tools()).await.unwrap_err().to_string();
        assert!(error.contains("2026-07-28"), "{error}");
        let (client, other) = over(http, &server, builder()).await;
        assert_eq!(soon(client.list_tools()).await.unwrap().len(), 1);
        serving.abort();
        other.abort();
    }
}
