//! Processor time that a process, or a whole processor, has used so far.

use std::fs;
use std::ops::Sub;
use std::time::Duration;

use crate::error::Error;

/// The time that a process has run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The time of the threads that have not ended, to a nanosecond: those of a server stay.
    pub(crate) total: Duration,
    /// The time in user mode, in steps of one clock tick.
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

impl Times {
    pub(crate) fn of(pid: u32) -> Result<Self, Error> {
        let path = format!("/proc/{pid}/stat");
        let stat = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let (user, system) = ticks(&stat).ok_or_else(|| format!("{path}: unknown form"))?;
        Ok(Self { total: of_threads(pid)?, user: duration(user)?, system: duration(system)? })
    }
}

impl Sub for Times {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            total: self.total.saturating_sub(before.total),
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }
}

/// Time that this processor was not idle; time stolen by other guests of the host counts too.
pub(crate) fn used_of(processor: u32) -> Result<Duration, Error> {
    let stat = fs::read_to_string("/proc/stat")?;
    duration(busy_ticks(&stat, processor).ok_or_else(|| format!("/proc/stat: no processor {processor}"))?)
}

/// The sum of the first fields of `schedstat`: nanoseconds on a processor.
fn of_threads(pid: u32) -> Result<Duration, Error> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = thread?.path().join("schedstat");
        let text = fs::read_to_string(&path)?;
        let field = text.split(' ').next().and_then(|field| field.parse::<u64>().ok());
        nanoseconds += field.ok_or_else(|| format!("{}: unknown form", path.display()))?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

fn duration(ticks: u64) -> Result<Duration, Error> {
    Ok(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second())?)
}

/// `utime` and `stime`, fields 14 and 15. The name in field 2 may contain anything, `)` included.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, from_field_3) = stat.rsplit_once(") ")?;
    let mut fields = from_field_3.split(' ').skip(11);
    let (utime, stime) = (fields.next()?, fields.next()?);
    Some((utime.parse().ok()?, stime.parse().ok()?))
}

/// The processor's line, without its fields 4 and 5 (idle, waiting for disks) and the guests' times, which the first
/// two already hold.
fn busy_ticks(stat: &str, processor: u32) -> Option<u64> {
    let name = format!("cpu{processor} ");
    let fields = stat.lines().find_map(|line| line.strip_prefix(&name))?.split_ascii_whitespace();
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
        assert_eq!(ticks(stat), Some((31, 11)));
    }

    #[test]
    fn idle_time_guests_and_other_processors_do_not_count() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 400 500 6 7 8 90 10\ncpu12 9 9 9 9 9 9 9 9\n";
        assert_eq!(busy_ticks(stat, 1), Some(27));
    }
}
