//! Measures answers that leave as text: LUBM's large answers, written as TSV by the library and discarded, with `--gpu`
//! off, on and auto.

use crate::figures::{Goal, say_figure, say_wrong};
use crate::{Options, median};
use jindou::{Database, GpuChoice, OpenOptions, QueryOptions, ResultFormat, ResultWriter, Runtime};
use jindou_model::Result;
use jindou_workloads::queries::lubm::query;
use serde_json::json;
use std::io::Write;
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// Factor by which the time of `auto` may exceed the better time of `on` and `off`.
const SLACK: f64 = 1.1;

/// Counts the bytes written to it and discards them.
#[derive(Default)]
struct Nowhere(u64);

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += std::hint::black_box(bytes).len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Counts lines and adds their hashes, so that two outputs compare equal whatever the order of their lines.
#[derive(Default)]
struct Lines {
    lines: u64,
    sum: u64,
    begun: Vec<u8>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut pieces = bytes.split(|b| *b == b'\n');
        self.begun.extend_from_slice(pieces.next().unwrap_or(b""));
        for piece in pieces {
            self.lines += 1;
            self.sum = self.sum.wrapping_add(xxh3_64(&self.begun));
            self.begun.clear();
            self.begun.extend_from_slice(piece);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn written<W: Write + Send>(
    db: &Database,
    text: &str,
    options: &QueryOptions,
    mut to: W,
) -> Result<(W, f64)> {
    let began = Instant::now();
    let mut writer = ResultWriter::new(&mut to, ResultFormat::Tsv);
    db.run(text, options, &mut writer)?;
    drop(writer);
    Ok((to, began.elapsed().as_secs_f64() * 1e3))
}

pub fn measure(o: &Options) -> Result<bool> {
    let runtime = Runtime::builder().threads(o.threads).build();
    let db = Database::open_with(&o.store, &OpenOptions::default().with_runtime(runtime))?;
    db.runtime().open_gpu();
    let (mut right, mut left_out) = (true, vec![]);
    for name in ["L2", "L7", "L1"] {
        let Some(q) = query(name) else {
            continue;
        };
        let (mut lines, mut best) = (None, f64::MAX);
        for (choice, how) in [
            (GpuChoice::Off, "off"),
            (GpuChoice::On, "on"),
            (GpuChoice::Auto, "auto"),
        ] {
            let what = format!("{name} to TSV, --gpu {how}");
            if o.is_over() {
                left_out.push(what);
                continue;
            }
            let options = QueryOptions::default()
                .with_threads(o.threads)
                .with_gpu(choice);
            // The first run uploads the segments; its lines are compared.
            let (seen, first) = written(&db, q.text, &options, Lines::default())?;
            let seen = (seen.lines, seen.sum);
            let known = q.rows(o.universities).map(|rows| rows + 1);
            let want = *lines.get_or_insert((known.unwrap_or(seen.0), seen.1));
            if seen != want {
                right = false;
                say_wrong(
                    &what,
                    &format!("{want:?} lines and sum"),
                    &format!("{seen:?}"),
                );
            }
            let (mut ms, mut bytes) = (vec![], 0);
            for _ in 0..o.repeat {
                if ms.len() > 1 && o.is_over() {
                    break;
                }
                let (out, took) = written(&db, q.text, &options, Nowhere::default())?;
                bytes = out.0;
                ms.push(took);
            }
            let (runs, last) = (ms.len(), ms.last().copied());
            let had = median(&mut ms);
            // `on` should beat 16 cores, and `auto` should be near the better of both.
            let wanted = match choice {
                GpuChoice::Off => None,
                GpuChoice::On => (best < f64::MAX).then_some(Goal::AtMost(best)),
                _ => (best < f64::MAX).then_some(Goal::AtMost(SLACK * best)),
            };
            best = best.min(had);
            let more = json!({
                "query": name, "gpu": how, "threads": o.threads, "rows": seen.0 - 1, "bytes": bytes, "first_ms": first,
                "last_ms": last, "runs": runs,
            });
            say_figure(o, &what, "ms", wanted, Some(had), more);
        }
    }
    o.say_left_out(&left_out);
    Ok(right)
}
