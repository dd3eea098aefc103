//! The files in `specs/`: what the model reads about each built-in tool, made beforehand.

use windlass_ports::{Tool, generated_spec};
use windlass_protocol::{KNOWN_TOOLS, ToolProfile};
use windlass_sandbox::Launcher;

use crate::*;

/// Set to have the files written.
const UPDATE: &str = "WINDLASS_UPDATE_SPECS";

#[test]
fn the_files_say_what_the_types_say() {
    let checked = [
        check::<Bash>(),
        check::<Edit>(),
        check::<Glob>(),
        check::<Grep>(),
        check::<Read>(),
        check::<TaskStop>(),
        check::<Write>(),
    ];
    let bash = BashSettings::new(Launcher::direct());
    let tools = built_in(bash, GlobSettings::default(), ReadLimits::default(), &Tasks::new(None));
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.to_string()).collect();
    assert_eq!(names, checked, "each tool is checked");
}

fn check<T: Tool>() -> &'static str {
    if KNOWN_TOOLS.contains(&T::NAME) {
        assert_eq!(T::PROFILE, ToolProfile::named(T::NAME), "what is known of {} by its name", T::NAME);
    }
    let generated = generated_spec::<T>() + "\n";
    if std::env::var_os(UPDATE).is_some() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("specs");
        std::fs::write(folder.join(format!("{}.json", T::NAME)), generated).unwrap();
        return T::NAME;
    }
    let hint = "write the files anew: WINDLASS_UPDATE_SPECS=1 cargo test -p windlass-tools the_files_say";
    assert!(T::SPEC.is_none_or(|spec| spec == generated), "{hint}");
    T::NAME
}
