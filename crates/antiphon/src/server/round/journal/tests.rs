use super::*;
use proptest::prelude::*;

fn pin() -> impl Strategy<Value = Digest> {
    any::<[u8; 16]>().prop_map(Digest::from_bytes)
}

fn outcome() -> impl Strategy<Value = StepOutcome> {
    let failed = (".{0,20}", any::<Option<String>>(), any::<Option<String>>(), any::<bool>());
    prop_oneof![
        ".{0,40}".prop_map(StepOutcome::Done),
        failed.prop_map(|(message, code, data, told)| StepOutcome::Failed(StepFailure {
            message,
            code,
            data,
            told
        })),
        Just(StepOutcome::Abandoned),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        (pin(), any::<u8>(), any::<bool>(), any::<Option<String>>())
            .prop_map(|(pin, times, used, text)| Body::Answer { pin, times, used, text }),
        (proptest::option::of(pin()), any::<bool>(), outcome())
            .prop_map(|(input, stale, outcome)| Body::Step { input, stale, outcome }),
        any::<u8>().prop_map(|winner| Body::Race { winner }),
        Just(Body::Passed),
        ".{0,20}".prop_map(|text| Body::Note { text }),
    ]
}

prop_compose! {
    fn entry()(path in ".{0,12}", seat in ".{0,6}", body in body()) -> Entry {
        Entry { path: path.into(), seat: seat.into(), body }
    }
}

prop_compose! {
    fn asked()(
        (path, seat) in (".{0,12}", ".{0,6}"),
        pin in pin(),
        times in any::<u8>(),
        deadline in any::<Option<u64>>(),
    ) -> AskedOnce {
        AskedOnce { path: path.into(), seat: seat.into(), pin, times, deadline }
    }
}

prop_compose! {
    fn journal()(
        entries in proptest::collection::vec(entry(), 0..6),
        asked in proptest::collection::vec(asked(), 0..4),
        state_only in any::<u8>(),
    ) -> Journal {
        Journal { entries, asked, state_only }
    }
}

fn written(journal: &Journal) -> Vec<u8> {
    let mut out = Encoder::new(Vec::new());
    journal.encode(&mut out).unwrap();
    out.into_writer()
}

proptest! {
    #[test]
    fn what_is_written_is_read(journal in journal()) {
        let bytes = written(&journal);
        let read = Journal::decode(&mut Decoder::new(&bytes)).unwrap();
        // Digests are not compared with `==`: their text is.
        prop_assert_eq!(format!("{journal:?}"), format!("{read:?}"));
        for end in 0..bytes.len() {
            prop_assert!(Journal::decode(&mut Decoder::new(&bytes[..end])).is_err());
        }
    }

    /// What is accounted for is not less than what is written.
    #[test]
    fn the_size_is_not_understated(journal in journal()) {
        prop_assert!(written(&journal).len() <= journal.size() + 32);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Journal::decode(&mut Decoder::new(&bytes));
    }
}
