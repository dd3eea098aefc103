//! Whatever calls do in whatever order, going back brings back exactly what was there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;
use windlass_session::RewindPoint;

use crate::world::World;

#[derive(Clone, Debug)]
enum Step {
    Prompt,
    Write(usize, Vec<u8>),
    Remove(usize),
    Mode(usize, u32),
    Move(usize, usize),
    /// A command that says nothing about what it changes.
    Silent(usize, u8),
    Rewind(prop::sample::Index),
    Undo,
    Reopen,
}

const NAMES: [&str; 5] = ["a", "b", "d/a", "d/e/f", "g/h"];

type Model = BTreeMap<&'static str, (Vec<u8>, u32)>;

fn files(world: &World) -> Model {
    let read = |name: &&'static str| {
        let path = world.path(name);
        let mode = fs::metadata(&path).ok()?.permissions().mode() & 0o7777;
        Some((*name, (fs::read(path).ok()?, mode)))
    };
    NAMES.iter().filter_map(read).collect()
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    let content = proptest::collection::vec(prop::sample::select(vec![b'x', b'\n', b'\r', 0, 255]), 0..12);
    prop_oneof![
        2 => Just(Step::Prompt),
        4 => (name.clone(), content).prop_map(|(name, content)| Step::Write(name, content)),
        2 => name.clone().prop_map(Step::Remove),
        1 => (name.clone(), prop::sample::select(vec![0o600, 0o644, 0o755])).prop_map(|(name, mode)| Step::Mode(name, mode)),
        1 => (name.clone(), name.clone()).prop_map(|(from, to)| Step::Move(from, to)),
        1 => (name, any::<u8>()).prop_map(|(name, byte)| Step::Silent(name, byte)),
        2 => any::<prop::sample::Index>().prop_map(Step::Rewind),
        1 => Just(Step::Undo),
        1 => Just(Step::Reopen),
    ]
}

/// Does one step of a call.
fn call(world: &mut World, step: &Step) {
    match step {
        Step::Write(name, content) => world.edits(NAMES[*name], content),
        Step::Remove(name) => world.runs(&format!("rm -f {}", NAMES[*name]), &[NAMES[*name]]),
        Step::Mode(name, mode) => {
            let command = format!("test ! -e {0} || chmod {mode:o} {0}", NAMES[*name]);
            world.runs(&command, &[NAMES[*name]]);
        }
        Step::Move(from, to) => {
            let (from, to) = (NAMES[*from], NAMES[*to]);
            world.runs(&format!("mv {from} {to} 2>/dev/null || true"), &[from, to]);
        }
        // Only files that calls have changed before are looked at around such a command.
        Step::Silent(name, byte) => {
            world.runs(&format!("test ! -s {0} || echo {byte} >> {0}", NAMES[*name]), &[]);
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn going_back_brings_back_exactly_what_was_there(
        steps in proptest::collection::vec(step(), 1..30),
    ) {
        let mut world = World::new();
        let mut points = vec![(world.says("first"), files(&world))];
        let mut before_rewind = None;
        for step in &steps {
            match step {
                Step::Prompt => points.push((world.says("more"), files(&world))),
                Step::Rewind(index) => {
                    let (point, model) = index.get(&points);
                    let before = files(&world);
                    let changes = world.plans(*point).changes.len();
                    let rewound = world.rewinds(*point);
                    prop_assert!(rewound.failed.is_empty(), "{:?}", rewound.failed);
                    prop_assert_eq!(&files(&world), model);
                    if changes > 0 {
                        before_rewind = Some(before);
                    }
                }
                // What happened since the last rewind is undone with it.
                Step::Undo => {
                    if let Some(model) = before_rewind.take() {
                        let present = files(&world);
                        let plan = world.plans(RewindPoint::Undo);
                        let changes = plan.changes.len();
                        world.checkpoints.apply(&plan).unwrap();
                        prop_assert_eq!(files(&world), model);
                        before_rewind = (changes > 0).then_some(present);
                    }
                }
                Step::Reopen => world.reopen(),
                step => call(&mut world, step),
            }
        }
    }
}
