//! Whether something would work, before it is tried.

use crate::MoRef;
use crate::types::{VirtualMachineConfigSpec, VirtualMachineRelocateSpec};

methods! {
    on VirtualMachineProvisioningChecker {
        read CheckRelocateTask = "CheckRelocate_Task" task "VirtualMachineProvisioningChecker.checkRelocate" "Check relocate"
        {
            vm: MoRef,
            spec: VirtualMachineRelocateSpec,
            test_type "testType": Vec<String>,
        } -> MoRef;
    }

    on VirtualMachineCompatibilityChecker {
        read CheckCompatibilityTask = "CheckCompatibility_Task" task "VirtualMachineCompatibilityChecker.checkCompatibility" "Check compatibility"
        {
            vm: MoRef,
            host: Option<MoRef>,
            pool: Option<MoRef>,
            test_type "testType": Vec<String>,
        } -> MoRef;
        read CheckVmConfigTask = "CheckVmConfig_Task" task "VirtualMachineCompatibilityChecker.checkVmConfig" "Check virtual machine configuration"
        {
            spec: VirtualMachineConfigSpec,
            vm: Option<MoRef>,
            host: Option<MoRef>,
            pool: Option<MoRef>,
            test_type "testType": Vec<String>,
        } -> MoRef;
    }
}
