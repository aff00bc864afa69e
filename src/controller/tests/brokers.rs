//! Registration, heartbeats, fencing, elections, producer ids.

use super::*;
use crate::machine::Decision;

fn beat(id: i32, broker_epoch: i64, metadata_offset: i64) -> Heartbeat {
    Heartbeat {
        id: BrokerId(id),
        broker_epoch,
        metadata_offset,
        wants_fence: false,
        wants_shutdown: false,
    }
}

fn epoch_of(lab: &Lab, id: i32) -> i64 {
    lab.image().broker(BrokerId(id)).unwrap().epoch
}

/// Brokers 1, 2, 3 and topics `one` on 1, `two` on 1 and 2, `three` on all, led by 1.
fn cluster(mut lab: Lab) -> Lab {
    let topic = |name: &str, ids: &[i32]| NewTopic {
        assignments: vec![(0, ids.iter().copied().map(BrokerId).collect())],
        ..NewTopic::named(name)
    };
    let topics = vec![topic("one", &[1]), topic("two", &[1, 2]), topic("three", &[1, 2, 3])];
    lab.ask(CreateTopics { topics, validate_only: false });
    lab
}

fn keep_alive(lab: &mut Lab, ids: &[i32]) {
    for id in ids {
        let (epoch, end) = (epoch_of(lab, *id), lab.end());
        lab.ask(beat(*id, epoch, end)).unwrap();
    }
}

#[test]
fn a_broker_epoch_is_the_offset_of_its_registration() {
    let mut lab = Lab::new(2);
    assert_eq!((epoch_of(&lab, 1), epoch_of(&lab, 2)), (0, 1));
    lab.world.session_timeout = None; // the only broker lives here
    let again = lab.ask(registration(1, 2)).unwrap();
    assert_eq!(again.broker_epoch, 2);
    let amended = lab.ask(RegisterBroker { rack: Some("r".into()), ..registration(1, 2) }).unwrap();
    assert_eq!(amended.broker_epoch, 2, "the same process keeps its epoch");
    assert_eq!(lab.image().broker(BrokerId(1)).unwrap().rack.as_deref(), Some("r"));
}

#[test]
fn registrations_that_are_refused() {
    let good = registration(1, 9);
    let dirs = |ids: &[u128]| RegisterBroker {
        log_dirs: ids.iter().copied().map(Uuid::from_u128).collect(),
        ..registration(3, 9)
    };
    #[rustfmt::skip] // columns
    let table = [
        (good, 101, "Another broker is registered with that broker id. If the broker was recently restarted this should self-resolve once the heartbeat manager expires the broker's session."),
        (dirs(&[]),               42, "No directories specified in request"),
        (dirs(&[0]),              42, "Reserved directory ID in request"),
        (dirs(&[1 << 90, 99]),    42, "Reserved directory ID in request"),
        (dirs(&[1 << 90, 1 << 90]), 42, "Duplicate directory ID in request"),
        (RegisterBroker { features: vec![], ..registration(3, 9) }, 35, "Unable to register because the broker does not support finalized version 1 of eligible.leader.replicas.version. The broker wants a version between 0 and 0, inclusive."),
    ];
    let mut lab = Lab::with_elr(2);
    for (ask, code, text) in table {
        let what = format!("{ask:?}");
        assert_eq!(told(&lab.ask(ask)), (code, text.to_owned()), "{what}");
    }
    lab.now = Instant(Duration::from_secs(10));
    assert!(lab.ask(registration(1, 9)).is_ok(), "the former session is over");
}

