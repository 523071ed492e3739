//! Edits that both ends make from one seed.

use crate::Random;
use jindou_cluster::remote::StoreFiles;
use jindou_model::Direction;
use jindou_store::QuadEdit;

/// `count` edits at snapshots 1 to `count`: half remove an edge that is there, half add one.
pub fn random_edits(files: &StoreFiles, count: u32, seed: u64) -> Vec<QuadEdit> {
    let mut random = Random(seed ^ 0xED17);
    let out = files.default(Direction::Out);
    let mut edits = Vec::new();
    let mut snapshot = 0;
    let mut tries = 0;
    while snapshot < count && tries < count.saturating_mul(100) {
        tries += 1;
        let predicate = random.below(u64::from(files.predicates())) as u32;
        let segment = out.segment(predicate);
        let mut key = Vec::new();
        let k = random.below(u64::from(segment.key_count)) as u32;
        segment.keys_into(k, k + 1, &mut key);
        let (Some(&subject), list) = (key.first(), segment.list(k)) else {
            continue;
        };
        let Some(&there) = list.get(random.below(list.len() as u64) as usize) else {
            continue;
        };
        snapshot += 1;
        let added = random.below(2) == 0;
        let object = if added { random.between(1, there.saturating_mul(2)) } else { there };
        edits.push(QuadEdit {
            subject,
            predicate,
            object,
            graph: jindou_model::DEFAULT_GRAPH,
            snapshot,
            added,
        });
    }
    edits
}
