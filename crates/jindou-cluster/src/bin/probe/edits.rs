//! Edits that both ends make from one seed.

use crate::{Common, Random};
use jindou_model::{Direction, PredicateId};
use jindou_store::{QuadEdit, Snapshot, open};
use std::path::Path;
use std::sync::Arc;

/// A store with the random edits that the options ask for, as of the last of them.
pub fn edited(directory: &Path, common: &Common) -> anyhow::Result<Snapshot> {
    let base = open(directory)?;
    let plain = Snapshot::of_base(Arc::clone(&base));
    let edits = random_edits(&plain, common.edits, common.seed);
    Ok(Snapshot::with_edits(
        base,
        edits.len() as u32,
        &edits,
        Arc::new(jindou_dictionary::DictionaryOverlay::tail()),
    ))
}

/// `count` edits at snapshots 1 to `count`: half remove an edge that is there, half add one.
fn random_edits(plain: &Snapshot, count: u32, seed: u64) -> Vec<QuadEdit> {
    let mut random = Random(seed ^ 0xED17);
    let mut edits = Vec::new();
    let mut snapshot = 0;
    let mut tries = 0;
    while snapshot < count && tries < count.saturating_mul(100) {
        tries += 1;
        let predicate = random.below(u64::from(plain.predicate_count())) as u32;
        let segment = plain
            .edges(PredicateId(predicate), Direction::Out)
            .default();
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
        let object = if added {
            random.between(1, there.saturating_mul(2))
        } else {
            there
        };
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