#[test]
fn a_broker_is_fenced_until_it_has_caught_up() {
    let mut lab = Lab::new(1);
    let epoch =
        lab.ask(RegisterBroker { is_caught_up: false, ..registration(2, 1) }).unwrap().broker_epoch;
    #[rustfmt::skip] // columns
    let table = [
        // heartbeat                                               caught up, fenced, stop
        (beat(2, epoch, epoch - 1),                                 false,     true,   false),
        (Heartbeat { wants_fence: true, ..beat(2, epoch, epoch) },  true,      true,   false),
        (beat(2, epoch, epoch),                                     true,      false,  false),
        (beat(2, epoch, epoch - 1),                                 false,     false,  false),
        (Heartbeat { wants_fence: true, ..beat(2, epoch, epoch) },  true,      true,   false),
        (Heartbeat { wants_shutdown: true, ..beat(2, epoch, 99) },  true,      true,   true),
    ];
    for (ask, is_caught_up, is_fenced, should_shut_down) in table {
        let state = BrokerState { is_caught_up, is_fenced, should_shut_down };
        assert_eq!(lab.ask(ask), Ok(state), "{ask:?}");
        assert_eq!(lab.image().broker(BrokerId(2)).unwrap().is_fenced, is_fenced, "{ask:?}");
    }
    let stale = lab.ask(beat(2, epoch - 1, 9));
    let text = format!("Expected broker epoch {epoch}, but got broker epoch {}", epoch - 1);
    assert_eq!(told(&stale), (77, text));
    let unknown = lab.ask(beat(5, 1, 9));
    assert_eq!(told(&unknown), (77, "No broker registration found for broker id 5".into()));
}

#[test]
fn a_silent_broker_is_fenced_and_its_partitions_move() {
    #[rustfmt::skip] // columns
    let table = [
        ("without ELR", Lab::new(3),      "isr 1 elr  leader none epoch 1", "isr 1 elr  leader 1 epoch 2"),
        ("with ELR",    Lab::with_elr(3), "isr  elr 1 leader none epoch 1", "isr 1 elr  leader 1 epoch 2"),
    ];
    for (what, lab, alone, back) in table {
        let mut lab = cluster(lab);
        assert_eq!(lab.line("three", 0), "isr 123 elr  leader 1 epoch 0");
        lab.now = Instant(Duration::from_secs(8));
        keep_alive(&mut lab, &[2, 3]);
        assert!(lab.run_due().is_empty(), "{what}: too early");
        lab.now = Instant(Duration::from_secs(9));
        assert!(!lab.run_due().is_empty(), "{what}");
        assert!(lab.image().broker(BrokerId(1)).unwrap().is_fenced, "{what}");
        assert_eq!(lab.line("one", 0), alone, "{what}");
        assert_eq!(lab.line("two", 0), "isr 2 elr  leader 2 epoch 1", "{what}");
        assert_eq!(lab.line("three", 0), "isr 23 elr  leader 2 epoch 1", "{what}");
        keep_alive(&mut lab, &[1, 2, 3]); // unfences 1
        assert_eq!(lab.line("one", 0), back, "{what}");
        assert_eq!(
            lab.line("two", 0),
            "isr 2 elr  leader 2 epoch 1",
            "{what}: no way back by itself"
        );
        lab.now = Instant(Duration::from_secs(17));
        assert!(lab.run_due().is_empty(), "{what}: nobody is silent");
    }
}

#[test]
fn below_min_isr_the_last_members_stay_eligible() {
    let mut lab = cluster(Lab::with_elr(3));
    let key =
        ConfigEdit { key: "min.insync.replicas".into(), operation: 0, value: Some("2".into()) };
    let resources = vec![ConfigEdits { kind: 2, name: "two".into(), edits: vec![key] }];
    lab.ask(AlterConfigs { at: BrokerId(1), resources, validate_only: false });
    lab.now = Instant(Duration::from_secs(9));
    keep_alive(&mut lab, &[2, 3]);
    lab.run_due();
    assert_eq!(lab.line("two", 0), "isr 2 elr 1 leader 2 epoch 1");
    lab.now = Instant(Duration::from_secs(18));
    keep_alive(&mut lab, &[3]);
    lab.run_due();
    assert_eq!(lab.line("two", 0), "isr  elr 12 leader none epoch 2");
    keep_alive(&mut lab, &[1]);
    assert_eq!(lab.line("two", 0), "isr 1 elr 2 leader 1 epoch 3");
}

