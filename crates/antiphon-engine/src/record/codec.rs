//! The record as CBOR. Questions, answers and results are JSON texts in it.
//!
//! ```text
//! [3, [round, state] | null, round, state-only legs, [entry, ...], [received, ...], [asked, ...], [note, ...]]
//! ```

use super::{
    AskRecord, Entry, EntryBody, HandlerState, Note, OpenStep, ReceivedAnswer, Record, StepFailure,
    StepOutcome, UrlReference, Within,
};
use antiphon_seal::Digest;
use antiphon_wire::AskSupport;
use minicbor::{Decoder, Encoder, data::Type, decode, encode};
use std::convert::Infallible;

const FORMAT: u8 = 3;

pub(super) type Encoded = Result<(), encode::Error<Infallible>>;
pub(super) type Out = Encoder<Vec<u8>>;

/// An error from a record that cannot be encoded, or from bytes that are not a record of this format.
#[derive(Debug)]
pub struct RecordError(pub(super) String);

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not a record of this format: {}", self.0)
    }
}

impl std::error::Error for RecordError {}

impl Record {
    /// Encodes the record as bytes.
    ///
    /// # Errors
    /// If the codec rejects a part of the record.
    pub fn encode(&self) -> Result<Vec<u8>, RecordError> {
        let mut out = Encoder::new(Vec::with_capacity(256));
        self.write(&mut out).map_err(|fault| RecordError(fault.to_string()))?;
        Ok(out.into_writer())
    }

    fn write(&self, out: &mut Out) -> Encoded {
        out.array(8)?.u8(FORMAT)?;
        match &self.state {
            Some(HandlerState { round, text }) => out.array(2)?.u32(*round)?.str(text)?,
            None => out.null()?,
        };
        out.u32(self.round)?.u8(self.state_only_count)?;
        write_list(out, &self.entries, Entry::encode)?;
        write_list(out, &self.received, ReceivedAnswer::encode)?;
        write_list(out, &self.asked, AskRecord::encode)?;
        write_list(out, &self.notes, Note::encode)
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// If the bytes are not exactly one record of this format.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut input = Decoder::new(bytes);
        let record = Self::read(&mut input).and_then(|record| {
            expect(input.position() == bytes.len())?;
            Ok(record)
        });
        record.map_err(|fault| RecordError(fault.to_string()))
    }

    fn read(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        expect(input.array()? == Some(8) && input.u8()? == FORMAT)?;
        Ok(Self {
            state: optional(input, HandlerState::decode)?,
            round: input.u32()?,
            state_only_count: input.u8()?,
            entries: read_list(input, Entry::decode)?,
            received: read_list(input, ReceivedAnswer::decode)?,
            asked: read_list(input, AskRecord::decode)?,
            notes: read_list(input, Note::decode)?,
            ..Self::default()
        })
    }
}

/// The tags of entries and notes: the first member of each.
mod tag {
    pub(super) const ANSWER: u8 = 0;
    pub(super) const STEP_DONE: u8 = 1;
    pub(super) const STEP_FAILED: u8 = 2;
    pub(super) const STEP_ABANDONED: u8 = 3;
    pub(super) const SELECT: u8 = 4;
    pub(super) const CHECKPOINT: u8 = 5;
    pub(super) const STEP_OPEN: u8 = 6;
    pub(super) const STEP_DONE_ABANDONED: u8 = 7;
    /// The tags of notes.
    pub(super) const ASKS: u8 = 0;
    pub(super) const URL_REFERENCE: u8 = 1;
}

impl HandlerState {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        expect(input.array()? == Some(2))?;
        Ok(Self { round: input.u32()?, text: input.str()?.to_owned() })
    }
}

/// Encodes the branches around a step or a question.
pub(super) fn write_within(out: &mut Out, within: &Within) -> Encoded {
    write_list(out, within, |(path, branch), out| {
        out.array(2)?.str(path)?.u8(*branch)?;
        Ok(())
    })
}

/// Decodes the branches around a step.
pub(super) fn read_within(input: &mut Decoder<'_>) -> Result<Within, decode::Error> {
    let within = read_list(input, |input| {
        expect(input.array()? == Some(2))?;
        Ok((input.str()?.into(), input.u8()?))
    });
    within.map(Vec::into_boxed_slice)
}

