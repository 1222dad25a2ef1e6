use serde::{Deserialize, Serialize};

use crate::api::Rest;

data! {
    /// How the guest is told who it is.
    pub struct Bootstrap {
        pub cloud_init: Option<CloudInit>,
        pub linux_prep: Option<LinuxPrep>,
        pub sysprep: Option<Sysprep>,
        pub v_app_config: Option<VAppConfig>,
        pub disabled: bool,
    }

    pub struct CloudInit {
        #[serde(rename = "instanceID")]
        pub instance_id: String,
        pub cloud_config: Option<CloudConfig>,
        pub raw_cloud_config: Option<SecretKey>,
        pub ssh_authorized_keys: Vec<String>,
        pub use_global_nameservers_as_default: Option<bool>,
        pub use_global_search_domains_as_default: Option<bool>,
        pub wait_on_network4: Option<bool>,
        pub wait_on_network6: Option<bool>,
    }

    pub struct CloudConfig {
        pub timezone: String,
        #[serde(rename = "defaultUserEnabled")]
        pub default_user_enabled: bool,
        pub users: Vec<CloudConfigUser>,
        /// A list whose entries are commands: texts or lists of texts.
        pub runcmd: Option<serde_json::Value>,
        #[serde(rename = "write_files")]
        pub write_files: Vec<WriteFile>,
        #[serde(rename = "ssh_pwauth")]
        pub ssh_pwauth: Option<bool>,
    }

    pub struct LinuxPrep {
        #[serde(rename = "hardwareClockIsUTC")]
        pub hardware_clock_is_utc: Option<bool>,
        pub time_zone: String,
        pub expire_password_after_next_login: bool,
        pub password: Option<SecretKey>,
        pub script_text: Option<ScriptText>,
        pub customize_at_next_power_on: Option<bool>,
    }

    pub struct Sysprep {
        pub sysprep: Option<InlineSysprep>,
        pub raw_sysprep: Option<SecretKey>,
        pub customize_at_next_power_on: Option<bool>,
    }

    pub struct InlineSysprep {
        pub user_data: SysprepUserData,
        pub gui_unattended: Option<GuiUnattended>,
        pub gui_run_once: Option<GuiRunOnce>,
        pub identification: Option<Identification>,
        pub license_file_print_data: Option<LicenseFilePrintData>,
        pub expire_password_after_next_login: bool,
        pub script_text: Option<ScriptText>,
    }

    pub struct SysprepUserData {
        pub full_name: String,
        pub org_name: String,
        #[serde(rename = "productID")]
        pub product_id: Option<SecretKey>,
    }

    pub struct GuiUnattended {
        pub auto_logon: bool,
        pub auto_logon_count: i32,
        pub password: Option<SecretKey>,
        pub time_zone: Option<i32>,
    }

    pub struct GuiRunOnce {
        pub commands: Vec<String>,
    }

    pub struct Identification {
        pub domain_admin: String,
        pub domain_admin_password: Option<SecretKey>,
        #[serde(rename = "domainOU")]
        pub domain_ou: String,
        pub join_workgroup: String,
    }

    pub struct LicenseFilePrintData {
        /// `perSeat` or `perServer`.
        pub auto_mode: String,
        pub auto_users: Option<i32>,
    }

    pub struct VAppConfig {
        pub properties: Vec<VAppProperty>,
        /// The name of a Secret whose keys are the properties.
        pub raw_properties: String,
    }

    /// A text, or the key of a Secret that holds it.
    pub struct ValueOrSecret {
        pub from: Option<SecretKey>,
        pub value: Option<String>,
    }
}

pub type ScriptText = ValueOrSecret;

/// The key of a Secret. What it holds never is in the object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretKey {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VAppProperty {
    pub key: String,
    #[serde(skip_serializing_if = "crate::api::data::is_default")]
    pub value: ValueOrSecret,
}

/// A user as cloud-init has it; `rest` are the fields that are passed on as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloudConfigUser {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passwd: Option<SecretKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hashed_passwd: Option<SecretKey>,
    #[serde(flatten)]
    pub rest: Rest,
}

/// A file as cloud-init has it; `content` is a text or the key of a Secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WriteFile {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<serde_json::Value>,
    #[serde(flatten)]
    pub rest: Rest,
}
