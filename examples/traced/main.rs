//! One call on two instances is one trace: the client's span, the legs at the servers, their steps, and the time of the person.
//!
//! The client sends each request to the next instance. A real program has an exporter in the place of the collector.
//!
//! Try it: `cargo run -p antiphon-examples --bin traced`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

mod collector;
#[cfg(test)]
mod tests;

use antiphon::{
    client::{
        Client, FormAsk,
        transport::{
            HttpTransport, IncomingNotification, OutgoingRequest, ServerReply, Transport, TransportError,
        },
    },
    seal::{KeyRing, SecretKey},
    serve::http::{HttpOptions, serve_http},
    server::{Ctx, Server, offers::IntoTool},
    tool,
};
use antiphon_examples::Result;
use collector::{Collector, tree};
use serde_json::json;
use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::{net::TcpListener, time::sleep};

/// Deploys a service, if a person agrees.
#[tool]
async fn deploy(ctx: &Ctx, service: String) -> antiphon::Result<String> {
    let machine: String = ctx.step("reserve", async |_| Ok("m-7".to_owned())).await?;
    if !ctx.confirm(format!("Deploy {service} on {machine}?")).key("sure").await? {
        return Ok("not deployed".to_owned());
    }
    ctx.step("start", async |_| Ok(())).await?;
    Ok(format!("{service} runs on {machine}"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let collector = Collector::install()?;
    let key = SecretKey::random()?.to_base64url();
    let instances = [instance(&key, deploy)?, instance(&key, deploy)?];
    let client = client(&instances).await?;
    let result = client.call_tool("deploy", json!({"service": "orders"})).await?;
    println!("{}\n", result.first_text().unwrap_or_default());
    println!("{}", tree(&collector.trace_with("step reserve")));
    for (name, instance) in ["A", "B"].into_iter().zip(&instances) {
        let legs = instance.metrics().value("antiphon_legs_total", &[]).unwrap_or_default();
        println!("legs at instance {name}: {legs}");
    }
    Ok(())
}

fn instance<M>(key: &str, tool: impl IntoTool<M>) -> Result<Server> {
    let keys = KeyRing::parse_list(key)?;
    Ok(Server::builder("deployments", "1.0").keys(keys).instances(2).tool(tool).build()?)
}

/// Serves the instances, and connects a client whose requests go to each in turn.
async fn client(instances: &[Server]) -> Result<Client> {
    let mut transports = Vec::new();
    for instance in instances {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        transports.push(HttpTransport::new(format!("http://{}/mcp", listener.local_addr()?))?);
        let options =
            HttpOptions::default().metrics_path("/metrics").liveness_path("/livez").health_path("/readyz");
        tokio::spawn(serve_http(listener, instance.clone(), options).into_future());
    }
    let person = |ask: FormAsk| async move {
        sleep(Duration::from_millis(20)).await;
        Ok(ask.accept(json!({"value": true}))?)
    };
    let transport = InTurn { transports, next: AtomicUsize::new(0) };
    Ok(Client::builder("traced", "1.0").on_elicit_form(person).connect(transport))
}

/// Sends each request to the next instance, as a proxy does.
struct InTurn {
    transports: Vec<HttpTransport>,
    next: AtomicUsize,
}

type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Transport for InTurn {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> Pending<'a, Result<ServerReply, TransportError>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.transports.len();
        self.transports[turn].exchange(request, on_notification)
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async {
            for transport in &self.transports {
                transport.close().await;
            }
        })
    }

    fn target(&self) -> &str {
        self.transports[0].target()
    }

    fn mirrors_parameters(&self) -> bool {
        true
    }
}
