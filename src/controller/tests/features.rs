//! UpdateFeatures against the answers of a Kafka 4.4.0.

use super::*;
use crate::metadata::FeatureRange;

const UP: i8 = 1;
const DOWN: i8 = 2;
const LOSSY: i8 = 3;
const MV: &str = "metadata.version";
const ELR: &str = "eligible.leader.replicas.version";

/// Feature, level, upgrade type.
type Update = (&'static str, i16, i8);

fn lab(metadata: i16, elr: i16) -> Lab {
    let mut lab = Lab::new(1);
    for (name, level) in [(MV, metadata), (ELR, elr)] {
        let record = crate::protocol::records::metadata::FeatureLevelRecord {
            name: name.into(),
            feature_level: level,
        };
        lab.replay(&[record.into()]);
    }
    lab
}

fn ask(updates: &[Update], validate_only: bool) -> UpdateFeatures {
    let update = |(feature, level, upgrade_type): &Update| FeatureUpdate {
        feature: (*feature).to_owned(),
        level: *level,
        upgrade_type: *upgrade_type,
    };
    UpdateFeatures { updates: updates.iter().map(update).collect(), validate_only }
}

#[test]
fn levels_go_up_and_down_as_in_kafka() {
    let lossy = "Refusing to perform the requested downgrade because it might delete metadata \
                 information.";
    let accepted = "Unsafe metadata downgrade is not supported in this version.";
    let type_needed = "Can't downgrade the version of this feature without setting the upgrade \
                       type to either safe or unsafe downgrade.";
    let newer = "Can't downgrade to a newer version.";
    #[rustfmt::skip] // columns
    let table: Vec<(i16, i16, Vec<Update>, String)> = vec![
        // metadata, elr, asked          text
        (33, 1, vec![],                  String::new()),
        (33, 1, vec![(MV, 33, UP)],      String::new()),
        (33, 1, vec![(MV, 33, DOWN)],    String::new()),
        (30, 1, vec![(MV, 33, UP)],      String::new()),
        (30, 1, vec![(MV, 31, UP)],      String::new()),
        (30, 1, vec![(MV, 33, DOWN)],    format!("Invalid update version 33 for feature {MV}. {newer}")),
        (29, 1, vec![(MV, 23, DOWN)],    String::new()),
        (29, 1, vec![(MV, 23, LOSSY)],   String::new()),
        (29, 1, vec![(MV, 23, UP)],      format!("Invalid update version 23 for feature {MV}. {type_needed}")),
        (29, 1, vec![(MV, 22, DOWN)],    format!("Unsupported {MV} downgrade from 29 to 22. {lossy}")),
        (33, 1, vec![(MV, 32, DOWN)],    format!("Unsupported {MV} downgrade from 33 to 32. {lossy}")),
        (33, 1, vec![(MV, 7, LOSSY)],    format!("Unsupported {MV} downgrade from 33 to 7. {accepted}")),
        (33, 1, vec![(MV, 34, UP)],      format!("Invalid update version 34 for feature {MV}. Local controller 1 only supports versions 7-33")),
        (33, 1, vec![(MV, 0, DOWN)],     format!("Invalid update version 0 for feature {MV}. Local controller 1 only supports versions 7-33")),
        (33, 1, vec![(MV, -1, UP)],      format!("Invalid update version -1 for feature {MV}. A feature version cannot be less than 0.")),
        (33, 1, vec![(MV, -1, 0)],       format!("Invalid update version -1 for feature {MV}. The controller does not support the given upgrade type.")),
        (33, 1, vec![(MV, 33, 4)],       format!("Invalid update version 33 for feature {MV}. The controller does not support the given upgrade type.")),
        (33, 1, vec![(ELR, 0, DOWN)],    String::new()),
        (33, 1, vec![(ELR, 0, LOSSY)],   String::new()),
        (33, 1, vec![(ELR, 0, UP)],      format!("Invalid update version 0 for feature {ELR}. {type_needed}")),
        (33, 0, vec![(ELR, 1, UP)],      String::new()),
        (33, 0, vec![(ELR, 1, DOWN)],    format!("Invalid update version 1 for feature {ELR}. {newer}")),
        (33, 0, vec![(ELR, 2, UP)],      format!("Invalid update version 2 for feature {ELR}. Local controller 1 only supports versions 0-1")),
        (22, 0, vec![(ELR, 1, UP)],      format!("Invalid update version 1 for feature {ELR}. {ELR} could not be set to 1 because it depends on {MV} level 23")),
        (22, 0, vec![(ELR, 1, UP), (MV, 23, UP)], String::new()),
        (33, 1, vec![("foo", 1, UP)],    "Invalid update version 1 for feature foo. Local controller 1 does not support this feature.".to_owned()),
        (33, 1, vec![("foo", 0, DOWN)],  "Invalid update version 0 for feature foo. Feature foo not found.".to_owned()),
        (33, 1, vec![("share.version", 0, DOWN)], String::new()),
        (33, 1, vec![(ELR, 0, DOWN), ("foo", 1, UP)], "Invalid update version 1 for feature foo. Local controller 1 does not support this feature.".to_owned()),
        (33, 1, vec![("foo", 1, UP), ("foo", 0, DOWN), (ELR, 0, DOWN)], "Invalid update version 0 for feature foo. Feature foo not found.".to_owned()),
    ];
    for (metadata, elr, updates, text) in table {
        let mut lab = lab(metadata, elr);
        let code = if text.is_empty() { 0 } else { 95 };
        let levels = |lab: &Lab| [lab.image().feature(MV), lab.image().feature(ELR)];
        let (before, end) = (levels(&lab), lab.end());
        let validated = lab.ask(ask(&updates, true));
        assert_eq!(told(&validated), (code, text.clone()), "{updates:?} validated");
        assert_eq!(lab.end(), end, "{updates:?} validated wrote a record");
        let done = lab.ask(ask(&updates, false));
        assert_eq!(told(&done), (code, text), "{updates:?} from {metadata}, {elr}");
        let mut expected = before;
        for (feature, level, _) in updates.iter().filter(|_| code == 0) {
            expected[usize::from(*feature != MV)] = *level;
        }
        if !updates.iter().any(|(feature, ..)| *feature == "share.version") {
            assert_eq!(levels(&lab), expected, "{updates:?} from {metadata}, {elr}");
        }
    }
}

#[test]
fn every_registered_broker_must_support_the_level() {
    let mut lab = lab(29, 0);
    let mut older = registration(2, 5);
    older.features = vec![
        FeatureRange { name: MV.into(), min: 7, max: 30 },
        FeatureRange { name: ELR.into(), min: 0, max: 0 },
    ];
    assert!(lab.ask(older).is_ok());
    let mut told_of = |updates: &[Update]| told(&lab.ask(ask(updates, false))).1;
    assert_eq!(
        told_of(&[(MV, 31, UP)]),
        "Invalid update version 31 for feature metadata.version. Broker 2 only supports versions \
         7-30"
    );
    assert_eq!(
        told_of(&[(ELR, 1, UP)]),
        "Invalid update version 1 for feature eligible.leader.replicas.version. Broker 2 does not \
         support this feature."
    );
    assert_eq!(told_of(&[(MV, 30, UP)]), "");
}

#[test]
fn all_brokers_agree_on_min_isr_before_eligible_leader_replicas_count() {
    let mut lab = lab(33, 0);
    let set = |name: &str| ConfigEdits {
        kind: 4,
        name: name.to_owned(),
        edits: vec![ConfigEdit {
            key: "min.insync.replicas".to_owned(),
            operation: 0,
            value: Some("2".to_owned()),
        }],
    };
    let resources = vec![set("1")];
    lab.ask(AlterConfigs { at: BrokerId(1), resources, validate_only: false });
    let (_, written) = lab.ask_with_records(ask(&[(ELR, 1, UP)], false));
    assert_eq!(written.len(), 3, "{written:?}");
    let value = |lab: &Lab, resource: &ConfigResource| {
        lab.image().configs(resource).and_then(|own| own.get("min.insync.replicas").cloned())
    };
    assert_eq!(value(&lab, &ConfigResource::all_brokers()).as_deref(), Some("1"));
    assert_eq!(value(&lab, &ConfigResource::broker(BrokerId(1))), None);
    // What the cluster has set stays.
    let resources = vec![set("")];
    lab.ask(AlterConfigs { at: BrokerId(1), resources, validate_only: false });
    let (_, written) = lab.ask_with_records(ask(&[(ELR, 1, UP)], false));
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(value(&lab, &ConfigResource::all_brokers()).as_deref(), Some("2"));
}
