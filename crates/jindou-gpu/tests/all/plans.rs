//! Whole plans on the device: random patterns against brute force, over plain and patched stores and divided into
//! strips; LUBM against the published counts and the CPU engine's checksums.

use crate::common::{device, planned, sorted, stored, sum_here, sum_on};
use jindou_gpu::reference::XorShift;
use jindou_gpu::{GpuExecutor, GpuOptions, ResultUse};
use jindou_model::{Error, PredicateId, VertexId};
use jindou_plan::{
    Condition, EdgeList, Exploration, FarEnd, GraphRef, Operand, Operator, Plan, PredicateRef,
    StartSource, Step, StepKind, Weight,
};
use jindou_store::Snapshot;
use jindou_store::testing::{changed, store_of};
use jindou_testing::named;
use oxrdf::{GraphName, NamedNode, Quad};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Edges as (subject, predicate, object), where nodes have small numbers.
type Edges = BTreeSet<(u32, u32, u32)>;

/// Nodes with numbers from here on are predicates, which also occur as subjects and objects.
const PREDICATE: u32 = 1000;

fn node(n: u32) -> NamedNode {
    match n.checked_sub(PREDICATE) {
        Some(p) => predicate(p),
        None => named(&format!("n{n}")),
    }
}

fn predicate(p: u32) -> NamedNode {
    named(&format!("p{p}"))
}

/// A variable or a constant.
#[derive(Clone, Copy, Debug)]
enum End {
    Variable(usize),
    Node(u32),
}

/// A triple pattern. A constant predicate is a node from [`PREDICATE`] on.
struct Pattern {
    subject: End,
    predicate: End,
    object: End,
}

const VARIABLES: usize = 4;

/// All bindings of a group of patterns, found by trying every edge for every pattern.
fn brute_force(edges: &Edges, patterns: &[Pattern]) -> Vec<Vec<u32>> {
    let mut rows = vec![[0u32; VARIABLES]];
    for p in patterns {
        let mut next = vec![];
        for row in &rows {
            for &(s, q, o) in edges {
                let mut row = *row;
                let mut fits = true;
                for (end, value) in [(p.predicate, PREDICATE + q), (p.subject, s), (p.object, o)] {
                    match end {
                        End::Node(n) => fits &= n == value,
                        End::Variable(v) if row[v] == 0 => row[v] = value,
                        End::Variable(v) => fits &= row[v] == value,
                    }
                }
                if fits {
                    next.push(row);
                }
            }
        }
        rows = next;
    }
    sorted(rows.iter().map(|r| r.to_vec()).collect())
}

fn number(snapshot: &Snapshot, id: u32) -> u32 {
    if id == 0 {
        return 0;
    }
    let mut bytes = vec![];
    assert!(snapshot.term(VertexId(id), &mut bytes), "unknown id {id}");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (_, name) = text.trim_end_matches('>').rsplit_once('/').unwrap();
    let base = if name.starts_with('p') { PREDICATE } else { 0 };
    base + name[1..].parse::<u32>().unwrap()
}

/// The plan's rows as node numbers, and the number of cuts; `None` if the plan is left to the CPU.
fn run(
    gpu: &GpuExecutor,
    plan: &Plan,
    snapshot: &Snapshot,
    table_bytes: Option<u64>,
) -> Option<(Vec<Vec<u32>>, u64)> {
    let options = GpuOptions {
        table_bytes,
        ..GpuOptions::default()
    };
    let mut rows = vec![];
    let mut sink = |columns: &[&[u32]], n: usize| {
        for i in 0..n {
            rows.push(columns.iter().map(|c| number(snapshot, c[i])).collect());
        }
        Ok(())
    };
    let r = match gpu.execute(plan, snapshot, ResultUse::Rows(&mut sink), &options) {
        Err(Error::Unsupported(_)) => return None,
        r => r.unwrap(),
    };
    assert_eq!(r.rows, rows.len() as u64);
    let again = |of| gpu.execute(plan, snapshot, of, &options).unwrap();
    let sum = again(ResultUse::Checksum);
    let sum = (sum.rows, sum.checksum.unwrap());
    assert_eq!((sum.0, again(ResultUse::Count).rows), (r.rows, r.rows));
    assert_eq!(sum_here(plan, snapshot), sum, "CPU and GPU checksums");
    Some((sorted(rows), r.profile.cuts))
}

