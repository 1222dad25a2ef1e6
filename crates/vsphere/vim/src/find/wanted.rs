//! What a person wrote to say which object is meant.

use roost_vim_wire::{MoRef, MoType};

use super::name::Pattern;

/// A reading of the text by govmomi's rules, so that configuration written for it keeps its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Nothing: the only candidate there is.
    Default,
    /// No `/`: any candidate of this name, however deep. `VirtualMachine:vm-12` is first taken as a reference.
    Name {
        pattern: Pattern,
        reference: Option<MoRef>,
    },
    Path(Path),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    /// From the root folder; otherwise from the folder of the kind (`vm`, `host`, `datastore`, `network`).
    pub absolute: bool,
    pub parts: Vec<Pattern>,
    /// Written with a last part `...`: anything below.
    pub below: bool,
}

/// Why the text says nothing that could be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    #[error("a path cannot go up with \"..\"")]
    Upward,
    #[error("the pattern has an unclosed bracket or a dangling backslash")]
    Pattern,
}

impl Wanted {
    pub(crate) fn parse(text: &str) -> Result<Self, PathProblem> {
        let pattern = |part: &str| Pattern::parse(part).ok_or(PathProblem::Pattern);
        if text.is_empty() {
            return Ok(Self::Default);
        }
        if !text.contains('/') && text != "." && text != "..." {
            if text == ".." {
                return Err(PathProblem::Upward);
            }
            return Ok(Self::Name { pattern: pattern(text)?, reference: reference(text) });
        }
        let mut parts: Vec<&str> =
            text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return Err(PathProblem::Upward);
        }
        let below = parts.pop_if(|last| *last == "...").is_some();
        let parts = parts.into_iter().map(pattern).collect::<Result<_, _>>()?;
        Ok(Self::Path(Path { absolute: text.starts_with('/'), parts, below }))
    }
}

impl Path {
    pub(crate) fn is_glob(&self) -> bool {
        self.below || self.parts.iter().any(Pattern::is_glob)
    }
}

/// `VirtualMachine:vm-12`. Only kinds that Roost knows: a VM may well be called `build:7`.
fn reference(text: &str) -> Option<MoRef> {
    let (kind, id) = text.split_once(':')?;
    let kind = MoType::from(kind);
    (!matches!(kind, MoType::Other(_)) && !id.is_empty()).then(|| MoRef::new(kind, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        match Wanted::parse(text).unwrap() {
            Wanted::Path(path) => path,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_five_forms_are_told_apart() {
        assert_eq!(Wanted::parse("").unwrap(), Wanted::Default);
        let Wanted::Name { reference, .. } = Wanted::parse("VirtualMachine:vm-12").unwrap() else {
            panic!()
        };
        assert_eq!(reference, Some(MoRef::vm("vm-12")));
        let Wanted::Name { reference, .. } = Wanted::parse("build:7").unwrap() else { panic!() };
        assert_eq!(reference, None, "an unknown kind is part of a name");
        assert!(path("/DC0/vm/a").absolute);
        assert!(!path("templates/a").absolute);
        assert!(!path("./a").absolute);
        assert_eq!(path("/DC0//vm/./a/").parts.len(), 3);
        assert!(path("/DC0/vm/...").below);
        assert_eq!(path("/").parts.len(), 0);
    }

    #[test]
    fn going_up_is_refused() {
        for text in ["..", "../a", "/DC0/../DC1"] {
            assert_eq!(Wanted::parse(text), Err(PathProblem::Upward), "{text}");
        }
    }

    #[test]
    fn an_escaped_slash_does_not_separate() {
        assert_eq!(path("/DC0/vm/a%2fb").parts.len(), 3);
        assert!(path("/DC0/vm/a%2fb").parts[2].is_exactly("a%2fb"));
    }
}
