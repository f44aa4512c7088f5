//! The processor time of a process or of the whole machine.

use std::fs;
use std::time::Duration;

use crate::Error;

/// User and system time of all threads of `pid`, ended ones included, in steps of one clock tick.
pub(crate) fn used_by(pid: u32) -> Result<Duration, Error> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    duration(ticks(&stat).ok_or_else(|| format!("{path}: unknown form"))?)
}

/// Time that any processor was not idle; time stolen by other guests of the host counts too.
pub(crate) fn used_by_all() -> Result<Duration, Error> {
    let stat = fs::read_to_string("/proc/stat")?;
    duration(busy_ticks(&stat).ok_or("/proc/stat: unknown form")?)
}

fn duration(ticks: u64) -> Result<Duration, Error> {
    Ok(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second())?)
}

/// `utime` + `stime`, fields 14 and 15. The name in field 2 may contain anything, `)` included.
fn ticks(stat: &str) -> Option<u64> {
    let (_, from_field_3) = stat.rsplit_once(") ")?;
    let mut fields = from_field_3.split(' ').skip(11);
    let (utime, stime) = (fields.next()?, fields.next()?);
    Some(utime.parse::<u64>().ok()? + stime.parse::<u64>().ok()?)
}

/// The first line, without its fields 4 and 5 (idle, waiting for disks) and the guests' times,
/// which the first two already hold.
fn busy_ticks(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let fields: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let fields = fields.get(..8)?;
    Some(fields.iter().sum::<u64>() - fields[3] - fields[4])
}

#[cfg(test)]
mod tests {
    use super::{busy_ticks, ticks};

    #[test]
    fn reads_both_times_behind_an_odd_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 9 0 0 0 31 11 0 0 20 0 2 0 99 1 2";
        assert_eq!(ticks(stat), Some(42));
    }

    #[test]
    fn idle_time_and_guests_do_not_count() {
        let stat = "cpu  1 2 3 400 500 6 7 8 90 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(busy_ticks(stat), Some(27));
    }
}
