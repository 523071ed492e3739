use super::*;
use http_body_util::BodyExt;
use std::io::Write;

fn encoded(coding: Content, text: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::default();
    match coding {
        Content::Gzip => {
            let mut e = flate2::write::GzEncoder::new(vec![], level);
            e.write_all(text).unwrap();
            e.finish().unwrap()
        }
        Content::Deflate => {
            let mut e = flate2::write::ZlibEncoder::new(vec![], level);
            e.write_all(text).unwrap();
            e.finish().unwrap()
        }
        Content::Zstd => zstd::encode_all(text, 3).unwrap(),
        Content::Brotli => brotli(text),
    }
}

/// Encodes a text as uncompressed meta-blocks (RFC 7932, section 9.2) with a window of 2^16, which needs no real
/// encoder.
fn brotli(text: &[u8]) -> Vec<u8> {
    // Bits are written from the least significant one on. WBITS for a window of 2^16 is a single zero bit.
    let mut out = vec![];
    let (mut bits, mut n) = (0u64, 1);
    for block in text.chunks(1 << 16) {
        // Header of a meta-block: not the last one, a length of four nibbles, the length minus one, uncompressed.
        bits |= ((block.len() as u64 - 1) << 3 | 1 << 19) << n;
        n += 20;
        while n > 0 {
            out.push(bits as u8);
            bits >>= 8;
            n -= 8;
        }
        (bits, n) = (0, 0);
        out.extend_from_slice(block);
    }
    bits |= 3 << n;
    out.push(bits as u8);
    out
}

/// Decodes a body that arrives in pieces of `pieces` bytes.
fn undone(body: &[u8], codings: &[Content], pieces: usize) -> Result<Vec<u8>, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let queue: Vec<Bytes> = body
        .chunks(pieces.max(1))
        .map(Bytes::copy_from_slice)
        .collect();
    let memory = MemoryBudget::new(64 << 20);
    let source = Pieces(queue.into_iter().collect());
    let body = super::undone(Body::new(source), codings, &memory);
    let read = runtime.block_on(body.collect());
    let text = read
        .map(|all| all.to_bytes().to_vec())
        .map_err(|e| broken(&e));
    assert_eq!(memory.used(), 0);
    text
}

/// A stream of pieces, each of which is ready only at the second poll.
struct Pieces(std::collections::VecDeque<Bytes>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(self.0.pop_front().map(|b| Ok(Frame::data(b))))
    }
}

const ALL: [Content; 4] = [
    Content::Gzip,
    Content::Deflate,
    Content::Brotli,
    Content::Zstd,
];

fn text() -> Vec<u8> {
    let lines = (0..9000).map(|i| format!("<urn:s{i}> <urn:p> {} .\n", i * i));
    lines.collect::<String>().into_bytes()
}

#[test]
fn every_coding_and_chain_is_undone() {
    let text = text();
    for a in ALL {
        assert_eq!(undone(&[], &[a], 1).unwrap(), b"");
        assert_eq!(undone(&encoded(a, b""), &[a], 1).unwrap(), b"", "{a:?}");
        for pieces in [1, 7, 4096, usize::MAX] {
            let body = encoded(a, &text);
            assert!(
                undone(&body, &[a], pieces).unwrap() == text,
                "{a:?} {pieces}"
            );
        }
        for b in ALL {
            let body = encoded(b, &encoded(a, &text));
            assert!(
                undone(&body, &[a, b], 1000).unwrap() == text,
                "{a:?}, {b:?}"
            );
        }
    }
    let mut bare = flate2::write::DeflateEncoder::new(vec![], flate2::Compression::default());
    bare.write_all(&text).unwrap();
    let bare = bare.finish().unwrap();
    assert!(undone(&bare, &[Content::Deflate], 1).unwrap() == text);
    let two = [encoded(Content::Gzip, b"a"), encoded(Content::Gzip, b"b")].concat();
    assert_eq!(undone(&two, &[Content::Gzip], 5).unwrap(), b"ab");
}

#[test]
fn a_stream_of_brotli_that_another_encoder_made_is_read() {
    // Output of the encoder by the specification's authors, as included in Node.
    let x = [0x0b, 0x00, 0x80, 0x58, 0x03];
    assert_eq!(undone(&x, &[Content::Brotli], 1).unwrap(), b"X");
    let stars = [
        0x5b, 0xff, 0xff, 0x83, 0x5f, 0x42, 0x25, 0x1e, 0x0b, 0x04, 0x72, 0xef, 0x07, 0x00,
    ];
    let read = undone(&stars, &[Content::Brotli], 3).unwrap();
    assert!(read.len() == 262_144 && read.iter().all(|b| *b == b'*'));
}

#[test]
fn what_is_cut_or_goes_on_is_refused() {
    let text = &text()[..3000];
    for a in ALL {
        let whole = encoded(a, text);
        for n in 1..whole.len() {
            let problem = undone(&whole[..n], &[a], 512).unwrap_err();
            assert_eq!(problem.status.as_u16(), 400, "{a:?} {n}");
            assert!(problem.detail.contains(a.name()), "{}", problem.detail);
        }
        for more in [&b"x"[..], b"trailing text"] {
            let longer = [&whole, more].concat();
            let problem = undone(&longer, &[a], 512).unwrap_err();
            assert_eq!(problem.status.as_u16(), 400, "{a:?}");
        }
        assert!(undone(b"<urn:a> <urn:p> 1 .", &[a], 512).is_err(), "{a:?}");
    }
}

#[test]
fn windows_that_are_too_large_are_refused() {
    // A zstd frame with a window of 2^27 bytes.
    let mut e = zstd::stream::write::Encoder::new(vec![], 3).unwrap();
    e.window_log(27).unwrap();
    e.include_contentsize(false).unwrap();
    e.write_all(&text()).unwrap();
    let frame = e.finish().unwrap();
    assert!(undone(&frame, &[Content::Zstd], 512).is_err());
    // A br stream with the extension for large windows.
    assert!(undone(&[0x11, 30, 3], &[Content::Brotli], 512).is_err());
}
