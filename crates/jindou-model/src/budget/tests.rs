//! Tests of memory budgets.

use super::*;

#[test]
fn a_refusal_names_who_holds_most() {
    let b = MemoryBudget::new(1 << 20);
    b.charge_for(Holder::HashJoin, 600 << 10).unwrap();
    b.charge_for(Holder::OrderBy, 100 << 10).unwrap();
    let refused = |h, n| b.charge_for(h, n).unwrap_err().to_string();
    let said = refused(Holder::OrderBy, 400 << 10);
    assert!(
        said.contains("limit of 1 MiB is reached; hash join would hold 600 KiB"),
        "{said}"
    );
    let Err(Error::Limit(limit)) = b.charge_for(Holder::OrderBy, 400 << 10) else {
        panic!("not a limit");
    };
    assert_eq!(limit.resource, Resource::Memory);
    assert_eq!(limit.limit, Some(1 << 20));
    assert_eq!(limit.holder, Some((Holder::HashJoin, 600 << 10)));
    let said = refused(Holder::OrderBy, 501 << 10);
    assert!(said.contains("ORDER BY would hold 601 KiB"), "{said}");
    b.release_for(Holder::HashJoin, 600 << 10);
    b.charge(900 << 10).unwrap();
    assert!(!refused(Holder::OrderBy, 25 << 10).contains("ORDER BY"));
    b.release_for(Holder::OrderBy, 100 << 10);
    assert_eq!(b.used(), 900 << 10);
}

#[test]
fn a_budget_refuses_what_does_not_fit_and_takes_nothing() {
    let b = MemoryBudget::new(10);
    assert!(b.try_charge(8));
    assert!(b.charge(3).is_err());
    assert_eq!(b.used(), 8);
    b.release(8);
    assert_eq!((b.used(), b.peak()), (0, 8));
}

#[test]
fn a_part_is_charged_to_the_whole() {
    let whole = MemoryBudget::new(10);
    let (a, b) = (whole.part(8), whole.part(8));
    assert!(a.try_charge(6) && !a.try_charge(3));
    assert!(!b.try_charge(5) && b.try_charge(4));
    assert_eq!((a.used(), b.used(), whole.used()), (6, 4, 10));
    let busy = b.charge(1).unwrap_err();
    assert!(busy.to_string().contains("together"), "{busy}");
    let Error::Busy(limit) = busy else {
        panic!("{busy:?}");
    };
    assert_eq!((limit.resource, limit.limit), (Resource::Memory, Some(10)));
    a.release(6);
    assert_eq!(whole.used(), 4);
    drop(b);
    assert_eq!(whole.used(), 0);
}

/// Runs threads that charge `big` for its whole limit, which never fits, alongside threads that charge `small` for
/// `fits` bytes, which must always succeed.
fn nobody_is_refused_for_others(big: &MemoryBudget, small: &MemoryBudget, fits: u64) {
    const ROUNDS: usize = 200_000;
    std::thread::scope(|scope| {
        let refused: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| (0..ROUNDS).filter(|_| big.try_charge(big.limit())).count()))
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    assert!(small.try_charge(fits));
                    small.release(fits);
                }
            });
        }
        for r in refused {
            assert_eq!(r.join().unwrap(), 0);
        }
    });
}

#[test]
fn what_fits_is_not_refused_beside_what_does_not() {
    let one = MemoryBudget::new(100);
    one.charge(1).unwrap();
    nobody_is_refused_for_others(&one, &one, 49);
    // Charges of 49 bytes succeeded one at a time, or two at once.
    assert!(one.used() == 1 && [50, 99].contains(&one.peak()));

    let whole = MemoryBudget::new(100);
    let (big, small) = (whole.part(100), whole.part(98));
    whole.charge(1).unwrap();
    nobody_is_refused_for_others(&big, &small, 49);
    assert_eq!((whole.used(), big.used(), small.used()), (1, 0, 0));
    assert!(big.peak() == 0 && [49, 98].contains(&small.peak()));
    assert!(whole.peak() <= 99);

    // Both kinds of charges in one part: bytes that the whole rejects are not charged to the part.
    let part = whole.part(100);
    nobody_is_refused_for_others(&part, &part, 49);
    assert_eq!((whole.used(), part.used()), (1, 0));
    assert!([49, 98].contains(&part.peak()));
}

#[test]
fn a_limit_is_never_passed() {
    let whole = MemoryBudget::new(1000);
    let most = AtomicU64::new(0);
    let parts = [whole.part(700), whole.part(700)];
    std::thread::scope(|scope| {
        for n in 0..4u64 {
            let (parts, most, whole) = (&parts, &most, &whole);
            scope.spawn(move || {
                let part = &parts[(n % 2) as usize];
                let mut state = n + 1;
                for _ in 0..100_000 {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let bytes = (state >> 33) % 600;
                    if part.try_charge(bytes) {
                        most.fetch_max(whole.used(), Ordering::Relaxed);
                        assert!(part.used() <= 700);
                        part.release(bytes);
                    }
                }
            });
        }
    });
    assert!(whole.peak() <= 1000 && most.into_inner() <= 1000);
    assert!(parts.iter().all(|p| p.peak() <= 700 && p.used() == 0));
    assert_eq!(whole.used(), 0);
}

