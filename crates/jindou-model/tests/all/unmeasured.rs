//! Scopes in a program whose global allocator is not `Tracked`: they charge memory by the length of texts.

use jindou_model::scope::{is_measured, is_over};
use jindou_model::{CancelToken, Error, MemoryBudget, Scope};

#[test]
fn texts_are_charged_by_length() {
    assert!(!is_measured());
    let budget = MemoryBudget::new(100 << 20);
    let cancel = CancelToken::new();
    assert!(matches!(
        Scope::for_text(1 << 20, &budget, &cancel),
        Err(Error::Limit(_))
    ));
    assert_eq!(budget.used(), 0);
    let scope = Scope::for_text(100 << 10, &budget, &cancel).unwrap();
    let charged = budget.used();
    assert!(charged > 20 << 20);
    let (kept, charge) = scope.make(|| Ok(vec![1u8; 1 << 20])).unwrap();
    drop(kept);
    assert_eq!((charge.bytes(), budget.used()), (charged / 8, charged / 8));
    drop(charge);
    assert_eq!(budget.used(), 0);
    // Time is limited nevertheless.
    cancel.cancel();
    assert!(scope.run(is_over) && scope.look().is_err());
    assert!(matches!(
        Scope::for_text(1, &budget, &cancel),
        Err(Error::Cancelled)
    ));
}
