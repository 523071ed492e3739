//! ATC '18's tables of bytes from counters: the bytes that LUBM's heavy queries need and move, alongside the paper's
//! figures. No GPU is needed and no kernel runs: blocks are uploaded and evicted as if each step ran once, over one
//! table.
//!
//! The paper's 3 GB of GPU memory are scaled to the same share of the bytes that a query needs (Q7: 3 of 5.6 GB).

use crate::lubm::planned;
use crate::{Options, say};
use jindou_gpu::{Backend, GpuExecutor, PagingOptions, Transfers};
use jindou_model::{Error, Result};
use jindou_plan::Plan;
use jindou_store::{Snapshot, open};
use serde_json::json;
use std::time::Duration;

/// Share of a device's memory that blocks may take, the same as in the library's `pages`.
const SHARE: f64 = 0.75;
/// Gigabytes that a query moves, and the number of swaps.
type Swaps = Option<(f64, u32)>;

/// Gigabytes that the paper's queries need on LUBM-2560 (its table 3), and the bytes and swaps with 3 GB (its §6.3).
const PAPER: [(&str, f64, Swaps); 4] = [
    ("L1", 3.6, Some((1.5, 187))),
    ("L2", 2.4, None),
    ("L3", 3.6, None),
    ("L7", 5.6, Some((5.1, 734))),
];
/// Gigabytes of the paper's entire graph.
const PAPER_GRAPH: f64 = 16.3;

/// Memory of a device on which blocks have this many bytes.
pub fn memory_for_blocks(backend: &dyn Backend, bytes: u64) -> u64 {
    // Rounded up to whole pages, since a part of a page would not be used.
    let page = backend.page().unwrap_or(1) as u64;
    ((bytes.div_ceil(page) * page) as f64 / SHARE).ceil() as u64 + 1
}

/// A device on which blocks have this many bytes.
fn device(bytes: u64, options: PagingOptions) -> Result<GpuExecutor> {
    let backend = jindou_gpu::open().map_err(Error::Unsupported)?;
    let memory = memory_for_blocks(&*backend, bytes);
    let gpu = GpuExecutor::limited(backend, memory, Duration::from_secs(600));
    Ok(gpu.with_paging(options))
}

