//! The classes of characters that decide what is escaped.

/// The class of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
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
pub(super) fn class_of(c: char) -> Class {
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
