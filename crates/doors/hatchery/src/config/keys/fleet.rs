//! `[hatchery.vsphere.fleet]`.

use roost_settings::{Json, Key, Sample, Shape};

pub(crate) const MARKED_PER_MINUTE: Key = Key::integer(
    "fleet.markedPerMinute",
    60,
    "VMs that Roost gave up itself and that are not off, deleted in a minute at most; the rest waits. It bounds what a mistake costs before somebody sees it. 0: 60",
)
.added();
pub(crate) const FINISHED_PER_MINUTE: Key = Key::integer(
    "fleet.finishedPerMinute",
    0,
    "VMs of workers that are off, deleted in a minute at most; the rest waits. 0: no budget, as that they are off is a fact and each holds an address; maxConcurrentDeletions paces them",
)
.added();
pub(crate) const EXPIRED_PER_MINUTE: Key = Key::integer(
    "fleet.expiredPerMinute",
    20,
    "VMs that lived longer than they may, deleted in a minute at most; more freeze deletion until a person has looked, because a wrong clock is wrong for all of them. 0: 20",
)
.added();
pub(crate) const EXPIRED_PERCENT: Key = Key::integer(
    "fleet.expiredPercent",
    30,
    "The same as a share of all VMs of this hatchery, 5 VMs at least. 0: 30",
)
.added();
pub(crate) const EXPIRED_SECONDS: Key = Key::integer(
    "fleet.expiredGraceSeconds",
    60,
    "Seconds from the first sight of such a VM to its deletion. 0: 60",
)
.added();
pub(crate) const ABSENT_PER_MINUTE: Key = Key::integer(
    "fleet.absentPerMinute",
    10,
    "VMs that CDS does not know, deleted in a minute at most; more freeze deletion until a person has looked, because a list that lacks one may lack all. 0: 10",
)
.added();
pub(crate) const ABSENT_PERCENT: Key = Key::integer(
    "fleet.absentPercent",
    20,
    "The same as a share of all VMs of this hatchery, 3 VMs at least. 0: 20",
)
.added();
pub(crate) const ABSENT_SECONDS: Key = Key::integer(
    "fleet.absentGraceSeconds",
    120,
    "Seconds from the first sight of such a VM to its deletion. 0: 120",
)
.added();
pub(crate) const VIEW_SECONDS: Key = Key::integer(
    "fleet.viewSeconds",
    180,
    "Nothing is deleted on a view of the vCenter or of CDS that is older. The vCenter is heard every minute, so one answer may fail. 0: 180",
)
.added();
pub(crate) const JOURNAL_DECISIONS: Key = Key::integer(
    "fleet.journalDecisions",
    4096,
    "Decisions kept in memory, a kilobyte each: how far back explain and the page see. 0: 4096",
)
.added();
pub(crate) const JOURNAL_SUBJECTS: Key = Key::integer(
    "fleet.journalSubjects",
    8192,
    "Jobs, VMs and pools whose last decision is kept although newer ones of others have pushed it out. 0: 8192",
)
.added();
pub(crate) const PROMISE_SECONDS: Key = Key::integer(
    "fleet.promiseSeconds",
    300,
    "Seconds that room and address stay reserved for a VM whose request was sent and whose answer was lost: it may yet appear. 0: 300",
)
.added();
pub(crate) const ADDRESS_REST_SECONDS: Key = Key::integer(
    "fleet.addressRestSeconds",
    120,
    "Seconds that an address is not given out again after its VM is gone: neighbours' ARP entries outlive the VM. 0: 120",
)
.added();
pub(crate) const PHASES: Key = Key::tables(
    "fleet.phases",
    Shape::Tables,
    "Phases that may take longer, or less long, than usual; then the start of a worker counts as failed",
)
.json(Json::UnlessEmpty)
.added();
pub(crate) const PHASE_NAME: Key = Key::text(
    "fleet.phases[].name",
    "",
    "As `roost explain` and `roost_hatchery_phase_seconds` name it: cloning, booting, preparing, ... Mandatory",
)
.added()
.sample(Sample::Shown("\"cloning\""));
pub(crate) const PHASE_SECONDS: Key =
    Key::integer("fleet.phases[].seconds", 0, "Its deadline. Mandatory")
        .added()
        .sample(Sample::Shown("1800"));
