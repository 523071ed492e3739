//! Encoding of plans: every step that the planner makes can be sent unless it contains an expression, and decoding
//! allocates memory in proportion to the bytes.

use jindou_cluster::testing::shards_of;
use jindou_model::{Progress, term};
use jindou_plan::operator::Walk;
use jindou_plan::wire::{Flaw, MAX_CONDITIONS, is_sendable, put_steps, steps};
use jindou_plan::{Condition, IdFilter, Operator, Plan, PlanOptions, Step, StepKind, parse, plan};
use jindou_store::shard::Sharding;
use jindou_store::testing::{TermQuad, canonical, changed, store_of};
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_testing::{Rng, counted_of_thread, quads, query};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use oxrdf::Quad;
use std::collections::BTreeMap;

/// Peak of the bytes that decoding allocates.
fn memory_of(bytes: &[u8]) -> usize {
    let (_, most) = counted_of_thread(|| steps(bytes));
    most
}

/// Numbers of steps by kind, of steps that can be sent or not, and of steps with restrictions on data that updates
/// changed.
#[derive(Default)]
struct Tally {
    kinds: BTreeMap<&'static str, usize>,
    sent: usize,
    stay: usize,
    touched: usize,
}

fn name(kind: &StepKind) -> &'static str {
    match kind {
        StepKind::Start { .. } => "start",
        StepKind::Expand { .. } => "expand",
        StepKind::Check { .. } => "check",
        StepKind::Restrict { .. } => "restrict",
        StepKind::ExpandAny { .. } => "expand any",
        StepKind::ScanAll { .. } => "scan",
        StepKind::Cross { .. } => "cross",
    }
}

fn within(kind: &StepKind) -> Option<&IdFilter> {
    match kind {
        StepKind::Start { within, .. }
        | StepKind::Expand { within, .. }
        | StepKind::Cross { within, .. } => within.as_ref(),
        StepKind::Restrict { within, .. } => Some(within),
        StepKind::Check { .. } | StepKind::ExpandAny { .. } | StepKind::ScanAll { .. } => None,
    }
}

fn has_expression(c: &Condition) -> bool {
    match c {
        Condition::General(_) => true,
        Condition::And(all) | Condition::Or(all) => all.iter().any(has_expression),
        Condition::Not(inner) => has_expression(inner),
        _ => false,
    }
}

impl Tally {
    /// Tests all lists of steps in a plan.
    fn plan(&mut self, plan: &Plan, text: &str) {
        plan.root.walk(&mut |op| {
            match op {
                Operator::Explore(e) => self.steps(&e.steps, text),
                Operator::Steps(s) => self.steps(&s.steps, text),
                _ => {}
            }
            Walk::Into
        });
    }

    fn steps(&mut self, all: &[Step], text: &str) {
        for step in all {
            let stays = step.filters.iter().any(has_expression);
            assert_eq!(is_sendable(step), !stays, "{text}\n{step:#?}");
            let mut bytes = vec![];
            match put_steps(std::slice::from_ref(step), &mut bytes) {
                Ok(()) => self.sent += 1,
                Err(e) => {
                    assert_eq!(e.flaw, Flaw::Expression, "{text}\n{step:#?}");
                    self.stay += 1;
                }
            }
            *self.kinds.entry(name(&step.kind)).or_default() += 1;
            let exact = within(&step.kind).is_none_or(IdFilter::is_exact);
            self.touched += usize::from(!exact);
        }
        let sendable: Vec<Step> = all.iter().filter(|s| is_sendable(s)).cloned().collect();
        let mut bytes = vec![];
        put_steps(&sendable, &mut bytes).unwrap();
        let read = steps(&bytes).unwrap_or_else(|| panic!("not read\n{text}\n{sendable:#?}"));
        let silent = |s: Step| Step {
            why: String::new(),
            ..s
        };
        let sendable: Vec<Step> = sendable.into_iter().map(silent).collect();
        assert_eq!(read, sendable, "{text}");
    }

    fn ask(&mut self, text: &str, snapshot: &Snapshot, options: &PlanOptions) {
        let parsed = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let planned = plan(&parsed, snapshot, options).unwrap_or_else(|e| panic!("{text}: {e}"));
        self.plan(&planned, text);
    }
}

/// Changes that remove some of the store's quads, and add quads with the ends of others.
fn changes(data: &[Quad], rng: &mut Rng) -> Vec<(TermQuad, bool)> {
    let rdf_type = term::rdf_type();
    let mut changes = vec![];
    for _ in 0..=rng.below(12) {
        let mut quad = canonical(&data[rng.below(data.len())]);
        let other = canonical(&data[rng.below(data.len())]);
        let comes = rng.chance(60);
        if comes {
            let [subject, _, object, _] = other;
            quad[0] = subject;
            if quad[1] != rdf_type {
                quad[2] = object;
            }
        }
        changes.push((quad, comes));
    }
    changes
}

