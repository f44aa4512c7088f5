//! The line framing of stdio, without I/O.

/// The default maximum length of a line, in bytes: 16 MiB.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// A buffer that splits bytes into lines.
#[derive(Debug)]
pub struct LineBuffer {
    buffer: Vec<u8>,
    /// The number of bytes at the start that were returned already.
    taken: usize,
    /// The position up to which the rest was searched for a newline.
    scanned: usize,
    limit: usize,
    /// True while the rest of a line that is too long is discarded.
    skipping: bool,
}

/// One result of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its newline.
    Whole(Vec<u8>),
    /// A line longer than the limit. The buffer discards the line up to its end.
    TooLong,
}

impl LineBuffer {
    /// Creates a buffer for lines of at most `limit` bytes, including trailing white space.
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), taken: 0, scanned: 0, limit, skipping: false }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next line that is not blank; `None` if more bytes are needed.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(offset) = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n') else {
                self.buffer.drain(..std::mem::take(&mut self.taken));
                self.scanned = self.buffer.len();
                if self.skipping {
                    self.clear();
                } else if self.buffer.len() > self.limit {
                    self.clear();
                    self.skipping = true;
                    return Some(Line::TooLong);
                }
                return None;
            };
            let (start, end) = (self.taken, self.scanned + offset);
            (self.taken, self.scanned) = (end + 1, end + 1);
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if end - start > self.limit {
                return Some(Line::TooLong);
            }
            let length = self.buffer[start..end].trim_ascii_end().len();
            if length == 0 {
                continue;
            }
            return Some(Line::Whole(self.take(start, length)));
        }
    }

    /// Returns what is in the buffer after the last newline, for the end of the stream: the last line may have none. `None` if that is
    /// blank, or the end of a line that was too long.
    pub fn finish(&mut self) -> Option<Line> {
        let is_line = !self.skipping && self.is_mid_line();
        self.push(b"\n");
        is_line.then(|| self.next_line()).flatten()
    }

    /// Takes a line out of the buffer. Copies the shorter part, usually the line: if each short line moved all bytes after
    /// it, the work would be quadratic.
    fn take(&mut self, start: usize, length: usize) -> Vec<u8> {
        let behind = self.buffer.len() - self.taken;
        if start > 0 || behind >= length {
            return self.buffer[start..start + length].to_vec();
        }
        let rest = self.buffer.split_off(self.taken);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        (self.taken, self.scanned) = (0, 0);
        line.truncate(length);
        line
    }

    /// Returns true if the buffer contains an incomplete line.
    pub fn is_mid_line(&self) -> bool {
        self.skipping || !self.buffer[self.taken..].trim_ascii().is_empty()
    }

    fn clear(&mut self) {
        self.buffer = Vec::new();
        (self.taken, self.scanned) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(pieces: &[&[u8]], limit: usize) -> Vec<Line> {
        let mut buffer = LineBuffer::new(limit);
        let mut lines = Vec::new();
        for piece in pieces {
            buffer.push(piece);
            while let Some(line) = buffer.next_line() {
                lines.push(line);
            }
        }
        lines
    }

    #[test]
    fn lines_are_the_same_wherever_the_bytes_are_split() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        for (text, expected) in [
            (
                "{\"a\":1}\r\n\n  \n{\"b\":\"0123456789\"}\n{\"c\":3}\nhalf",
                vec![whole("{\"a\":1}"), Line::TooLong, whole("{\"c\":3}")],
            ),
            // Trailing white space counts, because more of the line may follow.
            ("{}         \n           \n{}       \r\n", vec![Line::TooLong, Line::TooLong, whole("{}")]),
        ] {
            let text = text.as_bytes();
            for at in 0..text.len() {
                assert_eq!(lines_of(&[&text[..at], &text[at..]], 10), expected, "split at {at}");
            }
            let bytes: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(lines_of(&bytes, 10), expected);
        }
    }

    #[test]
    fn the_end_of_the_stream_ends_the_last_line() {
        for (text, expected) in [
            ("", None),
            ("{}\n", None),
            ("{}\n \r\t", None),
            ("{}", Some(Line::Whole(b"{}".to_vec()))),
            ("{}\n{\"b\":2} \r", Some(Line::Whole(b"{\"b\":2}".to_vec()))),
            ("0123456789", Some(Line::Whole(b"0123456789".to_vec()))),
            // Reported when it became too long.
            ("0123456789x", None),
        ] {
            let mut buffer = LineBuffer::new(10);
            buffer.push(text.as_bytes());
            while buffer.next_line().is_some() {}
            assert_eq!(buffer.finish(), expected, "{text:?}");
            assert_eq!(buffer.finish(), None, "{text:?}");
        }
    }

    #[test]
    fn a_line_that_never_ends_takes_no_more_than_the_limit() {
        let mut buffer = LineBuffer::new(100);
        let mut too_long = 0;
        for _ in 0..1000 {
            buffer.push(&[b'x'; 64]);
            while let Some(line) = buffer.next_line() {
                assert_eq!(line, Line::TooLong);
                too_long += 1;
            }
            assert!(buffer.buffer.len() <= 164);
        }
        assert_eq!(too_long, 1);
        assert!(buffer.is_mid_line());
    }
}
