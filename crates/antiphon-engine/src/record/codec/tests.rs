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
    check_refused(&with(&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), "more entries than bytes");
    check_refused(&with(&[0x81, 0x83, 0x06, 0x61, b'a', 0x01, 0x80, 0x80, 0x80]), "an unknown kind of entry");
    check_refused(
        &with(&[0x81, 0x84, 0x05, 0x61, b'a', 0x01, 0x00, 0x80, 0x80, 0x80]),
        "a checkpoint with an extra member",
    );
    check_refused(&with(&[0x80, 0x80, 0x80, 0x81, 0x82, 0x02, 0x00]), "an unknown kind of note");
}
