//! Runs random queries over random small graphs, and compares the answers with `spareval`.

use crate::support::*;

enum Asked {
    Agreed,
    /// The query has more than [`MOST_ROWS`] rows.
    PassedOver,
    NotNative,
}

/// Runs one question in all ways and compares its answers.
fn ask(world: &World, q: &Question) -> Result<Asked, String> {
    let Some(plan) = planned(world, &q.text) else {
        return Ok(Asked::NotNative);
    };
    if oracle(world, &q.probe, q.from).1.len() > MOST_ROWS {
        return Ok(Asked::PassedOver);
    }
    let (vars, all) = oracle(world, &q.unordered, q.from);
    let rows_left = all.len().saturating_sub(q.offset);
    let want_rows = q.limit.map_or(rows_left, |l| l.min(rows_left));
    let want = counted(&all);
    let key = q
        .order
        .as_ref()
        .and_then(|(v, _)| vars.iter().position(|w| *w == v[1..]));
    for (plan, options) in ways(&plan) {
        let got = answer(world, &plan, &options).map_err(|e| e.to_string())?;
        if got.len() != want_rows {
            return Err(format!("{} rows in place of {want_rows}", got.len()));
        }
        let counts = counted(&got);
        if q.limit.is_none() && q.offset == 0 {
            if counts != want {
                return Err(format!("got {counts:?}\nnot {want:?}"));
            }
        } else if let Some(bad) = counts
            .iter()
            .find(|(r, n)| want.get(*r).is_none_or(|w| w < n))
        {
            return Err(format!("{} times {}, not in {want:?}", bad.1, bad.0));
        }
        if let (Some(k), Some((_, down))) = (key, &q.order) {
            for w in got.windows(2) {
                let (a, b) = if *down {
                    (&w[1][k], &w[0][k])
                } else {
                    (&w[0][k], &w[1][k])
                };
                if !in_order(a, b) {
                    return Err(format!("{a:?} comes before {b:?}"));
                }
            }
            // A row that a LIMIT left out must not sort before one that it kept.
            if let (Some(last), false) = (got.last(), got.is_empty()) {
                let before = all
                    .iter()
                    .filter(|r| {
                        let (a, b) = if *down {
                            (&last[k], &r[k])
                        } else {
                            (&r[k], &last[k])
                        };
                        !in_order(b, a)
                    })
                    .count();
                if before > q.offset + got.len() {
                    return Err(format!("{before} rows belong before the last one"));
                }
            }
        }
    }
    Ok(Asked::Agreed)
}

fn many(worlds: u64, questions: usize, seed: u64, over: fn(World) -> World) {
    let (mut agreed, mut passed_over, mut total, mut wrong) = (0, 0, 0, 0);
    for w in 0..worlds {
        let world = over(World::random(&mut Rng(seed
            .wrapping_add(w)
            .wrapping_mul(0x1234_5678_9ABC_DEF1))));
        let mut rng = Rng(seed ^ w << 20);
        for _ in 0..questions {
            let q = Question::random(&mut rng, world.large);
            total += 1;
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ask(&world, &q)));
            match result {
                Ok(Ok(Asked::Agreed)) => agreed += 1,
                Ok(Ok(Asked::PassedOver)) => passed_over += 1,
                Ok(Ok(Asked::NotNative)) => {}
                Ok(Err(why)) => {
                    wrong += 1;
                    if wrong <= 5 {
                        println!("seed {seed} world {w}: {}\n{why}", q.text);
                        if world.quads.len() < 30 {
                            for quad in &world.quads {
                                println!(
                                    "  {:?}",
                                    quad.each_ref().map(|t| String::from_utf8_lossy(t))
                                );
                            }
                        }
                    }
                }
                Err(_) => {
                    wrong += 1;
                    println!("seed {seed} world {w}: panic in {}", q.text);
                }
            }
        }
    }
    println!("{total} questions: {agreed} agreed, {passed_over} passed over, {wrong} wrong");
    assert_eq!(wrong, 0);
    assert!(
        agreed * 10 > total * 8,
        "only {agreed} of {total} were compared"
    );
}

#[test]
fn random_queries_over_patched_graphs_agree_with_spareval() {
    many(25, 80, 1, |world| world);
}

#[test]
fn random_queries_over_a_graph_that_is_no_store_agree_with_spareval() {
    many(25, 80, 1_000, World::on_heap);
}

/// `cargo test --release -p jindou-engine --test all brute_force:: -- --ignored --nocapture`
#[test]
#[ignore = "long: 100,000 cases"]
fn a_hundred_thousand_random_queries_agree_with_spareval() {
    let seed = jindou_testing::from_environment("JINDOU_SEED", 7);
    many(1000, 100, seed, |world| world);
    many(1000, 100, seed, World::on_heap);
}
