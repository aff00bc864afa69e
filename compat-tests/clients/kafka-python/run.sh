#!/bin/bash
# run.sh HOST:PORT : kafka-python's own integration tests, then our checks of what they leave out
set -u
room=$OTTLA_CACHE/kafka-python-$KAFKA_PYTHON
cp -r "$room/source" "$WORK/source"; cd "$WORK/source" || exit 2
# the archive lacks two modules of its test package: an empty one, and the stand-in for an outside broker
touch test/__init__.py
cat > test/service.py <<'PY'
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass

    def stop(self):
        pass


class SpawnedService:
    def __init__(self, *arguments, **options):
        raise RuntimeError("needs a broker of its own")
PY
mkdir -p "$WORK/none"
# a first answer that comes before `subscribe` has returned loses the subscription (FINDINGS.md)
coproc FAR { exec "$room/python/bin/python" -B "$OLDPWD/far_bootstrap.py" "$1"; }
read -r far <&"${FAR[0]}" || exit 2
KAFKA_VERSION=$KAFKA KAFKA_URI=kafka://$far KAFKA_ROOT=$WORK/none PYTHONPATH=. timeout 400 \
  "$room/python/bin/python" -m pytest -q --timeout=120 -rA --show-capture=no --tb=line test/integration \
  --ignore=test/integration/test_ssl_integration.py > "$WORK/pytest.log" 2>&1
sed -nE 's/^PASSED [^ ]*::(.*)$/PASS \1/p; s/^(FAILED|ERROR) [^ ]*::([^ ]+)( - (.*))?$/FAIL \2 -- \4/p' "$WORK/pytest.log"
# skipped tests are reported by place, with a count
sed -nE 's/^SKIPPED \[([0-9]+)\] (test[^ ]*): (.*)$/SKIP \2 (\1) -- \3/p' "$WORK/pytest.log"
"$room/python/bin/python" -B "$OLDPWD/checks.py" "$far"
