use super::*;
use crate::{Resource, Tracked};
use std::hint::black_box;
use std::time::Duration;

/// Counts the memory of all unit tests of this crate.
#[global_allocator]
static ALLOCATOR: Tracked = Tracked::new();

const MIB: u64 = 1 << 20;

fn scope(budget: &MemoryBudget) -> Scope {
    Scope::new(Holder::Text, budget, &CancelToken::new())
}

fn bytes(n: u64) -> Vec<u8> {
    black_box(Vec::with_capacity(n as usize))
}

/// True if `n` is `asked` plus at most the allocator's overhead for an allocation.
fn about(n: u64, asked: u64) -> bool {
    (asked..asked + 64).contains(&n)
}

#[test]
fn what_is_kept_is_charged_to_the_byte() {
    assert!(is_measured());
    let whole = MemoryBudget::new(100 * MIB);
    let budget = whole.part(50 * MIB);
    let first = whole.used();
    let scope = scope(&budget);
    let kept = scope.run(|| {
        let kept = bytes(3 * MIB);
        drop(bytes(20 * MIB));
        kept
    });
    assert!(about(scope.bytes(), 3 * MIB), "{}", scope.bytes());
    assert_eq!(budget.used(), scope.bytes());
    assert_eq!(whole.used(), scope.bytes());
    assert!(budget.peak() >= 23 * MIB - STEP as u64);
    let ((), charge) = scope.make(|| Ok(())).unwrap();
    assert_eq!((scope.bytes(), charge.bytes()), (0, budget.used()));
    drop(scope);
    assert_eq!(charge.bytes(), budget.used());
    drop((charge, kept));
    assert_eq!((budget.used(), whole.used()), (0, first));
}

#[test]
fn vectors_that_grow_are_counted_once() {
    let budget = MemoryBudget::new(100 * MIB);
    let scope = scope(&budget);
    let mut v = bytes(1);
    scope.run(|| {
        for n in 1..3 * MIB as u32 {
            v.push(black_box(n as u8));
        }
        v.shrink_to_fit();
        let zeroed = black_box(vec![0u64; 1000]);
        black_box(&zeroed);
    });
    assert!(about(scope.bytes() + 64, 3 * MIB), "{}", scope.bytes());
}

#[test]
fn outside_of_scopes_nothing_is_counted() {
    let budget = MemoryBudget::new(100 * MIB);
    let scope = scope(&budget);
    let before = bytes(5 * MIB);
    let kept = scope.run(|| outside(|| bytes(7 * MIB)));
    drop((before, kept));
    assert_eq!((scope.bytes(), budget.used(), budget.peak()), (0, 0, 0));
}

#[test]
fn what_was_taken_elsewhere_may_be_freed_inside() {
    let budget = MemoryBudget::new(100 * MIB);
    budget.charge(MIB).unwrap();
    let scope = scope(&budget);
    let before = bytes(5 * MIB);
    scope.run(|| drop(before));
    assert_eq!((scope.bytes(), budget.used()), (0, MIB));
    // The 5 MiB freed inside the scope count against its later allocations.
    let kept = scope.run(|| bytes(6 * MIB));
    assert_eq!(budget.used(), MIB + scope.bytes());
    assert!(scope.bytes() <= MIB);
    drop(kept);
    drop(scope);
    assert_eq!(budget.used(), MIB);
}

#[test]
fn scopes_nest() {
    let (a, b) = (MemoryBudget::new(100 * MIB), MemoryBudget::new(100 * MIB));
    let (outer, inner) = (scope(&a), scope(&b));
    let kept = outer.run(|| {
        let first = bytes(MIB);
        let second = inner.run(|| (bytes(2 * MIB), outer.run(|| bytes(4 * MIB))));
        (first, second, bytes(8 * MIB))
    });
    assert!(about(outer.bytes(), 13 * MIB), "{}", outer.bytes());
    assert!(about(inner.bytes(), 2 * MIB));
    assert_eq!((a.used(), b.used()), (outer.bytes(), inner.bytes()));
    drop(kept);
}

