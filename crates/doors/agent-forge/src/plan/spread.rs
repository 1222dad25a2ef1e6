//! Which failure domain the next VM goes to.

/// A failure domain and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainUse {
    pub name: String,
    /// Its share; none are made where it is 0.
    pub weight: u32,
    pub vms: u32,
    /// VMs can be made there now.
    pub is_ready: bool,
}

/// The domain with fewest VMs for its weight; the first of several. Those that are not ready are taken only if no other is.
pub fn choose_domain(domains: &[DomainUse]) -> Option<&str> {
    let open = || domains.iter().filter(|domain| domain.weight > 0);
    // vms / weight, without a division.
    let by_use = |a: &&DomainUse, b: &&DomainUse| {
        let cross =
            |one: &DomainUse, other: &DomainUse| u64::from(one.vms) * u64::from(other.weight);
        cross(a, b).cmp(&cross(b, a))
    };
    let ready = open().filter(|domain| domain.is_ready).min_by(by_use);
    ready.or_else(|| open().min_by(by_use)).map(|domain| domain.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(name: &str, weight: u32, vms: u32, is_ready: bool) -> DomainUse {
        DomainUse { name: name.into(), weight, vms, is_ready }
    }

    #[test]
    fn vms_go_where_fewest_are_for_the_weight() {
        for (case, domains, wanted) in [
            ("none", vec![], None),
            (
                "the first of equals",
                vec![domain("a", 1, 0, true), domain("b", 1, 0, true)],
                Some("a"),
            ),
            ("fewest", vec![domain("a", 1, 1, true), domain("b", 1, 0, true)], Some("b")),
            ("by weight", vec![domain("a", 3, 2, true), domain("b", 1, 1, true)], Some("a")),
            (
                "not by weight any more",
                vec![domain("a", 3, 3, true), domain("b", 1, 0, true)],
                Some("b"),
            ),
            ("closed", vec![domain("a", 0, 0, true), domain("b", 1, 9, true)], Some("b")),
            ("not ready", vec![domain("a", 1, 0, false), domain("b", 1, 9, true)], Some("b")),
            ("none is ready", vec![domain("a", 1, 5, false), domain("b", 1, 2, false)], Some("b")),
        ] {
            assert_eq!(choose_domain(&domains), wanted, "{case}");
        }
    }
}
