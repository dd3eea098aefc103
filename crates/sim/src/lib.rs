//! Seeded simulator and invariant checkers
