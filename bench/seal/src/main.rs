//! Prints the time of a call's sealed tokens: nanoseconds and allocations for each operation.
//!
//! The rows are measured in turn, batch by batch, so that two of them may be compared.

use antiphon_seal::{Binding, Call, KeyRing, Principal, Sealer, canonical::canonical};
use std::{
    error::Error,
    hint::black_box,
    time::{Duration, Instant, SystemTime},
};

const BATCHES: usize = 60;
const BATCH: u32 = 2_000;
const TTL: Duration = Duration::from_mins(10);
const AUDIENCE: &str = "antiphon-demo";
const ARGUMENTS: &str = r#"{"name":"orders"}"#;
const MANY_ARGUMENTS: &str =
    r#"{"name":"orders","size":{"cpus":4,"memory":16},"tags":["a","b"],"region":null,"dry_run":false}"#;

/// One operation that is measured.
struct Row<'a> {
    name: &'static str,
    run: Box<dyn Fn() -> bool + 'a>,
}

fn row<'a>(name: &'static str, run: impl Fn() -> bool + 'a) -> Row<'a> {
    Row { name, run: Box::new(run) }
}

fn main() -> Result<(), Box<dyn Error>> {
    // The rows whose names begin with this argument, for a profiler; all of them without it.
    let only = std::env::args().nth(1).unwrap_or_default();
    let now = SystemTime::now();
    let sealer = Sealer::new(&KeyRing::random()?, AUDIENCE);
    let alice = Principal::user("alice").with_issuer("https://issuer.example").with_client_id("client-1");
    let anonymous = Binding {
        method: "tools/call",
        target: "provision",
        arguments: Some(ARGUMENTS),
        principal: None,
        tool_version: 1,
    };
    let named = Binding { principal: Some(&alice), arguments: Some(MANY_ARGUMENTS), ..anonymous };
    // With the head of the claims, 192 bytes after padding.
    let payload = [7; 64];
    // A call whose first token is made: as one that came back from a token.
    let call = Call::begin(now, None)?;
    let token = sealer.seal(&call, &anonymous, &payload, TTL, now)?;
    let token_named = sealer.seal(&call, &named, &payload, TTL, now)?;
    let secret = call.secret();

    let mut rows = vec![
        row("begin", || Call::begin(now, None).is_ok()),
        row("begin + seal", || {
            Call::begin(now, None)
                .is_ok_and(|call| sealer.seal(&call, &anonymous, &payload, TTL, now).is_ok())
        }),
        row("seal", || sealer.seal(&call, &anonymous, &payload, TTL, now).is_ok()),
        row("open", || sealer.open(&token, &anonymous, now).is_ok()),
        row("seal, principal", || sealer.seal(&call, &named, &payload, TTL, now).is_ok()),
        row("open, principal", || sealer.open(&token_named, &named, now).is_ok()),
        row("pin of 400 bytes", || secret.pin(&[b'q'; 400]).matches(&secret.pin(&[]))),
        row("request digest", || secret.request_digest("tools/call", "provision", Some(ARGUMENTS)).is_ok()),
        row("idempotency key", || secret.idempotency_key("", "charge").len() == 32),
        row("canonical, 1", || canonical(ARGUMENTS).is_ok()),
        row("canonical, 8", || canonical(MANY_ARGUMENTS).is_ok()),
    ];
    rows.retain(|row| row.name.starts_with(&only));
    print(&rows);
    Ok(())
}

fn print(rows: &[Row<'_>]) {
    let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(BATCHES); rows.len()];
    for _ in 0..BATCHES {
        for (row, times) in rows.iter().zip(&mut times) {
            let begin = Instant::now();
            for _ in 0..BATCH {
                black_box((row.run)());
            }
            times.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH));
        }
    }
    println!("{:<18} {:>8} {:>8} {:>12} {:>8}", "operation", "min ns", "med ns", "allocations", "bytes");
    for (row, times) in rows.iter().zip(&mut times) {
        let counted = allocation_counter::measure(|| {
            black_box((row.run)());
        });
        times.sort_by(f64::total_cmp);
        println!(
            "{:<18} {:>8.0} {:>8.0} {:>12} {:>8}",
            row.name,
            times[0],
            times[BATCHES / 2],
            counted.count_total,
            counted.bytes_total
        );
    }
}
