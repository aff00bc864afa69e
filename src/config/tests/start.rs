//! Static settings: their sources, listeners, and the rules that stop a start.

use crate::config::*;

fn file(text: &str) -> Sources {
    let file = Some(("server.properties".to_owned(), text.replace(';', "\n")));
    Sources { file, ..Sources::default() }
}

fn environment(variables: &[(&str, &str)]) -> Sources {
    let variables = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    Sources { variables, ..Sources::default() }
}

#[test]
fn variables_become_keys_by_the_rules_of_the_image() {
    #[rustfmt::skip]
    let table = [
        ("KAFKA_NUM_PARTITIONS",                   Some("num.partitions")),
        ("KAFKA_LISTENER_NAME_A__B_SSL_KEY",       Some("listener.name.a_b.ssl.key")),
        ("KAFKA_LISTENER_NAME_A___B_SSL_KEY",      Some("listener.name.a-b.ssl.key")),
        ("KAFKA_OTTLA_HTTP_PORT",                  Some("ottla.http.port")),
        ("KAFKA_HEAP_OPTS",                        None),
        ("KAFKA_LOG4J_LOGGERS",                    None),
        ("KAFKA",                                  None),
        ("PATH",                                   None),
    ];
    for (variable, key) in table {
        assert_eq!(property_of_variable(variable).as_deref(), key, "{variable}");
    }
}

#[test]
fn the_environment_of_testcontainers_starts_a_node() {
    let (config, notices) = load(&environment(&[
        ("CLUSTER_ID", "4L6g3nShT-eMCtK--X86sw"),
        ("KAFKA_LISTENERS", "PLAINTEXT://0.0.0.0:9092,BROKER://0.0.0.0:9093,CONTROLLER://0.0.0.0:9094,TC-0://kafka:19092"),
        ("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://h:32768,BROKER://b:9093,TC-0://kafka:19092"),
        ("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TC-0:PLAINTEXT"),
        ("KAFKA_INTER_BROKER_LISTENER_NAME", "BROKER"),
        ("KAFKA_PROCESS_ROLES", "broker,controller"),
        ("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER"),
        ("KAFKA_NODE_ID", "1"),
        ("KAFKA_CONTROLLER_QUORUM_VOTERS", "1@localhost:9094"),
        ("KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS", "1"),
        ("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1"),
        ("KAFKA_LOG_FLUSH_INTERVAL_MESSAGES", "9223372036854775807"),
        ("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0"),
        ("HOSTNAME", "kafka"),
    ]))
    .unwrap();
    let listeners = &config.listeners;
    let client: Vec<_> = listeners.client.iter().map(ToString::to_string).collect();
    let expected = ["PLAINTEXT://0.0.0.0:9092", "BROKER://0.0.0.0:9093", "TC-0://kafka:19092"];
    assert_eq!(client, expected);
    assert_eq!(listeners.controller[0].to_string(), "CONTROLLER://0.0.0.0:9094");
    assert_eq!(listeners.inter_broker, "BROKER");
    let told = |name| listeners.advertised_for(name, 1, "machine");
    assert_eq!(told("PLAINTEXT"), Some(("h".to_owned(), 32768)));
    assert_eq!(told("TC-0"), Some(("kafka".to_owned(), 19092)));
    assert_eq!(told("CONTROLLER"), Some(("0.0.0.0".to_owned(), 9094)));
    assert_eq!(told("OTHER"), None);
    assert_eq!(config.ottla.cluster_id.as_deref(), Some("4L6g3nShT-eMCtK--X86sw"));
    assert_eq!(config.group.initial_rebalance_delay_ms, 0);
    assert_eq!(notices.not_honoured, Vec::<String>::new());
    assert_eq!(notices.unknown, []);
}

