//! Compares views with sets of edges.

use super::view::EdgeView;
use super::{GraphScope, Packing, PatchBuilder, SegmentBuilder};
use proptest::prelude::*;
use std::collections::BTreeSet;

type E = (u32, u32, u32);

proptest! {
    /// Compares base and patch with a set of (key, neighbour, graph) to which the same edits were applied one by one.
    #[test]
    fn patched_views_agree_with_a_set(
        base in prop::collection::btree_set((1u32..8, 1u32..8, 0u32..4), 0..60),
        edits in prop::collection::vec((1u32..9, 1u32..8, 0u32..4, any::<bool>()), 0..40),
    ) {
        let packing = Packing::new(9, vec![1, 2, 3]);
        let graphs = packing.graph_ids();
        let mut d = SegmentBuilder::new(false);
        let mut n = SegmentBuilder::new(true);
        for &(k, x, g) in &base {
            if g == 0 { d.push(k, x, 0) } else { n.push(k, x, g) }
        }
        let (d, n) = (d.finish().unwrap(), n.finish_named(&packing).unwrap());
        let mut pb = PatchBuilder::default();
        let mut truth: BTreeSet<E> = base.clone();
        for &(k, x, g, added) in &edits {
            if added { truth.insert((k, x, g)); } else { truth.remove(&(k, x, g)); }
        }
        for &(k, x, g) in truth.difference(&base) { pb.push(k, x, g, true); }
        for &(k, x, g) in base.difference(&truth) { pb.push(k, x, g, false); }
        let patch = pb.finish();
        let named = n.named_view(&packing, &graphs);
        let view = EdgeView::new(d.view(), named, (!edits.is_empty()).then_some(&patch));
        prop_assert_eq!(view.default_edges(), truth.iter().filter(|e| e.2 == 0).count() as u64);
        prop_assert_eq!(view.named_edges(), truth.iter().filter(|e| e.2 != 0).count() as u64);
        let set = [0, 2];
        for scope in [GraphScope::Default, GraphScope::Named(2), GraphScope::AnyNamed, GraphScope::Union, GraphScope::Set(&set)] {
            let mut candidates = vec![];
            view.candidate_keys(scope, &mut candidates);
            for key in 0..10 {
                let degree = truth.iter().filter(|e| e.0 == key && e.2 == 0).count();
                prop_assert_eq!(view.default_degree(key), degree as u64);
                let want: BTreeSet<u32> = truth.iter()
                    .filter(|e| e.0 == key && scope.sees(e.2)).map(|e| e.1).collect();
                let mut scratch = vec![];
                prop_assert_eq!(
                    view.read(key, scope, &mut scratch), want.iter().copied().collect::<Vec<_>>());
                let (mut ns, mut gs) = (vec![], vec![]);
                view.read_with_graphs(key, scope, &mut ns, &mut gs);
                let got: Vec<_> = ns.into_iter().zip(gs).collect();
                let all: Vec<_> = truth.iter()
                    .filter(|e| e.0 == key && scope.sees(e.2)).map(|e| (e.1, e.2)).collect();
                prop_assert_eq!(&got, &all);
                for x in 0..9 {
                    prop_assert_eq!(view.contains(key, x, scope), want.contains(&x));
                    let mut of_edge = vec![];
                    view.graphs_of_edge(key, x, scope, |g| of_edge.push(g));
                    let graphs: Vec<u32> =
                        all.iter().filter(|e| e.0 == x).map(|e| e.1).collect();
                    prop_assert_eq!(of_edge, graphs);
                }
                prop_assert!(want.is_empty() || candidates.contains(&key));
            }
        }
    }
}
