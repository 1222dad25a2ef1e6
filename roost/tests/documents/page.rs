use std::path::{Path, PathBuf};

/// A document of the repository.
#[derive(Debug)]
pub(crate) struct Page {
    /// From the root of the repository.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Something to type that a page shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Block,
    Span,
}

/// What stands between two fences.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    language: &'a str,
    /// Each with its number.
    pub(crate) lines: Vec<(usize, &'a str)>,
}

/// Code spans that begin with one of these are commands.
const PROGRAMS: [&str; 14] = [
    "roost",
    "cargo",
    "curl",
    "govc",
    "openssl",
    "promtool",
    "systemctl",
    "journalctl",
    "podman",
    "cdsctl",
    "install",
    "sed",
    "timedatectl",
    "export",
];

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All documents for users, by path.
pub(crate) fn pages() -> Vec<Page> {
    let mut paths = vec![PathBuf::from("README.md"), PathBuf::from("CONTRIBUTING.md")];
    let mut folders = vec![PathBuf::from("docs"), PathBuf::from("deploy")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let read = |path: PathBuf| Page {
        text: std::fs::read_to_string(root().join(&path)).unwrap(),
        path: path.to_str().unwrap().to_owned(),
    };
    paths.into_iter().map(read).collect()
}

impl Page {
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        self.parts().0.into_iter()
    }

    /// All that is not in a block, each line with its number.
    pub(crate) fn prose(&self) -> Vec<(usize, &str)> {
        self.parts().1
    }

    fn parts(&self) -> (Vec<Block<'_>>, Vec<(usize, &str)>) {
        let (mut blocks, mut prose) = (Vec::new(), Vec::new());
        let mut open: Option<Block<'_>> = None;
        for (number, line) in self.text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
            match (line.trim_start().strip_prefix("```"), &mut open) {
                (Some(language), None) => {
                    open = Some(Block { language: language.trim(), lines: Vec::new() });
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (None, Some(block)) => block.lines.push((number, line)),
                (None, None) => prose.push((number, line)),
            }
        }
        assert!(open.is_none(), "{}: a block does not end", self.path);
        (blocks, prose)
    }

    /// Code spans outside of blocks.
    pub(crate) fn spans(&self) -> Vec<(usize, &str)> {
        let mut spans = Vec::new();
        for (number, line) in self.prose() {
            spans.extend(line.split('`').skip(1).step_by(2).map(|span| (number, span)));
        }
        spans
    }

    /// Everything that a reader may type, in the order of the page.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Shown> {
        let spans = self
            .spans()
            .into_iter()
            .filter(|(_, span)| is_command(span))
            .map(|(line, span)| Shown { line, text: span.to_owned(), place: Place::Span });
        let mut shown: Vec<Shown> = self
            .blocks()
            .filter(Block::has_commands)
            .flat_map(|block| block.commands())
            .chain(spans)
            .collect();
        shown.sort_by_key(|shown| shown.line);
        shown.into_iter()
    }
}

/// A program with something behind it: alone it is only spoken of.
fn is_command(span: &str) -> bool {
    let mut words = span.split_whitespace().skip_while(|word| is_assignment(word));
    words.next().is_some_and(|word| PROGRAMS.contains(&word)) && words.next().is_some()
}

/// `NAME=value` in front of a command.
pub(crate) fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

impl Block<'_> {
    pub(crate) fn has_commands(&self) -> bool {
        ["sh", "bash", "console"].contains(&self.language)
    }

    /// Lines that go on after a backslash are one.
    fn commands(&self) -> Vec<Shown> {
        let mut shown: Vec<Shown> = Vec::new();
        let mut goes_on = false;
        for (line, text) in &self.lines {
            let text = if self.language == "console" && !goes_on {
                let Some(text) = text.strip_prefix("$ ") else { continue };
                text
            } else {
                text
            };
            let (text, ends) = match text.strip_suffix('\\') {
                Some(text) => (text.trim(), false),
                None => (text.trim(), true),
            };
            match shown.last_mut().filter(|_| goes_on) {
                Some(before) => {
                    before.text.push(' ');
                    before.text.push_str(text);
                }
                None if text.is_empty() || text.starts_with('#') => {}
                None => {
                    shown.push(Shown { line: *line, text: text.to_owned(), place: Place::Block });
                }
            }
            goes_on = !ends && !text.is_empty();
        }
        shown
    }
}
