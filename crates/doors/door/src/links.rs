use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Where other programs show what this one only names. Each is a template, in which names in braces are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// A request, where it comes from, by the name of its door: `{id}`, `{project}` and what the door knows by its keys, such as `{workflow}`.
    pub requests: BTreeMap<String, String>,
    /// A VM in the vSphere client: `{id}` is its managed object id, `{name}` its name.
    pub vm: Option<String>,
    /// A page of the documentation: `{page}`, such as `runbooks/vcenter-link-down.md` or `configuration.md#gates`.
    pub docs: Option<String>,
}

impl Links {
    /// `None` if there is no template, or if it wants something that is not known.
    pub fn fill(
        template: Option<&String>,
        value: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let mut rest = template?.as_str();
        let mut filled = String::new();
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) = after.split_once('}')?;
            filled.push_str(before);
            filled.push_str(&encoded(&value(name)?));
            rest = behind;
        }
        filled.push_str(rest);
        // Whatever is configured, a link opens a page and runs nothing.
        (filled.starts_with("https://") || filled.starts_with("http://")).then_some(filled)
    }

    /// A page of the documentation.
    pub fn docs(&self, page: &str) -> Option<String> {
        let template = self.docs.as_ref()?;
        let filled = template.replace("{page}", page);
        (filled.starts_with("https://") || filled.starts_with("http://")).then_some(filled)
    }
}

/// What others chose cannot leave its place in the address.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_and_what_is_foreign_stays_in_its_place() {
        let fill = |template: &str, id: &str| {
            Links::fill(Some(&template.to_owned()), |name| (name == "id").then(|| id.to_owned()))
        };
        let cds = "https://cds.example/job/{id}?x=1";
        assert_eq!(fill(cds, "7").as_deref(), Some("https://cds.example/job/7?x=1"));
        assert_eq!(
            fill(cds, "a/../b?c").as_deref(),
            Some("https://cds.example/job/a%2F..%2Fb%3Fc?x=1")
        );
        assert_eq!(fill("https://cds.example/{project}", "7"), None, "nobody knows the project");
        assert_eq!(fill("javascript:{id}", "7"), None);
        assert_eq!(Links::fill(None, |_| None), None);
        let links = Links { docs: Some("https://docs.example/{page}".into()), ..Links::default() };
        let page = links.docs("runbooks/a.md#b");
        assert_eq!(page.as_deref(), Some("https://docs.example/runbooks/a.md#b"));
    }
}
