//! The documentation of the environment variables, made from their table.

use std::fmt::Write as _;

use crate::variables::{Area, VARIABLES};

/// The page as Markdown.
#[must_use]
pub fn environment_page() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         Read once, at the start. An empty variable counts as unset; a value that is not understood is an error.\n\
         This page is made from the table in `crates/config/src/variables.rs`; a test compares the two.\n",
    );
    for area in Area::ALL {
        let _ = write!(
            page,
            "\n## {}\n\n| Variable | Value | Default | Meaning |\n|---|---|---|---|\n",
            area.title()
        );
        for variable in VARIABLES.iter().filter(|variable| variable.area == area) {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                variable.name, variable.accepts, variable.default, variable.meaning
            );
        }
    }
    page.push_str(
        "\nThe HTTP client also respects the usual `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, and\n\
         `SSL_CERT_FILE` and `SSL_CERT_DIR` for the authorities it trusts.\n",
    );
    page
}
