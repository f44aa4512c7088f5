//! The report of a run of tasks.

use super::TaskHistory;
use crate::tools::TaskTool;
use crate::{
    fault::Faults,
    findings::{Findings, Rule},
    log::Subject as _,
    report::{changes, rules},
};
use std::{fmt::Write as _, time::Duration};

/// Checks the rules about all tasks together.
pub(crate) fn conclude(findings: &mut Findings) {
    // A run in which no task completes proves nothing.
    for tool in TaskTool::ALL {
        if of_tool(findings, tool, "completed") == 0 {
            findings.breaks(Rule::TaskEnds, format!("{}: no task completed", tool.tool()));
        }
    }
    // One error for a task of somebody else, and for a task that does not exist.
    let refusals = &findings.tasks.refusals;
    if refusals.len() > 1 {
        let what = format!("strangers got different errors: {refusals:?}");
        findings.breaks(Rule::TaskStrangers, what);
    }
}

fn of_tool(findings: &Findings, tool: TaskTool, outcome: &str) -> u64 {
    findings.tasks.outcomes.get(&(tool, outcome.to_owned())).copied().unwrap_or_default()
}

/// Returns the report of a run.
pub(crate) fn report(findings: &Findings, history: &TaskHistory, faults: &Faults, time: Duration) -> String {
    let mut text = String::new();
    let tasks = &findings.tasks;
    let versions = history.traces().versions;
    let _ = writeln!(
        text,
        "{} tasks and {} that nobody received, {} replies, {} effects in {:.1} s; {versions} legs of tasks of another version",
        tasks.tasks - tasks.orphans,
        tasks.orphans,
        history.count(),
        tasks.effects,
        time.as_secs_f64(),
    );
    let _ = writeln!(text, "  faults           {}", faults.words());
    for tool in TaskTool::ALL {
        let of_tool = tasks.outcomes.iter().filter(|((found, _), _)| *found == tool);
        let words: Vec<String> = of_tool.map(|((_, word), count)| format!("{count} {word}")).collect();
        let _ = writeln!(text, "  {:16} {}", tool.tool(), words.join(", "));
    }
    text.push_str(&rules(&Rule::TASKS, findings, words));
    text
}

fn words(rule: Rule, findings: &Findings) -> String {
    let (tasks, counts) = (&findings.tasks, &findings.counts);
    let steps = |tool| tasks.steps.get(&tool).copied().unwrap_or_default();
    match rule {
        Rule::TaskReconciled => format!(
            "with reconcile: one effect of each of {} steps, and {} late ones of paused processes",
            steps(TaskTool::Reconciled) + steps(TaskTool::Promoted),
            tasks.late
        ),
        Rule::TaskRerun => format!(
            "rerun_after_crash: {} repeats of {} steps, each under the key of its step, after a fault",
            tasks.repeats,
            steps(TaskTool::Rerun)
        ),
        Rule::TaskSingle => {
            format!("with neither: at most one effect of each of {} steps", steps(TaskTool::Single))
        }
        Rule::TaskEnds => format!(
            "every task ends: completed, cancelled, or {} times as `outcome_unknown` after a fault",
            tasks.unknown
        ),
        Rule::TaskAnswers => format!(
            "{} answers in results, each the first one of its question, of {} that were sent; {} questions had different ones",
            tasks.answers, tasks.sent, tasks.contested
        ),
        Rule::TaskAsked => format!(
            "{} questions in {} polls: one key and one text, not open after their answers; {} asked again after a wrong answer",
            tasks.questions, tasks.polls, tasks.again
        ),
        Rule::TaskKept => "no task is unknown to its owner after its creation was received".to_owned(),
        Rule::TaskFinal => format!("{} polls after the end have the same task", tasks.after_end),
        Rule::TaskStrangers => {
            format!("{} requests of somebody else have the error of an unknown task", tasks.thefts)
        }
        Rule::TaskCreated => format!("{} calls are one task each", tasks.promotions),
        Rule::TaskCancelled => {
            format!("{} tasks were compensated, all of them cancelled by their owners", tasks.compensated)
        }
        Rule::TaskRows => {
            format!("at most {} at once; {} after their time", counts.most_rows, counts.rows_left)
        }
        Rule::Changes => changes(findings),
        // The rules for calls have lines of their own.
        _ => String::new(),
    }
}
