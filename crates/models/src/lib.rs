//! Model clients: the Anthropic Messages API and scripts that stand in for a model.
//!
//! Purpose: turn a [`ModelRequest`](windlass_protocol::ModelRequest) into a lazy stream of
//! [`ModelEvent`](windlass_protocol::ModelEvent)s. Invariant: a client sends a request once; it never retries,
//! and whatever goes wrong is the last item of its stream.

mod assemble;
mod block;
mod classify;
mod usage;

pub use assemble::Assembler;
