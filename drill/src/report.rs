//! The tables of a run.

use crate::{
    checks::{Evidence, Verdict},
    fleet::FaultKind,
    history::Outcome,
    tools::Level,
};
use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

/// The number of examples that are printed for a broken rule.
const EXAMPLES: usize = 4;

/// Returns the report of a run.
pub(crate) fn report(evidence: &Evidence<'_>, verdicts: &[Verdict], replies: u64, time: Duration) -> String {
    let mut text = String::new();
    let Evidence { state, effects, faults } = evidence;
    let of = |kind| faults.iter().filter(|fault| fault.kind == kind).count();
    let _ = writeln!(
        text,
        "{} calls, {replies} replies, {} effects in {:.1} s; {} SIGKILL, {} SIGSTOP beyond the lease, {} SIGTERM, {} calls \
         with a cut request",
        state.ends.len(),
        effects.len(),
        time.as_secs_f64(),
        of(FaultKind::Kill),
        of(FaultKind::Pause),
        of(FaultKind::Terminate),
        state.cuts.len(),
    );
    for level in Level::ALL {
        let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
        for end in state.ends.iter().filter(|end| end.level == level) {
            let word = match &end.outcome {
                Outcome::Result => "result".to_owned(),
                Outcome::Unknown => "outcome_unknown".to_owned(),
                Outcome::GaveUp(reason) => format!("gave up after {reason}"),
                Outcome::Refused(reason) => format!("refused: {reason}"),
            };
            *outcomes.entry(word).or_default() += 1;
        }
        let counts: Vec<String> = outcomes.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let _ = writeln!(text, "  {:11} {}", level.tool(), counts.join(", "));
    }
    for Verdict { rule, words, broken } in verdicts {
        let mark = if broken.is_empty() { "ok    " } else { "BROKEN" };
        let _ = writeln!(text, "{mark} {rule} {words}");
        for example in broken.iter().take(EXAMPLES) {
            let _ = writeln!(text, "         {example}");
        }
        if broken.len() > EXAMPLES {
            let _ = writeln!(text, "         and {} more", broken.len() - EXAMPLES);
        }
    }
    text
}
