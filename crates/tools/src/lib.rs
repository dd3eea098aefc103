//! The built-in tools
