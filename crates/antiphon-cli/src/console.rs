//! The output of the program: results on standard output, everything else on standard error.
//!
//! This module is the guard of the terminal: it escapes every text but for its own styles, so a text of a server that a caller
//! has not sanitized controls nothing. A result on standard output that is no terminal is the exception: it leaves as it is.
//! [`sanitize`] shapes a text before: one line, indented, cut.
//!
//! `println!` would panic if the reader has closed the pipe, as `head` does, so this module ignores such errors.

use crate::failure::Failure;
use antiphon::{
    client::{
        ClientBuilder,
        events::{LogEvent, ProgressEvent},
    },
    wire::{
        LogLevel,
        text::{ForeignText, escaped, is_escaped},
    },
};
use serde_json::Value;
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
    write_out(&lines(line))
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
    if io::stdout().is_terminal() { write_out(&json(text)) } else { write_out(text) }
}

/// Prints a line on standard error that the person can do without, unless the program is quiet.
pub(crate) fn hint(line: &str) {
    if !is_quiet() {
        note(line);
    }
}

/// Prints a line for the person on standard error, escaped.
pub(crate) fn note(line: &str) {
    write_note(&lines(line));
}

/// Prints a line for the person on standard error, escaped, with `strong` in bold after `before`. The text is plain if standard
/// error is no terminal, or if `NO_COLOR` is set.
pub(crate) fn note_with_strong(before: &str, strong: &str, after: &str) {
    let [before, strong, after] = [before, strong, after].map(lines);
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
    note(&format!("error: {}", line(&failure.message)));
}

/// Returns `true` if a person can answer prompts: standard input and standard error are terminals.
pub(crate) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

// Texts of servers for a terminal, printed by [`ForeignText`]: a text must not move the cursor, change colours or the
// title, change the direction of other text, or show less than it has.

/// Returns the text as one line.
pub(crate) fn line(text: &str) -> String {
    one_line(text).whole().to_string()
}

/// Returns the text with its line breaks and tabs.
pub(crate) fn lines(text: &str) -> String {
    escaped(text).whole().multiline(true).to_string()
}

/// Returns the lines of the text, indented by two spaces, so that they cannot imitate the output of this program.
pub(crate) fn indented(text: &str) -> String {
    lines(text).lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Returns the same JSON with unsafe characters escaped. Outside of strings, JSON contains only line breaks and tabs.
pub(crate) fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            c if is_escaped(c) => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")))
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Returns the text as one line of at most `limit` characters, because a prompt is drawn again at every key.
pub(crate) fn truncated(text: &str, limit: usize) -> String {
    one_line(text).limit(limit).to_string()
}

/// Replaces line breaks and tabs by spaces: they separate words.
fn one_line(text: &str) -> ForeignText<String> {
    ForeignText::new(
        text.replace("\r\n", " ")
            .replace(['\n', '\r', '\t', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], " "),
    )
}

/// The maximum length of a printed message, in characters.
const SHOWN: usize = 500;

/// Prints progress, and log messages if there is a level.
pub(crate) fn attach(builder: ClientBuilder, level: Option<LogLevel>) -> ClientBuilder {
    attach_log(builder.on_progress(|event| hint(&progress(&event))), level)
}

/// Prints log messages if there is a level.
pub(crate) fn attach_log(builder: ClientBuilder, level: Option<LogLevel>) -> ClientBuilder {
    match level {
        None => builder,
        Some(level) => builder.log_level(level).on_log(|event| hint(&message(&event))),
    }
}

fn progress(event: &ProgressEvent) -> String {
    let of = event.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let message = event.message.as_deref().map(|text| format!(": {}", truncated(text, SHOWN)));
    // A task has no numbers: its progress is its status message.
    if event.context.method == "tasks/get" {
        return format!("task{}", message.unwrap_or_default());
    }
    format!("progress {}{of}{}", event.progress, message.unwrap_or_default())
}

fn message(event: &LogEvent) -> String {
    let logger = event.logger.as_deref().map(|name| format!(" {}", truncated(name, SHOWN)));
    let text = match &event.data {
        Value::String(text) => truncated(text, SHOWN),
        other => truncated(&other.to_string(), SHOWN),
    };
    format!("log {}{}: {text}", word(event.level), logger.unwrap_or_default())
}

/// Returns the name of a level in the protocol.
fn word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Notice => "notice",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
        LogLevel::Critical => "critical",
        LogLevel::Alert => "alert",
        LogLevel::Emergency => "emergency",
    }
}

