//! A macro for `Debug` of types that hold what cannot or should not be printed.

/// Implements [`Debug`](std::fmt::Debug) by a format string and arguments that refer to the value by a name:
/// `debug_format!(Listener, |this| "Listener({})", this.address);`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_format {
    ($type:ty, |$this:pat_param| $($format:tt)+) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                write!(f, $($format)+)
            }
        }
    };
}
