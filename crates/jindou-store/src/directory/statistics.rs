//! `statistics.jd`: the planner's statistics in a file.

use super::{Bytes, SectionFile, SectionWriter};
use bytemuck::{Pod, Zeroable};
use jindou_graph::statistics::{HeavyKey, PlannerSet, PredicateStatistics, Statistics};
use jindou_model::{Error, FIRST_QUERY_ID, FIRST_TAIL_ID, Result};
use std::io::{Seek, Write};

const MAGIC: [u8; 8] = *b"JDSTATS\n";
const TOTALS: u32 = 1;
const PREDICATES: u32 = 2;
const CLASSES: u32 = 3;
const SETS: u32 = 4;
const SET_CLASSES: u32 = 5;
const SET_PREDICATES: u32 = 6;
/// Section of the keys with the longest lists. Absent if there are none.
const HEAVY: u32 = 7;

/// Stands for "the store has no `rdf:type`".
const NO_PREDICATE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct PredicateRecord {
    edges: u64,
    named_edges: u64,
    vertex: u32,
    subjects: u32,
    objects: u32,
    max_out: u32,
    max_in: u32,
    zero: u32,
}

#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct ClassRecord {
    members: u64,
    class: u32,
    zero: u32,
}

/// One of the planner's sets. Its entries end where those of the next set start.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct SetRecord {
    subjects: u64,
    classes: u32,
    predicates: u32,
}

#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct SetPredicate {
    subjects: u64,
    edges: u64,
    predicate: u32,
    zero: u32,
}

/// Writes the file, without the two lookup tables, which are rebuilt when it is read.
pub fn write_statistics<W: Write + Seek>(s: &Statistics, out: W) -> std::io::Result<W> {
    let sections = 6 + u32::from(!s.heavy.is_empty());
    let mut w = SectionWriter::new(out, MAGIC, sections)?;
    w.section(
        TOTALS,
        &[
            u64::from(s.vertices),
            s.quads,
            s.rdf_type.map_or(NO_PREDICATE, u64::from),
        ],
    )?;
    let predicates: Vec<PredicateRecord> = s
        .predicates
        .iter()
        .map(|p| PredicateRecord {
            edges: p.edges,
            named_edges: p.named_edges,
            vertex: p.vertex,
            subjects: p.subjects,
            objects: p.objects,
            max_out: p.max_out,
            max_in: p.max_in,
            zero: 0,
        })
        .collect();
    w.section(PREDICATES, &predicates)?;
    let mut classes: Vec<ClassRecord> = s
        .classes
        .iter()
        .map(|(&class, &members)| ClassRecord {
            members,
            class,
            zero: 0,
        })
        .collect();
    classes.sort_unstable_by_key(|c| c.class);
    w.section(CLASSES, &classes)?;
    let (mut sets, mut set_classes, mut set_predicates) = (vec![], vec![], vec![]);
    for set in &s.sets {
        sets.push(SetRecord {
            subjects: set.subjects,
            classes: set_classes.len() as u32,
            predicates: set_predicates.len() as u32,
        });
        set_classes.extend(set.classes.iter().map(|&(class, members)| ClassRecord {
            members,
            class,
            zero: 0,
        }));
        set_predicates.extend(set.predicates.iter().map(|&(predicate, subjects, edges)| {
            SetPredicate {
                subjects,
                edges,
                predicate,
                zero: 0,
            }
        }));
    }
    w.section(SETS, &sets)?;
    w.section(SET_CLASSES, &set_classes)?;
    w.section(SET_PREDICATES, &set_predicates)?;
    if !s.heavy.is_empty() {
        w.section(HEAVY, &s.heavy)?;
    }
    w.finish()
}

/// Reads the file. Predicate ids that do not exist and counts larger than the store's are an error, so that indexing by
/// these ids stays within bounds and sums do not overflow.
pub fn read_statistics(bytes: Bytes, name: &str) -> Result<Statistics> {
    let file = SectionFile::open(bytes, &MAGIC, name)?;
    let read = parse(&file, name);
    file.check_file()?;
    read
}

