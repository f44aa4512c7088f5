//! The plan of a task: two questions and five steps, in one of some orders. The letters are those of `tools::run`.

use crate::random::Random;
use crate::tools::TaskTool;

/// The plans of tasks from the beginning. One in seven has a step that takes longer than the lease.
const REQUIRED: [&str; 7] = ["sqssqss", "ssqjqs", "sbsjs", "pspss", "sqcssqcss", "spssqs", "sqlsqss"];
/// The plans of calls that become tasks after their first round.
const PROMOTED: [&str; 4] = ["sqtssqss", "qtsjsqs", "sqtspss", "sqsctssqs"];

/// Returns a plan.
pub(super) fn plan(random: &mut Random, tool: TaskTool) -> &'static str {
    let plans: &[&'static str] = if tool == TaskTool::Promoted { &PROMOTED } else { &REQUIRED };
    let count = u64::try_from(plans.len()).unwrap_or_default();
    plans[usize::try_from(random.below(count)).unwrap_or_default()]
}

/// Returns the steps of a plan, by their names in the ledger.
pub(super) fn steps(plan: &str) -> Vec<String> {
    let mut steps = Vec::new();
    for (number, part) in (0u32..).zip(plan.chars()) {
        match part {
            's' | 'l' | 'p' => steps.push(format!("{part}{number}")),
            'j' => steps.extend([format!("j{number}"), format!("k{number}")]),
            _ => (),
        }
    }
    steps
}

/// Returns the questions of a plan in the order of their answers in the result, by their paths.
pub(super) fn questions(plan: &str) -> Vec<String> {
    let mut questions = Vec::new();
    for (number, part) in (0u32..).zip(plan.chars()) {
        match part {
            'q' | 'p' => questions.push(format!("q#{number}")),
            'b' => questions.extend([format!("b#{number}"), format!("d#{number}")]),
            _ => (),
        }
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_plan_has_two_questions_and_five_steps() {
        for plan in REQUIRED.iter().chain(&PROMOTED) {
            assert_eq!((questions(plan).len(), steps(plan).len()), (2, 5), "{plan}");
        }
    }
}