impl Entry {
    pub(super) fn encode(&self, out: &mut Out) -> Encoded {
        let (tag, mut members) = match &self.body {
            EntryBody::Answer { first, .. } => (tag::ANSWER, 5 + u64::from(*first != self.round)),
            EntryBody::Step { outcome: StepOutcome::Done(_), .. } => (tag::STEP_DONE, 3),
            EntryBody::Step { outcome: StepOutcome::Failed(_), .. } => (tag::STEP_FAILED, 6),
            EntryBody::Step { outcome: StepOutcome::Abandoned { is_done: false }, .. } => {
                (tag::STEP_ABANDONED, 2)
            }
            EntryBody::Step { outcome: StepOutcome::Abandoned { is_done: true }, .. } => {
                (tag::STEP_DONE_ABANDONED, 2)
            }
            EntryBody::Open(_) => (tag::STEP_OPEN, 4),
            EntryBody::Select { .. } => (tag::SELECT, 1),
            EntryBody::Checkpoint => (tag::CHECKPOINT, 0),
        };
        if let EntryBody::Step { undelivered: Some(within), .. } = &self.body {
            members += u64::from(!within.is_empty());
        }
        out.array(3 + members)?.u8(tag)?.str(&self.path)?.u32(self.round)?;
        match &self.body {
            EntryBody::Answer { digest, times, text, refusal, at, first } => {
                out.bytes(&digest.to_bytes())?.u8(*times)?.bool(*refusal)?;
                write_optional_text(out, text.as_deref())?;
                write_optional_number(out, *at)?;
                // Most questions were open in one round only.
                if *first != self.round {
                    out.u32(*first)?;
                }
            }
            EntryBody::Step { input, stale, undelivered, outcome } => {
                write_optional_digest(out, input.as_ref())?;
                let within = undelivered.as_ref().filter(|within| !within.is_empty());
                let flags = [*stale, undelivered.is_some(), within.is_some()];
                out.u8(flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag)))?;
                if let Some(within) = within {
                    write_within(out, within)?;
                }
                match outcome {
                    StepOutcome::Done(text) => {
                        out.str(text)?;
                    }
                    StepOutcome::Failed(failure) => {
                        out.str(&failure.message)?;
                        write_optional_text(out, failure.code.as_deref())?;
                        write_optional_text(out, failure.data.as_deref())?;
                        out.bool(failure.user_facing)?;
                    }
                    StepOutcome::Abandoned { .. } => {}
                }
            }
            EntryBody::Open(open) => {
                let OpenStep { attempt, input, key_path, within } = &**open;
                out.u32(*attempt)?;
                write_optional_digest(out, input.as_ref())?;
                write_optional_text(out, Some(&**key_path).filter(|path| **path != *self.path))?;
                write_within(out, within)?;
            }
            EntryBody::Select { winner } => {
                out.u8(*winner)?;
            }
            EntryBody::Checkpoint => {}
        }
        Ok(())
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        let members = input.array()?;
        let tag = input.u8()?;
        let (path, round): (std::sync::Arc<str>, u32) = (input.str()?.into(), input.u32()?);
        let (body, expected) = match tag {
            tag::ANSWER => {
                let (digest, times, refusal) = (digest(input)?, input.u8()?, input.bool()?);
                let text = optional_text(input)?;
                // Records of earlier releases have no time.
                let (at, first, expected) = match members {
                    Some(7) => (None, round, 4),
                    Some(9) => (optional(input, Decoder::u64)?, input.u32()?, 6),
                    _ => (optional(input, Decoder::u64)?, round, 5),
                };
                (EntryBody::Answer { digest, times, refusal, text, at, first }, expected)
            }
            tag::STEP_DONE => {
                let (pinned, flags) = (optional(input, digest)?, StepFlags::decode(input)?);
                let outcome = StepOutcome::Done(input.str()?.into());
                let members = 3 + flags.members();
                (flags.step(pinned, outcome), members)
            }
            tag::STEP_FAILED => {
                let (pinned, flags) = (optional(input, digest)?, StepFlags::decode(input)?);
                let message = input.str()?.to_owned();
                let (code, data) = (optional_text(input)?, optional_text(input)?);
                let failure = StepFailure { message, code, data, user_facing: input.bool()? };
                let members = 6 + flags.members();
                (flags.step(pinned, StepOutcome::Failed(failure)), members)
            }
            tag::STEP_ABANDONED | tag::STEP_DONE_ABANDONED => {
                let (pinned, flags) = (optional(input, digest)?, StepFlags::decode(input)?);
                let members = 2 + flags.members();
                (
                    flags.step(pinned, StepOutcome::Abandoned { is_done: tag == tag::STEP_DONE_ABANDONED }),
                    members,
                )
            }
            tag::STEP_OPEN => {
                let (attempt, pinned) = (input.u32()?, optional(input, digest)?);
                let key_path = optional_text(input)?.map_or_else(|| path.clone(), Into::into);
                let within = read_within(input)?;
                (EntryBody::Open(Box::new(OpenStep { attempt, input: pinned, key_path, within })), 4)
            }
            tag::SELECT => (EntryBody::Select { winner: input.u8()? }, 1),
            tag::CHECKPOINT => (EntryBody::Checkpoint, 0),
            _ => return Err(decode::Error::message("an entry of an unknown kind")),
        };
        expect(members == Some(3 + expected))?;
        Ok(Self { path, round, body })
    }
}

