//! The cost of reading one request, in one walk and in steps, beside one pass of serde_json over the same text.
//!
//! `bench-reader` prints a table. `bench-reader REQUEST READER TIMES` only reads, for a profiler that counts
//! instructions.

use antiphon_seal::canonical;
use antiphon_wire::{Incoming, RequestMeta, RequestParams, StringMember, WholeRequest};
use serde_json::{Value, json};
use std::{error::Error, hint::black_box, time::Instant};

const META: &str = concat!(
    r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#,
);

fn request(rest: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{META},{rest}}}}}"#)
        .into_bytes()
}

/// The requests by name: those of the benchmark over HTTP, and 1 MiB of arguments in four shapes.
fn cases() -> Vec<(&'static str, Vec<u8>)> {
    const MIB: usize = 1 << 20;
    let state = "Aa0_".repeat(150);
    let answer = r#"{"region":{"action":"accept","content":{"region":"eu-west-1"}}}"#;
    let second = format!(
        r#""name":"provision","arguments":{{"name":"orders"}},"inputResponses":{answer},"requestState":"r1.{state}""#
    );
    let large = |arguments: &Value| request(&format!(r#""name":"echo","arguments":{arguments}"#));
    let row = json!({"id": 17, "name": "a name", "price": 12.5, "tags": ["one", "two"], "open": true, "note": null});
    let rows = MIB / (row.to_string().len() + 1);
    let lines = "a line of text, as in a file\n".repeat(MIB / 31);
    vec![
        ("echo", request(r#""name":"echo","arguments":{"text":"hello"}"#)),
        ("leg-2", request(&second)),
        ("1M-text", large(&json!({"text": "x".repeat(MIB)}))),
        ("1M-lines", large(&json!({"text": lines}))),
        ("1M-rows", large(&json!({"rows": vec![row; rows]}))),
        ("1M-numbers", large(&json!({"numbers": vec![123_456; MIB / 7]}))),
    ]
}

type Reader = fn(&[u8]) -> bool;

/// The readers by name; each returns whether it read the request.
const READERS: [(&str, Reader); 4] =
    [("walk", walk), ("steps", steps), ("serde-skip", serde_skip), ("serde-value", serde_value)];

fn walk(message: &[u8]) -> bool {
    WholeRequest::read(message)
        .is_some_and(|request| request.params.name.as_ref().and_then(StringMember::text).is_some())
}

/// Envelope, params, metadata and the walk for names that are there twice, one after the other.
fn steps(message: &[u8]) -> bool {
    let Ok(Incoming::Request(request)) = Incoming::parse(message) else { return false };
    let Some(text) = request.params else { return false };
    let Ok(params) = serde_json::from_str::<RequestParams<'_>>(text.get()) else { return false };
    let Some(Ok(meta)) = params.meta.map(|meta| serde_json::from_str::<RequestMeta<'_>>(meta.get())) else {
        return false;
    };
    let is_complete = meta.protocol_version.is_some() && meta.asks.is_some();
    is_complete && params.name.is_some() && canonical::check(text.get()).is_ok()
}

fn serde_skip(message: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(message).is_ok()
}

fn serde_value(message: &[u8]) -> bool {
    serde_json::from_slice::<Value>(message).is_ok()
}

/// The least and the median time of one read, in microseconds.
fn time(reader: Reader, message: &[u8]) -> (f64, f64) {
    let (batches, size) = if message.len() > 10_000 { (25, 4) } else { (41, 5_000) };
    let mut times: Vec<f64> = (0..batches)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..size {
                black_box(reader(black_box(message)));
            }
            begin.elapsed().as_secs_f64() * 1e6 / f64::from(size)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

fn main() -> Result<(), Box<dyn Error>> {
    let cases = cases();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [case, reader, times] = &words[..] {
        let (_, message) = cases.iter().find(|(name, _)| name == case).ok_or("no such case")?;
        let (_, reader) = READERS.iter().find(|(name, _)| name == reader).ok_or("no such reader")?;
        for _ in 0..times.parse()? {
            black_box(reader(black_box(message)));
        }
        return Ok(());
    }
    println!("{:<12} {:<12} {:>10} {:>10}", "request", "reader", "min us", "med us");
    for (case, message) in &cases {
        for (name, reader) in READERS {
            if !reader(message) {
                return Err(format!("{name} does not read {case}").into());
            }
            let (least, median) = time(reader, message);
            println!("{case:<12} {name:<12} {least:>10.3} {median:>10.3}");
        }
    }
    Ok(())
}
