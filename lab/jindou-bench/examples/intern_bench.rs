//! Times every stage of the dictionary on terms like LUBM's, made here: interning in order and
//! shuffled, sorting, merging, writing, looking up, decoding.
//!
//! `cargo run --release -p jindou-bench --example intern_bench [universities] [run MiB]`

use jindou_dictionary::spill::SpillDir;
use jindou_dictionary::{
    Dictionary, Interner, Residence, StringsWriter, TermRun, merge_runs, write_dictionary,
};
use jindou_model::{QuadBatch, Span, VertexId};
use std::time::Instant;

/// Seconds of CPU time of this thread: other processes do not disturb it.
fn cpu() -> f64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is a valid place for the result.
    unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t);
    }
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize * n) >> 31
    }
}

/// Quads as a parser delivers them: every term a span of its own, 4,096 quads a batch.
#[derive(Default)]
struct Batches(Vec<QuadBatch>);

impl Batches {
    fn add(&mut self, s: &str, p: &str, o: &str) {
        if self.0.last().is_none_or(|b| b.quads.len() == 4096) {
            self.0.push(QuadBatch::default());
        }
        let Some(batch) = self.0.last_mut() else {
            return;
        };
        let spans = [s, p, o].map(|t| batch.push_term(t.as_bytes()));
        batch
            .quads
            .push([spans[0], spans[1], spans[2], Span::default()]);
    }

    fn quads(&self) -> usize {
        self.0.iter().map(|b| b.quads.len()).sum()
    }

    fn shuffled(&self) -> Self {
        let mut order: Vec<(usize, usize)> = vec![];
        for (i, b) in self.0.iter().enumerate() {
            order.extend((0..b.quads.len()).map(|j| (i, j)));
        }
        let mut random = Random(7);
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i + 1));
        }
        let mut out = Self::default();
        for (i, j) in order {
            let b = &self.0[i];
            let t = |k: usize| std::str::from_utf8(b.term(b.quads[j][k])).unwrap_or("");
            out.add(t(0), t(1), t(2));
        }
        out
    }
}

fn lubm(universities: usize) -> Batches {
    const UB: &str = "<http://swat.cse.lehigh.edu/onto/univ-bench.owl#";
    const TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
    let mut out = Batches::default();
    let mut random = Random(1);
    for u in 0..universities {
        for d in 0..18 {
            let base = format!("<http://www.Department{d}.University{u}.edu");
            for x in 0..450 {
                let s = format!("{base}/UndergraduateStudent{x}");
                out.add(&s, TYPE, &format!("{UB}UndergraduateStudent"));
                out.add(&s, &format!("{UB}memberOf"), &base);
                out.add(
                    &s,
                    &format!("{UB}name"),
                    &format!("\"UndergraduateStudent{x}"),
                );
                out.add(
                    &s,
                    &format!("{UB}emailAddress"),
                    &format!("\"UndergraduateStudent{x}@Department{d}.University{u}.edu"),
                );
                out.add(&s, &format!("{UB}telephone"), "\"xxx-xxx-xxxx");
                for _ in 0..3 {
                    out.add(
                        &s,
                        &format!("{UB}takesCourse"),
                        &format!("{base}/Course{}", random.below(60)),
                    );
                }
            }
            for x in 0..400 {
                let s = format!("{base}/FullProfessor{}/Publication{}", x / 20, x % 20);
                out.add(&s, TYPE, &format!("{UB}Publication"));
                out.add(
                    &s,
                    &format!("{UB}publicationAuthor"),
                    &format!("{base}/FullProfessor{}", x / 20),
                );
                out.add(
                    &s,
                    &format!("{UB}publicationAuthor"),
                    &format!("{base}/GraduateStudent{}", random.below(150)),
                );
            }
        }
    }
    out
}

fn report(what: &str, n: usize, unit: &str, cpu_s: f64, wall: f64) {
    println!(
        "{what:<28} {:>8.1} ns/{unit:<7} cpu, {:>8.1} wall  ({n} {unit}s)",
        cpu_s * 1e9 / n as f64,
        wall * 1e9 / n as f64
    );
}

fn timed<T>(what: &str, n: usize, unit: &str, f: impl FnOnce() -> T) -> T {
    let (c, w) = (cpu(), Instant::now());
    let out = f();
    report(what, n, unit, cpu() - c, w.elapsed().as_secs_f64());
    out
}

