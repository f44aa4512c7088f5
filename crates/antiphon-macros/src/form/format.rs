//! A simple check that a default has its format. The check finds obvious mistakes, and proves nothing.

/// The names of the formats, and the variants of `TextFormat`.
pub(super) const FORMATS: [(&str, &str); 4] =
    [("email", "Email"), ("uri", "Uri"), ("date", "Date"), ("date-time", "DateTime")];

pub(super) fn has_format(format: &str, text: &str) -> bool {
    let two_parts =
        |mark| text.split_once(mark).is_some_and(|(a, b): (&str, &str)| !a.is_empty() && !b.is_empty());
    match format {
        "email" => two_parts('@') && !text.contains(char::is_whitespace),
        "uri" => two_parts(':') && !text.contains(char::is_whitespace),
        "date" => is_date(text),
        _ => text.get(..10).is_some_and(is_date) && text.len() >= "2026-07-28T12:00:00Z".len(),
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().all(|part| part.chars().all(|digit| digit.is_ascii_digit()))
        && parts.iter().map(|part| part.len()).eq([4, 2, 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obvious_mistakes_are_found() {
        for (format, good, bad) in [
            ("email", "a@b.example", "a.example"),
            ("uri", "https://a.example/", "a.example"),
            ("date", "2026-07-28", "28.07.2026"),
            ("date-time", "2026-07-28T12:00:00Z", "2026-07-28"),
        ] {
            assert!(has_format(format, good), "{good}");
            assert!(!has_format(format, bad), "{bad}");
        }
    }
}
