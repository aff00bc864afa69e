#!/bin/bash
# setup.sh : librdkafka with its own test runner, the same as for the classic protocol
exec "$(dirname "$0")/../librdkafka/setup.sh"
