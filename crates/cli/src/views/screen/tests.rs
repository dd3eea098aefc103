use super::*;

/// What a terminal got, with `<` for the sequence that clears a line, and `^` for the one that clears the line above too.
#[track_caller]
fn check_on(screen: &Screen, play: impl FnOnce(&Screen, &mut Vec<u8>), expected: &str) {
    let mut out = Vec::new();
    play(screen, &mut out);
    let got = String::from_utf8_lossy(&out).replace(CLEAR, "<").replace("\r\x1b[1A\x1b[J", "^");
    assert_eq!(got, expected);
}

#[track_caller]
fn check(play: impl FnOnce(&Screen, &mut Vec<u8>), expected: &str) {
    check_on(&Screen::with(Target::Output, true), play, expected);
}

#[test]
fn text_grows_and_what_changes_stands_below_what_stays() {
    check(
        |screen, out| {
            screen.status("waiting", out);
            screen.text("Hel", out);
            screen.status("not now", out);
            screen.text("lo.", out);
            screen.end_text(out);
            screen.status("waiting", out);
            screen.lines("Bash ls", out);
        },
        "<waiting<Hello.\n<waiting<Bash ls\n",
    );
}

#[test]
fn what_is_typed_and_what_the_model_says_do_not_mix() {
    check(
        |screen, out| {
            screen.text("Hel", out);
            screen.draft("a", out);
            screen.text("lo.\nMo", out);
            screen.draft("ab", out);
            screen.lines("a line", out);
            screen.end_typing("ab", out);
            screen.end_asking(out);
            screen.text("re", out);
            screen.end_text(out);
        },
        "Hel\n<> a<^Hello.\n<> a<> ab<a line\n<> ab<> ab\nMore\n",
    );
    // Whoever clears the draft sees what was held back.
    check(
        |screen, out| {
            screen.draft("a", out);
            screen.text("Hello", out);
            screen.draft("", out);
            screen.text(".", out);
            screen.draft("b", out);
            screen.text("!", out);
            screen.end_text(out);
        },
        "<> a<Hello.\n<> b<^Hello.!\n<> b",
    );
    // A line that stays goes above the one that is not complete.
    check(
        |screen, out| {
            screen.text("Hel", out);
            screen.lines("a line", out);
            screen.text("lo.", out);
        },
        "Hel<a line\nHello.",
    );
}

#[test]
fn what_does_not_stand_is_taken_back_where_that_is_possible() {
    // `=` is whether it was.
    let check = |play: fn(&Screen, &mut Vec<u8>) -> bool, is_possible: bool, expected: &str| {
        let mut out = Vec::new();
        let screen = Screen::with(Target::Output, true);
        assert_eq!(play(&screen, &mut out), is_possible);
        assert_eq!(String::from_utf8_lossy(&out).replace(CLEAR, "<").replace("\x1b[", "%"), expected);
    };
    check(
        |screen, out| {
            screen.lines("before", out);
            screen.begin_text(true, out);
            screen.text("One\ntwo", out);
            screen.take_back(RetractedText::Answer, out)
        },
        true,
        "before\n\nOne\ntwo\r%2A%J",
    );
    // Only the last block goes, and what is typed stays.
    check(
        |screen, out| {
            screen.begin_text(true, out);
            screen.text("One", out);
            screen.end_text(out);
            screen.begin_text(false, out);
            screen.text("Tw", out);
            screen.draft("a", out);
            screen.take_back(RetractedText::Block, out) && screen.take_back(RetractedText::Answer, out)
        },
        true,
        "\nOne\n\nTw\n<> a<\r%2A%J<> a<\r%2A%J<> a",
    );
    // What others wrote below it stays, and so does the text.
    check(
        |screen, out| {
            screen.begin_text(true, out);
            screen.text("One\n", out);
            screen.lines("Bash ls", out);
            screen.take_back(RetractedText::Answer, out)
        },
        false,
        "\nOne\nBash ls\n",
    );
    check(
        |screen, out| {
            screen.begin_text(true, out);
            screen.text(&"a line\n".repeat(1_000), out);
            let before = out.len();
            let is_possible = screen.take_back(RetractedText::Answer, out);
            assert_eq!(out.len(), before, "what scrolled away cannot be reached");
            out.clear();
            is_possible
        },
        false,
        "",
    );
}

#[test]
fn nothing_comes_between_a_question_and_its_answer() {
    check(
        |screen, out| {
            screen.text("Hel", out);
            screen.ask("y or n?", out);
            screen.lines("a line", out);
            screen.text("lo.\nMo", out);
            screen.end_status(out);
            screen.end_typing("x", out);
            screen.reply("y or n!", out);
            screen.text("re", out);
            screen.end_typing("y", out);
            screen.end_asking(out);
            screen.text(".", out);
        },
        "Hel<y or n?\n<> <> x\n<> <y or n!\n<> <> y\n<> <a line\nHello.\nMore.",
    );
}

#[test]
fn a_terminal_that_cannot_redraw_gets_no_escape_sequences() {
    check_on(
        &Screen::with(Target::Output, false),
        |screen, out| {
            screen.ask_for_prompt(out);
            screen.draft("g", out);
            screen.end_typing("go", out);
            screen.end_asking(out);
            screen.text("Hel", out);
            screen.ask("y or n?", out);
            screen.text("lo.", out);
            screen.end_typing("y", out);
            screen.end_asking(out);
            screen.end_text(out);
            screen.ask_for_prompt(out);
            screen.erase(out);
        },
        "> Hel\ny or n?\n> Hello.\n> \n",
    );
}
