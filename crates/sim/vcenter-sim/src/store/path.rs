/// A path inside a datastore without empty steps; `None` if it leaves the datastore.
pub(crate) fn clean_path(path: &str) -> Option<String> {
    let mut clean = String::with_capacity(path.len());
    for part in path.split('/').map(str::trim).filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." || part.contains('\0') {
            return None;
        }
        if !clean.is_empty() {
            clean.push('/');
        }
        clean.push_str(part);
    }
    Some(clean)
}

/// The datastore's name and the path of `[LocalDS_0] dir/file`.
pub(crate) fn parse_datastore_path(text: &str) -> Option<(&str, String)> {
    let (name, path) = text.trim_start().strip_prefix('[')?.split_once(']')?;
    Some((name, clean_path(path)?))
}

/// The directory that a path is in; empty for the root.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Whether a name fits a pattern with `*` and `?`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut in_name, mut star) = (0, 0, None);
    while in_name < name.len() {
        if at < pattern.len() && (pattern[at] == '?' || pattern[at] == name[in_name]) {
            (at, in_name) = (at + 1, in_name + 1);
        } else if at < pattern.len() && pattern[at] == '*' {
            star = Some((at, in_name));
            at += 1;
        } else if let Some((star_at, from)) = star {
            (at, in_name) = (star_at + 1, from + 1);
            star = Some((star_at, from + 1));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|char| *char == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datastore_paths_are_cleaned_and_cannot_leave_the_datastore() {
        assert_eq!(
            parse_datastore_path("[LocalDS_0] iso//a/./b.iso"),
            Some(("LocalDS_0", "iso/a/b.iso".into()))
        );
        assert_eq!(parse_datastore_path("[LocalDS_0]"), Some(("LocalDS_0", String::new())));
        assert_eq!(parse_datastore_path("LocalDS_0 x"), None);
        assert_eq!(parse_datastore_path("[ds] a/../../etc"), None);
    }

    #[test]
    fn patterns_know_stars_and_question_marks() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("*.iso", "boot.iso", true),
            ("*.iso", "boot.iso.part", false),
            ("b??t*", "boot.iso", true),
            ("*o*o*", "foo", true),
            ("boot.iso", "boot.is", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
