use crate::page::{Shown, is_assignment};

/// One command line without the remark behind it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

impl Line {
    pub(crate) fn of(shown: &Shown) -> Self {
        let mut text = String::new();
        for (at, letter, is_quoted) in letters(&shown.text) {
            if letter == '#' && !is_quoted && (at == 0 || shown.text[..at].ends_with(' ')) {
                break;
            }
            text.push(letter);
        }
        Self { text: text.trim().trim_end_matches('&').trim().to_owned() }
    }
}

/// Each letter with its place and whether it is quoted.
fn letters(text: &str) -> impl Iterator<Item = (usize, char, bool)> {
    let mut quote = None;
    text.char_indices().map(move |(at, letter)| {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => return (at, letter, quote.is_some()),
        }
        (at, letter, true)
    })
}

/// The commands of a line, as far as documents need the shell's grammar: pipes, lists, quotes, redirections, variables in front.
pub(crate) fn simple_commands(line: &str) -> Vec<Simple> {
    let mut commands = vec![vec![String::new()]];
    for (_, letter, is_quoted) in letters(line) {
        match letter {
            ';' | '|' | '&' if !is_quoted => commands.push(vec![String::new()]),
            ' ' if !is_quoted => commands.last_mut().unwrap().push(String::new()),
            '\'' | '"' if is_quoted => {}
            _ => commands.last_mut().unwrap().last_mut().unwrap().push(letter),
        }
    }
    let simple = |words: Vec<String>| {
        let words = words.into_iter().filter(|word| !word.is_empty());
        let mut words = words.skip_while(|word| is_assignment(word)).peekable();
        let program = words.next()?;
        let args =
            words.take_while(|word| !word.starts_with('>') && !word.starts_with("2>")).collect();
        Some(Simple { program, args })
    };
    commands.into_iter().filter_map(simple).collect()
}

#[test]
fn lines_are_taken_apart_as_the_shell_does() {
    let line = |text: &str| {
        Line::of(&Shown { line: 1, text: text.to_owned(), place: crate::page::Place::Block }).text
    };
    assert_eq!(line("roost vms      # all of them"), "roost vms");
    assert_eq!(line("sed 's| # |x|' a &"), "sed 's| # |x|' a");
    let parts = |text: &str| {
        let commands = simple_commands(text).into_iter();
        commands
            .map(|simple| format!("{} {}", simple.program, simple.args.join(" ")))
            .collect::<Vec<_>>()
    };
    assert_eq!(parts("roost vms; roost pools"), ["roost vms", "roost pools"]);
    assert_eq!(
        parts("A=1 curl -s 'http://x?a;b' | jq -c '.[] | .a'"),
        ["curl -s http://x?a;b", "jq -c .[] | .a"]
    );
    assert_eq!(parts("roost config new > draft.toml"), ["roost config new"]);
}
