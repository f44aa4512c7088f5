//! Names that a server does not offer.

use crate::console;

/// The least similarity of a name that may be meant, from 0 to 1.
const SIMILAR: f64 = 0.8;
/// The maximum number of names in a text.
const NAMES: usize = 10;

/// Returns the sentence about a name that is not among the known ones, with those that may be meant.
pub(crate) fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<(f64, &str)> = known.map(|it| (strsim::jaro_winkler(name, it), it)).collect();
    known.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let similar = known.iter().filter(|(similarity, _)| *similarity >= SIMILAR).count();
    let listed = |names: &[(f64, &str)]| {
        let names: Vec<_> = names.iter().take(NAMES).map(|(_, it)| console::truncated(it, 60)).collect();
        names.join(", ")
    };
    let rest = match (similar, known.len()) {
        (_, 0) => "the server has none".to_owned(),
        (0, count) if count <= NAMES => format!("there are: {}", listed(&known)),
        (0, count) => format!("there are {count}, `{what}s` lists them"),
        (count, _) => format!("did you mean: {}?", listed(&known[..count])),
    };
    format!("there is no {what} `{}`; {rest}", console::truncated(name, 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_come_first() {
        let demo = ["greet", "provision_cluster", "provision"];
        for (name, known, expected) in [
            (
                "provison",
                &demo[..],
                "there is no tool `provison`; did you mean: provision, provision_cluster?",
            ),
            ("x", &demo, "there is no tool `x`; there are: greet, provision_cluster, provision"),
            ("x", &["a"; 11], "there is no tool `x`; there are 11, `tools` lists them"),
            ("x\u{1b}", &[], "there is no tool `x\\u{1b}`; the server has none"),
        ] {
            assert_eq!(unknown("tool", name, known.iter().copied()), expected);
        }
    }
}
