//! Tables of results and aims.

use std::fmt::Write as _;

use crate::run::{CallSize, LoadFigures, RunFigures};
use crate::works::{MiddleProgram, SideTransport, Wiring, Work};

/// One work with the medians over its runs.
pub(crate) struct TableRow {
    wiring: Wiring,
    name: MiddleProgram,
    word: &'static str,
    loads: Vec<(CallSize, Result<LoadFigures, String>)>,
    start: f64,
    idle: f64,
    after: f64,
    most: f64,
    lost: String,
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

impl TableRow {
    /// Returns the medians of the measurements.
    pub(crate) fn of(work: &Work, figures: &[RunFigures]) -> Self {
        let over = |of: &dyn Fn(&RunFigures) -> Option<f64>| {
            median(figures.iter().filter_map(of).collect())
        };
        let loads = CallSize::ALL
            .into_iter()
            .map(|load| (load, cell(load, figures)))
            .collect();
        let is_direct = work.name == MiddleProgram::Direct;
        let memory =
            |of: &dyn Fn(&RunFigures) -> Option<f64>| if is_direct { f64::NAN } else { over(of) };
        Self {
            wiring: work.wiring,
            name: work.name,
            word: work.word(),
            loads,
            start: over(&|one| one.start),
            idle: memory(&|one| one.idle.map(|memory| memory.now)),
            after: memory(&|one| one.after.map(|memory| memory.now)),
            most: memory(&|one| one.after.map(|memory| memory.most)),
            lost: lost(figures),
        }
    }

    fn cell(&self, load: CallSize) -> Option<LoadFigures> {
        let (_, cell) = self.loads.iter().find(|(known, _)| *known == load)?;
        cell.as_ref().ok().copied()
    }
}

fn cell(load: CallSize, figures: &[RunFigures]) -> Result<LoadFigures, String> {
    let mut good = Vec::new();
    let mut why = "not run".to_owned();
    for figures in figures {
        match figures.loads.get(&load) {
            Some(Ok(cell)) => good.push(*cell),
            Some(Err(error)) => why.clone_from(error),
            None => {}
        }
    }
    if good.is_empty() {
        return Err(why);
    }
    let over = |of: fn(&LoadFigures) -> f64| median(good.iter().map(of).collect());
    Ok(LoadFigures {
        median: over(|cell| cell.median),
        p99: over(|cell| cell.p99),
        rate: over(|cell| cell.rate),
    })
}

fn lost(figures: &[RunFigures]) -> String {
    match figures
        .iter()
        .filter_map(|one| one.lost.as_ref())
        .next_back()
    {
        None => "not run".to_owned(),
        Some(Err(why)) => format!("failed: {}", short(why)),
        Some(Ok(lost)) if lost.is_empty() => "nothing".to_owned(),
        Some(Ok(lost)) => lost.join(", "),
    }
}

fn short(why: &str) -> String {
    why.chars()
        .take(60)
        .map(|c| if c == '|' { '/' } else { c })
        .collect()
}

/// Formats a number with the digits that are significant.
fn number(value: f64) -> String {
    if value.is_nan() {
        "-".to_owned()
    } else if value < 10.0 {
        format!("{value:.1}")
    } else {
        let digits = format!("{value:.0}");
        let mut out = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                out.push(',');
            }
            out.push(digit);
        }
        out
    }
}

/// Returns all results as Markdown.
pub(crate) fn written(rows: &[TableRow]) -> String {
    let mut out = String::new();
    for wiring in Wiring::ALL {
        let rows: Vec<&TableRow> = rows.iter().filter(|row| row.wiring == wiring).collect();
        if !rows.is_empty() {
            table(&mut out, wiring, &rows);
        }
    }
    out.push_str("Each load: median us / p99 us, one call at a time / calls a second, 64 at once (1 MB: 8 at once).\n\n");
    aims(&mut out, rows);
    out
}