#[test]
fn a_controllers_listener_is_told_as_advertised() {
    let file = file(
        "process.roles=broker,controller;controller.listener.names=CONTROLLER,SECOND;node.id=1;\
         controller.quorum.voters=1@localhost:9093;\
         listeners=PLAINTEXT://:9092,CONTROLLER://:9093,SECOND://:0;\
         advertised.listeners=PLAINTEXT://h:1,CONTROLLER://c:2",
    );
    let listeners = load(&file).unwrap().0.listeners;
    let table = [("PLAINTEXT", "h", 1), ("CONTROLLER", "c", 2), ("SECOND", "machine", 7)];
    for (name, host, port) in table {
        let told = listeners.advertised_for(name, 7, "machine");
        assert_eq!(told, Some((host.to_owned(), port)), "{name}");
    }
}

#[test]
fn each_source_stands_over_the_one_before() {
    let mut sources = file("num.partitions=1;default.replication.factor=1;log.dirs=/a");
    sources.variables = vec![
        ("KAFKA_NUM_PARTITIONS".to_owned(), "2".to_owned()),
        ("KAFKA_LOG_DIRS".to_owned(), "/b".to_owned()),
    ];
    sources.arguments = vec![("--data-dir /c".to_owned(), "log.dirs".to_owned(), "/c".to_owned())];
    let (config, _) = load(&sources).unwrap();
    assert_eq!(config.topics.num_partitions, 2);
    assert_eq!(config.log.directories(), ["/c"]);
}

#[test]
fn a_log_directory_named_twice_is_one() {
    let (config, _) = load(&file("log.dirs=/a,/b,/a")).unwrap();
    assert_eq!(config.log.directories(), ["/a", "/b"]);
}

#[test]
fn what_changes_nothing_is_named_once() {
    let (_, notices) =
        load(&file("num.io.threads=4;ssl.protocol=TLSv1.3;num.partition=3;my.own=1;super.users=a"))
            .unwrap();
    assert_eq!(notices.without_effect, ["num.io.threads"]);
    assert_eq!(notices.not_honoured, ["ssl.protocol", "super.users"]);
    let unknown = [("my.own", None), ("num.partition", Some("num.partitions"))];
    assert_eq!(notices.unknown, unknown.map(|(name, near)| (name.to_owned(), near)));
}

#[test]
fn node_id_and_broker_id_are_two_names_for_one() {
    let id = |text| load(&file(text)).map(|(config, _)| config.node.node_id);
    assert_eq!(id("broker.id=3"), Ok(3));
    assert_eq!(id("node.id=3"), Ok(3));
    assert!(id("node.id=2;broker.id=3").is_err());
}

#[test]
fn another_port_moves_listener_and_advertised_address_together() {
    #[rustfmt::skip]
    let table = [
        // listeners                              advertised                bound                      told
        ("",                                      "",                       "PLAINTEXT://localhost:7", "localhost:7"),
        ("PLAINTEXT://:9092,CONTROLLER://:9093",  "PLAINTEXT://h:9092",     "PLAINTEXT://:7",          "h:7"),
        ("PLAINTEXT://0.0.0.0:9092",              "PLAINTEXT://h:32000",    "PLAINTEXT://0.0.0.0:7",   "h:32000"),
        ("PLAINTEXT://:9092",                     "",                       "PLAINTEXT://:7",          "machine:7"),
    ];
    for (listeners, advertised, bound, told) in table {
        let lines = [("listeners", listeners), ("advertised.listeners", advertised)]
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>();
        let sources = Sources { port: Some(7), ..file(&lines.join(";")) };
        let (config, _) = load(&sources).unwrap();
        assert_eq!(config.listeners.client[0].to_string(), bound);
        let (host, port) = config.listeners.advertised_for("PLAINTEXT", 7, "machine").unwrap();
        assert_eq!(format!("{host}:{port}"), told, "{listeners} {advertised}");
    }
}

