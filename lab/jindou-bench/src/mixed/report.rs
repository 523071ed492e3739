//! Reports runs as tables and JSON.

use super::emulate::Setup;
use super::histogram::Histogram;
use super::machine::Stalls;
use super::outcome::{AFTER, Outcome};
use std::time::Duration;

/// A scheduler has recovered from an overload when 99 % of the light queries take less than this.
const WELL: Duration = Duration::from_millis(20);
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

pub fn header(setup: &Setup) {
    println!(
        "latencies in µs from (intended) arrival to the last row; {} classes, {} heavy queries",
        setup.classes.len(),
        setup.heavy.len()
    );
    println!(
        "run                                                        queries/s       p50       p90       p99     p99.9        max"
    );
}

fn line(name: &str, h: &Histogram, seconds: f64) {
    let q = QUANTILES.map(|q| format!(" {:>9.1}", h.quantile(q).as_secs_f64() * 1e6));
    println!(
        "{name:<58} {:>9.1}{} {:>10.1}",
        h.count() as f64 / seconds,
        q.concat(),
        h.max().as_secs_f64() * 1e6
    );
}

pub fn print(title: &str, setup: &Setup, o: &Outcome) {
    if o.light.count() > 0 || o.heavy.count() == 0 {
        line(title, &o.light, o.seconds);
    } else {
        println!("{title}");
    }
    for (name, h) in setup.names().zip(&o.latencies) {
        if h.count() > 0 {
            line(&format!("    {name}"), h, o.seconds);
        }
    }
    let c = &o.counts;
    let refused = match o.refused {
        0 => "refused none".to_owned(),
        n => format!(
            "refused {:.0}/s (told to retry after at most {:?})",
            n as f64 / o.seconds,
            o.retry
        ),
    };
    println!(
        "    taken from others {}, moved to heavy {}, helped {}, slept {}; {refused}, unsent {:.0}/s, unfinished {}; {} answers compared",
        c.taken,
        c.moved,
        c.helped,
        c.slept,
        o.unsent as f64 / o.seconds,
        o.unfinished,
        o.checked
    );
    let mut light = String::new();
    if o.best_tenth > 0.0 {
        light += &format!(
            "in the best tenth of stretches of 10 ms {:.0}/s; ",
            o.best_tenth
        );
    }
    if o.light.count() > 0 {
        light += &format!(
            "{:.2} µs of processor time a light query, all included; ",
            o.processor * 1e6 / o.light.count() as f64
        );
    }
    println!(
        "    {light}others had {:.2} cores and the host {:.2}, preempted {:.0}/s; own memory {} → {} MiB, {} at most{}",
        o.taken.others,
        o.taken.stolen,
        o.taken.preempted,
        o.memory[0] >> 20,
        o.memory[1] >> 20,
        o.memory[2] >> 20,
        o.beside.map_or(String::new(), |n| format!(
            "; the loop next to it ran {n:.0} times/s"
        ))
    );
    if !o.after.is_empty() {
        match o.recovered(WELL) {
            Some(time) => println!(
                "    then at half the peak: nothing refused and p99 under {WELL:?} from {time:?} on"
            ),
            None => println!("    then at half the peak: not well within {:?}", AFTER),
        }
    }
}

/// Prints the pauses of a bare loop on each core, and the speed of arithmetic on two cores at once.
pub fn print_stalls(s: &Stalls, (one, two): (f64, f64)) {
    let [a, b, c, d] = s.longer;
    println!(
        "a bare loop on each core: {a:.1} pauses/s over 50 µs, {b:.1} over 200 µs, {c:.1} over 1 ms, {d:.1} over 5 ms, the longest {:.1} ms; {:.2} % of the time lost",
        s.longest.as_secs_f64() * 1e3,
        s.lost * 100.0
    );
    println!(
        "a loop of arithmetic on each of two cores runs at {:.0} % of its speed on one alone",
        100.0 * two / one
    );
}

/// Prints the rates and latencies of light queries `beside` other work relative to those `alone`: medians over the
/// rounds. `than` names the baseline.
pub fn print_ratios(
    title: &str,
    than: &str,
    alone: &[&Outcome],
    beside: &[&Outcome],
    heavy: Option<&Outcome>,
) {
    let p99 = |o: &Outcome| o.light.quantile(0.99).as_secs_f64();
    let ratio = |of: &dyn Fn(&Outcome) -> f64| {
        median(
            beside
                .iter()
                .zip(alone)
                .map(|(b, a)| of(b) / of(a))
                .collect(),
        )
    };
    print!(
        "{title}: light {:.0} % of {than}, p99 {:.2} times",
        100.0 * ratio(&Outcome::light_rate),
        ratio(&p99)
    );
    if let Some(heavy) = heavy {
        let mean = |o: &Outcome| o.heavy.mean().as_secs_f64();
        let own = median(beside.iter().map(|b| mean(b) / mean(heavy)).collect());
        print!(", a heavy query {own:.2} times its time alone");
    }
    println!();
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    let at = |n: usize| all.get(n).copied().unwrap_or(f64::NAN);
    let half = all.len() / 2;
    if all.len().is_multiple_of(2) {
        (at(half.wrapping_sub(1)) + at(half)) / 2.0
    } else {
        at(half)
    }
}
