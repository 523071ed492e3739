//! Partitions with few edges between parts, by METIS on the graph of entities.

use super::{Graph, NOBODY, spread};
use jindou::{Error, Resource, Result};
use metis::Idx;

/// Cuts the undirected graph of entities, without one-way predicates. Every entity with a single neighbour (a ray of a
/// star) is first folded into that neighbour (its centre), which changes no optimal cut. A vertex weighs as much as the
/// triples of which it is the subject. Entities without edges go to the parts with the least weight. Memory: 16 bytes
/// per vertex and 16 per edge, and the memory of METIS.
pub fn owners(
    graph: &Graph<'_>,
    weights: &[u32],
    one_way: &[bool],
    workers: u32,
    owners: &mut [u8],
) -> Result<()> {
    let mut is_entity = vec![false; graph.ids()];
    graph.entities(|v, _| is_entity[v as usize] = true);
    let mut edges: Vec<(u32, u32)> = vec![];
    for p in (0..graph.predicates()).filter(|&p| !one_way[p as usize]) {
        graph.edges(p, |s, o| {
            if s != o && is_entity[o as usize] {
                edges.push((s.min(o), s.max(o)));
            }
        });
    }
    edges.sort_unstable();
    edges.dedup();
    let centres = fold_rays(graph.ids(), &edges);
    edges.retain_mut(|e| {
        let (a, b) = (centres[e.0 as usize], centres[e.1 as usize]);
        *e = (a.min(b), a.max(b));
        a != b
    });
    // Dense numbers for the remaining vertices, as METIS needs them.
    let mut number = vec![u32::MAX; graph.ids()];
    let mut left = 0;
    for &(a, b) in &edges {
        for v in [a, b] {
            if number[v as usize] == u32::MAX {
                number[v as usize] = left;
                left += 1;
            }
        }
    }
    let mut vertex_weights: Vec<Idx> = vec![1; left as usize];
    for (v, &c) in centres.iter().enumerate() {
        if let Some(w) = vertex_weights.get_mut(number[c as usize] as usize) {
            *w = w.saturating_add(weights[v].cast_signed());
        }
    }
    let parts = cut(&edges, &number, &mut vertex_weights, workers)?;
    let mut alone = vec![];
    for v in (1..graph.ids()).filter(|&v| is_entity[v]) {
        match parts.get(number[centres[v] as usize] as usize) {
            Some(&part) => owners[v] = part as u8,
            None => alone.push((u64::from(weights[v]), v as u32)),
        }
    }
    // Rays of a star that has no other edges go to the part of its centre.
    alone.retain(|&(_, v)| centres[v as usize] == v);
    spread(alone, workers, |v, worker| owners[v as usize] = worker);
    for v in (1..graph.ids()).filter(|&v| is_entity[v]) {
        if owners[v] == NOBODY {
            owners[v] = owners[centres[v] as usize];
        }
    }
    Ok(())
}

/// For each vertex with a single neighbour, that neighbour (if both ends of an edge have no other, both get the same
/// end); for other vertices, the vertex itself.
fn fold_rays(ids: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    let mut degree = vec![0u32; ids];
    for &(a, b) in edges {
        degree[a as usize] += 1;
        degree[b as usize] += 1;
    }
    let mut centres: Vec<u32> = (0..ids as u32).collect();
    for &(a, b) in edges {
        match (degree[a as usize], degree[b as usize]) {
            (_, 1) => centres[b as usize] = a,
            (1, _) => centres[a as usize] = b,
            _ => {}
        }
    }
    centres
}

fn cut(
    edges: &[(u32, u32)],
    number: &[u32],
    vertex_weights: &mut [Idx],
    workers: u32,
) -> Result<Vec<Idx>> {
    let vertices = vertex_weights.len();
    let mut parts: Vec<Idx> = vec![0; vertices];
    if workers == 1 || vertices <= workers as usize {
        for (v, part) in parts.iter_mut().enumerate() {
            *part = (v % workers as usize) as Idx;
        }
        return Ok(parts);
    }
    let ends = || {
        edges
            .iter()
            .map(|&(a, b)| (number[a as usize] as usize, number[b as usize] as usize))
    };
    let mut begins: Vec<Idx> = vec![0; vertices + 1];
    for (a, b) in ends() {
        begins[a + 1] += 1;
        begins[b + 1] += 1;
    }
    for v in 0..vertices {
        begins[v + 1] = begins[v].checked_add(begins[v + 1]).ok_or_else(|| {
            Error::limit(
                Resource::Numbers,
                "METIS does not accept a graph of 2^30 edges",
            )
        })?;
    }
    let mut free = begins.clone();
    let mut neighbours: Vec<Idx> = vec![0; 2 * edges.len()];
    for (a, b) in ends() {
        for (from, to) in [(a, b), (b, a)] {
            neighbours[free[from] as usize] = to as Idx;
            free[from] += 1;
        }
    }
    let refused = |e: &dyn std::fmt::Display| Error::Internal(format!("METIS: {e}"));
    metis::Graph::new(1, workers as Idx, &begins, &neighbours)
        .map_err(|e| refused(&e))?
        .set_vwgt(vertex_weights)
        .set_option(metis::option::Seed(1))
        .part_kway(&mut parts)
        .map_err(|e| refused(&e))?;
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rays_are_folded_into_their_centre() {
        // A star with centre 1 and rays 2 and 3, and an edge from 1 to 4, which has edges to 5 and 6. 7 and 8 are an
        // isolated pair.
        let edges = [(1, 2), (1, 3), (1, 4), (4, 5), (4, 6), (5, 6), (7, 8)];
        assert_eq!(fold_rays(9, &edges), [0, 1, 1, 1, 4, 5, 6, 7, 7]);
    }

    #[test]
    fn two_cliques_with_one_edge_between_are_cut_there() {
        let mut edges = vec![];
        for base in [0, 10] {
            for a in 0..10 {
                for b in a + 1..10 {
                    edges.push((base + a, base + b));
                }
            }
        }
        edges.push((3, 15));
        let number: Vec<u32> = (0..20).collect();
        let parts = cut(&edges, &number, &mut [1; 20], 2).unwrap();
        assert!(parts[..10].iter().all(|p| *p == parts[0]));
        assert!(parts[10..].iter().all(|p| *p == parts[10]));
        assert_ne!(parts[0], parts[10]);
    }
}
