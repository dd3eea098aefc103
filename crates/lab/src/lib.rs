//! Measurements and trials of the real binary, from outside. Never ships.

#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "crash")]
pub mod crash;
