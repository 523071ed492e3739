use super::*;
use jindou_graph::{TermSource, Vocabulary};
use jindou_model::term;
use jindou_testing::Rng;
use oxrdf::Literal;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Id `i + 1` has the number `values[i]` as its term, if it has one.
struct NumberTerms {
    values: Vec<Option<i64>>,
    /// Number of terms requested.
    asked: AtomicUsize,
}

impl TermSource for NumberTerms {
    fn lookup_many(&self, _terms: &[&[u8]], _out: &mut Vec<u32>) {}

    fn prefetch(&self, _ids: &[u32]) {}

    fn terms_many(&self, ids: &[u32], take: &mut dyn FnMut(usize, &[u8])) {
        self.asked.fetch_add(ids.len(), Relaxed);
        for (at, &id) in ids.iter().enumerate() {
            if let Some(value) = self.value(id) {
                take(at, &term::encode(&Literal::from(value).into()));
            }
        }
    }
}

impl NumberTerms {
    fn new(values: impl Iterator<Item = Option<i64>>) -> Self {
        Self {
            values: values.collect(),
            asked: AtomicUsize::new(0),
        }
    }

    fn value(&self, id: u32) -> Option<i64> {
        let at = (id as usize).checked_sub(1)?;
        self.values.get(at).copied().flatten()
    }
}

/// Rows with two columns: their numbers, counted from `from`, and these ids.
fn rows(ids: &[u32], from: usize) -> Columns {
    let numbers = (from as u32..).take(ids.len()).collect();
    Columns {
        rows: ids.len() as u64,
        columns: vec![numbers, ids.to_vec()],
    }
}

fn first(most: u32, [is_descending, is_alone]: [bool; 2]) -> FirstByColumn {
    FirstByColumn {
        column: 1,
        is_descending,
        is_alone,
        most,
    }
}

/// Passes ids through the sieves of `workers` workers, `sizes()` rows at a time. Returns for each row whether it
/// passed.
fn sift(
    numbers: &NumberTerms,
    ids: &[u32],
    (all, workers): (&Sieves, usize),
    mut sizes: impl FnMut() -> usize,
) -> Vec<bool> {
    let vocabulary = Vocabulary::other(numbers);
    let mut sieves: Vec<Sieve> = (0..workers).map(|_| all.take()).collect();
    let mut passed = vec![false; ids.len()];
    let (mut at, mut turn) = (0, 0);
    while at < ids.len() {
        let n = sizes().min(ids.len() - at);
        // The first rows of the batch passed before and have not been sent yet.
        let kept = (turn % 3).min(at);
        let mut batch = rows(&ids[at - kept..at + n], at - kept);
        let sieve = &mut sieves[turn % workers];
        let held = sieve.sift(
            &mut batch,
            kept,
            (&mut vocabulary.decoding(), &OrderedRuns::none()),
            all,
        );
        assert_eq!(batch.rows, (n + kept) as u64 - held);
        assert!(batch.columns.iter().all(|c| c.len() as u64 == batch.rows));
        for (place, (&row, &id)) in batch.columns[0].iter().zip(&batch.columns[1]).enumerate() {
            assert_eq!(ids[row as usize], id, "rows stay together");
            assert_eq!(place < kept, (row as usize) < at, "and come once, in order");
            passed[row as usize] |= place >= kept;
        }
        at += n;
        turn += 1;
        if turn.is_multiple_of(7) {
            // All workers end, and new ones continue with their sieves.
            sieves.drain(..).for_each(|s| all.give_back(s));
            sieves.extend((0..workers).map(|_| all.take()));
        }
    }
    passed
}

