//! How things stand that CDS has no gauge for.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use roost_fleet::{Amounts, LedgerUse, Limit, Limits};

use super::collector::family;
use crate::config::SpareModel;
use crate::door::{PENDING, REGISTERING, WORKERS};

/// What Roost itself looks at when it decides, at the moment of a cycle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Levels {
    pub links: Links,
    pub taken: LedgerUse,
    pub limits: Limits,
    /// Templates of pools whose spares fail, with how often they did in a row.
    pub failing: Vec<(SpareModel, u32)>,
}

/// Whether the servers are heard. Before the first cycle they are not: a service that never opens is one without a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Links {
    /// The last request of the property stream was answered.
    pub vcenter: bool,
    /// The view of the datacenter is whole and recent enough to act on.
    pub inventory: bool,
    /// The V1 queue of CDS was pushed or polled lately; `None` if V1 is not spoken.
    pub cds_v1: Option<bool>,
    pub cds_v2: Option<bool>,
}

impl Levels {
    /// `has_ranges` is false where addresses come from a DHCP server, which knows them and we do not.
    pub(super) fn encode(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        has_ranges: bool,
    ) -> fmt::Result {
        let links = [
            ("vcenter", Some(self.links.vcenter)),
            ("inventory", Some(self.links.inventory)),
            ("cds-v1", self.links.cds_v1),
            ("cds-v2", self.links.cds_v2),
        ];
        let links = links.into_iter().filter_map(|(link, up)| Some(([("link", link)], up?.into())));
        let help = "1 while a link can be relied on: the vCenter answers, the inventory is whole and fresh, CDS is heard";
        family(encoder, "roost_hatchery_link_up", help, links)?;

        let capacity = RESOURCES.iter().flat_map(|(resource, of, limit)| {
            let parts = [
                ("used", Some(of(&self.taken.by_vms))),
                ("reserved", Some(of(&self.taken.promised))),
                ("limit", at(limit(&self.limits))),
            ];
            parts.into_iter().filter_map(|(part, amount)| {
                Some(([("resource", *resource), ("part", part)], amount?))
            })
        });
        let help =
            "what VMs use, what is reserved on top of it, and the configured limit if there is one";
        family(encoder, "roost_hatchery_capacity", help, capacity)?;

        let counts = self.taken.addresses;
        let addresses = [
            ("free", counts.free),
            ("used", counts.used),
            ("promised", counts.promised),
            ("resting", counts.resting),
        ];
        let addresses = addresses.into_iter().filter(|_| has_ranges);
        let help = "addresses of the ranges, by state; those that rest are free and not given out again yet";
        let addresses = addresses.map(|(state, number)| ([("state", state)], number));
        family(encoder, "roost_hatchery_addresses", help, addresses)?;

        let failing = self
            .failing
            .iter()
            .map(|(template, times)| ([("template", template.to_string())], u64::from(*times)));
        let help = "how often in a row a VM, spare or for a job, could not be made of a template; only while it fails";
        family(encoder, "roost_hatchery_template_failures", help, failing)
    }
}

/// What may be limited: its name, how much of it something takes, and its limit.
type Resource = (&'static str, fn(&Amounts) -> u64, fn(&Limits) -> Limit);

const RESOURCES: [Resource; 5] = [
    ("workers", |amounts| amounts.of(WORKERS), |limits| limits.of(WORKERS)),
    ("pending", |amounts| amounts.of(PENDING), |limits| limits.of(PENDING)),
    ("registering", |amounts| amounts.of(REGISTERING), |limits| limits.of(REGISTERING)),
    ("cpus", |amounts| amounts.cpus, |limits| limits.cpus),
    ("memory-mb", |amounts| amounts.memory_mb, |limits| limits.memory_mb),
];

fn at(limit: Limit) -> Option<u64> {
    match limit {
        Limit::At(limit) => Some(limit),
        Limit::Unlimited | Limit::Unknown => None,
    }
}