fn intern(
    what: &str,
    batches: &Batches,
    interner: &mut Interner,
    spill: &SpillDir,
) -> jindou_model::Result<Vec<TermRun>> {
    let mut runs = vec![];
    // Written once before, so that no page fault is counted.
    let mut out = vec![[1; 4]; batches.quads()];
    out.clear();
    let (mut close_cpu, mut close_wall, mut closed_terms) = (0.0, 0.0, 0);
    let (mut intern_cpu, mut intern_wall, mut sum) = (0.0, 0.0, 0u64);
    let mut close = |interner: &mut Interner| -> jindou_model::Result<()> {
        closed_terms += interner.len();
        let (c, w) = (cpu(), Instant::now());
        runs.push(interner.close(spill)?.run);
        close_cpu += cpu() - c;
        close_wall += w.elapsed().as_secs_f64();
        Ok(())
    };
    for batch in &batches.0 {
        // A parser has just written the batch: it is in the cache.
        sum += batch
            .bytes
            .iter()
            .step_by(64)
            .map(|&b| u64::from(b))
            .sum::<u64>();
        let (c, w) = (cpu(), Instant::now());
        let taken = interner.intern(batch, &mut out);
        intern_cpu += cpu() - c;
        intern_wall += w.elapsed().as_secs_f64();
        if !taken {
            close(interner)?;
            let _ = interner.intern(batch, &mut out);
        }
    }
    close(interner)?;
    assert!(sum > 0);
    report(
        &format!("intern {what}"),
        out.len(),
        "quad",
        intern_cpu,
        intern_wall,
    );
    report(
        &format!("close (sort, write) {what}"),
        closed_terms,
        "term",
        close_cpu,
        close_wall,
    );
    println!(
        "  {} runs, {:.1} bytes a term",
        runs.len(),
        runs.iter().map(TermRun::bytes).sum::<u64>() as f64 / closed_terms as f64
    );
    Ok(runs)
}

fn main() -> jindou_model::Result<()> {
    let mut args = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse::<usize>().ok());
    let universities = args.next().unwrap_or(40);
    let run_bytes = args.next().unwrap_or(4096) << 20;
    let batches = lubm(universities);
    println!("{} quads", batches.quads());
    let spill = SpillDir::in_memory();
    let mut interner = Interner::new(run_bytes);
    intern("ordered, first run", &batches, &mut interner, &spill)?;
    intern("ordered", &batches, &mut interner, &spill)?;
    let shuffled = batches.shuffled();
    drop(batches);
    intern("shuffled", &shuffled, &mut interner, &spill)?;
    drop(interner);
    // Eight runs or more, to have something to merge.
    let mut small = Interner::new(run_bytes.min(shuffled.quads() * 9));
    let runs = intern("shuffled, small runs", &shuffled, &mut small, &spill)?;
    let total: usize = runs.iter().map(|r| r.terms() as usize).sum();
    drop(shuffled);

    let tmp = tempfile::tempdir().map_err(|e| jindou_model::Error::io("tmp", e))?;
    let dir = tmp.path();
    let strings = StringsWriter::create(dir)?;
    let merged = timed("merge", total, "term", || merge_runs(runs, strings, 1))?;
    let n = merged.terms as usize;
    let mut id_of_lex: Vec<u32> = (1..=merged.terms).collect();
    let mut random = Random(3);
    for i in (1..n).rev() {
        id_of_lex.swap(i, random.below(i + 1));
    }
    timed("write dictionary", n, "term", || {
        write_dictionary(dir, &id_of_lex, 1)
    })?;
    for residence in [Residence::Mapped, Residence::Memory] {
        println!("{residence:?}");
        read(&Dictionary::open_as(dir, residence)?);
    }
    Ok(())
}

/// Decodes and looks up.
fn read(d: &Dictionary) {
    let n = d.len() as usize;
    let mut random = Random(5);
    for (part, bytes) in d.sections() {
        println!("  {part:<22} {:>7.2} bytes/term", bytes as f64 / n as f64);
    }
    let ids: Vec<u32> = (0..(1 << 20).min(n))
        .map(|_| 1 + random.below(n) as u32)
        .collect();
    let mut arena = vec![];
    let mut ends = vec![0];
    timed("decode random", ids.len(), "term", || {
        for &id in &ids {
            d.term(VertexId(id), &mut arena);
            ends.push(arena.len());
        }
    });
    timed("decode random, prefetched", ids.len(), "term", || {
        let mut decoder = d.decoder();
        let mut sum = 0;
        for group in ids.chunks(64) {
            decoder.prefetch(group);
            for &id in group {
                sum += decoder.term(VertexId(id)).map_or(0, <[u8]>::len);
            }
        }
        assert_eq!(sum, arena.len());
    });
    timed("decode in lexicographic order", n, "term", || {
        let mut sum = 0;
        d.strings().for_each(0..n as u32, |_, t| sum += t.len());
        assert!(sum > 0);
    });
    let terms: Vec<&[u8]> = ends.windows(2).map(|w| &arena[w[0]..w[1]]).collect();
    timed("lookup present", terms.len(), "term", || {
        for (t, &id) in terms.iter().zip(&ids) {
            assert_eq!(d.lookup(t), Some(VertexId(id)));
        }
    });
    let mut found = vec![];
    timed("lookup present, many", terms.len(), "term", || {
        d.lookup_many(&terms, &mut found)
    });
    assert_eq!(found, ids);
    let absent: Vec<Vec<u8>> = terms.iter().map(|t| [t, &b"?"[..]].concat()).collect();
    timed("lookup absent", absent.len(), "term", || {
        assert!(absent.iter().all(|t| d.lookup(t).is_none()));
    });
    let mut lex = vec![];
    timed("lex_many", ids.len(), "id", || d.lex_many(&ids, &mut lex));
    assert_eq!(lex.len(), ids.len());
}