impl AskRecord {
    fn encode(&self, out: &mut Out) -> Encoded {
        let has_within = !self.within.is_empty();
        let has_first = has_within || self.first != self.round;
        out.array(9 + u64::from(has_first) + u64::from(has_within))?;
        out.str(&self.path)?.bytes(&self.digest.to_bytes())?.u8(self.times)?.u32(self.round)?;
        write_optional_number(out, self.deadline)?;
        write_optional_digest(out, self.agreed.as_ref())?;
        write_optional_text(out, self.question.as_deref())?;
        write_optional_text(out, self.answer.as_ref().map(|answer| &*answer.text))?;
        write_optional_text(out, self.not_asked.as_deref())?;
        if has_first {
            out.u32(self.first)?;
        }
        if has_within { write_within(out, &self.within) } else { Ok(()) }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        let members = input.array()?;
        expect(matches!(members, Some(9..=11)))?;
        let (path, digest, times, round) = (input.str()?.into(), digest(input)?, input.u8()?, input.u32()?);
        Ok(Self {
            path,
            digest,
            times,
            round,
            deadline: optional(input, Decoder::u64)?,
            agreed: optional(input, self::digest)?,
            question: optional_text(input)?.map(Into::into),
            answer: optional_text(input)?.map(Into::into),
            not_asked: optional_text(input)?.map(Into::into),
            first: if members == Some(9) { round } else { input.u32()? },
            within: if members == Some(11) { read_within(input)? } else { Within::default() },
        })
    }
}

impl ReceivedAnswer {
    fn encode(&self, out: &mut Out) -> Encoded {
        out.array(3)?;
        self.asked.encode(out)?;
        write_optional_text(out, self.text.as_deref())?;
        write_optional_number(out, self.at)
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        let members = input.array()?;
        let (asked, text) = (AskRecord::decode(input)?, optional_text(input)?);
        // Records of earlier releases have no time.
        let (at, expected) = match members {
            Some(2) => (None, 2),
            _ => (optional(input, Decoder::u64)?, 3),
        };
        expect(members == Some(expected))?;
        Ok(Self { asked, text, response: None, at })
    }
}

impl Note {
    pub(super) fn encode(&self, out: &mut Out) -> Encoded {
        match self {
            Self::Asks(asks) => out.array(2)?.u8(tag::ASKS)?.u8(bits(*asks))?,
            Self::UrlReference { path, reference } => {
                let UrlReference { first_asked, created, text } = reference;
                out.array(5)?
                    .u8(tag::URL_REFERENCE)?
                    .str(path)?
                    .u64(*first_asked)?
                    .u64(*created)?
                    .str(text)?
            }
        };
        Ok(())
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        let members = input.array()?;
        let (note, expected) = match input.u8()? {
            tag::ASKS => (Self::Asks(asks(input.u8()?)), 2),
            tag::URL_REFERENCE => {
                let path = input.str()?.into();
                let (first_asked, created, text) = (input.u64()?, input.u64()?, input.str()?.into());
                (Self::UrlReference { path, reference: UrlReference { first_asked, created, text } }, 5)
            }
            _ => return Err(decode::Error::message("a note of an unknown kind")),
        };
        expect(members == Some(expected))?;
        Ok(note)
    }
}

/// Encodes each supported kind of question as one bit.
fn bits(asks: AskSupport) -> u8 {
    let all = [asks.form, asks.url, asks.sampling, asks.sampling_tools, asks.sampling_context, asks.roots];
    all.iter().enumerate().fold(0, |bits, (at, is_there)| bits | (u8::from(*is_there) << at))
}

