#!/bin/bash
# run.sh HOST:PORT : sarama's own functional tests, those that one broker can answer (the files `tests` and `transactions`),
# through a proxy
set -u
here=$(dirname "$(readlink -f "$0")")
room=$OTTLA_CACHE/sarama-$SARAMA-$TOXIPROXY
cd "$WORK" || exit 2
read -r control proxy < <(python3 -c 'import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*[socket.getsockname()[1] for socket in sockets])')
echo "[{\"name\": \"kafka1\", \"listen\": \"127.0.0.1:$proxy\", \"upstream\": \"$1\", \"enabled\": true}]" > proxies.json
"$room/server" -host 127.0.0.1 -port "$control" -config proxies.json > proxy.log 2>&1 &
trap 'kill $!' EXIT
for _ in {1..100}; do curl -sf "http://127.0.0.1:$control/proxies/kafka1" > proxy.json && break; sleep 0.1; done
export TOXIPROXY_ADDR=http://127.0.0.1:$control COMPAT_PROXY=127.0.0.1:$proxy KAFKA_VERSION=$KAFKA
go_test() { # go_test SECONDS LIST
  timeout $(($1 + 10)) "$room/sarama.test" -test.v -test.timeout "$1s" -test.run "^($(paste -sd '|' "$here/$2"))\$" > "$2.log" 2>&1
  "$here/../../go/verdicts.sh" "$2.log"
}
go_test 240 tests
# apart: where no coordinator is to be found they go on until the time is over, and nothing else does beside them
go_test 120 transactions
