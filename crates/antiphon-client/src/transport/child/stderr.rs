//! The forwarding of a child's standard error: line by line, within a rate.

use antiphon_wire::framing::{Line, LineBuffer};
use antiphon_wire::lock::Lock;
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::{Instant, sleep_until},
};

/// The longest line of a child's standard error that is forwarded.
const MAX_ERROR_LINE: usize = 8 * 1024;
/// The maximum number of lines that are forwarded in a second.
const MAX_LINES: usize = 200;
/// The maximum number of bytes that are forwarded in a second.
const MAX_BYTES: usize = 64 * 1024;
const SECOND: Duration = Duration::from_secs(1);

/// Takes one line.
pub(crate) type Callback = Box<dyn FnMut(&str) + Send>;
/// The receiver of the lines, of one run of the child after another.
pub(crate) type Forward = Arc<Lock<Callback>>;

/// The lines of one second. Nothing here reads a clock.
struct Rate {
    begun: Instant,
    lines: usize,
    bytes: usize,
    dropped_lines: u64,
    dropped_bytes: usize,
}

impl Rate {
    fn new(begun: Instant) -> Self {
        Self { begun, lines: 0, bytes: 0, dropped_lines: 0, dropped_bytes: 0 }
    }

    /// Returns `true` if a line of this length is forwarded. After the first line that is not, no other is in this second.
    fn admits(&mut self, bytes: usize) -> bool {
        if self.drops() || self.lines == MAX_LINES || self.bytes + bytes > MAX_BYTES {
            self.dropped_lines += 1;
            self.dropped_bytes += bytes;
            return false;
        }
        self.lines += 1;
        self.bytes += bytes;
        true
    }

    fn drops(&self) -> bool {
        self.dropped_lines > 0
    }

    /// Begins the next second if this one is over. Returns the line that says how much was dropped.
    fn next_second(&mut self, now: Instant) -> Option<String> {
        if now < self.end() {
            return None;
        }
        let report = self.report();
        *self = Self::new(now);
        report
    }

    fn end(&self) -> Instant {
        self.begun + SECOND
    }

    fn report(&self) -> Option<String> {
        let (lines, bytes) = (self.dropped_lines, self.dropped_bytes);
        self.drops()
            .then(|| format!("({lines} lines of {bytes} bytes in all are not shown: too many at once)"))
    }
}

/// Forwards the lines until the stream ends. The stream is always read, so that the child is never blocked.
///
/// > The server **MAY** write UTF-8 strings to `stderr` for any logging purposes
pub(crate) async fn forward_lines(mut pipe: impl AsyncRead + Unpin, forward: Forward) {
    // The callback belongs to the caller, so it is called again even after a panic.
    let send = |line: &str| forward.lock()(line);
    let mut lines = LineBuffer::new(MAX_ERROR_LINE);
    let mut chunk = vec![0; 4096];
    let mut rate = Rate::new(Instant::now());
    loop {
        let read = tokio::select! {
            biased;
            () = sleep_until(rate.end()), if rate.drops() => None,
            read = pipe.read(&mut chunk) => Some(read.unwrap_or(0)),
        };
        if let Some(report) = rate.next_second(Instant::now()) {
            send(&report);
        }
        let Some(count) = read else { continue };
        // The end of the stream ends the last line.
        lines.push(if count == 0 { b"\n" } else { &chunk[..count] });
        while let Some(line) = lines.next_line() {
            let line = match &line {
                Line::Whole(line) => String::from_utf8_lossy(line),
                Line::TooLong => format!("(a line of more than {MAX_ERROR_LINE} bytes)").into(),
            };
            if rate.admits(line.len()) {
                send(&line);
            }
        }
        if count == 0 {
            if let Some(report) = rate.report() {
                send(&report);
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    /// The forwarded lines of these texts, one second after another.
    async fn forwarded(texts: &[String]) -> Vec<String> {
        let (mut child, pipe) = tokio::io::duplex(1 << 20);
        let lines = Arc::new(Lock::new(Vec::new()));
        let sent = Arc::clone(&lines);
        let callback: Callback = Box::new(move |line| sent.lock().push(line.to_owned()));
        let write = async move {
            for text in texts {
                child.write_all(text.as_bytes()).await.unwrap();
                tokio::time::sleep(SECOND).await;
            }
        };
        tokio::join!(write, forward_lines(pipe, Arc::new(Lock::new(callback))));
        std::mem::take(&mut lines.lock())
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_cut_to_its_rate_and_reported() {
        let many = |lines: usize, bytes: usize| format!("{}\n", "x".repeat(bytes)).repeat(lines);
        for (name, texts, lines, reports) in [
            ("nothing", vec![], 0, &[][..]),
            ("a full second", vec![many(200, 1)], 200, &[]),
            ("two of them", vec![many(200, 1), many(200, 1)], 400, &[]),
            ("one line more", vec![many(201, 3)], 200, &["(1 lines of 3 bytes"]),
            ("too many bytes", vec![many(20, 8192)], 8, &["(12 lines of 98304 bytes"]),
            ("twice", vec![many(300, 1), many(1, 1), many(300, 1)], 401, &["(100 lines", "(100 lines"]),
            ("without a line end", vec!["end".to_owned()], 1, &[]),
        ] {
            let all = forwarded(&texts).await;
            let (said, shown): (Vec<_>, Vec<_>) = all.iter().partition(|line| line.starts_with('('));
            assert_eq!((shown.len(), said.len()), (lines, reports.len()), "{name}: {said:?}");
            assert!(
                said.iter().zip(reports).all(|(line, begins)| line.starts_with(begins)),
                "{name}: {said:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_does_not_wait_for_the_next_line() {
        let (mut child, pipe) = tokio::io::duplex(1 << 20);
        let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
        let callback: Callback = Box::new(move |line| sender.send(line.to_owned()).unwrap());
        let task = tokio::spawn(forward_lines(pipe, Arc::new(Lock::new(callback))));
        child.write_all("x\n".repeat(201).as_bytes()).await.unwrap();
        for _ in 0..200 {
            assert_eq!(lines.recv().await.as_deref(), Some("x"));
        }
        assert!(lines.recv().await.unwrap().starts_with("(1 lines"));
        drop(child);
        task.await.unwrap();
    }
}
