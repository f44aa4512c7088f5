//! Rules for the effects of a call, for any behaviour of its client.

use crate::{
    trace::{Chain, Crash, LegTrace, Run, RunEnd},
    user::UserAnswer,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The questions and answers of a person, in the rounds that led to a state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consents {
    given: BTreeMap<String, Vec<GivenAnswer>>,
    /// The round in which each question was first answered, and last.
    first: BTreeMap<String, usize>,
    last: BTreeMap<String, usize>,
    rounds: usize,
    /// The last answer to each question that is not being asked again.
    standing: ValidAnswers,
    /// The questions of the last round, with what stood beside them.
    shown: BTreeMap<String, (String, ValidAnswers)>,
}

/// Texts and answers, by their paths.
type ValidAnswers = Arc<BTreeMap<String, (String, UserAnswer)>>;

/// One answer.
#[derive(Clone, Debug)]
struct GivenAnswer {
    text: String,
    said: UserAnswer,
    /// The person's answers at the time when the question was shown.
    beside: ValidAnswers,
}

impl Consents {
    /// These questions are shown.
    pub(crate) fn show<'a>(&mut self, asked: impl Iterator<Item = (&'a String, &'a String)> + Clone) {
        self.rounds += 1;
        if asked.clone().any(|(path, _)| self.standing.contains_key(path)) {
            // What was answered after one of these that is asked again does not count any more.
            let round = |path: &String| self.last.get(path).copied();
            let again = asked.clone().filter(|(path, _)| self.standing.contains_key(*path));
            let earliest = again.filter_map(|(path, _)| round(path)).min().unwrap_or(usize::MAX);
            let void: BTreeSet<String> = self
                .standing
                .keys()
                .filter(|path| round(path).is_some_and(|it| it > earliest))
                .cloned()
                .collect();
            let standing = Arc::make_mut(&mut self.standing);
            standing.retain(|path, _| !void.contains(path));
            asked.clone().for_each(|(path, _)| drop(standing.remove(path)));
            self.first.retain(|path, _| !void.contains(path));
        }
        for (path, text) in asked {
            self.shown.insert(path.clone(), (text.clone(), Arc::clone(&self.standing)));
        }
    }

    /// The person has answered one of them.
    pub(crate) fn answer(&mut self, path: &str, said: UserAnswer) {
        let Some((text, beside)) = self.shown.get(path).cloned() else { return };
        Arc::make_mut(&mut self.standing).insert(path.to_owned(), (text.clone(), said));
        self.first.entry(path.to_owned()).or_insert(self.rounds);
        self.last.insert(path.to_owned(), self.rounds);
        self.given.entry(path.to_owned()).or_default().push(GivenAnswer { text, said, beside });
    }

    /// The first of these questions that has an answer already.
    pub(crate) fn asked_again<'a>(&self, mut asked: impl Iterator<Item = &'a String>) -> Option<&'a String> {
        asked.find(|path| self.given.contains_key(*path))
    }

    /// Another call begins: the person is asked from the beginning.
    pub(crate) fn begin_anew(&mut self) {
        self.first.clear();
        self.last.clear();
        self.standing = ValidAnswers::default();
    }

    /// A step runs behind these answers only if the person gave each of them to exactly this text, and if, of the
    /// questions of earlier rounds, those that were answered then have the same text and answer now.
    fn allow(&self, chain: &Chain) -> Result<(), String> {
        for (path, link) in chain.iter() {
            let given = self.given.get(path).map_or(&[] as &[GivenAnswer], Vec::as_slice);
            let mut why = format!("`{}` was never answered like that: {given:?}", link.text);
            let fits = given.iter().any(|given| {
                if given.text != link.text || given.said != link.said {
                    return false;
                }
                // Those before it in the program, and those of a branch beside it that were answered in an earlier round.
                let is_before = |other: &str| link.before.contains_key(other);
                let mut others =
                    chain.iter().filter(|(other, _)| is_before(other) || self.is_earlier(other, path));
                let other = others.find_map(|(other, now)| {
                    let (text, said) = given.beside.get(other)?;
                    let place = if is_before(other) { "before" } else { "beside" };
                    (*text != now.text || *said != now.said).then(|| {
                        format!(
                            "{place} it, `{text}` was answered {said:?}, and now `{}` {:?}",
                            now.text, now.said
                        )
                    })
                });
                let other = other.map(|other| format!("when `{}` was answered, {other}", given.text));
                other.map(|other| why = other).is_none()
            });
            if !fits {
                return Err(format!("`{path}` ({:?}): {why}", link.said));
            }
        }
        Ok(())
    }

    /// Returns `true` if the question `one` was answered in an earlier round than `other`.
    fn is_earlier(&self, one: &str, other: &str) -> bool {
        matches!((self.first.get(one), self.first.get(other)), (Some(one), Some(other)) if one < other)
    }

    /// All effects and answers of one request.
    pub(crate) fn check(&self, leg: &LegTrace) -> Result<(), String> {
        for Run { path, chain, .. } in leg.runs.lock().unwrap().iter() {
            self.allow(chain).map_err(|why| format!("the step `{path}` ran without consent: {why}"))?;
        }
        for (path, link) in leg.answered.lock().unwrap().iter() {
            let given = self.given.get(path).into_iter().flatten();
            if !given.clone().any(|given| given.text == link.text && given.said == link.said) {
                return Err(format!("`{path}` got {:?} for `{}`, of {given:?}", link.said, link.text));
            }
        }
        Ok(())
    }
}

