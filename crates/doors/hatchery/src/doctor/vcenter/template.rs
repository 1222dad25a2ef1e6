//! Whether workers can be made of the templates that the file and CDS name.

use super::facts::{Facts, Template, Tools};
use super::wish::{Wanted, Wish};
use roost_doctor::{Fact, Finding};

const CHECK: &str = "template";

pub(super) fn judge(wish: &Wish, facts: &Facts) -> Vec<Finding> {
    if facts.templates.is_empty() {
        let why = "neither the file nor CDS names one here; V2 jobs bring theirs along";
        return vec![Finding::skip(CHECK, why)];
    }
    facts.templates.iter().flat_map(|(wanted, template)| one(wish, wanted, template)).collect()
}

fn one(wish: &Wish, wanted: &Wanted, template: &Fact<Template>) -> Vec<Finding> {
    let by = wanted.by.join(", ");
    let template = match template {
        Fact::Known(template) => template,
        Fact::Failed(why) => {
            let advice =
                format!("make it, give the user System.Read on it, or correct its name in {by}");
            return vec![Finding::fail(CHECK, format!("{}: {why}", wanted.name)).advice(advice)];
        }
        Fact::Unanswered(why) => {
            return vec![Finding::unanswered(CHECK, format!("{}: {why}", wanted.name))];
        }
        Fact::Skipped(why) => return vec![Finding::skip(CHECK, format!("{}: {why}", wanted.name))],
    };
    let mut troubles = troubles(wish, template);
    if let Some(why) = &wanted.login_trouble {
        troubles.push(Finding::warn(CHECK, why).advice(
            "give username and password in models or guestCredentials, unless every worker model has them",
        ));
    }
    if troubles.is_empty() {
        troubles.push(Finding::pass(CHECK, format!("{}: {}", wanted.name, words(template))));
    } else {
        for trouble in &mut troubles {
            trouble.found = format!("{}: {}", wanted.name, trouble.found);
        }
    }
    troubles
}

fn words(template: &Template) -> String {
    let Template { cpus, memory_mb, disk_gb, guest, .. } = template;
    let kind = template.source.as_str();
    let shares =
        if template.is_shareable { "clones share its disk" } else { "clones copy its disk" };
    let cards = template.cards.join(", ");
    format!(
        "{kind}, {guest}, {cpus} vCPUs, {memory_mb} MB RAM, {disk_gb} GB disk, card {cards}, tools, {shares}"
    )
}

fn troubles(wish: &Wish, template: &Template) -> Vec<Finding> {
    let mut troubles = Vec::new();
    match template.tools {
        Tools::Installed => {}
        Tools::Old => troubles.push(
            Finding::warn(CHECK, "its VMware Tools are old").advice("update open-vm-tools in it"),
        ),
        Tools::Missing => troubles.push(
            Finding::fail(CHECK, "VMware Tools are not installed in it: its clones get no address, and no worker can be started in them")
                .advice("install open-vm-tools in it"),
        ),
        Tools::Unknown => troubles.push(
            Finding::warn(CHECK, "it does not tell whether VMware Tools are installed")
                .advice("power it on once as a VM and see that they run"),
        ),
    }
    match template.cards.len() {
        0 => troubles.push(
            Finding::fail(CHECK, "it has no network card, so that it cannot be cloned onto a network")
                .advice("add one card to it"),
        ),
        1 => {}
        more => troubles.push(
            Finding::warn(CHECK, format!("it has {more} network cards, of which only the first gets the network and a fixed address"))
                .advice("remove the others unless DHCP serves them"),
        ),
    }
    if template.disks == 0 {
        troubles.push(Finding::fail(CHECK, "it has no disk").advice("install a system in it"));
    } else if !template.is_shareable {
        troubles.push(
            Finding::warn(CHECK, format!("it has no snapshot: each clone copies its {} GB, which is slow", template.disk_gb))
                .advice("take a snapshot of it (of the VM, before it is marked as a template), so that clones share its disk"),
        );
    }
    if template.is_shareable {
        troubles.extend(flavor_disks(wish, template));
    }
    troubles
}

