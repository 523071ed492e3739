//! Changes requested by one transaction, in order, before their terms are looked up.

use jindou_model::invariant;
use jindou_model::term;
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_64;

/// A term of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeTerm<'a> {
    /// An id of the snapshot to which the changes are applied, of its base or its tail.
    Id(u32),
    /// Canonical bytes (`jindou_model::term`).
    Bytes(&'a [u8]),
}

/// One change. Each term is an id or, according to `kind`, an argument of [`Changes::term`].
#[derive(Clone, Copy, Debug)]
pub(super) struct QuadChange {
    /// Subject, predicate, object, graph; 0 for the default graph.
    pub terms: [u32; 4],
    kind: u8,
}

impl QuadChange {
    pub(super) fn is_insert(self) -> bool {
        self.kind & 1 == 1
    }

    /// True if the term at a position is an argument of [`Changes::term`] rather than an id.
    #[inline]
    pub(super) fn is_local(self, place: usize) -> bool {
        self.kind >> (place + 1) & 1 == 1
    }
}

/// The changes of one transaction in order; of several changes of one quad the last one counts. Each distinct term
/// given by bytes is stored once.
///
/// The caller is responsible for well-formedness (no literal as subject, an IRI as predicate).
#[derive(Clone, Debug, Default)]
pub struct Changes {
    list: Vec<QuadChange>,
    bytes: Vec<u8>,
    /// End of each term in `bytes`.
    ends: Vec<u64>,
    /// Number of each term in `ends`, by the hash of its bytes. If two terms have the same hash, the later one gets
    /// another hash, which is derived from the first.
    numbers: FxHashMap<u64, u32>,
    /// The distinct predicates, with true for those given by bytes: the snapshot keeps data for each predicate.
    predicates: FxHashSet<(bool, u32)>,
    /// Largest nesting depth of triple terms, among terms given by bytes.
    nesting: usize,
}

impl Changes {
    /// No changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests that a quad be present; graph `None` is the default graph. Inserting a quad that is present changes
    /// nothing.
    pub fn insert(
        &mut self,
        s: ChangeTerm<'_>,
        p: ChangeTerm<'_>,
        o: ChangeTerm<'_>,
        g: Option<ChangeTerm<'_>>,
    ) {
        self.push(s, p, o, g, 1);
    }

    /// Requests that a quad be absent. Removing a quad that is absent changes nothing.
    pub fn remove(
        &mut self,
        s: ChangeTerm<'_>,
        p: ChangeTerm<'_>,
        o: ChangeTerm<'_>,
        g: Option<ChangeTerm<'_>>,
    ) {
        self.push(s, p, o, g, 0);
    }

    fn push(
        &mut self,
        s: ChangeTerm<'_>,
        p: ChangeTerm<'_>,
        o: ChangeTerm<'_>,
        g: Option<ChangeTerm<'_>>,
        mut kind: u8,
    ) {
        let mut terms = [0; 4];
        for (place, term) in [Some(s), Some(p), Some(o), g].into_iter().enumerate() {
            terms[place] = match term {
                None => jindou_model::DEFAULT_GRAPH,
                Some(ChangeTerm::Id(id)) => id,
                Some(ChangeTerm::Bytes(b)) => {
                    kind |= 2 << place;
                    self.number(b)
                }
            };
        }
        let change = QuadChange { terms, kind };
        let predicate = |c: &QuadChange| (c.is_local(1), c.terms[1]);
        if self.list.last().map(predicate) != Some(predicate(&change)) {
            self.predicates.insert(predicate(&change));
        }
        self.list.push(change);
    }

