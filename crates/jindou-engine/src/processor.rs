//! Instructions of this processor that loops have a way of their own for.

/// True if loops may use AVX2: the processor has it, and `JINDOU_PORTABLE` is not set. The variable is read once per
/// process and is for tests and comparisons; answers are the same without AVX2.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *HAS.get_or_init(|| {
        std::env::var_os("JINDOU_PORTABLE").is_none() && std::arch::is_x86_feature_detected!("avx2")
    })
}
