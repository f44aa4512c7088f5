//! What a handler is told of the world, the same on every leg.

use super::flow::here;
use crate::server::Ctx;
use antiphon_wire::AskSupport;
use std::time::SystemTime;

/// Notes have a namespace of their own; this one is nobody's key.
pub(crate) const ASKS_NOTED: &str = "#asks";

impl Ctx {
    /// What the client said it can be asked, when the handler first looked. A later request of the call that says
    /// something else is not sent another way: where it lacks what is asked then, it is refused.
    ///
    /// The caller chooses what it declares: decide nothing by it that must not be left out.
    #[track_caller]
    pub fn can_ask(&self) -> AskSupport {
        let mut machine = self.flow().begun();
        if let Some(noted) = machine.noted(ASKS_NOTED).and_then(read) {
            return noted;
        }
        let now = self.declared();
        machine.note(ASKS_NOTED, written(now), here());
        now
    }

    /// Whether the client can show forms. See [`can_ask`](Self::can_ask).
    #[track_caller]
    pub fn can_elicit(&self) -> bool {
        self.can_ask().form
    }

    /// Whether the client can open URLs. See [`can_ask`](Self::can_ask).
    #[track_caller]
    pub fn can_elicit_url(&self) -> bool {
        self.can_ask().url
    }

    /// Whether the client has a model. See [`can_ask`](Self::can_ask).
    #[track_caller]
    pub fn can_sample(&self) -> bool {
        self.can_ask().sampling
    }

    /// Whether the client can list its roots. See [`can_ask`](Self::can_ask).
    #[track_caller]
    pub fn can_list_roots(&self) -> bool {
        self.can_ask().roots
    }

    /// When the call began, in whole seconds: the same on every leg.
    pub fn now(&self) -> SystemTime {
        self.flow().born()
    }

    /// A number that looks random, and is the same on every leg of the call, for the same key and scope.
    pub fn random_u64(&self, key: &str) -> u64 {
        self.flow().keyed(|secret| secret.random_u64(self.scope_prefix(), key)).unwrap_or_default()
    }
}

/// One letter for each that is there.
fn written(asks: AskSupport) -> String {
    table(asks).iter().filter(|(_, is_there)| *is_there).map(|(letter, _)| *letter).collect()
}

fn read(text: &str) -> Option<AskSupport> {
    let has = |letter| text.contains(letter);
    let mut asks = AskSupport::NONE;
    (asks.form, asks.url) = (has('f'), has('u'));
    (asks.sampling, asks.sampling_tools, asks.sampling_context) = (has('s'), has('t'), has('c'));
    asks.roots = has('r');
    Some(asks)
}

fn table(asks: AskSupport) -> [(char, bool); 6] {
    [
        ('f', asks.form),
        ('u', asks.url),
        ('s', asks.sampling),
        ('t', asks.sampling_tools),
        ('c', asks.sampling_context),
        ('r', asks.roots),
    ]
}
