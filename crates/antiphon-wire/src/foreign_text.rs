//! Text from a peer, as a log, an error or a terminal may show it.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

/// The maximum number of characters that a [`ForeignText`] prints by default.
pub const FOREIGN_TEXT_LIMIT: usize = 200;

/// Text from a peer: `Display` and `Debug` print it escaped and cut. The text itself is unchanged.
///
/// A text from a peer may move the cursor of a terminal, change its title, forge lines of a log, or show another order or
/// another content than it has. So these characters are printed as `\u{..}` (`\n`, `\r`, `\t` in the short form):
///
/// * control characters (C0, DEL, C1), line and paragraph separators;
/// * characters that change the direction of text;
/// * invisible characters: those with the property `Default_Ignorable_Code_Point` (Unicode 17), and blank ones such as U+2800;
/// * characters for private use, format characters, and code points without a character;
/// * combining marks after the fourth one in a row.
///
/// At most [`FOREIGN_TEXT_LIMIT`] characters are printed. A mark at the end says that the text was cut, and its length.
///
/// ```
/// use antiphon_wire::{ForeignText, escaped};
///
/// assert_eq!(escaped("plain, é, 日本").to_string(), "plain, é, 日本");
/// assert_eq!(escaped("\u{1b}[2J\nerror").to_string(), r"\u{1b}[2J\nerror");
/// assert_eq!(ForeignText::new("abcdef").limit(4).to_string(), "abcd… (6 bytes)");
/// assert_eq!(format!("{:?}", escaped("say \"yes\"")), r#""say \"yes\"""#);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ForeignText<T> {
    text: T,
    limit: usize,
    multiline: bool,
}

/// Borrows text from a peer, or a value whose `Display` contains such text, so that it is printed escaped and cut.
pub fn escaped<T: fmt::Display + ?Sized>(text: &T) -> ForeignText<&T> {
    ForeignText::new(text)
}

impl<T> ForeignText<T> {
    /// Marks `text` as text from a peer. `T` is borrowed or owned.
    pub const fn new(text: T) -> Self {
        Self { text, limit: FOREIGN_TEXT_LIMIT, multiline: false }
    }

    /// Sets the maximum number of characters that are printed. Default: [`FOREIGN_TEXT_LIMIT`].
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Prints the whole text, still escaped.
    pub fn whole(self) -> Self {
        self.limit(usize::MAX)
    }

    /// Prints line breaks and tabs as they are. Default: escaped.
    pub fn multiline(mut self, multiline: bool) -> Self {
        self.multiline = multiline;
        self
    }

    /// Returns the text as the peer sent it.
    pub const fn get(&self) -> &T {
        &self.text
    }

    /// Returns the text as the peer sent it.
    pub fn into_inner(self) -> T {
        self.text
    }
}

impl<'a> ForeignText<Cow<'a, str>> {
    /// Marks bytes from a peer as text. Bytes that are not UTF-8 are printed as U+FFFD.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self::new(String::from_utf8_lossy(bytes))
    }
}

impl<T: fmt::Display> fmt::Display for ForeignText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut escaper = Escaper::new(f, self.limit, self.multiline, false);
        write!(escaper, "{}", self.text)?;
        escaper.finish()
    }
}

impl<T: fmt::Display> fmt::Debug for ForeignText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let mut escaper = Escaper::new(f, self.limit, self.multiline, true);
        write!(escaper, "{}", self.text)?;
        escaper.finish()?;
        f.write_char('"')
    }
}

impl<T> From<T> for ForeignText<T> {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// Returns `true` for a character that [`ForeignText`] always escapes. Of combining marks, it escapes only those after the
/// fourth one in a row.
pub fn is_escaped(c: char) -> bool {
    class_of(c) == Class::Escaped
}

/// The number of combining marks in a row that are printed as they are. Written languages use at most three or four.
const MARKS: u32 = 4;

/// Writes a text to `out`, piece by piece: escaped, and at most `left` characters of it.
struct Escaper<'a, W> {
    out: &'a mut W,
    left: usize,
    bytes: usize,
    cut: bool,
    multiline: bool,
    quoted: bool,
    marks: u32,
    /// A carriage return that may belong to a line break.
    carriage_return: bool,
}

