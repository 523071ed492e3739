//! `s<N>-delta.jd`: the state of merged changes outside the segments, in its in-memory form. The file is read
//! completely when a store is opened, since the next update changes these structures.

use super::{Bytes, SectionFile, SectionWriter, parse_prefixes, prefixes_text};
use crate::base::MergedData;
use crate::delta::OpenMerge;
use crate::requests::Requests;
use crate::revisions::Revisions;
use jindou_graph::delta::{TailTerms, TermRuns, VertexDelta, push_number};
use jindou_model::{
    DEFAULT_GRAPH, Direction, Error, FIRST_QUERY_ID, FIRST_TAIL_ID, NO_VERTEX, Result, VertexId,
};
use std::io::{Seek, Write};
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"JDDELTA\n";
/// Section: snapshot number, number of vertices of the load, number of tail terms. In a file with the text of some terms
/// only, also the number of terms whose text is elsewhere.
const TOTALS: u32 = 1;
const TERM_BYTES: u32 = 2;
/// Section: end of each tail term's bytes, u64. Free ids have empty terms. In a file with the text of some terms only,
/// the end of each of these.
const TERM_ENDS: u32 = 3;
/// Section: hash and number of each term, sorted by hash.
const TERM_ORDER: u32 = 4;
/// Sections, out and in: `vertex << 32 | predicate` for predicates that updates gave to vertices.
const MORE: [u32; 2] = [5, 6];
const WIDE_OFFSETS: u32 = 7;
const WIDE_PREDICATES: u32 = 8;
const WIDE_COUNTS: u32 = 9;
/// Section of entries `[graph, predicate, subject]`, which say that the graph has or had such edges.
const GRAPHS: u32 = 10;
const SHRUNK: u32 = 11;
/// Section: the text of the prefixes. Absent if there are none.
const PREFIXES: u32 = 12;
/// Section of u64: revision of graphs that no update changed, revision of the whole store, then each changed graph and
/// its revision.
const REVISIONS: u32 = 13;
/// Section of u64: numbers of the remembered requests. Absent if there are none.
const REQUESTS: u32 = 14;
/// Section of u64: the snapshot that started the open merge, its generation, 1 if it merges all generations, plus 2 if
/// shards keep the text of their own terms. Absent if no merge is open.
const OPEN_MERGE: u32 = 15;
/// Sections in a file with the text of some terms only: runs `[first, end)` of the numbers of these terms, runs of free
/// numbers, and the numbers of terms whose text all shards keep.
const PRESENT: u32 = 16;
const FREE: u32 = 17;
const SHARED: u32 = 18;

/// Number of ids for new terms.
const ROOM: u32 = FIRST_QUERY_ID - FIRST_TAIL_ID;

/// Writes the file. In a sharded store, `own` has the text of the terms that the shard keeps.
pub(crate) fn write_state<W: Write + Seek>(
    merged: &MergedData,
    own: Option<&TailTerms>,
    vertices: u32,
    out: W,
) -> std::io::Result<W> {
    let MergedData {
        number,
        tail,
        touched,
        prefixes,
        revisions,
        requests,
        open_merge,
    } = merged;
    let more = [
        prefixes.is_some(),
        revisions.is_some(),
        !requests.is_empty(),
        open_merge.is_some(),
    ];
    let sections = 11 + more.iter().filter(|&&there| there).count() as u32;
    let sections = sections + if own.is_some() { 3 } else { 0 };
    let mut w = SectionWriter::new(out, MAGIC, sections)?;
    let tail = own.unwrap_or(tail);
    let totals = [*number, vertices.into(), tail.len().into()];
    let elsewhere = own.map(|own| u64::from(own.elsewhere_count()));
    let totals: Vec<u64> = totals.into_iter().chain(elsewhere).collect();
    w.section(TOTALS, &totals)?;
    w.begin(TERM_BYTES)?;
    let mut ends = Vec::new();
    let mut present: Vec<[u32; 2]> = Vec::new();
    let mut end = 0u64;
    for (n, term) in (0u32..).zip(tail.iter()) {
        if own.is_some() {
            if term.is_empty() {
                continue;
            }
            push_number(&mut present, n);
        }
        w.write(term)?;
        end += term.len() as u64;
        ends.push(end);
    }
    w.end();
    w.section(TERM_ENDS, &ends)?;
    w.section(TERM_ORDER, &tail.order().collect::<Vec<u64>>())?;
    for (section, d) in MORE.into_iter().zip([Direction::Out, Direction::In]) {
        w.section(section, &touched.more(d).iter().collect::<Vec<u64>>())?;
    }
    let (mut offsets, mut predicates, mut counts) = (vec![0u32], Vec::new(), Vec::new());
    for (list, n) in touched.widened_sets() {
        predicates.extend_from_slice(list);
        offsets.push(predicates.len() as u32);
        counts.push(n);
    }
    w.section(WIDE_OFFSETS, &offsets)?;
    w.section(WIDE_PREDICATES, &predicates)?;
    w.section(WIDE_COUNTS, &counts)?;
    let graphs: Vec<[u32; 3]> = touched.graph_entries().iter().collect();
    w.section(GRAPHS, bytemuck::cast_slice::<[u32; 3], u32>(&graphs))?;
    w.section(SHRUNK, &touched.shrunk().collect::<Vec<u32>>())?;
    if let Some(own) = own {
        w.section(PRESENT, present.as_flattened())?;
        let free: Vec<[u32; 2]> = own.free_runs().collect();
        w.section(FREE, free.as_flattened())?;
        w.section(SHARED, &own.shared().collect::<Vec<u32>>())?;
    }
    if let Some(prefixes) = prefixes {
        w.section(PREFIXES, prefixes_text(prefixes).as_bytes())?;
    }
    if let Some(revisions) = revisions {
        w.section(REVISIONS, &revisions.numbers())?;
    }
    if !requests.is_empty() {
        w.section(REQUESTS, &requests.numbers())?;
    }
    if let Some(open) = open_merge {
        w.section(OPEN_MERGE, &open.to_numbers())?;
    }
    w.finish()
}