/// Checks that enough rows passed that sort before each rejected row.
fn is_right(numbers: &NumberTerms, ids: &[u32], passed: &[bool], first: FirstByColumn) {
    let mut known: Vec<i64> = ids
        .iter()
        .zip(passed)
        .filter_map(|(&id, &passed)| numbers.value(id).filter(|_| passed))
        .collect();
    known.sort_unstable();
    if first.is_descending {
        known.reverse();
    }
    let last = known.get(first.most as usize - 1);
    for (&id, &passed) in ids.iter().zip(passed) {
        if passed {
            continue;
        }
        let value = numbers.value(id).expect("rows without a term pass");
        let last = *last.expect("enough pass");
        let order = match first.is_descending {
            true => last.cmp(&value),
            false => value.cmp(&last),
        };
        let is_after = order == Ordering::Greater || first.is_alone && order == Ordering::Equal;
        assert!(is_after, "{value} after {last}");
    }
}

#[test]
fn rows_that_are_held_back_come_after_enough_others() {
    let budget = MemoryBudget::new(1 << 30);
    let mut held = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let (terms, spread) = (1 + rng.below(5000), 1 + rng.below(3000));
        let unknown = rng.below(4) == 0;
        let values = (0..terms).map(|_| {
            let is_there = !unknown || rng.below(10) > 0;
            is_there.then(|| rng.below(spread) as i64 - 300)
        });
        let numbers = NumberTerms::new(values.collect::<Vec<_>>().into_iter());
        let mut ids: Vec<u32> = (0..20_000).map(|_| 1 + rng.below(terms) as u32).collect();
        match rng.below(4) {
            0 => ids.sort_by_key(|&id| numbers.value(id)),
            1 => ids.sort_by_key(|&id| std::cmp::Reverse(numbers.value(id))),
            2 => ids.iter_mut().step_by(9).for_each(|id| *id = NO_VERTEX),
            _ => ids
                .iter_mut()
                .step_by(7)
                .for_each(|id| *id = FIRST_QUERY_ID + 3),
        }
        let most = [1, 2, 10, 100, 3000, 12_000][rng.below(6)];
        let first = first(most, [rng.below(2) == 0, rng.below(2) == 0]);
        let all = Sieves::new(first, &budget);
        let (workers, size) = (1 + rng.below(3), 1 + rng.below(3000));
        let passed = sift(&numbers, &ids, (&all, workers), || 1 + rng.below(size));
        is_right(&numbers, &ids, &passed, first);
        held += passed.iter().filter(|p| !**p).count();
        drop(all);
        assert_eq!(budget.used(), 0);
    }
    assert!(held > 100_000, "{held} held back");
}

/// In random order, the row at position n is among the first k so far with probability k/n. So about k (1 + ln(n/k))
/// rows pass a worker that compares each by itself; a sieve compares many together, so fewer pass.
#[test]
fn few_rows_pass_in_random_order() {
    const ROWS: u32 = 100_000;
    let mut rng = Rng::new(3);
    let budget = MemoryBudget::new(1 << 30);
    let numbers = NumberTerms::new((0..ROWS).map(|_| Some(rng.below(1 << 60) as i64)));
    let ids: Vec<u32> = (1..=ROWS).collect();
    for (most, ways) in [(1, [false, true]), (10, [true, false]), (1000, [false; 2])] {
        let first = first(most, ways);
        let all = Sieves::new(first, &budget);
        let passed = sift(&numbers, &ids, (&all, 1), || 4096);
        is_right(&numbers, &ids, &passed, first);
        let passed = passed.iter().filter(|p| **p).count() as f64;
        let k = f64::from(most);
        let expected = k * (1.0 + (f64::from(ROWS) / k).ln());
        // The number is a sum of independent draws: its variance is below its mean.
        let bound = expected + 6.0 * expected.sqrt();
        assert!(passed >= k && passed < bound, "{most}: {passed} of {bound}");
    }
}

/// If rows arrive in reverse order, each sorts first among those so far, but only the first ones of each batch pass.
#[test]
fn the_worst_order_costs_the_first_of_each_batch() {
    let budget = MemoryBudget::new(1 << 30);
    let numbers = NumberTerms::new((0..80_000).rev().map(Some));
    let ids: Vec<u32> = (1..=80_000).collect();
    let all = Sieves::new(first(10, [false, true]), &budget);
    let passed = sift(&numbers, &ids, (&all, 1), || 8000);
    assert_eq!(passed.iter().filter(|p| **p).count(), 100);
}

