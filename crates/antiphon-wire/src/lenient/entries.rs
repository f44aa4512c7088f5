//! Pages of lists, of which some entries do not decode.

use crate::members::Members;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

/// An entry that does not decode, and so was left out of its list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOutEntry {
    /// The name of the entry, if it has one that can be read. Text of the peer: escape it.
    pub name: Option<String>,
    /// The place of the entry in its page, from 0.
    pub index: usize,
    /// The reason. Contains text of the peer: escape it.
    pub reason: String,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Reads a page of a list: the entries of the member `list` are each a `T`. Entries that do not decode are left out of the page,
/// and returned beside it.
///
/// # Errors
/// The error of the deserializer, if the page does not decode for another reason.
pub fn page<P: DeserializeOwned, T: DeserializeOwned>(
    result: &RawValue,
    list: &str,
) -> Result<(P, Vec<LeftOutEntry>), serde_json::Error> {
    let fault = match serde_json::from_str(result.get()) {
        Ok(page) => return Ok((page, Vec::new())),
        Err(fault) => fault,
    };
    let Ok(mut members) = serde_json::from_str::<Members>(result.get()) else { return Err(fault) };
    let Some((_, entries)) = members.0.iter_mut().find(|(name, _)| name == list) else { return Err(fault) };
    let Ok(all) = serde_json::from_str::<Vec<&RawValue>>(entries.get()) else { return Err(fault) };
    let (mut read, mut left_out) = (Vec::with_capacity(all.len()), Vec::new());
    for (index, entry) in all.into_iter().enumerate() {
        match serde_json::from_str::<T>(entry.get()) {
            Ok(_) => read.push(entry),
            Err(fault) => {
                let name = serde_json::from_str::<Named>(entry.get()).ok().map(|entry| entry.name);
                left_out.push(LeftOutEntry { name, index, reason: fault.to_string() });
            }
        }
    }
    if left_out.is_empty() {
        return Err(fault);
    }
    *entries = to_raw_value(&read)?;
    let page = to_raw_value(&members)?;
    Ok((serde_json::from_str(page.get())?, left_out))
}
