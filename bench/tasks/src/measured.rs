//! The result of a part of the program, and the median of its times.

/// The result of a part of the program.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Returns the median, the higher one of two.
pub(crate) fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
