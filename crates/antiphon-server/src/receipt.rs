//! Receipts: sealed records of the questions and answers of a call.

use antiphon_seal::{KeyRing, Principal, Reason, ReceiptKeys, TextFault, arguments_digest, entry_digest};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{error::Error as StdError, fmt};

const FORMAT: u8 = 1;

/// A verified receipt of one call: its questions as they were rendered, with their answers, in order. A server with the
/// keys made it, and nobody has changed it. [`Ctx::receipt`](crate::Ctx::receipt) creates the sealed text.
///
/// Its JSON is for programs; all of its texts come from others, and are to be escaped before a person reads them.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Receipt {
    format: u8,
    /// The call.
    pub call: ReceiptCall,
    /// The time at which the receipt was made, in Unix seconds.
    pub issued: u64,
    /// The questions that the handler had answers to, in the order in which it received them.
    pub entries: Vec<ReceiptEntry>,
    /// The digest of the last entry, as hexadecimal digits.
    pub head: String,
}

/// The call of a receipt.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReceiptCall {
    /// The name of the server.
    pub server: String,
    /// The id of the call, as logged.
    pub id: String,
    /// The time at which the call began, in Unix seconds.
    pub began: u64,
    /// The JSON-RPC method.
    pub method: String,
    /// The name of the tool or prompt, or the URI of the resource.
    pub target: String,
    /// The version of the tool.
    pub version: u32,
    /// The digest of the arguments, as hexadecimal digits: see [`Receipt::has_arguments`].
    pub arguments: String,
    /// The caller; `None` without authentication.
    pub caller: Option<ReceiptPerson>,
}

/// One question of a receipt, with its answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReceiptEntry {
    /// The digest of the entry before it, as hexadecimal digits; that of the call for the first entry.
    pub previous: String,
    /// The key of the question, scopes included.
    pub key: String,
    /// The round in which it was asked.
    pub round: u32,
    /// The question as the handler rendered it, as on the wire.
    pub shown: Box<RawValue>,
    /// The valid answer, as on the wire; `None` if the time for it was over.
    pub answer: Option<Box<RawValue>>,
    /// The time at which the answer reached a server, in Unix seconds; `None` if it was not recorded.
    pub at: Option<u64>,
    /// The person who answered; `None` without authentication.
    pub by: Option<ReceiptPerson>,
}

/// An authenticated person, or client software.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReceiptPerson {
    /// The identity provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The client software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// The request of a leg, as a receipt names it: in one allocation, because every later leg of a call has one.
pub(crate) struct ReceiptRequest {
    /// The method, the target, and the arguments.
    text: Box<str>,
    target_at: usize,
    arguments_at: usize,
    pub(crate) version: u32,
}

impl ReceiptRequest {
    pub(crate) fn new(method: &str, target: &str, arguments: Option<&RawValue>, version: u32) -> Self {
        // Absent and empty arguments are equal.
        let text = [method, target, arguments.map_or("{}", RawValue::get)].concat().into();
        Self { text, target_at: method.len(), arguments_at: method.len() + target.len(), version }
    }

    pub(crate) fn method(&self) -> &str {
        &self.text[..self.target_at]
    }

    pub(crate) fn target(&self) -> &str {
        &self.text[self.target_at..self.arguments_at]
    }

    /// Returns the JSON text of the arguments.
    pub(crate) fn arguments(&self) -> &str {
        &self.text[self.arguments_at..]
    }
}

impl From<&Principal> for ReceiptPerson {
    fn from(principal: &Principal) -> Self {
        let owned = |part: Option<&str>| part.map(str::to_owned);
        Self {
            issuer: owned(principal.issuer()),
            client_id: owned(principal.client_id()),
            subject: owned(principal.subject()),
        }
    }
}

impl Receipt {
    /// Returns the receipt in this text, if a server with one of these keys made it and nobody has changed it.
    ///
    /// # Errors
    /// [`ReceiptError`], whose text names the cause.
    pub fn verify(text: &str, ring: &KeyRing) -> Result<Self, ReceiptError> {
        let opened = ReceiptKeys::new(ring).open(text.trim_ascii());
        Self::read(&opened.map_err(|reason| ReceiptError(Fault::NotOpened(reason)))?)
    }

    pub(crate) fn new(call: ReceiptCall, issued: u64, entries: Vec<ReceiptEntry>) -> Option<Self> {
        let mut receipt = Self { format: FORMAT, call, issued, entries, head: String::new() };
        let mut digest = receipt.call.digest()?;
        for entry in &mut receipt.entries {
            entry.previous = hex(&digest);
            digest = entry.digest(&digest)?;
        }
        receipt.head = hex(&digest);
        Some(receipt)
    }

    /// Returns the receipt of an opened body, if its chain holds.
    pub(crate) fn read(body: &[u8]) -> Result<Self, ReceiptError> {
        let receipt: Self = serde_json::from_slice(body).map_err(|_| ReceiptError(Fault::Unreadable))?;
        if receipt.format != FORMAT {
            return Err(ReceiptError(Fault::Unreadable));
        }
        let chain = receipt.chain().ok_or(ReceiptError(Fault::Unreadable))?;
        let previous = receipt.entries.iter().map(|entry| &entry.previous);
        if !previous.chain([&receipt.head]).eq(&chain) {
            return Err(ReceiptError(Fault::Chain));
        }
        Ok(receipt)
    }

