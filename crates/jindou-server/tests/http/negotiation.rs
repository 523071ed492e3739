//! Content codings of answers.

use crate::{MILLION, ask, csv, options, serve, thousand};
use std::io::Read;

#[test]
fn answers_are_compressed_on_demand_and_equal_the_plain_ones() {
    let server = serve(thousand(), options());
    let query = format!("{MILLION} LIMIT 30000");
    let plain = csv(&server, &query);
    assert!(plain.is_whole() && plain.header("content-encoding").is_empty());
    assert_eq!(plain.text().lines().count(), 30_001);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for coding in ["gzip", "zstd"] {
        let coded = ask(
            &server,
            &query,
            &[("accept", "text/csv"), ("accept-encoding", coding)],
        );
        assert_eq!(coded.header("content-encoding"), coding);
        assert!(coded.is_whole() && coded.body.len() < plain.body.len() / 4);
        let mut text = String::new();
        if coding == "gzip" {
            flate2::read::MultiGzDecoder::new(&coded.body[..])
                .read_to_string(&mut text)
                .unwrap();
        } else {
            zstd::stream::read::Decoder::new(&coded.body[..])
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
        }
        assert_eq!(text.lines().count(), 30_001);
        // LIMIT may select other rows in another run, so only the number of columns is compared.
        assert_eq!(
            sorted(&text)[0].split(',').count(),
            sorted(plain.text())[0].split(',').count()
        );
    }
}