#[test]
fn a_restart_after_an_unclean_stop() {
    #[rustfmt::skip] // columns
    let table = [
        // the broker serves at once, stop was clean → partition `one`, partition `two`
        (Lab::new(3),      true,  true,  "isr 1 elr  leader 1 epoch 1", "isr 12 elr  leader 1 epoch 1"),
        (Lab::new(3),      true,  false, "isr 1 elr  leader 1 epoch 1", "isr 12 elr  leader 1 epoch 1"),
        (Lab::new(3),      false, true,  "isr 1 elr  leader none epoch 1", "isr 2 elr  leader 2 epoch 1"),
        (Lab::with_elr(3), false, true,  "isr  elr 1 leader none epoch 1", "isr 2 elr  leader 2 epoch 1"),
        (Lab::with_elr(3), false, false, "isr  elr  leader none epoch 1",  "isr 2 elr  leader 2 epoch 1"),
    ];
    for (lab, is_caught_up, is_clean, one, two) in table {
        let mut lab = cluster(lab);
        lab.now = Instant(Duration::from_secs(20));
        keep_alive(&mut lab, &[2, 3]);
        let previous_broker_epoch = if is_clean { epoch_of(&lab, 1) } else { -1 };
        let ask = RegisterBroker { is_caught_up, previous_broker_epoch, ..registration(1, 2) };
        lab.ask(ask).unwrap();
        let what = format!("caught up {is_caught_up}, clean {is_clean}");
        assert_eq!(lab.line("one", 0), one, "{what}");
        assert_eq!(lab.line("two", 0), two, "{what}");
        lab.run_due();
        keep_alive(&mut lab, &[1]);
        let recovers = !is_clean && !is_caught_up;
        assert_eq!(lab.line("one", 0).contains("recovering"), recovers, "{what}");
        assert!(lab.line("one", 0).contains("leader 1"), "{what}");
    }
}

#[test]
fn controlled_shutdown_hands_over_before_it_ends() {
    let mut lab = cluster(Lab::new(3));
    let epoch = epoch_of(&lab, 1);
    let stop = Heartbeat { wants_shutdown: true, ..beat(1, epoch, 99) };
    let wait = BrokerState { is_caught_up: true, is_fenced: false, should_shut_down: false };
    assert_eq!(lab.ask(stop), Ok(wait));
    assert_eq!(lab.line("two", 0), "isr 2 elr  leader 2 epoch 1");
    assert_eq!(lab.line("one", 0), "isr 1 elr  leader none epoch 1");
    assert_eq!(lab.ask(stop), Ok(wait), "the others have not applied it");
    keep_alive(&mut lab, &[2, 3]);
    let go = BrokerState { is_fenced: true, should_shut_down: true, ..wait };
    assert_eq!(lab.ask(stop), Ok(go));
    assert!(lab.ask(registration(1, 2)).is_ok(), "its session holds nobody up");
}

#[test]
fn more_partitions_than_one_batch_holds_move_in_steps() {
    let mut lab = Lab::new(2);
    for at in 0..3 {
        let assignments = (0..9_000).map(|index| (index, vec![BrokerId(1), BrokerId(2)])).collect();
        let topic = NewTopic { assignments, ..NewTopic::named(format!("t{at}")) };
        lab.ask(CreateTopics { topics: vec![topic], validate_only: false });
    }
    lab.now = Instant(Duration::from_secs(9));
    keep_alive(&mut lab, &[2]);
    let written = lab.run_due();
    assert_eq!(written.len(), 27_001);
    assert!(matches!(written.last(), Some(MetadataRecord::FenceBroker(_))));
    assert!(written.len() > 2 * Decision::<Controller>::RECORDS_MAX);
}

#[test]
fn an_unregistered_broker_leaves_its_partitions() {
    let mut lab = cluster(Lab::new(3));
    assert_eq!(lab.ask(UnregisterBroker { id: BrokerId(1) }), Ok(()));
    lab.run_due();
    assert!(lab.image().broker(BrokerId(1)).is_none());
    assert_eq!(lab.line("two", 0), "isr 2 elr  leader 2 epoch 1");
    let again = lab.ask(UnregisterBroker { id: BrokerId(1) });
    assert_eq!(told(&again).1, "No broker registration found for broker id 1");
}

