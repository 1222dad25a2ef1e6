//! `docs/agent-forge-behaviours.md` has a row for each thing that is decided, and names tests that exist.

use std::fs;
use std::path::Path;

/// The operator's own tests, whose names are rows of the page.
const UPSTREAM: [&str; 89] = [
    "CreatesVMsForMachineDeficit",
    "CountsOwnedProvisioningVMsAsPendingCapacity",
    "CreatesOnlyRemainingDeficitAfterOwnedProvisioningVMs",
    "DoesNotPatchUnownedAgentsWithDemand",
    "DoesNotPatchUnownedAgentsWithoutDemand",
    "PatchesAgentAssociatedWithOwnedVMWithoutDemand",
    "DeletesOrphanedOwnedVMsWithoutExcessAgents",
    "DoesNotDeleteSurplusProvisioningVMs",
    "DeletesSurplusAvailableOwnedAgents",
    "DoesNotDeleteSurplusAvailableAgentsWhileAgentMachinesNeedAgents",
    "DoesNotDeleteUnboundAgentsDuringScaleUp",
    "OrphanedVMsDuringScaleUp",
    "ReleasedVMsDuringScaleUp",
    "DeletesVMsForDeletedMachines",
    "DeletesMultipleVMsForDeletedMachines",
    "RetainsCleanupTargetsWhenCleanupPolicyRetain",
    "ReconcilePlansWithoutCallingProvider",
    "ReconcileCreatesVsphereAgentInsteadOfCallingProvider",
    "ReconcileDoesNotAdoptMatchingAgents",
    "ReconcileReportsAgentMachineDemandCondition",
    "ReconcileMarksReadyFalseWhenInfraEnvUnavailable",
    "PoolDeleteWaitsForVsphereAgentFinalizers",
    "PoolDeleteRemovesFinalizerAfterChildrenGone",
    "PoolStatusUpdatePreservesISOStatus",
    "ISOReadyCondition",
    "PoolPatchFinalizerPreservesForeignFinalizers",
    "VsphereAgentReconcileRetainsVMWhenCleanupPolicyRetain",
    "AgentMachineReconcileCreatesVsphereAgentForNoSuitableAgents",
    "AgentMachineReconcileCreatesAlternateVsphereAgentWhenNameConflicts",
    "AgentMachineReconcileFailsWhenMultiplePoolsMatch",
    "AgentMachineReconcileSkipsDeletingPool",
    "ListVsphereAgentsForPoolUsesSpecPoolRefWhenLabelMissing",
    "VsphereAgentReconcileCreatesVM",
    "UsesAnnotatedVMName",
    "VsphereAgentReconcileSkipsVMDeleteForDuplicate",
    "ForAdoptedDuplicateByIdentity",
    "VsphereAgentReconcileInitializesAdoptedStatus",
    "VsphereAgentDeleteDropsFinalizerWhenPoolMissing",
    "VsphereAgentReconcileSyncsVMStatusFromPool",
    "ReconcilePatchesCandidateAgentFromInfraEnv",
    "RequestsForAgentMachineChangeFindsMatchingPool",
    "RequestsForAgentChangeFindsMatchingPool",
    "AgentChangePredicateWatchesInventoryIdentity",
    "AgentMachineChangePredicateWatchesAssignment",
    "ReconcilePatchesCandidateAgentWithPoolDiscriminatorLabel",
    "ReconcileRefreshesOwnedVMBoundStatus",
    "ReconcileMarksReturnedAgentReleased",
    "ReconcileAdoptsExistingBoundAgentAsOwnedVM",
    "AdoptsInventoryHostnameForCandidateAgent",
    "ReconcilePreservesOwnedVMTransitionState",
    "ReconcilePreservesMachineDeletingStateForCleanup",
    "RequiresObservedMachineDeletingBeforeMachineDeleted",
    "PreservesDeletingMachineRefUntilMachineGone",
    "RecoversDeletingVMWithLostMachineRef",
    "ReconcileDoesNotDeleteProvisioningOwnedVMsWithoutDeletedMachine",
    "ReconcileKeepsUnboundAgentsWithoutDeletedMachine",
    "ReconcileDoesNotRecordAgentClaimedByOtherPool",
    "MarksExpiredUndiscoveredVMOrphaned",
    "MarksMissingDiscoveredAgentOrphaned",
    "MatchesAgentsByBIOSUUIDBeforeHostname",
    "DoesNotMatchHostnameWhenIdentityConflicts",
    "UsesVMIdentityBeforeFreeSlot",
    "PrefersObservedHostnameBeforeFreeSlot",
    "UsesAgentRefBeforeFreeSlot",
    "DoesNotUseAmbiguousFreeVM",
    "NormalizeVMwareSerialUUID",
    "SkipsForeignClusterDeployment",
    "RequiresConfiguredPoolLabel",
    "ISOCacheDueDetectsStableURLIntervalAndForceRefresh",
    "ISOHistoryRetainsNewestAndPrunesStalePaths",
    "RetainsSameDigestAtDifferentPath",
    "CreateVMUsesDatastoreClusterPlacement",
    "CreateVMRecordsVMIdentity",
    "CreateVMUsesDiskEagerFlagWhenRequested",
    "CreateVMRecoversExistingVM",
    "DoesNotAddDuplicateCDROMWhenOneExists",
    "CreateVMCleansUpPartialVMOnConfigurationFailure",
    "EnsureISOUploadsContentAddressedPath",
    "ReusesSameDigestWhenDatastoreObjectExists",
    "StopsOnDatastoreLookupErrors",
    "DeleteVMUsesInventoryPath",
    "UsesBIOSUUID",
    "FallsBackToInventoryPathWhenUUIDIsMissing",
    "IgnoresMissingVM",
    "Vcsim EnsureISOUploadsReusesAndDeletes",
    "VMStatusAndDelete",
    "RecordPoolCapacityMetricsExportsVMShape",
    "DefaultVMShape",
    "e2e Manager",
];

#[test]
fn every_row_is_there_and_every_test_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = fs::read_to_string(root.join("docs/agent-forge-behaviours.md")).unwrap();
    let mut rows: Vec<String> = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if cells[0].starts_with("---") || cells.get(2) == Some(&"Shown by") {
            continue;
        }
        assert_eq!(cells.len(), 3, "{line}");
        rows.extend(cells[0].split(',').map(|row| row.trim().to_owned()));
        for test in cells[2].split("<br>").map(|test| test.trim_matches('`')) {
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
        }
    }
    let numbered = |letter: char, count: usize| (1..=count).map(move |it| format!("{letter}{it}"));
    let wanted =
        numbered('D', 6).chain(numbered('M', 7)).chain(numbered('W', 30)).chain(numbered('N', 9));
    for row in wanted.chain(UPSTREAM.map(str::to_owned)) {
        assert!(rows.contains(&row), "the page has no row {row}");
    }
}
