//! Environment and flags turned into one typed configuration
