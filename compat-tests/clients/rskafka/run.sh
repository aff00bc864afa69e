#!/bin/bash
# run.sh HOST:PORT : rskafka's own integration tests, but for those that want SASL, TLS or a proxy, or no broker
export TEST_INTEGRATION=1 TEST_BROKER_IMPL=kafka KAFKA_CONNECT=$1
exec "$(dirname "$0")/../../rust/run.sh" "$OTTLA_CACHE/rskafka-$RSKAFKA/tests" 150 \
  --skip=test_sasl --skip=test_tls --skip=test_socks5 --skip=test_client_backoff_terminates
