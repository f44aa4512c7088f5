//! Medians over the rounds, and ratios within them, as Markdown.

use crate::arguments::{Options, Plan};
use crate::case::Case;
use crate::measure::Figures;

/// All measurements of one case under one plan: per server, one per round.
pub(crate) struct Series {
    pub(crate) case: Case,
    pub(crate) plan: Plan,
    pub(crate) figures: Vec<Vec<Figures>>,
}

pub(crate) fn print(options: &Options, all: &[Series], rounds: usize) {
    let others = all
        .iter()
        .flat_map(|series| &series.figures)
        .map(|figures| Spread::of(figures, |one| one.others).median)
        .fold(0.0, f64::max);
    println!(
        "Medians of {rounds} interleaved rounds, [lowest-highest]. Others: up to {:.0} %.\n",
        others * 100.0
    );
    println!(
        "| request | connections | server | CPU µs | user | system | requests/s | p50 µs | p99 µs | {} / it |",
        options.subject
    );
    println!("|---|--:|---|--:|--:|--:|--:|--:|--:|--:|");
    for series in all {
        for (server, figures) in options.servers.iter().zip(&series.figures) {
            println!(
                "| {} | {} | {} | {} | {:.1} | {:.1} | {} | {:.0} | {:.0} | {} |",
                series.case.name(),
                series.plan.connections,
                server.name,
                Spread::of(figures, |one| one.cpu_micros).text(1),
                Spread::of(figures, |one| one.user_micros).median,
                Spread::of(figures, |one| one.system_micros).median,
                Spread::of(figures, |one| one.requests_per_second).text(0),
                Spread::of(figures, |one| one.p50_micros).median,
                Spread::of(figures, |one| one.p99_micros).median,
                ratio(options, series, &server.name, figures),
            );
        }
    }
}

/// Returns the CPU time of the subject divided by that of another server, within each round; nothing for the subject itself.
fn ratio(options: &Options, series: &Series, server: &str, theirs: &[Figures]) -> String {
    let mut named = options.servers.iter().zip(&series.figures);
    match named.find(|(other, _)| other.name == options.subject) {
        Some((subject, own)) if subject.name != server => {
            let pairs: Vec<f64> = own.iter().zip(theirs).map(|(a, b)| a.cpu_micros / b.cpu_micros).collect();
            Spread::of(&pairs, |one| *one).text(2)
        }
        _ => String::new(),
    }
}

/// Median and extremes of a figure.
pub(crate) struct Spread {
    lowest: f64,
    median: f64,
    highest: f64,
}

impl Spread {
    /// `all` is not empty: there is at least one round.
    pub(crate) fn of<T>(all: &[T], figure: impl Fn(&T) -> f64) -> Self {
        let mut sorted: Vec<f64> = all.iter().map(figure).collect();
        sorted.sort_by(f64::total_cmp);
        let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Self { lowest: sorted[0], median: f64::midpoint(below, above), highest: sorted[sorted.len() - 1] }
    }

    pub(crate) fn text(&self, digits: usize) -> String {
        let Self { lowest, median, highest } = self;
        format!("{median:.digits$} [{lowest:.digits$}-{highest:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0], |one| *one);
        assert_eq!(spread.text(1), "2.5 [1.0-4.0]");
    }
}
