//! The check that runs until a person has finished behind a URL.

use crate::errors::error::Error;
use antiphon_wire::escaped;
use futures_util::FutureExt as _;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// The pause between the first two calls of a check. The pause doubles each time, up to [`LAST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(1);

type Checking<'a> = Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'a>>;

/// A check, with the state of its calls.
pub(crate) struct Until<'a> {
    check: Box<dyn FnMut() -> Checking<'a> + Send + 'a>,
    running: Option<Checking<'a>>,
    pause: Option<Pin<Box<Sleep>>>,
    next_pause: Duration,
    end: Option<Pin<Box<Sleep>>>,
}

impl<'a> Until<'a> {
    pub(crate) fn new<C, Fut>(mut check: C) -> Self
    where
        C: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output: IntoDone> + Send + 'a,
    {
        Self {
            check: Box::new(move || Box::pin(check().map(IntoDone::into_done))),
            running: None,
            pause: None,
            next_pause: FIRST_PAUSE,
            end: None,
        }
    }

    /// Polls the check. Resolves to `false` after `within`, or after the first call if `once` is set.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, within: Duration, once: bool) -> Poll<bool> {
        let holds = loop {
            if let Some(pause) = &mut self.pause
                && pause.as_mut().poll(cx).is_pending()
            {
                break false;
            }
            self.pause = None;
            let running = self.running.get_or_insert_with(|| (self.check)());
            let Poll::Ready(said) = running.as_mut().poll(cx) else { break false };
            self.running = None;
            match said {
                Ok(true) => break true,
                Ok(false) => {}
                Err(cause) => {
                    tracing::warn!(cause = %escaped(&cause), "a check failed, and counts as not finished")
                }
            }
            if once {
                return self.ended(false);
            }
            self.pause = Some(Box::pin(sleep(self.next_pause)));
            self.next_pause = (self.next_pause * 2).min(LAST_PAUSE);
        };
        if !holds {
            let end = self.end.get_or_insert_with(|| Box::pin(sleep(within)));
            ready!(end.as_mut().poll(cx));
        }
        self.ended(holds)
    }

    /// Resets the check to its initial state.
    fn ended(&mut self, holds: bool) -> Poll<bool> {
        (self.running, self.pause, self.end) = (None, None, None);
        self.next_pause = FIRST_PAUSE;
        Poll::Ready(holds)
    }
}

/// The result of a check: `true` if the work is finished, or an `antiphon::Result` of that. An error is logged and counts as "not
/// yet". No other type implements this trait, so that the compiler infers the error of a closure that uses `?`.
#[diagnostic::on_unimplemented(
    message = "a check behind a URL cannot return `{Self}`",
    label = "neither `bool` nor `antiphon::Result<bool>`",
    note = "with another error, write `Ok(check().await?)`: `?` converts it"
)]
pub trait IntoDone: sealed::Sealed {
    #[doc(hidden)]
    fn into_done(self) -> Result<bool, String>;
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for bool {}
impl IntoDone for bool {
    fn into_done(self) -> Result<bool, String> {
        Ok(self)
    }
}

impl sealed::Sealed for Result<bool, Error> {}
impl IntoDone for Result<bool, Error> {
    fn into_done(self) -> Result<bool, String> {
        self.map_err(|error| error.to_string())
    }
}
