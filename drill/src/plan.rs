//! The plan of a call: one letter for each part of its handler.

use crate::random::Random;

/// The plan of a handler that does not ask again what was declined: its calls end as `flow_diverged`.
pub(crate) const FORGETFUL: &str = "n";

/// The effects of parts that choose.
pub(crate) const CHOICES: [&str; 3] = ["A", "B", "C"];

/// Returns a plan: one to six rounds, with steps between them.
pub(crate) fn plan(random: &mut Random) -> String {
    if random.percent(4) {
        return FORGETFUL.to_owned();
    }
    let mut plan = String::new();
    let rounds = 1 + random.below(6);
    for _ in 0..rounds {
        let between = ["s", "j", "w", "c", "r", "ss", "f", "h", "u", ""];
        plan.push_str(between[usize::try_from(random.below(10)).unwrap_or_default()]);
        plan.push(
            ['b', 'b', 'i', 'i', 'i', 'q', 'q', 'q'][usize::try_from(random.below(8)).unwrap_or_default()],
        );
    }
    // The effect behind the last answer. One in ten takes longer than the lease.
    plan.push(if random.percent(10) { 'l' } else { 's' });
    plan
}

/// Returns the steps of a plan that have ended when its call has, by their names in the ledger. A step that may lose a race is not
/// among them.
pub(crate) fn steps(plan: &str) -> impl Iterator<Item = String> {
    (0u32..).zip(plan.chars()).flat_map(|(number, part)| {
        let names = match part {
            'j' | 'f' => vec!['j', 'k'],
            'u' => vec!['j', 'k', 'l'],
            'i' => vec!['p', 'i'],
            's' | 'l' | 'p' | 'h' | 'o' | 'm' => vec![part],
            _ => Vec::new(),
        };
        names.into_iter().map(move |name| format!("{name}{number}"))
    })
}

/// Returns what is wrong with the effects of the parts that choose: exactly one of their choices acts. Before the end, none may.
pub(crate) fn wrong_choices(plan: &str, is_over: bool, acted: impl Fn(&str) -> bool) -> Vec<String> {
    let parts = (0u32..).zip(plan.chars()).filter(|(_, part)| "wrfu".contains(*part));
    let choices = parts.map(|(number, _)| CHOICES.map(|choice| format!("{choice}{number}")));
    let acted = choices.map(|choices| choices.into_iter().filter(|choice| acted(choice)).collect::<Vec<_>>());
    let wrong = acted.filter(|acted| acted.len() > 1 || is_over && acted.is_empty());
    wrong.map(|acted| format!("of the branches of a choice, {acted:?} acted")).collect()
}

/// Returns true for a question whose answer may lose against a step, by its key.
pub(crate) fn may_lose(key: &str) -> bool {
    key.starts_with('v')
}
