use super::super::super::counting::Counting;
use super::super::schedule::{Cost, Fabric, Machines, alone};
use super::*;
use jindou::{LoadOptions, Progress, Sharding};
use jindou_testing::process_time;
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::query;

const FREE: Fabric = Fabric {
    name: "free",
    latency: 0.0,
    byte: 0.0,
    asking: Cost {
        fixed: 0.0,
        sent: 0.0,
        received: 0.0,
    },
    serving: Cost {
        fixed: 0.0,
        sent: 0.0,
        received: 0.0,
    },
};

fn machines(servers: usize, cores: usize) -> Machines {
    Machines {
        servers,
        cores,
        workers: 1,
    }
}

/// A recording has all messages and bytes that were counted on the way, and no more time than the process took. One server of one core
/// without a network takes the sum of the work; more servers take no longer.
#[test]
fn recordings_have_what_was_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let options = LoadOptions::default().with_sharding(Some(Sharding::new(3)));
    Database::load(&store, &Lubm::new(2, 0), &options, &Progress::default()).unwrap();
    let counting = OnceLock::new();
    let recorded = Recorded::open_over(&store, |far| {
        let counted = counting.get_or_init(|| Counting::over(far));
        Arc::clone(counted) as Arc<dyn ShardClient>
    })
    .unwrap();
    let counting = counting.get().unwrap();
    let mut asked = 0;
    for name in ["L1", "L2", "L4", "L5", "L6", "L7"] {
        let q = query(name).unwrap();
        let plan = recorded.db.plan(q.text, &super::options()).unwrap();
        for mode in [ShardMode::Fork, ShardMode::InPlace, ShardMode::Dynamic] {
            let options = super::options().with_shard_mode(mode);
            counting.take();
            let begun = process_time();
            let trace = recorded.once(&plan, &options).unwrap();
            let took = (process_time() - begun).as_nanos() as u64;
            let [_, messages, bytes] = counting.take();
            let sums = trace.sums();
            assert_eq!((sums.messages, sums.bytes), (messages, bytes), "{name}");
            asked += messages;
            assert!(q.rows(2).is_none_or(|n| n == trace.rows), "{name}");
            assert!(0 < sums.work && sums.work <= took, "{name}: {sums:?}");
            let time =
                |servers, cores| alone(&trace, FREE, machines(servers, cores)).unwrap() as u64;
            let one = time(1, 1);
            assert!(
                one <= sums.work && one >= sums.work / 10 * 8,
                "{name}: {one} of {sums:?}"
            );
            assert!(time(3, 1) <= sums.work && time(3, 8) <= sums.work, "{name}");
        }
    }
    assert!(asked > 50, "{asked}");
}