/// The allowed number of runs of effects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowance {
    /// First requests: each begins a call of its own, with keys of its own.
    pub(crate) calls: usize,
    /// Requests that were sent again, from a state that may not have what was done.
    pub(crate) repeats: usize,
    /// Steps may be dropped while they run, and begun again.
    pub(crate) cuts: bool,
    /// With a store: interruptions after which a step may have its effect again that nobody reconciles.
    pub(crate) interruptions: Option<usize>,
}

/// The effects of a call, over all its requests.
pub(crate) fn effects(legs: &[Arc<LegTrace>], allowance: Allowance) -> Result<(), String> {
    let Allowance { calls, repeats, cuts, interruptions } = allowance;
    let mut path_of: BTreeMap<String, String> = BTreeMap::new();
    let mut paths: BTreeMap<String, (BTreeSet<String>, usize, usize)> = BTreeMap::new();
    let mut crashes: BTreeMap<String, Crash> = BTreeMap::new();
    for run in legs.iter().flat_map(|leg| leg.runs.lock().unwrap().clone()) {
        let Run { path, key, end, crash, .. } = run;
        crashes.insert(path.clone(), crash);
        let first = path_of.entry(key.clone()).or_insert_with(|| path.clone());
        if *first != path {
            return Err(format!("one key for two steps, `{first}` and `{path}`"));
        }
        let (keys, begun, ended) = paths.entry(path).or_default();
        keys.insert(key);
        *begun += usize::from(end == RunEnd::None);
        *ended += usize::from(end == RunEnd::Outcome);
    }
    for (path, (keys, begun, ended)) in paths {
        let crash = crashes[&path];
        let repeats = match interruptions {
            Some(interruptions) if crash == Crash::Reruns => interruptions,
            _ => repeats,
        };
        // A step that was interrupted is nobody's to run again.
        let cuts = cuts && (interruptions.is_none() || crash != Crash::Unresolved);
        if keys.len() > calls {
            return Err(format!("`{path}` ran under {} keys in {calls} calls", keys.len()));
        }
        if ended > 1 + repeats {
            return Err(format!("`{path}` had its effect {ended} times, with {repeats} requests sent again"));
        }
        if !cuts && begun + ended > 1 + repeats {
            return Err(format!(
                "`{path}` was begun {} times, with {repeats} requests sent again",
                begun + ended
            ));
        }
    }
    Ok(())
}

/// The steps that had their effect, each time, in order of their paths.
pub(crate) fn ended(legs: &[Arc<LegTrace>]) -> Vec<String> {
    let runs = legs.iter().flat_map(|leg| leg.runs.lock().unwrap().clone());
    let mut ended: Vec<String> = runs.filter(|run| run.end == RunEnd::Outcome).map(|run| run.path).collect();
    ended.sort_unstable();
    ended
}
