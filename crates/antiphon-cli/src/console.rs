//! The output of the program: results on standard output, everything else on standard error.
//!
//! This module is the guard of the terminal: it escapes every text but for its own styles, so a text of a server that a caller
//! has not sanitized controls nothing. A result on standard output that is no terminal is the exception: it leaves as it is.
//! [`sanitize`] shapes a text before: one line, indented, cut.
//!
//! `println!` would panic if the reader has closed the pipe, as `head` does, so this module ignores such errors.

use crate::{failure::Failure, sanitize};
use antiphon::wire::text::ForeignText;
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

/// Prints one line of the result, escaped.
pub(crate) fn out(line: &str) {
    let _ = try_out(line);
}

/// Prints one line of a result without an end, escaped. The caller stops if the output is closed.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn try_out(line: &str) -> io::Result<()> {
    write_out(&sanitize::lines(line))
}

fn write_out(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Prints a text of a server as the result. For a terminal, the text is sanitized.
pub(crate) fn out_theirs(text: &str) {
    let _ = if io::stdout().is_terminal() { try_out(text) } else { write_out(text) };
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
    if io::stdout().is_terminal() { write_out(&sanitize::json(text)) } else { write_out(text) }
}

/// Prints a line on standard error that the person can do without, unless the program is quiet.
pub(crate) fn hint(line: &str) {
    if !is_quiet() {
        note(line);
    }
}

/// Prints a line for the person on standard error, escaped.
pub(crate) fn note(line: &str) {
    write_note(&sanitize::lines(line));
}

/// Prints a line for the person on standard error, escaped, with `strong` in bold after `before`. The text is plain if standard
/// error is no terminal, or if `NO_COLOR` is set.
pub(crate) fn note_with_strong(before: &str, strong: &str, after: &str) {
    let [before, strong, after] = [before, strong, after].map(sanitize::lines);
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    write_note(&if is_plain || !io::stderr().is_terminal() {
        before + &strong + &after
    } else {
        format!("{before}\x1b[1;7m{strong}\x1b[0m{after}")
    });
}

#[expect(
    clippy::print_stderr,
    reason = "a test program captures what the macro prints, and shows it if a test fails"
)]
fn write_note(line: &str) {
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
