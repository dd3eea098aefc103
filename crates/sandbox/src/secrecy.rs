//! Keeping the engine's own secrets from the commands it starts.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Closes this process to its children and to other processes of the same user: its environment and memory cannot be
/// read through `/proc`, nothing can attach to it, and a crash leaves no core file. A process of root can still look.
///
/// A program that holds keys calls this first thing in `main`. Where the system refuses, nothing is lost but the
/// protection, so there is no error.
pub fn close_to_others() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_can_neither_be_looked_into_nor_dumped() {
        close_to_others();
        assert_eq!(rustix::process::dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
        assert_eq!(rustix::process::getrlimit(Resource::Core).current, Some(0));
    }
}
