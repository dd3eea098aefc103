//! Child processes, their groups, and the supervisor that ends orphans
