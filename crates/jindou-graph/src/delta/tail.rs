//! Terms that updates added: their ids are those from [`FIRST_TAIL_ID`] on. Snapshots share them. The id of a term that
//! no quad uses any more can be freed, and is then assigned to the next new term.
//!
//! A server of a sharded store has the text of terms that were added since the last merge, and of those merged terms
//! that its shards own or that all shards keep. The text of other merged terms is *elsewhere*: at their owners.

use crate::segment::CowTree;
use jindou_model::{FIRST_TAIL_ID, VertexId};
use std::sync::{Arc, Weak};
use xxhash_rust::xxh3::xxh3_64;

/// Terms per chunk.
const CHUNK: usize = 128;
/// Chunks per shelf: the pointers to chunks are in two levels, so that adding a term does not copy all pointers.
const SHELF: usize = 256;

/// Some terms, one after the other. A number that is free, or whose text is elsewhere, has an empty one. A full chunk of
/// empty ones has no ends.
#[derive(Clone, Debug, Default)]
struct TermChunk {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl TermChunk {
    fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        let term = self.bytes.get(start as usize..end as usize);
        term.filter(|term| !term.is_empty())
    }

    fn push(&mut self, term: &[u8]) {
        self.bytes.extend_from_slice(term);
        self.ends.push(self.bytes.len() as u32);
    }

    /// The chunk with other terms at some places, ascending; they may be empty.
    fn with(&self, changes: &[(usize, &[u8])]) -> Self {
        let slots = match self.ends.len() {
            0 => CHUNK,
            slots => slots,
        };
        let more: usize = changes.iter().map(|(_, term)| term.len()).sum();
        let mut next = Self {
            bytes: Vec::with_capacity(self.bytes.len() + more),
            ends: Vec::with_capacity(slots),
        };
        let mut changes = changes.iter().peekable();
        for at in 0..slots {
            match changes.next_if(|change| change.0 == at) {
                Some((_, term)) => next.push(term),
                None => next.push(self.get(at).unwrap_or_default()),
            }
        }
        if next.bytes.is_empty() && slots == CHUNK {
            return Self::default();
        }
        next.bytes.shrink_to_fit();
        next
    }
}

type Shelf = Vec<Arc<TermChunk>>;

/// Terms that updates added, shared by snapshots. Cloning is O(1); adding a term copies a chunk, a shelf's pointers and
/// a path of the index.
///
/// A term has a *number*, which is its id less the first tail id. Numbers of freed terms are assigned again.
#[derive(Clone, Debug, Default)]
pub struct TailTerms {
    /// All numbers are below this.
    len: u32,
    shelves: Arc<Vec<Arc<Shelf>>>,
    /// Index of terms. Upper 32 bits: hash of the term; lower 32 bits: its number, from 0 on.
    numbers: CowTree<u64>,
    /// Runs of free numbers, not adjacent. Upper half: the number after the last one; lower half: the first one.
    free: CowTree<u64>,
    /// Number of free numbers.
    free_count: u32,
    /// Numbers of terms whose text all shards of a sharded store keep.
    shared: CowTree<u32>,
}

/// The terms of a sharded store's file, which has the text of some terms only. Runs are `[first, end)`, ascending and
/// not adjacent.
#[derive(Clone, Copy, Debug)]
pub struct TermRuns<'a> {
    /// The number after the last one that was assigned.
    pub len: u32,
    /// Numbers of the terms in the file.
    pub present: &'a [[u32; 2]],
    /// Free numbers.
    pub free: &'a [[u32; 2]],
    /// Number of terms whose text is elsewhere.
    pub elsewhere: u32,
    /// Numbers of terms whose text all shards keep, ascending.
    pub shared: &'a [u32],
}

/// Identity of the terms with [`TailTerms::PART`] consecutive numbers. It keeps no term in memory.
#[derive(Clone, Debug)]
pub struct TermsMark(Weak<TermChunk>);

fn hash_of(term: &[u8]) -> u64 {
    xxh3_64(term) & 0xFFFF_FFFF_0000_0000
}

/// A run of free numbers as [`TailTerms::free`] has it.
fn run([first, end]: [u32; 2]) -> u64 {
    u64::from(end) << 32 | u64::from(first)
}

