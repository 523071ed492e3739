//! Tables and CSV in the manner of the paper.

use super::build::Parts;
use super::fit::{Fit, Line};
use super::study::{Asked, Classified};
use std::fmt::Write as _;

/// Prints table II: bytes that each query accesses.
pub fn footprints(queries: &[Classified], store_bytes: u64, large: f64) {
    println!(
        "\nQueries (as in the paper's table II). Footprint: pages of the store's files, 4 KiB each, that answering it touches, from parsing to TSV; \
         large from {:.0} KB on ({:.1} % of the store's {:.1} MB)",
        large * store_bytes as f64 / 1024.0,
        large * 100.0,
        store_bytes as f64 / 1e6
    );
    println!(
        "query                        footprint KB  class       rows  % CPU    serial ms      cold ms"
    );
    for q in queries {
        println!(
            "{:<28} {:>12.0} {:>6} {:>10} {:>6.0} {:>12.3} {:>12}",
            q.query.name,
            q.touched as f64 / 1024.0,
            if q.is_large { "large" } else { "small" },
            q.right[0].0,
            q.processor * 100.0,
            q.warm * 1e3,
            q.cold.map_or("-".into(), |s| format!("{:.3}", s * 1e3)),
        );
    }
}

/// Prints the figures of a partition.
pub fn partition(p: &Parts) {
    let triples: Vec<String> = p.triples.iter().map(u64::to_string).collect();
    println!(
        "\n{} over {} workers, {} hops: {} triples ({:.2} times the graph); {:.1} % of edges cut; {} predicates with their subjects only; {:.2} s to decide, {:.2} s to load{}",
        p.how,
        p.workers,
        p.hops,
        triples.join(" + "),
        p.replication(),
        p.cut * 100.0,
        p.one_way.len(),
        p.seconds[0],
        p.seconds[1],
        if p.reused { " (when it was made)" } else { "" }
    );
}

/// Prints each query's figures on a partition.
pub fn asked(list: &[Asked]) {
    println!(
        "every answer equals the single store's, rows and checksum; missed: by the paper's form (broadcast whole, union, DISTINCT)"
    );
    println!(
        "query                         class parts       rows      sent KB      matches   missed"
    );
    for a in list {
        let missed = if a.matches == 0 {
            0.0
        } else {
            100.0 * (a.matches - a.naive.min(a.matches)) as f64 / a.matches as f64
        };
        println!(
            "{:<28} {:>6} {:>5} {:>10} {:>12.1} {:>12} {:>7.1}%",
            a.name,
            if a.is_large { "large" } else { "small" },
            a.parts,
            a.rows,
            a.bytes as f64 / 1024.0,
            a.matches,
            missed
        );
    }
}

/// Speed-up and efficiency, as in figures 1 and 5; balance, as in figures 2 and 3; processor use, as in figure 4.
pub fn lines(title: &str, unit: &str, lines: &[&Line]) {
    if lines.is_empty() {
        return;
    }
    println!(
        "\n{title}\ncompute: the workers' mean, with data parallelism the slowest of each round; master: handing out, or merging; commun.: messages and waiting"
    );
    println!(
        "model files way                workers cores   serial s          s speed-up ÷ workers   ÷ cores  compute  master commun.  {:>22}  % CPU",
        format!("{unit}, mean ± sd")
    );
    for l in lines {
        let share = |s: f64| format!("{:.1}%", 100.0 * s / l.seconds.max(1e-12));
        println!(
            "{:<5} {:<5} {:<18} {:>7} {:>5} {:>10.4} {:>10.4} {:>8.2} {:>9.2} {:>9.2}  {:>7} {:>7} {:>7}  {:>22} {:>6.0}",
            l.model,
            if l.cold { "cold" } else { "warm" },
            l.way,
            l.workers,
            l.cores(),
            l.serial,
            l.seconds,
            l.speed_up(),
            l.by_workers(),
            l.by_cores(),
            share(l.compute),
            share(l.master),
            share(l.rest()),
            format!("{:.1} ± {:.1}", l.balance[0], l.balance[1]),
            l.processor * 100.0,
        );
    }
}

