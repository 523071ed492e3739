//! `index.jd`: characteristic sets, class intervals, and the index vertices of named graphs (OSDI '16 §4.1).

use super::{Bytes, SectionFile, SectionWriter};
use crate::snapshot::GraphPart;
use bytemuck::{Pod, Zeroable};
use jindou_graph::sets::{CharacteristicSets, SetRun};
use jindou_model::Result;
use jindou_model::mapped::contradicts;
use std::io::{Seek, Write};

const MAGIC: [u8; 8] = *b"JDINDEX\n";
const SET_RUNS: u32 = 1;
const SET_OFFSETS: u32 = 2;
const SET_PREDICATES: u32 = 3;
const CLASS_IDS: u32 = 4;
const CLASS_OFFSETS: u32 = 5;
const CLASS_INTERVALS: u32 = 6;
const GRAPH_IDS: u32 = 7;
const GRAPH_OFFSETS: u32 = 8;
const GRAPH_PARTS: u32 = 9;
const GRAPH_SUBJECTS: u32 = 10;
const GRAPH_BASES: u32 = 11;
const SMALL_OFFSETS: u32 = 12;
const SMALL_SUBJECTS: u32 = 13;

/// Largest number of subjects of a graph for which only the subjects are stored. The predicates of each are then found
/// by a few lookups. A record for each (graph, predicate) of 100,000 small graphs would cost 4 bytes per quad.
pub const SMALL_GRAPH_SUBJECTS: usize = 128;

/// Intervals of a class are stored while there are fewer than this, or fewer than one for 8 instances; otherwise
/// membership is a lookup in the `rdf:type` segment.
pub const MAX_CLASS_INTERVALS: usize = 16;

/// One (graph, predicate) pair with its subjects. In graphs of a few quads, of which there may be 100,000, nearly every
/// pair has one subject: it is stored here, so that no other cache line is read.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct PartRecord {
    /// The predicate, and [`LISTED`] if the subjects are a list.
    predicate: u32,
    /// The subject itself; or the start of a list in the section of subjects, counted from where the graph's lists
    /// begin: the list's length, then the subjects.
    place: u32,
}

/// Flag in [`PartRecord::predicate`]. Ids of predicates are below this number: each predicate is a term, and ids of the
/// base's terms end at 0xE000_0000; a dense id this large would need as many predicates.
const LISTED: u32 = 1 << 31;

/// The opened `index.jd`, or `classes.jd` of a generation.
#[derive(Debug)]
pub struct IndexParts {
    file: SectionFile,
}

impl IndexParts {
    /// Checks the header.
    pub fn open(bytes: Bytes, name: &str) -> Result<Self> {
        Ok(Self {
            file: SectionFile::open(bytes, &MAGIC, name)?,
        })
    }

    /// Checks that the file still had its original content whenever it was read.
    ///
    /// # Errors
    /// [`Error::Damaged`](jindou_model::Error::Damaged) with the file, once it has shrunk or could not be read.
    #[inline]
    pub fn check_file(&self) -> Result<()> {
        self.file.check_file()
    }

