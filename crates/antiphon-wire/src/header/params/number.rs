//! Numbers in headers: decimal text, compared by value and without rounding.

use serde_json::Number;

/// The maximum safe integer, 2^53 - 1: every integer up to it has a double of its own.
const SAFE: u64 = (1 << 53) - 1;

/// Returns the number in decimal digits; `None` for an integer outside of the safe range.
pub(super) fn decimal(number: &Number) -> Option<String> {
    if let Some(whole) = number.as_i64() {
        return (whole.unsigned_abs() <= SAFE).then(|| whole.to_string());
    }
    let float = number.as_f64()?;
    if float.fract() != 0.0 {
        // Not an integer at all, so the range does not speak of it.
        return Some(number.to_string());
    }
    // The cast is exact: the float is whole, and below 2^53. It turns -0 into 0.
    (float.abs() <= SAFE as f64).then(|| (float as i64).to_string())
}

/// Returns true if both texts are JSON numbers of the same value: `42.0` and `42`, `1e2` and `100`, `-0` and
/// `0`.
pub(super) fn equal(one: &str, other: &str) -> bool {
    match (Decimal::read(one), Decimal::read(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// A decimal number, `digits * 10^exponent`. The digits are a whole number without zeros at either end. Zero
/// has no digits.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn read(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = match text.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, Some(power)),
            None => (text, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let power_digits = power.map(|power| power.strip_prefix(['+', '-']).unwrap_or(power));
        let parts = [Some(whole), fraction, power_digits];
        if !parts.into_iter().flatten().all(is_digits) || (whole.len() > 1 && whole.starts_with('0')) {
            return None;
        }
        let fraction = fraction.unwrap_or_default();
        let mut digits: Vec<u8> =
            whole.bytes().chain(fraction.bytes()).skip_while(|&digit| digit == b'0').collect();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        // A power that no i64 holds is no number that anything here equals.
        let power: i64 = power.map_or(Ok(0), str::parse).ok()?;
        let mut exponent = power.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent = exponent.checked_add(1)?;
        }
        Some(Self { negative, digits, exponent })
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
