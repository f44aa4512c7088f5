//! Prints time and allocations of one leg without any transport: bytes in, bytes out, on one thread.
//!
//! Rows are measured in turn, batch by batch, so that two of them may be compared: a leg asked by hand with the same leg
//! asked with `await`, and the legs of a long call with each other.

use antiphon::{
    Form,
    server::{Answer, Ask, Caller, Ctx, NoArguments, Reply, Server, Tool},
};
use serde_json::{Value, json};
use std::{error::Error, time::Instant};
use tokio::runtime::Runtime;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

/// A large argument: one text, or many small values.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Large {
    #[serde(default)]
    text: String,
    #[serde(default)]
    rows: Vec<Line>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "only decoded")]
struct Line {
    id: u32,
    name: String,
    price: f64,
    tags: Vec<String>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Provision {
    name: String,
}

#[derive(serde::Deserialize, Form)]
struct Place {
    region: String,
}

/// The size of a large argument.
const MIB: usize = 1 << 20;

async fn echo(_: &Ctx, args: Echo) -> String {
    args.text
}

async fn large(_: &Ctx, args: Large) -> String {
    format!("{} {}", args.text.len(), args.rows.len())
}

async fn by_hand(ctx: &Ctx, args: Provision) -> antiphon::Result<Reply<String>> {
    let ask = Ask::of::<Place>("region", "Which region should the database live in?");
    Ok(match ctx.by_hand().form::<Place>(&ask)? {
        None => ask.into(),
        Some(Answer::Accept(place)) => {
            Reply::Complete(format!("Provisioned {:?} in {}.", args.name, place.region))
        }
        Some(Answer::Decline | Answer::Cancel) => Reply::Complete("Nothing was provisioned.".into()),
    })
}

async fn by_await(ctx: &Ctx, args: Provision) -> antiphon::Result<String> {
    let place =
        ctx.elicit::<Place>("Which region should the database live in?").key("region").outcome().await?;
    Ok(match place {
        Answer::Accept(place) => format!("Provisioned {:?} in {}.", args.name, place.region),
        Answer::Decline | Answer::Cancel => "Nothing was provisioned.".into(),
    })
}

/// Nine rounds and thirty steps.
async fn long(ctx: &Ctx, _: NoArguments) -> antiphon::Result<String> {
    let mut steps = 0_u32;
    for round in 0..9 {
        let place: Place = ctx.elicit(format!("Where should part {round} live?")).nth(round).await?;
        for step in 0..if round < 3 { 4 } else { 3 } {
            let id: String = ctx
                .step(("create", round * 10 + step), async |s| Ok(format!("{}-{}", place.region, s.key())))
                .await?;
            steps += u32::from(!id.is_empty());
        }
    }
    Ok(format!("{steps} steps"))
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

/// One leg that is measured.
struct Row {
    name: String,
    message: Vec<u8>,
    expected: &'static str,
}

/// One leg, checked.
fn leg(runtime: &Runtime, server: &Server, row: &Row) -> Result<Value, Box<dyn Error>> {
    let reply = runtime.block_on(server.respond(&row.message, &Caller::default())).ok_or("no reply")?;
    let text = std::str::from_utf8(&reply.body)?;
    if text.contains(row.expected) {
        Ok(serde_json::from_str(text)?)
    } else {
        Err(format!("expected {}: {text}", row.expected).into())
    }
}

/// All legs of a call, each question answered with this region.
fn call(
    runtime: &Runtime,
    server: &Server,
    tool: &str,
    arguments: &Value,
    expected: &'static str,
) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut params = json!({"name": tool, "arguments": arguments});
    let mut rows = Vec::new();
    loop {
        let mut row =
            Row { name: format!("{tool}-{}", rows.len() + 1), message: request(&params), expected: "" };
        let result = leg(runtime, server, &row)?["result"].take();
        let is_over = result["resultType"] == "complete";
        row.expected = if is_over { expected } else { "input_required" };
        rows.push(row);
        if is_over {
            return Ok(rows);
        }
        let asked = result["inputRequests"].as_object().ok_or("no questions")?;
        let answer = |(key, _): (&String, &Value)| {
            (key.clone(), json!({"action": "accept", "content": {"region": "eu-west-1"}}))
        };
        params["inputResponses"] = asked.iter().map(answer).collect();
        params["requestState"] = result["requestState"].clone();
    }
}

fn measure(runtime: &Runtime, server: &Server, rows: &[Row], batches: usize) -> Result<(), Box<dyn Error>> {
    // As many as take a few milliseconds.
    let size = |row: &Row| if row.message.len() > 100_000 { 5 } else { 50 };
    let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(batches); rows.len()];
    for _ in 0..batches {
        for (row, times) in rows.iter().zip(&mut times) {
            let begin = Instant::now();
            for _ in 0..size(row) {
                std::hint::black_box(runtime.block_on(server.respond(&row.message, &Caller::default())));
            }
            times.push(begin.elapsed().as_secs_f64() * 1e6 / f64::from(size(row)));
        }
    }
    println!("{:<12} {:>8} {:>8} {:>12} {:>12}", "leg", "min us", "med us", "allocations", "bytes");
    for (row, times) in rows.iter().zip(&mut times) {
        leg(runtime, server, row)?;
        let counted = allocation_counter::measure(|| {
            drop(runtime.block_on(server.respond(&row.message, &Caller::default())));
        });
        times.sort_by(f64::total_cmp);
        let (least, median) = (times[0], times[batches / 2]);
        println!(
            "{:<12} {least:>8.2} {median:>8.2} {:>12} {:>12}",
            row.name, counted.count_total, counted.bytes_total
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    // What the names of the rows begin with, for a profiler; all of them without.
    let only = std::env::args().nth(1).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let server = Server::builder("bench", "1")
        .tool(Tool::new("echo", echo))
        .tool(Tool::new("hand", by_hand))
        .tool(Tool::new("await", by_await))
        .tool(Tool::new("long", long))
        .tool(Tool::new("large", large))
        .build()?;
    let name = json!({"name": "orders"});
    let mut rows = call(&runtime, &server, "echo", &json!({"text": "hello"}), "hello")?;
    rows.extend(call(&runtime, &server, "hand", &name, "Provisioned")?);
    rows.extend(call(&runtime, &server, "await", &name, "Provisioned")?);
    rows.extend(call(&runtime, &server, "long", &json!({}), "30 steps")?);
    let line = json!({"id": 17, "name": "a name", "price": 12.5, "tags": ["one", "two"]});
    let lines = vec![&line; MIB / (line.to_string().len() + 1)];
    rows.extend(call(&runtime, &server, "large", &json!({"text": "x".repeat(MIB)}), "1048576 0")?);
    rows.extend(call(&runtime, &server, "large", &json!({"rows": lines}), "0 ")?);
    rows.retain(|row| row.name.starts_with(&only));
    // The number of batches; few for a profiler that counts instructions.
    let batches = std::env::args().nth(2).map_or(Ok(100), |text| text.parse())?;
    measure(&runtime, &server, &rows, batches)
}
