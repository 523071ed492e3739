//! Extensions of the processor's instruction set that some loops use.

/// True if loops may use AVX2: the processor has it, and `JINDOU_PORTABLE` is not set. The variable, which is read once
/// per process, is for tests and comparisons. Results do not depend on it.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *HAS.get_or_init(|| {
        std::env::var_os("JINDOU_PORTABLE").is_none() && std::arch::is_x86_feature_detected!("avx2")
    })
}
