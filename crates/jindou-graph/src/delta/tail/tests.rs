//! Tests of the terms that updates added.

use super::*;

#[test]
fn terms_are_found_and_old_versions_stay() {
    let mut tail = TailTerms::default();
    let mut kept = vec![];
    let name = |i: u32| format!("<http://e/{i}").into_bytes();
    let mut n = 0;
    for round in 0..60 {
        let terms: Vec<Vec<u8>> = (n..n + round * 29).map(name).collect();
        tail.put(&[], &terms);
        n += round * 29;
        if round % 20 == 7 {
            kept.push((tail.clone(), n));
        }
    }
    let parts: Vec<&[u8]> = tail.iter().collect();
    let ends: Vec<u64> = parts
        .iter()
        .scan(0, |at, t| {
            *at += t.len() as u64;
            Some(*at)
        })
        .collect();
    let order: Vec<u64> = tail.order().collect();
    let bytes = parts.concat();
    let mut again = TailTerms::from_parts(&bytes, &ends, &order).unwrap();
    assert!(TailTerms::from_parts(&bytes[1..], &ends, &order).is_none());
    assert!(TailTerms::from_parts(&bytes, &ends[1..], &order).is_none());
    again.put(&[], &[name(n), name(n + 1)]);
    kept.push((again, n + 2));
    kept.push((tail, n));
    for (tail, n) in kept {
        assert_eq!(tail.len(), n);
        for i in 0..n {
            let id = VertexId(FIRST_TAIL_ID + i);
            assert_eq!(tail.lookup(&name(i)), Some(id));
            assert_eq!(tail.term(id), Some(&name(i)[..]));
        }
        assert_eq!(tail.lookup(&name(n)), None);
        assert_eq!(tail.term(VertexId(FIRST_TAIL_ID + n)), None);
        assert!(tail.bytes() > 20 * n as usize);
    }
}

/// Random frees and new terms, compared with a list of slots; kept versions and files stay as they were.
#[test]
fn freed_numbers_are_reused_lowest_first() {
    let mut random = numbers_from(7);
    let mut slots: Vec<Option<Vec<u8>>> = vec![];
    let mut tail = TailTerms::default();
    let mut kept: Vec<(TailTerms, Vec<Option<Vec<u8>>>)> = vec![];
    let mut next = 0u32;
    for round in 0..400 {
        let mut terms: Vec<Vec<u8>> = vec![];
        for _ in 0..random(90) {
            terms.push(format!("<http://e/{next}").into_bytes());
            next += 1;
        }
        let limit = 3000;
        let numbers = tail.next_numbers(terms.len() as u32, limit);
        let free: Vec<u32> = (0..limit)
            .filter(|&n| slots.get(n as usize).is_none_or(Option::is_none))
            .take(terms.len())
            .collect();
        if free.len() < terms.len() {
            assert_eq!(numbers, None);
        } else {
            let numbers = numbers.unwrap();
            let all: Vec<u32> = numbers.iter().flat_map(|r| r[0]..r[1]).collect();
            assert_eq!(all, free);
            let reused: Vec<[u32; 2]> = numbers
                .iter()
                .copied()
                .filter(|r| r[0] < tail.len())
                .collect();
            assert!(reused.iter().all(|&r| tail.are_free(r)));
            tail.put(&reused, &terms);
            for (n, term) in all.into_iter().zip(terms) {
                slots.resize(slots.len().max(n as usize + 1), None);
                slots[n as usize] = Some(term);
            }
        }
        let (share, from) = (random(4), random(slots.len() as u32 + 1));
        let mut runs: Vec<[u32; 2]> = vec![];
        for n in from..slots.len() as u32 {
            if random(5) < share || slots[n as usize].is_none() {
                continue;
            }
            slots[n as usize] = None;
            match runs.last_mut() {
                Some(last) if last[1] == n => last[1] = n + 1,
                _ => runs.push([n, n + 1]),
            }
        }
        tail.free(&runs);
        assert!(runs.iter().all(|&r| tail.are_free(r)));
        if round % 37 == 0 {
            kept.push((tail.clone(), slots.clone()));
            let ends: Vec<u64> = tail
                .iter()
                .scan(0, |at, t| {
                    *at += t.len() as u64;
                    Some(*at)
                })
                .collect();
            let (bytes, order) = (tail.iter().collect::<Vec<_>>().concat(), tail.order());
            let order: Vec<u64> = order.collect();
            if let Some((_, less)) = order.split_last() {
                assert!(TailTerms::from_parts(&bytes, &ends, less).is_none());
            }
            tail = TailTerms::from_parts(&bytes, &ends, &order).unwrap();
        }
    }
    kept.push((tail, slots));
    for (tail, slots) in kept {
        assert_eq!(tail.len() as usize, slots.len());
        let free = slots.iter().filter(|s| s.is_none()).count();
        assert_eq!(tail.free_count() as usize, free);
        for (n, slot) in (0..).zip(&slots) {
            assert_eq!(tail.term(VertexId(FIRST_TAIL_ID + n)), slot.as_deref());
            assert_eq!(tail.are_free([n, n + 1]), slot.is_none());
            if let Some(term) = slot {
                assert_eq!(tail.lookup(term), Some(VertexId(FIRST_TAIL_ID + n)));
            }
        }
    }
}

