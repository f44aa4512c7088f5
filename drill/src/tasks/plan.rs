//! The plan of a task: two or three questions, and steps, in one of some orders. The letters are those of `Run::part`.

use crate::random::Random;
use crate::tools::TaskTool;

/// The plans of tasks from the beginning. One in seven has a step that takes longer than the lease.
const REQUIRED: [&str; 11] = [
    "sqssqss",
    "ssqjqs",
    "sbsjs",
    "pspss",
    "sqcssqcss",
    "spssqs",
    "sqlsqss",
    "sos",
    "sqriu",
    "iqfs",
    "sqhqr",
];
/// The plans of calls that become tasks after their first round.
const PROMOTED: [&str; 6] = ["sqtssqss", "qtsjsqs", "sqtspss", "sqsctssqs", "sqmrs", "qtofs"];

/// Returns a plan.
pub(super) fn plan(random: &mut Random, tool: TaskTool) -> &'static str {
    let plans: &[&'static str] = if tool == TaskTool::Promoted { &PROMOTED } else { &REQUIRED };
    let count = u64::try_from(plans.len()).unwrap_or_default();
    plans[usize::try_from(random.below(count)).unwrap_or_default()]
}

/// Returns the questions of a plan in the order of their answers in the result, by their paths.
pub(super) fn questions(plan: &str) -> Vec<String> {
    let mut questions = Vec::new();
    for (number, part) in (0u32..).zip(plan.chars()) {
        match part {
            'q' | 'p' | 'i' | 'm' => questions.push(format!("q#{number}")),
            'o' => questions.extend([format!("q#{number}"), format!("d#{number}")]),
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
    fn each_plan_has_two_questions() {
        for plan in REQUIRED.iter().chain(&PROMOTED) {
            assert!((2..=3).contains(&questions(plan).len()), "{plan}");
        }
    }
}
