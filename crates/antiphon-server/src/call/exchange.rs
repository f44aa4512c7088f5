//! The driver's exchange with the client while a handler runs, by carrier.

use crate::{
    call::{in_task::TaskExchange, leg_runtime::LegRuntime, pushed::PushedAsks},
    request::carrier::LegCarrier,
};
use std::{task::Context, time::Duration};

/// The end of a run of a handler.
pub(crate) enum HandlerEnd<R> {
    Returned(R),
    Suspended,
    Stopped,
    Cancelled,
}

/// The messages to and from the client while a handler runs.
pub(crate) enum Exchange<'f> {
    Sealed,
    Pushed(PushedAsks<'f>),
    Task(TaskExchange<'f>),
}

impl<'f> Exchange<'f> {
    /// Returns the exchange for the carrier of this leg.
    pub(crate) fn of(runtime: &'f LegRuntime) -> Self {
        match runtime.carrier() {
            LegCarrier::Sealed => Self::Sealed,
            LegCarrier::Pushed(pushed) => Self::Pushed(PushedAsks::new(runtime, pushed)),
            LegCarrier::Task(task) => Self::Task(TaskExchange::new(runtime, task)),
        }
    }

    /// Delivers answers that have arrived. Returns true if there were any.
    pub(crate) fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(asks) => asks.receive(cx),
            Self::Task(task) => {
                task.receive(cx);
                false
            }
        }
    }

    /// Sends new questions, and withdraws those that are not asked any more. Returns true if the handler must be polled
    /// again.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(asks) => asks.send(cx),
            Self::Task(task) => task.send(cx),
        }
    }

    /// Returns true while people have time to answer, which does not count as the handler's time.
    pub(crate) fn waits_for_people(&self, runtime: &LegRuntime) -> bool {
        match self {
            Self::Sealed | Self::Task(_) => false,
            Self::Pushed(_) => runtime.with(|leg| leg.waits_for_client()),
        }
    }

    /// Returns the time limit of the handler. A task has as much time as it exists.
    pub(crate) fn time_limit(&self, runtime: &LegRuntime) -> Option<Duration> {
        match self {
            Self::Sealed | Self::Pushed(_) => Some(runtime.limits().handler_timeout),
            Self::Task(_) => None,
        }
    }

    /// Discards unsent messages if the call was cancelled, and stores the end for a task.
    pub(crate) fn ended<R>(&mut self, ended: HandlerEnd<R>) -> HandlerEnd<R> {
        match (self, &ended) {
            (Self::Pushed(asks), HandlerEnd::Cancelled) => asks.forget(),
            (Self::Task(task), _) => task.ended(),
            _ => {}
        }
        ended
    }
}