fn asks(bits: u8) -> AskSupport {
    let has = |at: u8| bits & (1 << at) != 0;
    let mut asks = AskSupport::NONE;
    (asks.form, asks.url, asks.sampling) = (has(0), has(1), has(2));
    (asks.sampling_tools, asks.sampling_context, asks.roots) = (has(3), has(4), has(5));
    asks
}

/// The flags of a step: bit 0 is stale, bit 1 is undelivered, bit 2 says that the branches around it follow.
struct StepFlags {
    stale: bool,
    undelivered: Option<Within>,
}

impl StepFlags {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        let flags = input.u8()?;
        expect(flags < 4 || flags & 6 == 6 && flags < 8)?;
        let within = if flags & 4 != 0 { read_within(input)? } else { Within::default() };
        expect(flags & 4 == 0 || !within.is_empty())?;
        Ok(Self { stale: flags & 1 != 0, undelivered: (flags & 2 != 0).then_some(within) })
    }

    /// Returns the number of members that follow the flags.
    fn members(&self) -> u64 {
        u64::from(self.undelivered.as_ref().is_some_and(|within| !within.is_empty()))
    }

    fn step(self, input: Option<Digest>, outcome: StepOutcome) -> EntryBody {
        let Self { stale, undelivered } = self;
        EntryBody::Step { input, stale, undelivered, outcome }
    }
}

pub(super) fn expect(holds: bool) -> Result<(), decode::Error> {
    if holds { Ok(()) } else { Err(decode::Error::message("unexpected member")) }
}

pub(super) fn write_list<T>(out: &mut Out, items: &[T], encode: impl Fn(&T, &mut Out) -> Encoded) -> Encoded {
    out.array(items.len() as u64)?;
    items.iter().try_for_each(|item| encode(item, out))
}

pub(super) fn read_list<'b, T>(
    input: &mut Decoder<'b>,
    read: impl Fn(&mut Decoder<'b>) -> Result<T, decode::Error>,
) -> Result<Vec<T>, decode::Error> {
    let count = input.array()?.ok_or_else(|| decode::Error::message("an open-ended list"))?;
    // Each item has at least one byte.
    let most = input.input().len() - input.position();
    let mut items = Vec::with_capacity(usize::try_from(count).unwrap_or(most).min(most));
    for _ in 0..count {
        items.push(read(input)?);
    }
    Ok(items)
}

pub(super) fn write_optional_text(out: &mut Out, text: Option<&str>) -> Encoded {
    match text {
        Some(text) => out.str(text)?,
        None => out.null()?,
    };
    Ok(())
}

fn write_optional_number(out: &mut Out, number: Option<u64>) -> Encoded {
    match number {
        Some(number) => out.u64(number)?,
        None => out.null()?,
    };
    Ok(())
}

pub(super) fn write_optional_digest(out: &mut Out, digest: Option<&Digest>) -> Encoded {
    match digest {
        Some(digest) => out.bytes(&digest.to_bytes())?,
        None => out.null()?,
    };
    Ok(())
}

pub(super) fn optional_text(input: &mut Decoder<'_>) -> Result<Option<String>, decode::Error> {
    optional(input, |input| input.str().map(str::to_owned))
}

pub(super) fn digest(input: &mut Decoder<'_>) -> Result<Digest, decode::Error> {
    let bytes: [u8; 16] =
        input.bytes()?.try_into().map_err(|_| decode::Error::message("a digest has 16 bytes"))?;
    Ok(Digest::from_bytes(bytes))
}

