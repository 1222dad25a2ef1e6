//! Whether a hatchery with this file could do its work, before it does any.
//!
//! Nothing is changed: the vCenter is asked through the read-only handle, and CDS by what leaves no trace unless [`SignIn::Whole`] says otherwise.

mod cds;
mod config;
mod vcenter;

use std::path::Path;
use std::sync::Arc;

use roost_clock::Clock;
use roost_doctor::{Section, Telling};

pub use self::cds::SignIn;

/// Examines the file, CDS and the vCenter, in this order.
pub async fn examine(file: &Path, sign_in: SignIn, clock: &Arc<dyn Clock>, telling: &mut Telling) {
    let (config, section) = config::examine(file);
    telling.tell(section);
    let Some(config) = config else {
        let why = "the file cannot be used";
        telling.tell(Section::skipped(cds::SYSTEM_NAME, "", why));
        telling.tell(Section::skipped(vcenter::SYSTEM_NAME, "", why));
        return;
    };
    telling.begin(cds::SYSTEM_NAME);
    let (section, models) = cds::examine(&config, sign_in, clock).await;
    telling.tell(section);
    telling.begin(vcenter::SYSTEM_NAME);
    telling.tell(vcenter::examine(&config, &models, clock).await);
}
