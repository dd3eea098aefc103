//! The driver and the public Rust API
