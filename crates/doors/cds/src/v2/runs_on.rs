use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a job wants to run on. On the wire it is a plain string when only the model is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunsOn {
    pub model: String,
    /// Megabytes, as text. vSphere ignores it.
    pub memory: String,
    pub flavor: String,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Wire {
    Model(String),
    Full {
        #[serde(default)]
        model: String,
        #[serde(default)]
        memory: String,
        #[serde(default)]
        flavor: String,
    },
}

impl Serialize for RunsOn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { model, memory, flavor } = self.clone();
        if memory.is_empty() && flavor.is_empty() {
            Wire::Model(model).serialize(serializer)
        } else {
            Wire::Full { model, memory, flavor }.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for RunsOn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Wire::deserialize(deserializer)? {
            Wire::Model(model) => Self { model, ..Self::default() },
            Wire::Full { model, memory, flavor } => Self { model, memory, flavor },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_model_alone_is_a_string_and_anything_more_an_object() {
        let alone = RunsOn { model: "P/vcs/o/r/m".into(), ..RunsOn::default() };
        let full = RunsOn { flavor: "large".into(), ..alone.clone() };
        for (wire, runs_on) in [
            (r#""P/vcs/o/r/m""#, alone),
            (r#"{"model":"P/vcs/o/r/m","memory":"","flavor":"large"}"#, full.clone()),
        ] {
            assert_eq!(json::decode::<RunsOn>(wire.as_bytes()).unwrap(), runs_on);
            assert_eq!(String::from_utf8(json::encode(&runs_on)).unwrap(), wire);
        }
        let sparse = br#"{"model":"P/vcs/o/r/m","memory":null,"flavor":"large","more":1}"#;
        assert_eq!(json::decode::<RunsOn>(sparse).unwrap(), full);
    }
}
