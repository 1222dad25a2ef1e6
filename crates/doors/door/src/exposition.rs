//! Prometheus text of several doors as one.

use std::collections::BTreeMap;

/// Doors of one kind, such as two controllers, have families in common; a family stands once, with the samples of all.
pub(crate) fn merged(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.collect();
    // In the order in which families were first seen.
    let mut order: Vec<&str> = Vec::new();
    let mut families: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for text in &texts {
        let mut family = "";
        let mut is_known = false;
        for line in text.lines() {
            let comment = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
            if let Some(name) = comment.and_then(|rest| rest.split(' ').next()) {
                if name != family {
                    family = name;
                    is_known = families.contains_key(name);
                    if !is_known {
                        order.push(name);
                        families.insert(name, Default::default());
                    }
                }
                if !is_known && let Some((head, _)) = families.get_mut(family) {
                    head.push_str(line);
                    head.push('\n');
                }
            } else if !line.starts_with('#') && !line.is_empty() {
                // Samples without a family's lines before them are kept, too.
                let (_, samples) = families.entry(family).or_insert_with(|| {
                    order.push(family);
                    Default::default()
                });
                samples.push_str(line);
                samples.push('\n');
            }
        }
    }
    let all = order.iter().filter_map(|name| families.get(name));
    all.flat_map(|(head, samples)| [head.as_str(), samples.as_str()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_of_two_doors_stands_once_with_the_samples_of_both() {
        let one = "# HELP a_total Some.\n# TYPE a_total counter\na_total{of=\"1\"} 1\n# HELP b Own.\n# TYPE b gauge\nb 2\n";
        let two = "# HELP a_total Some.\n# TYPE a_total counter\na_total{of=\"2\"} 3\n";
        let both = merged([one.to_owned(), two.to_owned()].into_iter());
        let wanted = "# HELP a_total Some.\n# TYPE a_total counter\na_total{of=\"1\"} 1\na_total{of=\"2\"} 3\n# HELP b Own.\n# TYPE b gauge\nb 2\n";
        assert_eq!(both, wanted);
        assert_eq!(
            merged([one.to_owned(), String::new()].into_iter()),
            one,
            "one is left as it is"
        );
        assert_eq!(merged([format!("{one}{two}")].into_iter()), wanted, "also in one text");
    }
}
