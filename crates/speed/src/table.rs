//! Tables and aims.

use std::fmt::Write as _;

use crate::run::{Cell, Figures, Load};
use crate::works::{End, Name, Wiring, Work};

/// One work with the medians over its runs.
pub(crate) struct Row {
    wiring: Wiring,
    name: Name,
    word: &'static str,
    loads: Vec<(Load, Result<Cell, String>)>,
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

impl Row {
    /// The medians of what was measured.
    pub(crate) fn of(work: &Work, figures: &[Figures]) -> Self {
        let over =
            |of: &dyn Fn(&Figures) -> Option<f64>| median(figures.iter().filter_map(of).collect());
        let loads = Load::ALL
            .into_iter()
            .map(|load| (load, cell(load, figures)))
            .collect();
        let is_direct = work.name == Name::Direct;
        let memory =
            |of: &dyn Fn(&Figures) -> Option<f64>| if is_direct { f64::NAN } else { over(of) };
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

    fn cell(&self, load: Load) -> Option<Cell> {
        let (_, cell) = self.loads.iter().find(|(known, _)| *known == load)?;
        cell.as_ref().ok().copied()
    }
}

fn cell(load: Load, figures: &[Figures]) -> Result<Cell, String> {
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
    let over = |of: fn(&Cell) -> f64| median(good.iter().map(of).collect());
    Ok(Cell {
        median: over(|cell| cell.median),
        p99: over(|cell| cell.p99),
        rate: over(|cell| cell.rate),
    })
}

fn lost(figures: &[Figures]) -> String {
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

/// A number with as many digits as it deserves.
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

/// Everything, as Markdown.
pub(crate) fn written(rows: &[Row]) -> String {
    let mut out = String::new();
    for wiring in Wiring::ALL {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.wiring == wiring).collect();
        if !rows.is_empty() {
            table(&mut out, wiring, &rows);
        }
    }
    out.push_str("Each load: median us / p99 us, one call at a time / calls a second, 64 at once (1 MB: 8 at once).\n\n");
    aims(&mut out, rows);
    out
}

// Writing into a string cannot fail.
fn table(out: &mut String, wiring: Wiring, rows: &[&Row]) {
    let _ = writeln!(out, "{wiring}\n");
    let loads: Vec<String> = Load::ALL.iter().map(Load::to_string).collect();
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

/// The aims, and what came out.
fn aims(out: &mut String, rows: &[Row]) {
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
    for (end, word, times) in [(End::Stdio, "stdio", 2.0), (End::Http, "HTTP", 5.0)] {
        let find = |name| {
            rows.iter()
                .find(|row| row.name == name && row.wiring.front == end && row.wiring.back == end)
        };
        let (Some(direct), Some(relay), Some(ours)) =
            (find(Name::Direct), find(Name::Relay), find(Name::Ours))
        else {
            continue;
        };
        let of = |row: &Row, load, what: fn(&Cell) -> f64| {
            row.cell(load).as_ref().map_or(f64::NAN, what)
        };
        let added = |row| {
            of(row, Load::Small, |cell| cell.median) - of(direct, Load::Small, |cell| cell.median)
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
            rate(ours, Load::Small) / rate(relay, Load::Small),
            0.33,
            false,
        );
        aim(
            format!("{word}: calls/s at 1 MB relative to the relay's, at least 0.8"),
            rate(ours, Load::Large) / rate(relay, Load::Large),
            0.8,
            false,
        );
        aim(
            format!("{word}: a question answered by the client, times direct, at most 1.3"),
            of(ours, Load::Question, |cell| cell.median)
                / of(direct, Load::Question, |cell| cell.median),
            1.3,
            true,
        );
    }
    for wiring in Wiring::ALL {
        let here = || rows.iter().filter(|row| row.wiring == wiring);
        let rate = |row: &Row| row.cell(Load::Small).map_or(f64::NAN, |cell| cell.rate);
        let best = here()
            .filter(|row| !matches!(row.name, Name::Direct | Name::Relay | Name::Ours))
            .map(rate)
            .fold(f64::NAN, f64::max);
        if let Some(ours) = here().find(|row| row.name == Name::Ours) {
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
