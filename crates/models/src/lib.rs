//! Model clients: Anthropic Messages and scripted