fn random_graph(r: &mut XorShift) -> Edges {
    let nodes = 3 + r.below(12);
    let end = |r: &mut XorShift| match r.below(12) {
        0 => PREDICATE + r.below(3),
        _ => 1 + r.below(nodes),
    };
    (0..5 + r.below(60))
        .map(|_| (end(r), r.below(3), end(r)))
        .collect()
}

fn random_patterns(r: &mut XorShift, edges: &Edges) -> Vec<Pattern> {
    let end = |r: &mut XorShift| {
        if r.below(5) == 0 {
            let i = r.below(edges.len() as u32) as usize;
            End::Node(edges.iter().nth(i).map_or(1, |e| e.0))
        } else {
            End::Variable(r.below(VARIABLES as u32) as usize)
        }
    };
    (0..1 + r.below(4))
        .map(|_| Pattern {
            subject: end(r),
            predicate: match r.below(4) {
                0 => End::Variable(r.below(VARIABLES as u32) as usize),
                _ => End::Node(PREDICATE + r.below(3)),
            },
            object: end(r),
        })
        .collect()
}

fn text(patterns: &[Pattern]) -> String {
    let show = |e: End| match e {
        End::Variable(v) => format!("?v{v}"),
        End::Node(n) => node(n).to_string(),
    };
    let pattern = |p: &Pattern| [p.subject, p.predicate, p.object].map(show).join(" ");
    let body: Vec<String> = patterns.iter().map(pattern).collect();
    format!("SELECT ?v0 ?v1 ?v2 ?v3 WHERE {{ {} }}", body.join(" . "))
}

fn load_edges(edges: &Edges) -> (tempfile::TempDir, Snapshot) {
    let quads: Vec<Quad> = edges
        .iter()
        .map(|&(s, p, o)| Quad::new(node(s), predicate(p), node(o), GraphName::DefaultGraph))
        .collect();
    let (folder, base) = store_of(&quads);
    (folder, Snapshot::of_base(base))
}

/// Adds and removes random edges among the base's nodes. `edges` is changed to what the new snapshot contains.
fn patched(r: &mut XorShift, snapshot: &Snapshot, edges: &mut Edges) -> Snapshot {
    let nodes: BTreeSet<u32> = edges.iter().flat_map(|e| [e.0, e.2]).collect();
    let mut changes = vec![];
    let known: Vec<(u32, Vec<u8>)> = nodes
        .into_iter()
        .filter_map(|n| {
            let canonical = jindou_model::term::encode(&node(n).into());
            let is_known = snapshot.lookup(&canonical).is_some();
            is_known.then_some((n, canonical))
        })
        .collect();
    let mut touched = BTreeSet::new();
    for _ in 0..1 + r.below(10) {
        let pick = |r: &mut XorShift| known[r.below(known.len() as u32) as usize].clone();
        let (s, p, o) = (pick(r), r.below(3), pick(r));
        let edge = (s.0, p, o.0);
        let canonical = jindou_model::term::encode(&predicate(p).into());
        let is_predicate = |v| snapshot.predicate_of(v).is_some();
        if !snapshot.lookup(&canonical).is_some_and(is_predicate) || !touched.insert(edge) {
            continue;
        }
        let added = !edges.contains(&edge);
        changes.push(([s.1, canonical, o.1, vec![]], added));
        if added {
            edges.insert(edge);
        } else {
            edges.remove(&edge);
        }
    }
    changed(Snapshot::of_base(Arc::clone(snapshot.base())), changes)
}