fn bounds(run: u64) -> [u32; 2] {
    [run as u32, (run >> 32) as u32]
}

/// Adds a number to runs `[first, end)` of smaller ones.
pub fn push_number(runs: &mut Vec<[u32; 2]>, n: u32) {
    match runs.last_mut() {
        Some(last) if last[1] == n => last[1] += 1,
        _ => runs.push([n, n + 1]),
    }
}

/// Number of numbers in runs `[first, end)`; `None` for too many.
#[must_use]
pub fn count_of_runs(runs: &[[u32; 2]]) -> Option<u32> {
    runs.iter()
        .try_fold(0u32, |n, r| n.checked_add(r[1].checked_sub(r[0])?))
}

impl TailTerms {
    /// Numbers of which a [`TermsMark`] is the identity: those from a multiple of it on.
    pub const PART: u32 = CHUNK as u32;

    /// The number after the last one that was assigned. O(1).
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns true if no number was ever assigned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of numbers below [`Self::len`] that are free. O(1).
    #[must_use]
    pub fn free_count(&self) -> u32 {
        self.free_count
    }

    /// Number of terms whose text is elsewhere. O(1).
    #[must_use]
    pub fn elsewhere_count(&self) -> u32 {
        self.len - self.free_count - self.numbers.len() as u32
    }

    /// Returns true if a term has the id. O(1) if its text is here.
    #[must_use]
    pub fn is_assigned(&self, id: VertexId) -> bool {
        self.term(id).is_some() || self.is_elsewhere(id)
    }

    /// Returns true if a term has the id, and its text is elsewhere. O(log free runs).
    #[must_use]
    pub fn is_elsewhere(&self, id: VertexId) -> bool {
        let number = id.0.checked_sub(FIRST_TAIL_ID);
        self.elsewhere_count() > 0
            && number.is_some_and(|n| {
                n < self.len && self.get(n).is_none() && !self.are_free([n, n + 1])
            })
    }

    /// The free numbers as runs `[first, end)`, ascending and not adjacent.
    pub fn free_runs(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        self.free.iter().map(bounds)
    }