#[test]
fn a_panic_leaves_the_scope() {
    let budget = MemoryBudget::new(100 * MIB);
    let scope = scope(&budget);
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        scope.run(|| {
            let _mine = bytes(MIB);
            std::panic::resume_unwind(Box::new(()));
        });
    }));
    assert!(died.is_err() && Scope::current().is_none());
    let after = bytes(30 * MIB);
    // The panic's payload was allocated inside the scope and still exists.
    assert!(budget.used() < 100, "{}", budget.used());
    drop((after, died));
}

#[test]
fn what_does_not_fit_is_charged_and_ends_the_work() {
    let whole = MemoryBudget::new(10 * MIB);
    let budget = whole.part(2 * MIB);
    let scope = scope(&budget);
    let ended = scope.try_run(|| {
        assert!(!was_over() && !is_over());
        look_for(MIB)?;
        assert!(look_for(3 * MIB).is_err() && look_for(u64::MAX).is_err());
        let kept = bytes(3 * MIB);
        assert!(was_over() && is_over());
        assert!(matches!(look(), Err(Error::Limit(_))));
        drop(kept);
        // Enough memory is available again, but work has been skipped, so the scope remains over.
        assert!(is_over());
        Ok(())
    });
    let Err(Error::Limit(limit)) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(
        (limit.resource, limit.limit),
        (Resource::Memory, Some(2 * MIB))
    );
    assert!(budget.peak() >= 3 * MIB && budget.used() == 0);
    assert!(scope.make(|| Ok(())).is_err());
    // A charge beyond the part's limit counts in the whole, so other parts get [`Error::Busy`].
    let other = whole.part(20 * MIB);
    let large = super::tests::scope(&other);
    let kept = large.run(|| bytes(9 * MIB));
    large.look().unwrap();
    assert!(matches!(budget.charge(2 * MIB - 1), Err(Error::Busy(_))));
    let busy = super::tests::scope(&budget);
    let more = busy.run(|| bytes(MIB + MIB / 2));
    assert!(matches!(busy.look(), Err(Error::Busy(_))));
    assert!(whole.used() > 10 * MIB);
    drop((kept, more, busy, large, other, budget, scope));
    assert_eq!(whole.used(), 0);
}

#[test]
fn a_refusal_says_who_holds_it() {
    let budget = MemoryBudget::new(MIB);
    let scope = scope(&budget);
    let kept = scope.run(|| bytes(2 * MIB));
    let said = scope.look().unwrap_err().to_string();
    assert!(
        said.contains("limit of 1 MiB is reached; the query's text and plan would hold 2 MiB"),
        "{said}"
    );
    drop(kept);
}

#[test]
fn work_ends_with_its_token() {
    let budget = MemoryBudget::unlimited();
    let late = CancelToken::with_deadline(Duration::ZERO);
    let scope = Scope::new(Holder::Text, &budget, &late);
    scope.run(|| {
        assert!(!was_over());
        // The pieces are freed at once, but the allocator also checks the clock.
        (0..20).for_each(|_| drop(bytes(100 << 10)));
        assert!(was_over() && is_over());
        assert!(matches!(look(), Err(Error::Timeout(_))));
    });
    let cancel = CancelToken::new();
    let scope = Scope::new(Holder::Text, &budget, &cancel);
    let ended = scope.try_run(|| {
        cancel.cancel();
        assert!(is_over());
        Ok(())
    });
    assert!(matches!(ended, Err(Error::Cancelled)));
    assert!(!is_over() && look().is_ok());
}