    /// Returns `true` if the call had these arguments, given as JSON text. They are compared by their meaning, as when a
    /// state is opened; absent, `null` and `{}` are equal.
    ///
    /// # Errors
    /// If the text has no canonical form.
    pub fn has_arguments(&self, arguments: Option<&str>) -> Result<bool, TextFault> {
        Ok(hex(&arguments_digest(arguments)?) == self.call.arguments)
    }

    /// Returns `true` if this receipt is of the same call as an earlier one, and begins with all of its entries.
    pub fn continues(&self, earlier: &Self) -> bool {
        self.call == earlier.call && self.chain().is_some_and(|chain| chain.contains(&earlier.head))
    }

    /// Returns the digests of the call and of each entry.
    fn chain(&self) -> Option<Vec<String>> {
        let mut digest = self.call.digest()?;
        let mut chain = vec![hex(&digest)];
        for entry in &self.entries {
            digest = entry.digest(&digest)?;
            chain.push(hex(&digest));
        }
        Some(chain)
    }
}

impl ReceiptCall {
    fn digest(&self) -> Option<[u8; 32]> {
        Some(entry_digest(&[0; 32], &serde_json::to_vec(self).ok()?))
    }
}

impl ReceiptEntry {
    fn digest(&self, previous: &[u8; 32]) -> Option<[u8; 32]> {
        Some(entry_digest(previous, &serde_json::to_vec(self).ok()?))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An error from making or verifying a receipt. Its text names the cause.
#[derive(Debug)]
pub struct ReceiptError(pub(crate) Fault);

#[derive(Debug)]
pub(crate) enum Fault {
    NotOpened(Reason),
    Unreadable,
    Chain,
    NothingAnswered,
    NotSealed(antiphon_seal::SealError),
    NotWritten(String),
}

impl fmt::Display for ReceiptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Fault::NotOpened(Reason::UnknownKey) => {
                "the receipt was sealed under another key: an older copy of the key file may have it"
            }
            Fault::NotOpened(Reason::Seal | Reason::Codec) => {
                "the receipt was changed, or its key was exchanged: nothing in it can be relied on"
            }
            Fault::NotOpened(Reason::TooLong) => "the text is too long for a receipt",
            Fault::NotOpened(Reason::Malformed) => "the text is not a receipt, or a part of it is missing",
            Fault::NotOpened(_) | Fault::Unreadable => {
                "the receipt has another format: another release made it"
            }
            Fault::Chain => "the entries of the receipt do not follow from each other",
            Fault::NothingAnswered => "no question of this call was answered yet: there is nothing to record",
            Fault::NotSealed(_) => "the receipt cannot be sealed",
            Fault::NotWritten(cause) => return write!(f, "the receipt cannot be written: {cause}"),
        })
    }
}

impl StdError for ReceiptError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0 {
            Fault::NotSealed(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt() -> Receipt {
        let call = ReceiptCall {
            server: "bank".to_owned(),
            id: "1".to_owned(),
            began: 1,
            method: "tools/call".to_owned(),
            target: "pay".to_owned(),
            version: 0,
            arguments: hex(&arguments_digest(None).unwrap()),
            caller: None,
        };
        let entry = |key: &str| ReceiptEntry {
            previous: String::new(),
            key: key.to_owned(),
            round: 1,
            shown: RawValue::from_string("{}".to_owned()).unwrap(),
            answer: None,
            at: None,
            by: None,
        };
        Receipt::new(call, 2, vec![entry("a"), entry("b"), entry("c")]).unwrap()
    }

    fn check(change: impl FnOnce(&mut Receipt), expected: Option<&str>) {
        let mut receipt = receipt();
        change(&mut receipt);
        let read = Receipt::read(&serde_json::to_vec(&receipt).unwrap());
        assert_eq!(read.err().map(|error| error.to_string()).as_deref(), expected);
    }

    #[test]
    fn entries_that_do_not_follow_are_refused() {
        const BROKEN: Option<&str> = Some("the entries of the receipt do not follow from each other");
        check(|_| {}, None);
        check(|receipt| receipt.issued = 3, None);
        check(|receipt| receipt.entries.swap(0, 1), BROKEN);
        check(|receipt| drop(receipt.entries.remove(0)), BROKEN);
        check(|receipt| drop(receipt.entries.pop()), BROKEN);
        check(|receipt| receipt.entries[1].at = Some(7), BROKEN);
        check(|receipt| receipt.call.target = "other".to_owned(), BROKEN);
        check(|receipt| receipt.head = String::new(), BROKEN);
        check(|receipt| receipt.format = 2, Some("the receipt has another format: another release made it"));
        assert!(Receipt::read(b"{}").is_err());
    }

    #[test]
    fn a_later_receipt_continues_an_earlier_one() {
        let late = receipt();
        let early =
            |entries: usize| Receipt::new(late.call.clone(), 1, late.entries[..entries].to_vec()).unwrap();
        for entries in 0..=3 {
            assert!(late.continues(&early(entries)), "{entries}");
            assert_eq!(early(entries).continues(&late), entries == 3);
        }
        let mut other = late.entries[..2].to_vec();
        other[0].at = Some(9);
        assert!(!late.continues(&Receipt::new(late.call.clone(), 1, other).unwrap()));
    }
}
