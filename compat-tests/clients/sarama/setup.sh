#!/bin/bash
# setup.sh : sarama's own functional tests, which its module carries, built into one program, and the proxy through which
# they break connections. They are written for five brokers that advertise five proxies; here it is one broker, and what the
# tests configure a client with makes it dial the proxy wherever it goes. Addresses come out of the environment.
set -eu
go=$(dirname "$(readlink -f "$0")")/../../go
room=$OTTLA_CACHE/sarama-$SARAMA-$TOXIPROXY
[ -f "$room/complete" ] && exit 0
rm -rf "$room"; mkdir -p "$room"; cd "$room"
GOBIN=$room go install "github.com/Shopify/toxiproxy/v2/cmd/server@$TOXIPROXY"
"$go/source.sh" "github.com/IBM/sarama@$SARAMA"
cd source
sed -i -E 's/i <= 5/i <= 1/; s/ReplicationFactor: 3/ReplicationFactor: 1/; s/fmt\.Sprintf\("127\.0\.0\.1:%d", 29090\+i\)/compatProxy/
  /^func NewFunctionalTestConfig/,/^}/s/config := NewConfig\(\)/&\n\tconfig.Net.Proxy.Enable, config.Net.Proxy.Dialer = true, throughProxy{}/' \
  functional_test.go
cat > compat_test.go <<'GO'
//go:build functional

package sarama

import (
	"net"
	"os"
)

var compatProxy = os.Getenv("COMPAT_PROXY")

type throughProxy struct{}

func (throughProxy) Dial(network, _ string) (net.Conn, error) { return net.Dial(network, compatProxy) }
GO
go test -tags functional -c -o "$room/sarama.test" .
cd ..; rm -rf source; touch complete
