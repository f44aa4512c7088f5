//! Drives servers on antiphon with the client of rmcp.
//!
//! `interop-rmcp-client (demo | asks) http URL [URL]`: two URLs are replicas with one key file, and requests alternate.
//! `interop-rmcp-client (demo | asks) stdio COMMAND ARGUMENT ..`
//! `interop-rmcp-client tasks ..`: the same two, with the everything server of `conformance/`.
//! Prints one line per check. The exit code is not zero if a check failed.

mod by_hand;
mod check;
mod fleet;
mod lists;
mod live;
mod refusals;
mod replica_client;
mod scripted_client;
mod table_cases;
mod tasks;

use check::{Check, CheckResult};
use fleet::{Fleet, Target};
use interop_rmcp_report::{Outcome, Report};
use std::{env, error::Error, process::ExitCode, time::Duration};
use table_cases::Case;

/// Limit of one check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error + Send + Sync>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [suite, transport, target @ ..] = words.as_slice() else {
        return Err(
            "usage: interop-rmcp-client (demo | asks | tasks) (http URL [URL] | stdio COMMAND ARGUMENT ..)"
                .into(),
        );
    };
    let target = match transport.as_str() {
        "http" if !target.is_empty() => Target::Http(target.to_vec()),
        "stdio" if !target.is_empty() => Target::Stdio(target.to_vec()),
        _ => return Err("usage: URLs after `http`, or a command after `stdio`".into()),
    };
    let mut report = Report::new("client of ours", transport)?;
    let (cases, suites): (&str, &[&[(&str, Check)]]) = match suite.as_str() {
        "demo" => (include_str!("../demo.json"), &[lists::CHECKS, by_hand::CHECKS, refusals::CHECKS]),
        "asks" => (include_str!("../asks.json"), &[live::CHECKS, refusals::CHECKS_OF_ASKS]),
        "tasks" => ("[]", &[tasks::CHECKS]),
        other => return Err(format!("unknown suite {other}").into()),
    };
    let cases: Vec<Case> = table_cases::read(cases)?;
    let fleet = match Fleet::connect(&target).await {
        Ok(fleet) => fleet,
        Err(fault) => {
            report.add("server/discover", &Outcome::Fail(fault), "")?;
            return Ok(report.end()?);
        }
    };
    for case in &cases {
        let outcome = within(case.run(&fleet)).await;
        report.add(&case.id, &outcome, &case.note)?;
    }
    for (name, check) in suites.iter().copied().flatten() {
        report.add(name, &within(check(&fleet)).await, "")?;
    }
    if suite == "tasks" {
        report.add(tasks::FOLLOWED, &tasks::followed(&fleet).await, "")?;
    }
    fleet.close().await;
    Ok(report.end()?)
}

async fn within(check: impl Future<Output = CheckResult>) -> Outcome {
    match tokio::time::timeout(CHECK_TIMEOUT, check).await {
        Ok(verdict) => verdict.into(),
        Err(_) => Outcome::Fail(format!("not finished after {} s", CHECK_TIMEOUT.as_secs())),
    }
}
