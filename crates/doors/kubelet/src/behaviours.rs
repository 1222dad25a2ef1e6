//! `docs/kubelet-behaviours.md` names tests that exist, and leaves out no row of the two lists that it answers.

use std::fs;
use std::path::Path;

/// What vk-cocoon's own tests hold it to, in their order.
const CHECKLIST: [&str; 33] = [
    "Create: a pod without the name of a VM is rejected",
    "Create: a clone by its local name, pulling the image of the snapshot, with the id written to the pod",
    "Create: `repo:tag`, `latest` and none, `org/repo:tag`",
    "Create: another hypervisor is refused before the clone; one that says nothing is accepted",
    "Create: errors of clone and run are told and nothing is tracked",
    "Create: run rounds processors up, passes bytes, does not clone",
    "Create: run passes the hypervisor on; later forks see the new VM, not an older one of its name",
    "Create: a fork saves its source once, clones from it and beats mode run",
    "Create: an unmanaged VM is adopted, neither cloned nor run",
    "Create: a clone from a folder saves and pulls nothing; what it contradicts is refused",
    "Create: a cloud image is imported, a snapshot refused, what the registry does not know is pulled",
    "Delete: with policy never, the VM, the pod and the probe go",
    "Delete: what cannot be saved stays; unmanaged is only forgotten; an absent VM is no obstacle; snapshots are kept on demand",
    "Update: the order of hibernation, its rollback, network cards of Windows, lifecycle states and generations",
    "Start: pods are adopted by id, else by name, also under destroy",
    "Start: destroy removes what no pod wants; a hibernated pod is tracked without a VM",
    "Events: a second look recovers",
    "Events: a look that is put off ends the pod once it knows, or when its time is over",
    "Events: an eviction that the API server refuses is tried again",
    "Events: the address comes from the lease and is stored",
    "Post-clone: who needs a script",
    "Post-clone: what is in it",
    "Command line: arguments of every verb",
    "Command line: not found is told from everything else",
    "Command line: records, lists and snapshots are read; exec sorts its environment and returns the exit code",
    "Leases: found in any case, missing, malformed, newest",
    "Probes: the first at once, a word only when it flips, nothing after it is forgotten",
    "SAC: dial, query, set, verify, several cards, time-outs",
    "Capacity: reserve formula and defaults",
    "Annotations: round trip, roles and policies, hibernate, lifecycle, TLS fallback, references, manifests, sparse files, cloud images",
    "Epoch: tokens, uploads, digests, deletes, a missing manifest",
    "Virtual kubelet: create, change, delete with grace, UID, recreate, what others add to the node, logs, figures, cancel, pairs of streams",
    "Ours: SPDY and WebSocket with `kubectl`, who may do what, annotations under way, word after a restart, lost events, lost wakes, commands that hang, a campaign",
];

/// Where vk-cocoon was found wanting.
const WEAK: [&str; 17] = [
    "Security: anybody could run programs in guests",
    "Status writes erased annotations and changed their times",
    "Restart: adopted pods stayed unready",
    "Lost wake: a fresh boot over saved state",
    "Retry: a failed hibernation was never tried again, a create only twenty times",
    "Delete lost data when saving failed, and stuck on unmanaged or absent VMs",
    "Events were lost at reconnects, crashes seen after five seconds",
    "Adoption knew only names in memory",
    "Metrics counted idle processors, apparent sizes and the wrong direction",
    "Pod fields were ignored without a word, probes among them",
    "Resources of clones did not hold",
    "Shutdown: no guest was stopped in peace, no drain",
    "Concurrency: create, delete and events could interleave",
    "Disk: local snapshots stayed for ever",
    "Registry: no retry, no resume, lost fields",
    "Missing: attach, port-forward, terminals, log options, node conditions from reality",
    "Secrets reached logs",
];

#[test]
fn no_row_is_missing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = fs::read_to_string(root.join("docs/kubelet-behaviours.md")).unwrap();
    let rows = |heading: &str| -> Vec<String> {
        let section = page.split("\n## ").find(|section| section.starts_with(heading));
        let lines = section.unwrap_or_else(|| panic!("there is no {heading}")).lines();
        let cells = lines.filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        cells.skip(2).map(str::to_owned).collect()
    };
    assert_eq!(rows("The checklist of vk-cocoon's own tests"), CHECKLIST);
    assert_eq!(rows("What was weak in vk-cocoon"), WEAK);
}

#[test]
fn every_test_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = fs::read_to_string(root.join("docs/kubelet-behaviours.md")).unwrap();
    let mut count = 0;
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if cells[0].starts_with("---") || cells.get(1) == Some(&"Shown by") {
            continue;
        }
        assert_eq!(cells.len(), 2, "{line}");
        for test in cells[1].split("<br>").map(|test| test.trim_matches('`')) {
            let (path, name) = test.rsplit_once("::").unwrap_or_else(|| panic!("{test} in {line}"));
            let text = fs::read_to_string(root.join(path))
                .unwrap_or_else(|error| panic!("{path}: {error}"));
            let place =
                text.find(&format!("fn {name}(")).unwrap_or_else(|| panic!("{path} has no {name}"));
            let is_test = text[..place].lines().rev().take(5).any(|line| {
                let line = line.trim();
                line == "#[test]" || line.starts_with("#[tokio::test")
            });
            assert!(is_test, "{name} in {path} is no test");
            count += 1;
        }
    }
    assert!(count > 60, "only {count} tests are named");
}