fn parse(file: &SectionFile, name: &str) -> Result<Statistics> {
    let damaged = || {
        Error::damaged(
            name,
            "damaged; run `jindou check`, then load the store again",
        )
    };
    let &[vertices, quads, rdf_type] = file.array::<u64>(TOTALS) else {
        return Err(damaged());
    };
    let predicates: Vec<PredicateStatistics> = file
        .array::<PredicateRecord>(PREDICATES)
        .iter()
        .map(|p| PredicateStatistics {
            vertex: p.vertex,
            edges: p.edges,
            named_edges: p.named_edges,
            subjects: p.subjects,
            objects: p.objects,
            max_out: p.max_out,
            max_in: p.max_in,
        })
        .collect();
    let known = |p: u64| p < predicates.len() as u64;
    // Every store has fewer than 2^48 quads, since ids have 32 bits, as have the offsets of a segment.
    if quads >= 1 << 48
        || predicates
            .iter()
            .any(|p| p.edges > quads || p.named_edges > quads)
    {
        return Err(damaged());
    }
    // Merged statistics also count vertices of the tail.
    let most = vertices.saturating_add(u64::from(FIRST_QUERY_ID - FIRST_TAIL_ID));
    let members_known = |c: &[ClassRecord]| c.iter().all(|c| c.members <= most);
    let rdf_type = match rdf_type {
        NO_PREDICATE => None,
        p if known(p) => Some(p as u32),
        _ => return Err(damaged()),
    };
    let records: &[SetRecord] = file.array(SETS);
    let set_classes: &[ClassRecord] = file.array(SET_CLASSES);
    let set_predicates: &[SetPredicate] = file.array(SET_PREDICATES);
    let mut sets = Vec::with_capacity(records.len());
    for (i, r) in records.iter().enumerate() {
        let (c_end, p_end) = records
            .get(i + 1)
            .map_or((set_classes.len(), set_predicates.len()), |n| {
                (n.classes as usize, n.predicates as usize)
            });
        let classes = set_classes
            .get(r.classes as usize..c_end)
            .ok_or_else(damaged)?;
        let own = set_predicates
            .get(r.predicates as usize..p_end)
            .ok_or_else(damaged)?;
        let in_range =
            |p: &SetPredicate| known(p.predicate.into()) && p.subjects <= most && p.edges <= quads;
        if !own.iter().all(in_range) || r.subjects > most || !members_known(classes) {
            return Err(damaged());
        }
        sets.push(PlannerSet {
            subjects: r.subjects,
            classes: classes.iter().map(|c| (c.class, c.members)).collect(),
            predicates: own
                .iter()
                .map(|p| (p.predicate, p.subjects, p.edges))
                .collect(),
        });
    }
    let all_classes: &[ClassRecord] = file.array(CLASSES);
    if !members_known(all_classes) {
        return Err(damaged());
    }
    let heavy: &[HeavyKey] = file.array(HEAVY);
    let is_known = |h: &HeavyKey| known(h.predicate().into());
    if heavy.len() > HeavyKey::MOST || !heavy.is_sorted() || !heavy.iter().all(is_known) {
        return Err(damaged());
    }
    let mut s = Statistics {
        vertices: u32::try_from(vertices).map_err(|_| damaged())?,
        quads,
        rdf_type,
        predicates,
        classes: all_classes.iter().map(|c| (c.class, c.members)).collect(),
        sets,
        heavy: heavy.to_vec(),
        ..Statistics::default()
    };
    s.index();
    Ok(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_model::Direction;

    #[test]
    fn statistics_come_back_and_damage_is_an_error_or_other_numbers() {
        let mut s = Statistics {
            vertices: 9,
            quads: 100,
            rdf_type: Some(1),
            predicates: vec![PredicateStatistics::default(); 3],
            classes: [(4, 5), (6, 7)].into_iter().collect(),
            sets: vec![
                PlannerSet {
                    subjects: 3,
                    classes: vec![(4, 2)],
                    predicates: vec![(0, 3, 9), (2, 1, 1)],
                },
                PlannerSet {
                    subjects: 1,
                    classes: vec![],
                    predicates: vec![(1, 1, 1)],
                },
            ],
            ..Statistics::default()
        };
        s.predicates[2].max_in = 77;
        s.index();
        let written = |s: &Statistics| {
            let file = write_statistics(s, std::io::Cursor::new(Vec::new())).unwrap();
            file.into_inner()
        };
        let came_back = |s: &Statistics| {
            let got = read_statistics(Bytes::copy_of(&written(s)), "x").unwrap();
            assert_eq!(format!("{got:?}"), format!("{s:?}"));
        };
        came_back(&s);
        let key = |p, d, key| HeavyKey::new(p, d, key, 10_000 + key);
        s.heavy = vec![
            key(0, Direction::In, 5),
            key(2, Direction::Out, 3),
            key(2, Direction::Out, 4),
        ];
        came_back(&s);
        assert_eq!(s.heavy_keys(2, Direction::Out), &s.heavy[1..]);
        assert_eq!(s.heavy_keys(0, Direction::In), &s.heavy[..1]);
        assert!(s.heavy_keys(0, Direction::Out).is_empty());
        assert!(s.heavy_keys(2, Direction::In).is_empty());
        let file = written(&s);
        for at in 0..file.len() {
            for bit in [0, 3, 7] {
                let mut bad = file.clone();
                bad[at] ^= 1 << bit;
                let _ = read_statistics(Bytes::copy_of(&bad), "x");
            }
            let _ = read_statistics(Bytes::copy_of(&file[..at]), "x");
        }
    }
}
