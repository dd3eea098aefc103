//! What the model reads about each tool is written down in `specs/`, so that it need not be put together at each start.

use std::path::Path;

use windlass_ports::{Tool, generated_spec};
use windlass_protocol::{KNOWN_TOOLS, ToolProfile};

/// Set to have the files written.
const UPDATE: &str = "WINDLASS_UPDATE_SPECS";

fn check<T: Tool>() {
    assert!(KNOWN_TOOLS.contains(&T::NAME), "{} is a name that rules and explanations know", T::NAME);
    assert_eq!(T::PROFILE, ToolProfile::named(T::NAME), "what is known of {} by its name", T::NAME);
    let generated = generated_spec::<T>() + "\n";
    if std::env::var_os(UPDATE).is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("specs/{}.json", T::NAME));
        return std::fs::write(file, generated).unwrap();
    }
    assert_eq!(
        T::SPEC,
        Some(&*generated),
        "write the files anew: {UPDATE}=1 cargo test -p windlass-tools specs"
    );
}

#[test]
fn the_files_say_what_the_types_say() {
    check::<crate::bash::CommandTool>();
    check::<crate::edit::Edit>();
    check::<crate::glob::Glob>();
    check::<crate::grep::Grep>();
    check::<crate::read::Read>();
    check::<crate::task_stop::TaskStop>();
    check::<crate::write::Write>();
}
