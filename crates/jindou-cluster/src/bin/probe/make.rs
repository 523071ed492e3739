//! A random graph in the shapes that segments have.

use crate::{Directory, Random};
use clap::Args;
use jindou_store::directory::{SEGMENTS_IN, SEGMENTS_OUT, SegmentFileWriter};
use jindou_store::segment::SegmentBuilder;
use std::fs::File;
use std::io::BufWriter;

#[derive(Args)]
pub struct Make {
    /// Where to write; made if missing.
    #[arg(long)]
    store: Directory,
    /// Vertices.
    #[arg(long, default_value_t = 1_000_000)]
    vertices: u32,
    /// Seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// (one vertex in so many has the predicate, longest list) of each predicate; with 1 and 1 it is a function
/// of all vertices.
const SHAPES: [(u32, u32); 6] = [(1, 1), (1, 6), (3, 1), (2, 12), (50, 200), (90, 1)];

pub fn run(m: &Make) -> anyhow::Result<()> {
    std::fs::create_dir_all(&m.store)?;
    let create = |name: &str| -> anyhow::Result<_> {
        let file = BufWriter::new(File::create(m.store.join(name))?);
        Ok(SegmentFileWriter::new(file, SHAPES.len() as u32)?)
    };
    let (mut out, mut into) = (create(SEGMENTS_OUT)?, create(SEGMENTS_IN)?);
    let mut random = Random(m.seed);
    for (p, &(one_in, longest)) in SHAPES.iter().enumerate() {
        let mut edges: Vec<u64> = Vec::new();
        for v in 1..=m.vertices {
            if random.below(u64::from(one_in)) > 0 {
                continue;
            }
            for _ in 0..random.between(1, longest) {
                // Neighbours from the low half, so that half the vertices are no keys of the other direction.
                let to = random.between(1, m.vertices / 2 + 1);
                edges.push(u64::from(v) << 32 | u64::from(to));
            }
        }
        for (writer, swap) in [(&mut out, false), (&mut into, true)] {
            if swap {
                edges.iter_mut().for_each(|e| *e = e.rotate_left(32));
            }
            edges.sort_unstable();
            let mut builder = SegmentBuilder::new(false);
            builder.push_pairs(&edges);
            writer.append(p as u32, &builder.finish()?)?;
        }
    }
    out.finish()?;
    into.finish()?;
    Ok(())
}
