#!/bin/bash
# run.sh HOST:PORT : rust-rdkafka's own integration tests, but for those that pass without a broker
export KAFKA_HOST=$1 KAFKA_VERSION=$KAFKA RUST_LOG=off
alone=(test_event_errors test_future_undelivered test_future_producer_send_full test_invalid_consumer_position
  test_base_producer_queue_full test_base_producer_opaque_arc test_base_producer_timeout test_fatal_errors
  test_client_config test_fmt_debug)
exec "$(dirname "$0")/../../rust/run.sh" "$OTTLA_CACHE/rust-rdkafka-$RUST_RDKAFKA/tests" 300 "${alone[@]/#/--skip=}"