#[test]
fn producer_ids_come_in_blocks_of_a_thousand() {
    let mut lab = Lab::new(2);
    let ask = |lab: &Lab, id| AllocateProducerIds {
        broker: BrokerId(id),
        broker_epoch: epoch_of(lab, id),
    };
    for (id, first) in [(1, 0), (2, 1_000), (1, 2_000)] {
        let asked = ask(&lab, id);
        let block = lab.ask(asked).unwrap();
        assert_eq!((block.first.0, block.count), (first, 1_000));
    }
    let stale = AllocateProducerIds { broker_epoch: 77, ..ask(&lab, 1) };
    assert_eq!(told(&lab.ask(stale)).0, 77);
    let unknown = AllocateProducerIds { broker: BrokerId(9), broker_epoch: 0 };
    assert_eq!(told(&lab.ask(unknown)).0, 77);
    let record = crate::protocol::records::metadata::ProducerIdsRecord {
        broker_id: 1,
        broker_epoch: 0,
        next_producer_id: i64::MAX - 10,
    };
    lab.replay(&[record.into()]);
    let asked = ask(&lab, 1);
    assert!(lab.ask(asked).is_err());
}

#[test]
fn a_new_leader_counts_sessions_from_its_election_on() {
    let mut lab = Lab::new(2);
    lab.now = Instant(Duration::from_secs(100));
    let cx = Context {
        now_ms: 0,
        now: lab.now,
        epoch: 2,
        position: Position(lab.end()),
        ticket: Ticket(0),
        seed: 0,
        batch_bytes_max: 1 << 20,
        world: &lab.world,
    };
    let (soft, decision) = lab.controller.elected(&cx);
    assert!(decision.records.is_empty() && decision.answers.is_empty());
    lab.soft = soft;
    assert!(lab.run_due().is_empty());
    lab.now = Instant(Duration::from_secs(109));
    assert_eq!(lab.run_due().len(), 2);
}

#[test]
fn a_fresh_cluster_begins_as_kafkas_does() {
    let records = bootstrap(&registration(1, 1), 1, &fresh_levels());
    let mut lab = Lab::new(0);
    lab.replay(&records);
    let image = lab.image();
    let features: Vec<_> = image.features().map(|(name, level)| (&**name, level)).collect();
    let expected =
        [("eligible.leader.replicas.version", 1), ("group.version", 1), ("metadata.version", 33)];
    assert_eq!(features, expected);
    let broker = image.broker(BrokerId(1)).unwrap();
    assert_eq!((broker.epoch, broker.is_fenced), (records.len() as i64 - 1, false));
    let all = image.configs(&ConfigResource::all_brokers()).unwrap();
    assert_eq!(all.get("min.insync.replicas").map(String::as_str), Some("1"));
    assert!(
        matches!(&records[0], MetadataRecord::FeatureLevel(it) if &*it.name == "metadata.version")
    );
}

#[test]
fn a_formatted_cluster_begins_at_the_levels_it_was_given() {
    let levels = [("metadata.version", 30), ("eligible.leader.replicas.version", 0)].into();
    let mut lab = Lab::new(0);
    lab.replay(&bootstrap(&registration(1, 1), 1, &levels));
    let image = lab.image();
    let features: Vec<_> = image.features().map(|(name, level)| (&**name, level)).collect();
    assert_eq!(features, [("metadata.version", 30)]);
    // What all brokers must agree on with eligible leader replicas they need not without.
    assert_eq!(image.configs(&ConfigResource::all_brokers()), None);
    assert!(image.broker(BrokerId(1)).is_some());
}

