//! Numbers of counted triples by the kinds of their subjects or objects.

use super::numbers::{KeyNumbers, Numbers};
use super::triples::{Columns, GRAPH, OBJECT, OBJECT_KIND, PREDICATE, SUBJECT, SUBJECT_KIND};
use super::*;
use jindou_graph::counts::{KindCount, KindCounter};

/// The triples of a predicate whose subjects and objects are of given kinds.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub predicate: PredicateId,
    /// A subject and an object of the kinds, or 0 for an end of any kind.
    pub examples: [u32; 2],
    /// The end whose kinds divide the predicate's triples, with its counts; `None` if the part has all triples.
    divided: Option<(Columns, KindCount)>,
}

impl Numbers<'_> {
    pub(super) fn kind_counter(&self) -> Option<KindCounter<'_>> {
        KindCounter::new(self.graph, self.graphs().of)
    }

    /// The predicates, each with all of its triples.
    pub(super) fn whole(&self) -> Vec<Part> {
        let whole = |predicate| Part {
            predicate,
            examples: [0; 2],
            divided: None,
        };
        self.predicates().into_iter().map(whole).collect()
    }

    /// The parts of each predicate by the kinds that `key` names, predicate by predicate. `None` if both ends of a
    /// predicate's triples have several kinds, or one has and only the triples of a class are counted.
    pub(super) fn parts(&self, counter: &mut KindCounter<'_>, key: Columns) -> Option<Vec<Part>> {
        let mut all = vec![];
        for whole in self.whole() {
            if scope::is_over() {
                return None;
            }
            let predicate = whole.predicate;
            let mut parts = vec![whole];
            for (place, end, kind, direction) in [
                (0, SUBJECT, SUBJECT_KIND, Direction::Out),
                (1, OBJECT, OBJECT_KIND, Direction::In),
            ] {
                if key & kind == 0 {
                    continue;
                }
                let counts = counter.of_predicate(predicate, direction)?;
                let one = match counts.as_slice() {
                    [one] => Some(one),
                    _ if parts.len() > 1 || counts.is_empty() || self.triples.class.is_some() => {
                        return None;
                    }
                    _ => None,
                };
                if let Some(one) = one {
                    let parts = parts.iter_mut();
                    parts.for_each(|part| part.examples[place] = one.example.0);
                    continue;
                }
                let mut whole = parts.pop()?;
                parts.extend(counts.into_iter().map(|count| {
                    whole.examples[place] = count.example.0;
                    whole.divided = Some((end, count));
                    whole.clone()
                }));
            }
            all.append(&mut parts);
        }
        Some(all)
    }

    /// Number of different values of some columns among the triples of a part.
    fn of_part(&self, part: &Part, columns: Columns) -> Option<u64> {
        const PAIR: Columns = SUBJECT | OBJECT;
        const QUAD: Columns = PAIR | GRAPH;
        let Some((end, count)) = &part.divided else {
            return self.of_predicate(part.predicate, columns);
        };
        let columns = self.without_graph(columns & !PREDICATE);
        match (columns, self.edges(part.predicate)) {
            (end_alone, _) if end_alone == *end => Some(count.keys),
            (PAIR, [_, 0]) | (QUAD, [0, _]) => Some(count.edges),
            (PAIR, [0, _]) if self.graphs().named == 1 => Some(count.edges),
            _ => None,
        }
    }

    /// Rows for a key that contains kinds: for each predicate or for all together, and for each kind, the numbers of
    /// different values of sets of columns. A term of each kind stands for it.
    pub(super) fn by_kind(&self, key: Columns, sets: &[Columns]) -> Option<Vec<KeyNumbers>> {
        let mut counter = self.kind_counter()?;
        let parts = self.parts(&mut counter, key)?;
        let ends = |examples: [u32; 2]| {
            let kinds = [SUBJECT_KIND, OBJECT_KIND].into_iter().zip(examples);
            kinds.filter(|x| key & x.0 != 0).map(|x| x.1)
        };
        let of_part = |part: &Part| -> Option<Vec<u64>> {
            sets.iter().map(|c| self.of_part(part, *c)).collect()
        };
        if key & PREDICATE != 0 || self.triples.predicate.is_some() {
            let row = |part: &Part| {
                let predicate =
                    (key & PREDICATE != 0).then(|| self.graph.vertex_of(part.predicate).0);
                Some((
                    predicate.into_iter().chain(ends(part.examples)).collect(),
                    of_part(part)?,
                ))
            };
            let rows = parts.iter().take(MAX_ROWS + 1).map(row);
            return rows.collect();
        }
        // The part of each row.
        let mut rows: FxHashMap<[u32; 2], Vec<u64>> = FxHashMap::default();
        for part in &parts {
            rows.entry(part.examples)
                .or_insert_with(|| vec![0; sets.len()]);
        }
        for (i, columns) in sets.iter().enumerate() {
            if columns & PREDICATE != 0 {
                for part in &parts {
                    rows.get_mut(&part.examples)?[i] += self.of_part(part, *columns)?;
                }
                continue;
            }
            let direction = match (self.without_graph(*columns), key) {
                (SUBJECT, SUBJECT_KIND) => Direction::Out,
                (OBJECT, OBJECT_KIND) => Direction::In,
                _ => return None,
            };
            if self.triples.class.is_some() {
                return None;
            }
            for (example, n) in counter.vertices(&self.predicates(), direction)? {
                let examples = match direction {
                    Direction::Out => [example.0, 0],
                    Direction::In => [0, example.0],
                };
                rows.get_mut(&examples)?[i] = n;
            }
        }
        let rows = rows
            .into_iter()
            .map(|(examples, n)| (ends(examples).collect(), n));
        Some(rows.collect())
    }
}