    /// Returns true if [`Self::check_file`] succeeds. A few instructions.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.file.is_whole()
    }

    /// The characteristic sets, by runs of vertex ids.
    #[must_use]
    pub fn sets(&self) -> CharacteristicSets<'_> {
        CharacteristicSets {
            runs: self.file.array(SET_RUNS),
            offsets: self.file.array(SET_OFFSETS),
            predicates: self.file.array(SET_PREDICATES),
        }
    }

    /// The instances of a class as intervals `[start, end)`, ascending; `None` if they are too many to be stored.
    #[must_use]
    pub fn class_intervals(&self, class: u32) -> Option<&[[u32; 2]]> {
        let at = self
            .file
            .array::<u32>(CLASS_IDS)
            .binary_search(&class)
            .ok()?;
        let offsets: &[u32] = self.file.array(CLASS_OFFSETS);
        let &[a, b] = offsets.get(at..)?.first_chunk::<2>()?;
        self.file
            .array::<[u32; 2]>(CLASS_INTERVALS)
            .get(a as usize..b as usize)
    }

    /// Ids of the named graphs, ascending.
    #[must_use]
    pub fn graph_ids(&self) -> &[u32] {
        self.file.array(GRAPH_IDS)
    }

    /// The subjects of a small graph, ascending; empty for a large one, which has [`Self::graph_parts`].
    #[must_use]
    pub fn small_graph_subjects(&self, graph: u32) -> &[u32] {
        let offsets: &[u32] = self.file.array(SMALL_OFFSETS);
        let Ok(at) = self.graph_ids().binary_search(&graph) else {
            return &[];
        };
        let subjects = || {
            let &[a, b] = offsets.get(at..)?.first_chunk::<2>()?;
            let all: &[u32] = self.file.array(SMALL_SUBJECTS);
            all.get(a as usize..b as usize)
        };
        subjects().unwrap_or_else(|| {
            contradicts(self.graph_ids());
            &[]
        })
    }

    fn records(&self, graph: u32) -> (&[PartRecord], u64) {
        let Ok(at) = self.graph_ids().binary_search(&graph) else {
            return (&[], 0);
        };
        let records = || {
            let offsets: &[u32] = self.file.array(GRAPH_OFFSETS);
            let &[a, b] = offsets.get(at..)?.first_chunk::<2>()?;
            let all: &[PartRecord] = self.file.array(GRAPH_PARTS);
            let bases: &[u64] = self.file.array(GRAPH_BASES);
            Some((all.get(a as usize..b as usize)?, *bases.get(at)?))
        };
        records().unwrap_or_else(|| {
            contradicts(self.graph_ids());
            (&[], 0)
        })
    }

    /// The part that a record describes; `None` if the record is damaged, which marks the file.
    fn part<'a>(&'a self, r: &'a PartRecord, base: u64) -> Option<GraphPart<'a>> {
        let part = self.part_at(r, base);
        if part.is_none() {
            contradicts(std::slice::from_ref(r));
        }
        part
    }

    fn part_at<'a>(&'a self, r: &'a PartRecord, base: u64) -> Option<GraphPart<'a>> {
        let predicate = r.predicate & !LISTED;
        if r.predicate == predicate {
            return Some(GraphPart {
                predicate,
                subjects: std::slice::from_ref(&r.place),
            });
        }
        let subjects: &[u32] = self.file.array(GRAPH_SUBJECTS);
        let start = usize::try_from(base.checked_add(u64::from(r.place))?).ok()?;
        let (&len, rest) = subjects.get(start..)?.split_first()?;
        Some(GraphPart {
            predicate,
            subjects: rest.get(..len as usize)?,
        })
    }

    /// The parts of one large graph, ascending by predicate; empty for a small one.
    pub fn graph_parts(&self, graph: u32) -> impl Iterator<Item = GraphPart<'_>> {
        let (records, base) = self.records(graph);
        records.iter().filter_map(move |r| self.part(r, base))
    }

    /// The part of a large graph with this predicate. O(log graphs + log parts).
    #[must_use]
    pub fn graph_part(&self, graph: u32, predicate: u32) -> Option<GraphPart<'_>> {
        let (records, base) = self.records(graph);
        let at = records
            .binary_search_by_key(&predicate, |r| r.predicate & !LISTED)
            .ok()?;
        self.part(records.get(at)?, base)
    }

    /// Bytes of the file's parts, for `info`: (characteristic sets, classes, graphs).
    #[must_use]
    pub fn part_bytes(&self) -> (u64, u64, u64) {
        let sum = |r: std::ops::RangeInclusive<u32>| {
            r.filter_map(|n| self.file.place(n))
                .map(|p| p.1)
                .sum::<u64>()
        };
        (
            sum(SET_RUNS..=SET_PREDICATES),
            sum(CLASS_IDS..=CLASS_INTERVALS),
            sum(GRAPH_IDS..=SMALL_SUBJECTS),
        )
    }
}

/// The intervals of a class's instances, which must ascend; `None` if they are too many to be stored.
#[must_use]
pub fn class_runs(instances: &[u32]) -> Option<Vec<[u32; 2]>> {
    let limit = MAX_CLASS_INTERVALS.max(instances.len() / 8);
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for &v in instances {
        let len = runs.len();
        match runs.last_mut() {
            Some(r) if r[1] == v => r[1] += 1,
            Some(r) if r[1] > v => {}
            _ if len == limit => return None,
            _ => runs.push([v, v + 1]),
        }
    }
    Some(runs)
}