    fn number(&mut self, bytes: &[u8]) -> u32 {
        // Adjacent changes mostly share a subject, so the terms of the last change are compared first.
        for back in self.list.last().into_iter().flat_map(|c| {
            let c = *c;
            (0..4).filter_map(move |i| c.is_local(i).then_some(c.terms[i]))
        }) {
            if self.term(back) == bytes {
                return back;
            }
        }
        let mut hash = xxh3_64(bytes);
        loop {
            match self.numbers.get(&hash) {
                Some(&n) if self.term(n) == bytes => return n,
                Some(_) => hash = hash.wrapping_add(0x9E37_79B9_7F4A_7C15),
                None => break,
            }
        }
        let n = self.ends.len() as u32;
        self.nesting = self.nesting.max(term::triple_nesting(bytes));
        self.numbers.insert(hash, n);
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len() as u64);
        n
    }

    /// Inserts `before` in front of these changes. O(changes of `before`) if it has only ids, otherwise O(all changes).
    pub fn put_first(&mut self, mut before: Self) {
        if before.ends.is_empty() {
            before.list.append(&mut self.list);
            self.list = before.list;
            self.predicates.extend(before.predicates);
            return;
        }
        for c in &self.list {
            let term = |place: usize| {
                let n = c.terms[place];
                if c.is_local(place) {
                    ChangeTerm::Bytes(self.term(n))
                } else {
                    ChangeTerm::Id(n)
                }
            };
            let default = !c.is_local(3) && c.terms[3] == jindou_model::DEFAULT_GRAPH;
            let graph = (!default).then(|| term(3));
            before.push(term(0), term(1), term(2), graph, u8::from(c.is_insert()));
        }
        *self = before;
    }

    /// Appends these changes in encoded form, for another process. All terms must be given by their bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let number = |out: &mut Vec<u8>, n: usize| out.extend_from_slice(&(n as u64).to_le_bytes());
        number(out, self.ends.len());
        for n in 0..self.term_count() {
            let term = self.term(n);
            number(out, term.len());
            out.extend_from_slice(term);
        }
        number(out, self.list.len());
        for change in &self.list {
            let by_id = |place| !change.is_local(place);
            let default = by_id(3) && change.terms[3] == jindou_model::DEFAULT_GRAPH;
            invariant!(
                !(0..3).any(by_id) && (!by_id(3) || default),
                "changes for another process give terms by their bytes"
            );
            out.push(change.kind);
            for term in change.terms {
                out.extend_from_slice(&term.to_le_bytes());
            }
        }
    }

    /// Decodes changes written by [`Self::write`]; `None` for invalid bytes.
    #[must_use]
    pub fn read(mut bytes: &[u8]) -> Option<Self> {
        fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
            let (first, rest) = bytes.split_at_checked(count)?;
            *bytes = rest;
            Some(first)
        }
        fn number(bytes: &mut &[u8]) -> Option<usize> {
            let number = take(bytes, 8)?.try_into().ok()?;
            usize::try_from(u64::from_le_bytes(number)).ok()
        }
        let count = number(&mut bytes)?;
        let mut terms = Vec::with_capacity(count.min(bytes.len() / 8));
        for _ in 0..count {
            let length = number(&mut bytes)?;
            let term = take(&mut bytes, length)?;
            terms.push((term, places_of(term)?));
        }
        let mut all = Self::new();
        for _ in 0..number(&mut bytes)? {
            let kind = *take(&mut bytes, 1)?.first()?;
            let mut change = [None; 4];
            for (place, term) in change.iter_mut().enumerate() {
                let n = u32::from_le_bytes(take(&mut bytes, 4)?.try_into().ok()?);
                *term = match kind >> (place + 1) & 1 {
                    1 => {
                        let (term, places) = terms.get(n as usize)?;
                        if places >> place & 1 == 0 {
                            return None;
                        }
                        Some(ChangeTerm::Bytes(term))
                    }
                    _ if place == 3 && n == jindou_model::DEFAULT_GRAPH => None,
                    _ => return None,
                };
            }
            let [Some(s), Some(p), Some(o), g] = change else {
                return None;
            };
            all.push(s, p, o, g, kind & 1);
        }
        bytes.is_empty().then_some(all)
    }

    /// Number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns true if there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of distinct predicates; a predicate that is given both by its id and by its bytes counts twice.
    #[must_use]
    pub fn predicates(&self) -> usize {
        self.predicates.len()
    }

    /// Largest nesting depth of triple terms, among terms given as bytes.
    #[must_use]
    pub fn nesting(&self) -> usize {
        self.nesting
    }

    /// Bytes on the heap, for memory budgets.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.list.capacity() * size_of::<QuadChange>()
            + self.bytes.capacity()
            + self.ends.capacity() * 8
            + self.numbers.capacity() * 18
            + self.predicates.capacity() * 10
    }

    /// Total length in bytes of the distinct terms given by bytes.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn list(&self) -> &[QuadChange] {
        &self.list
    }

    /// Number of distinct terms given by bytes.
    pub(super) fn term_count(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The bytes of a term by its number.
    pub(super) fn term(&self, n: u32) -> &[u8] {
        let n = n as usize;
        let start = match n.checked_sub(1) {
            None => 0,
            Some(before) => self.ends[before],
        };
        &self.bytes[start as usize..self.ends[n] as usize]
    }
}

