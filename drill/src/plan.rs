//! The plan of a call: one letter for each part of its handler.

use crate::random::Random;

/// Returns a plan: one to six rounds, with steps between them.
pub(crate) fn plan(random: &mut Random) -> String {
    let mut plan = String::new();
    let rounds = 1 + random.below(6);
    for _ in 0..rounds {
        plan.push_str(["s", "j", "w", "c", "ss", ""][usize::try_from(random.below(6)).unwrap_or_default()]);
        plan.push(if random.percent(25) { 'b' } else { 'q' });
    }
    // The effect behind the last answer. One in ten takes longer than the lease.
    plan.push(if random.percent(10) { 'l' } else { 's' });
    plan
}

/// Returns the steps of a plan that have ended when its call has. The step of a `w` may not have begun, if its question
/// was answered first.
pub(crate) fn steps(plan: &str) -> Vec<String> {
    let mut steps = Vec::new();
    for (number, part) in (0u32..).zip(plan.chars()) {
        match part {
            's' | 'l' => steps.push(format!("{part}{number}")),
            'j' => steps.extend([format!("j{number}"), format!("k{number}")]),
            _ => (),
        }
    }
    steps
}

/// Returns true for a question whose answer may lose against a step, by its key.
pub(crate) fn may_lose(key: &str) -> bool {
    key.starts_with('v')
}
