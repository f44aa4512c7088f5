//! The drill of tasks: people create tasks, poll them at any instance, answer, and cancel.

mod answers;
mod checks;
mod history;
mod person;
mod plan;
mod record;
mod report;
mod request;

pub(crate) use self::{
    history::TaskHistory,
    person::TaskScript,
    report::{conclude, report},
};
