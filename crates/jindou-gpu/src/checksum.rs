//! Order-independent checksum of a result: equal results have equal sums, whatever the order of the rows and whichever
//! executor produced them. It is defined as the CPU engine's `ChecksumSink`; a test compares the two.

/// Odd 32-bit multiplier of the row hash.
const MULTIPLIER: u64 = 0x85EB_CA77;

/// Mixes one id into a row's hash, which starts at 0; columns are mixed in the result's order.
#[inline]
#[must_use]
pub fn mix(hash: u64, id: u32) -> u64 {
    let t = hash ^ u64::from(id.wrapping_add(0x9E37_79B9));
    (t & 0xFFFF_FFFF) * MULTIPLIER + (t >> 32)
}

/// The checksum of some rows: the wrapping sum of their hashes. The number of columns is mixed into each.
#[must_use]
pub fn checksum(columns: &[&[u32]], rows: usize) -> u64 {
    (0..rows).fold(0u64, |sum, i| {
        let hash = columns
            .iter()
            .fold(0, |h, c| mix(h, c.get(i).copied().unwrap_or(0)));
        sum.wrapping_add(hash ^ columns.len() as u64)
    })
}

/// The FNV-1a hash of bytes, which is the same on every machine and in every version of the program.
pub(crate) fn of_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, b| {
        (hash ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