/// Collects the parts of `index.jd`.
#[derive(Clone, Debug, Default)]
pub struct IndexBuilder {
    /// Ascending runs of ids; adjacent runs have different sets.
    pub runs: Vec<SetRun>,
    set_offsets: Vec<u32>,
    set_predicates: Vec<u32>,
    class_ids: Vec<u32>,
    class_offsets: Vec<u32>,
    class_intervals: Vec<[u32; 2]>,
    graph_ids: Vec<u32>,
    graph_offsets: Vec<u32>,
    graph_parts: Vec<PartRecord>,
    graph_subjects: Vec<u32>,
    graph_bases: Vec<u64>,
    small_offsets: Vec<u32>,
    small_subjects: Vec<u32>,
}

impl IndexBuilder {
    /// Adds the next predicate list (ascending dense ids); returns its number.
    pub fn push_set(&mut self, predicates: &[u32]) -> u32 {
        self.set_offsets.push(self.set_predicates.len() as u32);
        self.set_predicates.extend_from_slice(predicates);
        self.set_offsets.len() as u32 - 1
    }

    /// Adds a class with its instances, ascending. Intervals are stored if they are few. Classes must be added in
    /// ascending order.
    pub fn push_class(&mut self, class: u32, instances: &[u32]) {
        if let Some(runs) = class_runs(instances) {
            self.push_class_runs(class, &runs);
        }
    }

    /// Adds a class with the intervals that [`class_runs`] found. Classes must be added in ascending order.
    pub fn push_class_runs(&mut self, class: u32, runs: &[[u32; 2]]) {
        self.class_ids.push(class);
        self.class_offsets.push(self.class_intervals.len() as u32);
        self.class_intervals.extend_from_slice(runs);
    }

    /// Adds a graph with its distinct (predicate, subject) pairs, ascending. Graphs must be added in ascending order.
    pub fn push_graph(&mut self, graph: u32, pairs: &[[u32; 2]]) {
        self.graph_ids.push(graph);
        self.graph_offsets.push(self.graph_parts.len() as u32);
        self.graph_bases.push(self.graph_subjects.len() as u64);
        self.small_offsets.push(self.small_subjects.len() as u32);
        let mut subjects: Vec<u32> = pairs.iter().map(|p| p[1]).collect();
        subjects.sort_unstable();
        subjects.dedup();
        if subjects.len() <= SMALL_GRAPH_SUBJECTS {
            self.small_subjects.append(&mut subjects);
            return;
        }
        let base = self.graph_subjects.len();
        for part in pairs.chunk_by(|a, b| a[0] == b[0]) {
            let predicate = part[0][0];
            self.graph_parts.push(match *part {
                [[_, subject]] => PartRecord {
                    predicate,
                    place: subject,
                },
                _ => PartRecord {
                    predicate: predicate | LISTED,
                    place: (self.graph_subjects.len() - base) as u32,
                },
            });
            if part.len() != 1 {
                self.graph_subjects.push(part.len() as u32);
                self.graph_subjects.extend(part.iter().map(|p| p[1]));
            }
        }
    }

    /// Writes the file.
    pub fn write<W: Write + Seek>(mut self, out: W) -> std::io::Result<W> {
        self.set_offsets.push(self.set_predicates.len() as u32);
        self.class_offsets.push(self.class_intervals.len() as u32);
        self.graph_offsets.push(self.graph_parts.len() as u32);
        self.small_offsets.push(self.small_subjects.len() as u32);
        let mut w = SectionWriter::new(out, MAGIC, 13)?;
        w.section(SET_RUNS, &self.runs)?;
        w.section(SET_OFFSETS, &self.set_offsets)?;
        w.section(SET_PREDICATES, &self.set_predicates)?;
        w.section(CLASS_IDS, &self.class_ids)?;
        w.section(CLASS_OFFSETS, &self.class_offsets)?;
        w.section(CLASS_INTERVALS, &self.class_intervals)?;
        w.section(GRAPH_IDS, &self.graph_ids)?;
        w.section(GRAPH_OFFSETS, &self.graph_offsets)?;
        w.section(GRAPH_PARTS, &self.graph_parts)?;
        w.section(GRAPH_SUBJECTS, &self.graph_subjects)?;
        w.section(GRAPH_BASES, &self.graph_bases)?;
        w.section(SMALL_OFFSETS, &self.small_offsets)?;
        w.section(SMALL_SUBJECTS, &self.small_subjects)?;
        w.finish()
    }
}