/// Parses the value of `--log-level`.
pub(crate) fn level(text: &str) -> Result<LogLevel, String> {
    serde_json::from_value(Value::from(text)).map_err(|_| {
        "must be one of debug, info, notice, warning, error, critical, alert, emergency".to_owned()
    })
}

/// The least similarity of a name that may be meant, from 0 to 1.
const SIMILAR: f64 = 0.8;
/// The maximum number of names in a text.
const NAMES: usize = 10;

/// Returns the sentence about a name that is not among the known ones, with those that may be meant.
pub(crate) fn unknown_name<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<(f64, &str)> = known.map(|it| (strsim::jaro_winkler(name, it), it)).collect();
    known.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let similar = known.iter().filter(|(similarity, _)| *similarity >= SIMILAR).count();
    let listed = |names: &[(f64, &str)]| {
        let names: Vec<_> = names.iter().take(NAMES).map(|(_, it)| truncated(it, 60)).collect();
        names.join(", ")
    };
    let rest = match (similar, known.len()) {
        (_, 0) => "the server has none".to_owned(),
        (0, count) if count <= NAMES => format!("there are: {}", listed(&known)),
        (0, count) => format!("there are {count}, `{what}s` lists them"),
        (count, _) => format!("did you mean: {}?", listed(&known[..count])),
    };
    format!("there is no {what} `{}`; {rest}", truncated(name, 60))
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

    #[test]
    fn unsafe_characters_are_escaped() {
        for (text, one, several) in [
            ("plain, é, 日本", "plain, é, 日本", "plain, é, 日本"),
            ("a\nb\tc\r\nd", "a b c d", "a\nb\tc\nd"),
            ("\u{1b}[31mred", r"\u{1b}[31mred", r"\u{1b}[31mred"),
            ("\u{9b}2Jx\u{8}\u{7f}", r"\u{9b}2Jx\u{8}\u{7f}", r"\u{9b}2Jx\u{8}\u{7f}"),
            (
                "a\u{202e}b\u{3164}c\u{200b}d",
                r"a\u{202e}b\u{3164}c\u{200b}d",
                r"a\u{202e}b\u{3164}c\u{200b}d",
            ),
            ("a\u{2028}b", "a b", r"a\u{2028}b"),
        ] {
            assert_eq!((line(text).as_str(), lines(text).as_str()), (one, several), "{text:?}");
        }
        assert_eq!(indented("a\n? b"), "  a\n  ? b");
    }

    #[test]
    fn escaped_json_is_equal() {
        let value = serde_json::json!({"a\u{9b}2J": "\u{1b}[31m\u{202e}\u{7f}\u{e0041}é\u{3164}\n日本"});
        let shown = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!shown.contains(is_escaped), "{shown:?}");
        assert!(shown.contains(r"\u202e\u007f\udb40\udc41é\u3164\n日本"), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }

    #[test]
    fn long_texts_are_truncated() {
        assert_eq!(
            (truncated("a\nbé", 4), truncated("a\nbéc", 4)),
            ("a bé".into(), "a bé… (6 bytes)".into())
        );
    }

    #[test]
    fn similar_names_come_first() {
        let demo = ["greet", "provision_cluster", "provision"];
        for (name, known, expected) in [
            (
                "provison",
                &demo[..],
                "there is no tool `provison`; did you mean: provision, provision_cluster?",
            ),
            ("x", &demo, "there is no tool `x`; there are: greet, provision_cluster, provision"),
            ("x", &["a"; 11], "there is no tool `x`; there are 11, `tools` lists them"),
            ("x\u{1b}", &[], "there is no tool `x\\u{1b}`; the server has none"),
        ] {
            assert_eq!(unknown_name("tool", name, known.iter().copied()), expected);
        }
    }
}