    /// Numbers of the terms whose text all shards keep, ascending.
    pub fn shared(&self) -> impl Iterator<Item = u32> + '_ {
        self.shared.iter()
    }

    /// Makes all shards keep the text of the terms with these numbers, ascending. Their text must be here.
    pub fn share(&mut self, numbers: &[u32]) {
        self.shared.apply(numbers, &[]);
    }

    /// The numbers that the next `count` new terms get, as runs `[first, end)`, ascending: free ones first, then those
    /// from [`Self::len`] on. `None` if some would not be below `limit`. O(runs).
    #[must_use]
    pub fn next_numbers(&self, count: u32, limit: u32) -> Option<Vec<[u32; 2]>> {
        let mut runs = Vec::new();
        let mut left = count;
        // Runs ascend by their ends, and so by their beginnings.
        for [first, end] in self.free_runs() {
            if left == 0 {
                break;
            }
            let taken = left.min(end - first);
            runs.push([first, first + taken]);
            left -= taken;
        }
        let end = self.len.checked_add(left)?;
        if left > 0 {
            runs.push([self.len, end]);
        }
        runs.iter().all(|r| r[1] <= limit).then_some(runs)
    }

    /// Returns true if all numbers of a run `[first, end)` are free. O(log runs).
    #[must_use]
    pub fn are_free(&self, [first, end]: [u32; 2]) -> bool {
        first < end
            && self.free_run_beyond(first).is_some_and(|r| {
                let [from, to] = bounds(r);
                from <= first && end <= to
            })
    }

    /// The first run of free numbers that ends after a number.
    fn free_run_beyond(&self, number: u32) -> Option<u64> {
        self.free.first_from(&run([0, number.checked_add(1)?]))
    }

    /// Assigns numbers to terms, in order: first those of `reused`, runs of free numbers, then those from
    /// [`Self::len`] on. The caller has made sure that the terms are new and distinct, that there are not fewer than
    /// reused numbers, and that there are numbers left.
    pub fn put(&mut self, reused: &[[u32; 2]], terms: &[Vec<u8>]) {
        let mut index: Vec<u64> = Vec::with_capacity(terms.len());
        let numbers = reused.iter().flat_map(|r| r[0]..r[1]);
        let changes: Vec<(u32, &[u8])> = numbers.zip(terms.iter().map(Vec::as_slice)).collect();
        index.extend(changes.iter().map(|(n, t)| hash_of(t) | u64::from(*n)));
        self.change(&changes);
        for &[first, end] in reused {
            let Some(whole) = self.free_run_beyond(first) else {
                continue;
            };
            let [from, to] = bounds(whole);
            let rest = [[from, first], [end, to]]
                .into_iter()
                .filter(|r| r[0] < r[1]);
            self.free
                .apply(&rest.map(run).collect::<Vec<u64>>(), &[whole]);
        }
        self.free_count -= changes.len() as u32;
        for term in terms.iter().skip(changes.len()) {
            index.push(hash_of(term) | u64::from(self.len));
            self.push(term);
        }
        index.sort_unstable();
        self.numbers.apply(&index, &[]);
    }

    fn push(&mut self, term: &[u8]) {
        let at = self.len as usize;
        let shelves = Arc::make_mut(&mut self.shelves);
        if at.is_multiple_of(CHUNK * SHELF) {
            shelves.push(Arc::default());
        }
        let Some(shelf) = shelves.last_mut() else {
            return;
        };
        let shelf = Arc::make_mut(shelf);
        if at.is_multiple_of(CHUNK) {
            shelf.push(Arc::default());
        }
        let Some(chunk) = shelf.last_mut() else {
            return;
        };
        let chunk = Arc::make_mut(chunk);
        chunk.push(term);
        if chunk.ends.len() == CHUNK {
            chunk.bytes.shrink_to_fit();
            chunk.ends.shrink_to_fit();
        }
        self.len += 1;
    }

    /// Replaces terms, by their numbers, ascending; they may be empty.
    fn change(&mut self, changes: &[(u32, &[u8])]) {
        let shelves = Arc::make_mut(&mut self.shelves);
        let empty: Arc<TermChunk> = Arc::default();
        for part in changes.chunk_by(|a, b| a.0 as usize / CHUNK == b.0 as usize / CHUNK) {
            let chunk = part[0].0 as usize / CHUNK;
            let Some(shelf) = shelves.get_mut(chunk / SHELF) else {
                return;
            };
            let Some(slot) = Arc::make_mut(shelf).get_mut(chunk % SHELF) else {
                return;
            };
            let places = part.iter().map(|&(n, term)| (n as usize % CHUNK, term));
            let next = slot.with(&places.collect::<Vec<_>>());
            *slot = match next.ends.is_empty() {
                // One chunk serves for all.
                true => Arc::clone(&empty),
                false => Arc::new(next),
            };
        }
    }

    /// Frees the numbers in runs `[first, end)`, which are ascending, not adjacent, not empty, and not free. O(terms log terms).
    pub fn free(&mut self, runs: &[[u32; 2]]) {
        let numbers = || runs.iter().flat_map(|r| r[0]..r[1]);
        let known = numbers().filter_map(|n| Some(hash_of(self.get(n)?) | u64::from(n)));
        let mut index: Vec<u64> = known.collect();
        index.sort_unstable();
        self.numbers.apply(&[], &index);
        self.free_count += runs.iter().map(|r| r[1] - r[0]).sum::<u32>();
        if !self.shared.is_empty() {
            let ranges = runs.iter().map(|r| self.shared.range(r[0], r[1] - 1));
            let gone: Vec<u32> = ranges.flatten().flatten().copied().collect();
            self.shared.apply(&[], &gone);
        }
        self.change(&numbers().map(|n| (n, &[][..])).collect::<Vec<_>>());
        self.note_free(runs);
    }

    /// Adds runs to the free ones, and joins those that are adjacent.
    fn note_free(&mut self, runs: &[[u32; 2]]) {
        let (mut made, mut gone) = (Vec::new(), Vec::new());
        let mut last: Option<[u32; 2]> = None;
        for &[mut first, end] in runs {
            match last {
                // The run in between was joined with the one before.
                Some(before) if before[1] == first => first = before[0],
                _ => {
                    made.extend(last.map(run));
                    let before = self.free.first_from(&run([0, first]));
                    if let Some(before) = before.filter(|&b| bounds(b)[1] == first) {
                        gone.push(before);
                        first = bounds(before)[0];
                    }
                }
            }
            let after = self.free_run_beyond(end).filter(|&r| bounds(r)[0] == end);
            gone.extend(after);
            last = Some([first, after.map_or(end, |r| bounds(r)[1])]);
        }
        made.extend(last.map(run));
        self.free.apply(&made, &gone);
    }

    /// Id of a term of the tail whose text is here. O(log terms).
    #[must_use]
    pub fn lookup(&self, canonical: &[u8]) -> Option<VertexId> {
        if self.len == 0 {
            return None;
        }
        let hash = hash_of(canonical);
        self.numbers
            .range(hash, hash | 0xFFFF_FFFF)
            .flatten()
            .map(|&x| x as u32)
            .find(|&n| self.get(n) == Some(canonical))
            .map(|n| VertexId(FIRST_TAIL_ID + n))
    }

    /// The terms of all numbers, in their order; a number that is free, or whose text is elsewhere, has an empty one.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len).map(|n| self.get(n).unwrap_or_default())
    }

    /// The hash (upper 32 bits) and number (lower 32 bits) of each term whose text is here, ascending.
    pub fn order(&self) -> impl Iterator<Item = u64> + '_ {
        self.numbers.iter()
    }

    /// Restores terms from a file: the bytes of [`Self::iter`], the end of each of its terms, and [`Self::order`]. The
    /// free numbers are those whose terms are empty. `None` if these are inconsistent. O(bytes): chunks are copied,
    /// nothing is hashed or sorted.
    #[must_use]
    pub fn from_parts(bytes: &[u8], ends: &[u64], order: &[u64]) -> Option<Self> {
        let free = free_runs(ends);
        let len = u32::try_from(ends.len()).ok()?;
        let out = Self::restored(bytes, (len, ends.iter().copied()), order, &free)?;
        (out.elsewhere_count() == 0).then_some(out)
    }

    /// As [`Self::from_parts`], for a file with the text of some terms: `ends` has the end of each of these.
    #[must_use]
    pub fn from_runs(
        bytes: &[u8],
        ends: &[u64],
        order: &[u64],
        runs: &TermRuns<'_>,
    ) -> Option<Self> {
        let is_sound = |list: &[[u32; 2]]| {
            let apart = list.windows(2).all(|w| w[0][1] < w[1][0]);
            apart && list.iter().all(|r| r[0] < r[1] && r[1] <= runs.len)
        };
        let [present, free] = [count_of_runs(runs.present)?, count_of_runs(runs.free)?];
        let all = present.checked_add(free)?.checked_add(runs.elsewhere)?;
        let sound = is_sound(runs.present)
            && is_sound(runs.free)
            && all == runs.len
            && [ends.len(), order.len()] == [present as usize; 2]
            && runs.shared.windows(2).all(|w| w[0] < w[1]);
        if !sound {
            return None;
        }
        // A number without text ends where the one before does.
        let (mut own, mut present) = (ends.iter(), runs.present.iter().peekable());
        let mut end = 0;
        let all = (0..runs.len).map(|n| {
            while present.next_if(|run| run[1] <= n).is_some() {}
            if present.peek().is_some_and(|run| run[0] <= n) {
                end = own.next().copied().unwrap_or(end);
            }
            end
        });
        let mut out = Self::restored(bytes, (runs.len, all), order, runs.free)?;
        let is_empty = |&[first, end]: &[u32; 2]| (first..end).all(|n| out.get(n).is_none());
        let has_text = |&[first, end]: &[u32; 2]| (first..end).all(|n| out.get(n).is_some());
        let sound = runs.free.iter().all(is_empty)
            && runs.present.iter().all(has_text)
            && runs.shared.iter().all(|&n| out.get(n).is_some());
        out.share(runs.shared);
        sound.then_some(out)
    }

    /// The terms with `len` numbers, given the ends of all of them. O(len).
    fn restored(
        bytes: &[u8],
        (len, mut ends): (u32, impl Iterator<Item = u64>),
        order: &[u64],
        free: &[[u32; 2]],
    ) -> Option<Self> {
        let sound =
            order.windows(2).all(|w| w[0] < w[1]) && order.iter().all(|&x| (x as u32) < len);
        if !sound {
            return None;
        }
        let mut out = Self {
            len,
            free_count: count_of_runs(free)?,
            ..Self::default()
        };
        let runs: Vec<u64> = free.iter().copied().map(run).collect();
        out.free.apply(&runs, &[]);
        if order.len() as u64 > u64::from(len.checked_sub(out.free_count)?) {
            return None;
        }
        let empty: Arc<TermChunk> = Arc::default();
        let mut chunks: Shelf = Vec::new();
        let mut start = 0;
        for first in (0..len).step_by(CHUNK) {
            let ends: Vec<u64> = ends.by_ref().take(CHUNK).collect();
            let end = *ends.last()?;
            let own = bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
            u32::try_from(own.len()).ok()?;
            if !ends.is_sorted() || ends[0] < start {
                return None;
            }
            chunks.push(match own.is_empty() && len - first >= Self::PART {
                true => Arc::clone(&empty),
                false => Arc::new(TermChunk {
                    bytes: own.to_vec(),
                    ends: ends.iter().map(|e| (e - start) as u32).collect(),
                }),
            });
            start = end;
        }
        if start != bytes.len() as u64 {
            return None;
        }
        let shelves = chunks.chunks(SHELF).map(|shelf| Arc::new(shelf.to_vec()));
        out.shelves = Arc::new(shelves.collect());
        out.numbers.apply(order, &[]);
        Some(out)
    }

    /// The same terms, with the text of those alone whose numbers are in the wanted parts of [`Self::PART`] numbers, and of
    /// those that all shards keep. A part is given by its first number. O(terms).
    #[must_use]
    pub fn with_texts(&self, is_wanted: impl Fn(u32) -> bool) -> Self {
        let empty: Arc<TermChunk> = Arc::default();
        let with_shared = |first: u32, chunk: &TermChunk| {
            let end = first + Self::PART;
            let dropped = (first..end.min(self.len)).filter(|n| !self.shared.contains(n));
            let places: Vec<(usize, &[u8])> =
                dropped.map(|n| ((n - first) as usize, &[][..])).collect();
            Arc::new(chunk.with(&places))
        };
        let chunk = |at: usize, chunk: &Arc<TermChunk>| {
            let first = (at * CHUNK) as u32;
            let is_full = first + Self::PART <= self.len;
            match self.shared.count(first, first + Self::PART - 1) {
                _ if is_wanted(first) => Arc::clone(chunk),
                0 if is_full => Arc::clone(&empty),
                _ => with_shared(first, chunk),
            }
        };
        let kept = |&entry: &u64| {
            let n = entry as u32;
            is_wanted(n - n % Self::PART) || self.shared.contains(&n)
        };
        let mut numbers = CowTree::default();
        numbers.apply(&self.numbers.iter().filter(kept).collect::<Vec<_>>(), &[]);
        Self {
            shelves: self.map_chunks(chunk),
            numbers,
            ..self.clone()
        }
    }

    /// The terms of a later snapshot, `self`, over a base that contains the snapshot with the terms `then`, but only the
    /// text of `base`. O(parts, and terms that changed since then).
    #[must_use]
    pub fn over(&self, then: &Self, base: &Self) -> Self {
        if base.numbers.len() == then.numbers.len() {
            return self.clone();
        }
        let (mut added, mut dropped) = (Vec::new(), Vec::new());
        let chunk = |at: usize, now: &Arc<TermChunk>| {
            let (was, is) = (then.chunk(at), base.chunk(at));
            if let (Some(was), Some(is)) = (was, is)
                && Arc::ptr_eq(was, now)
            {
                return Arc::clone(is);
            }
            let first = (at * CHUNK) as u32;
            let mut next = TermChunk::default();
            for place in 0..CHUNK.min((self.len - first) as usize) {
                let n = first + place as u32;
                let text = now.get(place);
                let [was, is] = [was, is].map(|chunk| chunk.and_then(|c| c.get(place)));
                // The base has the text of a term that was not freed since, or was added again with the same id.
                let is_same = text == was && !self.shared.contains(&n);
                let text = if is_same { is } else { text };
                if text != is {
                    dropped.extend(is.map(|t| hash_of(t) | u64::from(n)));
                    added.extend(text.map(|t| hash_of(t) | u64::from(n)));
                }
                next.push(text.unwrap_or_default());
            }
            Arc::new(next.with(&[]))
        };
        let shelves = self.map_chunks(chunk);
        added.sort_unstable();
        dropped.sort_unstable();
        let mut numbers = base.numbers.clone();
        numbers.apply(&added, &dropped);
        Self {
            shelves,
            numbers,
            ..self.clone()
        }
    }

    /// The same terms with the text that either has, from the files of two shards. `None` if these differ otherwise.
    /// O(terms).
    #[must_use]
    pub fn with_texts_of(&self, other: &Self) -> Option<Self> {
        let same = self.len == other.len
            && self.free.iter().eq(other.free.iter())
            && self.shared.iter().eq(other.shared.iter());
        if !same {
            return None;
        }
        // A part has one owner. Other shards have only those of its terms that all shards keep.
        let chunk = |at: usize, own: &Arc<TermChunk>| match other.chunk(at) {
            Some(other) if other.bytes.len() > own.bytes.len() => Arc::clone(other),
            _ => Arc::clone(own),
        };
        let mut numbers = self.numbers.clone();
        numbers.apply(&other.numbers.iter().collect::<Vec<_>>(), &[]);
        Some(Self {
            shelves: self.map_chunks(chunk),
            numbers,
            ..self.clone()
        })
    }

    fn map_chunks(
        &self,
        mut f: impl FnMut(usize, &Arc<TermChunk>) -> Arc<TermChunk>,
    ) -> Arc<Vec<Arc<Shelf>>> {
        let mut shelf = |(s, shelf): (usize, &Arc<Shelf>)| {
            let chunks = shelf.iter().enumerate();
            Arc::new(chunks.map(|(c, chunk)| f(s * SHELF + c, chunk)).collect())
        };
        Arc::new(self.shelves.iter().enumerate().map(&mut shelf).collect())
    }

    fn chunk(&self, at: usize) -> Option<&Arc<TermChunk>> {
        self.shelves.get(at / SHELF)?.get(at % SHELF)
    }

    fn get(&self, n: u32) -> Option<&[u8]> {
        self.chunk(n as usize / CHUNK)?.get(n as usize % CHUNK)
    }

    /// The canonical bytes of a tail id; `None` for one that is free, was never assigned, or whose text is elsewhere.
    #[must_use]
    pub fn term(&self, id: VertexId) -> Option<&[u8]> {
        self.get(id.0.checked_sub(FIRST_TAIL_ID)?)
    }

    /// Identity of the terms with the numbers from `part` times [`Self::PART`] on.
    #[must_use]
    pub fn mark(&self, part: u32) -> TermsMark {
        let chunk = self.chunk(part as usize);
        TermsMark(chunk.map_or_else(Weak::new, Arc::downgrade))
    }

    /// True if the terms of a part are those that had the mark.
    #[must_use]
    pub fn is_marked(&self, part: u32, mark: &TermsMark) -> bool {
        let chunk = self.chunk(part as usize);
        chunk.is_some_and(|chunk| std::ptr::eq(Arc::as_ptr(chunk), mark.0.as_ptr()))
    }

    /// Bytes on the heap, including what other snapshots share. O(terms / 100).
    #[must_use]
    pub fn bytes(&self) -> usize {
        let chunk = |c: &Arc<TermChunk>| match c.ends.capacity() {
            0 => 8,
            ends => 64 + c.bytes.capacity() + ends * 4,
        };
        let chunks: usize = self.shelves.iter().flat_map(|s| s.iter()).map(chunk).sum();
        chunks + self.numbers.bytes() + self.free.bytes() + self.shared.bytes()
    }
}

/// The runs of numbers whose terms, with these ends, are empty.
fn free_runs(ends: &[u64]) -> Vec<[u32; 2]> {
    let mut runs: Vec<[u32; 2]> = Vec::new();
    let mut before = 0;
    for (n, &end) in (0u32..).zip(ends) {
        if end == before {
            push_number(&mut runs, n);
        }
        before = end;
    }
    runs
}

#[cfg(test)]
mod tests;
