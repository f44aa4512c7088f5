//! Pages of lists, of which some entries do not decode.

use crate::members::Members;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

/// The maximum number of entries of a page that are described.
const MAX_DESCRIBED: usize = 16;

/// The entries that were left out of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The first of them, at most 16.
    pub first: Vec<LeftOutEntry>,
    /// The number of all of them.
    pub count: usize,
}

/// An entry that does not decode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOutEntry {
    /// The name or the URI of the entry, if it has one that can be read. Text of the peer: escape it.
    pub name: Option<String>,
    /// The place of the entry in its page, from 0.
    pub index: usize,
    /// The reason. Contains text of the peer: escape it.
    pub reason: String,
}

impl LeftOut {
    fn add(&mut self, index: usize, entry: &RawValue, fault: &serde_json::Error) {
        self.count += 1;
        if self.first.len() < MAX_DESCRIBED {
            let name = serde_json::from_str(entry.get()).ok().and_then(Named::into_text);
            self.first.push(LeftOutEntry { name, index, reason: fault.to_string() });
        }
    }
}

/// The members that name an entry.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri_template: Option<&'a RawValue>,
    #[serde(borrow, default)]
    task_id: Option<&'a RawValue>,
}

impl Named<'_> {
    fn into_text(self) -> Option<String> {
        let mut all = [self.name, self.uri, self.uri_template, self.task_id].into_iter().flatten();
        all.find_map(|name| serde_json::from_str(name.get()).ok())
    }
}

/// Reads a page of a list: the entries of the member `list` are each a `T`. Entries that do not decode are left out of the page,
/// and described beside it.
///
/// # Errors
/// The error of the deserializer, if the page does not decode for another reason.
pub fn page<P: DeserializeOwned, T: DeserializeOwned>(
    result: &RawValue,
    list: &str,
) -> Result<(P, LeftOut), serde_json::Error> {
    let fault = match serde_json::from_str(result.get()) {
        Ok(page) => return Ok((page, LeftOut::default())),
        Err(fault) => fault,
    };
    let Ok(mut members) = serde_json::from_str::<Members>(result.get()) else { return Err(fault) };
    let Some((_, entries)) = members.0.iter_mut().find(|(name, _)| name == list) else { return Err(fault) };
    let Ok(mut all) = serde_json::from_str::<Vec<&RawValue>>(entries.get()) else { return Err(fault) };
    let (mut left_out, mut index) = (LeftOut::default(), 0);
    all.retain(|entry| {
        let read = serde_json::from_str::<T>(entry.get());
        if let Err(fault) = &read {
            left_out.add(index, entry, fault);
        }
        index += 1;
        read.is_ok()
    });
    if left_out.count == 0 {
        return Err(fault);
    }
    *entries = to_raw_value(&all)?;
    let page = to_raw_value(&members)?;
    Ok((serde_json::from_str(page.get())?, left_out))
}