// Writing into a string cannot fail.
fn table(out: &mut String, wiring: Wiring, rows: &[&TableRow]) {
    let _ = writeln!(out, "{wiring}\n");
    let loads: Vec<String> = CallSize::ALL.iter().map(CallSize::to_string).collect();
    let _ = writeln!(
        out,
        "| gateway | {} | start, ms | memory idle / after / most, MB | lost or changed |",
        loads.join(" | ")
    );
    out.push_str("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for row in rows {
        let cells: Vec<String> = row
            .loads
            .iter()
            .map(|(_, cell)| match cell {
                Ok(cell) => format!(
                    "{} / {} / {}",
                    number(cell.median),
                    number(cell.p99),
                    number(cell.rate)
                ),
                Err(why) => short(why),
            })
            .collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} / {} / {} | {} |",
            row.word,
            cells.join(" | "),
            number(row.start),
            number(row.idle),
            number(row.after),
            number(row.most),
            row.lost
        );
    }
    out.push('\n');
}

/// Appends the aims, with the results.
fn aims(out: &mut String, rows: &[TableRow]) {
    out.push_str("| goal | measured | met |\n| --- | --- | --- |\n");
    let mut aim = |what: String, found: f64, bound: f64, at_most: bool| {
        if !found.is_nan() {
            let met = if at_most {
                found <= bound
            } else {
                found >= bound
            };
            let met = if met { "yes" } else { "no" };
            let _ = writeln!(out, "| {what} | {found:.2} | {met} |");
        }
    };
    for (end, word, times) in [
        (SideTransport::Stdio, "stdio", 2.0),
        (SideTransport::Http, "HTTP", 5.0),
    ] {
        let find = |name| {
            rows.iter()
                .find(|row| row.name == name && row.wiring.front == end && row.wiring.back == end)
        };
        let (Some(direct), Some(relay), Some(ours)) = (
            find(MiddleProgram::Direct),
            find(MiddleProgram::Relay),
            find(MiddleProgram::Ours),
        ) else {
            continue;
        };
        let of = |row: &TableRow, load, what: fn(&LoadFigures) -> f64| {
            row.cell(load).as_ref().map_or(f64::NAN, what)
        };
        let added = |row| {
            of(row, CallSize::Small, |cell| cell.median)
                - of(direct, CallSize::Small, |cell| cell.median)
        };
        aim(
            format!("{word}: added median at 100 B, times the relay's, at most {times}"),
            added(ours) / added(relay),
            times,
            true,
        );
        let rate = |row, load| of(row, load, |cell| cell.rate);
        aim(
            format!("{word}: calls/s at 100 B relative to the relay's, at least 0.33"),
            rate(ours, CallSize::Small) / rate(relay, CallSize::Small),
            0.33,
            false,
        );
        aim(
            format!("{word}: calls/s at 1 MB relative to the relay's, at least 0.8"),
            rate(ours, CallSize::Large) / rate(relay, CallSize::Large),
            0.8,
            false,
        );
        aim(
            format!("{word}: a question answered by the client, times direct, at most 1.3"),
            of(ours, CallSize::Question, |cell| cell.median)
                / of(direct, CallSize::Question, |cell| cell.median),
            1.3,
            true,
        );
    }
    for wiring in Wiring::ALL {
        let here = || rows.iter().filter(|row| row.wiring == wiring);
        let rate = |row: &TableRow| row.cell(CallSize::Small).map_or(f64::NAN, |cell| cell.rate);
        let best = here()
            .filter(|row| {
                !matches!(
                    row.name,
                    MiddleProgram::Direct | MiddleProgram::Relay | MiddleProgram::Ours
                )
            })
            .map(rate)
            .fold(f64::NAN, f64::max);
        if let Some(ours) = here().find(|row| row.name == MiddleProgram::Ours) {
            aim(
                format!(
                    "{wiring}: calls/s at 100 B relative to the best other gateway, at least 10"
                ),
                rate(ours) / best,
                10.0,
                false,
            );
            aim(
                format!("{wiring}: ms from start to the first answer, at most 20"),
                ours.start,
                20.0,
                true,
            );
            aim(
                format!("{wiring}: MB idle, at most 15"),
                ours.idle,
                15.0,
                true,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_easily() {
        let shown = [3.25, 42.4, 1_234.0, 1_234_567.0, f64::NAN].map(number);
        assert_eq!(shown, ["3.2", "42", "1,234", "1,234,567", "-"]);
    }
}
