//! Runs antiphon's programs against the server on rmcp, by a table of calls, and reports the outcome of each case.
//!
//! `interop-rmcp-drive cli PATH-TO-ANTIPHON TABLE LABEL (URL | -- COMMAND ..)` runs `antiphon call`, `prompt`, `read`
//! and the lists.
//! `interop-rmcp-drive library PATH-TO-TABLE-DRIVER TABLE LABEL (URL | -- COMMAND ..)` runs the client library with
//! every callback.

mod cli;
mod table;

use interop_rmcp_report::{Outcome, Report};
use std::{env, error::Error, fs, process::Command, process::ExitCode, process::Stdio};
use table::{Case, Table};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [driver, program, path, label, target @ ..] = words.as_slice() else {
        return Err(
            "usage: interop-rmcp-drive (cli | library) PROGRAM TABLE LABEL (URL | -- COMMAND ..)".into()
        );
    };
    let transport = if target.first().is_some_and(|word| word == "--") { "stdio" } else { "http" };
    let text = fs::read_to_string(path)?;
    let table = Table::read(&text)?;
    let mut report = Report::new("server for ours", transport)?;
    match driver.as_str() {
        "cli" => cli::run_cases(program, &table, label, target, &mut report)?,
        "library" => library(program, path, &table, label, target, &mut report)?,
        other => return Err(format!("unknown driver {other}").into()),
    }
    Ok(report.end()?)
}

/// Runs the table driver once and reports its line of each case.
fn library(
    program: &str,
    path: &str,
    table: &Table,
    label: &str,
    target: &[String],
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let output = Command::new(program).arg(path).args(target).stdin(Stdio::null()).output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    for case in table.cases.iter().filter(|case| !case.is_postponed() && !case.is_cli_only()) {
        report.add(&format!("{label}: {}", case.id), &outcome_of(case, &stdout), &case.note)?;
    }
    if !output.status.success() && !stdout.contains("FAILED ") {
        let stderr = String::from_utf8_lossy(&output.stderr);
        report.add(&format!("{label}: the run"), &Outcome::Fail(stderr.into_owned()), "")?;
    }
    Ok(())
}

fn outcome_of(case: &Case, stdout: &str) -> Outcome {
    let failure = format!("FAILED {}: ", case.id);
    for line in stdout.lines() {
        if line.strip_prefix("ok     ") == Some(case.id.as_str()) {
            return Outcome::Pass;
        }
        if let Some(fault) = line.strip_prefix(&failure) {
            return Outcome::Fail(fault.to_owned());
        }
    }
    Outcome::Fail("the driver printed no line for this case".to_owned())
}
