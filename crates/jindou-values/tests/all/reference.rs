//! Checks that `docs/functions.md` is what the definitions of functions yield. `JINDOU_WRITE=1` writes it.

use jindou_values::functions::reference;
use std::path::Path;

#[test]
fn the_page_is_made_from_the_definitions() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/functions.md");
    if std::env::var_os("JINDOU_WRITE").is_some() {
        std::fs::write(&page, reference()).expect("the page");
    }
    let there = std::fs::read_to_string(&page).expect("docs/functions.md");
    assert!(
        there == reference(),
        "docs/functions.md differs from the definitions: JINDOU_WRITE=1 cargo test -p jindou-values --test all reference::"
    );
}
