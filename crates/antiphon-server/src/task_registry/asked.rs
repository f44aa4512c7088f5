//! The questions of tasks that wait for a person at the client of a session: each one is sent once.

use antiphon_store::TaskKey;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A function that is called after a question was given back.
type GivenBack = Box<dyn Fn(TaskKey) + Send + Sync>;

/// The questions that are with a client now.
pub(crate) struct AskedQuestions {
    asked: Mutex<HashSet<(TaskKey, String)>>,
    given_back: GivenBack,
}

/// A question that is with a client. Dropping it gives the question back: another request may ask it.
pub(crate) struct AskedQuestion {
    all: Arc<AskedQuestions>,
    task: TaskKey,
    key: String,
}

impl AskedQuestions {
    pub(crate) fn new(given_back: GivenBack) -> Arc<Self> {
        Arc::new(Self { asked: Mutex::default(), given_back })
    }

    /// Takes a question; nothing if a client has it already.
    pub(crate) fn take(self: &Arc<Self>, task: TaskKey, key: &str) -> Option<AskedQuestion> {
        let is_new = self.asked().insert((task, key.to_owned()));
        is_new.then(|| AskedQuestion { all: Arc::clone(self), task, key: key.to_owned() })
    }

    fn asked(&self) -> MutexGuard<'_, HashSet<(TaskKey, String)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AskedQuestion {
    /// Returns the key of the question.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

impl Drop for AskedQuestion {
    fn drop(&mut self) {
        self.all.asked().remove(&(self.task, std::mem::take(&mut self.key)));
        (self.all.given_back)(self.task);
    }
}