/// With few distinct terms, each is compared once. If any of several equal rows may be omitted, only as many rows pass
/// as the LIMIT needs.
#[test]
fn equal_rows_pass_as_they_are_needed() {
    let budget = MemoryBudget::new(1 << 30);
    let mut rng = Rng::new(5);
    let numbers = NumberTerms::new((0..17).map(Some));
    let ids: Vec<u32> = (0..60_000).map(|_| 1 + rng.below(17) as u32).collect();
    for is_alone in [true, false] {
        let first = first(10, [false, is_alone]);
        let all = Sieves::new(first, &budget);
        numbers.asked.store(0, Relaxed);
        let passed = sift(&numbers, &ids, (&all, 1), || 4000);
        is_right(&numbers, &ids, &passed, first);
        let passed = passed.iter().filter(|p| **p).count();
        let least = ids.iter().filter(|&&id| id == 1).count();
        assert_eq!(passed, if is_alone { 10 } else { least });
        let asked = numbers.asked.load(Relaxed);
        assert!(asked <= 2 * 17, "{asked} terms asked for");
    }
}

/// If all rows are needed, no terms are compared.
#[test]
fn few_rows_cost_nothing() {
    let budget = MemoryBudget::new(1 << 30);
    let numbers = NumberTerms::new((0..5000).map(Some));
    for (most, rows) in [(1, EARLY as u32 - 1), (2500, 4999)] {
        let ids: Vec<u32> = (1..=rows).collect();
        let all = Sieves::new(first(most, [false; 2]), &budget);
        let passed = sift(&numbers, &ids, (&all, 1), || 100);
        assert!(passed.iter().all(|p| *p));
    }
    assert_eq!(numbers.asked.load(Relaxed), 0);
}

/// A sieve that rejects no rows stops comparing after a while.
#[test]
fn a_sieve_that_does_nothing_ends() {
    let budget = MemoryBudget::new(1 << 30);
    let numbers = NumberTerms::new((0..400_000).rev().map(Some));
    let ids: Vec<u32> = (1..=400_000).collect();
    let all = Sieves::new(first(10, [false; 2]), &budget);
    // Batches that are not larger than the LIMIT.
    let passed = sift(&numbers, &ids, (&all, 1), || FEW);
    let passed_share = passed.iter().filter(|p| **p).count() as f64 / 400_000.0;
    let all_at_once = Sieves::new(first(40, [false; 2]), &budget);
    numbers.asked.store(0, Relaxed);
    let passed = sift(&numbers, &ids, (&all_at_once, 1), || 40);
    assert!(passed.iter().all(|p| *p), "each is the best so far");
    let asked = numbers.asked.load(Relaxed) as u64;
    assert!(asked < 2 * TRIED, "{asked} terms asked for");
    assert!(passed_share < 0.4, "{passed_share}");
}

/// Without memory all rows pass.
#[test]
fn without_memory_rows_pass() {
    let mut rng = Rng::new(9);
    let numbers = NumberTerms::new((0..90_000).map(|_| Some(rng.below(1 << 40) as i64)));
    let ids: Vec<u32> = (1..=90_000).collect();
    let mut held = Vec::new();
    for kib in [0, 64, 256, 1024, 16_384] {
        let budget = MemoryBudget::new(kib << 10);
        let first = first(5000, [false, true]);
        let all = Sieves::new(first, &budget);
        let passed = sift(&numbers, &ids, (&all, 2), || 4096);
        is_right(&numbers, &ids, &passed, first);
        held.push(passed.iter().filter(|p| !**p).count());
        drop(all);
        assert_eq!(budget.used(), 0);
    }
    assert!(held[0] == 0 && held[4] > 0, "{held:?}");
}
