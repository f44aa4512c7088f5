//! What can go wrong between a person and a tool.

use super::{Bench, Done};
use std::fmt;

/// Polls of one leg that are tried at most; of longer legs, so many evenly spread ones.
const POLLS: usize = 64;

/// One thing that goes wrong in a call. Legs count from 1, and the first leg brings no state; polls of a leg's handler
/// count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The replica is gone after so many polls of this leg; 0 is before it saw the request. Nothing of the handler runs
    /// any more, not even its guards. A new replica takes the same request.
    Crash {
        /// In this leg.
        leg: u16,
        /// After so many polls.
        polls: usize,
    },
    /// The connection breaks after so many polls of this leg: the request is cancelled. The same request is sent again.
    Disconnect {
        /// In this leg.
        leg: u16,
        /// After so many polls.
        polls: usize,
    },
    /// The replica is to stop, and drains while it answers this leg: a handler that comes to a
    /// [checkpoint](crate::server::Ctx::checkpoint) goes on elsewhere.
    Drain {
        /// In this leg.
        leg: u16,
    },
    /// Two replicas take turns, leg by leg.
    Move,
    /// The request of this leg is sent twice. The reply to the second one counts.
    Duplicate {
        /// Of this leg.
        leg: u16,
        /// When, and where to.
        second: Second,
    },
    /// The request of an older leg, its state and its answers, is sent again after a later leg. After the last leg the
    /// repeated call is walked to its end.
    Replay {
        /// The older leg, from 2.
        leg: u16,
        /// After the reply to this leg.
        after: u16,
    },
    /// The state of this leg is changed, at one place after the other: each is to be refused, and no handler may run.
    /// Then the right one is sent.
    Tamper {
        /// The leg, from 2.
        leg: u16,
    },
    /// The state of this leg comes after its time: it is to be refused, or the round to be asked again, as the server
    /// says.
    Expire {
        /// The leg, from 2.
        leg: u16,
    },
    /// From this leg on, the newer build runs.
    Upgrade {
        /// The leg, from 2.
        leg: u16,
    },
    /// Of several answers that this leg could bring, it brings the first one only.
    PartOfTheAnswers {
        /// The leg, from 2.
        leg: u16,
    },
    /// The answers of each leg come in another order than they were asked.
    AnswersReversed,
    /// This leg brings an answer that nobody asked for.
    UnaskedAnswer {
        /// The leg.
        leg: u16,
    },
    /// This leg brings answers that fit no question; they are to be asked again.
    Nonsense {
        /// The leg, from 2.
        leg: u16,
    },
    /// Each round takes almost all the time it may.
    Slow,
}

/// When a request that is sent twice is sent the second time, and where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Second {
    /// After the reply to the first, which is lost, to the same replica.
    Later,
    /// At once, to the same replica.
    AtOnce,
    /// At once, to another replica.
    AtOnceElsewhere,
}

impl Fault {
    /// Every fault that fits a call which went like this.
    pub(super) fn all(bench: &Bench, plain: &Done) -> Vec<Self> {
        let mut faults = vec![Self::Move, Self::AnswersReversed, Self::Slow];
        let last = plain.legs.len() as u16;
        for leg in 1..=last {
            faults.push(Self::Crash { leg, polls: 0 });
            let times = plain.legs[usize::from(leg) - 1].polls.saturating_sub(1);
            for polls in (1..=times).step_by(times.div_ceil(POLLS).max(1)) {
                faults.extend([Self::Crash { leg, polls }, Self::Disconnect { leg, polls }]);
            }
            for second in [Second::Later, Second::AtOnce, Second::AtOnceElsewhere] {
                faults.push(Self::Duplicate { leg, second });
            }
            faults.extend([Self::Drain { leg }, Self::UnaskedAnswer { leg }]);
            if leg > 1 {
                faults.extend((leg..=last).map(|after| Self::Replay { leg, after }));
                faults.extend(Self::of_later(bench, plain, leg));
            }
        }
        faults.retain(|fault| (bench.chosen)(fault));
        faults
    }

    /// What only a leg that brings a state can suffer.
    fn of_later(bench: &Bench, plain: &Done, leg: u16) -> Vec<Self> {
        let mut faults = vec![Self::Tamper { leg }, Self::Expire { leg }];
        let asked = plain.legs[usize::from(leg) - 2].asked.len();
        if asked > 0 {
            faults.push(Self::Nonsense { leg });
        }
        if asked > 1 {
            faults.push(Self::PartOfTheAnswers { leg });
        }
        if bench.upgrade.is_some() {
            faults.push(Self::Upgrade { leg });
        }
        faults
    }

    /// Whether it sends the request of this leg a second time.
    pub(super) fn repeats_first_leg(&self) -> bool {
        match self {
            Self::Crash { leg, polls } | Self::Disconnect { leg, polls } => *leg == 1 && *polls > 0,
            Self::Duplicate { leg, .. } => *leg == 1,
            _ => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash { leg, polls: 0 } => write!(f, "crash before leg {leg}"),
            Self::Crash { leg, polls } => write!(f, "crash after poll {polls} of leg {leg}"),
            Self::Disconnect { leg, polls } => write!(f, "connection broken after poll {polls} of leg {leg}"),
            Self::Drain { leg } => write!(f, "replica drained in leg {leg}"),
            Self::Move => f.write_str("another replica on each leg"),
            Self::Duplicate { leg, second: Second::Later } => {
                write!(f, "leg {leg} sent again after its reply")
            }
            Self::Duplicate { leg, second: Second::AtOnce } => write!(f, "leg {leg} sent twice at once"),
            Self::Duplicate { leg, .. } => write!(f, "leg {leg} sent to two replicas at once"),
            Self::Replay { leg, after } => write!(f, "leg {leg} sent again after leg {after}"),
            Self::Tamper { leg } => write!(f, "state of leg {leg} changed"),
            Self::Expire { leg } => write!(f, "state of leg {leg} expired"),
            Self::Upgrade { leg } => write!(f, "newer build from leg {leg} on"),
            Self::PartOfTheAnswers { leg } => write!(f, "only the first answer in leg {leg}"),
            Self::AnswersReversed => f.write_str("answers in reverse order"),
            Self::UnaskedAnswer { leg } => write!(f, "an answer nobody asked for in leg {leg}"),
            Self::Nonsense { leg } => write!(f, "answers that fit no question in leg {leg}"),
            Self::Slow => f.write_str("a person who takes all the time there is"),
        }
    }
}