#[test]
fn listeners_are_judged_as_by_kafka() {
    let map = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,A:PLAINTEXT,B:PLAINTEXT,\
               CONTROLLER:PLAINTEXT";
    #[rustfmt::skip]
    let table = [
        // file                                                                       answer
        ("listeners=PLAINTEXT://h:1,CONTROLLER://:2",                                 "ok"),
        ("listeners=plaintext://h:1,controller://:2",                                 "ok"),
        ("listeners=PLAINTEXT://h:0,A://h:0;MAP",                                     "ok"),
        ("listeners=PLAINTEXT://127.0.0.1:1,A://[::1]:1;MAP",                         "ok"),
        ("listeners=PLAINTEXT://h:1,A://h:2;MAP;advertised.listeners=PLAINTEXT://x:1,A://x:1", "ok"),
        ("listeners=PLAINTEXT://h:1,A://h:1;MAP",                                     "Each listener must have a different port, listeners: [PLAINTEXT://h:1, A://h:1]"),
        ("listeners=PLAINTEXT://127.0.0.1:1,A://127.0.0.2:1;MAP",                     "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, listeners: [PLAINTEXT://127.0.0.1:1, A://127.0.0.2:1], port: 1"),
        ("listeners=PLAINTEXT://h:1,PLAINTEXT://h:2",                                 "Each listener must have a different name, listeners: [PLAINTEXT://h:1, PLAINTEXT://h:2]"),
        ("listeners=",                                                                "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"),
        ("listeners=PLAINTEXT://h:1,",                                                "Configuration 'listeners' values must not be empty."),
        ("listeners=PLAINTEXT://h",                                                   "Unable to parse PLAINTEXT://h to a broker endpoint"),
        ("listeners=PLAINTEXT://a b:1",                                               "Unable to parse PLAINTEXT://a b:1 to a broker endpoint"),
        ("listeners=CONTROLLER://h:1",                                                "There must be at least one broker advertised listener. Perhaps all listeners appear in controller.listener.names?"),
        ("listeners=A://h:1;MAP",                                                     "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based on currently configured listeners are A"),
        ("listeners=A://h:1;MAP;inter.broker.listener.name=A",                        "ok"),
        ("listeners=A://h:1;MAP;inter.broker.listener.name=FOO",                      "Listener with name FOO defined in inter.broker.listener.name not found in listener.security.protocol.map."),
        ("listeners=A://h:1;MAP;inter.broker.listener.name=A;security.inter.broker.protocol=PLAINTEXT", "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."),
        ("listeners=PLAINTEXT://h:1;MAP;advertised.listeners=PLAINTEXT://h:1,A://g:1", "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found PLAINTEXT,A. The valid options based on the current configuration are PLAINTEXT"),
        ("listeners=PLAINTEXT://0.0.0.0:1",                                           "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."),
        ("listener.security.protocol.map=PLAINTEXT:PLAIN",                            "Invalid security protocol `PLAIN` defined in listener.security.protocol.map"),
    ];
    for (text, answer) in table {
        let got = match load(&file(&text.replace("MAP", map))) {
            Ok(_) => "ok".to_owned(),
            Err(ConfigError::At { error, .. }) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let (_, got) = got.rsplit_once("]': ").unwrap_or(("", &got));
        assert_eq!(got, answer, "{text}");
    }
}

#[test]
fn an_error_names_the_line_that_it_comes_from() {
    #[rustfmt::skip]
    let table = [
        ("# c;num.partitions=0",                                       2),
        ("log.dirs=/a;log.retention.ms=0",                             2),
        ("listeners=PLAINTEXT://h:1;advertised.listeners=PLAINTEXT:x", 2),
        ("a=b;process.roles=x",                                        2),
        ("node.id=1;controller.quorum.voters=2@h:1",                   2),
        ("max.connections.per.ip=0",                                   1),
    ];
    for (text, line) in table {
        match load(&file(text)) {
            Err(ConfigError::At { origin: Origin::File { line: at, .. }, .. }) => {
                assert_eq!(at, line, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}
