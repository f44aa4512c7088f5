//! Drives servers on antiphon with the client of tower-mcp.
//!
//! `interop-tower-mcp-client (demo | tasks) (http URL | stdio COMMAND ARGUMENT ..)`: `demo` is `antiphon serve-demo`, `tasks`
//! the everything server of `conformance/`. Prints one line per check, and `N passed, N failed` at the end. The exit code is
//! not zero if a check failed.

mod check;
mod connection;
mod demo;
mod error;
mod report;
mod sessions;
mod tasks;

use check::Check;
use connection::Target;
use error::AnyError;
use futures::future::join_all;
use report::{Outcome, Report};
use std::{env, process::ExitCode, time::Duration};

/// Limit of one check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<ExitCode, AnyError> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (suite, target) = match words[..] {
        [suite, "http", url] => (suite, Target::Http(url.to_owned())),
        [suite, "stdio", ref command @ ..] if !command.is_empty() => {
            (suite, Target::Stdio(command.iter().map(|&word| word.to_owned()).collect()))
        }
        _ => return Err("usage: (demo | tasks) (http URL | stdio COMMAND ARGUMENT ..)".into()),
    };
    let (checks, unsupported): (Vec<&Check>, _) = match suite {
        "demo" => (demo::CHECKS.iter().collect(), demo::UNSUPPORTED),
        "tasks" => (tasks::CHECKS.iter().chain(sessions::CHECKS).collect(), sessions::UNSUPPORTED),
        other => return Err(format!("unknown suite {other}").into()),
    };
    let mut report = Report::new(target.transport())?;
    // Side by side: a check mostly waits between two polls.
    let outcomes = join_all(checks.iter().map(|check| outcome(check, &target))).await;
    for (Check { name, era, .. }, outcome) in checks.iter().zip(outcomes) {
        report.add(era, name, &outcome)?;
    }
    for (era, name, why) in unsupported {
        report.add(era, name, &Outcome::Unsupported((*why).to_owned()))?;
    }
    Ok(report.end()?)
}

async fn outcome(check: &Check, target: &Target) -> Outcome {
    match tokio::time::timeout(CHECK_TIMEOUT, (check.run)(target)).await {
        Ok(Ok(())) => Outcome::Pass,
        Ok(Err(fault)) => Outcome::Fail(fault.to_string()),
        Err(_) => Outcome::Fail(format!("not finished after {CHECK_TIMEOUT:?}")),
    }
}
