//! What a person means who writes the beginning of an id: lists show ids cut short, and what is shown can be typed.

use roost_views::RequestId;
use strsim::normalized_damerau_levenshtein;

use crate::House;

/// Fewer letters are as good as none.
const SHORTEST: usize = 4;
/// So many are listed of those that begin alike.
const LISTED: usize = 10;
/// From here on two words look alike.
const ALIKE: f64 = 0.6;

/// What was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant<T> {
    One(T),
    /// All of these begin so.
    Several(Vec<String>),
    /// None does; this one looks most like it.
    Nothing {
        nearest: Option<String>,
    },
}

/// Why an id means nothing, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotMeant {
    Several(String),
    Unknown(String),
}

/// The one that is called `text`, or the only one that begins so.
fn meant<T>(text: &str, known: impl IntoIterator<Item = (String, T)>) -> Meant<T> {
    let mut beginning = Vec::new();
    let mut nearest: Option<(f64, String)> = None;
    for (name, it) in known {
        if name == text {
            return Meant::One(it);
        }
        if text.len() >= SHORTEST && name.starts_with(text) {
            beginning.push((name, it));
            continue;
        }
        let likeness = normalized_damerau_levenshtein(&name, text);
        if likeness >= ALIKE && nearest.as_ref().is_none_or(|(best, _)| likeness > *best) {
            nearest = Some((likeness, name));
        }
    }
    if beginning.len() > 1 {
        let mut names: Vec<String> = beginning.into_iter().map(|(name, _)| name).collect();
        names.sort();
        return Meant::Several(names);
    }
    match beginning.pop() {
        Some((_, it)) => Meant::One(it),
        None => Meant::Nothing { nearest: nearest.map(|(_, name)| name) },
    }
}

impl House {
    /// A request by its id or the beginning of it, of one door or of any.
    pub fn request_meant(&self, door: Option<&str>, text: &str) -> Meant<RequestId> {
        let doors =
            || self.doors.iter().filter(|it| door.is_none_or(|door| it.words().name == door));
        // Most ids are whole, and finding one does not build the others.
        if let Some(door) = doors().find(|door| door.request(text).is_some()) {
            return Meant::One(door.words().request(text));
        }
        let known = doors().flat_map(|door| self.requests_of(door.as_ref()));
        let known = known.map(|it| (it.id.id.clone(), it.id));
        meant(text, known)
    }

    /// A VM by its name, its id, or the beginning of its name.
    pub fn vm_meant(&self, text: &str) -> Meant<String> {
        if self.vm(text).is_some() {
            return Meant::One(text.to_owned());
        }
        meant(text, self.vms().into_iter().map(|vm| (vm.name.clone(), vm.name)))
    }
}

impl<T> Meant<T> {
    /// What was found, or in words why not: `what` is a noun, such as `job`.
    pub fn or_words(self, what: &str, text: &str) -> Result<T, NotMeant> {
        match self {
            Self::One(it) => Ok(it),
            Self::Several(names) => {
                let more = names.len().saturating_sub(LISTED);
                let mut listed = names[..names.len() - more].join(", ");
                if more > 0 {
                    listed = format!("{listed} and {more} more");
                }
                Err(NotMeant::Several(format!("several begin with {text}: {listed}")))
            }
            Self::Nothing { nearest: Some(nearest) } => Err(NotMeant::Unknown(format!(
                "{what} {text} is not known; do you mean {nearest}?"
            ))),
            Self::Nothing { nearest: None } => {
                Err(NotMeant::Unknown(format!("{what} {text} is not known")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Meant<String> {
        let known = ["05d907f2-aa", "05d907f2-bb", "69c80595-cc", "1045"];
        meant(text, known.map(|name| (name.to_owned(), name.to_owned())))
    }

    #[test]
    fn a_whole_id_or_the_only_one_that_begins_so_is_meant() {
        let one = |name: &str| Meant::One(name.to_owned());
        let nothing = |nearest: Option<&str>| Meant::Nothing { nearest: nearest.map(Into::into) };
        for (text, wanted) in [
            ("1045", one("1045")),
            ("69c8", one("69c80595-cc")),
            ("05d907f2-a", one("05d907f2-aa")),
            ("69c", nothing(None)),
            ("1046", nothing(Some("1045"))),
            ("", nothing(None)),
        ] {
            assert_eq!(found(text), wanted, "{text}");
        }
        let several = Meant::Several(vec!["05d907f2-aa".into(), "05d907f2-bb".into()]);
        assert_eq!(found("05d9"), several);
    }

    #[test]
    fn what_was_not_found_is_said_with_what_is_there() {
        let words = |text: &str| found(text).or_words("job", text).unwrap_err();
        assert_eq!(
            words("05d9"),
            NotMeant::Several("several begin with 05d9: 05d907f2-aa, 05d907f2-bb".into())
        );
        assert_eq!(
            words("1046"),
            NotMeant::Unknown("job 1046 is not known; do you mean 1045?".into())
        );
        assert_eq!(words("zz"), NotMeant::Unknown("job zz is not known".into()));
        let many = (0..12).map(|number| format!("abcd{number:02}"));
        let said = meant("abcd", many.map(|name| (name, ()))).or_words("job", "abcd").unwrap_err();
        assert!(format!("{said:?}").contains("abcd09 and 2 more"), "{said:?}");
    }
}
