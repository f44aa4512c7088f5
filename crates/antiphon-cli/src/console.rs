//! The output of the program: results on standard output, everything else on standard error.
//!
//! `println!` would panic if the reader has closed the pipe, as `head` does, so this module ignores such errors.

use crate::{failure::Failure, sanitize};
use antiphon::wire::ForeignText;
use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

/// `true` with `--quiet`.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Prints results and errors only, from now on.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Returns `true` if only results and errors are printed.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints one line of the result.
pub(crate) fn out(line: &str) {
    let _ = try_out(line);
}

/// Prints one line of a result without an end. The caller stops if the output is closed.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn try_out(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Prints a text of a server as the result. For a terminal, the text is sanitized.
pub(crate) fn out_theirs(text: &str) {
    if io::stdout().is_terminal() { out(&sanitize::lines(text)) } else { out(text) }
}

/// Prints JSON as the result. For a terminal, unsafe characters are escaped, which keeps the JSON equal.
pub(crate) fn out_json(text: &str) {
    let _ = try_out_json(text);
}

/// Prints JSON as one line of a result without an end.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn try_out_json(text: &str) -> io::Result<()> {
    if io::stdout().is_terminal() { try_out(&sanitize::json(text)) } else { try_out(text) }
}

/// Prints a line on standard error that the person can do without, unless the program is quiet.
pub(crate) fn hint(line: &str) {
    if !is_quiet() {
        note(line);
    }
}

/// Prints a line for the person on standard error.
#[expect(
    clippy::print_stderr,
    reason = "a test program captures what the macro prints, and shows it if a test fails"
)]
pub(crate) fn note(line: &str) {
    if cfg!(test) {
        return eprintln!("{line}");
    }
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "{line}");
}

/// The writer of the log on standard error. Each call of `write` gets one line of the log, and escapes all that is not part of
/// a plain line: whatever a field of the log contains, it controls no terminal, and forges no other line.
#[derive(Clone, Copy)]
pub(crate) struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        stderr.write_all(log_line(line).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn log_line(line: &[u8]) -> String {
    format!("{}\n", ForeignText::from_bytes(line.strip_suffix(b"\n").unwrap_or(line)).whole())
}

/// Prints a failure on standard error.
pub(crate) fn failed(failure: &Failure) {
    note(&format!("error: {}", sanitize::line(&failure.message)));
}

/// Returns `true` if a person can answer prompts: standard input and standard error are terminals.
pub(crate) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Returns the text in bold, if standard error is a terminal and `NO_COLOR` is not set.
pub(crate) fn strong(text: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if plain || !io::stderr().is_terminal() { text.to_owned() } else { format!("\x1b[1;7m{text}\x1b[0m") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_one_plain_line() {
        for (line, shown) in [
            (" WARN a line server=\"x\"\n", " WARN a line server=\"x\"\n"),
            ("a\u{1b}[2Jb\n WARN forged\n", "a\\u{1b}[2Jb\\n WARN forged\n"),
            ("a\u{202e}\u{9b}b", "a\\u{202e}\\u{9b}b\n"),
        ] {
            assert_eq!(log_line(line.as_bytes()), shown);
        }
    }
}
