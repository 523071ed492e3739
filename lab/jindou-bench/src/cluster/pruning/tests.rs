use super::*;
use jindou::parse::{Format, Sources};
use jindou::{LoadOptions, Progress};
use jindou_model::Direction;
use jindou_plan::Step;

/// The paper's example (§2.2, figures 1 and 3): Kurt has no advisor, and Raven's does not teach what Raven takes.
const TEXT: &str = "
@prefix e: <http://e/> .
e:Erik e:to e:DS . e:Logan e:to e:OS .
e:Kurt e:tc e:DS . e:Raven e:tc e:OS . e:Bobby e:tc e:OS .
e:Raven e:ad e:Erik . e:Bobby e:ad e:Logan .
";

fn store(dir: &Path, shards: u32) -> Database {
    let source = Sources::builder().text("example.ttl", TEXT.as_bytes(), Format::Turtle);
    let options = LoadOptions::default().with_sharding(Some(Sharding::new(shards)));
    Database::load(
        dir,
        &source.build().unwrap(),
        &options,
        &Progress::default(),
    )
    .unwrap();
    Database::open(dir).unwrap()
}

fn list(db: &Database, predicate: &str, direction: Direction, anchor: Slot) -> EdgeList {
    let text = format!("SELECT * {{ ?s <http://e/{predicate}> ?o }}");
    let plan = db.plan(&text, &QueryOptions::default()).unwrap();
    let steps = exploration(&plan).unwrap();
    let mut found = None;
    for step in &steps.steps {
        if let StepKind::Expand { lists, .. } = &step.kind {
            found = lists.first().map(|l| l.predicate);
        }
    }
    EdgeList {
        anchor: Operand::Slot(anchor),
        predicate: found.unwrap(),
        direction,
        graph: GraphRef::Default,
    }
}

fn step(kind: StepKind) -> Step {
    Step {
        kind,
        filters: Vec::new(),
        live: vec![0, 1, 2],
        rows: 1.0,
        cost: 1.0,
        why: String::new(),
    }
}

/// Teacher to course, course to student, student to teacher: two triples, three, and two that nothing but a join can tell from answers.
/// Of their 7 triples all that are not at the first server are sent, and the values before each exploration from another variable.
#[test]
fn triples_of_the_papers_example() {
    let folder = tempfile::tempdir().unwrap();
    let whole = store(&folder.path().join("whole"), 1);
    let cut = store(&folder.path().join("cut"), 2);
    let [x, y, z] = [0, 1, 2];
    let teaches = list(&whole, "to", Direction::Out, x);
    let steps = Exploration {
        steps: vec![
            step(StepKind::Start {
                to: Some(x),
                source: StartSource::Keys {
                    predicate: teaches.predicate,
                    direction: Direction::Out,
                    graph: GraphRef::Default,
                },
                within: None,
            }),
            step(StepKind::Expand {
                to: y,
                lists: vec![teaches],
                within: None,
            }),
            step(StepKind::Expand {
                to: z,
                lists: vec![list(&whole, "tc", Direction::In, y)],
                within: None,
            }),
            step(StepKind::Check {
                list: list(&whole, "ad", Direction::Out, z),
                other: Operand::Slot(x),
            }),
        ],
        empty: None,
    };
    let (snapshot, shards) = (whole.snapshot(), cut.snapshot());
    let blocks = shards.as_sharded().unwrap().blocks();
    let found = Model::new(&snapshot, blocks).run(&steps).unwrap();
    assert_eq!(found.triples, 7);

    // By hand, with the owners as they are.
    let owner = |name: &str| {
        let v = snapshot.lookup(format!("<http://e/{name}").as_bytes());
        let v = v.unwrap_or_else(|| panic!("{name} is not in the store"));
        blocks.place(v.0).unwrap().shard
    };
    let read_at = ["Erik", "Logan", "DS", "OS", "OS", "Raven", "Bobby"];
    let far = read_at.iter().filter(|n| owner(n) != 0).count() as u64;
    let moved = [
        ("Erik", "DS"),
        ("Logan", "OS"),
        ("DS", "Kurt"),
        ("OS", "Raven"),
        ("OS", "Bobby"),
    ];
    let values = moved.iter().filter(|(a, b)| owner(a) != owner(b)).count() as u64;
    assert_eq!((found.joined, found.values), (far, values));
    assert_eq!(found.bytes(), 8 * far + 4 * values);

    let text = "PREFIX e: <http://e/> SELECT * { ?x e:to ?y . ?z e:tc ?y ; e:ad ?x }";
    let rows = |db: &Database| {
        let plan = db.plan(text, &QueryOptions::default()).unwrap();
        db.checksum(&plan, &QueryOptions::default()).unwrap().rows
    };
    assert_eq!((rows(&whole), rows(&cut)), (1, 1));
}

#[test]
fn ids_are_found_again() {
    let mut ids = Ids::default();
    let all = [0, 63, 64, 1_000, 70_000];
    all.iter().for_each(|&v| ids.insert(v));
    assert_eq!(ids.iter().collect::<Vec<_>>(), all);
    assert!(ids.has(64) && !ids.has(65) && !ids.has(u32::MAX));
}
