//! The name of a question in the advice for the next run.

/// Returns the key, or the number if nobody can know the key before the call.
pub(super) fn of(number: u32, key: &str, is_stable: bool) -> String {
    if is_stable && !is_random(key) { key.to_owned() } else { number.to_string() }
}

/// Returns `true` if the key looks like one that the server made for this call alone, such as a UUID.
fn is_random(key: &str) -> bool {
    let (mut digits, mut most_digits, mut changes) = (0, 0, 0);
    let mut before = None;
    for byte in key.bytes() {
        let is_digit = byte.is_ascii_alphanumeric().then(|| byte.is_ascii_digit());
        digits = if is_digit == Some(true) { digits + 1 } else { 0 };
        most_digits = most_digits.max(digits);
        changes += usize::from(before.zip(is_digit).is_some_and(|(before, now)| before != now));
        before = is_digit;
    }
    // A number alone is never a key on the command line.
    changes >= 4 || most_digits >= 6 || most_digits == key.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_nobody_can_know_are_replaced_by_numbers() {
        for (key, is_known) in [
            ("region", true),
            ("duplicate_of", true),
            ("__main__:confirm_delete", true),
            ("__main__:x.<locals>.y#1", true),
            ("deposit#12345", true),
            ("step2/q3", true),
            ("confirm~2", true),
            ("RezM57SLv2hYVghF3oRKwMvE_prv5wcUcWD8UyZ41fI:27ed770836dec846", false),
            ("550e8400-e29b-41d4-a716-446655440000", false),
            ("ask-1732699034123", false),
            ("7f3a90bc", false),
            ("2", false),
            ("", false),
        ] {
            assert_eq!(of(7, key, true), if is_known { key } else { "7" }, "{key}");
            assert_eq!(of(7, key, false), "7", "{key}");
        }
    }
}
