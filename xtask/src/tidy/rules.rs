//! docs/LOOP.md keeps up with the code: every rule of the loop names a function and a test that are there, and nothing
//! that the code lists is left out.

use super::SourceFile;

const PAGE: &str = "docs/LOOP.md";

/// Each row of a table of the page names at least one function and one test, and all of them exist.
pub(crate) fn rules_name_functions_and_tests(sources: &[SourceFile]) -> Vec<String> {
    let Some(page) = find(sources, PAGE) else { return vec![format!("{PAGE}: the page is missing")] };
    rows(page).flat_map(|row| row_complaints(row, sources)).collect()
}

/// Each transition, terminal, rung and layer has a row.
pub(crate) fn rules_are_complete(sources: &[SourceFile]) -> Vec<String> {
    let Some(page) = find(sources, PAGE) else { return Vec::new() };
    let missing = |name: &String| {
        !rows(page).any(|row| row.contains(&format!("`{name}`")) || row.contains(&format!("::{name}`")))
    };
    listed(sources).into_iter().filter(missing).map(|name| format!("{PAGE}: `{name}` has no row")).collect()
}

/// The names that the code lists: of transitions and terminals, of rungs and of layers.
fn listed(sources: &[SourceFile]) -> Vec<String> {
    let names = find(sources, "crates/protocol/src/reason.rs").unwrap_or_default();
    let named = names
        .lines()
        .filter_map(|line| line.trim().split_once(" => \"")?.1.strip_suffix("\","))
        .map(str::to_owned);
    let lists = [
        ("crates/core/src/turn/ladder.rs", "const RUNGS"),
        ("crates/core/src/turn/prepare.rs", "const LAYERS"),
    ];
    let functions =
        lists.into_iter().flat_map(|(path, list)| list_of(find(sources, path).unwrap_or_default(), list));
    named.chain(functions).collect()
}

/// The functions of a constant list.
fn list_of(text: &str, list: &str) -> Vec<String> {
    let inside = text
        .split(list)
        .nth(1)
        .and_then(|rest| rest.split_once("= ["))
        .and_then(|(_, rest)| rest.split("];").next());
    let items = inside.unwrap_or_default().split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| item.rsplit("::").next().unwrap_or(item).to_owned()).collect()
}

/// The rows of the tables, without their heads.
fn rows(page: &str) -> impl Iterator<Item = &str> {
    let is_row =
        |line: &&str| line.starts_with('|') && !line.starts_with("|---") && !line.starts_with("| Rule ");
    page.lines().filter(is_row)
}

fn row_complaints(row: &str, sources: &[SourceFile]) -> Vec<String> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
    let rule = cells.first().map_or("", |cell| cell.trim());
    let [_, functions, tests] = cells[..] else {
        return vec![format!("{PAGE}: the row `{rule}` does not have a rule, functions and tests")];
    };
    let mut complaints = Vec::new();
    for (cell, what, mark) in [(functions, "function", "fn "), (tests, "test", "#[")] {
        let names: Vec<&str> = cell.split('`').filter(|piece| piece.contains(".rs::")).collect();
        if names.is_empty() {
            complaints.push(format!("{PAGE}: the rule `{rule}` names no {what}"));
        }
        let lost = names.into_iter().filter(|name| !exists(name, mark == "#[", sources));
        complaints.extend(lost.map(|name| format!("{PAGE}: there is no {what} `{name}`")));
    }
    complaints
}

/// Whether there is a function of this name in this file; a test if one is asked for.
fn exists(name: &str, is_test: bool, sources: &[SourceFile]) -> bool {
    let Some((path, function)) = name.split_once("::") else { return false };
    let Some(text) = find(sources, &format!("crates/{path}")) else { return false };
    let declared = format!("fn {function}(");
    let place = text.find(&declared).or_else(|| text.find(&format!("fn {function}<")));
    place.is_some_and(|place| {
        let before = &text[..place];
        let head = &before[before.trim_end_matches(|c| c != '}' && c != ';').len()..];
        !is_test || head.contains("test]") || head.contains("test(") || inside_proptest(before)
    })
}

/// Whether the text ends inside a block of property tests, whose functions all are tests.
fn inside_proptest(before: &str) -> bool {
    before.rsplit_once("proptest! {").is_some_and(|(_, since)| !since.contains("\n}"))
}

fn find<'a>(sources: &'a [SourceFile], path: &str) -> Option<&'a str> {
    sources.iter().find(|source| source.path == path).map(|source| &*source.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(page: &str) -> Vec<SourceFile> {
        let source = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        vec![
            source(PAGE, page),
            source("crates/protocol/src/reason.rs", "match self {\n    Self::Done => \"done\",\n}"),
            source(
                "crates/core/src/turn/ladder.rs",
                "const RUNGS: [Rung; 2] = [\n    climb,\n    rest,\n];\nfn climb() {}",
            ),
            source("crates/core/src/turn/prepare.rs", "const LAYERS: [Layer; 1] = [context::snip];"),
            source("crates/core/tests/a.rs", "#[test]\nfn it_climbs() {\n}\nfn helper() {}"),
        ]
    }

    #[track_caller]
    fn check(page: &str, expected: &[&str]) {
        let sources = sources(page);
        let complaints = [rules_name_functions_and_tests(&sources), rules_are_complete(&sources)].concat();
        assert_eq!(complaints, expected);
    }

    const GOOD: &str = "| Rule | Function | Test |\n|---|---|---|\n\
        | `climb`, `rest`, `snip`, `done` | `core/src/turn/ladder.rs::climb` | `core/tests/a.rs::it_climbs` |\n";

    #[test]
    fn rows_name_what_is_there_and_leave_nothing_out() {
        check(GOOD, &[]);
        check(&GOOD.replace("`rest`, ", ""), &["docs/LOOP.md: `rest` has no row"]);
        check(&GOOD.replace("`done`", "done"), &["docs/LOOP.md: `done` has no row"]);
        check(
            &GOOD.replace("rs::climb", "rs::fall"),
            &["docs/LOOP.md: there is no function `core/src/turn/ladder.rs::fall`"],
        );
        check(
            &GOOD.replace("it_climbs", "helper"),
            &["docs/LOOP.md: there is no test `core/tests/a.rs::helper`"],
        );
        check(
            &GOOD.replace("`core/tests/a.rs::it_climbs`", "none"),
            &["docs/LOOP.md: the rule ``climb`, `rest`, `snip`, `done`` names no test"],
        );
    }
}
