//! The arithmetic of programs, and a person who gives the same answer whenever the same question is shown.

use crate::{
    stop::Stop,
    tree::{Form, Kind},
};

/// A number that depends on all of these.
pub(crate) fn mix(what: &str, path: &str, more: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let bytes = [what.as_bytes(), b"\0", path.as_bytes(), b"\0", &more.to_le_bytes()];
    for byte in bytes.into_iter().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // So that the low bits are as good as the others.
    hash ^ (hash >> 29) ^ (hash >> 47)
}

/// The action of the person on one question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum UserAnswer {
    Accept(u64),
    Decline,
    Cancel,
}

/// The answer of the person to the question at this path, when it shows this version of the world.
pub(crate) fn user_answer(seed: u64, path: &str, version: u8, form: Form) -> UserAnswer {
    let hash = mix("person", path, seed ^ (u64::from(version) << 56));
    match (hash % 14, form) {
        (0, _) => UserAnswer::Decline,
        (1, _) => UserAnswer::Cancel,
        (_, Form::Sure) => UserAnswer::Accept((hash >> 8) % 2),
        _ => UserAnswer::Accept((hash >> 8) % 4),
    }
}

/// The value of a branch after an answer.
pub(crate) fn after_answer(said: UserAnswer, path: &str, unwraps: bool, value: u64) -> Result<u64, Stop> {
    match said {
        UserAnswer::Accept(n) => Ok(mix("accepted", path, value ^ n)),
        UserAnswer::Decline if unwraps => Err(Stop(mix("declined", path, 0))),
        UserAnswer::Decline => Ok(mix("declined", path, value)),
        UserAnswer::Cancel if unwraps => Err(Stop(mix("cancelled", path, 0))),
        UserAnswer::Cancel => Ok(mix("cancelled", path, value)),
    }
}

/// The value of a branch after a step.
pub(crate) fn after_step(path: &str, kind: Kind, value: u64) -> Result<u64, Stop> {
    match kind {
        Kind::Fails => Err(Stop(mix("failed", path, value))),
        _ => Ok(mix("done", path, value)),
    }
}

/// The value that each branch of a join or a race begins with.
pub(crate) fn in_branch(value: u64, branch: usize) -> u64 {
    mix("branch", "", value ^ branch as u64)
}

/// The value after a join.
pub(crate) fn together(results: impl IntoIterator<Item = Result<u64, Stop>>) -> Result<u64, Stop> {
    results.into_iter().try_fold(0, |all, one| Ok(mix("join", "", all ^ one?.rotate_left(7))))
}

/// The text of a result.
pub(crate) fn in_words(result: Result<u64, Stop>) -> String {
    match result {
        Ok(value) => format!("came to {value:x}"),
        Err(stop) => stop.to_string(),
    }
}