/// Groups the lines that differ only in their number of workers.
pub fn series(lines: &[Line]) -> Vec<Vec<&Line>> {
    let mut out: Vec<Vec<&Line>> = vec![];
    for l in lines {
        let same =
            |s: &&mut Vec<&Line>| (s[0].model, s[0].cold, &s[0].way) == (l.model, l.cold, &l.way);
        match out.iter_mut().find(same) {
            Some(s) => s.push(l),
            None => out.push(vec![l]),
        }
    }
    out
}

/// Upper and lower bound of the projected speed-up; `None` unless one and two workers were measured.
pub fn fits(series: &[&Line]) -> Option<[Fit; 2]> {
    let with = |n| series.iter().find(|l| l.workers == n);
    let (one, two) = (with(1)?, with(2)?);
    Some([Fit::serial(one, two), Fit::contended(one, two)])
}

/// Prints the projected speed-up with more cores.
pub fn projection(lines: &[Line], cores: u32) {
    let all = series(lines);
    let fitted: Vec<_> = all.iter().filter_map(|s| Some((s, fits(s)?))).collect();
    if fitted.is_empty() {
        return;
    }
    println!(
        "\nPROJECTION, not measured: T(w) = T(1) (1 + σ(w−1) + κw(w−1)) / w through the times of 1 and 2 workers, never less than the master works; \
         {} workers and the master on {cores} cores.\nMost: all that two workers lose is serial (σ). Least: σ is the master's share of one worker's time, pairs lose the rest (κ)",
        cores.saturating_sub(1)
    );
    println!(
        "model files way                 most: σ  speed-up  efficiency  least: σ        κ  speed-up  efficiency   best: at cores"
    );
    for (s, [most, least]) in fitted {
        let speed_up = |f: &Fit, workers: u32| s[0].serial / f.seconds(workers);
        let best = (1..cores.max(2))
            .max_by(|a, b| speed_up(&least, *a).total_cmp(&speed_up(&least, *b)))
            .unwrap_or(1);
        let at = |f: &Fit| speed_up(f, cores.max(2) - 1);
        println!(
            "{:<5} {:<5} {:<18} {:>8.4} {:>9.2} {:>11.3}  {:>8.4} {:>8.4} {:>9.2} {:>11.3} {:>16}",
            s[0].model,
            if s[0].cold { "cold" } else { "warm" },
            s[0].way,
            most.serial_share,
            at(&most),
            at(&most) / f64::from(cores),
            least.serial_share,
            least.contention,
            at(&least),
            at(&least) / f64::from(cores),
            format!("{:.1} at {}", speed_up(&least, best), best + 1),
        );
    }
}

/// CSV of every measured line, and of the projections, marked as such.
pub fn csv(lines: &[Line], cores: u32) -> String {
    let mut out = "model,files,way,workers,cores,kind,serial_s,seconds,speed_up,efficiency_workers,efficiency_cores,compute_s,master_s,rest_s,balance_mean,balance_sd,cpu\n".to_owned();
    for s in series(lines) {
        let files = if s[0].cold { "cold" } else { "warm" };
        for l in &s {
            let _ = writeln!(
                out,
                "{},{files},\"{}\",{},{},measured,{:.6},{:.6},{:.4},{:.4},{:.4},{:.6},{:.6},{:.6},{:.2},{:.2},{:.3}",
                l.model,
                l.way,
                l.workers,
                l.cores(),
                l.serial,
                l.seconds,
                l.speed_up(),
                l.by_workers(),
                l.by_cores(),
                l.compute,
                l.master,
                l.rest(),
                l.balance[0],
                l.balance[1],
                l.processor
            );
        }
        let Some(fits) = fits(&s).filter(|_| cores > 1) else {
            continue;
        };
        for (f, kind) in fits.iter().zip(["projection most", "projection least"]) {
            let (seconds, speed_up) = (f.seconds(cores - 1), s[0].serial / f.seconds(cores - 1));
            let _ = writeln!(
                out,
                "{},{files},\"{}\",{},{cores},{kind},{:.6},{seconds:.6},{speed_up:.4},{:.4},{:.4},,,,,,",
                s[0].model,
                s[0].way,
                cores - 1,
                s[0].serial,
                speed_up / f64::from(cores - 1),
                speed_up / f64::from(cores)
            );
        }
    }
    out
}
