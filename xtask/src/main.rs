//! Test, bench and tidy for the workspace.
fn main() {}
