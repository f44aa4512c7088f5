//! Any bytes split into lines, for any split into chunks, as a second reader confirms that reads the whole stream.

#![no_main]

use antiphon_wire::framing::{Line, LineBuffer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (limit, piece, stream) = input;
    let limit = usize::from(limit);
    let (whole, is_mid_line) = read([stream], limit);
    assert_eq!(read(stream.chunks(usize::from(piece).max(1)), limit), (whole, is_mid_line));
    let (lines, _) = read([stream], limit);
    assert_eq!(lines, second_opinion(stream, limit));
});

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> (Vec<Line>, bool) {
    let mut buffer = LineBuffer::new(limit);
    let mut lines = Vec::new();
    for piece in pieces {
        buffer.push(piece);
        lines.extend(std::iter::from_fn(|| buffer.next_line()));
    }
    (lines, buffer.is_mid_line())
}

fn second_opinion(stream: &[u8], limit: usize) -> Vec<Line> {
    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    // An unfinished line is not a line, except if it is already too long.
    if lines.last().is_some_and(|last| last.len() <= limit) {
        lines.pop();
    }
    let read = |line: &[u8]| match line.trim_ascii_end() {
        _ if line.len() > limit => Some(Line::TooLong),
        [] => None,
        line => Some(Line::Whole(line.to_vec())),
    };
    lines.into_iter().filter_map(read).collect()
}
