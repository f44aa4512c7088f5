//! Interleaved rounds: neighbours in time are what is compared.

use std::time::Instant;

use crate::arguments::Options;
use crate::error::Error;
use crate::measure::measure;
use crate::record;
use crate::report::{self, Series};

/// Measures round after round, the servers in turn within each case, and prints the report.
pub(crate) async fn compare(options: &Options) -> Result<(), Error> {
    let mut all: Vec<Series> = Vec::new();
    for case in &options.cases {
        for server in &options.servers {
            let checked = record::check(server.addr, *case).await;
            checked.map_err(|error| format!("{}: {error}", server.name))?;
        }
        for plan in &options.plans {
            let figures = options.servers.iter().map(|_| Vec::new()).collect();
            all.push(Series { case: *case, plan: *plan, figures });
        }
    }
    let started = Instant::now();
    let mut rounds = 0;
    while rounds < options.rounds && (rounds == 0 || started.elapsed() < options.deadline) {
        for series in &mut all {
            for (server, figures) in options.servers.iter().zip(&mut series.figures) {
                figures.push(measure(server, series.case, series.plan, options.processor).await?);
            }
        }
        rounds += 1;
        eprintln!("round {rounds} of {}: {:.0} s", options.rounds, started.elapsed().as_secs_f64());
    }
    if rounds < options.rounds {
        println!("Cut short: {rounds} of {} rounds before the deadline.\n", options.rounds);
    }
    report::print(options, &all, rounds);
    Ok(())
}
