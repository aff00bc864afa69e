#!/bin/bash
# run.sh HOST:PORT : librdkafka's own tests of groups, with the group protocol of KIP-848
export TEST_CONSUMER_GROUP_PROTOCOL=consumer
exec "$(dirname "$0")/../librdkafka/run.sh" "$1" \
  0018,0019,0029,0030,0033,0034,0040,0045,0050,0051,0056,0064,0089,0122,0130,0140,0153
