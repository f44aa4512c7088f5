//! The tables of a run.

use crate::{
    fault::Faults,
    findings::{Findings, Rule},
    history::History,
    level::Level,
    log::Subject as _,
};
use std::{fmt::Write as _, time::Duration};

/// Returns the report of a run.
pub(crate) fn report(findings: &Findings, history: &History, faults: &Faults, time: Duration) -> String {
    let mut text = String::new();
    let counts = &findings.counts;
    let (spilled, versions) = {
        let traces = history.traces();
        (traces.spilled, traces.versions)
    };
    let _ = writeln!(
        text,
        "{} calls, {} replies, {} effects in {:.1} s; {} calls with a cut request, {spilled} records moved to the store, \
         {versions} requests of calls of another version",
        counts.calls,
        history.count(),
        counts.effects,
        time.as_secs_f64(),
        counts.cut,
    );
    let _ = writeln!(text, "  faults      {}", faults.words());
    for level in Level::ALL {
        let of_level = findings.outcomes.iter().filter(|((found, _), _)| *found == level);
        let words: Vec<String> = of_level.map(|((_, word), count)| format!("{count} {word}")).collect();
        let _ = writeln!(text, "  {:11} {}", level.tool(), words.join(", "));
    }
    text.push_str(&rules(&Rule::CALLS, findings, words));
    text
}

/// Returns the lines of rules, with the examples that break them.
pub(crate) fn rules(rules: &[Rule], findings: &Findings, words: fn(Rule, &Findings) -> String) -> String {
    let mut text = String::new();
    for rule in rules {
        let broken = findings.broken(*rule);
        let mark = if broken.is_none() { "ok    " } else { "BROKEN" };
        let _ = writeln!(text, "{mark} {} {}", rule.number(), words(*rule, findings));
        if let Some(broken) = broken {
            for example in &broken.examples {
                let _ = writeln!(text, "         {example}");
            }
            let more = broken.count.saturating_sub(u64::try_from(broken.examples.len()).unwrap_or_default());
            if more > 0 {
                let _ = writeln!(text, "         and {more} more");
            }
        }
    }
    text
}

fn words(rule: Rule, findings: &Findings) -> String {
    let counts = &findings.counts;
    let steps = |level| counts.steps.get(&level).copied().unwrap_or_default();
    match rule {
        Rule::SingleUse => format!("single_use: at most one effect of each of {} steps", steps(Level::Once)),
        Rule::Reconciled => format!(
            "write_ahead with reconcile: one effect of each of {} steps, and {} late ones of paused processes",
            steps(Level::Reconciled),
            counts.late
        ),
        Rule::Rerun => format!(
            "rerun_after_crash: {} repeats of {} steps, each under the key of its step",
            counts.repeats,
            steps(Level::Rerun)
        ),
        Rule::SameReplies => {
            format!("{} results that were sent again are byte for byte the first one", counts.again)
        }
        Rule::OneWinner => format!(
            "{} legs with different answers ({} at the same time): one wins, {} replies are `used`, {} legs by a late copy",
            counts.contested, counts.rivalries, counts.used, counts.overtaken
        ),
        Rule::OneRun => {
            "no process sends a result of its own for a leg that another one took over".to_owned()
        }
        Rule::Ends => format!(
            "every call ends with a result or can be resumed, but for {} `outcome_unknown`, each after a fault",
            counts.unknown
        ),
        Rule::Answers => format!(
            "{} accepted answers are in the results of their calls, and none was asked for again",
            counts.answers
        ),
        Rule::Strangers => {
            format!("{} requests with the state of somebody else have no result", counts.thefts)
        }
        Rule::Rows => format!(
            "at most {} rows and {} blobs at once; {} and {} are left after their time",
            counts.most_rows.calls, counts.most_rows.blobs, counts.rows_left.calls, counts.rows_left.blobs
        ),
        Rule::Liveness => {
            let words: Vec<String> = Level::ALL
                .into_iter()
                .map(|level| {
                    let (done, all) = completed(findings, level);
                    format!("{}: {done} of {all}", level.tool())
                })
                .collect();
            format!("99 % of calls complete: {}", words.join(", "))
        }
        Rule::Traces => {
            format!("the log of the fleet has {} legs, each under the id of its call", counts.traced)
        }
        Rule::Changes => changes(findings),
        // The rules for tasks have lines of their own.
        _ => String::new(),
    }
}

/// Returns the line of the rule about changes, which calls and tasks have.
pub(crate) fn changes(findings: &Findings) -> String {
    findings.counts.changes.clone().unwrap_or_else(|| "one instance reports to nobody".to_owned())
}

/// Returns the number of calls that are over, and of all calls. A call of `single_use` may end as unknown. What may diverge is a rule
/// of its own.
pub(crate) fn completed(findings: &Findings, level: Level) -> (u64, u64) {
    // A session is lost with its process.
    let counts = |((found, word), _): &(&(Level, String), &u64)| *found == level && !word.contains("session");
    findings.outcomes.iter().filter(counts).fold((0, 0), |(done, all), ((_, word), count)| {
        let is_over = word == "result"
            || word == "refused: flow_diverged"
            || level == Level::Once && word == "outcome_unknown";
        (done + if is_over { *count } else { 0 }, all + count)
    })
}