#[test]
fn marks_tell_which_terms_were_replaced() {
    let name = |i: u32| format!("<http://e/{i}").into_bytes();
    let mut tail = TailTerms::default();
    tail.put(&[], &(0..500).map(name).collect::<Vec<_>>());
    let marks: Vec<TermsMark> = (0..4).map(|p| tail.mark(p)).collect();
    let same = |tail: &TailTerms| -> Vec<bool> {
        let parts = (0..).zip(&marks);
        parts.map(|(p, mark)| tail.is_marked(p, mark)).collect()
    };
    let before = tail.clone();
    tail.free(&[[130, 140], [300, 301]]);
    assert_eq!(same(&tail), [true, false, false, true]);
    tail.put(&[[130, 131]], &[name(900)]);
    assert_eq!(same(&tail), [true, false, false, true]);
    assert_eq!(same(&before), [true; 4]);
    assert!(!tail.is_marked(9, &tail.mark(9)));
}

/// Reads the terms again from what a file would have.
fn again(tail: &TailTerms) -> TailTerms {
    let (mut present, mut ends, mut bytes) = (vec![], vec![], vec![]);
    for (n, term) in (0..).zip(tail.iter()).filter(|(_, t)| !t.is_empty()) {
        push_number(&mut present, n);
        bytes.extend_from_slice(term);
        ends.push(bytes.len() as u64);
    }
    let order: Vec<u64> = tail.order().collect();
    let (free, shared): (Vec<_>, Vec<_>) = (tail.free_runs().collect(), tail.shared().collect());
    let runs = TermRuns {
        len: tail.len(),
        present: &present,
        free: &free,
        elsewhere: tail.elsewhere_count(),
        shared: &shared,
    };
    let changed = [
        TermRuns {
            len: runs.len + 1,
            ..runs
        },
        TermRuns {
            present: present.get(1..).unwrap_or(&[[0, 1]]),
            ..runs
        },
        TermRuns {
            free: free.get(1..).unwrap_or(&[[0, 1]]),
            ..runs
        },
        TermRuns {
            elsewhere: runs.elsewhere ^ 1,
            ..runs
        },
    ];
    for bad in changed {
        assert!(TailTerms::from_runs(&bytes, &ends, &order, &bad).is_none());
    }
    TailTerms::from_runs(&bytes, &ends, &order, &runs).unwrap()
}

