//! A line is allowed only if each of its parts alone is.

use windlass_engine::protocol::Verdict;
use windlass_shell::{CommandDirectory, StrictCommand, Word, analyse};

use crate::case::{Given, all, at_home, none};
use crate::mutate::{Rng, seed};

/// Pairs of lines that are put together.
const PAIRS: usize = 6_000;

const JOINTS: [&str; 8] = ["; ", " && ", " || ", " | ", " & ", "\n", " |& ", ";"];

fn lines() -> Vec<(Given, String)> {
    all().into_iter().filter_map(|case| Some((case.clone(), case.line()?))).collect()
}

/// Whether what follows a line means the same as on its own: the line is over, it is no comment, it moves nowhere, sets nothing and
/// defines nothing.
fn leaves_no_trace(line: &str) -> bool {
    let Ok(commands) = analyse(line).plain else { return false };
    let changes_shell = |command: &StrictCommand| {
        let name = command.words.first().map(|word| word.text().to_string()).unwrap_or_default();
        matches!(&*name, "cd" | "pushd" | "popd" | "export" | "set" | "read" | "unset" | "")
            || name.contains('=')
    };
    let joins_on = line.contains(['#', '=', '<']) || line.trim_end().ends_with(['\\', '&', ';']);
    !joins_on && !commands.iter().any(changes_shell)
}

/// Whether a line means something else behind a pipe: there the shell that it moves, or sets a variable of, is another one.
fn moves(line: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let sets = line.trim_start().trim_start_matches(is_name).starts_with('=');
    sets || ["cd", "pushd", "popd"].iter().any(|mover| line.contains(mover))
}

#[test]
fn a_line_is_allowed_only_if_both_its_halves_are() {
    at_home("parts::a_line_is_allowed_only_if_both_its_halves_are", || {
        let mut rng = Rng::new(seed(13));
        let lines = lines();
        let firsts: Vec<&(Given, String)> = lines.iter().filter(|(_, line)| leaves_no_trace(line)).collect();
        let (mut allowed, mut wrong) = (0, Vec::new());
        for _ in 0..PAIRS {
            let ((one, first), (two, second)) = (*rng.pick(&firsts), rng.pick(&lines));
            // The rules of either, since a line that nothing allows proves nothing.
            let case = if rng.below(2) == 0 { one } else { two };
            let joint = rng.pick(&JOINTS);
            if joint.contains(" |") && moves(second) {
                continue;
            }
            let both = format!("{first}{joint}{second}");
            if case.with_line(&both).decide() != Verdict::Allow {
                continue;
            }
            allowed += 1;
            for part in [first, second] {
                let alone = case.with_line(part).decide();
                if alone != Verdict::Allow {
                    wrong.push(format!("{} with {both:?}: {alone:?} for {part:?}", case.id));
                }
            }
        }
        println!("{allowed} of {PAIRS} lines are allowed");
        assert!(allowed > 300, "only {allowed}");
        none(&wrong);
    });
}

/// Whether a command means the same when it stands alone: it runs where the line starts, every word of it is known, and it does not
/// take further words from what another command of the line says, as xargs does.
fn stands_alone(command: &StrictCommand) -> bool {
    let is_known = |word: &Word| !word.is_unknown() && !word.is_split && word.choices.is_empty();
    let takes_words = command.whole.iter().any(|word| word.text() == "xargs");
    let (starts, has_words) = (command.directory == CommandDirectory::Start, !command.words.is_empty());
    starts && has_words && !takes_words && command.whole.iter().all(is_known)
}

#[test]
fn a_line_is_allowed_only_if_each_command_in_it_is() {
    at_home("parts::a_line_is_allowed_only_if_each_command_in_it_is", || {
        let (mut parts, mut wrong) = (0, Vec::new());
        for (case, line) in lines() {
            let Ok(commands) = analyse(&line).plain else { continue };
            if commands.len() < 2 || case.decide() != Verdict::Allow {
                continue;
            }
            for command in commands.iter().filter(|command| stands_alone(command)) {
                let text = line[command.source.clone()].trim();
                // What is in braces, fed by a here-document or told by a variable of the line is not a line of its own.
                let is_same =
                    |alone: Vec<StrictCommand>| alone.iter().any(|alone| alone.words == command.words);
                if !analyse(text).plain.is_ok_and(is_same) {
                    continue;
                }
                parts += 1;
                let alone = case.with_line(text).decide();
                if alone != Verdict::Allow {
                    wrong.push(format!("{}: {alone:?} for {text:?} of {line:?}", case.id));
                }
            }
        }
        println!("{parts} commands of allowed lines");
        assert!(parts > 200, "only {parts}");
        none(&wrong);
    });
}