pub(super) fn optional<'b, T>(
    input: &mut Decoder<'b>,
    read: impl FnOnce(&mut Decoder<'b>) -> Result<T, decode::Error>,
) -> Result<Option<T>, decode::Error> {
    if input.datatype()? == Type::Null {
        input.null()?;
        return Ok(None);
    }
    read(input).map(Some)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

    use super::*;
    use proptest::{collection::vec, option, prelude::*};

    fn digest() -> impl Strategy<Value = Digest> {
        any::<[u8; 16]>().prop_map(Digest::from_bytes)
    }

    fn maybe_text() -> impl Strategy<Value = Option<String>> {
        option::of(".{0,30}")
    }

    fn outcome() -> impl Strategy<Value = StepOutcome> {
        let failed = (".{0,20}", maybe_text(), maybe_text(), any::<bool>());
        prop_oneof![
            ".{0,40}".prop_map(|text| StepOutcome::Done(text.into())),
            failed.prop_map(|(message, code, data, user_facing)| StepOutcome::Failed(StepFailure {
                message,
                code,
                data,
                user_facing
            })),
            any::<bool>().prop_map(|is_done| StepOutcome::Abandoned { is_done }),
        ]
    }

    /// A question is mostly first open in the round of its answer.
    fn rounds() -> impl Strategy<Value = u32> {
        prop_oneof![0..4_u32, any::<u32>()]
    }

    fn body() -> impl Strategy<Value = EntryBody> {
        prop_oneof![
            (digest(), any::<u8>(), maybe_text(), any::<bool>(), any::<Option<u64>>(), 0..4_u32).prop_map(
                |(digest, times, text, refusal, at, first)| EntryBody::Answer {
                    digest,
                    times,
                    text,
                    refusal,
                    at,
                    first
                }
            ),
            (option::of(digest()), any::<bool>(), option::of(within()), outcome()).prop_map(
                |(input, stale, undelivered, outcome)| EntryBody::Step { input, stale, undelivered, outcome }
            ),
            (any::<u32>(), option::of(digest()), ".{0,12}", within()).prop_map(
                |(attempt, input, key_path, within)| {
                    EntryBody::Open(Box::new(OpenStep { attempt, input, key_path: key_path.into(), within }))
                }
            ),
            any::<u8>().prop_map(|winner| EntryBody::Select { winner }),
            Just(EntryBody::Checkpoint),
        ]
    }

    fn note() -> impl Strategy<Value = Note> {
        let reference = (".{0,12}", any::<u64>(), any::<u64>(), ".{0,40}");
        prop_oneof![
            (0..64_u8).prop_map(|bits| Note::Asks(asks(bits))),
            reference.prop_map(|(path, first_asked, created, text)| Note::UrlReference {
                path: path.into(),
                reference: UrlReference { first_asked, created, text: text.into() }
            }),
        ]
    }

    prop_compose! {
        fn within()(within in vec((".{0,6}", any::<u8>()), 0..3)) -> Within {
            within.into_iter().map(|(path, branch)| (path.into(), branch)).collect()
        }
    }

    prop_compose! {
        fn entry()(path in ".{0,12}", round in rounds(), body in body()) -> Entry {
            Entry { path: path.into(), round, body }
        }
    }

    prop_compose! {
        fn asked()(
            path in ".{0,12}",
            (digest, agreed) in (digest(), option::of(digest())),
            (times, round, first, deadline) in (any::<u8>(), rounds(), rounds(), any::<Option<u64>>()),
            (question, answer, not_asked) in (maybe_text(), maybe_text(), maybe_text()),
            within in within(),
        ) -> AskRecord {
            let (question, not_asked) = (question.map(Into::into), not_asked.map(Into::into));
            AskRecord { path: path.into(), digest, times, round, first, deadline, agreed, question, answer: answer.map(Into::into), not_asked, within }
        }
    }

    prop_compose! {
        fn received()(asked in asked(), text in maybe_text(), at in any::<Option<u64>>()) -> ReceivedAnswer {
            ReceivedAnswer { asked, text, response: None, at }
        }
    }

    prop_compose! {
        fn record()(
            state in option::of((any::<u32>(), ".{0,30}").prop_map(|(round, text)| HandlerState { round, text })),
            entries in vec(entry(), 0..6),
            received in vec(received(), 0..4),
            asked in vec(asked(), 0..4),
            notes in vec(note(), 0..4),
            (round, state_only_count) in any::<(u32, u8)>(),
        ) -> Record {
            Record { state, entries, received, asked, notes, round, state_only_count, ..Record::default() }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn decoding_restores_the_record(record in record()) {
            let bytes = record.encode().unwrap();
            let read = Record::decode(&bytes).unwrap();
            // `Digest` has no `==` on purpose, so the texts are compared.
            prop_assert_eq!(format!("{record:?}"), format!("{read:?}"));
            prop_assert_eq!(read.encode().unwrap(), bytes);
            prop_assert_eq!(read.size(), record.size());
        }

        #[test]
        fn partial_and_trailing_bytes_are_rejected(record in record(), behind in any::<u8>()) {
            let mut bytes = record.encode().unwrap();
            for end in 0..bytes.len() {
                prop_assert!(Record::decode(&bytes[..end]).is_err(), "{} of {} bytes", end, bytes.len());
            }
            bytes.push(behind);
            prop_assert!(Record::decode(&bytes).is_err());
        }

        /// The estimated size is not smaller than the encoded size, except for members that the estimate leaves out.
        #[test]
        fn the_estimated_size_covers_the_encoded_size(record in record()) {
            let received = record.received.iter().map(|received| &received.asked);
            let all = record.asked.iter().chain(received);
            let left_out: usize = all.map(|asked| 17 + asked.not_asked.as_ref().map_or(0, |text| text.len())).sum();
            prop_assert!(record.encode().unwrap().len() <= record.size() + left_out + 32);
        }

        #[test]
        fn random_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..300)) {
            let _ = Record::decode(&bytes);
        }

        /// Bytes that differ from a record in one byte. Everything that decodes encodes and decodes to the same record.
        #[test]
        fn a_changed_byte_is_read_or_refused(record in record(), at in any::<prop::sample::Index>(), byte: u8) {
            let mut bytes = record.encode().unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(read) = Record::decode(&bytes) {
                let again = Record::decode(&read.encode().unwrap()).unwrap();
                prop_assert_eq!(format!("{read:?}"), format!("{again:?}"));
            }
        }
    }

    #[test]
    fn the_estimated_size_includes_reasons() {
        let reason = "a description of a field fault; ".repeat(8);
        let asked = AskRecord {
            path: "a".into(),
            digest: Digest::from_bytes([7; 16]),
            times: 1,
            round: 1,
            first: 1,
            deadline: None,
            agreed: None,
            question: None,
            answer: None,
            not_asked: Some(reason.into()),
            within: [("a race".into(), 1)].into(),
        };
        let record = Record { asked: vec![asked; 64], ..Record::default() };
        assert!(record.encode().unwrap().len() <= record.size() + 32);
    }

    /// Checks that the bytes are rejected.
    fn check_refused(bytes: &[u8], why: &str) {
        let fault = Record::decode(bytes).unwrap_err();
        assert!(fault.to_string().starts_with("not a record of this format"), "{why}: {fault}");
    }

    /// A record that an earlier release wrote: its answers have no time.
    #[test]
    fn answers_without_a_time_are_read() {
        let digest = [&[0x50][..], &[7; 16]].concat();
        let head = [0x88, FORMAT, 0xf6, 0x02, 0x00];
        let entry =
            [&[0x81, 0x87, 0x00, 0x61, b'a', 0x01][..], &digest, &[0x01, 0xf4, 0x62, b'{', b'}']].concat();
        let asked = [&[0x89, 0x61, b'b'][..], &digest, &[0x01, 0x01, 0xf6, 0xf6, 0xf6, 0xf6, 0xf6]].concat();
        let received = [&[0x81, 0x82][..], &asked, &[0x62, b'{', b'}']].concat();
        let record = Record::decode(&[&head[..], &entry, &received, &[0x80, 0x80]].concat()).unwrap();
        assert!(
            matches!(&record.entries[0].body, EntryBody::Answer { at: None, text: Some(text), .. } if text == "{}")
        );
        assert_eq!((record.received[0].at, record.received[0].text.as_deref()), (None, Some("{}")));
    }

    #[test]
    fn malformed_bytes_are_rejected() {
        const HEAD: [u8; 5] = [0x88, FORMAT, 0xf6, 0x01, 0x00];
        let with = |rest: &[u8]| [&HEAD[..], rest].concat();
        Record::decode(&with(&[0x80, 0x80, 0x80, 0x80])).unwrap();
        check_refused(&[], "nothing");
        check_refused(&[0x88, FORMAT - 1, 0xf6, 0x01, 0x00, 0x80, 0x80, 0x80, 0x80], "an older format");
        check_refused(&[0x88, FORMAT + 1, 0xf6, 0x01, 0x00, 0x80, 0x80, 0x80, 0x80], "a newer format");
        check_refused(&[0x87, FORMAT, 0xf6, 0x01, 0x00, 0x80, 0x80, 0x80], "a missing list");
        check_refused(&with(&[0x9f, 0xff, 0x80, 0x80, 0x80]), "an open-ended list");
        check_refused(
            &with(&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            "more entries than bytes",
        );
        check_refused(
            &with(&[0x81, 0x83, 0x06, 0x61, b'a', 0x01, 0x80, 0x80, 0x80]),
            "an unknown kind of entry",
        );
        check_refused(
            &with(&[0x81, 0x84, 0x05, 0x61, b'a', 0x01, 0x00, 0x80, 0x80, 0x80]),
            "a checkpoint with an extra member",
        );
        check_refused(&with(&[0x80, 0x80, 0x80, 0x81, 0x82, 0x02, 0x00]), "an unknown kind of note");
    }
}
