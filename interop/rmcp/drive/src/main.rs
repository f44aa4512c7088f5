//! Runs antiphon's programs against the server on rmcp, through a table of calls, and reports case by case.
//!
//! `interop-rmcp-drive cli PATH-TO-ANTIPHON TABLE LABEL (URL | -- COMMAND ..)`: `antiphon call`, `prompt`, `read` and the lists.
//! `interop-rmcp-drive library PATH-TO-TABLE-DRIVER TABLE LABEL (URL | -- COMMAND ..)`: our client library with every callback.

mod cli;
mod table;

use interop_rmcp_report::{Outcome, Report};
use std::{env, error::Error, fs, process::Command, process::ExitCode, process::Stdio};
use table::{Case, Table};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [way, program, path, label, target @ ..] = words.as_slice() else {
        return Err(
            "usage: interop-rmcp-drive (cli | library) PROGRAM TABLE LABEL (URL | -- COMMAND ..)".into()
        );
    };
    let transport = if target.first().is_some_and(|word| word == "--") { "stdio" } else { "http" };
    let text = fs::read_to_string(path)?;
    let table = Table::read(&text)?;
    let mut report = Report::new("server for ours", transport)?;
    match way.as_str() {
        "cli" => cli::play(program, &table, label, target, &mut report)?,
        "library" => library(program, path, &table, label, target, &mut report)?,
        other => return Err(format!("there is no way {other}").into()),
    }
    Ok(report.end()?)
}

/// One run of the table driver; its lines, case by case.
fn library(
    program: &str,
    path: &str,
    table: &Table,
    label: &str,
    target: &[String],
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let done = Command::new(program).arg(path).args(target).stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    for case in table.cases.iter().filter(|case| !case.waits() && !case.cli_alone()) {
        report.add(&format!("{label}: {}", case.id), &of_lines(case, &said), &case.note)?;
    }
    if !done.status.success() && !said.contains("FAILED ") {
        let words = String::from_utf8_lossy(&done.stderr);
        report.add(&format!("{label}: the run"), &Outcome::Fail(words.into_owned()), "")?;
    }
    Ok(())
}

fn of_lines(case: &Case, said: &str) -> Outcome {
    let failure = format!("FAILED {}: ", case.id);
    for line in said.lines() {
        if line.strip_prefix("ok     ") == Some(case.id.as_str()) {
            return Outcome::Pass;
        }
        if let Some(fault) = line.strip_prefix(&failure) {
            return Outcome::Fail(fault.to_owned());
        }
    }
    Outcome::Fail("the driver says nothing of it".to_owned())
}