#[test]
fn threads_join_a_scope() {
    let whole = MemoryBudget::new(1000 * MIB);
    let budget = whole.part(900 * MIB);
    let scope = scope(&budget);
    let kept = scope.run(|| {
        std::thread::scope(|s| {
            let threads: Vec<_> = (0..4u64)
                .map(|n| {
                    s.spawn(carry(move || {
                        // Some threads free what others allocated.
                        let mut kept = vec![];
                        for i in 0..2000 {
                            kept.push(bytes((n + 1) * 1000));
                            if i % 3 == 0 {
                                kept.swap_remove(i / 2 % kept.len());
                            }
                        }
                        kept
                    }))
                })
                .collect();
            let kept: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            kept
        })
    });
    let real: u64 = kept.iter().flatten().map(|v| v.capacity() as u64).sum();
    assert!(scope.bytes() >= real && scope.bytes() < real + MIB);
    assert_eq!(budget.used(), scope.bytes());
    // Threads allocate and free at the same time: the scope never releases more than it charged.
    std::thread::scope(|s| {
        let (send, receive) = std::sync::mpsc::channel::<Vec<u8>>();
        let scope = &scope;
        s.spawn(move || scope.run(|| (0..5000).for_each(|_| send.send(bytes(40_000)).unwrap())));
        s.spawn(move || scope.run(|| receive.into_iter().for_each(drop)));
        for _ in 0..5000 {
            assert!(budget.used() < 900 * MIB && whole.used() < 1000 * MIB);
        }
    });
    scope.run(|| drop(kept));
    assert!(scope.bytes() < MIB, "{}", scope.bytes());
    drop(scope);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_thread_s_stack_is_taken_beside() {
    let budget = MemoryBudget::new(100 * MIB);
    let scope = scope(&budget);
    scope.run(|| beside(50 * MIB, || assert_eq!(budget.used(), 50 * MIB)));
    assert_eq!(budget.used(), 0);
    beside(u64::MAX, || ());
    scope.run(|| beside(200 * MIB, || assert!(is_over())));
    assert_eq!(budget.used(), 0);
}

#[test]
fn what_is_charged_by_itself_is_not_charged_twice() {
    let whole = MemoryBudget::new(1000 * MIB);
    let budget = whole.part(100 * MIB);
    let first = whole.used();
    let scope = Scope::beside_charges(Holder::Text, &budget, &CancelToken::new());
    let (kept, charge, forgotten) = scope.run(|| {
        let mut charge = Charge::new(Holder::HashJoin, &budget);
        charge.set(60 * MIB).unwrap();
        // The charge and the allocation do not both fit, but the charge is subtracted from the allocation.
        let kept = bytes(60 * MIB);
        assert!(
            !was_over() && budget.peak() <= 61 * MIB,
            "{}",
            budget.peak()
        );
        let other = MemoryBudget::unlimited();
        other.charge(70 * MIB).unwrap();
        (kept, charge, bytes(20 * MIB))
    });
    let used = budget.used();
    assert!(about(used, 80 * MIB), "{used}");
    let name = |limit: &str| {
        budget
            .charge(50 * MIB)
            .unwrap_err()
            .to_string()
            .contains(limit)
    };
    assert!(name("hash join would hold 60 MiB"));
    // Dropping the charge and the allocation outside the scope does not release the scope's own bytes.
    drop((kept, charge));
    assert!(about(budget.used(), 20 * MIB), "{}", budget.used());
    let again = scope.run(|| {
        let mut charge = Charge::new(Holder::HashJoin, &budget);
        charge.set(30 * MIB).unwrap();
        let kept = bytes(30 * MIB);
        (charge, kept)
    });
    scope.run(|| drop((again, forgotten)));
    // What remains is the allocator's overhead for the first piece.
    assert!(budget.used() < 64, "{}", budget.used());
    drop(scope);
    assert_eq!(whole.used(), first);
}

#[test]
fn what_is_made_is_measured() {
    assert_eq!(measure(|| bytes(MIB)).1, 0);
    let budget = MemoryBudget::unlimited();
    scope(&budget).run(|| {
        let before = bytes(5 * MIB);
        let (made, size) = measure(|| {
            drop(bytes(3 * MIB));
            bytes(MIB)
        });
        assert!(about(size, MIB), "{size}");
        drop((before, made));
    });
}
