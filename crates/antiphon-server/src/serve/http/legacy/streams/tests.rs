//! Readers and writers of streams: what is read after which event, and what stays stored.

use crate::serve::http::legacy::streams::*;
use std::task::{Context, Poll, Waker};

fn streams(events: usize) -> Arc<SessionStreams> {
    SessionStreams::new(EventLimits { events, bytes: 1 << 20, all_bytes: 1 << 20 }, Arc::default())
}

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// The items that a reader finds now, in order: messages, `.` behind the last of the stream, and how it ends.
fn all(reader: &Reader) -> String {
    let mut found = String::new();
    loop {
        match reader.poll_read(&cx()) {
            Poll::Ready(StreamItem::Event(event, last)) => {
                found.push_str(std::str::from_utf8(&event.message()).unwrap());
                if last {
                    return found + ".";
                }
            }
            Poll::Ready(end) => return format!("{found} {end:?}"),
            Poll::Pending => return found,
        }
    }
}

fn id(stream: u64, number: u64) -> EventId {
    EventId { stream, number }
}

#[tokio::test]
async fn a_stream_is_taken_up_where_it_is_kept() {
    let streams = streams(3);
    let (writer, reader) = streams.open();
    drop(reader);
    // `c` can be missed.
    for (message, matters) in [("a", true), ("b", true), ("c", false), ("d", true)] {
        writer.write(message.as_bytes(), matters);
    }
    writer.finish(Some(b"e"));
    for (number, expected) in [
        // `c` went first, then `a`.
        (0, Err(ResumeError::Lost)),
        (1, Ok("bde.")),
        (2, Ok("de.")),
        (3, Ok("de.")),
        (4, Ok("e.")),
        (5, Err(ResumeError::Complete)),
        (6, Err(ResumeError::Unknown)),
        (u64::MAX, Err(ResumeError::Unknown)),
    ] {
        let found = streams.resume(id(1, number)).map(|reader| all(&reader));
        assert_eq!(found, expected.map(str::to_owned), "{number}");
    }
    assert_eq!(streams.resume(id(2, 0)).map(|_| ()), Err(ResumeError::Unknown));
    assert_eq!(streams.resume(id(u64::MAX, 0)).map(|_| ()), Err(ResumeError::Unknown));
    // Another stream needs the room: nothing of the first is left.
    let (other, reader) = streams.open();
    drop(reader);
    for _ in 0..3 {
        other.write(b"x", true);
    }
    assert_eq!(streams.resume(id(1, 4)).map(|_| ()), Err(ResumeError::Lost));
    streams.end();
    assert_eq!(streams.resume(id(2, 3)).map(|_| ()), Err(ResumeError::Over));
}

/// Events that a connected reader has not taken stay, and their writer waits.
#[tokio::test]
async fn a_slow_reader_misses_nothing_and_one_that_is_gone_is_not_waited_for() {
    let streams = streams(2);
    let (writer, reader) = streams.open();
    for _ in 0..AHEAD {
        assert!(writer.poll_room(&cx()).is_ready());
        writer.write(b"a", true);
    }
    assert!(writer.poll_room(&cx()).is_pending());
    assert_eq!(all(&reader), "aaaa");
    assert!(writer.poll_room(&cx()).is_ready());
    for _ in 0..AHEAD {
        writer.write(b"b", true);
    }
    assert!(writer.poll_room(&cx()).is_pending());
    drop(reader);
    assert!(writer.poll_room(&cx()).is_ready());
    assert_eq!(streams.resume(id(1, 5)).map(|_| ()), Err(ResumeError::Lost));
    assert_eq!(all(&streams.resume(id(1, 6)).unwrap()), "bb");
}

#[tokio::test]
async fn readers_follow_each_other() {
    let streams = streams(10);
    let (writer, first) = streams.open();
    writer.write(b"a", true);
    assert_eq!(all(&first), "a");
    let second = streams.resume(id(1, 0)).unwrap();
    assert_eq!((all(&first).as_str(), all(&second).as_str()), (" Closed", "a"));
    // What the first leaves is not the second's.
    drop(first);
    writer.write(b"b", true);
    writer.close_reader();
    writer.write(b"c", true);
    assert_eq!(all(&second), "b Closed");
    drop(second);
    let third = streams.resume(id(1, 2)).unwrap();
    assert_eq!(all(&third), "c");
    writer.finish(None);
    assert_eq!(all(&third), " Done");
    drop(third);
    assert_eq!(all(&streams.resume(id(1, 0)).unwrap()), "abc.");
    streams.end();
    let (writer, reader) = streams.open();
    writer.write(b"x", true);
    assert_eq!(all(&reader), " Over");
}

#[tokio::test]
async fn the_stream_of_a_get_has_one_reader_and_goes_on_where_the_last_one_was() {
    let streams = streams(10);
    let writer = streams.to_standalone();
    let reader = streams.standalone().unwrap();
    assert!(streams.standalone().is_none());
    writer.write(b"a", true);
    assert_eq!(all(&reader), "a");
    writer.write(b"b", true);
    drop(reader);
    let reader = streams.standalone().unwrap();
    assert_eq!((reader.behind(), all(&reader).as_str()), (id(0, 1), "b"));
    drop(writer);
    let again = streams.resume(id(0, 0)).unwrap();
    assert_eq!((all(&reader).as_str(), all(&again).as_str()), (" Closed", "ab"));
}

#[tokio::test(start_paused = true)]
async fn it_is_idle_while_nothing_is_under_way_and_nobody_reads() {
    let streams = streams(10);
    let second = Duration::from_secs(1);
    let after = async |expected| {
        tokio::time::advance(second).await;
        assert_eq!(streams.idle(), expected);
    };
    after(second).await;
    let (writer, reader) = streams.open();
    after(Duration::ZERO).await;
    drop(reader);
    after(Duration::ZERO).await;
    writer.finish(Some(b"a"));
    after(second).await;
    let reader = streams.resume(id(1, 0)).unwrap();
    after(Duration::ZERO).await;
    drop(reader);
    after(second).await;
    let reader = streams.standalone();
    after(Duration::ZERO).await;
    drop(reader);
    after(second).await;
    after(2 * second).await;
    streams.touch();
    after(second).await;
}

/// Nothing is left of a stream that was forgotten.
#[tokio::test]
async fn streams_that_are_over_leave_nothing() {
    let streams = streams(5);
    for _ in 0..100 {
        let (writer, reader) = streams.open();
        writer.finish(Some(b"a"));
        assert_eq!(all(&reader), "a.");
        reader.forget();
    }
    assert_eq!(streams.inner().all.len(), 1);
    for _ in 0..100 {
        let (writer, reader) = streams.open();
        drop(reader);
        writer.write(b"a", true);
    }
    assert_eq!(streams.inner().all.len(), 1 + 5);
}