/// Positions in which a term may occur, one bit each: subject, predicate, object, graph.
fn places_of(term: &[u8]) -> Option<u8> {
    Some(match term::decode(term)? {
        oxrdf::Term::NamedNode(_) => 0b1111,
        oxrdf::Term::BlankNode(_) => 0b1101,
        _ => 0b0100,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_back_and_others_are_not() {
        let t = ChangeTerm::Bytes;
        let mut changes = Changes::new();
        let term = |text: &str| term::encode(&text.parse().unwrap());
        let [a, p, x, b] = ["<http://e/a>", "<http://e/p>", "\"x\"@en", "_:b"].map(term);
        changes.insert(t(&a), t(&p), t(&x), None);
        changes.remove(t(&b), t(&p), t(&a), Some(t(&a)));
        let mut bytes = Vec::new();
        changes.write(&mut bytes);
        let read = Changes::read(&bytes).unwrap();
        let mut again = Vec::new();
        read.write(&mut again);
        assert_eq!((read.len(), &again), (2, &bytes));
        for end in 0..bytes.len() {
            assert!(Changes::read(&bytes[..end]).is_none());
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                let _ = Changes::read(&other);
            }
        }
        for terms in [[&x, &p, &a], [&a, &b, &a], [&a, &x, &a]] {
            let mut wrong = Changes::new();
            let [s, p, o] = terms.map(|term| t(term));
            wrong.insert(s, p, o, None);
            let mut bytes = Vec::new();
            wrong.write(&mut bytes);
            assert!(Changes::read(&bytes).is_none());
        }
    }

    #[test]
    #[should_panic(expected = "give terms by their bytes")]
    fn ids_are_not_sent_to_another_process() {
        let p = term::encode(&"<http://e/p>".parse().unwrap());
        let p = ChangeTerm::Bytes(&p);
        let mut ids = Changes::new();
        ids.insert(ChangeTerm::Id(1), p, p, None);
        ids.write(&mut Vec::new());
    }

    #[test]
    fn others_are_put_first() {
        let t = ChangeTerm::Bytes;
        for by_bytes in [false, true] {
            let (mut first, mut then) = (Changes::new(), Changes::new());
            let one = if by_bytes {
                t(b"<z")
            } else {
                ChangeTerm::Id(7)
            };
            first.remove(one, ChangeTerm::Id(2), ChangeTerm::Id(3), None);
            then.insert(t(b"<a"), ChangeTerm::Id(4), t(b"<z"), Some(t(b"<g")));
            then.insert(t(b"<a"), ChangeTerm::Id(4), t(b"<b"), None);
            then.put_first(first);
            let list = then.list();
            assert_eq!(
                list.iter().map(|c| c.is_insert()).collect::<Vec<_>>(),
                [false, true, true]
            );
            assert_eq!(list[0].is_local(0), by_bytes);
            assert_eq!(then.term(list[1].terms[0]), b"<a");
            assert_eq!(then.term(list[1].terms[3]), b"<g");
            assert_eq!(then.term(list[2].terms[2]), b"<b");
            assert_eq!((list[2].terms[1], list[2].is_local(3)), (4, false));
            assert_eq!(then.term_count(), 4);
        }
    }

    #[test]
    fn terms_are_kept_once() {
        let mut c = Changes::new();
        let t = ChangeTerm::Bytes;
        for i in 0..3 {
            c.insert(t(b"<a"), t(b"<p"), t(b"<a"), None);
            c.remove(t(b"<a"), ChangeTerm::Id(i), t(b"\"x"), Some(t(b"<p")));
        }
        assert_eq!((c.len(), c.term_count()), (6, 3));
        let last = c.list()[5];
        assert!(!last.is_insert() && !last.is_local(1) && last.is_local(3));
        assert_eq!(c.term(last.terms[3]), b"<p");
        assert_eq!(c.term(last.terms[2]), b"\"x");
        assert!(c.bytes() > 6 * 16);
    }
}
