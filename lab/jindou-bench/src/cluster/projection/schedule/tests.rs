use super::super::trace::{Job, PartTrace};
use super::*;

const NET: Fabric = Fabric {
    name: "test",
    latency: 1_000.0,
    byte: 2.0,
    asking: Cost {
        fixed: 400.0,
        sent: 1.0,
        received: 3.0,
    },
    serving: Cost {
        fixed: 300.0,
        sent: 0.5,
        received: 0.1,
    },
};

fn machines(servers: usize, cores: usize, workers: usize) -> Machines {
    Machines {
        servers,
        cores,
        workers,
    }
}

fn message(to: u32, tells: &[u32], answer: Vec<Op>) -> Message {
    Message {
        to,
        tells: tells.to_vec(),
        sent: 10,
        received: 100,
        answer,
    }
}

fn alone(trace: &Trace, fabric: Fabric, machines: Machines) -> u64 {
    super::alone(trace, fabric, machines).unwrap() as u64
}

fn only_home(ops: Vec<Op>) -> Trace {
    Trace {
        ops,
        ..Trace::default()
    }
}

fn rows(cause: Option<u32>, ops: Vec<Op>) -> Job {
    Job {
        kind: TraceKind::Rows,
        cause,
        ops,
    }
}

/// From the message's first nanosecond at the one side to the answer at the other, without the answer's own work: half of asking and the
/// bytes, the link, the way; the same for serving; and back.
const THERE: u64 = (200 + 10) + 20 + 1_000 + (150 + 5);
const BACK: u64 = (150 + 10) + 200 + 1_000 + (200 + 300);

#[test]
fn a_message_takes_the_sum_of_its_parts() {
    let t = only_home(vec![
        Op::Work(700),
        Op::Round(vec![message(1, &[], vec![Op::Work(5_000)])]),
        Op::Work(200),
    ]);
    let time = alone(&t, NET, machines(2, 1, 1));
    assert_eq!(time, 700 + THERE + 5_000 + BACK + 200);
}

/// An answer for which its shard asks a third one takes that round as well.
#[test]
fn an_answer_may_ask_itself() {
    let inner = Op::Round(vec![message(2, &[], vec![Op::Work(50)])]);
    let t = only_home(vec![Op::Round(vec![message(
        1,
        &[],
        vec![Op::Work(5), inner, Op::Work(6)],
    )])]);
    let time = alone(&t, NET, machines(3, 1, 1));
    assert_eq!(time, 2 * (THERE + BACK) + 5 + 50 + 6);
}

/// Two messages leave one core one after the other; their links are one, too, and their answers are made at once.
#[test]
fn servers_of_a_round_work_at_the_same_time() {
    let ask = |a, b| {
        let of = |to| message(to, &[], vec![Op::Work(5_000)]);
        only_home(vec![Op::Round(vec![of(a), of(b)])])
    };
    let (apart, together) = (ask(1, 2), ask(1, 1));
    let apart = alone(&apart, NET, machines(3, 1, 1));
    // The second is 210 behind when it leaves; the core that asked takes the first answer's 500 before the second one's, which comes 210
    // after the first.
    assert_eq!(apart, THERE + 5_000 + BACK + 500);
    // On one core the second message is taken, and the first answer leaves, before the second answer is made.
    let together = alone(&together, NET, machines(3, 1, 1));
    assert_eq!(together, THERE + 5_000 + (155 + 160) + 5_000 + BACK);
}

/// Shard 0 starts a part on shard 1, which reports; the coordinator waits for the report, not for the answer.
#[test]
fn a_part_is_caused_and_waited_for() {
    let t = Trace {
        ops: vec![
            Op::Round(vec![message(1, &[0], vec![Op::Work(30)])]),
            Op::Work(40),
            Op::Await(1),
            Op::Work(7),
        ],
        parts: vec![PartTrace {
            shard: 1,
            jobs: vec![
                rows(Some(0), vec![Op::Work(100_000)]),
                Job {
                    kind: TraceKind::Flush,
                    cause: None,
                    ops: vec![Op::Round(vec![message(0, &[1], vec![Op::Work(9)])])],
                },
            ],
        }],
        waits: vec![Some(0), None],
        ..Trace::default()
    };
    let time = alone(&t, NET, machines(2, 1, 1));
    // The answer to the start leaves before the part works.
    let begun = THERE + 30;
    let told = begun + 100_000 + 160 + THERE + 9;
    assert_eq!(time, told + 7 + 160);
    // Asked at the other server it is the same, turned by one.
    let mut s = Simulation::new(NET, machines(2, 1, 1));
    s.ask(3, 1, &t);
    let ended = s.next_ended().unwrap();
    assert_eq!((ended.ended, ended.client), (time, 3));
    assert!(s.next_ended().is_none());
}

/// Work that nothing causes: as many threads share it as a part may have, and as there are cores.
#[test]
fn workers_share_a_part_and_cores_bound_them() {
    let mut jobs: Vec<Job> = (0..64)
        .map(|_| rows(None, vec![Op::Work(10_000)]))
        .collect();
    jobs.push(Job {
        kind: TraceKind::Flush,
        cause: None,
        ops: vec![Op::Work(500), Op::Tell(0)],
    });
    let t = Trace {
        ops: vec![Op::Await(0)],
        parts: vec![PartTrace { shard: 0, jobs }],
        waits: vec![None],
        ..Trace::default()
    };
    let time = |cores, workers| alone(&t, NET, machines(1, cores, workers));
    assert_eq!(time(4, 1), 640_500);
    assert_eq!(time(4, 4), 160_500);
    assert_eq!(time(2, 4), 320_500);
}

/// Rows whose message has not come do not keep those that have come.
#[test]
fn rows_are_taken_as_they_come() {
    let t = Trace {
        ops: vec![
            Op::Work(1_000),
            Op::Tell(1),
            Op::Work(9_000),
            Op::Tell(0),
            Op::Await(2),
        ],
        parts: vec![PartTrace {
            shard: 0,
            jobs: vec![
                rows(Some(0), vec![Op::Work(10), Op::Tell(2)]),
                rows(Some(1), vec![Op::Work(20)]),
            ],
        }],
        waits: vec![Some(0), Some(0), None],
        ..Trace::default()
    };
    // With two cores the second job is done long before the first one may begin.
    assert_eq!(alone(&t, NET, machines(1, 2, 1)), 10_010);
}

#[test]
fn clients_share_a_core() {
    let t = only_home(vec![Op::Work(900)]);
    let mut s = Simulation::new(NET, machines(1, 1, 1));
    for client in 0..3 {
        s.ask(client, 0, &t);
    }
    let ended: Vec<u64> = std::iter::from_fn(|| s.next_ended())
        .map(|d| d.ended)
        .collect();
    assert_eq!(ended, [900, 1_800, 2_700]);
    assert_eq!(s.worked(), 2_700);
}
