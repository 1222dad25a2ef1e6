//! Which version of the API is spoken.
//!
//! A small codec is safest with an older version than the server's own: the server then leaves out what came later.

use roost_vim_wire::Element;

/// The newest version that is asked for.
const NEWEST: [u32; 4] = [8, 0, 3, 0];
const NEWEST_TEXT: &str = "8.0.3.0";
/// The oldest that is chosen among several. A server that has nothing newer is still spoken to.
const OLDEST: [u32; 4] = [6, 7, 0, 0];

/// Chooses from `vimServiceVersions.xml`; `None` if it names no version of vim25.
pub(crate) fn choose(versions_xml: &[u8]) -> Option<String> {
    let document = Element::parse(versions_xml).ok()?;
    let vim25 = document
        .children_named("namespace")
        .find(|namespace| namespace.text_of("name") == Some("urn:vim25"))?;
    let own = vim25.text_of("version")?.trim();
    let prior =
        vim25.child("priorVersions").into_iter().flat_map(|list| list.children_named("version"));
    at_most_newest(own, prior.map(|version| version.text.trim()))
}

/// The version of a server that only says its own.
pub(crate) fn choose_own(own: &str) -> Option<String> {
    at_most_newest(own, std::iter::empty())
}

fn at_most_newest<'a>(own: &'a str, prior: impl Iterator<Item = &'a str>) -> Option<String> {
    let number = parse(own)?;
    if number <= NEWEST {
        return Some(own.to_owned());
    }
    let known = prior.filter_map(|text| Some((parse(text)?, text)));
    let best = known.filter(|(number, _)| (OLDEST..=NEWEST).contains(number)).max();
    Some(best.map_or(NEWEST_TEXT, |(_, text)| text).to_owned())
}

fn parse(text: &str) -> Option<[u32; 4]> {
    let mut number = [0; 4];
    for (index, part) in text.trim().split('.').enumerate() {
        *number.get_mut(index)? = part.parse().ok()?;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(own: &str, prior: &[&str]) -> String {
        let prior = prior.join("</version><version>");
        format!(
            "<?xml version=\"1.0\"?><namespaces version=\"1.0\"><namespace><name>urn:vim2</name><version>2.0</version></namespace>\
             <namespace><name>urn:vim25</name><version>{own}</version><priorVersions><version>{prior}</version></priorVersions></namespace></namespaces>"
        )
    }

    #[test]
    fn the_version_is_the_servers_but_not_above_ours() {
        for (case, own, prior, wanted) in [
            ("vcsim", "6.5", vec!["6.0", "5.5"], "6.5"),
            ("6.7", "6.7.3", vec!["6.7.2", "6.5"], "6.7.3"),
            ("7", "7.0.3.2", vec!["7.0.3.0"], "7.0.3.2"),
            ("ours", "8.0.3.0", vec!["8.0.2.0"], "8.0.3.0"),
            ("9 that lists ours", "9.0.0.0", vec!["8.0.3.0", "8.0.2.0", "6.7"], "8.0.3.0"),
            (
                "9 that has an earlier 8",
                "9.0.0.0",
                vec!["8.0.10.0", "8.0.2.0", "7.0.3.0"],
                "8.0.2.0",
            ),
            ("9 that lists only what is too old", "9.0.0.0", vec!["6.5"], "8.0.3.0"),
        ] {
            assert_eq!(choose(document(own, &prior).as_bytes()).as_deref(), Some(wanted), "{case}");
        }
    }

    #[test]
    fn a_document_without_vim25_chooses_nothing() {
        for text in ["", "<html>404</html>", "<namespaces/>", &document("newest", &[])] {
            assert_eq!(choose(text.as_bytes()), None, "{text}");
        }
        assert_eq!(choose_own("9.1.0.0").as_deref(), Some("8.0.3.0"));
    }
}