#[test]
fn plans_of_random_queries_come_back() {
    let mut tally = Tally::default();
    for seed in 0..25 {
        let mut rng = Rng::new(seed);
        let data = quads(&mut rng);
        let (_folder, base) = store_of(&data);
        let plain = Snapshot::of_base(base.clone());
        let patched = changed(plain.clone(), changes(&data, &mut rng));
        let (_shards, sharded) = shards_of(&data, Sharding::new(3), 1);
        let options = PlanOptions {
            union_default: rng.chance(40),
            ..Default::default()
        };
        for _ in 0..30 {
            let q = query(&mut rng, &data);
            for snapshot in [&plain, &patched, &sharded] {
                tally.ask(&q.text, snapshot, &options);
            }
        }
        for text in [
            "SELECT * { ?s a ?c . ?s ?p ?o . ?x a <http://e/c0> }",
            "SELECT * { ?a <http://e/p0> ?b . ?b <http://e/p0> ?c . ?c <http://e/p0> ?a }",
            "SELECT * FROM NAMED <http://e/g0> { GRAPH ?g { ?s ?p ?o } }",
            "SELECT * FROM <http://e/g0> FROM <http://e/g1> { ?s <http://e/p1> ?o . ?s a ?c }",
            "SELECT * { ?s <http://e/p1> ?o FILTER(?o > 1 && !(isIRI(?s) || ?o = \"a\")) }",
        ] {
            for snapshot in [&plain, &patched, &sharded] {
                tally.ask(text, snapshot, &options);
            }
        }
    }
    let Tally {
        kinds,
        sent,
        stay,
        touched,
    } = tally;
    println!("{sent} steps sent, {stay} with expressions stay, {touched} touched; {kinds:?}");
    assert_eq!(kinds.len(), 7, "{kinds:?}");
    assert!(kinds.values().all(|n| *n >= 20), "{kinds:?}");
    assert!(stay > 20 && sent > 20 * stay / 3 && touched > 20);
}

#[test]
fn plans_of_lubm_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lubm");
    let options = LoadOptions::default().with_threads(2);
    load(&store, &Lubm::new(1, 0), &options, &Progress::default()).unwrap();
    let snapshot = Snapshot::of_base(open(&store).unwrap());
    let mut tally = Tally::default();
    for query in &QUERIES {
        tally.ask(query.text, &snapshot, &PlanOptions::default());
    }
    assert!(tally.sent >= 20 && tally.stay == 0, "{}", tally.sent);
}

/// The planner does not nest conditions more deeply than the limit; below it, it makes a general expression.
#[test]
fn no_plan_is_too_deep() {
    let (_folder, base) = store_of(&quads(&mut Rng::new(3)));
    let snapshot = Snapshot::of_base(base);
    let mut tally = Tally::default();
    for levels in 50..90 {
        for inner in ["isIRI(?o)", "?o IN (<http://e/v1>, <http://e/v2>)"] {
            let (open, close) = ("!(".repeat(levels), ")".repeat(levels));
            let text = format!("SELECT * {{ ?s ?p ?o FILTER({open}{inner}{close}) }}");
            tally.ask(&text, &snapshot, &PlanOptions::default());
        }
    }
    assert!(tally.stay > 10 && tally.sent > 10);
}

/// Lists with the smallest possible members, and lists that claim to be longer than they are.
#[test]
fn bytes_take_little_memory() {
    let step = |kind: &[u8], filters: &[u8]| {
        let live = [0; 4];
        let estimates = [0; 16];
        [kind, filters, &live, &estimates].concat()
    };
    let none = [0; 4];
    let message = |count: u32, body: &[u8]| [&count.to_le_bytes()[..], body].concat();
    let restrict = |members: u32| {
        let mut kind = vec![3, 1, 0, 0, 0, 0, 0];
        kind.extend_from_slice(&members.to_le_bytes());
        kind.resize(kind.len() + 5 * members as usize, 0);
        kind
    };
    let many = 100_000;
    let units = step(&[0; 4], &none).repeat(many);
    let nots = [&[1, 0, 0, 0][..], &[6; 60], &[3, 1, 0]].concat();
    let nots = step(&[0; 4], &nots).repeat(MAX_CONDITIONS / 62);
    let mut lists = vec![1, 1, 0];
    lists.extend_from_slice(&(many as u32).to_le_bytes());
    lists.extend_from_slice(&[0, 2, 0, 0, 0, 0, 0, 0, 0].repeat(many));
    lists.push(0);
    let whole = [
        message(many as u32, &units),
        message((MAX_CONDITIONS / 62) as u32, &nots),
        message(1, &step(&restrict(many as u32), &none)),
        message(1, &step(&lists, &none)),
    ];
    for bytes in &whole {
        assert!(steps(bytes).is_some());
        check(bytes);
    }
    // Lengths as large as the remaining bytes allow, in each list.
    let rest = vec![0xFF; 1 << 20];
    let mut greedy = message(1 << 15, &[3, 1, 0, 0, 0, 0, 0]);
    greedy.extend_from_slice(&(1u32 << 17).to_le_bytes());
    greedy.extend_from_slice(&(1u32 << 16).to_le_bytes());
    greedy.extend_from_slice(&rest);
    assert!(steps(&greedy).is_none());
    check(&greedy);
    for each in [1, 50, 1000, 4096, 100_000] {
        let mut deep = message(1, &[0; 4]);
        for _ in 0..80 {
            deep.extend_from_slice(&u32::to_le_bytes(each));
            deep.push(4);
        }
        deep.extend_from_slice(&rest);
        assert!(steps(&deep).is_none());
        check(&deep);
    }

    fn check(bytes: &[u8]) {
        let most = memory_of(bytes);
        println!("{} bytes took {most}", bytes.len());
        assert!(
            most <= 25 * bytes.len() + (256 << 10),
            "{most} of {}",
            bytes.len()
        );
    }
}
