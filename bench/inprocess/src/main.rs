//! What one leg costs without any transport: bytes in, bytes out, on one thread. Time and allocations.

use antiphon::{
    server::{Answer, Ask, Caller, Ctx, Reply, Server, Tool},
    wire::{FormField, FormSchema},
};
use serde_json::{Value, json};
use std::{error::Error, time::Instant};
use tokio::runtime::Runtime;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Provision {
    name: String,
}

#[derive(serde::Deserialize)]
struct Place {
    region: String,
}

async fn echo(_: &Ctx, args: Echo) -> String {
    args.text
}

async fn provision(ctx: &Ctx, args: Provision) -> antiphon::Result<Reply<String>> {
    let ask = Ask::form(
        "region",
        "Which region should the database live in?",
        FormSchema::new(vec![FormField::text("region")]),
    );
    Ok(match ctx.form::<Place>(&ask)? {
        None => ask.into(),
        Some(Answer::Accept(place)) => {
            Reply::Complete(format!("Provisioned {:?} in {}.", args.name, place.region))
        }
        Some(Answer::Decline | Answer::Cancel) => Reply::Complete("Nothing was provisioned.".into()),
    })
}

fn request(params: &Value) -> Vec<u8> {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string().into_bytes()
}

/// One leg, checked.
fn leg(runtime: &Runtime, server: &Server, message: &[u8], expected: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let reply = runtime.block_on(server.respond(message, &Caller::default())).ok_or("no reply")?;
    let text = std::str::from_utf8(&reply.body)?;
    if text.contains(expected) { Ok(reply.body) } else { Err(format!("expected {expected}: {text}").into()) }
}

fn measure(
    runtime: &Runtime,
    server: &Server,
    name: &str,
    message: &[u8],
    expected: &str,
) -> Result<(), Box<dyn Error>> {
    leg(runtime, server, message, expected)?;
    let counted = allocation_counter::measure(|| {
        let reply = runtime.block_on(server.respond(message, &Caller::default()));
        drop(reply);
    });
    let (batches, size) = (25, 2_000);
    let mut times: Vec<f64> = Vec::with_capacity(batches);
    for _ in 0..batches {
        let begin = Instant::now();
        for _ in 0..size {
            std::hint::black_box(runtime.block_on(server.respond(message, &Caller::default())));
        }
        times.push(begin.elapsed().as_secs_f64() * 1e6 / f64::from(size));
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{name:<12} {:>8.2} {:>8.2} {:>12} {:>12}",
        times[0],
        times[batches / 2],
        counted.count_total,
        counted.bytes_total
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    // One leg's name, for a profiler; all of them without.
    let only = std::env::args().nth(1);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let server = Server::builder("bench", "1")
        .tool(Tool::new("echo", echo))
        .tool(Tool::new("provision", provision))
        .build()?;
    println!("{:<12} {:>8} {:>8} {:>12} {:>12}", "leg", "min us", "med us", "allocations", "bytes");
    let message = request(&json!({"name": "echo", "arguments": {"text": "hello"}}));
    if wanted("echo") {
        measure(&runtime, &server, "echo", &message, "hello")?;
    }
    let first = request(&json!({"name": "provision", "arguments": {"name": "orders"}}));
    if wanted("provision-1") {
        measure(&runtime, &server, "provision-1", &first, "input_required")?;
    }
    let reply: Value = serde_json::from_slice(&leg(&runtime, &server, &first, "input_required")?)?;
    let second = request(&json!({
        "name": "provision",
        "arguments": {"name": "orders"},
        "requestState": reply["result"]["requestState"],
        "inputResponses": {"region": {"action": "accept", "content": {"region": "eu-west-1"}}}
    }));
    if wanted("provision-2") {
        measure(&runtime, &server, "provision-2", &second, "Provisioned")?;
    }
    Ok(())
}
