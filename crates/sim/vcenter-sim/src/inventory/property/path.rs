use roost_vim_wire::{DataObject, MoRef, Value};

/// A property path in its steps: names, and keys into arrays.
#[derive(Debug)]
pub(super) struct Steps<'a> {
    path: &'a str,
    steps: Vec<Step<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// Where the step ends in the path.
    end: usize,
    name: Name<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name<'a> {
    Field(&'a str),
    Key(&'a str),
    /// A key in quotes is text, also if it looks like a number.
    Quoted(&'a str),
}

impl<'a> Steps<'a> {
    /// `None` if it is not a path: an empty step, or a bracket that does not close.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let (mut steps, mut at) = (Vec::new(), 0);
        while at < path.len() {
            let rest = &path[at..];
            if let Some(inner) = rest.strip_prefix('[') {
                let (key, length) = match inner.strip_prefix('"') {
                    // A quoted key may hold dots and brackets.
                    Some(quoted) => {
                        quoted.find("\"]").map(|end| (Name::Quoted(&quoted[..end]), end + 4))?
                    }
                    None => inner.find(']').map(|end| (Name::Key(&inner[..end]), end + 2))?,
                };
                at += length;
                steps.push(Step { end: at, name: key });
            } else {
                let name = if steps.is_empty() { rest } else { rest.strip_prefix('.')? };
                let length = name.find(['.', '[']).unwrap_or(name.len());
                if length == 0 {
                    return None;
                }
                at += rest.len() - name.len() + length;
                steps.push(Step { end: at, name: Name::Field(&name[..length]) });
            }
        }
        (!steps.is_empty()).then_some(Self { path, steps })
    }

    /// The proper prefixes, longest first, each with the steps that are left.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = (&'a str, &[Step<'a>])> {
        (1..self.steps.len())
            .rev()
            .map(|count| (&self.path[..self.steps[count - 1].end], &self.steps[count..]))
    }
}

/// Follows steps into a value. The outer `None`: there is no such path. The inner: it is unset.
#[expect(clippy::option_option, reason = "both answers are wanted")]
pub(super) fn walk(value: Option<Value>, steps: &[Step<'_>]) -> Option<Option<Value>> {
    let mut at = value;
    for step in steps {
        let Some(value) = at else { return Some(None) };
        at = match (&value, &step.name) {
            (Value::Array(array), Name::Quoted(_))
                if array
                    .items
                    .iter()
                    .any(|item| matches!(item.get("key"), Some(Value::Int(_)))) =>
            {
                return None;
            }
            (Value::Array(array), Name::Key(key) | Name::Quoted(key)) => {
                array.items.iter().find(|item| has_key(item, key)).cloned()
            }
            (Value::Data(object), Name::Field(name)) => {
                let found = object.get(name);
                if found.is_none() && !may_have(&**object, name) {
                    return None;
                }
                found
            }
            (Value::Other(_), Name::Field(name)) => value.get(name),
            _ => return None,
        };
    }
    Some(at)
}

fn has_key(item: &Value, key: &str) -> bool {
    match item {
        Value::Ref(MoRef { id, .. }) => **id == *key,
        Value::String(text) => text == key,
        _ => item.get("key").is_some_and(|found| match found {
            Value::Int(number) => number.to_string() == key,
            Value::Ref(moref) => *moref.id == *key,
            other => other.as_str() == Some(key),
        }),
    }
}

/// Whether a class has a field, set or not: of the large classes all names are known, of others any is believed.
fn may_have(object: &dyn DataObject, name: &str) -> bool {
    let names = match object.class() {
        "VirtualMachineConfigInfo" => CONFIG_INFO,
        "VirtualMachineRuntimeInfo" => RUNTIME_INFO,
        "GuestInfo" => GUEST_INFO,
        "VirtualMachineSummary" => SUMMARY,
        _ => return true,
    };
    names.split_ascii_whitespace().any(|field| field == name)
}

const SUMMARY: &str = "vm runtime guest config storage quickStats overallStatus customValue";

const CONFIG_INFO: &str = "changeVersion modified name guestFullName version uuid createDate instanceUuid \
    npivNodeWorldWideName npivPortWorldWideName npivWorldWideNameType npivDesiredNodeWwns npivDesiredPortWwns \
    npivTemporaryDisabled npivOnNonRdmDisks locationId template guestId alternateGuestName annotation files tools flags \
    consolePreferences defaultPowerOps rebootPowerOff hardware vcpuConfig cpuAllocation memoryAllocation latencySensitivity \
    memoryHotAddEnabled cpuHotAddEnabled cpuHotRemoveEnabled hotPlugMemoryLimit hotPlugMemoryIncrementSize cpuAffinity \
    memoryAffinity networkShaper extraConfig cpuFeatureMask datastoreUrl swapPlacement bootOptions ftInfo repConfig \
    vAppConfig vAssertsEnabled changeTrackingEnabled firmware maxMksConnections guestAutoLockEnabled managedBy \
    memoryReservationLockedToMax initialOverhead nestedHVEnabled vPMCEnabled scheduledHardwareUpgradeInfo forkConfigInfo \
    vFlashCacheReservation vmxConfigChecksum messageBusTunnelEnabled vmStorageObjectId swapStorageObjectId keyId \
    guestIntegrityInfo migrateEncryption sgxInfo contentLibItemInfo ftEncryptionMode guestMonitoringModeInfo sevEnabled \
    numaInfo pmemFailoverEnabled vmxStatsCollectionEnabled vmOpNotificationToAppEnabled vmOpNotificationTimeout deviceSwap \
    pmem deviceGroups fixedPassthruHotPlugEnabled metroFtEnabled metroFtHostGroup";

const RUNTIME_INFO: &str = "device host connectionState powerState vmFailoverInProgress faultToleranceState \
    dasVmProtection toolsInstallerMounted suspendTime bootTime suspendInterval question memoryOverhead maxCpuUsage \
    maxMemoryUsage numMksConnections recordReplayState cleanPowerOff needSecondaryReason onlineStandby \
    minRequiredEVCModeKey consolidationNeeded offlineFeatureRequirement featureRequirement featureMask \
    vFlashCacheAllocation paused snapshotInBackground quiescedForkParent instantCloneFrozen cryptoState suspendedToMemory \
    opNotificationTimeout iommuActive";

const GUEST_INFO: &str = "toolsStatus toolsVersionStatus toolsVersionStatus2 toolsRunningStatus toolsVersion \
    toolsInstallType guestId guestFamily guestFullName guestDetailedData hostName ipAddress net ipStack disk screen \
    guestState appHeartbeatStatus guestKernelCrashed appState guestOperationsReady interactiveGuestOperationsReady \
    guestStateChangeSupported generationInfo hwVersion customizationInfo";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_at_dots_and_keys_but_not_inside_a_quoted_key() {
        let steps = Steps::parse(r#"config.extraConfig["a.b[0]"].value"#).unwrap();
        let prefixes: Vec<_> =
            steps.prefixes().map(|(prefix, rest)| (prefix, rest.len())).collect();
        assert_eq!(
            prefixes,
            [(r#"config.extraConfig["a.b[0]"]"#, 1), ("config.extraConfig", 2), ("config", 3)]
        );
        for broken in ["", ".name", "config..name", "config.", "device[4000", "a[\"x]"] {
            assert!(Steps::parse(broken).is_none(), "{broken}");
        }
    }
}