/// Runs four random patterns over each of `cases` random graphs, every second one of which is patched; returns the
/// number of runs.
fn compare(cases: u32, first: u32) -> u32 {
    let (mut ran, mut cuts, mut any) = (0, 0, 0);
    for case in first..first + cases {
        let r = &mut XorShift::new(u64::from(case) + 1);
        let mut edges = random_graph(r);
        let (_folder, mut snapshot) = load_edges(&edges);
        if case % 2 == 1 {
            snapshot = patched(r, &snapshot, &mut edges);
        }
        let gpu = GpuExecutor::new(device(u64::from(case % 3)));
        for _ in 0..4 {
            let patterns = random_patterns(r, &edges);
            if edges.is_empty() || patterns.is_empty() {
                continue;
            }
            let text = text(&patterns);
            let plan = planned(&snapshot, &text);
            let want = brute_force(&edges, &patterns);
            if want.len() > 4000 {
                continue;
            }
            let Some((rows, _)) = run(&gpu, &plan, &snapshot, None) else {
                panic!("refused: {text}\n{:#?}", plan.exploration());
            };
            assert_eq!(rows, want, "case {case}: {text}\n{:#?}", plan.exploration());
            ran += 1;
            let is_any = |s: &Step| {
                use StepKind::{ExpandAny, ScanAll};
                matches!(s.kind, ExpandAny { .. } | ScanAll { .. })
            };
            any += u32::from(plan.exploration().unwrap().steps.iter().any(is_any));
            // Little memory, so that tables are divided.
            if want.len() > 200
                && let Some((rows, n)) = run(&gpu, &plan, &snapshot, Some(200_000))
            {
                assert_eq!(rows, want, "case {case}, cut: {text}");
                cuts += n;
            }
        }
    }
    assert!(ran > cases, "{ran} plans ran");
    assert!(any > cases / 2, "{any} plans with predicate variables ran");
    println!("{ran} plans, {any} with predicate variables, {cuts} cuts");
    ran
}

#[test]
fn random_patterns_agree_with_brute_force() {
    let ran = compare(60, 0);
    assert!(ran > 60);
}

#[test]
#[ignore = "minutes"]
fn twenty_thousand_random_patterns_agree_with_brute_force() {
    let ran = compare(6_400, 1_000);
    assert!(ran >= 20_000, "{ran}");
}

/// A plan with these steps, over slots `0 .. width`.
fn plan_of(snapshot: &Snapshot, width: u16, steps: Vec<StepKind>) -> Plan {
    let steps = steps
        .into_iter()
        .map(|kind| Step {
            kind,
            filters: vec![],
            live: (0..width).collect(),
            rows: 1.0,
            cost: 1.0,
            why: String::new(),
        })
        .collect();
    Plan {
        columns: vec![],
        form: jindou_plan::Form::Select,
        slots: (0..width).map(|s| format!("v{s}")).collect(),
        output: (0..width).collect(),
        root: Operator::Explore(Exploration { steps, empty: None }),
        cost: 1.0,
        weight: Weight::Heavy,
        validity: jindou_plan::Validity::for_snapshot(snapshot),
        bytes: 0,
    }
}

fn list(anchor: Operand, p: u32, direction: jindou_model::Direction) -> EdgeList {
    EdgeList {
        anchor,
        predicate: PredicateId(p),
        direction,
        graph: GraphRef::Default,
    }
}

/// Number of nodes of [`complete_graph`].
const NODES: u32 = 30;

/// A complete graph with one predicate: it gives many rows, so that tables are divided in small memory.
fn complete_graph() -> (tempfile::TempDir, Snapshot) {
    let edges: Edges = (1..=NODES)
        .flat_map(|a| {
            let others = (1..=NODES).filter(move |&b| a != b);
            others.map(move |b| (a, 0, b))
        })
        .collect();
    load_edges(&edges)
}