/// Reads the file of a store whose load has this many vertices, and which has this many predicates. O(bytes of the
/// file).
///
/// # Errors
/// [`Error::Damaged`] if the file does not match these numbers or is inconsistent.
pub(crate) fn read_state(
    bytes: Bytes,
    name: &str,
    vertices: u32,
    predicates: usize,
) -> Result<MergedData> {
    let file = SectionFile::open(bytes, &MAGIC, name)?;
    let parsed = parse(&file, vertices, predicates);
    file.check_file()?;
    parsed.ok_or_else(|| {
        Error::damaged(
            name,
            "damaged; run `jindou check`, then restore the store from a backup",
        )
    })
}

fn ascending<T: Ord>(list: &[T]) -> bool {
    list.windows(2).all(|w| w[0] < w[1])
}

fn parse(file: &SectionFile, vertices: u32, predicates: usize) -> Option<MergedData> {
    let (bytes, ends, order) = (
        file.array(TERM_BYTES),
        file.array(TERM_ENDS),
        file.array(TERM_ORDER),
    );
    let (number, of, terms, tail) = match *file.array::<u64>(TOTALS) {
        [number, of, terms] => {
            let tail = TailTerms::from_parts(bytes, ends, order)?;
            (number, of, terms, tail)
        }
        [number, of, terms, elsewhere] => {
            let runs = TermRuns {
                // Numbers without text take no bytes of the file, which bound those of the others.
                len: u32::try_from(terms).ok().filter(|&len| len <= ROOM)?,
                present: bytemuck::try_cast_slice(file.array::<u32>(PRESENT)).ok()?,
                free: bytemuck::try_cast_slice(file.array::<u32>(FREE)).ok()?,
                elsewhere: u32::try_from(elsewhere).ok()?,
                shared: file.array(SHARED),
            };
            let tail = TailTerms::from_runs(bytes, ends, order, &runs)?;
            (number, of, terms, tail)
        }
        _ => return None,
    };
    let len = tail.len();
    if of != u64::from(vertices) || terms != u64::from(len) || len > ROOM {
        return None;
    }
    let known = |v: u32| {
        v != NO_VERTEX
            && match v.checked_sub(FIRST_TAIL_ID) {
                Some(_) => tail.is_assigned(VertexId(v)),
                None => v <= vertices,
            }
    };
    // Graphs may have entries of subjects that lost all edges, so their predicates are not checked.
    let assigned = |v: u32| known(v) || v.checked_sub(FIRST_TAIL_ID).is_some_and(|n| n < len);
    let is_predicate = |p: u32| (p as usize) < predicates;
    let more = MORE.map(|s| file.array::<u64>(s));
    let pairs_known = |list: &[u64]| {
        ascending(list)
            && list
                .iter()
                .all(|&e| known((e >> 32) as u32) && is_predicate(e as u32))
    };
    let graphs: &[[u32; 3]] = file.array(GRAPHS);
    let shrunk: &[u32] = file.array(SHRUNK);
    let graph_known = |e: &[u32; 3]| known(e[0]) && is_predicate(e[1]) && assigned(e[2]);
    let sound = more.iter().all(|m| pairs_known(m))
        && ascending(graphs)
        && graphs.iter().all(graph_known)
        && ascending(shrunk)
        && shrunk.iter().all(|&g| known(g));
    let offsets: &[u32] = file.array(WIDE_OFFSETS);
    let lists: &[u32] = file.array(WIDE_PREDICATES);
    let counts: &[u32] = file.array(WIDE_COUNTS);
    if !sound || offsets.len() != counts.len() + 1 {
        return None;
    }
    let mut wide: Vec<(&[u32], u32)> = Vec::with_capacity(counts.len());
    for (w, &n) in offsets.windows(2).zip(counts) {
        let list = lists.get(w[0] as usize..w[1] as usize)?;
        if !ascending(list) || !list.iter().all(|&p| is_predicate(p)) {
            return None;
        }
        wide.push((list, n));
    }
    let prefixes = match file.place(PREFIXES) {
        Some(_) => Some(Arc::new(parse_prefixes(file.array(PREFIXES))?)),
        None => None,
    };
    let of_graph = |graph: u32| graph == DEFAULT_GRAPH || known(graph);
    let revisions = match file.place(REVISIONS) {
        Some(_) => Some(Revisions::from_numbers(file.array(REVISIONS), of_graph)?),
        None => None,
    };
    let requests = match file.place(REQUESTS) {
        Some(_) => Requests::from_numbers(file.array(REQUESTS))?,
        None => Requests::default(),
    };
    let open_merge = match file.place(OPEN_MERGE) {
        Some(_) => Some(OpenMerge::from_numbers(file.array(OPEN_MERGE))?),
        None => None,
    };
    Some(MergedData {
        open_merge,
        requests,
        prefixes,
        revisions,
        number,
        touched: VertexDelta::from_parts(more, wide.into_iter(), graphs, shrunk),
        tail,
    })
}
