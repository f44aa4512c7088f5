//! Runs `antiphon`, one process per case.

use crate::table::{Case, Table};
use interop_rmcp_report::{Outcome, Report};
use serde_json::Value;
use std::{
    error::Error,
    fs,
    process::{Command, Output, Stdio},
};

type CheckResult = Result<(), String>;

/// The hosts of the pages. The command line agrees to a page with its host.
const HOSTS: [(&str, &str); 2] = [("checkout=accept", "pay.example.com"), ("page=accept", "example.com")];

/// Runs every case, the lists, and one call that continues in a second process.
pub(crate) fn run_cases(
    antiphon: &str,
    table: &Table,
    label: &str,
    target: &[String],
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    report.add(&format!("{label}: server/discover"), &discover(antiphon, table, target).into(), "")?;
    report.add(&format!("{label}: tools/list"), &tools(antiphon, table, target).into(), "")?;
    for case in table.cases.iter().filter(|case| !case.is_postponed()) {
        let verdict = run(antiphon, &arguments_of(case), target).and_then(|output| check_case(case, &output));
        report.add(&format!("{label}: {}", case.id), &verdict.into(), &case.note)?;
    }
    report.add(
        &format!("{label}: --once, then resume in another process"),
        &resume(antiphon, target).into(),
        "",
    )?;
    for (id, why) in &table.unsupported {
        report.add(id, &Outcome::Unsupported(why.clone()), "")?;
    }
    Ok(())
}

fn run(antiphon: &str, words: &[String], target: &[String]) -> Result<Output, String> {
    let mut command = Command::new(antiphon);
    command.args(words).args(target).stdin(Stdio::null());
    command.output().map_err(|fault| fault.to_string())
}

fn json(output: &Output) -> Result<Value, String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("stdout is not JSON; stderr: {}", stderr.trim()))
}

fn arguments_of(case: &Case) -> Vec<String> {
    let subcommand = match case.text("kind") {
        "tool" => "call",
        "prompt" => "prompt",
        _ => "read",
    };
    let mut words = vec![subcommand.to_owned(), case.text("name").to_owned(), "--json".to_owned()];
    if let Some(arguments) = case.members.get("arguments").filter(|_| subcommand != "read") {
        words.extend(["--args".to_owned(), arguments.to_string()]);
    }
    let with_host = |answer: &str| match HOSTS.iter().find(|(known, _)| *known == answer) {
        Some((_, host)) => format!("{answer}@{host}"),
        None => answer.to_owned(),
    };
    words.extend(case.texts("answers").flat_map(|answer| ["--answer".to_owned(), with_host(answer)]));
    words
}

fn check_case(case: &Case, output: &Output) -> CheckResult {
    let (exit, status) = wanted(case);
    let reply = json(output)?;
    let suffix = || format!("; the reply is {reply}");
    if output.status.code() != Some(exit) {
        return Err(format!("exit code {:?}, wanted {exit}{}", output.status.code(), suffix()));
    }
    if reply["status"] != status {
        return Err(format!("status {}, wanted {status}{}", reply["status"], suffix()));
    }
    // A question of a task is no round of the call.
    let asks = if case.id.starts_with("task: ") { None } else { case.members["asks"].as_array() };
    let rounds = asks.map_or(0, Vec::len);
    if case.members["outcome"].get("gives_up").is_none() && reply["rounds"] != rounds {
        return Err(format!("{} rounds, wanted {rounds}{}", reply["rounds"], suffix()));
    }
    for name in case.members["cli"]["names"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !reply.to_string().contains(name) {
            return Err(format!("{name} is missing{}", suffix()));
        }
    }
    if case.members.get("cli").is_some() {
        return Ok(());
    }
    outcome(case, &reply).map_err(|fault| fault + &suffix())
}

/// Exit code and status: those of the case if it has them, else those that follow from its outcome.
fn wanted(case: &Case) -> (i32, &str) {
    let cli = &case.members["cli"];
    if let (Some(exit), Some(status)) =
        (cli["exit"].as_i64().and_then(|exit| i32::try_from(exit).ok()), cli["status"].as_str())
    {
        return (exit, status);
    }
    match case.members["outcome"].as_object().and_then(|outcome| outcome.keys().next()).map(String::as_str) {
        Some("text") => (0, "done"),
        Some("tool_error") => (1, "error"),
        Some("pending") => (3, "pending"),
        _ => (4, "error"),
    }
}

fn outcome(case: &Case, reply: &Value) -> CheckResult {
    let (outcome, result) = (&case.members["outcome"], &reply["result"]);
    let text = match case.text("kind") {
        "tool" => &result["content"][0]["text"],
        "prompt" => &result["messages"][0]["content"]["text"],
        _ => &result["contents"][0]["text"],
    };
    let wanted = outcome.get("text").or_else(|| outcome.get("tool_error"));
    if wanted.is_some_and(|wanted| wanted != text) {
        return Err(format!("text {text}"));
    }
    if let Some(wanted) = case.members.get("structured")
        && wanted != &result["structuredContent"]
    {
        return Err(format!("structuredContent {}", result["structuredContent"]));
    }
    if let Some(wanted) = outcome.get("error")
        && (wanted["code"] != reply["error"]["code"]
            || !reply["error"]["message"]
                .as_str()
                .zip(wanted["message"].as_str())
                .is_some_and(|(message, part)| message.contains(part)))
    {
        return Err("a different error".to_owned());
    }
    Ok(())
}

fn discover(antiphon: &str, table: &Table, target: &[String]) -> CheckResult {
    let found = json(&run(antiphon, &["discover".to_owned(), "--json".to_owned()], target)?)?;
    if found.to_string().contains(&table.lists["server"].to_string())
        && found.to_string().contains("\"2026-07-28\"")
    {
        Ok(())
    } else {
        Err(format!("found {found}"))
    }
}

fn tools(antiphon: &str, table: &Table, target: &[String]) -> CheckResult {
    let found = json(&run(antiphon, &["tools".to_owned(), "--json".to_owned()], target)?)?;
    let names: Vec<&Value> =
        found["result"]["tools"].as_array().into_iter().flatten().map(|tool| &tool["name"]).collect();
    let wanted: Vec<&Value> = table.lists["tools"].as_array().into_iter().flatten().collect();
    if names == wanted { Ok(()) } else { Err(format!("listed {names:?}")) }
}

/// Starts a call in one process and finishes it in another. rmcp seals the state with a fixed key, so any process of
/// the server can open it.
fn resume(antiphon: &str, target: &[String]) -> CheckResult {
    let word = |word: &str| word.to_owned();
    let begin = ["call", "provision", "--json", "--once", "--args", r#"{"name":"orders"}"#].map(word);
    let output = run(antiphon, &begin, target)?;
    if output.status.code() != Some(3) {
        return Err(format!("exit code {:?}, wanted 3", output.status.code()));
    }
    let file = std::env::temp_dir().join(format!("interop-rmcp-pending-{}", std::process::id()));
    fs::write(&file, &output.stdout).map_err(|fault| fault.to_string())?;
    let name = file.display().to_string();
    let output =
        run(antiphon, &["resume", &name, "--json", "--answer", "region.region=eu-west-1"].map(word), target);
    fs::remove_file(&file).map_err(|fault| fault.to_string())?;
    let reply = json(&output?)?;
    match reply["result"]["content"][0]["text"].as_str() {
        Some("Provisioned orders in \"eu-west-1\".") => Ok(()),
        _ => Err(format!("found {reply}")),
    }
}
