//! One field that finds everything: requests, VMs, addresses, projects, namespaces, pools.

use askama::Template;
use roost_door::House;
use roost_views::words::short_id;
use serde::Serialize;

use super::block::Block;
use super::foreign::{Name, Words};
use super::shown::{request_href, vm_href};

/// Enough to choose from; whoever wants more writes more.
const SHOWN: usize = 100;

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Hit {
    /// What it is: `vm`, `pool`, or what its door calls it.
    pub(crate) kind: String,
    pub(crate) name: String,
    /// A place of the page.
    pub(crate) href: String,
    /// In which words it was found.
    pub(crate) words: String,
    /// It is called exactly so.
    pub(crate) is_exact: bool,
}

/// What is called exactly so first.
pub(crate) fn search(house: &House, text: &str) -> Vec<Hit> {
    let wanted = text.trim().to_lowercase();
    if wanted.is_empty() {
        return Vec::new();
    }
    let has = |texts: &[Option<&str>]| {
        let mut known = texts.iter().flatten();
        known.any(|text| text.to_lowercase().contains(&wanted))
    };
    let is = |texts: &[&str]| texts.iter().any(|text| text.to_lowercase() == wanted);
    let mut hits = Vec::new();
    for vm in house.vms() {
        let own = [&*vm.name, &*vm.id, vm.address.as_deref().unwrap_or_default()];
        if has(&own.map(Some)) {
            let address = vm.address.clone().unwrap_or_default();
            hits.push(Hit {
                kind: "vm".to_owned(),
                href: vm_href(&vm.id),
                words: format!("{} {address}", vm.kind.as_str()),
                is_exact: is(&own),
                name: vm.name.clone(),
            });
        }
    }
    for door in &house.doors {
        let words = door.words();
        for request in door.requests() {
            let facts: Vec<Option<&str>> =
                request.facts.0.iter().map(|fact| fact.value.as_deref()).collect();
            let own = [Some(&*request.id.id), request.project.as_deref()];
            if has(&own) || has(&facts) {
                let project = request.project.clone().unwrap_or_default();
                hits.push(Hit {
                    kind: words.noun.to_owned(),
                    href: request_href(&words.path(), &request.id.id),
                    words: format!("{} {project}", request.state.as_str()),
                    is_exact: is(&[&request.id.id]),
                    name: request.id.id.clone(),
                });
            }
        }
    }
    for pool in house.pools() {
        if has(&[Some(&pool.name), pool.template.as_deref()]) {
            hits.push(Hit {
                kind: "pool".to_owned(),
                href: "/#b-pools".to_owned(),
                words: format!("{} of {} ready", pool.ready, pool.wanted),
                is_exact: is(&[&pool.name]),
                name: pool.name.clone(),
            });
        }
    }
    hits.sort_by_key(|hit| !hit.is_exact);
    hits.truncate(SHOWN);
    hits
}

#[derive(Template)]
#[template(path = "search.html")]
struct Found<'a> {
    q: Words<'a>,
    is_empty: bool,
    hits: &'a [Hit],
    is_cut: bool,
}

impl Hit {
    fn name(&self) -> Name<'_> {
        Name(short_id(&self.name))
    }

    fn in_words(&self) -> Words<'_> {
        Words(&self.words)
    }
}

pub(super) fn block(house: &House, q: &str) -> Result<Block, askama::Error> {
    let hits = search(house, q);
    let is_cut = hits.len() >= SHOWN;
    let found = Found { q: Words(q), is_empty: q.trim().is_empty(), hits: &hits, is_cut };
    Ok(Block::whole("search", found.render()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, job, vm};

    #[test]
    fn ids_vms_addresses_and_projects_are_found_and_what_is_called_so_comes_first() {
        let fake = Fake::default();
        let mut one = job("0a1b2c3d");
        one.project = Some("Rocket".into());
        let mut other = vm();
        (other.id, other.name, other.address) =
            ("vm-9".into(), "keen-bohr".into(), Some("10.1.2.3".into()));
        fake.shown().jobs = vec![one];
        fake.shown().vms = vec![other];
        let house = fake.house();
        let found =
            |q: &str| -> Vec<String> { search(&house, q).into_iter().map(|it| it.href).collect() };
        assert_eq!(found("rocket"), ["/jobs/0a1b2c3d"]);
        assert_eq!(found("10.1.2.3"), ["/vms/vm-9"]);
        assert_eq!(found("KEEN"), ["/vms/vm-9"]);
        assert_eq!(found("42")[0], "/jobs/42");
        assert!(found("").is_empty() && found("nothing like it").is_empty());
    }
}