#[test]
fn a_part_s_first_bytes_are_charged_in_advance() {
    let whole = MemoryBudget::new(10 << 20);
    let (a, b) = (whole.part(1 << 20), whole.part(1000));
    assert_eq!(whole.used(), (10 << 10) + 1000);
    assert!(a.try_charge(10 << 10) && b.try_charge(1000) && !b.try_charge(1));
    assert_eq!(whole.used(), (10 << 10) + 1000);
    assert!(a.try_charge(5));
    assert_eq!(whole.used(), (10 << 10) + 1005);
    a.release(1 << 10);
    assert_eq!((a.used(), whole.used()), ((9 << 10) + 5, (10 << 10) + 1000));
    drop((a, b));
    assert_eq!(whole.used(), 0);
    // Unused parts occupy at most an eighth of the whole, however many there are.
    let idle: Vec<MemoryBudget> = (0..3000).map(|_| whole.part(10 << 20)).collect();
    assert!(whole.used() <= (10 << 20) / 8 + (10 << 10));
    assert!(idle[2999].try_charge(8 << 20) && idle[0].try_charge(512 << 10));
    drop(idle);
    assert_eq!(whole.used(), 0);
    // If the whole is full, nothing is charged in advance.
    whole.charge(10 << 20).unwrap();
    assert!(!whole.part(1 << 20).try_charge(1));
    assert_eq!(whole.used(), 10 << 20);
}

#[test]
fn modest_parts_leave_the_last_bytes_to_small_ones() {
    let whole = MemoryBudget::new(1 << 20);
    let large: Vec<MemoryBudget> = (0..3).map(|_| whole.modest_part(1 << 20)).collect();
    let small = whole.modest_part(1 << 20);
    // One large part can use fifteen sixteenths, and then gets the error for a query that is too large. Several share
    // that.
    let most = (1 << 20) / 16 * 15;
    // The other parts charged 4 KiB in advance.
    assert!(large[0].charge(most - (4 << 10)).is_ok());
    assert!(matches!(large[0].charge(8 << 10), Err(Error::Limit(_))));
    large[0].release(most / 2);
    assert!(large[1].has_room(most / 4) && large[1].try_charge(most / 4));
    assert!(matches!(large[1].charge(most / 2), Err(Error::Busy(_))));
    assert!(!large[1].has_room(most / 2));
    while large[2].try_charge(8 << 10) {}
    assert!(whole.used() <= most + (4 << 10));
    // Small parts still fit, and an ordinary part can use all that is left.
    let before = whole.used();
    assert!(small.has_room(4 << 10) && small.try_charge(4 << 10) && !small.try_charge(1 << 10));
    let rest = (1 << 20) - whole.used();
    assert!(whole.part(1 << 20).try_charge(rest));
    drop((large, small));
    assert!(before > 0 && whole.used() == 0);
}

/// If a large part was charged beyond the limit (for bytes measured after they were allocated), small parts can use the
/// reserve, and no more.
#[test]
fn small_parts_have_the_reserve_while_large_ones_hold_too_much() {
    const MIB: u64 = 1 << 20;
    let all = MemoryBudget::new(64 * MIB);
    let large = all.modest_part(u64::MAX);
    assert!(large.take_measured(Holder::Text, 80 * MIB).is_some());
    for _ in 0..3 {
        let mut small = Vec::new();
        loop {
            let part = all.modest_part(u64::MAX);
            let fits = part.has_room(MIB / 8);
            assert_eq!(part.try_charge(MIB / 8), fits);
            if !fits {
                break;
            }
            small.push(part);
        }
        assert_eq!(small.len(), 32, "4 MiB in parts of 128 KiB");
        assert_eq!(all.used(), 84 * MIB);
        // Bytes of the reserve can be released in part, and all of them when parts are dropped.
        small[0].release(MIB / 16);
        let other = all.modest_part(u64::MAX);
        assert!(other.try_charge(MIB / 16) && !other.try_charge(1));
        drop(other);
        drop(small);
        assert_eq!(all.used(), 80 * MIB);
    }
    // A part that grows beyond a small one leaves the reserve, and is rejected like a large one.
    let grows = all.modest_part(u64::MAX);
    assert!(grows.try_charge(MIB / 4) && !grows.try_charge(MIB / 4));
    let measured = all.modest_part(u64::MAX);
    assert!(measured.take_measured(Holder::Text, MIB / 4).is_none());
    assert!(measured.take_measured(Holder::Text, MIB).is_some());
    assert_eq!(all.inner.reserve.load(Ordering::Relaxed), 0);
    drop(grows);
    measured.return_measured(Holder::Text, MIB * 5 / 4);
    large.return_measured(Holder::Text, 80 * MIB);
    drop(large);
    assert_eq!(all.used(), 0);
    assert!(measured.try_charge(60 * MIB) && !measured.try_charge(1));
}

/// Small parts alone can fill the whole, but do not exceed its limit.
#[test]
fn small_parts_never_pass_the_limit_together() {
    const MIB: u64 = 1 << 20;
    let all = MemoryBudget::new(64 * MIB);
    let mut parts = Vec::new();
    loop {
        let part = all.modest_part(u64::MAX);
        if !part.try_charge(MIB / 8) {
            break;
        }
        parts.push(part);
    }
    assert_eq!(parts.len(), 512, "64 MiB in parts of 128 KiB");
    assert_eq!(all.used(), 64 * MIB);
    drop(parts);
    assert_eq!(all.used(), 0);
    assert_eq!(all.inner.reserve.load(Ordering::Relaxed), 0);
}

#[test]
fn enormous_charges_are_refused() {
    let all = MemoryBudget::unlimited();
    assert!(all.try_charge(1 << 40));
    assert!(!all.try_charge(u64::MAX) && !all.part(u64::MAX).try_charge(u64::MAX));
    assert_eq!(all.used(), 1 << 40);
}