impl<'a, W: fmt::Write> Escaper<'a, W> {
    fn new(out: &'a mut W, limit: usize, multiline: bool, quoted: bool) -> Self {
        Self { out, left: limit, bytes: 0, cut: false, multiline, quoted, marks: 0, carriage_return: false }
    }

    /// Writes what is left. If the text was cut, a mark says so.
    fn finish(mut self) -> fmt::Result {
        if std::mem::take(&mut self.carriage_return) {
            self.escape('\r')?;
        }
        if self.cut { write!(self.out, "… ({} bytes)", self.bytes) } else { Ok(()) }
    }

    fn push(&mut self, c: char) -> fmt::Result {
        if std::mem::take(&mut self.carriage_return) && c != '\n' {
            self.escape('\r')?;
        }
        let class = class_of(c);
        self.marks = if class == Class::Mark { self.marks.saturating_add(1) } else { 0 };
        match c {
            '\r' if self.multiline => {
                self.carriage_return = true;
                Ok(())
            }
            '\n' | '\t' if self.multiline => self.print(c),
            '"' | '\\' if self.quoted => self.escape(c),
            _ if class == Class::Escaped || self.marks > MARKS => self.escape(c),
            _ => self.print(c),
        }
    }

    fn print(&mut self, c: char) -> fmt::Result {
        if self.takes(1) { self.out.write_char(c) } else { Ok(()) }
    }

    fn escape(&mut self, c: char) -> fmt::Result {
        match c {
            '\n' | '\r' | '\t' | '"' | '\\' => {
                let escape = c.escape_default();
                if self.takes(escape.len()) { write!(self.out, "{escape}") } else { Ok(()) }
            }
            _ => {
                let escape = c.escape_unicode();
                if self.takes(escape.len()) { write!(self.out, "{escape}") } else { Ok(()) }
            }
        }
    }

    /// Returns `true` if so many more characters may be written, and counts them. Behind the first ones that do not fit,
    /// nothing is written.
    fn takes(&mut self, characters: usize) -> bool {
        self.cut |= characters > self.left;
        if !self.cut {
            self.left -= characters;
        }
        !self.cut
    }
}

impl<W: fmt::Write> fmt::Write for Escaper<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes = self.bytes.saturating_add(text.len());
        let mut rest = text;
        while !self.cut && !rest.is_empty() {
            // Plain ASCII needs no look at each character.
            let plain = rest.bytes().take(self.left).take_while(|byte| matches!(byte, b' '..=b'~')).count();
            if plain > 0 && !self.carriage_return && !self.quoted {
                self.out.write_str(&rest[..plain])?;
                (self.left, self.marks) = (self.left - plain, 0);
                rest = &rest[plain..];
            } else if let Some(c) = rest.chars().next() {
                self.push(c)?;
                rest = &rest[c.len_utf8()..];
            }
        }
        Ok(())
    }
}

/// The class of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Printed as it is.
    Plain,
    /// A combining mark: a few in a row are printed as they are.
    Mark,
    /// Always escaped.
    Escaped,
}

/// The characters with the property `Default_Ignorable_Code_Point` of Unicode 17.0 (`DerivedCoreProperties.txt`): terminals and
/// browsers show nothing for them.
const IGNORABLE: [(char, char); 17] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fff8}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Characters without that property whose glyph is empty, and that are not spaces: the blank Braille pattern, the Khitan
/// filler, and the musical null notehead.
const BLANK: [char; 3] = ['\u{2800}', '\u{16fe4}', '\u{1d159}'];

/// Returns the class of a character. Beyond the tables of this file it follows the tables of the standard library, which
/// its `escape_debug` uses.
fn class_of(c: char) -> Class {
    match c {
        ' '..='~' => Class::Plain,
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => Class::Escaped,
        // Spaces of several widths; the standard library escapes these.
        c if c.is_whitespace() => Class::Plain,
        c if BLANK.contains(&c) || IGNORABLE.iter().any(|(first, last)| (*first..=*last).contains(&c)) => {
            Class::Escaped
        }
        c if c.escape_debug().len() == 1 => Class::Plain,
        // `char::escape_debug` escapes what has no glyph of its own: marks, and what cannot be printed at all.
        c if is_printable_after_a_letter(c) => Class::Mark,
        _ => Class::Escaped,
    }
}

