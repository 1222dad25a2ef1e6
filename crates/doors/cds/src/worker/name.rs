use roost_clock::Random;

use super::words::{ADJECTIVES, SURNAMES};

/// The API's limit, which is also that of a host name.
const MAX_LENGTH: usize = 63;
/// With less room than this for the random part there is only part of a surname.
const LEAST_ROOM: usize = 10;
/// A draw that does not fit is repeated this often before a surname is cut.
const FITTING_DRAWS: u32 = 200;
/// Names from lists clash: one shape has only some 23,000 names. After this many clashes a name gets a number.
const PLAIN_DRAWS: u32 = 16;
const NUMBERED_DRAWS: u32 = 64;
const NUMBER_LENGTH: usize = 7;

/// No free name was found, which says that the check takes every name for taken.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("every worker name with the prefix {prefix:?} that was drawn is in use")]
pub struct NamesExhausted {
    pub prefix: String,
}

/// Makes names for workers, which are also names of VMs: `happy-but-keen-turing`, `register-calm-noether`.
#[derive(Debug)]
pub struct WorkerNames {
    random: Random,
}

impl WorkerNames {
    pub fn new(random: Random) -> Self {
        Self { random }
    }

    /// A name that `is_taken` does not know. The prefix may be empty.
    pub fn next(
        &mut self,
        prefix: &str,
        is_taken: impl Fn(&str) -> bool,
    ) -> Result<String, NamesExhausted> {
        for draw in 0..PLAIN_DRAWS + NUMBERED_DRAWS {
            let name = if draw < PLAIN_DRAWS {
                self.draw(prefix, MAX_LENGTH)
            } else {
                let number = self.random.below(1 << 24);
                format!("{}-{number:06x}", self.draw(prefix, MAX_LENGTH - NUMBER_LENGTH))
            };
            if !is_taken(&name) {
                return Ok(name);
            }
        }
        Err(NamesExhausted { prefix: prefix.to_owned() })
    }

    fn draw(&mut self, prefix: &str, length: usize) -> String {
        let room = length.saturating_sub(prefix.len() + 1);
        let random = if room < LEAST_ROOM { self.cut_surname(room) } else { self.fitting(room) };
        slug(&format!("{prefix}-{random}"))
    }

    fn fitting(&mut self, room: usize) -> String {
        for _ in 0..FITTING_DRAWS {
            let name = match self.random.below(3) {
                0 => format!("{}_{}", self.adjective(), self.surname()),
                1 => format!("{}_but_{}_{}", self.adjective(), self.adjective(), self.surname()),
                _ => format!("{}_and_{}_{}", self.adjective(), self.adjective(), self.surname()),
            };
            if name.len() <= room {
                return name;
            }
        }
        self.cut_surname(room)
    }

    fn cut_surname(&mut self, room: usize) -> String {
        self.surname().chars().take(room).collect()
    }

    fn adjective(&mut self) -> &'static str {
        self.random.pick(&ADJECTIVES).copied().unwrap_or_default()
    }

    fn surname(&mut self) -> &'static str {
        self.random.pick(&SURNAMES).copied().unwrap_or_default()
    }
}

/// Lower-case letters, digits and single dashes between them; accents are taken off first.
pub fn slug(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for character in text.trim().chars() {
        let plain = without_accent(character);
        if plain.is_empty() {
            if !slug.ends_with('-') {
                slug.push('-');
            }
        } else {
            slug.push_str(&plain);
        }
    }
    slug.trim_matches('-').to_owned()
}

/// Empty for what is neither letter nor digit.
fn without_accent(character: char) -> String {
    let lower = character.to_lowercase().next().unwrap_or(character);
    let plain = match lower {
        'a'..='z' | '0'..='9' => return lower.to_string(),
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'ä' | 'æ' => "ae",
        'ç' | 'ć' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ė' | 'ę' | 'ě' => "e",
        'ğ' | 'ģ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'į' | 'ı' => "i",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ø' | 'ō' | 'ő' => "o",
        'ö' | 'œ' => "oe",
        'ŕ' | 'ř' => "r",
        'ś' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'ť' | 'ţ' | 'ț' => "t",
        'ù' | 'ú' | 'û' | 'ū' | 'ů' | 'ű' | 'ų' => "u",
        'ü' => "ue",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => "",
    };
    plain.to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use super::*;

    fn names(seed: u64) -> WorkerNames {
        WorkerNames::new(Random::from_seed(seed))
    }

    fn shape(name: &str) -> &'static str {
        if name.contains("-but-") {
            "but"
        } else if name.contains("-and-") {
            "and"
        } else {
            "plain"
        }
    }

    #[test]
    fn the_lists_have_their_sizes_and_are_slugs_without_repeats() {
        assert_eq!((ADJECTIVES.len(), SURNAMES.len()), (99, 238));
        for list in [&ADJECTIVES[..], &SURNAMES[..]] {
            assert_eq!(list.iter().collect::<HashSet<_>>().len(), list.len());
            assert!(list.iter().all(|word| slug(word) == *word && !word.contains('-')));
        }
    }

    #[test]
    fn the_three_shapes_are_equally_likely() {
        let mut names = names(1);
        let mut counts = BTreeMap::new();
        for _ in 0..3000 {
            let name = names.next("", |_| false).unwrap();
            assert!(name.len() <= MAX_LENGTH && slug(&name) == name, "{name}");
            *counts.entry(shape(&name)).or_insert(0) += 1;
        }
        assert!(counts.values().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_name_never_exceeds_its_length_whatever_the_prefix() {
        let mut names = names(2);
        for length in 0..62 {
            let prefix = "p".repeat(length);
            for _ in 0..50 {
                let name = names.next(&prefix, |_| false).unwrap();
                assert!(name.len() <= MAX_LENGTH, "{name}");
                assert!(name.starts_with(&prefix) && !name.ends_with('-'), "{name}");
            }
        }
        let name = names.next("provision-v2-ip-10-0-0-7", |_| false).unwrap();
        assert!(name.starts_with("provision-v2-ip-10-0-0-7-"), "{name}");
    }

    #[test]
    fn a_taken_name_is_never_given() {
        // Some 23,000 names of one shape would clash within a few hundred draws.
        let (mut names, mut used) = (names(3), HashSet::new());
        for _ in 0..20_000 {
            let name = names.next("", |name| used.contains(name)).unwrap();
            assert!(used.insert(name));
        }
    }

    #[test]
    fn when_all_plain_names_are_taken_a_number_is_added() {
        let taken = |name: &str| !name.ends_with(|c: char| c.is_ascii_digit());
        let name = names(4).next("register", taken).unwrap();
        assert!(name.starts_with("register-") && name.len() <= MAX_LENGTH, "{name}");
        let error = names(4).next("x", |_| true).unwrap_err();
        assert_eq!(error, NamesExhausted { prefix: "x".into() });
    }

    #[test]
    fn a_seed_gives_the_same_names() {
        let draw = |seed| {
            let mut names = names(seed);
            [(); 5].map(|()| names.next("", |_| false).unwrap())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn slugs_follow_the_rule() {
        for (text, wanted) in [
            ("-happy_but_keen_turing", "happy-but-keen-turing"),
            ("  Été  à Zürich!! ", "ete-a-zuerich"),
            ("__a//b..c__", "a-b-c"),
            ("Łódź 10.0.0.1", "lodz-10-0-0-1"),
            ("---", ""),
        ] {
            assert_eq!(slug(text), wanted, "{text:?}");
        }
    }
}
