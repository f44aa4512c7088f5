//! A walk over JSON text: from one byte to the next, without a value for each part.
//!
//! A walk makes no errors. What is wrong or unusual ends it, and is left to serde.

mod grammar;
mod names;
mod raw;

pub(crate) use grammar::{Walk, plain};
pub(crate) use raw::value as walked;

use serde_json::value::RawValue;

/// Returns the members of an object by their names, each value as its text. `None` for anything unusual, such as a name with an
/// escape or a name that the object has twice.
pub(crate) fn walked_members(text: &str) -> Option<Vec<(String, Box<RawValue>)>> {
    let (mut walk, mut members) = (Walk::new(text), Vec::new());
    walk.object(|walk, name| {
        let start = walk.begin()?;
        walk.skip()?;
        members.push((name.to_owned(), walked(walk.since(start)?)?.to_owned()));
        Some(())
    })?;
    walk.end()?;
    Some(members)
}