#[test]
fn products_triangles_and_cuts() {
    use jindou_model::Direction::{In, Out};
    let (n, (_folder, snapshot)) = (NODES, complete_graph());
    let keys = StartSource::Keys {
        predicate: PredicateId(0),
        direction: Out,
        graph: GraphRef::Default,
    };
    let start = StepKind::Start {
        to: Some(0),
        source: keys.clone(),
        within: None,
    };
    let (a, b) = (Operand::Slot(0), Operand::Slot(1));
    let cross = StepKind::Cross {
        to: 1,
        source: keys,
        within: None,
    };
    let product = plan_of(&snapshot, 2, vec![start.clone(), cross]);
    let expand = |to, lists| StepKind::Expand {
        to,
        lists,
        within: None,
    };
    let second = expand(1, vec![list(a, 0, Out)]);
    let third = expand(2, vec![list(b, 0, Out), list(a, 0, In)]);
    let triangle = plan_of(&snapshot, 3, vec![start, second, third]);
    let mut filtered = product.clone();
    if let Operator::Explore(e) = &mut filtered.root {
        e.steps[1].filters = vec![Condition::Same(a, b)];
        e.steps[1].live = vec![1];
        filtered.output = vec![1];
    }
    let gpu = GpuExecutor::new(device(5));
    let count = |plan: &Plan, table_bytes| run(&gpu, plan, &snapshot, table_bytes).unwrap();
    assert_eq!(count(&product, None).0.len() as u32, n * n);
    let own: Vec<Vec<u32>> = (1..=n).map(|i| vec![i]).collect();
    assert_eq!(count(&filtered, None).0, own);
    let want: Vec<Vec<u32>> = (1..=n)
        .flat_map(|x| (1..=n).flat_map(move |y| (1..=n).map(move |z| vec![x, y, z])))
        .filter(|t| t[0] != t[1] && t[1] != t[2] && t[2] != t[0])
        .collect();
    let (rows, cuts) = count(&triangle, None);
    assert_eq!((rows.len(), cuts), (want.len(), 0));
    assert_eq!(rows, want);
    let (rows, cuts) = count(&triangle, Some(250_000));
    assert_eq!(rows, want);
    assert!(cuts > 0, "nothing was cut");
    // With too little memory for one tile, the result must be an error that says so.
    let options = GpuOptions {
        table_bytes: Some(1000),
        ..GpuOptions::default()
    };
    let ran = gpu.execute(&triangle, &snapshot, ResultUse::Count, &options);
    assert!(matches!(ran, Err(Error::Limit(_))));
}

/// Paths of two edges with any predicates, starting from a scan of all edges.
#[test]
fn edges_of_any_predicate_and_cuts() {
    let (n, (_folder, snapshot)) = (NODES, complete_graph());
    let gpu = GpuExecutor::new(device(5));
    let start = StepKind::Start {
        to: None,
        source: StartSource::Unit,
        within: None,
    };
    let scan = StepKind::ScanAll {
        subject: 0,
        predicate: PredicateRef::Bind(1),
        object: 2,
        graph: GraphRef::Default,
    };
    let expand = StepKind::ExpandAny {
        anchor: Operand::Slot(2),
        direction: jindou_model::Direction::Out,
        predicate: PredicateRef::Bind(3),
        far: FarEnd::Bind(4),
        graph: GraphRef::Default,
    };
    let path = plan_of(&snapshot, 5, vec![start, scan, expand]);
    let want: Vec<Vec<u32>> = (1..=n)
        .flat_map(|x| (1..=n).flat_map(move |y| (1..=n).map(move |z| [x, y, z])))
        .filter(|t| t[0] != t[1] && t[1] != t[2])
        .map(|[x, y, z]| vec![x, PREDICATE, y, PREDICATE, z])
        .collect();
    for memory in [None, Some(250_000)] {
        let (mut rows, cuts) = run(&gpu, &path, &snapshot, memory).unwrap();
        rows.sort_unstable();
        assert_eq!(rows, want);
        assert_eq!(cuts > 0, memory.is_some(), "{cuts} cuts");
    }
}

#[test]
fn lubm_agrees_with_published_counts_and_the_cpu() {
    let (_folder, snapshot) = stored(&jindou_workloads::lubm::Lubm::new(1, 0));
    let gpu = GpuExecutor::new(device(0));
    for q in jindou_workloads::queries::lubm::QUERIES {
        let plan = planned(&snapshot, q.text);
        let (sum, _) = sum_on(&gpu, &plan, &snapshot).unwrap_or_else(|| panic!("{}", q.name));
        assert_eq!(sum, sum_here(&plan, &snapshot), "{}", q.name);
        if let Some(known) = q.rows(1) {
            assert_eq!(sum.0, known, "{}", q.name);
        }
    }
}