/// A cold and two warm runs on a device whose blocks have this many bytes.
fn runs(plan: &Plan, snapshot: &Snapshot, bytes: u64, options: PagingOptions) -> Result<Transfers> {
    device(bytes, options)?.transfers(plan, snapshot, 3)
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Megabytes and blocks that a warm run moves.
fn warm(t: &Transfers) -> String {
    match t.runs.last() {
        Some((bytes, blocks)) => format!("{:.2} ({blocks})", mb(*bytes)),
        None => "the CPU's".into(),
    }
}

/// One of the paper's queries: its name, the gigabytes and swaps in the paper, its plan, and its transfers if all
/// blocks fit.
struct PaperQuery {
    name: &'static str,
    paper: f64,
    swaps: Swaps,
    plan: Plan,
    all: Transfers,
}

/// Options with which blocks are uploaded only when a step needs them.
fn without_prefetch() -> PagingOptions {
    PagingOptions {
        prefetch: false,
        ..PagingOptions::default()
    }
}

pub fn measure(o: &Options) -> Result<bool> {
    let snapshot = Snapshot::of_base(open(&o.store)?);
    let late = without_prefetch();
    let graph = device(1 << 20, late)?.graph_bytes(&snapshot)?;
    let mut queries = vec![];
    for (name, paper, swaps) in PAPER {
        let plan = planned(name, &snapshot)?;
        let all = device(graph + (1 << 20), late)?.transfers(&plan, &snapshot, 1)?;
        queries.push(PaperQuery {
            name,
            paper,
            swaps,
            plan,
            all,
        });
    }
    println!(
        "LUBM({}): MB here, GB in the paper (LUBM-2560)\n",
        o.universities
    );
    let Some(l7) = queries.last() else {
        return Ok(false);
    };
    table_1(&snapshot, graph, l7)?;
    table_5(&snapshot, graph, &queries)?;
    figure_11(&snapshot, &queries)?;
    Ok(true)
}

fn table_1(snapshot: &Snapshot, graph: u64, l7: &PaperQuery) -> Result<()> {
    let late = without_prefetch();
    println!("Table 1, L7        memory here  in paper   transfer here  in paper");
    let step = l7.all.steps.iter().copied().max().unwrap_or(0);
    let every: u64 = l7.all.steps.iter().sum();
    let row = |what: &str, memory: u64, of: f64, moved: String, paper: f64| {
        println!(
            "{what:<18} {:>11.2} {of:>9.1} {moved:>15} {paper:>9.1}",
            mb(memory)
        );
    };
    row(
        "entire graph",
        graph,
        16.3,
        format!("{:.2}", mb(graph)),
        16.3,
    );
    row(
        "per query",
        l7.all.query,
        5.6,
        format!("{:.2}", mb(l7.all.query)),
        5.6,
    );
    row("per pattern", step, 2.9, format!("{:.2}", mb(every)), 5.6);
    // The paper gives 6 GB to a query that needs 5.6.
    let six = (l7.all.query as f64 * 6.0 / 5.6) as u64;
    let moved = runs(&l7.plan, snapshot, six, late)?;
    row("per block, 6 GB", step, 2.9, warm(&moved), 0.7);
    Ok(())
}

fn table_5(snapshot: &Snapshot, graph: u64, queries: &[PaperQuery]) -> Result<()> {
    println!(
        "\nTable 5, transfers of a warm run with 3 GB of memory in the paper: MB (blocks) here, GB (swaps) in the paper"
    );
    println!(
        "query  wants here  in paper  memory here  per query  per pattern  per block        pipeline         per block in paper"
    );
    for PaperQuery {
        name,
        paper,
        swaps,
        plan,
        all,
    } in queries
    {
        let memory = (all.query as f64 * 3.0 / paper) as u64;
        let blocks = runs(plan, snapshot, memory, without_prefetch())?;
        let pipeline = runs(plan, snapshot, memory, PagingOptions::default())?;
        let every: u64 = all.steps.iter().sum();
        let largest = all.steps.iter().copied().max().unwrap_or(0);
        let query = if all.query <= memory {
            format!("{:.2}", mb(all.query))
        } else {
            "x".into()
        };
        let pattern = if largest <= memory {
            format!("{:.2}", mb(every))
        } else {
            "x".into()
        };
        println!(
            "{name:<6} {:>10.2} {paper:>9.1} {:>12.2} {query:>10} {pattern:>12}  {:<16} {:<16} {}",
            mb(all.query),
            mb(memory),
            warm(&blocks),
            warm(&pipeline),
            swaps.map_or("none".into(), |(gb, n)| format!("{gb} ({n})")),
        );
        say(json!({
            "query": name, "wants": all.query, "step": largest, "graph": graph, "memory": memory,
            "runs": blocks.runs, "pipeline": pipeline.runs, "paper_gb": paper, "paper_graph_gb": PAPER_GRAPH,
        }));
    }
    Ok(())
}

fn figure_11(snapshot: &Snapshot, queries: &[PaperQuery]) -> Result<()> {
    println!(
        "\nFigure 11, MB of a warm run by memory, which is as many tenths of what the query wants as in the paper"
    );
    print!("memory in the paper");
    (3..=10).for_each(|gb| print!(" {:>9}", format!("{gb} GB")));
    println!();
    for PaperQuery {
        name,
        paper,
        plan,
        all,
        ..
    } in queries
    {
        print!("{name:<19}");
        let mut before = u64::MAX;
        for gb in 3..=10 {
            let memory = (all.query as f64 * f64::from(gb) / paper) as u64;
            let moved = runs(plan, snapshot, memory, PagingOptions::default())?;
            let bytes = moved.runs.last().map(|r| r.0);
            print!(
                " {:>9}",
                bytes.map_or("CPU".into(), |b| format!("{:.2}", mb(b)))
            );
            if bytes.is_some_and(|b| b > before) {
                println!();
                return Err(Error::Internal(format!(
                    "{name} moves more with {gb} GB than with less"
                )));
            }
            before = bytes.unwrap_or(before);
        }
        println!();
    }
    Ok(())
}
