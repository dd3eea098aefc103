//! Which session is meant, and which one is continued.

use std::path::{Path, PathBuf};

use serde_json::json;
use windlass_session::{Catalogue, FindError, ListScope, SessionFilter};

use crate::support::{World, id, numbers, user};

/// What a query leads to: the number of a session, or a word of the error.
fn found(catalogue: &Catalogue, cwd: &Path, query: &str) -> String {
    match catalogue.find(cwd, query) {
        Ok(session) => numbers(&[session])[0].to_string(),
        Err(FindError::Nothing { .. }) => "nothing".into(),
        Err(FindError::Several { candidates, .. }) => format!("one of {:?}", numbers(&candidates)),
    }
}

#[test]
fn a_session_is_found_by_id_beginning_title_or_words() {
    let world = World::new();
    let (here, there) = (world.project("here"), world.project("there"));
    let title = |text: &str| json!({"type": "custom-title", "customTitle": text});
    world.said(&here, 1, "Fix the parser");
    world.session(&here, 2, &[user(&here, "Explain the lexer"), title("Lexer")]);
    world.said(&here, 3, "Test the parser");
    world.said(&there, 0x00ab_0000_0000, "Paint the fence");
    world.session(&there, 5, &[user(&there, "More"), title("Fence")]);
    let catalogue = world.catalogue();
    let check =
        |query: &str, expected: &str| assert_eq!(found(&catalogue, &here, query), expected, "{query}");
    check(&id(1).to_string(), "1");
    check(&id(1).to_string().to_uppercase(), "1");
    check(&id(5).to_string(), "5");
    check(&id(9).to_string(), "nothing");
    check("11110000-0000-4000-8000-00ab", &0x00ab_0000_0000_u128.to_string());
    check("1111", "one of [3, 2, 1]");
    check("111", "nothing");
    check("lexer", "2");
    check("LEXER", "2");
    check("fence", "5");
    check("explain", "2");
    check("parser", "one of [3, 1]");
    check("paint", "nothing");
    check("", "nothing");
    assert_eq!(found(&catalogue, &there, "paint"), 0x00ab_0000_0000_u128.to_string());
}

#[test]
fn errors_say_what_to_do() {
    let world = World::new();
    let here = world.project("here");
    for number in 1..=7 {
        world.said(&here, number, "the same");
    }
    let nothing = world.catalogue().find(&here, "else").unwrap_err().to_string();
    assert!(nothing.contains("\"else\"") && nothing.contains("windlass sessions list --all"), "{nothing}");
    let several = world.catalogue().find(&here, "same").unwrap_err().to_string();
    assert!(several.contains("7 sessions") && several.contains(&id(7).to_string()), "{several}");
    assert!(several.contains("and others") && !several.contains(&id(1).to_string()), "{several}");
}

#[test]
fn what_lists_leave_out_is_found_by_its_whole_id() {
    let world = World::new();
    let here = world.project("here");
    let mut side = user(&here, "of another");
    side["isSidechain"] = true.into();
    world.session(&here, 1, &[side]);
    assert_eq!(found(&world.catalogue(), &here, &id(1).to_string()), "1");
    assert_eq!(found(&world.catalogue(), &here, "1111"), "nothing");
}

#[test]
fn an_id_that_lies_in_two_other_projects_is_not_guessed() {
    let world = World::new();
    let [here, there, yonder] = ["here", "there", "yonder"].map(|name| world.project(name));
    world.said(&there, 1, "a");
    world.said(&yonder, 1, "b");
    let query = id(1).to_string();
    assert_eq!(found(&world.catalogue(), &here, &query), "one of [1, 1]");
    assert_eq!(world.catalogue().find(&there, &query).unwrap().preview.summary.as_deref(), Some("a"));
    assert_eq!(numbers(&world.catalogue().list(ListScope::Everywhere)), [1]);
}

#[test]
fn the_latest_session_of_the_directory_is_continued() {
    let world = World::new();
    let (here, there) = (world.project("here"), world.project("there"));
    let by = |entrypoint: &str, cwd: &PathBuf| {
        let mut line = user(cwd, "hello");
        line["entrypoint"] = entrypoint.into();
        line
    };
    let mut side = user(&here, "of another");
    side["isSidechain"] = true.into();
    world.session(&here, 1, &[by("cli", &here)]);
    world.session(&here, 2, &[by("cli", &here)]);
    world.session(&here, 3, &[by("sdk-cli", &here)]);
    world.session(&here, 4, &[by("sdk-py", &here)]);
    world.session(&here, 5, &[side]);
    world.session(&here, 6, &[json!({"type": "windlass", "kind": "opened"})]);
    world.session(&there, 7, &[by("cli", &there)]);
    let catalogue = world.catalogue();
    let check = |cwd: &Path, wanted, expected: &[u128]| {
        let newest: Vec<_> = catalogue.newest(cwd, wanted).into_iter().collect();
        assert_eq!(numbers(&newest), expected);
    };
    check(&here, SessionFilter::Interactive, &[2]);
    check(&here, SessionFilter::Any, &[4]);
    check(&there, SessionFilter::Any, &[7]);
    check(&world.project("nowhere"), SessionFilter::Any, &[]);
    check(&world.path("missing"), SessionFilter::Any, &[]);
}