#[test]
fn what_is_in_a_failed_directory_is_led_elsewhere_or_by_nobody_until_it_is_back() {
    let dirs = [1_u128 << 70, 1 << 71].map(Uuid::from_u128);
    let with = |id: i32, incarnation: u128, log_dirs: &[Uuid]| RegisterBroker {
        log_dirs: log_dirs.to_vec(),
        ..registration(id, incarnation)
    };
    let mut lab = Lab::new(1);
    lab.world.session_timeout = None;
    for id in 1..=3 {
        lab.ask(with(id, 2, &dirs)).unwrap();
    }
    let mut lab = cluster(lab);
    lab.create("new", 1, 3);
    let broker = BrokerId(1);
    let id = |lab: &Lab, name: &str| lab.image().topic(name).unwrap().id;
    let (first, second) = (id(&lab, "one"), id(&lab, "two"));
    let replicas = vec![(first, 0, dirs[0]), (second, 0, dirs[0]), (id(&lab, "three"), 0, dirs[1])];
    let broker_epoch = epoch_of(&lab, 1);
    assert_eq!(lab.ask(AssignDirectories { broker, broker_epoch, replicas }), Ok(3));
    let fail = |lab: &Lab, failed: &[Uuid]| FailDirectories {
        broker,
        broker_epoch: epoch_of(lab, 1),
        failed: failed.to_vec(),
    };
    let before = lab.line("new", 0);
    let ask = fail(&lab, &dirs[..1]);
    assert_eq!(lab.ask(ask.clone()), Ok(true));
    assert_eq!(lab.image().broker(broker).unwrap().log_dirs, dirs[1..]);
    assert_eq!(lab.line("one", 0), "isr 1 elr  leader none epoch 1");
    assert_eq!(lab.line("two", 0), "isr 2 elr  leader 2 epoch 1");
    assert_eq!(lab.line("three", 0), "isr 123 elr  leader 1 epoch 0", "another directory");
    assert_eq!(lab.line("new", 0), before, "not known where it is");
    let online = |lab: &Lab, name: &str| {
        let partition = lab.image().topic(name).unwrap().partition(0).unwrap();
        lab.image().has_online_replica(partition, broker)
    };
    assert_eq!(
        ["one", "two", "three", "new"].map(|name| online(&lab, name)),
        [false, false, true, true]
    );
    assert_eq!(lab.ask_with_records(ask), (Ok(true), vec![]), "told twice");
    let all = fail(&lab, &dirs);
    assert_eq!(lab.ask_with_records(all), (Ok(true), vec![]), "the last one ends the broker");
    let stale = FailDirectories { broker_epoch: 0, ..fail(&lab, &dirs[1..]) };
    assert_eq!(told(&lab.ask(stale)).0, 77);
    // Back without it, and then with it.
    lab.ask(with(1, 3, &dirs[1..])).unwrap();
    assert_eq!(lab.line("one", 0), "isr 1 elr  leader none epoch 1");
    assert_eq!(lab.line("three", 0), "isr 123 elr  leader 1 epoch 1");
    lab.ask(with(1, 4, &dirs)).unwrap();
    assert_eq!(lab.line("one", 0), "isr 1 elr  leader 1 epoch 2");
    assert_eq!(lab.line("two", 0), "isr 2 elr  leader 2 epoch 1");
}

#[test]
fn a_replica_that_turns_up_in_another_directory_is_led_again() {
    let dirs = [1_u128 << 70, 1 << 71].map(Uuid::from_u128);
    let mut lab = Lab::new(1);
    lab.world.session_timeout = None;
    lab.ask(RegisterBroker { log_dirs: dirs.to_vec(), ..registration(1, 2) }).unwrap();
    lab.create("one", 1, 1);
    let (broker, topic) = (BrokerId(1), lab.image().topic("one").unwrap().id);
    let broker_epoch = epoch_of(&lab, 1);
    let assign =
        |dir: Uuid| AssignDirectories { broker, broker_epoch, replicas: vec![(topic, 0, dir)] };
    assert_eq!(lab.ask(assign(dirs[0])), Ok(1));
    let failed = dirs[..1].to_vec();
    assert_eq!(lab.ask(FailDirectories { broker, broker_epoch, failed }), Ok(true));
    assert_eq!(lab.line("one", 0), "isr 1 elr  leader none epoch 1");
    assert_eq!(lab.ask(assign(dirs[1])), Ok(1));
    assert_eq!(lab.line("one", 0), "isr 1 elr  leader 1 epoch 2");
}
