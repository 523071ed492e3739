//! The table for terminals.

use super::{Report, by_template, date, median, ms, ratio_text, size, thousands};
use std::fmt::Write;

/// The report as text: per query a line for each engine's median with least and most, then load, size, memory.
pub fn table(r: &Report) -> String {
    let mut out = String::new();
    head(r, &mut out);
    queries(&by_template(r), r.queries.len(), &mut out);
    engines(r, &mut out);
    let differences = r.differences();
    if differences.is_empty() {
        out += "\nAll engines gave the same answers.\n";
    } else {
        out += "\nWhat differs:\n";
        for d in differences {
            let _ = writeln!(out, "  {d}");
        }
    }
    out
}

fn head(r: &Report, out: &mut String) {
    let statements = r
        .data
        .statements
        .map_or(String::new(), |n| format!(", {} statements", thousands(n)));
    let _ = writeln!(
        out,
        "{}: {}{statements}, {}\n{}, {} cores, {}, {}; load average {:.1} before, {:.1} after; {}",
        r.title,
        r.data.name,
        size(r.data.bytes),
        r.machine.processor,
        r.machine.cores,
        size(r.machine.memory),
        r.machine.system,
        r.machine.load_before,
        r.load_after,
        date(r.unix_seconds),
    );
    for e in &r.engines {
        let _ = writeln!(
            out,
            "  {:<12} {}{}. {}",
            e.about.name,
            e.about.version,
            if e.about.over_http {
                ""
            } else {
                " [NOT over HTTP]"
            },
            e.about.how
        );
    }
}

/// Columns are as wide as what they hold.
fn aligned(rows: &[Vec<String>], out: &mut String) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|c| {
            rows.iter()
                .filter_map(|r| r.get(c))
                .map(|t| t.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for row in rows {
        let mut line = String::new();
        for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            line += &if i == 0 {
                format!("{cell}{pad}")
            } else {
                format!("  {pad}{cell}")
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn queries(r: &Report, asked: usize, out: &mut String) {
    let _ = writeln!(
        out,
        "\nmilliseconds from the question to the answer's last byte: median (least–most) of {} rounds or more; × {}",
        r.rounds,
        r.engines.first().map_or("", |e| &e.about.name)
    );
    if asked > r.queries.len() {
        let _ = writeln!(
            out,
            "a line is a template: the median (least–most) over the medians of its instances, {asked} in all; rows are sums"
        );
    }
    let mut rows = vec![vec!["query".to_owned(), "rows".into()]];
    rows[0].extend(r.engines.iter().map(|e| e.about.name.clone()));
    rows[0].push("fastest peer".into());
    let mut floor = vec!["ASK {}".to_owned(), String::new()];
    for e in &r.engines {
        let mut times = e.floor_ms.clone();
        times.sort_by(f64::total_cmp);
        floor.push(median(&times).map_or("–".into(), ms));
    }
    rows.push(floor);
    for q in &r.queries {
        let count = q.answers.iter().find_map(|a| a.seen).map(|s| s.rows);
        let mut row = vec![
            q.name.clone(),
            q.known_rows.or(count).map_or("?".into(), thousands),
        ];
        for (i, a) in q.answers.iter().enumerate() {
            let mut cell = match a.median_ms() {
                Some(m) => format!(
                    "{} ({}–{})",
                    ms(m),
                    ms(a.times_ms[0]),
                    ms(a.times_ms[a.times_ms.len() - 1])
                ),
                None if a.over_limit => format!("> {} s", r.limit_seconds),
                None => "–".into(),
            };
            if i > 0
                && let Some(ratio) = q.ratio(i, r.limit_ms())
            {
                let _ = write!(cell, " {}", ratio_text(ratio));
            }
            if !q.right(i) {
                cell += " WRONG ROWS";
            }
            row.push(cell);
        }
        row.push(q.fastest_peer(r.limit_ms()).map_or("–".into(), |(i, x)| {
            format!("{} {}", r.engines[i].about.name, ratio_text(x))
        }));
        rows.push(row);
    }
    let mut means = vec!["geometric mean".to_owned(), String::new()];
    for i in 0..r.engines.len() {
        means.push(if i == 0 {
            String::new()
        } else {
            r.mean_ratio(i)
                .map_or("–".into(), |(x, n)| format!("{} over {n}", ratio_text(x)))
        });
    }
    means.push(
        r.mean_of_fastest()
            .map_or("–".into(), |(x, n)| format!("{} over {n}", ratio_text(x))),
    );
    rows.push(means);
    aligned(&rows, out);
}

fn engines(r: &Report, out: &mut String) {
    let mut rows = vec![
        [
            "",
            "load s",
            "on disk",
            "peak of load",
            "of it own",
            "peak of serving",
            "of it own",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for e in &r.engines {
        let mut row = vec![e.about.name.clone()];
        match &e.loaded {
            Some(l) => row.extend([
                format!(
                    "{:.2}{}",
                    l.seconds,
                    if e.load_reused { " (earlier)" } else { "" }
                ),
                size(l.disk),
                size(l.memory.resident),
                size(l.memory.own),
            ]),
            None => row.extend(["–", "–", "–", "–"].map(str::to_owned)),
        }
        row.extend([size(e.serving.resident), size(e.serving.own)]);
        rows.push(row);
    }
    out.push('\n');
    aligned(&rows, out);
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn wins_losses_and_failures_are_all_there() {
        let t = table(&sample());
        for words in [
            "20.0 (20.0–21.0) 10 ×",
            "2.00 (1.00–3.00) 0.50 ×",
            "WRONG ROWS",
            "> 60 s > 10,000 ×",
            "a took more than 60 s",
            "b took no part: no port",
            "ASK {}",
            "geometric mean",
        ] {
            assert!(t.contains(words), "no '{words}' in:\n{t}");
        }
    }
}