/// Servers with the text of some parts, compared with one that has all: random new, freed and shared terms, merges
/// after which a server drops text, and restarts from files.
#[test]
fn servers_with_some_texts_know_the_same_numbers() {
    let mut random = numbers_from(3);
    let owner = |n: u32| n / TailTerms::PART % 3;
    let held: [&[u32]; 4] = [&[0, 1, 2], &[0], &[1], &[1, 2]];
    let mut servers = [(); 4].map(|()| TailTerms::default());
    let (mut next, mut dropped) = (0u32, 0);
    for round in 0..120 {
        let then = servers.clone();
        for _ in 0..random(3) {
            let whole = &servers[0];
            // Some terms come back after they were freed, possibly with the same number.
            let count = random(200);
            let mut terms: Vec<Vec<u8>> = vec![];
            for _ in 0..count {
                next += 1;
                let n = if random(3) == 0 { random(next) } else { next };
                let term = format!("<http://e/{n}").into_bytes();
                if whole.lookup(&term).is_none() && !terms.contains(&term) {
                    terms.push(term);
                }
            }
            let numbers = whole.next_numbers(terms.len() as u32, 1 << 20).unwrap();
            let len = whole.len();
            let reused: Vec<[u32; 2]> = numbers.iter().copied().filter(|r| r[0] < len).collect();
            let all = numbers.iter().flat_map(|r| r[0]..r[1]);
            let shared: Vec<u32> = all.filter(|_| random(9) == 0).collect();
            for server in &mut servers {
                assert!(reused.iter().all(|&r| server.are_free(r)));
                server.put(&reused, &terms);
                server.share(&shared);
            }
            let (from, share) = (random(next + 1), random(3));
            let mut runs: Vec<[u32; 2]> = vec![];
            for n in from..servers[0].len() {
                if random(5) < share && servers[0].get(n).is_some() {
                    push_number(&mut runs, n);
                }
            }
            servers.iter_mut().for_each(|server| server.free(&runs));
        }
        let whole = servers[0].clone();
        for (server, (held, then)) in servers.iter_mut().zip(held.iter().zip(then)) {
            if random(2) == 0 && round > 0 {
                let base = then.with_texts(|n| held.contains(&owner(n)));
                let files = held
                    .iter()
                    .map(|&s| again(&then.with_texts(|n| owner(n) == s)));
                let opened = files.reduce(|a, b| a.with_texts_of(&b).unwrap()).unwrap();
                assert!(opened.iter().eq(base.iter()) && opened.order().eq(base.order()));
                let (len, free) = (then.len(), then.free_count());
                assert_eq!((opened.len(), opened.free_count()), (len, free));
                *server = server.over(&then, if random(2) == 0 { &base } else { &opened });
            }
            assert_eq!(server.len(), whole.len());
            assert_eq!(
                server.next_numbers(900, 1 << 20),
                whole.next_numbers(900, 1 << 20)
            );
            assert!(server.shared().eq(whole.shared()));
            for n in 0..whole.len() {
                let id = VertexId(FIRST_TAIL_ID + n);
                let (text, all) = (server.term(id), whole.term(id));
                assert_eq!(server.is_assigned(id), all.is_some());
                assert_eq!(server.are_free([n, n + 1]), all.is_none());
                let kept = held.contains(&owner(n)) || whole.shared.contains(&n);
                match text {
                    Some(text) => {
                        assert_eq!(Some(text), all);
                        assert_eq!(server.lookup(text), Some(id));
                    }
                    None => {
                        assert!(all.is_none() || !kept, "{n} of {held:?}");
                        assert_eq!(server.is_elsewhere(id), all.is_some());
                        assert!(all.is_none_or(|all| server.lookup(all).is_none()));
                        dropped += u32::from(all.is_some());
                    }
                }
            }
        }
    }
    assert!(dropped > 10_000, "{dropped}");
}

/// A term that is freed after a merge and added again with its old id, as one that all shards keep or not.
#[test]
fn a_term_that_comes_back_is_where_it_was_unless_all_keep_it() {
    let name = |i: u32| format!("<http://e/{i}").into_bytes();
    let mut then = TailTerms::default();
    then.put(&[], &(0..300).map(name).collect::<Vec<_>>());
    let base = then.with_texts(|n| n >= TailTerms::PART);
    for is_shared in [false, true] {
        let mut now = then.clone();
        now.free(&[[5, 6]]);
        now.put(&[[5, 6]], &[name(5)]);
        now.share(if is_shared { &[5] } else { &[] });
        let over = now.over(&then, &base);
        let id = VertexId(FIRST_TAIL_ID + 5);
        assert_eq!(over.term(id).is_some(), is_shared);
        assert_eq!(over.lookup(&name(5)), is_shared.then_some(id));
        assert!(over.is_assigned(id));
        assert_eq!(over.elsewhere_count(), 128 - u32::from(is_shared));
    }
}

/// Numbers below what it is asked for, from a seed.
fn numbers_from(seed: u64) -> impl FnMut(u32) -> u32 {
    let mut state = seed;
    move |below| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((state >> 33) % u64::from(below.max(1))) as u32
    }
}