/// Returns `true` for marks. Within a text, `str::escape_debug` escapes only what cannot be printed: private use, format
/// characters, and code points without a character.
fn is_printable_after_a_letter(c: char) -> bool {
    let mut text = [b'a'; 5];
    let length = c.encode_utf8(&mut text[1..]).len();
    std::str::from_utf8(&text[..=length]).is_ok_and(|text| text.escape_debug().count() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, one: &str, several: &str) {
        assert_eq!(escaped(text).to_string(), one, "{text:?}");
        assert_eq!(escaped(text).multiline(true).to_string(), several, "{text:?}");
        assert_eq!(*escaped(text).get(), text);
    }

    #[test]
    fn unsafe_characters_are_escaped() {
        for (text, one, several) in [
            ("plain, é, 日本", "plain, é, 日本", "plain, é, 日本"),
            ("a\nb\tc\r\nd\re", r"a\nb\tc\r\nd\re", "a\nb\tc\nd\\re"),
            ("a\r", r"a\r", r"a\r"),
            ("\u{1b}[31mred\u{1b}[0m", r"\u{1b}[31mred\u{1b}[0m", r"\u{1b}[31mred\u{1b}[0m"),
            ("\u{1b}]0;title\u{7}x", r"\u{1b}]0;title\u{7}x", r"\u{1b}]0;title\u{7}x"),
            ("\u{9b}2Jx\u{8}\u{7f}", r"\u{9b}2Jx\u{8}\u{7f}", r"\u{9b}2Jx\u{8}\u{7f}"),
            ("a\u{202e}b\u{2066}c", r"a\u{202e}b\u{2066}c", r"a\u{202e}b\u{2066}c"),
            ("a\u{2028}b\u{85}c", r"a\u{2028}b\u{85}c", r"a\u{2028}b\u{85}c"),
            ("C:\\dir \"x\" 'y'", "C:\\dir \"x\" 'y'", "C:\\dir \"x\" 'y'"),
            // Spaces of several widths are visible as spaces.
            ("a\u{a0}b\u{3000}c", "a\u{a0}b\u{3000}c", "a\u{a0}b\u{3000}c"),
            // Four marks are as many as written languages use.
            (
                "e\u{301}\u{302}\u{303}\u{304}x",
                "e\u{301}\u{302}\u{303}\u{304}x",
                "e\u{301}\u{302}\u{303}\u{304}x",
            ),
            (
                "e\u{301}\u{301}\u{301}\u{301}\u{301}x\u{301}",
                "e\u{301}\u{301}\u{301}\u{301}\\u{301}x\u{301}",
                "e\u{301}\u{301}\u{301}\u{301}\\u{301}x\u{301}",
            ),
            ("", "", ""),
        ] {
            check(text, one, several);
        }
    }

    #[test]
    fn characters_that_nobody_sees_are_escaped() {
        for c in [
            '\0',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{202a}',
            '\u{2060}',
            '\u{2065}',
            '\u{206f}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff0}',
            '\u{fff9}',
            '\u{fffb}',
            '\u{16fe4}',
            '\u{1bca0}',
            '\u{1d159}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
            '\u{e01ef}',
            '\u{e0fff}',
            '\u{e000}',
            '\u{f0000}',
            '\u{fffe}',
            '\u{10ffff}',
            '\u{378}',
            '\u{600}',
        ] {
            check(
                &format!("a{c}b"),
                &format!("a\\u{{{:x}}}b", c as u32),
                &format!("a\\u{{{:x}}}b", c as u32),
            );
            assert!(is_escaped(c), "{c:?}");
        }
        for c in ['a', '\\', ' ', 'é', '\u{301}', '日', '한', '😀', '\u{a0}', '\u{fffd}'] {
            assert!(!is_escaped(c), "{c:?}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        for (text, limit, shown) in [
            ("abcd", 4, "abcd"),
            ("abcde", 4, "abcd… (5 bytes)"),
            ("日本語", 2, "日本… (9 bytes)"),
            // An escape is printed whole, or not at all.
            ("ab\u{1b}", 6, r"ab… (3 bytes)"),
            ("ab\u{1b}", 8, r"ab\u{1b}"),
            ("ab\u{1b}d", 7, r"ab… (4 bytes)"),
            ("a\r\nb", 2, r"a… (4 bytes)"),
            ("x", 0, "… (1 bytes)"),
            ("", 0, ""),
        ] {
            assert_eq!(escaped(text).limit(limit).to_string(), shown, "{text:?} {limit}");
        }
        let marks = format!("a{}", "\u{301}".repeat(5000));
        assert!(escaped(&marks).to_string().chars().count() < FOREIGN_TEXT_LIMIT + 20);
        assert!(escaped(&marks).to_string().ends_with("… (10001 bytes)"));
        assert_eq!(escaped(&"x".repeat(5000)).whole().to_string(), "x".repeat(5000));
    }

    #[test]
    fn debug_quotes() {
        for (text, shown) in [("a\"b\\c\n", r#""a\"b\\c\n""#), ("\u{202e}x", r#""\u{202e}x""#)] {
            assert_eq!(format!("{:?}", escaped(text)), shown);
        }
        assert_eq!(format!("{:?}", escaped("abc").limit(1)), r#""a… (3 bytes)""#);
    }

    #[test]
    fn bytes_and_values_are_shown() {
        assert_eq!(ForeignText::from_bytes(b"a\xff\x1b").to_string(), "a\u{fffd}\\u{1b}");
        // `Display` writes its pieces one by one; the state continues.
        let fault = serde_json::from_str::<bool>("{").map_err(|fault| format!("{fault}\r\n")).unwrap_err();
        assert!(escaped(&fault).multiline(true).to_string().ends_with('\n'));
        assert_eq!(escaped(&format_args!("a{}{}", '\r', '\n')).multiline(true).to_string(), "a\n");
    }

    proptest! {
        #[test]
        fn nothing_unsafe_is_printed(text in any::<String>(), marks in "[\u{300}-\u{36f}a\u{202e}\n\r]{0,60}", limit in 0usize..80) {
            let text = text + &marks;
            for shown in [escaped(&text).limit(limit).to_string(), format!("{:?}", escaped(&text).whole())] {
                prop_assert!(!shown.contains(is_escaped), "{shown:?}");
                let mut row = 0;
                for c in shown.chars() {
                    row = if class_of(c) == Class::Mark { row + 1 } else { 0 };
                    prop_assert!(row <= 4, "{shown:?}");
                }
            }
            let cut = escaped(&text).limit(limit).to_string();
            let length = cut.split("… (").next().map_or(0, |shown| shown.chars().count());
            prop_assert!(length <= limit || text.contains('…'), "{cut:?}");
            let lines = escaped(&text).whole().multiline(true).to_string();
            prop_assert!(!lines.contains(|c| is_escaped(c) && c != '\n' && c != '\t'), "{lines:?}");
        }

        #[test]
        fn clean_ascii_is_unchanged(text in "[ -~]{0,200}") {
            prop_assert_eq!(escaped(&text).to_string(), text.clone());
            prop_assert_eq!(escaped(&text).multiline(true).to_string(), text);
        }
    }

    #[test]
    fn classes() {
        for (c, class) in [
            ('a', Class::Plain),
            ('日', Class::Plain),
            ('\u{fffd}', Class::Plain),
            ('\u{300}', Class::Mark),
            ('\u{36f}', Class::Mark),
            ('\u{489}', Class::Mark),
            ('\u{591}', Class::Mark),
            ('\u{e31}', Class::Mark),
            ('\u{20dd}', Class::Mark),
            ('\u{1ab0}', Class::Mark),
            ('\u{200d}', Class::Escaped),
            ('\u{feff}', Class::Escaped),
            ('\u{e000}', Class::Escaped),
            ('\u{378}', Class::Escaped),
        ] {
            assert_eq!(class_of(c), class, "{c:?}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_complete() {
        assert!(IGNORABLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
        let characters: u32 = IGNORABLE.iter().map(|(first, last)| *last as u32 - *first as u32 + 1).sum();
        // > # Total code points: 4174
        assert_eq!(characters, 4174);
    }
}
