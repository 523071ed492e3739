//! Numbers of a catalogue, little-endian.

pub fn put(out: &mut Vec<u8>, n: u32) {
    out.extend_from_slice(&n.to_le_bytes());
}

pub fn take(bytes: &mut &[u8]) -> Option<u32> {
    let (n, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*n))
}
