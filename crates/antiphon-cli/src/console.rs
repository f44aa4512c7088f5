//! What is printed, and where: results on standard output, all else on standard error.
//!
//! Written by hand instead of `println!`: a reader that has gone away, as `head` does, is no reason to panic.

use crate::{failure::Failure, show};
use std::io::{self, IsTerminal as _, Write as _};

/// One line of the result.
pub(crate) fn out(line: &str) {
    let _ = try_out(line);
}

/// One line of a result that does not end by itself: whoever writes on should know that nobody reads any more.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn try_out(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// A text of a server as the result: as it is for a program, harmless for a terminal.
pub(crate) fn out_theirs(text: &str) {
    if io::stdout().is_terminal() { out(&show::lines(text)) } else { out(text) }
}

/// JSON as the result: as it is for a program, the same JSON but harmless for a terminal.
pub(crate) fn out_json(text: &str) {
    let _ = try_out_json(text);
}

/// JSON as one line of a result that does not end by itself.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn try_out_json(text: &str) -> io::Result<()> {
    if io::stdout().is_terminal() { try_out(&show::json(text)) } else { try_out(text) }
}

/// A line for the person.
pub(crate) fn note(line: &str) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "{line}");
}

/// Why it failed.
pub(crate) fn failed(failure: &Failure) {
    note(&format!("error: {}", show::line(&failure.message)));
}

/// Whether a person sits there who can be asked.
pub(crate) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The text in bold, where that can be shown.
pub(crate) fn strong(text: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if plain || !io::stderr().is_terminal() { text.to_owned() } else { format!("\x1b[1;7m{text}\x1b[0m") }
}
