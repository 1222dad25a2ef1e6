//! Events.

use jiff::Timestamp;

use crate::{Element, MoRef};

data! {
    /// An event of any class. What the class adds beyond these fields is in `rest`.
    open Event {
        key: i32,
        chain_id "chainId": i32,
        created_time "createdTime": Timestamp,
        user_name "userName": String,
        datacenter: Option<EventArgument>,
        compute_resource "computeResource": Option<EventArgument>,
        host: Option<EventArgument>,
        vm: Option<EventArgument>,
        ds: Option<EventArgument>,
        net: Option<EventArgument>,
        dvs: Option<EventArgument>,
        full_formatted_message "fullFormattedMessage": Option<String>,
        change_tag "changeTag": Option<String>,
        template: Option<bool>,
    }

    /// The name of an object beside the reference to it; the reference's element is called after its kind.
    struct EventArgument {
        name: String,
        datacenter: Option<MoRef>,
        compute_resource "computeResource": Option<MoRef>,
        folder: Option<MoRef>,
        resource_pool "resourcePool": Option<MoRef>,
        host: Option<MoRef>,
        vm: Option<MoRef>,
        datastore: Option<MoRef>,
        network: Option<MoRef>,
        dvs: Option<MoRef>,
    }

    struct EventFilterSpec {
        entity: Option<EventFilterSpecByEntity>,
        time: Option<EventFilterSpecByTime>,
        user_name "userName": Option<Element>,
        event_chain_id "eventChainId": Option<i32>,
        disable_full_message "disableFullMessage": Option<bool>,
        category: Vec<String>,
        kind "type": Vec<String>,
        tag: Vec<String>,
        event_type_id "eventTypeId": Vec<String>,
        max_count "maxCount": Option<i32>,
    }

    struct EventFilterSpecByEntity {
        entity: MoRef,
        recursion: EventFilterSpecRecursionOption,
    }

    struct EventFilterSpecByTime {
        begin_time "beginTime": Option<Timestamp>,
        end_time "endTime": Option<Timestamp>,
    }
}

names! {
    enum EventFilterSpecRecursionOption { This = "self", Children = "children", All = "all" }
}

impl Event {
    /// A text field that only this class has, such as `newName` of a `VmRenamedEvent`.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.rest.iter().find(|element| element.name == field).map(|element| element.text.as_str())
    }
}