/// vSphere does not grow the disk of a linked clone.
fn flavor_disks(wish: &Wish, template: &Template) -> Option<Finding> {
    let too_large = |gb: &u64| *gb > template.disk_gb;
    let mut names = wish
        .flavors
        .iter()
        .filter(|flavor| flavor.disk_gb.as_ref().is_some_and(too_large))
        .map(|flavor| flavor.name.as_str())
        .peekable();
    names.peek()?;
    let names: Vec<&str> = names.collect();
    let found = format!(
        "its clones share its disk of {} GB, which then cannot grow to the diskSizeGB of {}",
        template.disk_gb,
        names.join(", ")
    );
    Some(
        Finding::fail(CHECK, found)
            .advice("use a template without snapshots for these flavors, or a larger disk in it"),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use crate::flavor::{Flavor, Flavors};
    use roost_vim::wire::MoRef;

    use super::super::facts::{Place, Source};
    use super::super::wish::tests::{wanted, wish};
    use super::*;
    use roost_doctor::Verdict;

    pub(in crate::doctor::vcenter) fn template() -> Template {
        Template {
            place: Place { path: "/DC0/vm/debian12".into(), object: MoRef::vm("vm-1") },
            source: Source::Template,
            guest: "debian12_64Guest".into(),
            cpus: 1,
            memory_mb: 1024,
            disks: 1,
            disk_gb: 10,
            cards: vec!["vmxnet3".into()],
            is_shareable: true,
            tools: Tools::Installed,
        }
    }

    fn judged(template: Template) -> Vec<Finding> {
        one(&wish(), &wanted(), &Fact::Known(template))
    }

    #[test]
    fn a_good_template_is_one_pass() {
        let findings = judged(template());
        assert_eq!((findings.len(), findings[0].verdict), (1, Verdict::Pass), "{findings:?}");
        assert!(findings[0].found.starts_with("debian12: template, debian12_64Guest"));
    }

    #[test]
    fn each_trouble_of_a_template_is_told_with_its_name() {
        for (template, wanted, part) in [
            (Template { tools: Tools::Missing, ..template() }, Verdict::Fail, "VMware Tools"),
            (Template { tools: Tools::Unknown, ..template() }, Verdict::Warn, "VMware Tools"),
            (Template { cards: vec![], ..template() }, Verdict::Fail, "no network card"),
            (
                Template { cards: vec!["a".into(), "b".into()], ..template() },
                Verdict::Warn,
                "2 network cards",
            ),
            (Template { disks: 0, is_shareable: false, ..template() }, Verdict::Fail, "no disk"),
            (Template { is_shareable: false, ..template() }, Verdict::Warn, "no snapshot"),
        ] {
            let findings = judged(template);
            assert_eq!((findings.len(), findings[0].verdict), (1, wanted), "{findings:?}");
            assert!(
                findings[0].found.starts_with("debian12: ") && findings[0].found.contains(part)
            );
            assert!(findings[0].advice.is_some());
        }
    }

    #[test]
    fn a_shared_disk_cannot_grow_to_a_flavor() {
        let mut wish = wish();
        let big = Flavor { name: "big".into(), cpus: None, memory_mb: None, disk_gb: Some(40) };
        wish.flavors = Flavors::new(vec![big], None).unwrap();
        let findings = one(&wish, &wanted(), &Fact::Known(template()));
        assert!(
            findings[0].verdict == Verdict::Fail && findings[0].found.contains("big"),
            "{findings:?}"
        );
        let copied = Template { is_shareable: false, ..template() };
        assert!(!troubles(&wish, &copied).iter().any(|finding| finding.verdict == Verdict::Fail));
    }

    #[test]
    fn a_guest_that_nobody_can_log_in_to_is_a_warning() {
        let wanted = Wanted { login_trouble: Some("no user and password".into()), ..wanted() };
        let findings = one(&wish(), &wanted, &Fact::Known(template()));
        assert_eq!(findings[0].verdict, Verdict::Warn);
        let missing = one(&wish(), &wanted, &Fact::Failed("no virtual machine".into()));
        assert!(missing[0].advice.as_deref().unwrap().contains("models"), "{missing:?}");
    }
}
