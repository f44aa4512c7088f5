//! One attempt to get a token, which all requests that wait for it share. It runs on a task of its own: a caller that is dropped
//! must neither lose a refresh token that was just spent, nor open a second browser.

use crate::{
    error::{Error, ErrorKind},
    record::Access,
    token,
};
use antiphon_wire::Challenge;
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::Instant;

/// The time for which a failure is the answer to all that wait with the same refused token.
const FAILED_TIME: Duration = Duration::from_secs(5);

/// An attempt that is under way, or the last one.
pub(crate) struct Flight {
    kind: Kind,
    refused: Option<u64>,
    ended: Arc<OnceLock<Instant>>,
    pub(crate) outcome: Shared<BoxFuture<'static, Result<Arc<Access>, Error>>>,
}

/// The reason for another token.
pub(crate) struct Why {
    /// The token that does not do.
    pub(crate) refused: Option<Arc<Access>>,
    /// `scope` of the challenge.
    pub(crate) scope: Option<String>,
    /// `resource_metadata` of the challenge.
    pub(crate) pointer: Option<String>,
    /// `true` if the challenge names DPoP, and no other scheme.
    pub(crate) dpop_only: bool,
    /// `true` if the challenge names DPoP.
    pub(crate) dpop: bool,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It expires; nothing was refused.
    Late,
    Refused,
    StepUp,
    /// The program asks for a sign-in.
    Login,
}

impl Why {
    pub(crate) fn late(access: &Arc<Access>) -> Self {
        Self { refused: Some(Arc::clone(access)), ..Self::of(Kind::Late, None, &[]) }
    }

    pub(crate) fn refused(sent: Option<Arc<Access>>, challenges: &[Challenge]) -> Self {
        Self::of(Kind::Refused, sent, challenges)
    }

    pub(crate) fn step_up(sent: Option<Arc<Access>>, challenges: &[Challenge]) -> Self {
        Self::of(Kind::StepUp, sent, challenges)
    }

    pub(crate) fn of(kind: Kind, refused: Option<Arc<Access>>, challenges: &[Challenge]) -> Self {
        let ours = || challenges.iter().filter(|one| one.is("Bearer") || one.is("DPoP"));
        let parameter = |name: &str| ours().find_map(|challenge| challenge.get(name)).map(str::to_owned);
        let has = |scheme: &str| challenges.iter().any(|challenge| challenge.is(scheme));
        Self {
            refused,
            scope: parameter("scope"),
            pointer: parameter("resource_metadata"),
            dpop_only: has("DPoP") && !has("Bearer"),
            dpop: has("DPoP"),
            kind,
        }
    }

    /// Returns `true` if this token does, which another request got meanwhile.
    pub(crate) fn is_answered_by(&self, access: &Access) -> bool {
        match &self.refused {
            None => self.kind != Kind::Login,
            Some(refused) if refused.generation == access.generation => false,
            Some(_) => {
                let needed = self.scope.as_deref().map(token::parse).unwrap_or_default();
                self.kind != Kind::StepUp || token::covers(&access.scopes, &needed)
            }
        }
    }
}

impl Flight {
    /// Begins an attempt.
    pub(crate) fn begin(
        why: &Why,
        attempt: impl Future<Output = Result<Arc<Access>, Error>> + Send + 'static,
    ) -> Self {
        let ended = Arc::new(OnceLock::new());
        let landed = Arc::clone(&ended);
        let task = tokio::spawn(async move {
            let outcome = attempt.await;
            let _ = landed.set(Instant::now());
            outcome
        });
        let outcome = async {
            task.await.unwrap_or_else(|fault| {
                Err(Error::caused(ErrorKind::SignIn, "the sign-in was stopped", fault))
            })
        };
        let refused = why.refused.as_ref().map(|refused| refused.generation);
        Self { kind: why.kind, refused, ended, outcome: outcome.boxed().shared() }
    }

    /// Returns `true` if its outcome is of use: it is under way, or just failed for the same token.
    pub(crate) fn is_for(&self, why: &Why) -> bool {
        match self.ended.get() {
            // Only another sign-in asks a person.
            None => why.kind != Kind::Login || self.kind == Kind::Login,
            Some(ended) => {
                let refused = why.refused.as_ref().map(|refused| refused.generation);
                why.kind != Kind::Login
                    && refused == self.refused
                    && matches!(self.outcome.peek(), Some(Err(_)) | None)
                    && ended.elapsed() < FAILED_TIME
            }
        }
    }
}
