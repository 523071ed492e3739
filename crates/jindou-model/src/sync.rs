//! Locks that ignore poisoning. The guarded data is consistent after each change, so a panic of one thread that holds
//! the lock need not affect others; it is reported where it happens.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Locks a mutex, poisoned or not.
#[inline]
pub fn lock<T: ?Sized>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for reading, poisoned or not.
#[inline]
pub fn read<T: ?Sized>(l: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    l.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing, poisoned or not.
#[inline]
pub fn write<T: ?Sized>(l: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    l.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_one_holder_is_not_the_next_ones() {
        let (m, l) = (Mutex::new(1), RwLock::new(2));
        let died = std::thread::scope(|s| {
            let holder = s.spawn(|| {
                let _held = (m.lock(), l.write());
                std::panic::resume_unwind(Box::new(()));
            });
            holder.join().is_err()
        });
        assert!(died && m.is_poisoned() && l.is_poisoned());
        *lock(&m) += 1;
        *write(&l) += 1;
        assert_eq!((*lock(&m), *read(&l)), (2, 3));
    }
}
