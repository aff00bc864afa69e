#!/bin/bash
# run.sh HOST:PORT : librdkafka's own tests of groups, with the group protocol of KIP-848
here=$(dirname "$(readlink -f "$0")")
export TEST_CONSUMER_GROUP_PROTOCOL=consumer
"$here/../librdkafka/run.sh" "$1" 0018,0019,0029,0030,0033,0034,0040,0050,0051,0056,0064,0122,0130,0140,0153
# of 0045 those that do not leave the group right after they subscribed, see FINDINGS.md
WORK=$WORK/0045 SUBTESTS=regex "$here/../librdkafka/run.sh" "$1" 0045 | grep -v '_many_updates'
