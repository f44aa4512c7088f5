//! What travels inside the token, as CBOR: `[2, state | null, [[key, times, question, answer | null], ...], journal]`.
//! Questions and answers are JSON text.

use super::journal::{Journal, counted, expect, maybe, text};
use antiphon_wire::InputRequest;
use minicbor::{Decoder, Encoder, decode, encode};
use std::convert::Infallible;

const FORMAT: u8 = 2;

/// The state of a call between two legs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payload {
    /// The handler's own.
    pub(crate) state: Option<String>,
    /// The questions of the last round, if it was asked by hand.
    pub(crate) asked: Vec<Asked>,
    /// What was recorded.
    pub(crate) journal: Journal,
}

/// One question that was asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) key: String,
    /// How often, this time included; not counted again where the answer was only missing.
    pub(crate) times: u8,
    /// As the handler rendered it, without any reason appended later.
    pub(crate) question: String,
    /// The checked answer, kept while others of the round are asked again.
    pub(crate) answer: Option<String>,
}

impl Asked {
    /// A question that is asked for the first time.
    pub(crate) fn first(key: &str, request: &InputRequest) -> Result<Self, serde_json::Error> {
        Ok(Self { key: key.to_owned(), times: 1, question: serde_json::to_string(request)?, answer: None })
    }
}

impl Payload {
    /// Of the same call, without what it came to. How many of its legs ended without a question is its client's to count.
    pub(crate) fn begun_again(&self) -> Self {
        let journal = Journal { state_only: self.journal.state_only, ..Journal::default() };
        Self { journal, ..Self::default() }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, encode::Error<Infallible>> {
        let mut out = Encoder::new(Vec::with_capacity(256));
        out.array(4)?.u8(FORMAT)?;
        maybe(&mut out, self.state.as_deref())?;
        out.array(self.asked.len() as u64)?;
        for asked in &self.asked {
            out.array(4)?.str(&asked.key)?.u8(asked.times)?.str(&asked.question)?;
            maybe(&mut out, asked.answer.as_deref())?;
        }
        self.journal.encode(&mut out)?;
        Ok(out.into_writer())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, decode::Error> {
        let mut input = Decoder::new(bytes);
        expect(input.array()? == Some(4) && input.u8()? == FORMAT)?;
        let state = text(&mut input)?;
        let mut asked = Vec::new();
        for _ in 0..counted(&mut input)? {
            expect(input.array()? == Some(4))?;
            let key = input.str()?.to_owned();
            let times = input.u8()?;
            let question = input.str()?.to_owned();
            asked.push(Asked { key, times, question, answer: text(&mut input)? });
        }
        let journal = Journal::decode(&mut input)?;
        expect(input.position() == bytes.len())?;
        Ok(Self { state, asked, journal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn asked()(key in ".{0,9}", times in any::<u8>(), question in ".{0,40}", answer in any::<Option<String>>()) -> Asked {
            Asked { key, times, question, answer }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(state in any::<Option<String>>(), asked in proptest::collection::vec(asked(), 0..5)) {
            let payload = Payload { state, asked, journal: Journal::default() };
            let bytes = payload.encode().unwrap();
            let read = Payload::decode(&bytes).unwrap();
            prop_assert_eq!((read.state, read.asked), (payload.state, payload.asked));
            // Whatever is cut off is missed.
            for end in 0..bytes.len() {
                prop_assert!(Payload::decode(&bytes[..end]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Payload::decode(&bytes);
        }
    }
}
