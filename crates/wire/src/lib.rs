//! The Agent-SDK protocol as types and a translator from updates
