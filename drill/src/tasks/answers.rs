//! The answers that a result may have: those that were sent first.

use super::record::{SentAnswers, TaskRecord};

/// The word of an answer to a question that is not asked yet.
pub(super) const EARLY: &str = "early";

/// Returns the path of the question with this key: a question that is asked again has another key, `name~2`.
pub(super) fn path_of(key: &str) -> &str {
    key.split('~').next().unwrap_or_default()
}

/// Returns the key that a question had before, if this is a later one.
pub(super) fn key_before(key: &str) -> Option<String> {
    let (path, number) = key.split_once('~')?;
    Some(match number.parse().unwrap_or(0_u32) {
        0..=2 => path.to_owned(),
        number => format!("{path}~{}", number - 1),
    })
}

/// Returns the key of the question that a text answers: see `Answer::of`.
fn key_of(text: &str) -> &str {
    text.split_once('-').map_or("", |(_, key)| key)
}

impl SentAnswers {
    /// Returns true if one of the answers is for this key.
    fn has(&self, key: &str) -> bool {
        self.answers.iter().any(|answer| answer.key == key)
    }

    fn is_early(&self) -> bool {
        let texts = self.answers.iter().filter_map(|answer| answer.text.as_deref());
        texts.into_iter().any(|text| text.starts_with(EARLY))
    }
}

impl TaskRecord {
    /// Returns true if an answer was acknowledged before this moment, while the question was open or had one before.
    pub(super) fn is_answered(&self, key: &str, before: u64) -> bool {
        let Some(asked) = self.asked.get(key) else { return false };
        self.sent.values().any(|sent| {
            sent.has(key)
                && sent.at >= asked.since
                && sent.acknowledged.is_some_and(|acknowledged| acknowledged < before)
        })
    }

    /// Returns true if the result may have this text as the answer to the question at this path: no other answer to the question
    /// was acknowledged before one with this text was sent.
    pub(super) fn may_answer(&self, path: &str, text: &str) -> bool {
        let key = key_of(text);
        path_of(key) == path
            && self.sent.values().any(|sent| {
                sent.answers.iter().any(|answer| answer.key == key && answer.text.as_deref() == Some(text))
                    && !self.is_answered(key, sent.at)
                    && !(sent.is_early() && self.is_too_early(sent))
            })
    }

    /// Returns true if an early answer was acknowledged before the question can have been asked: the one before had no answer.
    fn is_too_early(&self, early: &SentAnswers) -> bool {
        let first = self.sent.values().filter(|sent| !sent.is_early()).map(|sent| sent.at).min();
        early.acknowledged.is_some_and(|acknowledged| first.is_none_or(|first| acknowledged < first))
    }

    /// Returns true if an answer to this key was sent that is not valid.
    pub(super) fn has_invalid_answer(&self, key: &str) -> bool {
        self.sent
            .values()
            .any(|sent| sent.answers.iter().any(|answer| answer.key == key && answer.text.is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_paths_and_numbers() {
        for (key, path, before) in
            [("q#1", "q#1", None), ("q#1~2", "q#1", Some("q#1")), ("q#1~3", "q#1", Some("q#1~2"))]
        {
            assert_eq!((path_of(key), key_before(key).as_deref()), (path, before));
        }
        assert_eq!(key_of("red-q#1~2"), "q#1~2");
    }
}
